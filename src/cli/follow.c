/* SPDX-License-Identifier: Apache-2.0 */
/* Commands one after the other, and what is reported of each. */
#define LOG_DOMAIN "agent"
#include "cli/follow.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"

#define SECOND_NS UINT64_C(1000000000)

/* The command without an end that is being done. */
struct standing {
	bool is_there;
	struct remote_command command;
	uint64_t start_ns;
};

static uint64_t seconds_since(uint64_t start_ns)
{
	return (clock_monotonic_ns() - start_ns) / SECOND_NS;
}

static struct error *copy_pids(const struct remote_command *command, uint64_t **ret)
{
	TRY(ARRAY_NEW(*ret, command->pid_count));
	for (size_t i = 0; i < command->pid_count; i++)
		(*ret)[i] = command->pids[i];
	return NULL;
}

/* Sample as COMMAND says, and where it says nothing as the agent's options do. */
static struct error *profile(const struct follow *follow, const struct remote_command *command)
{
	struct agent_args args = *follow->args; // its lists stay the original's
	_cleanup_free_ uint64_t *pids = NULL;

	args.continuous = command->continuous;
	if (command->duration_ns)
		args.duration_ns = command->duration_ns;
	if (command->hz)
		args.hz = command->hz;
	if (command->no_perf)
		args.perf_mode = "disabled";
	if (command->no_python)
		args.python_mode = "disabled";
	if (command->pid_count) {
		TRY(copy_pids(command, &pids));
		args.pids = (struct uint_list){.items = pids, .count = command->pid_count};
	}
	return follow->profile(follow->data, &args);
}

static void end_standing(const struct follow *follow, struct standing *standing, const char *why)
{
	if (standing->is_there)
		heartbeat_report(follow->heartbeat, standing->command.id,
				 seconds_since(standing->start_ns), why);
	standing->is_there = false;
}

/* Do COMMAND, which has an end. */
static void do_once(const struct follow *follow, const struct remote_command *command)
{
	uint64_t start_ns = clock_monotonic_ns();
	struct error *err = profile(follow, command);
	const char *why = err ? error_text(err) : NULL;

	if (err)
		log_error("command=%s: %s", command->id, why);
	else if (!follow->goes_on(follow->data, false))
		why = "the agent was told to end before it was done";
	else if (heartbeat_waits(follow->heartbeat, true))
		why = "stopped before it was done";
	heartbeat_report(follow->heartbeat, command->id, seconds_since(start_ns), why);
	error_free(err); // the server is told
}

/* Go on with the one without an end. */
static void do_standing(const struct follow *follow, struct standing *standing)
{
	struct error *err = profile(follow, &standing->command);

	if (!err)
		return;
	log_error("command=%s: %s", standing->command.id, error_text(err));
	end_standing(follow, standing, error_text(err));
	error_free(err); // the server is told
}

static void do_command(const struct follow *follow, const struct remote_command *command,
		       struct standing *standing)
{
	if (command->kind == REMOTE_start && !command->continuous) {
		do_once(follow, command);
		return;
	}
	// What was to run until told otherwise has done what it was asked for.
	end_standing(follow, standing, NULL);
	if (command->kind == REMOTE_stop) {
		heartbeat_report(follow->heartbeat, command->id, 0, NULL);
		return;
	}
	*standing = (struct standing){
		.is_there = true, .command = *command, .start_ns = clock_monotonic_ns()};
}

void follow_server(const struct follow *follow)
{
	struct standing standing = {0};

	while (follow->goes_on(follow->data, false)) {
		struct remote_command command;
		if (heartbeat_take(follow->heartbeat, &command))
			do_command(follow, &command, &standing);
		else if (standing.is_there)
			do_standing(follow, &standing);
		else
			(void)follow->goes_on(follow->data, true);
	}
	end_standing(follow, &standing, "the agent was told to end");
}
