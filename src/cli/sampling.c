/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and signals that the sampling commands share. */
#define LOG_DOMAIN "sampling"
#include "cli/sampling.h"

#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "capture/captures.h"

enum { LARGE_BYTES = 128 * 1024, REPEATED_NS = 500000000 };

static const char *const walkers[] = {"auto", "loop", "tail"};

static const char *walker_at(size_t index)
{
	return index < ARRAY_COUNT(walkers) ? walkers[index] : NULL;
}

static const char *capture_at(size_t index)
{
	const struct capture_row *row = index ? capture_row_at(index - 1) : NULL;

	if (!index)
		return CAPTURE_AUTO;
	return row ? row->name : NULL;
}

const struct option_row options_sampling[] = {
	{.name = "capture",
	 .whole = true,
	 .kind = OPTION_CHOICE,
	 .at = offsetof(struct sampling_args, capture),
	 .choice = capture_at,
	 .fallback_text = CAPTURE_AUTO,
	 .help = "how samples are taken: bpf, by programs in the kernel; poll, by looks at the "
		 "processes that one may trace, from outside; auto takes bpf where that works, "
		 "and says so where it does not"},
	{.name = "depth",
	 .whole = true,
	 .kind = OPTION_UINT,
	 .at = offsetof(struct sampling_args, depth),
	 .fallback = SAMPLE_USER_FRAMES,
	 .min = 1,
	 .max = SAMPLE_USER_FRAMES,
	 .unit = "frames",
	 .help = "user frames in one stack; deeper stacks are cut, visibly"},
	{.name = "memory",
	 .whole = true,
	 .kind = OPTION_UINT,
	 .at = offsetof(struct sampling_args, memory_mib),
	 .fallback = 24,
	 .min = 2,
	 .max = STORE_SEGMENTS_MAX,
	 .unit = "MiB",
	 .help = "unwind rows may take that much; the least recently used ones give way"},
	{.name = "walker",
	 .whole = true,
	 .kind = OPTION_CHOICE,
	 .at = offsetof(struct sampling_args, walker),
	 .choice = walker_at,
	 .fallback_text = "auto",
	 .help = "how the kernel side loops over frames: auto takes bpf_loop where the kernel has "
		 "it, else tail calls"},
	{0},
};

const struct option_row options_naming[] = {
	{.name = "no-lines",
	 .kind = OPTION_FLAG_OFF,
	 .at = offsetof(struct naming_args, lines),
	 .help = "do not look up source lines and inlined calls in debug information"},
	{.name = "debuginfod",
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct naming_args, debuginfod),
	 .help = "fetch missing debug information from the servers in DEBUGINFOD_URLS, after "
		 "sampling"},
	{0},
};

void sampling_apply(const struct sampling_args *args, struct capture_options *options)
{
	options->capture = args->capture;
	options->depth = (unsigned)args->depth;
	options->memory_mib = (unsigned)args->memory_mib;
	options->variant = KERNEL_auto;
	if (!strcmp(args->walker, "loop"))
		options->variant = KERNEL_loop;
	else if (!strcmp(args->walker, "tail"))
		options->variant = KERNEL_tail;
}

void sampling_tell(const struct capture *capture)
{
	const char *instead = capture_instead(capture), *lacks = capture_lacks(capture);

	if (instead)
		log_warning("%s; the %s capture is used instead%s%s", instead,
			    capture_name(capture), lacks ? ": " : "", lacks ? lacks : "");
}

struct error *sampling_ids(const struct uint_list *list, uint32_t **ret)
{
	uint32_t *ids = calloc(list->count + 1, sizeof(*ids));

	if (!ids)
		return error_oom();
	for (size_t i = 0; i < list->count; i++)
		ids[i] = (uint32_t)list->items[i];
	*ret = ids;
	return NULL;
}

void sampling_prepare_process(void)
{
	(void)setpriority(PRIO_PROCESS, 0, -10);
	// Tables that are built and dropped again (a large object's rows) go back to the system at
	// once.
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
}

static void stop_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGCHLD);
}

struct error *stop_signals_open(int *ret_fd)
{
	sigset_t set;

	stop_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return error_errno("block signals");
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return error_errno("wait for signals");
	*ret_fd = fd;
	return NULL;
}

void stop_signals_unblock(void)
{
	sigset_t set;

	stop_set(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int stop_signals_read(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

/* When signals end the process again. Written before the handler is there. */
static uint64_t let_go_ns;

static void on_repeated(int number)
{
	if (clock_monotonic_ns() < let_go_ns)
		return;
	signal(number, SIG_DFL);
	raise(number); // takes effect when the handler returns
}

void stop_signals_let_go(void)
{
	const struct sigaction action = {.sa_handler = on_repeated, .sa_flags = SA_RESTART};

	let_go_ns = clock_monotonic_ns() + REPEATED_NS;
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	stop_signals_unblock();
}
