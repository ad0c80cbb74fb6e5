/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of all kinds as literals of the language. */
#pragma once

#include "runtimes/python/print.h"

/* The text, bytes or bytearray at ADDR. */
void python_literal_print(struct python_print *print, uint64_t addr, enum python_kind kind);
