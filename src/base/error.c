/* SPDX-License-Identifier: Apache-2.0 */
/* Failures as sentences. Only main.c, agent/, server/ and cli/ decide what to do with one. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

struct error {
	char *text;
	int code;
};

static struct error oom = {.text = "out of memory", .code = ENOMEM};

/* Takes TEXT; NULL, from an allocation that failed, becomes the preallocated failure. */
static struct error *error_from_text(char *text, int code)
{
	if (!text)
		return &oom;

	struct error *err = malloc(sizeof(*err));
	if (!err) {
		free(text);
		return &oom;
	}
	*err = (struct error){.text = text, .code = code};
	return err;
}

struct error *error_new(const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	return error_from_text(text, 0);
}

struct error *error_errno(const char *format, ...)
{
	int code = errno;
	_cleanup_free_ char *what = NULL;
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&what, format, args) < 0)
		what = NULL;
	va_end(args);
	if (!what || asprintf(&text, "%s: %s", what, strerror(code)) < 0)
		return &oom;
	return error_from_text(text, code);
}

struct error *error_wrap(struct error *err, const char *format, ...)
{
	_cleanup_free_ char *what = NULL;
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&what, format, args) < 0)
		what = NULL;
	va_end(args);
	// Losing the context is better than losing the failure itself.
	if (!what || asprintf(&text, "%s: %s", what, err->text) < 0)
		return err;

	struct error *wrapped = error_from_text(text, err->code);
	error_free(err);
	return wrapped;
}

struct error *error_oom(void)
{
	return &oom;
}

const char *error_text(const struct error *err)
{
	return err->text;
}

int error_code(const struct error *err)
{
	return err->code;
}

void error_free(struct error *err)
{
	if (!err || err == &oom)
		return;
	free(err->text);
	free(err);
}
