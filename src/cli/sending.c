/* SPDX-License-Identifier: Apache-2.0 */
/* The rows about the token and the spool. */
#include "cli/sending.h"

#include "agent/spool.h"

const struct option_row options_sending[] = {
	{.name = "token-file",
	 .whole = true,
	 .kind = OPTION_FILE,
	 .at = offsetof(struct sending_args, token_file),
	 .help = "a file with the token, instead of --token"},
	{.name = "spool-dir",
	 .whole = true,
	 .kind = OPTION_FILE,
	 .at = offsetof(struct sending_args, spool),
	 .value = "DIR",
	 .help = "where sessions wait to be sent; unless given /var/lib/cairn/spool, and "
		 "~/.local/state/cairn/spool without root"},
	{.name = "spool-size",
	 .whole = true,
	 .kind = OPTION_UINT,
	 .at = offsetof(struct sending_args, spool_mib),
	 .fallback = 256,
	 .min = 1,
	 .max = 1 << 20,
	 .unit = "MiB",
	 .help = "what may wait there; then the oldest session gives way"},
	{.name = "spool-sessions",
	 .whole = true,
	 .kind = OPTION_UINT,
	 .at = offsetof(struct sending_args, spool_sessions),
	 .fallback = 10080,
	 .min = 1,
	 .max = SPOOL_SESSIONS_MAX,
	 .unit = "sessions",
	 .help = "how many may wait there"},
	{0},
};
