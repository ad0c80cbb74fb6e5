/* SPDX-License-Identifier: Apache-2.0 */
/* One option: its value from text, its default and its range. Command lines are options.c. */
#include "cli/option.h"

#include <string.h>

#include "base/array.h"
#include "base/str.h"

struct option_iterator options_begin(const struct option_row *rows)
{
	static const struct option_row none[] = {{0}};

	return (struct option_iterator){.next = rows ? rows : none, .index = SIZE_MAX};
}

bool options_next(struct option_iterator *it)
{
	for (;;) {
		if (it->next->kind == OPTION_END && !it->outer)
			return false;
		if (it->next->kind == OPTION_END) {
			it->next = it->outer + 1;
			it->outer = NULL;
			it->base = 0;
			continue;
		}
		if (it->next->kind == OPTION_GROUP) {
			it->outer = it->next;
			it->base = it->outer->at;
			it->next = it->outer->group;
			continue;
		}
		it->row = it->next++;
		it->at = it->base + it->row->at;
		it->index++;
		return true;
	}
}

bool option_has_value(const struct option_row *row)
{
	return row->kind != OPTION_FLAG && row->kind != OPTION_FLAG_OFF &&
	       row->kind != OPTION_COUNT && row->kind != OPTION_SAYS;
}

const char *option_choice(const struct option_row *row, size_t index)
{
	return row->choices ? row->choices[index] : row->choice(index);
}

const char *option_value_name(const struct option_row *row)
{
	static const char *const names[] = {
		[OPTION_UINT] = "NUMBER",      [OPTION_SECONDS] = "TIME",
		[OPTION_TEXT] = "TEXT",        [OPTION_FILE] = "FILE",
		[OPTION_CHOICE] = "NAME",      [OPTION_LIST] = "TEXT,...",
		[OPTION_UINTS] = "NUMBER,...", [OPTION_GROUP] = NULL,
		[OPTION_CONFIG] = "FILE",      [OPTION_SIZE] = "BYTES",
		[OPTION_TEXTS] = "TEXT",
	};

	return row->value ? row->value : names[row->kind];
}

/* Durations in the largest unit that needs no fraction. */
static struct error *seconds_print(uint64_t ns, char **ret)
{
	static const struct {
		uint64_t ns;
		const char *suffix;
	} units[] = {{3600000000000, "h"}, {60000000000, "m"}, {1000000000, "s"},
		     {1000000, "ms"},      {1000, "us"},       {1, "ns"}};
	size_t i = 0;

	while (i + 1 < ARRAY_COUNT(units) && (!ns || ns % units[i].ns))
		i++;
	return str_format(ret, "%ju%s", (uintmax_t)(ns / units[i].ns), units[i].suffix);
}

static struct error *number_print(const struct option_row *row, uint64_t value, char **ret)
{
	if (row->kind == OPTION_SECONDS)
		return seconds_print(value, ret);
	return str_format(ret, "%ju", (uintmax_t)value);
}

struct error *option_print_fallback(const struct option_row *row, char **ret)
{
	if (row->fallback_text)
		return str_copy(ret, row->fallback_text);
	// Flags name what they change; numbers that may be absent are described by their help.
	if (row->fallback && (row->kind == OPTION_UINT || row->kind == OPTION_SECONDS))
		return number_print(row, row->fallback, ret);
	*ret = NULL;
	return NULL;
}

static struct error *choices_print(const struct option_row *row, char **ret)
{
	_cleanup_(strbuf_deinit) struct strbuf text = STRBUF_INIT;

	for (size_t i = 0; option_choice(row, i); i++) {
		const char *between = !i ? "" : option_choice(row, i + 1) ? ", " : " or ";
		TRY(strbuf_addf(&text, "%s%s", between, option_choice(row, i)));
	}
	*ret = take(text.text);
	return NULL;
}

static struct error *range_print(const struct option_row *row, char **ret)
{
	_cleanup_free_ char *min = NULL, *max = NULL;
	const char *space = row->unit ? " " : "", *unit = row->unit ? row->unit : "";

	TRY(number_print(row, row->min, &min));
	if (!row->max)
		return str_format(ret, "%s%s%s or more", min, space, unit);
	TRY(number_print(row, row->max, &max));
	return str_format(ret, "%s to %s%s%s", min, max, space, unit);
}

struct error *option_print_range(const struct option_row *row, char **ret)
{
	if (row->kind == OPTION_CHOICE)
		return choices_print(row, ret);
	if (row->kind != OPTION_COUNT && (row->min || row->max))
		return range_print(row, ret);
	*ret = NULL;
	return NULL;
}

struct error *option_print_help(const struct option_row *row, char **ret)
{
	_cleanup_free_ char *range = NULL, *fallback = NULL;

	TRY(option_print_range(row, &range));
	TRY(option_print_fallback(row, &fallback));
	if (!range && !fallback)
		return str_copy(ret, row->help);
	return str_format(ret, "%s (%s%s%s%s)", row->help, range ? range : "",
			  range && fallback ? "; " : "", fallback ? "default " : "",
			  fallback ? fallback : "");
}

struct error *option_set_fallback(const struct option_row *row, void *field)
{
	if (row->fallback_text)
		return option_set(row, row->fallback_text, field);
	if (row->kind == OPTION_UINT || row->kind == OPTION_SECONDS || row->kind == OPTION_SIZE)
		*(uint64_t *)field = row->fallback;
	if (row->kind == OPTION_FLAG)
		*(bool *)field = row->fallback;
	if (row->kind == OPTION_FLAG_OFF)
		*(bool *)field = true;
	return NULL;
}

static bool flag_parse(const char *text, bool *ret)
{
	static const struct {
		const char *text;
		bool value;
	} words[] = {{"1", true},  {"yes", true}, {"true", true},
		     {"0", false}, {"no", false}, {"false", false}};

	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (!strcasecmp(text, words[i].text)) {
			*ret = words[i].value;
			return true;
		}
	return false;
}

bool option_asks(const struct option_row *row, const char *text)
{
	bool asked = true;

	if (text &&
	    (row->kind == OPTION_FLAG || row->kind == OPTION_FLAG_OFF || row->kind == OPTION_SAYS))
		flag_parse(text, &asked);
	return asked;
}

static struct error *flag_set(const struct option_row *row, const char *text, bool *field)
{
	bool given = true;

	if (text && !flag_parse(text, &given))
		return error_new("a flag is yes, true, 1, no, false or 0");
	// "no" for an option that turns something off asks for nothing.
	if (row->kind == OPTION_FLAG)
		*field = given;
	else if (given)
		*field = false;
	return NULL;
}

static struct error *says_set(const struct option_row *row, const char *text, const char **field)
{
	bool given = true;

	if (text && !flag_parse(text, &given))
		return error_new("a flag is yes, true, 1, no, false or 0");
	if (given)
		*field = row->says;
	return NULL;
}

/* The allowed range as a failure. */
static struct error *out_of_range(const struct option_row *row)
{
	_cleanup_free_ char *range = NULL;

	TRY(option_print_range(row, &range));
	if (row->kind == OPTION_CHOICE)
		return error_new("allowed is %s", range);
	if (row->kind == OPTION_SIZE)
		return error_new("must be a size%s%s, like 4096, 100kb or 2mb",
				 range ? " from " : "", range ? range : "");
	if (row->kind == OPTION_SECONDS)
		return error_new("must be a time%s%s, like 10, 1.5, 500ms or 2m",
				 range ? " of " : "", range ? range : "");
	return error_new("must be a whole number%s%s", range ? " from " : "", range ? range : "");
}

static struct error *count_set(const struct option_row *row, const char *text, uint64_t *field)
{
	uint64_t count = *field + 1;

	if (text && !str_parse_u64(text, 0, row->max, &count))
		return error_new("must be a whole number from 0 to %ju", (uintmax_t)row->max);
	// More often than it makes a difference is no mistake.
	*field = count < row->max ? count : row->max;
	return NULL;
}

static bool uint_parse(const struct option_row *row, const char *text, uint64_t *ret)
{
	return str_parse_u64(text, row->min, row->max ? row->max : UINT64_MAX, ret);
}

/* Decimal places behind the point, as nanoseconds; more than nine are cut. */
static const char *fraction_parse(const char *text, uint64_t *ret_ns)
{
	uint64_t place = 100000000;

	for (; *text >= '0' && *text <= '9'; text++, place /= 10)
		*ret_ns += (uint64_t)(*text - '0') * place;
	return text;
}

/* "10", "1.5", "500ms": a whole number, perhaps a fraction, perhaps a unit. */
static bool seconds_parse(const struct option_row *row, const char *text, uint64_t *ret)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {{"", 1000000000}, {"s", 1000000000},  {"ms", 1000000},
		     {"us", 1000},     {"m", 60000000000}, {"h", 3600000000000}};
	char whole_text[20] = "";
	size_t digits = strspn(text, "0123456789");
	uint64_t whole = 0, fraction = 0;

	if (!digits || digits >= sizeof(whole_text))
		return false;
	memcpy(whole_text, text, digits);
	if (!str_parse_u64(whole_text, 0, UINT32_MAX, &whole))
		return false;
	text += digits;
	if (*text == '.')
		text = fraction_parse(text + 1, &fraction);
	for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
		if (strcmp(text, units[i].suffix))
			continue;
		// 2^32 hours are below 2^64 ns only for values that `whole` is checked for here.
		if (whole > UINT64_MAX / 2 / units[i].ns)
			return false;
		uint64_t part = units[i].ns / 1000 * fraction / 1000000;
		uint64_t ns = whole * units[i].ns + part;
		if (ns < row->min || (row->max && ns > row->max))
			return false;
		*ret = ns;
		return true;
	}
	return false;
}

/* "100", "100kb", "2 MB", "1GiB": always powers of 1024, as gProfiler reads them. */
static bool size_parse(const struct option_row *row, const char *text, uint64_t *ret)
{
	static const struct {
		const char *suffix;
		unsigned shift;
	} units[] = {{"", 0},    {"b", 0},    {"k", 10}, {"kb", 10}, {"kib", 10}, {"m", 20},
		     {"mb", 20}, {"mib", 20}, {"g", 30}, {"gb", 30}, {"gib", 30}};
	char whole_text[16] = "";
	size_t digits = strspn(text, "0123456789");
	uint64_t whole = 0, max = row->max ? row->max : UINT64_MAX;

	if (!digits || digits >= sizeof(whole_text))
		return false;
	memcpy(whole_text, text, digits);
	text += digits + strspn(text + digits, " ");
	for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
		if (strcasecmp(text, units[i].suffix))
			continue;
		if (!str_parse_u64(whole_text, 0, max >> units[i].shift, &whole) ||
		    whole << units[i].shift < row->min)
			return false;
		*ret = whole << units[i].shift;
		return true;
	}
	return false;
}

static struct error *choice_set(const struct option_row *row, const char *text, const char **field)
{
	for (size_t i = 0; option_choice(row, i); i++)
		if (!strcmp(option_choice(row, i), text)) {
			*field = option_choice(row, i);
			return NULL;
		}
	return out_of_range(row);
}

struct error *text_list_add(struct text_list *list, const char *text, size_t length)
{
	TRY(ARRAY_RESERVE(list->items, list->room, list->count, 2, OPTION_ITEMS_MAX,
			  "items in a list"));
	char *copy = strndup(text, length);
	if (!copy)
		return error_oom();
	list->items[list->count++] = copy;
	list->items[list->count] = NULL;
	return NULL;
}

void text_list_deinit(struct text_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct text_list){0};
}

static struct error *uint_list_add(const struct option_row *row, const char *text, size_t length,
				   struct uint_list *list)
{
	char number[24] = "";
	uint64_t value;

	if (length >= sizeof(number))
		return out_of_range(row);
	memcpy(number, text, length);
	if (!uint_parse(row, number, &value))
		return out_of_range(row);
	TRY(ARRAY_RESERVE(list->items, list->room, list->count, 1, OPTION_ITEMS_MAX,
			  "items in a list"));
	list->items[list->count++] = value;
	return NULL;
}

/* Each part between commas. An empty one is a slip of the hand, not an item. */
static struct error *list_set(const struct option_row *row, const char *text, void *field)
{
	for (;;) {
		size_t length = strcspn(text, ",");
		if (!length)
			return error_new("an item of the list is empty");
		if (row->kind == OPTION_LIST)
			TRY(text_list_add(field, text, length));
		else
			TRY(uint_list_add(row, text, length, field));
		if (!text[length])
			return NULL;
		text += length + 1;
	}
}

struct error *option_set(const struct option_row *row, const char *text, void *field)
{
	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_FLAG_OFF:
		return flag_set(row, text, field);
	case OPTION_COUNT:
		return count_set(row, text, field);
	case OPTION_UINT:
		return uint_parse(row, text, field) ? NULL : out_of_range(row);
	case OPTION_SECONDS:
		return seconds_parse(row, text, field) ? NULL : out_of_range(row);
	case OPTION_SIZE:
		return size_parse(row, text, field) ? NULL : out_of_range(row);
	case OPTION_SAYS:
		return says_set(row, text, field);
	case OPTION_TEXT:
	case OPTION_FILE:
	case OPTION_CONFIG:
		if (!*text && !row->bare)
			return error_new("must not be empty");
		*(const char **)field = text;
		return NULL;
	case OPTION_CHOICE:
		return choice_set(row, text, field);
	case OPTION_TEXTS:
		return text_list_add(field, text, strlen(text));
	case OPTION_LIST:
	case OPTION_UINTS:
		return list_set(row, text, field);
	case OPTION_END:
	case OPTION_GROUP:
		break; // options_next() never stops at one
	}
	return error_new("not an option");
}

void option_clear(const struct option_row *row, void *field)
{
	struct uint_list *numbers = field;

	if (row->kind == OPTION_LIST || row->kind == OPTION_TEXTS)
		text_list_deinit(field);
	if (row->kind != OPTION_UINTS)
		return;
	free(numbers->items);
	*numbers = (struct uint_list){0};
}
