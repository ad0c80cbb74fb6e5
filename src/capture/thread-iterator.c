/* SPDX-License-Identifier: Apache-2.0 */
/* Loading bpf/threads.bpf.c and reading what it writes. */
#include "capture/thread-iterator.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "capture/loading.h"
#include "proc/process.h"
#include "proc/system.h"
#include "threads.skel.h"

enum {
	STACKS_BYTES = 64 << 10,
	READ_RECORDS = 256, /* at a time; the kernel's own buffer holds half as many */
};

_Static_assert((int)THREAD_RECORD_WORDS == (int)REGISTERS_WORDS, "the same registers");

struct thread_iterator {
	struct threads_bpf *skeleton;
	struct bpf_link *all; /* over all tasks */
	struct bpf_link *stacks;
};

/* What libbpf answers: 0, or a negative errno. */
static int load(struct thread_iterator *iterator, bool task_registers)
{
	iterator->skeleton = threads_bpf__open();
	if (!iterator->skeleton)
		return -errno;
	iterator->skeleton->rodata->has_task_registers = task_registers;
	return threads_bpf__load(iterator->skeleton);
}

static struct error *set_up(struct thread_iterator *iterator)
{
	// In a namespace of our own the kernel's numbers are not ours.
	if (system_has_own_pid_namespace())
		return error_new("this is not the machine's PID namespace: the kernel's numbers of "
				 "threads are others");
	int code = load(iterator, true);
	if (code == -EINVAL) { // what the verifier says to a helper that it does not know
		threads_bpf__destroy(iterator->skeleton);
		code = load(iterator, false);
	}
	if (code)
		return loading_error(code);
	iterator->all = bpf_program__attach_iter(iterator->skeleton->progs.show_thread, NULL);
	iterator->stacks = bpf_program__attach_iter(iterator->skeleton->progs.show_stack, NULL);
	return iterator->all && iterator->stacks ? NULL
						 : error_errno("attach to the list of threads");
}

struct error *thread_iterator_open(struct thread_iterator **ret)
{
	_cleanup_thread_iterator_ struct thread_iterator *iterator = calloc(1, sizeof(*iterator));

	if (!iterator)
		return error_oom();
	loading_log_libbpf();
	TRY(set_up(iterator));
	*ret = take(iterator);
	return NULL;
}

void thread_iterator_close(struct thread_iterator *iterator)
{
	if (!iterator)
		return;
	bpf_link__destroy(iterator->all);
	bpf_link__destroy(iterator->stacks);
	threads_bpf__destroy(iterator->skeleton);
	free(iterator);
}

void thread_records_deinit(struct thread_records *records)
{
	free(records->record);
	*records = (struct thread_records)THREAD_RECORDS_INIT;
}

static int compare_records(const void *a, const void *b)
{
	const struct thread_record *left = a, *right = b;

	return (left->tid > right->tid) - (left->tid < right->tid);
}

/* Everything that one run over the threads of LINK gives. */
static struct error *read_all(const struct bpf_link *link, struct thread_records *records)
{
	_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(link));
	size_t bytes = 0;

	if (fd < 0)
		return error_errno("list threads");
	for (;;) {
		size_t have = bytes / sizeof(*records->record);
		TRY(ARRAY_RESERVE(records->record, records->room, have, READ_RECORDS, PIDS_MAX,
				  "threads"));
		ssize_t size = read(fd, (char *)records->record + bytes,
				    (records->room - have) * sizeof(*records->record) -
					    bytes % sizeof(*records->record));
		if (size < 0 && (errno == EAGAIN || errno == EINTR))
			continue; // it has run for long, and gives us a chance to stop
		if (size < 0)
			return error_errno("list threads");
		if (!size)
			break;
		bytes += (size_t)size;
	}
	records->count = bytes / sizeof(*records->record);
	return NULL;
}

/*
 * The same over the threads of one process, or one thread. Kernels before Linux f0d74c4da1f0
 * ("bpf: Parameterize task iterators", 6.1) go over all and leave out the others in the program.
 */
static struct error *read_some(struct thread_iterator *iterator, pid_t pid, pid_t tid,
			       struct thread_records *records)
{
	union bpf_iter_link_info info = {.task = {.tid = (uint32_t)tid, .pid = (uint32_t)pid}};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info,
		    .link_info_len = sizeof(info));

	if (tid)
		info.task.pid = 0; // the kernel takes one or the other
	iterator->skeleton->bss->only_pid = (uint32_t)pid;
	struct bpf_link *some =
		pid ? bpf_program__attach_iter(iterator->skeleton->progs.show_thread, &options)
		    : NULL;
	struct error *err = read_all(some ? some : iterator->all, records);
	bpf_link__destroy(some);
	if (!err && records->count)
		qsort(records->record, records->count, sizeof(*records->record), compare_records);
	return err;
}

struct error *thread_iterator_read(struct thread_iterator *iterator, pid_t pid,
				   struct thread_records *ret)
{
	_cleanup_(thread_records_deinit) struct thread_records records = THREAD_RECORDS_INIT;

	TRY(read_some(iterator, pid, 0, &records));
	*ret = take_struct(records);
	return NULL;
}

struct error *thread_iterator_read_one(struct thread_iterator *iterator, pid_t pid, pid_t tid,
				       bool *ret_there, struct thread_record *ret)
{
	_cleanup_(thread_records_deinit) struct thread_records records = THREAD_RECORDS_INIT;

	TRY(read_some(iterator, pid, tid, &records));
	const struct thread_record *record = thread_records_find(&records, tid);
	if (record)
		*ret = *record;
	*ret_there = record;
	return NULL;
}

/* Pass on the stacks in SIZE bytes of DATA. The kernel never splits one between two reads. */
static struct error *take_stacks(const char *data, size_t size, thread_stack_fn *fn, void *context)
{
	size_t at = 0;

	while (size - at >= THREAD_STACK_HEAD) {
		struct thread_stack stack;
		memcpy(&stack, data + at, THREAD_STACK_HEAD);
		size_t frames = stack.count * sizeof(stack.pc[0]);
		if (stack.count > THREAD_STACK_FRAMES || frames > size - at - THREAD_STACK_HEAD)
			return error_new("the kernel's stacks of threads make no sense");
		memcpy(stack.pc, data + at + THREAD_STACK_HEAD, frames);
		TRY(fn(context, &stack));
		at += THREAD_STACK_HEAD + frames;
	}
	return NULL;
}

static struct error *read_stacks(struct thread_iterator *iterator, thread_stack_fn *fn,
				 void *context)
{
	_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(iterator->stacks));
	_cleanup_free_ char *data = malloc(STACKS_BYTES);
	ssize_t size = 0;

	if (fd < 0)
		return error_errno("list threads");
	if (!data)
		return error_oom();
	do {
		size = read(fd, data, STACKS_BYTES);
		if (size < 0 && errno != EAGAIN && errno != EINTR)
			return error_errno("list threads");
		if (size > 0)
			TRY(take_stacks(data, (size_t)size, fn, context));
	} while (size);
	return NULL;
}

struct error *thread_iterator_stacks(struct thread_iterator *iterator, const uint32_t *tids,
				     size_t count, thread_stack_fn *fn, void *context)
{
	int asked = bpf_map__fd(iterator->skeleton->maps.asked);
	struct error *err = NULL;
	uint32_t yes = 1;

	for (size_t i = 0; i < count && !err; i++)
		if (bpf_map_update_elem(asked, &tids[i], &yes, BPF_ANY))
			err = error_errno("ask for the stacks of %zu threads", count);
	if (!err)
		err = read_stacks(iterator, fn, context);
	for (size_t i = 0; i < count; i++)
		(void)bpf_map_delete_elem(asked, &tids[i]); // not there if asking failed
	return err;
}

const struct thread_record *thread_records_find(const struct thread_records *records, pid_t tid)
{
	struct thread_record key = {.tid = (uint32_t)tid};

	if (!records->count)
		return NULL;
	return bsearch(&key, records->record, records->count, sizeof(key), compare_records);
}

bool thread_record_registers(const struct thread_record *record, struct thread_registers *ret)
{
	struct thread_registers registers;

	if (record->flags & (THREAD_on_cpu | THREAD_no_user) || !(record->flags & THREAD_words))
		return false;
	registers_set((const uint64_t *)record->word, record->fs_base, &registers);
	// Threads that the kernel adds to a process (io_uring, vhost) never ran user code.
	if (!registers.at.pc && !registers.at.sp)
		return false;
	*ret = registers;
	return true;
}
