/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdebuginfod with a limit on time. It is loaded when it is first needed: with it come libcurl
 * and thirty libraries more, which take longer to load than cairn itself (measured with Debian 12,
 * `cairn --version`: 20 ms with them, 1.5 ms without), and hardly anybody asks a server.
 */
#define LOG_DOMAIN "symbolize"
#include "symbolize/debuginfod.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include <elfutils/debuginfod.h>

#include "base/clock.h"
#include "base/log.h"

enum { FETCH_SECONDS_MAX = 60 };

static const char library_name[] = "libdebuginfod.so.1";

/* What is used of the library; the types are its own. */
struct library {
	__typeof__(&debuginfod_begin) begin;
	__typeof__(&debuginfod_end) end;
	__typeof__(&debuginfod_set_progressfn) set_progressfn;
	__typeof__(&debuginfod_set_user_data) set_user_data;
	__typeof__(&debuginfod_find_debuginfo) find_debuginfo;
};

/* Set the pointer at TO to function NAME. What is loaded once stays: not all of it can go. */
static bool find(const char *name, void *to)
{
	void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	void *found = library ? dlsym(library, name) : NULL;

	if (library)
		dlclose(library);
	// POSIX has dlsym() give functions as pointers to data.
	memcpy(to, &found, sizeof(found));
	return found;
}

static bool load(struct library *ret)
{
	return find("debuginfod_begin", &ret->begin) && find("debuginfod_end", &ret->end) &&
	       find("debuginfod_set_progressfn", &ret->set_progressfn) &&
	       find("debuginfod_set_user_data", &ret->set_user_data) &&
	       find("debuginfod_find_debuginfo", &ret->find_debuginfo);
}

/* DEBUGINFOD_TIMEOUT limits the time without progress only, and a slow server makes some. */
static int give_up_late(debuginfod_client *client, long done, long all)
{
	__typeof__(&debuginfod_get_user_data) get_user_data;

	(void)done;
	(void)all;
	if (!find("debuginfod_get_user_data", &get_user_data))
		return 1;
	const uint64_t *deadline_ns = get_user_data(client);
	return clock_monotonic_ns() > *deadline_ns;
}

int debuginfod_fetch(const uint8_t *build_id, size_t size)
{
	uint64_t deadline_ns = clock_monotonic_ns() + FETCH_SECONDS_MAX * 1000000000ull;
	struct library library;

	if (!load(&library)) {
		log_debug("%s cannot be loaded", library_name);
		return -1;
	}
	debuginfod_client *client = library.begin();
	if (!client)
		return -1;
	library.set_user_data(client, &deadline_ns);
	library.set_progressfn(client, give_up_late);
	int fd = library.find_debuginfo(client, build_id, (int)size, NULL);
	library.end(client);
	return fd < 0 ? -1 : fd;
}

bool debuginfod_is_built_in(void)
{
	return true;
}
