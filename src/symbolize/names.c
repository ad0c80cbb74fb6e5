/* SPDX-License-Identifier: Apache-2.0 */
/* Interned strings. When they may be forgotten is the symbolizer's decision. */
#include "symbolize/names.h"

#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "symbolize/demangle.h"

struct wanted {
	const struct names *names;
	const char *text;
};

static bool same_text(const void *context, uint32_t item)
{
	const struct wanted *wanted = context;

	return !strcmp(wanted->names->text[item], wanted->text);
}

void names_deinit(struct names *names)
{
	arena_deinit(&names->arena);
	hash_index_deinit(&names->index);
	free(names->text);
	*names = (struct names)NAMES_INIT;
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

static struct error *add_clean(struct names *names, const char *text, size_t length,
			       const char **ret)
{
	struct wanted wanted = {names, text};
	uint64_t hash = hash_bytes(text, length, 0);
	uint32_t item;

	if (hash_find(&names->index, hash, same_text, &wanted, &item)) {
		*ret = names->text[item];
		return NULL;
	}
	names->arena.max_bytes = NAMES_BYTES_MAX;
	TRY(ARRAY_RESERVE(names->text, names->room, names->count, 1, NAMES_MAX, "names"));
	const char *copy;
	TRY(arena_copy(&names->arena, text, length, &copy));
	TRY(hash_add(&names->index, hash, (uint32_t)names->count));
	names->text[names->count++] = copy;
	*ret = copy;
	return NULL;
}

struct error *names_add(struct names *names, const char *text, size_t length, const char **ret)
{
	_cleanup_free_ char *clean = malloc(length + 1);

	if (!clean)
		return error_oom();
	for (size_t i = 0; i < length; i++)
		clean[i] = is_control(text[i]) ? '?' : text[i];
	clean[length] = 0;
	return add_clean(names, clean, length, ret);
}

struct error *names_add_symbol(struct names *names, const char *name, const char *suffix,
			       const char **ret)
{
	_cleanup_(strbuf_deinit) struct strbuf text = STRBUF_INIT;
	_cleanup_free_ char *readable = NULL;
	size_t length = strcspn(name, "@");

	TRY(strbuf_add(&text, name, length ? length : strlen(name)));
	TRY(demangle_name(text.text, &readable));
	if (readable) {
		text.length = 0;
		TRY(strbuf_add(&text, readable, strlen(readable)));
	}
	TRY(strbuf_add(&text, suffix, strlen(suffix)));
	return names_add(names, text.text, text.length, ret);
}
