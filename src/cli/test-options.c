/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "cli/nearest.h"
#include "cli/options.h"

#include "unit.h"

struct inner_args {
	bool verbose;
};

struct test_args {
	uint64_t hz, duration_ns;
	bool all, kernel;
	const char *output, *format;
	struct text_list names, operands, line;
	struct uint_list pids;
	struct inner_args inner;
};

static const char *format_at(size_t index)
{
	static const char *const names[] = {"pprof", "html"};

	return index < ARRAY_COUNT(names) ? names[index] : NULL;
}

static const struct option_row inner_rows[] = {
	{.name = "verbose",
	 .letter = 'v',
	 .kind = OPTION_FLAG,
	 .at = offsetof(struct inner_args, verbose)},
	{0},
};

static const struct option_row rows[] = {
	{.name = "frequency",
	 .alias = "rate",
	 .letter = 'F',
	 .kind = OPTION_UINT,
	 .at = offsetof(struct test_args, hz),
	 .fallback = 99,
	 .min = 1,
	 .max = 10000,
	 .unit = "Hz"},
	{.name = "duration",
	 .letter = 'd',
	 .kind = OPTION_SECONDS,
	 .at = offsetof(struct test_args, duration_ns),
	 .fallback = 10000000000,
	 .min = 1000000,
	 .max = 86400000000000},
	{.name = "all", .letter = 'a', .kind = OPTION_FLAG, .at = offsetof(struct test_args, all)},
	{.name = "no-kernel",
	 .letter = 'U',
	 .kind = OPTION_FLAG_OFF,
	 .at = offsetof(struct test_args, kernel)},
	{.kind = OPTION_GROUP, .group = inner_rows, .at = offsetof(struct test_args, inner)},
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_FILE,
	 .at = offsetof(struct test_args, output)},
	{.name = "format",
	 .letter = 'f',
	 .kind = OPTION_CHOICE,
	 .choice = format_at,
	 .at = offsetof(struct test_args, format),
	 .fallback_text = "pprof"},
	{.name = "name", .kind = OPTION_LIST, .at = offsetof(struct test_args, names)},
	{.name = "pid",
	 .letter = 'p',
	 .kind = OPTION_UINTS,
	 .at = offsetof(struct test_args, pids),
	 .min = 1,
	 .max = 4194304},
	{0},
};

static const struct command command = {
	.name = "test",
	.operands = "[PID...]",
	.operands_max = 2,
	.operands_at = offsetof(struct test_args, operands),
	.takes_command = true,
	.command_at = offsetof(struct test_args, line),
	.options = rows,
	.variables = "CAIRNTEST_",
	.args_size = sizeof(struct test_args),
};

enum { WORDS_MAX = 16 };

/* Parse up to WORDS_MAX words; the caller owns ARGS either way. */
static struct error *parse(const struct command *with, const char *const *words,
			   struct test_args *args, bool *ret_help)
{
	int count = 0;

	while (count < WORDS_MAX && words[count])
		count++;
	*args = (struct test_args){0};
	return options_parse(with, count, (char **)words, args, ret_help);
}

#define WORDS(...) ((const char *const[WORDS_MAX + 1]){__VA_ARGS__})

TEST(without_words_every_default_holds)
{
	struct test_args args;
	bool help = true;

	ASSERT_OK(parse(&command, WORDS(NULL), &args, &help));
	ASSERT_FALSE(help);
	ASSERT_EQ(args.hz, 99);
	ASSERT_EQ(args.duration_ns, 10000000000);
	ASSERT_FALSE(args.all);
	ASSERT_TRUE(args.kernel);
	ASSERT_STREQ(args.format, "pprof");
	ASSERT_TRUE(args.output == NULL);
	options_deinit(&command, &args);
}

TEST(every_way_to_write_a_value_gives_the_same)
{
	static const char *const ways[][3] = {
		{"--frequency", "49"}, {"--frequency=49"}, {"-F", "49"},     {"-F49"},
		{"--rate", "49"},      {"--rate=49"},      {"-F0x31", NULL},
	};

	for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
		struct test_args args;
		bool help;
		ASSERT_OK(parse(&command, WORDS(ways[i][0], ways[i][1]), &args, &help));
		ASSERT_EQ(args.hz, 49);
		options_deinit(&command, &args);
	}
}

TEST(letters_are_bundled_and_the_last_takes_the_rest)
{
	struct test_args args;
	bool help;

	ASSERT_OK(parse(&command, WORDS("-aUvF7", "-oout=1.html"), &args, &help));
	ASSERT_TRUE(args.all);
	ASSERT_FALSE(args.kernel);
	ASSERT_TRUE(args.inner.verbose);
	ASSERT_EQ(args.hz, 7);
	ASSERT_STREQ(args.output, "out=1.html");
	options_deinit(&command, &args);
}

TEST(lists_are_split_at_commas_and_added_to)
{
	struct test_args args;
	bool help;

	ASSERT_OK(parse(&command, WORDS("-p1,2", "--pid", "3", "--name=a,b"), &args, &help));
	ASSERT_EQ(args.pids.count, 3);
	for (uint64_t i = 0; i < 3; i++)
		ASSERT_EQ(args.pids.items[i], i + 1);
	ASSERT_EQ(args.names.count, 2);
	ASSERT_STREQ(args.names.items[1], "b");
	options_deinit(&command, &args);
}

TEST(operands_stand_between_options_and_a_command_behind_dashes)
{
	struct test_args args;
	bool help;

	ASSERT_OK(parse(&command, WORDS("17", "-a", "-", "--", "ls", "-l", "--all"), &args, &help));
	ASSERT_EQ(args.operands.count, 2);
	ASSERT_STREQ(args.operands.items[0], "17");
	ASSERT_STREQ(args.operands.items[1], "-");
	ASSERT_EQ(args.line.count, 3);
	ASSERT_STREQ(args.line.items[2], "--all");
	ASSERT_TRUE(args.line.items[3] == NULL); // as exec wants it
	options_deinit(&command, &args);
}

TEST(times_are_typed_with_fractions_and_units)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{"10", 10000000000},    {"1.5", 1500000000},          {"500ms", 500000000},
		{"2m", 120000000000},   {"1h", 3600000000000},        {"1000us", 1000000},
		{"0.25m", 15000000000}, {"1.000000001s", 1000000001},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct test_args args;
		bool help;
		ASSERT_OK(parse(&command, WORDS("-d", cases[i].text), &args, &help));
		ASSERT_EQ(args.duration_ns, cases[i].ns);
		options_deinit(&command, &args);
	}
}

TEST(what_is_wrong_is_said_with_option_value_and_range)
{
	static const struct {
		const char *words[4];
		const char *text;
	} cases[] = {
		{{"--frequency", "0"}, "--frequency 0: must be a whole number from 1 to 10000 Hz"},
		{{"-F20000"}, "-F 20000: must be a whole number from 1 to 10000 Hz"},
		{{"-F", "9x"}, "-F 9x: must be a whole number"},
		{{"-F", "-1"}, "-F -1: must be a whole number"},
		{{"--frequency"}, "--frequency: needs a value (NUMBER)"},
		{{"-aF"}, "-F: needs a value"},
		{{"--frequencies", "1"},
		 "--frequencies: no such option; did you mean --frequency?"},
		{{"--freq", "1"}, "--freq: no such option"},
		{{"--xyzzyxyzzy"}, "--xyzzyxyzzy: no such option"},
		{{"-ax"}, "-x: no such option"},
		{{"--all=1"}, "--all: takes no value"},
		{{"--duration", "1d"}, "must be a time of 1ms to 24h"},
		{{"--duration", "99999999999999999999"}, "must be a time"},
		{{"--duration", "5000000h"}, "must be a time"},
		{{"--duration", "0"}, "must be a time"},
		{{"--duration", ".5"}, "must be a time"},
		{{"--duration", "1.5.5"}, "must be a time"},
		{{"--format", "htm"}, "--format htm: allowed is pprof or html"},
		{{"--pid", "1,,2"}, "--pid 1,,2: an item of the list is empty"},
		{{"--pid", "1,"}, "an item of the list is empty"},
		{{"--pid", "0"}, "must be a whole number from 1 to 4194304"},
		{{"--pid", "111111111111111111111111111111"}, "must be a whole number"},
		{{"--output", ""}, "must not be empty"},
		{{"1", "2", "3"}, "3: one too many; the usage is test [PID...]"},
		{{"--"}, "--: needs a command behind it"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct test_args args;
		bool help;
		const char *const *w = cases[i].words;
		ASSERT_FAILS(parse(&command, WORDS(w[0], w[1], w[2], w[3]), &args, &help),
			     cases[i].text);
		options_deinit(&command, &args);
	}
}

TEST(help_wins_over_what_stands_behind_it_and_in_the_environment)
{
	static const char *const ways[] = {"--help", "-h", "-ah"};

	setenv("CAIRNTEST_FREQUENCY", "nonsense", 1);
	for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
		struct test_args args;
		bool help = false;
		ASSERT_OK(parse(&command, WORDS(ways[i], "--bogus"), &args, &help));
		ASSERT_TRUE(help);
		options_deinit(&command, &args);
	}
	unsetenv("CAIRNTEST_FREQUENCY");
}

TEST(the_environment_fills_in_what_the_line_leaves_open)
{
	struct test_args args;
	bool help;

	setenv("CAIRNTEST_FREQUENCY", "7", 1);
	setenv("CAIRNTEST_ALL", "yes", 1);
	setenv("CAIRNTEST_NO_KERNEL", "false", 1);
	setenv("CAIRNTEST_PID", "1,2", 1);
	setenv("CAIRNTEST_OUTPUT", "", 1);
	ASSERT_OK(parse(&command, WORDS("-p", "9"), &args, &help));
	ASSERT_EQ(args.hz, 7);
	ASSERT_TRUE(args.all);
	ASSERT_TRUE(args.kernel); // not turning it off is what is on already
	ASSERT_EQ(args.pids.count, 1);
	ASSERT_EQ(args.pids.items[0], 9);
	ASSERT_TRUE(args.output == NULL);
	options_deinit(&command, &args);

	setenv("CAIRNTEST_ALL", "maybe", 1);
	ASSERT_FAILS(parse(&command, WORDS(NULL), &args, &help),
		     "CAIRNTEST_ALL=maybe: a flag is yes, true, 1, no, false or 0");
	options_deinit(&command, &args);
	ASSERT_OK(parse(&command, WORDS("-a"), &args, &help));
	options_deinit(&command, &args);
	clearenv();
}

TEST(beginnings_of_names_are_accepted_only_where_the_command_says_so)
{
	struct command argparse = command;
	struct test_args args;
	bool help;

	argparse.abbreviations = true;
	ASSERT_OK(parse(&argparse, WORDS("--freq=3", "--du", "2"), &args, &help));
	ASSERT_EQ(args.hz, 3);
	ASSERT_EQ(args.duration_ns, 2000000000);
	options_deinit(&argparse, &args);
	ASSERT_FAILS(parse(&argparse, WORDS("--n", "x"), &args, &help),
		     "--n: more than one option begins like this");
	options_deinit(&argparse, &args);
}

TEST(a_missing_operand_and_the_commands_own_check_are_failures_of_usage)
{
	struct command strict = command;
	struct test_args args;
	bool help;

	strict.operands_min = 1;
	ASSERT_FAILS(parse(&strict, WORDS("-a"), &args, &help),
		     "something is missing; the usage is test [PID...]");
	options_deinit(&strict, &args);
}

TEST(a_list_has_a_maximum)
{
	enum { TOO_MANY = OPTION_ITEMS_MAX + 10 };
	_cleanup_free_ char *text = calloc(1, 2 * TOO_MANY + 2);
	struct test_args args;
	bool help;

	ASSERT_TRUE(text != NULL);
	for (size_t i = 0; i < TOO_MANY; i++)
		memcpy(text + 2 * i, i + 1 < TOO_MANY ? "1," : "1", 2);
	ASSERT_FAILS(parse(&command, WORDS("--pid", text), &args, &help), "items in a list");
	options_deinit(&command, &args);
}

TEST(the_nearest_name_is_near_or_none)
{
	struct nearest nearest = nearest_to("recrod");

	ASSERT_FALSE(nearest_offer(&nearest, "doctor"));
	ASSERT_TRUE(nearest_offer(&nearest, "record"));
	ASSERT_FALSE(nearest_offer(&nearest, "report"));
	nearest = nearest_to("ab");
	ASSERT_FALSE(nearest_offer(&nearest, "cd"));
}

RUN_TESTS(UNIT_TEST(without_words_every_default_holds),
	  UNIT_TEST(every_way_to_write_a_value_gives_the_same),
	  UNIT_TEST(letters_are_bundled_and_the_last_takes_the_rest),
	  UNIT_TEST(lists_are_split_at_commas_and_added_to),
	  UNIT_TEST(operands_stand_between_options_and_a_command_behind_dashes),
	  UNIT_TEST(times_are_typed_with_fractions_and_units),
	  UNIT_TEST(what_is_wrong_is_said_with_option_value_and_range),
	  UNIT_TEST(help_wins_over_what_stands_behind_it_and_in_the_environment),
	  UNIT_TEST(the_environment_fills_in_what_the_line_leaves_open),
	  UNIT_TEST(beginnings_of_names_are_accepted_only_where_the_command_says_so),
	  UNIT_TEST(a_missing_operand_and_the_commands_own_check_are_failures_of_usage),
	  UNIT_TEST(a_list_has_a_maximum), UNIT_TEST(the_nearest_name_is_near_or_none))
