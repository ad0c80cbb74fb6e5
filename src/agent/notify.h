/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What systemd is told, over the socket in $NOTIFY_SOCKET (sd_notify(3) says what is sent; it is
 * one datagram of text, so no library is needed). Without the variable nothing is done.
 */
#pragma once

#include <stdint.h>

/* "READY=1", "STATUS=...", with a line's end between several. Failing is silent: systemd would act
 * on what it does not hear. */
void notify_send(const char *text);

/* How often systemd wants to hear "WATCHDOG=1", half the time it waits; 0: never. */
uint64_t notify_watchdog_ns(void);
