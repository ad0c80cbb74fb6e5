/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options once more, as JSON. */
#include "cli/agent-arguments.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "formats/emit.h"

enum { KEY_MAX = 64 };

/* gProfiler's names that are not those of the options. "": left out. */
static const struct {
	const char *option, *key;
} keys[] = {
	{"profiling-frequency", "frequency"},
	{"profiling-duration", "duration"},
	{"pids", "pids_to_profile"},
	{"mode", "profiling_mode"},
	{"dont-send-logs", "log_to_server"},
	{"token", ""},
	{"config", ""},
	{"version", ""},
	{"resources-dest", ""},
};

/* The key of an option; a negative one's field says what is on. */
static void make_key(const struct option_row *row, char ret[KEY_MAX])
{
	const char *name = row->name;

	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		if (!strcmp(keys[i].option, name)) {
			snprintf(ret, KEY_MAX, "%s", keys[i].key);
			return;
		}
	if (row->kind == OPTION_FLAG_OFF && str_starts(name, "disable-"))
		name += strlen("disable-");
	if (row->kind == OPTION_FLAG_OFF && str_starts(name, "no-"))
		name += strlen("no-");
	snprintf(ret, KEY_MAX, "%s", name);
	for (char *at = ret; *at; at++)
		*at = (char)(*at == '-' ? '_' : *at);
}

static void emit_text_value(struct emit *emit, const char *key, const char *text)
{
	if (text)
		emit_string(emit, key, text);
	else
		emit_null(emit, key);
}

static void emit_texts(struct emit *emit, const char *key, const struct text_list *list)
{
	emit_array(emit, key);
	for (size_t i = 0; i < list->count; i++)
		emit_string(emit, NULL, list->items[i]);
	emit_array_end(emit);
}

static void emit_uints(struct emit *emit, const char *key, const struct uint_list *list)
{
	emit_array(emit, key);
	for (size_t i = 0; i < list->count; i++)
		emit_number(emit, NULL, list->items[i]);
	emit_array_end(emit);
}

static void emit_seconds(struct emit *emit, const char *key, uint64_t value_ns)
{
	if (value_ns % 1000000000)
		emit_thousandths(emit, key, value_ns / 1000000);
	else
		emit_number(emit, key, value_ns / 1000000000);
}

static void emit_value(struct emit *emit, const char *key, const struct option_row *row,
		       const void *field)
{
	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_FLAG_OFF:
		emit_bool(emit, key, *(const bool *)field);
		break;
	case OPTION_COUNT:
	case OPTION_UINT:
	case OPTION_SIZE:
		emit_number(emit, key, *(const uint64_t *)field);
		break;
	case OPTION_SECONDS:
		emit_seconds(emit, key, *(const uint64_t *)field);
		break;
	case OPTION_TEXT:
	case OPTION_FILE:
	case OPTION_CHOICE:
		emit_text_value(emit, key, *(const char *const *)field);
		break;
	case OPTION_LIST:
	case OPTION_TEXTS:
		emit_texts(emit, key, field);
		break;
	case OPTION_UINTS:
		emit_uints(emit, key, field);
		break;
	case OPTION_END:
	case OPTION_CONFIG:
	case OPTION_SAYS: // the option whose value it is stands for it
	case OPTION_GROUP:
		break;
	}
}

/* Has an earlier row the same field, as --flamegraph has that of --no-flamegraph? */
static bool is_again(const struct option_iterator *it)
{
	for (struct option_iterator before = options_begin(agent_options);
	     options_next(&before) && before.index < it->index;)
		if (before.at == it->at && before.row->kind != OPTION_SAYS)
			return true;
	return false;
}

struct error *agent_arguments_print(const struct agent_args *args, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return error_oom();
	struct emit emit = emit_to(stream, EMIT_ascii);
	emit_object(&emit, NULL);
	for (struct option_iterator it = options_begin(agent_options);
	     options_next(&it) && agent_option_at(it.index);) {
		char key[KEY_MAX];
		make_key(it.row, key);
		if (*key && !is_again(&it))
			emit_value(&emit, key, it.row, (const char *)args + it.at);
	}
	emit_object_end(&emit);
	if (fclose(stream))
		return error_oom();
	*ret = take(text);
	return NULL;
}
