/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines on standard error. Rotation and upload of logs belong to agent/. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static enum log_level level_on = LOG_WARNING;
static const char *domains_on; /* borrowed from the environment or the command line */

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

bool log_enabled(enum log_level level, const char *domain)
{
	return level <= level_on || (level == LOG_DEBUG && domain_listed(domain));
}

void log_write(enum log_level level, const char *domain, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list args;

	if (!log_enabled(level, domain))
		return;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);

	flockfile(stderr);
	fprintf(stderr, "cairn: %s: %s: ", level_names[level], domain);
	for (const char *at = text ? text : "out of memory"; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			fprintf(stderr, "\\x%02x", (unsigned char)*at);
		else
			fputc(*at, stderr);
	fputc('\n', stderr);
	funlockfile(stderr);
}
