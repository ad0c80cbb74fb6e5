/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/controller.h"

#include "proc/process.h"

struct error *controller_find(pid_t pid, struct controller *ret)
{
	struct process_status status;
	enum process_look look;

	*ret = (struct controller){0};
	if (!pid)
		return NULL;
	TRY(process_read_status(pid, &look, &status));
	if (look == PROCESS_gone || status.state == 'Z')
		return error_new("Controller process %d is not running", pid);
	*ret = (struct controller){pid, status.start_ticks};
	return NULL;
}

bool controller_ended(const struct controller *controller)
{
	struct process_status status;
	enum process_look look;

	if (!controller->pid)
		return false;
	struct error *err = process_read_status(controller->pid, &look, &status);
	if (err) {
		error_free(err); // it cannot be known now; the next session asks again
		return false;
	}
	return look == PROCESS_gone || status.state == 'Z' ||
	       status.start_ticks != controller->start_ticks;
}
