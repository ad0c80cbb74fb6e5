/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands and how one is found. */
#include "cli/command.h"

#include <string.h>

#include "base/array.h"
#include "cli/nearest.h"

static const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
};

const struct command *command_at(size_t index)
{
	return index < ARRAY_COUNT(commands) ? commands[index] : NULL;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

const struct command *command_nearest(const char *name)
{
	struct nearest nearest = nearest_to(name);
	const struct command *found = NULL;

	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		if (nearest_offer(&nearest, commands[i]->name))
			found = commands[i];
	return found;
}
