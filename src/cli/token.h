/* SPDX-License-Identifier: Apache-2.0 */
/* The token that a server knows this agent by, and keeping it from those who list processes. */
#pragma once

#include "base/error.h"

/*
 * The token itself, or what the file PATH holds; one of them is NULL. TOKEN is as options have it:
 * a word of the command line, of the environment or of a file. It is overwritten where it stands,
 * so that neither /proc/PID/cmdline nor environ shows it from then on. RET is the caller's; wipe it
 * with token_free().
 */
struct error *token_read(const char *token, const char *path, char **ret);
void token_free(char *token);

static inline void cleanup_token(char **token)
{
	token_free(*token);
}
#define _cleanup_token_ _cleanup_(cleanup_token)
