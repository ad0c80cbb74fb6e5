/* SPDX-License-Identifier: Apache-2.0 */
/* Names for people. Which name a frame has is decided elsewhere; so is the caching. */
#include "symbolize/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/array.h"
#include "base/str.h"

enum {
	// A D name may refer back to its own earlier types, and each reference may double the
	// output. Names with few of them stay small whatever they refer to.
	D_INPUT_MAX = 4096,
	D_BACK_REFERENCES_MAX = 10,
};

/* What compilers append, without the dot and without numbers. */
static const char *const clone_words[] = {
	"isra",   "part",    "constprop", "cold",  "localalias",  "lto_priv",
	"resume", "destroy", "cleanup",   "warm",  "hot",         "unlikely",
	"actor",  "local",   "str",       "ifunc", "specialized", "extracted"};
static const char *const hidden_words[] = {"llvm", "__uniq"};

static bool is_number(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return length > 0;
}

static bool is_word(const char *text, size_t length, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == length && !memcmp(words[i], text, length))
			return true;
	return false;
}

/* One ".word" or ".word.12" (or ".12") at the end of a name. */
struct clone_suffix {
	size_t start; /* of the dot */
	bool hidden;
};

/* The last suffix of the first LENGTH bytes of NAME. False: it has none. */
static bool find_suffix(const char *name, size_t length, struct clone_suffix *ret)
{
	size_t end = length;

	for (int part = 0; part < 2; part++) {
		const char *dot = memrchr(name, '.', end);
		if (!dot || dot == name)
			break;
		const char *word = dot + 1;
		size_t size = (size_t)(name + end - word);
		bool hidden = is_word(word, size, hidden_words, ARRAY_COUNT(hidden_words));
		if (hidden || is_word(word, size, clone_words, ARRAY_COUNT(clone_words))) {
			*ret = (struct clone_suffix){(size_t)(dot - name), hidden};
			return true;
		}
		if (part || !is_number(word, size))
			break;
		end = (size_t)(dot - name);
	}
	if (end == length)
		return false;
	*ret = (struct clone_suffix){end, false};
	return true;
}

/* Text that libiberty prints piece by piece. */
struct output {
	struct strbuf text;
	struct error *err;
	jmp_buf stop;
};

/*
 * A few hundred bytes of mangled name can stand for gigabytes of text, since each substitution may
 * hold two of the one before. The library has no limit for that and its callback cannot refuse, so
 * it is left by a jump: both callback interfaces keep what they own on the stack (a Rust v0 name
 * with an identifier in punycode excepted, whose small buffer is then lost).
 */
static void collect(const char *text, size_t length, void *opaque)
{
	struct output *output = opaque;

	if (length > DEMANGLE_OUTPUT_MAX - output->text.length)
		longjmp(output->stop, 1);
	output->err = strbuf_add(&output->text, text, length);
	if (output->err)
		longjmp(output->stop, 1);
}

/* True: the whole name has been collected. Nothing here has a destructor that a jump would skip. */
static bool print_name(const char *mangled, struct output *output)
{
	int options = DMGL_PARAMS | DMGL_ANSI;

	if (setjmp(output->stop))
		return false;
	if (rust_demangle_callback(mangled, DMGL_RUST, collect, output))
		return true;
	// A name that looked like Rust's may have printed its beginning before it failed.
	output->text.length = 0;
	return cplus_demangle_v3_callback(mangled, options, collect, output);
}

static struct error *demangle_d(const char *mangled, char **ret)
{
	size_t references = 0;

	if (strlen(mangled) > D_INPUT_MAX)
		return NULL;
	for (const char *at = strchr(mangled, 'Q'); at; at = strchr(at + 1, 'Q'))
		references++;
	if (references > D_BACK_REFERENCES_MAX)
		return NULL;
	*ret = cplus_demangle(mangled, DMGL_DLANG | DMGL_PARAMS | DMGL_ANSI);
	return NULL;
}

static struct error *demangle_plain(const char *mangled, char **ret)
{
	struct output output = {.text = STRBUF_INIT};

	if (str_starts(mangled, "_D"))
		return demangle_d(mangled, ret);
	bool printed = print_name(mangled, &output);
	if (printed && output.text.length)
		*ret = take(output.text.text);
	strbuf_deinit(&output.text);
	return output.err;
}

/* Is it worth a try? Plain C names must stay what they are: "_Z" alone is not a mangled name. */
static bool looks_mangled(const char *name)
{
	return str_starts(name, "_Z") || str_starts(name, "_R") || str_starts(name, "_D") ||
	       str_starts(name, "_GLOBAL_");
}

/* "name [clone .a] [clone .b]" from the readable form and the suffixes behind BASE. */
static struct error *add_suffixes(struct strbuf *text, const char *name, size_t base)
{
	size_t starts[8], ends[8], count = 0;
	struct clone_suffix suffix;
	size_t end = strlen(name);

	while (end > base && find_suffix(name, end, &suffix) && count < ARRAY_COUNT(starts)) {
		starts[count] = suffix.start;
		ends[count] = end;
		count += !suffix.hidden;
		end = suffix.start;
	}
	while (count-- > 0)
		TRY(strbuf_addf(text, " [clone %.*s]", (int)(ends[count] - starts[count]),
				name + starts[count]));
	return NULL;
}

struct error *demangle_name(const char *name, char **ret)
{
	_cleanup_(strbuf_deinit) struct strbuf text = STRBUF_INIT;
	_cleanup_free_ char *plain = NULL;
	_cleanup_free_ char *base = NULL;
	struct clone_suffix suffix;
	size_t length = strnlen(name, DEMANGLE_INPUT_MAX + 1);

	*ret = NULL;
	if (length > DEMANGLE_INPUT_MAX)
		return NULL;
	// Apple's blocks and some linkers put more underscores in front: "___Z3foov_block_invoke".
	const char *start = name;
	while (str_starts(start, "__") && strchr("_Z", start[2]) && start[2] && start < name + 3)
		start++;
	if (!looks_mangled(start))
		return NULL;

	length -= (size_t)(start - name);
	size_t end = length;
	while (find_suffix(start, end, &suffix))
		end = suffix.start;
	base = strndup(start, end);
	if (!base)
		return error_oom();
	char *block = strstr(base, "_block_invoke");
	if (start > name && block)
		*block = 0;
	TRY(demangle_plain(base, &plain));
	if (!plain)
		return NULL;
	TRY(strbuf_addf(&text, "%s%s", plain, start > name && block ? " [block]" : ""));
	TRY(add_suffixes(&text, start, end));
	*ret = take(text.text);
	return NULL;
}
