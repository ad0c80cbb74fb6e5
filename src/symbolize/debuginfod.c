/* SPDX-License-Identifier: Apache-2.0 */
/* libdebuginfod with a limit on time. */
#include "symbolize/debuginfod.h"

#include <stdint.h>

#include <elfutils/debuginfod.h>

#include "base/clock.h"

enum { FETCH_SECONDS_MAX = 60 };

/* DEBUGINFOD_TIMEOUT limits the time without progress only, and a slow server makes some. */
static int give_up_late(debuginfod_client *client, long done, long all)
{
	const uint64_t *deadline_ns = debuginfod_get_user_data(client);

	(void)done;
	(void)all;
	return clock_monotonic_ns() > *deadline_ns;
}

int debuginfod_fetch(const uint8_t *build_id, size_t size)
{
	uint64_t deadline_ns = clock_monotonic_ns() + FETCH_SECONDS_MAX * 1000000000ull;
	debuginfod_client *client = debuginfod_begin();

	if (!client)
		return -1;
	debuginfod_set_user_data(client, &deadline_ns);
	debuginfod_set_progressfn(client, give_up_late);
	int fd = debuginfod_find_debuginfo(client, build_id, (int)size, NULL);
	debuginfod_end(client);
	return fd < 0 ? -1 : fd;
}

bool debuginfod_is_built_in(void)
{
	return true;
}
