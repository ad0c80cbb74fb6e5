/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a core file, plain or compressed, which are every mapped file as well. */
#include "object/core.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { MAPS_LOOKED_AT = 64, UNPACKED_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static struct error *new_file(void *context, int *ret_fd)
{
	*ret_fd = memfd_create("unpacked", MFD_CLOEXEC);
	return *ret_fd < 0 ? error_errno("memfd") : NULL;
}

static struct error *open_file(void *context, const char *path, enum root_outcome *ret, int *ret_fd)
{
	const struct input *input = context;

	TRY(new_file(context, ret_fd));
	if (write(*ret_fd, input->data, input->size) != (ssize_t)input->size)
		__builtin_trap();
	*ret = ROOT_opened;
	return NULL;
}

/* Mappings are sorted and apart, and what is at their edges can be asked for. */
static void check_maps(struct core *core)
{
	const struct maps *maps = core_maps(core);
	struct memory memory = core_memory(core);
	uint8_t bytes[64];

	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->map[i];
		if (map->start >= map->end || (i && maps->map[i - 1].end > map->start))
			__builtin_trap();
		if (i >= MAPS_LOOKED_AT)
			continue;
		(void)memory_read(&memory, map->start, bytes, sizeof(bytes));
		(void)memory_read(&memory, map->end - 8, bytes, sizeof(bytes));
	}
}

static struct error *check_files(struct core *core)
{
	const struct maps *maps = core_maps(core);
	enum core_file look;

	for (size_t i = 0; i < maps->count && i < MAPS_LOOKED_AT; i++) {
		_cleanup_close_ int fd = -1;
		TRY(core_open_file(core, &maps->map[i], &look, &fd));
		if ((look == CORE_FILE_same || look == CORE_FILE_unproven) != (fd >= 0))
			__builtin_trap();
	}
	return NULL;
}

/* Every text ends. */
static void check_texts(struct core *core)
{
	const struct core_facts *facts = core_facts(core);
	size_t count;

	const char *const *remarks = core_remarks(core, &count);
	for (size_t i = 0; i < count; i++)
		if (!strlen(remarks[i]))
			__builtin_trap();
	if (strlen(core_exe(core)) > UNPACKED_MAX || strlen(facts->name) > CORE_NAME ||
	    strlen(facts->arguments) > CORE_ARGUMENTS)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	const struct core_options options = {.open = open_file,
					     .temporary = new_file,
					     .context = &input,
					     .unpacked_max = UNPACKED_MAX};
	_cleanup_core_ struct core *core = NULL;
	_cleanup_close_ int fd = -1;
	enum root_outcome outcome;

	struct error *err = open_file(&input, "", &outcome, &fd);
	if (!err)
		err = core_open(fd, "input", &options, &core);
	if (!err) {
		(void)take_fd(&fd);
		check_maps(core);
		err = check_files(core);
		check_texts(core);
	}
	error_free(err); // refused with a reason
	return 0;
}
