/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line, one event: "level domain: message key=value". Nothing that happens per sample is
 * logged; that is a counter. Below cli/ and agent/ only log_debug() is used. A file names its
 * domain before including this: #define LOG_DOMAIN "symbolize"
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_ERROR,   /* cannot do what it was told */
	LOG_WARNING, /* does less than it was told */
	LOG_INFO,    /* life events */
	LOG_DEBUG,
};

#ifndef LOG_DOMAIN
#define LOG_DOMAIN "cairn"
#endif

/* Write a line if LEVEL is on. Control characters in the message are written as \xNN. */
void log_write(enum log_level level, const char *domain, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The highest level that is written; LOG_WARNING at start. This, the domains and the sinks are the
 * mutable globals. */
void log_set_level(enum log_level level);

/* Turn on debug lines of some domains: "symbolize,capture". The string is borrowed for ever. */
void log_debug_domains(const char *domains);

bool log_enabled(enum log_level level, const char *domain);

/* A line as a sink gets it. */
struct log_line {
	enum log_level level;
	uint64_t realtime_ns;
	const char *domain;
	const char *message; /* control characters are \xNN already */
};

/* Something that takes lines. write() may be called by several threads at once and logs nothing. */
struct log_sink {
	void (*write)(void *data, const struct log_line *line);
	void *data;
	bool all; /* every line, also those that log_set_level() leaves out */
};

enum { LOG_SINKS_MAX = 4 };

/*
 * While there are sinks, lines go to them and not to standard error. SINK is borrowed until it is
 * removed. Both are called while no other thread logs. False: there are too many.
 */
bool log_add_sink(const struct log_sink *sink);
void log_remove_sink(const struct log_sink *sink);

#define log_error(...) log_write(LOG_ERROR, LOG_DOMAIN, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, LOG_DOMAIN, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, LOG_DOMAIN, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_enabled(LOG_DEBUG, LOG_DOMAIN))                                            \
			log_write(LOG_DEBUG, LOG_DOMAIN, __VA_ARGS__);                             \
	} while (0)
