/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pclntab does not say of a function's x86-64 code: where its frame pointer is saved and
 * set, where it writes the stack pointer, and which offsets the runtime was built with. Only the
 * forms that Go's assembler emits are known (src/cmd/internal/obj/x86/obj6.go); bytes that merely
 * look like one are possible and are why this is asked of few functions, or at one place.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the frame pointer is: offsets from where the stack pointer first moves. 0 and false where
 * no frame pointer is kept. */
struct go_frame {
	bool kept;
	bool by_push; /* push %rbp, as since 1.21; before it was stored below the new frame's top */
	uint8_t saved, set; /* from there on it is at CFA - 16; from there on rbp is CFA - 16 */
};

enum {
	GO_FRAME_BEFORE = 1, /* bytes of code to look at before the place */
	GO_FRAME_BYTES = 17, /* and in all */
	GO_WRITES_MAX = 8,
};

/* CODE has SIZE bytes, the first of them GO_FRAME_BEFORE before the place; the stack pointer is
 * DELTA below its value at entry there. */
struct go_frame go_code_frame(const uint8_t *code, size_t size, uint32_t delta);

/* How many of the SIZE bytes before a frame's end give it up (add $n,%rsp). 0: none. */
size_t go_code_leave(const uint8_t *code, size_t size);

enum go_write_kind {
	GO_WRITE_load,  /* from memory */
	GO_WRITE_move,  /* from a register */
	GO_WRITE_other, /* aligned, or computed */
};

struct go_write {
	enum go_write_kind kind;
	size_t start, end; /* of the instruction */
};

/* The instructions in CODE that set the stack pointer, at most GO_WRITES_MAX. */
size_t go_code_writes(const uint8_t *code, size_t size, struct go_write ret[GO_WRITES_MAX]);

/* Is BYTES among CODE? RET_AT (may be NULL): where. */
bool go_code_has(const uint8_t *code, size_t size, const uint8_t *bytes, size_t count,
		 size_t *ret_at);

/* The offset of g from the thread's base (fs), as the code of a runtime function has it. */
bool go_code_tls(const uint8_t *code, size_t size, int32_t *ret);

struct go_layout {
	uint16_t m, curg, sp, bp;
};

/* The layout that the code of runtime.systemstack was built with. NULL: one we do not know. */
const struct go_layout *go_code_layout(const uint8_t *code, size_t size);

/* Does the code of runtime.morestack save into LAYOUT? */
bool go_code_saves(const uint8_t *code, size_t size, const struct go_layout *layout);
