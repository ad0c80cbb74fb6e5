/* SPDX-License-Identifier: Apache-2.0 */
/* From main's arguments to the exit status of the process. */
#pragma once

/* Find the command, read its options, run it; print a failure as one line on standard error. */
int cli_run(int argc, char **argv);
