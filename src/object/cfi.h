/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: .eh_frame and .debug_frame cut into records. A CIE holds what several
 * functions share, an FDE describes one range of code. What their programs compute is in cfi-run.h.
 *
 * A record that makes no sense is counted and left out; the code that it described is a gap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

enum cfi_kind {
	CFI_EH_FRAME,
	CFI_EH_FRAME_OPEN, /* the same, found without a section: it ends at its terminator */
	CFI_DEBUG_FRAME,
};

struct cfi_cie {
	uint64_t offset; /* in the section */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra;          /* return address column */
	struct bytes program; /* initial instructions */
	uint8_t encoding;     /* of addresses in FDEs */
	bool sized;           /* FDEs have an augmentation size */
	bool signal;          /* frames that the kernel built */
	bool usable;
};

struct cfi_fde {
	uint64_t start, end; /* object addresses */
	uint32_t cie;        /* index */
	uint32_t program;    /* offset in the section */
	uint32_t program_size;
};

enum {
	CFI_CIES_MAX = 1 << 20,
	CFI_INITIAL_MAX = 512, /* bytes of initial instructions: they run for each FDE */
	CFI_FDES_MAX = 4 << 20,
};

struct cfi {
	struct bytes section; /* borrowed */
	uint64_t addr;        /* of the section, for relative pointers */
	enum cfi_kind kind;
	struct cfi_cie *cies;
	size_t cie_count, cie_room;
	struct hash_index by_offset; /* CIEs */
	struct cfi_fde *fdes;        /* sorted by start after cfi_read() */
	size_t fde_count, fde_room;
	size_t damaged; /* records left out */
};

void cfi_deinit(struct cfi *cfi);

/*
 * Cut SECTION, at object address ADDR, into records. The bytes must outlive RET. Fails only
 * without memory or beyond a maximum; damage ends or shortens the list and is counted.
 */
struct error *cfi_read(struct bytes section, uint64_t addr, enum cfi_kind kind, struct cfi *ret);

/*
 * Where .eh_frame is, by the bytes of .eh_frame_hdr at object address ADDR. False: damaged.
 */
bool cfi_find_frames(struct bytes header, uint64_t addr, uint64_t *ret_addr);

/*
 * Read a pointer in ENCODING (DW_EH_PE_*) from B, whose first byte is at object address ADDR.
 * DATA is the base of "datarel". Indirect and function-relative pointers are failures.
 */
struct error *cfi_pointer(struct bytes *b, uint8_t encoding, uint64_t addr, uint64_t data,
			  uint64_t *ret);
