/* SPDX-License-Identifier: Apache-2.0 */
/* gProfiler's keys in its order. Where the facts come from is machine.c's. */
#include "identity/metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "formats/emit.h"
#include "identity/machine.h"
#include "proc/system.h"

struct metadata {
	bool whole;
	uint64_t spawn_ns;  /* wall clock */
	uint64_t uptime_ns; /* of the machine, at the start */
	struct system_facts system;
	struct machine machine;
};

struct error *metadata_new(int root_fd, bool whole, struct metadata **ret)
{
	_cleanup_metadata_ struct metadata *metadata = calloc(1, sizeof(*metadata));
	struct timespec since_boot = {0};

	if (!metadata)
		return error_oom();
	metadata->whole = whole;
	metadata->spawn_ns = clock_realtime_ns();
	if (!clock_gettime(CLOCK_BOOTTIME, &since_boot))
		metadata->uptime_ns =
			(uint64_t)since_boot.tv_sec * 1000000000 + (uint64_t)since_boot.tv_nsec;
	TRY(system_read(&metadata->system));
	TRY(machine_read(root_fd, &metadata->machine));
	*ret = take(metadata);
	return NULL;
}

void metadata_free(struct metadata *metadata)
{
	if (!metadata)
		return;
	machine_deinit(&metadata->machine);
	free(metadata);
}

/* Is this variable there? Its value does not matter. */
static bool is_set(const char *gprofiler, const char *own)
{
	return getenv(gprofiler) || getenv(own);
}

static void emit_deployment(struct emit *emit)
{
	bool k8s = is_set("GPROFILER_IN_K8S", "CAIRN_IN_K8S");
	bool container = is_set("GPROFILER_IN_CONTAINER", "CAIRN_IN_CONTAINER");
	const char *inside = container ? "container" : "standalone_executable";

	emit_string(emit, "run_mode", k8s ? "k8s" : inside);
	inside = container ? "containers" : "instances";
	emit_string(emit, "deployment_type", k8s ? "k8s" : inside);
}

static void emit_known(struct emit *emit, const char *key, const char *text)
{
	emit_string(emit, key, *text ? text : "unknown");
}

static void emit_hardware(struct emit *emit, const struct metadata *metadata)
{
	const struct machine *machine = &metadata->machine;

	emit_string(emit, "hypervisor", machine->hypervisor);
	emit_number(emit, "processors", metadata->system.cpus);
	emit_known(emit, "cpu_model_name", machine->cpu_model);
	emit_string(emit, "cpu_arch_codename", machine->cpu_codename);
	emit_known(emit, "cpu_flags", machine->cpu_flags);
	emit_number(emit, "memory_capacity_mb", machine->memory_mib);
}

static void emit_host(struct emit *emit, const struct metadata *metadata)
{
	const struct machine *machine = &metadata->machine;

	emit_string(emit, "hostname", *machine->host ? machine->host : "<unknown>");
	emit_string(emit, "system", metadata->system.name);
	emit_known(emit, "os_name", machine->os_name);
	emit_known(emit, "os_release", machine->os_release);
	emit_known(emit, "os_codename", machine->os_codename);
	emit_known(emit, "libc_type", machine->libc_type);
	emit_known(emit, "libc_version", machine->libc_version);
	emit_string(emit, "hardware_type", metadata->system.machine);
	emit_number(emit, "pid", (uint64_t)getpid());
	emit_known(emit, "mac_address", machine->mac);
	emit_known(emit, "private_ip", machine->ip);
	// Of gProfiler these are seconds, whatever the name says.
	emit_thousandths(emit, "spawn_uptime_ms", metadata->uptime_ns / 1000);
}

static void emit_big_data(struct emit *emit, const struct machine *machine)
{
	emit_object(emit, "big_data");
	if (*machine->big_data) {
		emit_string(emit, "provider", machine->big_data);
		emit_string(emit, "provider_version", machine->big_data_version);
	}
	emit_object_end(emit);
}

static void emit_whole(struct emit *emit, const struct metadata *metadata, const char *arguments,
		       uint64_t end_ns)
{
	char time[20];

	emit_string(emit, "cloud_provider", "unknown");
	emit_string(emit, "agent_version", CAIRN_VERSION);
	clock_format_utc(metadata->spawn_ns, time);
	emit_string(emit, "spawn_time", time);
	// The server insists on it.
	emit_string(emit, "python_version", "none: cairn " CAIRN_VERSION);
	emit_deployment(emit);
	emit_string(emit, "kernel_release", metadata->system.release);
	emit_string(emit, "kernel_version", metadata->system.version);
	emit_string(emit, "system_name", metadata->system.name);
	emit_hardware(emit, metadata);
	emit_host(emit, metadata);
	emit_raw(emit, "run_arguments", arguments, strlen(arguments));
	emit_big_data(emit, &metadata->machine);
	emit_object(emit, "external_metadata");
	emit_object_end(emit);
	clock_format_utc(end_ns, time);
	emit_string(emit, "current_time", time);
}

struct error *metadata_fill(const struct metadata *metadata, const char *arguments,
			    struct profile *profile)
{
	struct session_facts *facts = profile_facts(profile);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return error_oom();
	struct emit emit = emit_to(stream, EMIT_ascii);
	if (metadata->whole)
		emit_whole(&emit, metadata, arguments, facts->end_realtime_ns);
	else
		emit_string(&emit, "hostname",
			    *metadata->machine.host ? metadata->machine.host : "<unknown>");
	if (fclose(stream))
		return error_oom();
	return profile_string(profile, text, size, &facts->metadata);
}
