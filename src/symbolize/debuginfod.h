/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from the servers named in DEBUGINFOD_URLS. Called only when the user asked for it: a
 * request tells a server which programs run here, and may take long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A descriptor of the debug file of BUILD_ID, which the caller closes; -1: there is none, no server
 * answered in time, or this program was built without the library. DEBUGINFOD_TIMEOUT and
 * DEBUGINFOD_MAXTIME hold, and no request lasts longer than a minute. The library keeps on disk
 * what it fetched and what it asked for in vain.
 */
int debuginfod_fetch(const uint8_t *build_id, size_t size);

/* Was this program built with the library? */
bool debuginfod_is_built_in(void);
