/* SPDX-License-Identifier: Apache-2.0 */
/* Reading commands. A server can be anyone's: every value has a type and a range. */
#include "agent/remote.h"

#include <jansson.h>
#include <string.h>

#include "base/str.h"

enum { TEXT_MAX = 64 << 10 };

static void cleanup_json(json_t **json)
{
	json_decref(*json);
}

/* A whole number from 1 to MAX, or nothing, which leaves RET as it is. */
static struct error *read_number(const json_t *config, const char *key, uint64_t max, uint64_t *ret)
{
	json_t *value = json_object_get(config, key);

	if (!value || json_is_null(value))
		return NULL;
	if (!json_is_integer(value) || json_integer_value(value) < 1 ||
	    (uint64_t)json_integer_value(value) > max)
		return error_new("%s: must be a whole number from 1 to %ju", key, (uintmax_t)max);
	*ret = (uint64_t)json_integer_value(value);
	return NULL;
}

static struct error *add_pid(struct remote_command *command, uint64_t pid)
{
	if (!pid || pid > INT32_MAX)
		return error_new("pids: %ju is no process id", (uintmax_t)pid);
	if (command->pid_count == REMOTE_PIDS_MAX)
		return error_new("pids: more than %d", REMOTE_PIDS_MAX);
	command->pids[command->pid_count++] = (uint32_t)pid;
	return NULL;
}

/* "1,2,3", as gProfiler's documents have it. */
static struct error *read_pid_text(const char *text, struct remote_command *command)
{
	char number[24];
	uint64_t pid;

	while (*text) {
		size_t length = strcspn(text, ",");
		snprintf(number, sizeof(number), "%.*s", (int)(length < 23 ? length : 23), text);
		if (!str_parse_u64(number, 1, INT32_MAX, &pid))
			return error_new("pids: \"%s\" is no process id", number);
		TRY(add_pid(command, pid));
		text += length + (text[length] == ',');
	}
	return NULL;
}

static struct error *read_pids(const json_t *config, struct remote_command *command)
{
	json_t *pids = json_object_get(config, "pids"), *pid;
	size_t i;

	if (!pids || json_is_null(pids))
		return NULL;
	if (json_is_string(pids))
		return read_pid_text(json_string_value(pids), command);
	if (!json_is_array(pids))
		return error_new("pids: must be a list of numbers");
	json_array_foreach(pids, i, pid)
	{
		if (!json_is_integer(pid) || json_integer_value(pid) < 1)
			return error_new("pids: must be a list of numbers");
		TRY(add_pid(command, (uint64_t)json_integer_value(pid)));
	}
	return NULL;
}

/* Is the command for other machines only? */
static bool is_for_others(const json_t *config, const char *host)
{
	json_t *hosts = json_object_get(config, "target_hostnames"), *name;
	size_t i;

	if (!json_array_size(hosts))
		return false;
	json_array_foreach(hosts, i, name) if (json_is_string(name) &&
					       !strcmp(json_string_value(name), host)) return false;
	return true;
}

/* Is profiler KEY "disabled", as a text or as {"mode": ...} or {"enabled": false}? */
static bool is_disabled(const json_t *profilers, const char *key)
{
	json_t *value = json_object_get(profilers, key);
	const char *mode = json_is_object(value) ? json_string_value(json_object_get(value, "mode"))
						 : json_string_value(value);

	return (mode && !strcmp(mode, "disabled")) ||
	       json_is_false(json_object_get(value, "enabled"));
}

static struct error *check_mode(const json_t *config)
{
	const char *mode = json_string_value(json_object_get(config, "profiling_mode"));

	if (!mode || !strcmp(mode, "cpu"))
		return NULL;
	return error_new("profiling_mode %.20s: this version samples CPU time only", mode);
}

static struct error *read_config(const json_t *config, struct remote_command *command)
{
	const json_t *profilers = json_object_get(config, "profiler_configs");
	uint64_t seconds = 0;

	TRY(check_mode(config));
	TRY(read_number(config, "duration", REMOTE_SECONDS_MAX, &seconds));
	TRY(read_number(config, "frequency", REMOTE_HZ_MAX, &command->hz));
	TRY(read_pids(config, command));
	command->duration_ns = seconds * 1000000000u;
	command->continuous = json_is_true(json_object_get(config, "continuous"));
	command->no_perf = is_disabled(profilers, "perf");
	command->no_python = is_disabled(profilers, "pyperf") && is_disabled(profilers, "pyspy");
	return NULL;
}

/* The id goes into a file and into other requests. */
static bool copy_id(const char *id, char ret[REMOTE_ID_MAX + 1])
{
	size_t length = id ? strlen(id) : 0;

	if (!length || length > REMOTE_ID_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)id[i] <= 0x20 || (unsigned char)id[i] >= 0x7f)
			return false;
	memcpy(ret, id, length + 1);
	return true;
}

struct error *remote_parse(const char *answer, size_t size, const char *host,
			   struct remote_command *ret)
{
	_cleanup_(cleanup_json) json_t *json =
		json_loadb(answer, size < TEXT_MAX ? size : TEXT_MAX, 0, NULL);
	const json_t *profiling = json_object_get(json, "profiling_command");
	const json_t *config = json_object_get(profiling, "combined_config");
	const char *kind = json_string_value(json_object_get(profiling, "command_type"));

	*ret = (struct remote_command){0};
	if (!json_is_object(json))
		return error_new("the answer to a heartbeat is no JSON object");
	if (!json_is_true(json_object_get(json, "success")) || !json_is_object(profiling))
		return NULL;
	if (!copy_id(json_string_value(json_object_get(json, "command_id")), ret->id))
		return error_new("a command of the server has no id that can be used");
	if (is_for_others(config, host))
		return NULL;
	if (kind && !strcmp(kind, "stop")) {
		ret->kind = REMOTE_stop;
		return NULL;
	}
	ret->kind = REMOTE_start;
	if (!kind || strcmp(kind, "start") != 0)
		return error_new("there is no command %.20s", kind ? kind : "without a type");
	return read_config(config, ret);
}
