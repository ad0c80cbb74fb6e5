/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line, one event: "level domain: message key=value". Nothing that happens per sample is
 * logged; that is a counter. Below cli/ and agent/ only log_debug() is used. A file names its
 * domain before including this: #define LOG_DOMAIN "symbolize"
 */
#pragma once

#include <stdbool.h>

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

/* The highest level that is written; LOG_WARNING at start. Together with log_debug_domains() one of
 * two mutable globals. */
void log_set_level(enum log_level level);

/* Turn on debug lines of some domains: "symbolize,capture". The string is borrowed for ever. */
void log_debug_domains(const char *domains);

bool log_enabled(enum log_level level, const char *domain);

#define log_error(...) log_write(LOG_ERROR, LOG_DOMAIN, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, LOG_DOMAIN, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, LOG_DOMAIN, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_enabled(LOG_DEBUG, LOG_DOMAIN))                                            \
			log_write(LOG_DEBUG, LOG_DOMAIN, __VA_ARGS__);                             \
	} while (0)
