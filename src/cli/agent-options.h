/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of the agent, which are gProfiler's and some of our own: what they fill, what becomes
 * of each, and how they go together. The rows are in agent-options.def.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/operations.h"
#include "cli/option.h"
#include "cli/options.h"
#include "cli/sampling.h"
#include "cli/sending.h"
#include "identity/application.h"

/* The fields of rows stand in the order of agent-options.def. A FLAG_OFF's field is true unless the
 * option is given. Texts are NULL without a default. */
struct agent_args {
	struct logging_args logging;
	struct sampling_args sampling;
	struct sending_args sending;
	struct operations_args operations;
	struct option_sources sources;
	struct text_list operands;

	uint64_t hz, duration_ns, alloc_bytes, min_age_ns;
	const char *mode;
	struct uint_list pids;
	uint64_t max_processes, skip_perf_above; /* 0: no limit */
	bool continuous, spawned, insert_dso, rootless;

	const char *directory;
	bool flamegraph, rotate;

	const char *token, *service, *server, *api_server, *api_version;
	uint64_t upload_timeout_ns, heartbeat_ns;
	bool upload, verify, curlify, send_logs, heartbeat, databricks_service;

	const char *external_metadata;
	struct text_list app_id_filters;
	bool container_names, application_ids, application_metadata, metrics, metadata;

	const char *config, *heartbeat_file, *pid_file, *log_file, *resources;
	uint64_t controller, log_bytes, log_backups;
	bool log_usage, diagnostics, pidns_check, no_core_files, version;

	const char *perf_mode, *perf_event, *hw_events_file, *perfspect;
	uint64_t stack_bytes, perf_cgroups_max, perf_containers_max, perf_period, perfspect_ns;
	bool perf_restart, perf_cgroups, hw_metrics;

	const char *python_mode;
	struct uint_list pyspy_pids;
	uint64_t pyperf_pages, skip_pyperf_above;
	bool versions, pyperf_verbose;

	const char *java_mode, *java_safemode, *jvm_flags, *java_lines, *ap_mode, *ap_args;
	struct text_list ap_features;
	uint64_t ap_safemode, ap_mcache, jattach_ns;
	bool ap_meminfo, ap_build_ids, java_version_check, spark_app_id, full_hserr;
	bool java_modifiers, java_threads;

	const char *php_mode, *php_filter, *ruby_mode, *dotnet_mode, *nodejs_mode;
	uint64_t spark_period;
	bool spark_metrics;
};

/* What becomes of an option; agent-options.def says what each means. */
enum agent_effect {
	AGENT_same,
	AGENT_differs,
	AGENT_upload,
	AGENT_nearest,
	AGENT_runtime,
	AGENT_absent,
};

struct agent_option {
	const char *name;
	enum agent_effect effect;
	const char *note; /* "": nothing to say */
};

/* gProfiler's options in the table's order; NULL behind the last. */
const struct agent_option *agent_option_at(size_t index);

/* What EFFECT means for a user, in a few words. */
const char *agent_effect_text(enum agent_effect effect);

/* All of gProfiler's options by what becomes of them. */
struct error *from_gprofiler_print(FILE *out);

/* The rows, those of gProfiler first, in the same order. */
extern const struct option_row agent_options[];

/* Does the value of one of the --X-mode options leave X out? */
bool agent_mode_off(const char *mode);

/* Was the option whose value is in the field at AT asked for? The answer is where, "--mode", or
 * NULL. */
const char *agent_asked(const struct agent_args *args, size_t at);

/* Is it an option of a program that runs where perf cannot, on AWS Fargate? */
bool agent_on_fargate(void);

/* How applications are named by --app-id-args-filter and the like; RET is to be deinitialised. */
struct error *agent_applications(const struct agent_args *args, struct application_options *ret);

/* Do the options go together, and can all be done? A failure is one of usage. */
struct error *agent_check(void *args);

/* Say once, in the log, which options have no effect here and which runtimes are not named. */
void agent_tell(const struct agent_args *args);
