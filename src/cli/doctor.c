/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor command: prints a line for each check. Facts are facts.c, verdicts checks.c. */
#define LOG_DOMAIN "doctor"

#include <bpf/libbpf.h>
#include <stdio.h>

#include "base/log.h"
#include "cli/checks.h"
#include "cli/options.h"

struct doctor_args {
	struct logging_args logging;
	bool brief;
};

/* libbpf explains on standard error what a trial load met; here that is what is asked for. */
static int drop_message(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

static void print_finding(const struct check *check, const struct finding *finding, bool brief)
{
	static const char *const words[] = {
		[VERDICT_ok] = "ok",
		[VERDICT_less] = "less",
		[VERDICT_no] = "no",
	};

	if (brief && finding->verdict == VERDICT_ok)
		return;
	printf("%-5s %-15s %s", words[finding->verdict], check->name, finding->text);
	if (finding->more)
		printf("; for more: %s", finding->more);
	putchar('\n');
}

static struct error *doctor_run(const void *data, int *ret_status)
{
	const struct doctor_args *args = data;
	struct facts facts;

	logging_apply(&args->logging);
	libbpf_set_print(drop_message);
	TRY(facts_gather(&facts));
	for (size_t i = 0; check_at(i); i++) {
		struct finding finding = {0};
		check_at(i)->judge(&facts, &finding);
		print_finding(check_at(i), &finding, args->brief);
	}
	const struct capture_row *capture = checks_capture(&facts);
	printf("capture: %s: %s\n", capture ? capture->name : "none",
	       capture ? capture->help : "see the lines that do not begin with \"ok\"");
	*ret_status = capture && checks_best(capture) ? STATUS_ok : STATUS_failed;
	return NULL;
}

static const struct option_row doctor_options[] = {
	{.name = "brief",
	 .letter = 'b',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct doctor_args, brief),
	 .help = "leave out what is all right"},
	{.kind = OPTION_GROUP,
	 .group = options_logging,
	 .at = offsetof(struct doctor_args, logging)},
	{0},
};

static const struct command_exit doctor_exits[] = {
	{STATUS_ok, "the BPF capture works here"},
	{STATUS_failed, "it does not; the last line says which capture will be used"},
	{0},
};

static const struct command_example doctor_examples[] = {
	{"sudo cairn doctor", "what root can do on this machine"},
	{"cairn doctor --brief", "only what stands in the way of the user that calls"},
	{0},
};

const struct command command_doctor = {
	.name = "doctor",
	.help = "say what can be captured here, and what would allow more",
	.text = "Tries what capture needs and prints a line for each: \"ok\"; \"less\", if capture "
		"works but shows less or costs more; \"no\", if the BPF capture cannot work "
		"because "
		"of it; what is so, and the command that would allow more.\n\n"
		"The last line names the capture that will be used. Nothing is changed on the "
		"machine "
		"and nothing is concluded from the version of the kernel.",
	.options = doctor_options,
	.examples = doctor_examples,
	.exits = doctor_exits,
	.args_size = sizeof(struct doctor_args),
	.run = doctor_run,
};
