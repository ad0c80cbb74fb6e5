/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines on standard error, or to sinks. Files, rotation and upload of logs belong to agent/. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

static enum log_level level_on = LOG_WARNING;
static const char *domains_on; /* borrowed from the environment or the command line */
static const struct log_sink *sinks[LOG_SINKS_MAX]; /* borrowed; those there are come first */

static const char *const level_names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARNING] = "warning",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

void log_set_level(enum log_level level)
{
	level_on = level;
}

void log_debug_domains(const char *domains)
{
	domains_on = domains;
}

static bool domain_listed(const char *domain)
{
	size_t length = strlen(domain);

	for (const char *at = domains_on; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, domain, length) && (at[length] == ',' || !at[length]))
			return true;
	}
	return false;
}

/* Is it a line that was asked for, and not only one for sinks that take everything? */
static bool is_wanted(enum log_level level, const char *domain)
{
	return level <= level_on || (level == LOG_DEBUG && domain_listed(domain));
}

bool log_enabled(enum log_level level, const char *domain)
{
	for (size_t i = 0; i < LOG_SINKS_MAX && sinks[i]; i++)
		if (sinks[i]->all)
			return true;
	return is_wanted(level, domain);
}

bool log_add_sink(const struct log_sink *sink)
{
	for (size_t i = 0; i < LOG_SINKS_MAX; i++)
		if (!sinks[i]) {
			sinks[i] = sink;
			return true;
		}
	return false;
}

void log_remove_sink(const struct log_sink *sink)
{
	size_t kept = 0;

	for (size_t i = 0; i < LOG_SINKS_MAX; i++)
		if (sinks[i] != sink)
			sinks[kept++] = sinks[i];
	while (kept < LOG_SINKS_MAX)
		sinks[kept++] = NULL;
}

/* TEXT with its control characters as \xNN: a line stays a line. NULL without memory. */
static char *escape(const char *text)
{
	char *escaped = malloc(4 * strlen(text) + 1), *to = escaped;

	if (!escaped)
		return NULL;
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			to += snprintf(to, sizeof("\\xNN"), "\\x%02x", (unsigned char)*at);
		else
			*to++ = *at;
	*to = 0;
	return escaped;
}

void log_write(enum log_level level, const char *domain, const char *format, ...)
{
	_cleanup_free_ char *text = NULL, *escaped = NULL;
	va_list args;

	if (!log_enabled(level, domain))
		return;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (text)
		escaped = escape(text);

	struct log_line line = {level, clock_realtime_ns(), domain,
				escaped ? escaped : "out of memory"};
	bool wanted = is_wanted(level, domain);
	for (size_t i = 0; i < LOG_SINKS_MAX && sinks[i]; i++)
		if (wanted || sinks[i]->all)
			sinks[i]->write(sinks[i]->data, &line);
	if (!sinks[0])
		fprintf(stderr, "cairn: %s: %s: %s\n", level_names[level], domain, line.message);
}
