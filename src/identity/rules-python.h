/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules for programs in Python have in common. */
#pragma once

#include "identity/program.h"

/* Both NULL: it runs code of its command line, or its argv says nothing. */
struct python_start {
	const char *module, *script;
	size_t rest; /* the first word behind it */
};

/*
 * Is PROGRAM the tool NAME, as a program of its own, as a script or as a module? The first word
 * behind it; 0: it is not.
 */
size_t python_tool(const struct program *program, const char *name);

/* "TOOL: APP (PATH)", the path being that of module APP. */
struct error *python_named(const struct program *program, const char *tool, const char *app,
			   char **ret);
