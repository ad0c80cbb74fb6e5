/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking .gnu_debugdata. The symbols in it are read by symtab.c. */
#include "symbolize/minidebug.h"

#include <lzma.h>
#include <string.h>

#include "base/array.h"

enum { PIECE_BYTES = 256 << 10 };

void minidebug_deinit(struct minidebug *mini)
{
	object_free(mini->object);
	free(mini->data);
	*mini = (struct minidebug)MINIDEBUG_INIT;
}

/* Unpack all that STREAM has been given. */
static struct error *unpack(lzma_stream *stream, const char *name, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	size_t room = 0, size = 0;
	lzma_ret code = LZMA_OK;

	while (code == LZMA_OK) {
		TRY(ARRAY_RESERVE(data, room, size, PIECE_BYTES, MINIDEBUG_BYTES,
				  "bytes of unpacked MiniDebugInfo"));
		stream->next_out = (uint8_t *)data + size;
		stream->avail_out = room - size;
		code = lzma_code(stream, LZMA_FINISH);
		size = room - stream->avail_out;
	}
	if (code == LZMA_MEM_ERROR)
		return error_oom();
	if (code != LZMA_STREAM_END)
		return error_new("%s: .gnu_debugdata: offset 0x%llx: damaged (xz says %d)", name,
				 (unsigned long long)stream->total_in, (int)code);
	*ret = take(data);
	*ret_size = size;
	return NULL;
}

struct error *minidebug_open(struct object *object, struct minidebug *ret)
{
	_cleanup_(minidebug_deinit) struct minidebug mini = MINIDEBUG_INIT;
	lzma_stream stream = LZMA_STREAM_INIT;
	char *data;
	size_t size;
	struct bytes b;

	if (!object_section(object, ".gnu_debugdata", &b, NULL))
		return NULL;
	if (lzma_stream_decoder(&stream, MINIDEBUG_MEMORY, 0) != LZMA_OK)
		return error_oom();
	stream.next_in = b.at;
	stream.avail_in = bytes_left(&b);
	struct error *err = unpack(&stream, object_name(object), &data, &size);
	lzma_end(&stream);
	TRY(err);
	mini.data = data;
	TRY(object_open_memory(mini.data, size, object_name(object), &mini.object));
	*ret = take_struct(mini);
	return NULL;
}
