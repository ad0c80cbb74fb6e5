/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/thread-filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void thread_filter_deinit(struct thread_filter *filter)
{
	for (size_t i = 0; i < filter->count; i++)
		if (!filter->pattern[i].main)
			regfree(&filter->pattern[i].regex);
	free(filter->pattern);
	*filter = (struct thread_filter)THREAD_FILTER_INIT;
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == 0;
}

static struct error *add_pattern(struct thread_filter *filter, const char *text)
{
	struct thread_pattern pattern = {.excludes = *text == '!'};
	char reason[128];

	text += pattern.excludes;
	if (!*text)
		return error_new("-t !: needs a name behind it");
	if (is_number(text))
		return error_new("-t %s: names threads; -L chooses them by number", text);
	TRY(ARRAY_RESERVE(filter->pattern, filter->room, filter->count, 1, OPTION_ITEMS_MAX,
			  "names of threads"));
	pattern.main = !strcmp(text, "main");
	int code = pattern.main ? 0 : regcomp(&pattern.regex, text, REG_EXTENDED | REG_NOSUB);
	if (code) {
		regerror(code, &pattern.regex, reason, sizeof(reason));
		return error_new("-t %s: %s", text, reason);
	}
	filter->pattern[filter->count++] = pattern;
	filter->includes |= !pattern.excludes;
	return NULL;
}

struct error *thread_filter_init(struct thread_filter *filter, const struct text_list *names,
				 const struct uint_list *tids)
{
	filter->tids = tids;
	for (size_t i = 0; i < names->count; i++)
		TRY(add_pattern(filter, names->items[i]));
	return NULL;
}

static bool pattern_matches(const struct thread_pattern *pattern, const struct thread_who *who)
{
	if (pattern->main)
		return who->main;
	return (who->name && !regexec(&pattern->regex, who->name, 0, NULL, 0)) ||
	       (who->python_name && !regexec(&pattern->regex, who->python_name, 0, NULL, 0));
}

static bool tid_listed(const struct uint_list *tids, pid_t tid)
{
	for (size_t i = 0; i < tids->count; i++)
		if (tids->items[i] == (uint64_t)tid)
			return true;
	return false;
}

bool thread_filter_accepts(const struct thread_filter *filter, const struct thread_who *who)
{
	bool accepted = !filter->includes;

	if (filter->tids->count && !tid_listed(filter->tids, who->tid))
		return false;
	for (size_t i = 0; i < filter->count; i++) {
		if (!pattern_matches(&filter->pattern[i], who))
			continue;
		if (filter->pattern[i].excludes)
			return false;
		accepted = true;
	}
	return accepted;
}
