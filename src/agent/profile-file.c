/* SPDX-License-Identifier: Apache-2.0 */
/* Reading .col and folded files for upload-file. */
#include "agent/profile-file.h"

#include <ctype.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "formats/format.h"
#include "proc/system.h"

#define SECOND_NS UINT64_C(1000000000)

enum { SHOWN_MAX = 60 }; /* characters of a line that a failure shows */

void profile_file_deinit(struct profile_file *file)
{
	free(file->col);
	*file = (struct profile_file)PROFILE_FILE_INIT;
}

static void cleanup_json(json_t **json)
{
	json_decref(*json);
}

/* "2026-01-02T03:04:05", with a fraction or a Z behind it: UTC in any case. */
static struct error *parse_time(const char *text, uint64_t *ret_ns)
{
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	time_t seconds = rest ? timegm(&tm) : -1;

	if (rest && *rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (rest && *rest == 'Z')
		rest++;
	if (!rest || *rest || seconds < 0)
		return error_new("\"%.*s\" is no time like 2026-01-02T03:04:05", SHOWN_MAX, text);
	*ret_ns = (uint64_t)seconds * SECOND_NS;
	return NULL;
}

static struct error *read_times(const json_t *header, struct profile_file *file)
{
	const char *start = json_string_value(json_object_get(header, "start_time"));
	const char *end = json_string_value(json_object_get(header, "end_time"));
	const char *current = json_string_value(
		json_object_get(json_object_get(header, "metadata"), "current_time"));

	if (!start != !end)
		return error_new("the header has one of start_time and end_time; both belong "
				 "together");
	if (!start && !current)
		return NULL;
	TRY(parse_time(start ? start : current, &file->start_ns));
	TRY(parse_time(end ? end : current, &file->end_ns));
	if (file->end_ns < file->start_ns)
		return error_new("end_time %.*s is before start_time", SHOWN_MAX, end);
	return NULL;
}

/* A percentage in the header's metrics, in thousandths. */
static int64_t read_metric(const json_t *header, const char *key)
{
	json_t *value = json_object_get(json_object_get(header, "metrics"), key);
	double percent = json_is_number(value) ? json_number_value(value) : -1;

	return percent >= 0 && percent <= 100 ? (int64_t)(percent * 1000 + 0.5) : -1;
}

static struct error *add_text(struct profile *profile, const char *text, string_id *ret)
{
	return profile_string(profile, text, strlen(text), ret);
}

/* A profile of no samples, for the header of this machine. */
static struct error *make_empty(uint64_t end_ns, struct profile **ret)
{
	_cleanup_profile_ struct profile *profile = NULL;
	struct system_facts system;

	TRY(system_read(&system));
	TRY(profile_new(NULL, &profile));
	struct session_facts *facts = profile_facts(profile);
	facts->cpus = system.cpus;
	facts->end_realtime_ns = end_ns;
	TRY(add_text(profile, system.host, &facts->host));
	TRY(add_text(profile, system.name, &facts->system));
	TRY(add_text(profile, system.release, &facts->kernel));
	TRY(add_text(profile, system.version, &facts->kernel_build));
	TRY(add_text(profile, system.machine, &facts->machine));
	TRY(add_text(profile, CAIRN_VERSION, &facts->version));
	*ret = take(profile);
	return NULL;
}

static struct error *make_header(uint64_t end_ns, struct strbuf *to)
{
	_cleanup_profile_ struct profile *profile = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size = 0;

	TRY(make_empty(end_ns, &profile));
	FILE *stream = open_memstream(&text, &size);
	if (!stream)
		return error_oom();
	struct error *err = format_find("col")->write(profile, stream);
	if (fclose(stream) && !err)
		err = error_oom();
	return err ? err : strbuf_add(to, text, strcspn(text, "\n"));
}

/* Is it "frame;frame COUNT"? */
static bool is_stack(const char *line, size_t length)
{
	size_t digits = 0;

	while (digits < length && isdigit((unsigned char)line[length - 1 - digits]))
		digits++;
	return digits && digits < 20 && digits + 1 < length && line[length - 1 - digits] == ' ';
}

/* Folded stacks, each behind an empty container's name, as the server expects them. */
static struct error *add_stacks(const char *text, const char *path, struct strbuf *to)
{
	size_t number = 0, stacks = 0;

	for (const char *line = text; *line; number++) {
		size_t length = strcspn(line, "\n"), next = length + (line[length] == '\n');
		if (length && line[length - 1] == '\r')
			length--;
		if (length && *line != '#') {
			if (!is_stack(line, length))
				return error_new("%s:%zu: \"%.*s\" is no stack with a count, like "
						 "\"main;run 10\"",
						 path, number + 1,
						 (int)(length < SHOWN_MAX ? length : SHOWN_MAX),
						 line);
			TRY(strbuf_add(to, "\n;", 2));
			TRY(strbuf_add(to, line, length));
			stacks++;
		}
		line += next;
	}
	return stacks ? NULL : error_new("%s: holds no stacks", path);
}

/* The header in the first line of TEXT; *RET is NULL if there is none. */
static struct error *read_header(const char *text, const char *path, json_t **ret)
{
	json_error_t why = {.text = "it is something else"};

	*ret = NULL;
	if (text[0] != '#')
		return NULL;
	_cleanup_(cleanup_json) json_t *header =
		json_loadb(text + 1, strcspn(text, "\n") - 1, 0, &why);
	if (!json_is_object(header))
		return error_new("%s: the header is no JSON object: %s", path, why.text);
	*ret = take(header);
	return NULL;
}

struct error *profile_file_read(const char *path, struct profile_file *ret)
{
	_cleanup_(profile_file_deinit) struct profile_file file = PROFILE_FILE_INIT;
	_cleanup_(strbuf_deinit) struct strbuf folded = STRBUF_INIT;
	_cleanup_(cleanup_json) json_t *header = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size;

	TRY(file_read(AT_FDCWD, path, PROFILE_FILE_MAX, &text, &size));
	if (strlen(text) != size)
		return error_new("%s: holds a zero byte; it is no text", path);
	while (size && isspace((unsigned char)text[size - 1]))
		text[--size] = 0;
	TRY(read_header(text, path, &header));
	file.start_ns = file.end_ns = clock_realtime_ns();
	struct error *err = read_times(header, &file);
	if (err)
		return error_wrap(err, "%s", path);
	file.cpu_thousandths = read_metric(header, "cpu_avg");
	file.memory_thousandths = read_metric(header, "mem_avg");
	if (json_is_object(json_object_get(header, "metadata"))) {
		file.col = take(text);
		file.size = size;
	} else {
		TRY(make_header(file.end_ns, &folded));
		TRY(add_stacks(text, path, &folded));
		file.size = folded.length;
		file.col = take(folded.text);
	}
	*ret = take_struct(file);
	return NULL;
}
