/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gProfiler's collapsed file, which its server reads as well: "# " and a JSON object, then lines
 * of "container;comm;[appid: ...;]root;...;leaf COUNT", joined by newlines with none at the end.
 *
 * Keys stand in gProfiler's order. Metadata that the profile does not know is left out, except
 * where gProfiler itself writes a null. The application index, which would be the first frame, is
 * left out with its flag, as under --disable-application-metadata. flamegraph_html is null: the
 * page is a file of its own, and a copy of it in here would be most of this one.
 */
#include "base/array.h"
#include "base/clock.h"
#include "formats/emit.h"
#include "formats/format.h"
#include "formats/text.h"

static struct error *emit_containers(struct emit *emit, const struct profile *profile)
{
	_cleanup_free_ bool *met = NULL;

	TRY(ARRAY_NEW(met, profile_strings(profile)));
	for (uint32_t i = 0; i < profile_processes(profile); i++)
		met[profile_process_at(profile, i)->container] = true;
	emit_array(emit, "containers");
	for (string_id id = 1; id < profile_strings(profile); id++) {
		if (met[id])
			format_emit_known(emit, NULL, profile, id);
	}
	emit_array_end(emit);
	emit_bool(emit, "container_names_enabled", profile_facts_const(profile)->containers_named);
	return NULL;
}

static void emit_sampling(struct emit *emit, const struct profile *profile)
{
	const struct session_facts *facts = profile_facts_const(profile);

	format_emit_known(emit, "sampling_event", profile, facts->event);
	if (facts->rate_hz) {
		emit_string(emit, "sampling_mode", "frequency");
		emit_number(emit, "sampling_frequency", facts->rate_hz);
	} else if (facts->period) {
		emit_string(emit, "sampling_mode", "period");
		emit_number(emit, "sampling_period", facts->period);
	}
}

/* What every profile knows of its machine. */
static void emit_machine(struct emit *emit, const struct profile *profile)
{
	const struct session_facts *facts = profile_facts_const(profile);
	char time[20];

	format_emit_known(emit, "agent_version", profile, facts->version);
	format_emit_known(emit, "kernel_release", profile, facts->kernel);
	format_emit_known(emit, "kernel_version", profile, facts->kernel_build);
	format_emit_known(emit, "system_name", profile, facts->system);
	if (facts->cpus)
		emit_number(emit, "processors", facts->cpus);
	format_emit_known(emit, "hostname", profile, facts->host);
	format_emit_known(emit, "system", profile, facts->system);
	format_emit_known(emit, "hardware_type", profile, facts->machine);
	if (facts->end_realtime_ns) {
		clock_format_utc(facts->end_realtime_ns, time);
		emit_string(emit, "current_time", time);
	}
}

static void emit_metadata(struct emit *emit, const struct profile *profile)
{
	string_id metadata = profile_facts_const(profile)->metadata;
	size_t length;
	const char *text = profile_text(profile, metadata, &length);

	emit_object(emit, "metadata");
	if (length)
		emit_raw(emit, NULL, text, length);
	else
		emit_machine(emit, profile);
	emit_string(emit, "profiling_mode", "cpu");
	emit_sampling(emit, profile);
	emit_object_end(emit);
}

static struct error *emit_header(struct emit *emit, const struct profile *profile)
{
	emit_object(emit, NULL);
	TRY(emit_containers(emit, profile));
	emit_metadata(emit, profile);
	emit_object(emit, "metrics");
	emit_null(emit, "cpu_avg");
	emit_null(emit, "mem_avg");
	emit_object_end(emit);
	emit_array(emit, "application_metadata");
	emit_null(emit, NULL);
	emit_array_end(emit);
	emit_bool(emit, "application_metadata_enabled", false);
	emit_string(emit, "profiling_mode", "cpu");
	emit_null(emit, "hwmetrics");
	emit_null(emit, "htmlblob");
	emit_null(emit, "flamegraph_html");
	emit_sampling(emit, profile);
	emit_object_end(emit);
	return NULL;
}

struct error *col_write(const struct profile *profile, FILE *stream)
{
	const struct text_form form = {
		.containers = !profile_facts_const(profile)->no_containers,
		.applications = true,
		.packages = true,
		.objects = profile_facts_const(profile)->show_objects,
		.before = "\n",
		.after = "",
	};
	struct emit emit = emit_to(stream, EMIT_ascii);

	fputs("# ", stream);
	TRY(emit_header(&emit, profile));
	TRY(text_write(profile, &form, stream));
	return format_finish(stream);
}
