/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole capture on this kernel, with children of our own as targets. Needs the privileges that
 * sampling needs.
 */
#include "capture/capture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "unit.h"

enum { HZ = 997, TAKE_MS = 600 };

static volatile unsigned long sink;
static volatile bool running = true;

/* The functions whose names must come out, outermost first. */
__attribute__((noipa)) void capture_test_leaf(void);
__attribute__((noipa)) void capture_test_middle(int depth);

void capture_test_leaf(void)
{
	while (running)
		for (unsigned long i = 0; i < 1000; i++)
			sink += i;
}

void capture_test_middle(int depth)
{
	if (depth > 0)
		capture_test_middle(depth - 1);
	else
		capture_test_leaf();
	sink++; // not a tail call
}

/* The end of an epilogue of GCC's: rbp was popped, and the rules say that it is below rsp. */
void capture_test_popped(void);
__asm__(".pushsection .text\n"
	".type capture_test_popped, @function\n"
	"capture_test_popped:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"pop %rbp\n"
	".cfi_def_cfa_offset 8\n"
	"1: jmp 1b\n"
	".cfi_endproc\n"
	".size capture_test_popped, . - capture_test_popped\n"
	".popsection\n");

enum { IN_EPILOGUE = -1 };

static pid_t start_child(int depth)
{
	pid_t child = fork();

	ASSERT_TRUE(child >= 0);
	if (child == 0) {
		if (depth == IN_EPILOGUE)
			capture_test_popped();
		capture_test_middle(depth);
		_exit(0);
	}
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Options for PID alone; the caller changes what it is about. */
static struct capture_options options_for(const uint32_t *pid)
{
	return (struct capture_options){
		.capture = CAPTURE_AUTO,
		.event = "cpu-clock",
		.hz = HZ,
		.kernel_stacks = true,
		.user_stacks = true,
		.depth = SAMPLE_USER_FRAMES,
		.memory_mib = 8,
		.pids = pid,
		.pid_count = 1,
	};
}

/* A session of TAKE_MS; NULL: we lack the privileges, and the test is skipped. */
static struct profile *take_profile(const struct capture_options *options)
{
	_cleanup_capture_ struct capture *capture = NULL;
	struct profile *profile = NULL;

	if (geteuid() != 0)
		SKIP("sampling needs root");
	ASSERT_OK(capture_open(options, &capture));
	ASSERT_OK(capture_start(capture));
	ASSERT_OK(capture_wait(capture, TAKE_MS, -1));
	capture_stop(capture);
	ASSERT_OK(capture_end_session(capture, &profile));
	return profile;
}

/* Frames called NAME in sample number I. */
static int count_frames(const struct profile *profile, size_t i, const char *name)
{
	int count = 0;

	for (stack_id at = profile_sample_at(profile, i)->stack; at != STACK_EMPTY;
	     at = profile_stack_parent(profile, at)) {
		const struct frame *frame =
			profile_frame_at(profile, profile_stack_frame(profile, at));
		count += !strcmp(profile_text(profile, frame->function, NULL), name);
	}
	return count;
}

/* Samples whose stack holds DEPTH + 1 times the middle and once the leaf. */
static uint64_t count_right(const struct profile *profile, int depth)
{
	uint64_t right = 0;

	for (size_t i = 0; i < profile_samples(profile); i++)
		if (count_frames(profile, i, "capture_test_leaf") == 1 &&
		    count_frames(profile, i, "capture_test_middle") == depth + 1 &&
		    count_frames(profile, i, "main") == 1)
			right += profile_sample_at(profile, i)->value;
	return right;
}

static uint64_t count_cut(const struct profile *profile)
{
	const struct session_facts *facts = profile_facts_const(profile);
	uint64_t cut = 0;

	for (size_t i = 0; i < facts->cut_count; i++)
		cut += facts->cuts[i].samples;
	return cut;
}

static void check_variant(enum kernel_variant variant)
{
	pid_t child = start_child(20);
	uint32_t pid = (uint32_t)child;
	struct capture_options options = options_for(&pid);

	options.variant = variant;
	struct profile *profile = take_profile(&options);
	end_child(child);
	uint64_t samples = profile_facts_const(profile)->samples;
	ASSERT_TRUE(samples > HZ * TAKE_MS / 1000 / 10);
	// A tick may hit the child before its loop, or memory that is just then being mapped.
	ASSERT_TRUE(count_right(profile, 20) * 100 >= samples * 98);
	ASSERT_TRUE(count_cut(profile) * 100 <= samples);
	profile_free(profile);
}

TEST(a_stack_is_whole_and_named_by_bpf_loop)
{
	check_variant(KERNEL_loop);
}

TEST(a_stack_is_whole_and_named_by_tail_calls)
{
	check_variant(KERNEL_tail);
}

// The host walks the first samples, whose rows are not loaded yet, in a copy of the stack.
TEST(a_copied_stack_holds_what_an_epilogue_has_popped)
{
	pid_t child = start_child(IN_EPILOGUE);
	uint32_t pid = (uint32_t)child;
	struct capture_options options = options_for(&pid);
	struct profile *profile = take_profile(&options);
	uint64_t right = 0;

	end_child(child);
	for (size_t i = 0; i < profile_samples(profile); i++)
		if (count_frames(profile, i, "capture_test_popped") == 1 &&
		    count_frames(profile, i, "main") == 1)
			right += profile_sample_at(profile, i)->value;
	uint64_t samples = profile_facts_const(profile)->samples;
	ASSERT_TRUE(samples > 0);
	ASSERT_TRUE(right * 100 >= samples * 98);
	ASSERT_TRUE(count_cut(profile) * 100 <= samples);
	profile_free(profile);
}

TEST(a_stack_deeper_than_asked_for_is_cut_and_says_so)
{
	pid_t child = start_child(100);
	uint32_t pid = (uint32_t)child;
	struct capture_options options = options_for(&pid);

	options.depth = 50;
	struct profile *profile = take_profile(&options);
	end_child(child);
	const struct session_facts *facts = profile_facts_const(profile);
	ASSERT_EQ(facts->cut_count, 1);
	ASSERT_STREQ(facts->cuts[0].reason, "too deep");
	for (size_t i = 0; i < profile_samples(profile); i++)
		ASSERT_EQ(count_frames(profile, i, "[cut: too deep]"), 1);
	profile_free(profile);
}

TEST(a_thousand_frames_are_walked)
{
	pid_t child = start_child(1000);
	uint32_t pid = (uint32_t)child;
	struct capture_options options = options_for(&pid);
	struct profile *profile = take_profile(&options);

	end_child(child);
	uint64_t samples = profile_facts_const(profile)->samples;
	ASSERT_TRUE(count_right(profile, 1000) * 100 >= samples * 95);
	profile_free(profile);
}

TEST(kernel_and_user_frames_can_be_left_out)
{
	pid_t child = start_child(3);
	uint32_t pid = (uint32_t)child;
	struct capture_options options = options_for(&pid);

	options.user_stacks = false;
	struct profile *profile = take_profile(&options);
	ASSERT_TRUE(profile_facts_const(profile)->samples > 0);
	for (size_t i = 0; i < profile_samples(profile); i++)
		ASSERT_EQ(count_frames(profile, i, "capture_test_leaf"), 0);
	profile_free(profile);

	options = options_for(&pid);
	options.kernel_stacks = false;
	profile = take_profile(&options);
	end_child(child);
	for (frame_id i = 0; i < profile_frames(profile); i++)
		ASSERT_TRUE(profile_frame_at(profile, i)->kind != KIND_kernel);
	profile_free(profile);
}

TEST(sessions_follow_one_another_and_begin_empty)
{
	_cleanup_capture_ struct capture *capture = NULL;
	pid_t child = start_child(5);
	uint32_t pid = (uint32_t)child;
	struct capture_options options = options_for(&pid);

	if (geteuid() != 0) {
		end_child(child);
		SKIP("sampling needs root");
	}
	ASSERT_OK(capture_open(&options, &capture));
	ASSERT_OK(capture_start(capture));
	for (int i = 0; i < 3; i++) {
		struct profile *profile;
		ASSERT_OK(capture_wait(capture, TAKE_MS / 2, -1));
		ASSERT_OK(capture_end_session(capture, &profile));
		uint64_t samples = profile_facts_const(profile)->samples;
		ASSERT_TRUE(samples > 0 && samples <= HZ * TAKE_MS / 1000);
		ASSERT_TRUE(count_right(profile, 5) > 0);
		profile_free(profile);
	}
	end_child(child);
}

TEST(an_event_and_a_rate_that_cannot_be_are_refused)
{
	uint32_t pid = 1;
	struct capture_options options = options_for(&pid);
	struct capture *capture;

	options.event = "no-such-event";
	ASSERT_FAILS(capture_open(&options, &capture), "no event is called \"no-such-event\"");
	options = options_for(&pid);
	options.hz = 2000000000;
	ASSERT_FAILS(capture_open(&options, &capture), "perf_event_max_sample_rate");
}

RUN_TESTS(UNIT_TEST(a_stack_is_whole_and_named_by_bpf_loop),
	  UNIT_TEST(a_stack_is_whole_and_named_by_tail_calls),
	  UNIT_TEST(a_copied_stack_holds_what_an_epilogue_has_popped),
	  UNIT_TEST(a_stack_deeper_than_asked_for_is_cut_and_says_so),
	  UNIT_TEST(a_thousand_frames_are_walked),
	  UNIT_TEST(kernel_and_user_frames_can_be_left_out),
	  UNIT_TEST(sessions_follow_one_another_and_begin_empty),
	  UNIT_TEST(an_event_and_a_rate_that_cannot_be_are_refused))
