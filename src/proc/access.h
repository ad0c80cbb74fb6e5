/* SPDX-License-Identifier: Apache-2.0 */
/* Why a process may not be looked at: the kernel says EPERM to everything, people need more. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/*
 * Why this process may not read PID's memory or trace it, and what would change that, as the end
 * of a sentence: "it runs as uid 0 and cairn as uid 1000: run as that user or with CAP_SYS_PTRACE".
 * Asked after the kernel refused; the causes are looked at in the kernel's order. The caller frees
 * RET.
 */
struct error *access_explain(pid_t pid, char **ret);
