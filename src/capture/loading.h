/* SPDX-License-Identifier: Apache-2.0 */
/* What all that load BPF programs have in common: libbpf's words, and ours. */
#pragma once

#include "base/error.h"

/* What libbpf has to say goes to the debug log. */
void loading_log_libbpf(void);

/* Why programs could not be loaded; CODE is what libbpf returned, a negative errno. */
struct error *loading_error(int code) __attribute__((warn_unused_result));
