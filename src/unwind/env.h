/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What a stack walker may ask for. There are two implementations: inside the kernel (BPF helpers,
 * maps), and on the host (any memory that can be read: a copy of a stack, a live process). This is
 * the one place that chooses. A BPF object includes bpf/env.bpf.h, a layer further down, first.
 *
 *   read_user(w, to, addr)      read sizeof(*to) bytes of the target at ADDR; non-zero: it cannot
 *   env_mapping(w, i, ret)      mapping number I of the process's table; non-zero: no such
 *   env_module(w, number, ret)  where a module's rows are; non-zero: no such
 *   env_segment(w, number)      a segment of row storage; NULL: no such
 *   env_rule(w, number, ret)    an unwind rule; non-zero: no such
 *   env_python(w)               what the process's CPython is; NULL: no such
 *   env_layout(w, number)       a layout of CPython; NULL: no such
 *   env_thread_state(w)         where the thread's state was found before; 0: not known
 *   env_state_is_innermost(w)   non-zero: of all states that the thread has now it is the first
 *   env_keep_state(w, address)  where it is
 *   env_keeps(w)                does somebody walk on from here? Python frames are kept for them
 *   env_keep(w, frame)          one of them; non-zero: the buffer is full
 *   env_kept(w, ret, previous)  frame w->python.frame as it was kept, and the address of the one
 *                               that called it; non-zero: no such
 *   push(w, pc)                 one more machine frame; non-zero: the buffer is full
 *   push_runtime(w, head, rest, at)  one more frame of a runtime, two words (abi/sample.h); AT is
 *                               its address in the target, for those who look further
 *
 * WALK_INLINE functions use constant-size reads, bounded loops, no globals, no libc; WALK_UNROLL
 * stands before a loop that must disappear.
 */
#pragma once

#include "unwind/walk.h"

#ifndef __bpf__
#include "unwind/env-host.h"
#endif
