/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting .eh_frame (LSB 5.0, 10.6) and .debug_frame (DWARF 5, 6.4.1) into CIEs and FDEs. */
#include "object/cfi.h"

#include <dwarf.h>
#include <string.h>

#include "base/array.h"

enum {
	APPLICATION_MASK = 0x70,
	FORMAT_MASK = 0x0f,
	ADDRESS_BYTES = 8,
	AUGMENTATION_MAX = 16,
	HEADER_VERSION = 1,
};

void cfi_deinit(struct cfi *cfi)
{
	free(cfi->cies);
	free(cfi->fdes);
	hash_index_deinit(&cfi->by_offset);
	*cfi = (struct cfi){0};
}

static struct error *narrow_number(struct bytes *b, uint8_t format, uint64_t *ret)
{
	uint16_t two;
	uint32_t four;

	if ((format & 7) == DW_EH_PE_udata2) {
		TRY(bytes_u16(b, &two));
		*ret = format == DW_EH_PE_sdata2 ? (uint64_t)(int16_t)two : two;
	} else {
		TRY(bytes_u32(b, &four));
		*ret = format == DW_EH_PE_sdata4 ? (uint64_t)(int32_t)four : four;
	}
	return NULL;
}

/* A number in one of the formats of DW_EH_PE_*, without what it is relative to. */
static struct error *formatted_number(struct bytes *b, uint8_t format, uint64_t *ret)
{
	int64_t value;

	switch (format) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return bytes_u64(b, ret);
	case DW_EH_PE_udata2:
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata2:
	case DW_EH_PE_sdata4:
		return narrow_number(b, format, ret);
	case DW_EH_PE_uleb128:
		return bytes_uleb(b, ret);
	case DW_EH_PE_sleb128:
		TRY(bytes_sleb(b, &value));
		*ret = (uint64_t)value;
		return NULL;
	}
	return bytes_error(b, "pointer format 0x%x is unknown", format);
}

struct error *cfi_pointer(struct bytes *b, uint8_t encoding, uint64_t addr, uint64_t data,
			  uint64_t *ret)
{
	uint64_t here = addr + bytes_offset(b), value;

	if (encoding & DW_EH_PE_indirect)
		return bytes_error(b, "indirect pointer");
	TRY(formatted_number(b, encoding & FORMAT_MASK, &value));
	switch (encoding & APPLICATION_MASK) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_textrel: // the text base of x86-64 is 0, as in libgcc
		break;
	case DW_EH_PE_pcrel:
		value += here;
		break;
	case DW_EH_PE_datarel:
		value += data;
		break;
	default:
		return bytes_error(b, "pointer encoding 0x%x is unknown", encoding);
	}
	*ret = value;
	return NULL;
}

bool cfi_find_frames(struct bytes header, uint64_t addr, uint64_t *ret_addr)
{
	uint8_t version, encoding;
	_cleanup_error_ struct error *err = NULL;

	err = bytes_u8(&header, &version);
	if (!err)
		err = bytes_u8(&header, &encoding);
	if (!err)
		err = bytes_skip(&header, 2); // the search table is not needed, and may be missing
	if (err || version != HEADER_VERSION || encoding == DW_EH_PE_omit)
		return false;
	err = cfi_pointer(&header, encoding, addr, addr, ret_addr);
	return !err;
}

/* The personality routine is skipped, whatever it points at. */
static struct error *skip_personality(struct bytes *b, uint64_t section_addr)
{
	uint8_t encoding;
	uint64_t value;

	TRY(bytes_u8(b, &encoding));
	if (encoding == DW_EH_PE_omit)
		return NULL;
	if (encoding == DW_EH_PE_aligned) {
		uint64_t here = section_addr + bytes_offset(b);
		return bytes_skip(b, (-here & (ADDRESS_BYTES - 1)) + ADDRESS_BYTES);
	}
	return formatted_number(b, encoding & FORMAT_MASK, &value);
}

/* One letter of an augmentation string that began with 'z'. *RET_KNOWN: it may be followed. */
static struct error *read_letter(struct cfi_cie *cie, char letter, struct bytes *b,
				 uint64_t section_addr, bool *ret_known)
{
	*ret_known = true;
	switch (letter) {
	case 'R':
		return bytes_u8(b, &cie->encoding);
	case 'L': // where exceptions are handled: not our business
		return bytes_skip(b, 1);
	case 'P':
		return skip_personality(b, section_addr);
	case 'S':
		cie->signal = true;
		return NULL;
	case 'B': // aarch64: return addresses are signed with the B key
	case 'G': // aarch64: memory tagging
		return NULL;
	}
	*ret_known = false;
	return NULL;
}

static struct error *read_augmentation(const struct cfi *cfi, struct cfi_cie *cie,
				       const char *letters, struct bytes *b)
{
	uint64_t size;
	struct bytes data;
	bool known = true;

	if (letters[0] != 'z') {
		// GCC 2's "eh" puts a pointer before the factors and was read there. What else has
		// no stated size cannot be skipped.
		cie->usable = !letters[0] || strcmp(letters, "eh") == 0;
		return NULL;
	}
	cie->sized = true;
	TRY(bytes_uleb(b, &size));
	TRY(bytes_cut(b, size, &data));
	for (const char *letter = letters + 1; *letter && known; letter++)
		TRY(read_letter(cie, *letter, &data, cfi->addr, &known));
	// The encoding of addresses could stand behind a letter that we cannot skip.
	cie->usable = known;
	return NULL;
}

static struct error *read_cie_head(struct cfi_cie *cie, struct bytes *b, const char **ret_letters)
{
	uint8_t version, address_size, segment_size, narrow_ra;

	TRY(bytes_u8(b, &version));
	if (version != 1 && version != 3 && version != 4)
		return bytes_error(b, "CIE version %u is unknown", version);
	TRY(bytes_string(b, ret_letters));
	if (strlen(*ret_letters) > AUGMENTATION_MAX)
		return bytes_error(b, "augmentation is too long");
	if (strcmp(*ret_letters, "eh") == 0)
		TRY(bytes_skip(b, ADDRESS_BYTES));
	if (version == 4) {
		TRY(bytes_u8(b, &address_size));
		TRY(bytes_u8(b, &segment_size));
		if (address_size != ADDRESS_BYTES || segment_size != 0)
			return bytes_error(b, "addresses of %u bytes in segments of %u",
					   address_size, segment_size);
	}
	TRY(bytes_uleb(b, &cie->code_align));
	TRY(bytes_sleb(b, &cie->data_align));
	if (version > 1)
		return bytes_uleb(b, &cie->ra);
	TRY(bytes_u8(b, &narrow_ra));
	cie->ra = narrow_ra;
	return NULL;
}

/* The CIE whose body (behind its id) is B, and which begins at OFFSET. */
static struct error *read_cie(struct cfi *cfi, uint64_t offset, struct bytes b)
{
	struct cfi_cie cie = {.offset = offset, .usable = true};
	const char *letters = "";

	TRY(ARRAY_RESERVE(cfi->cies, cfi->cie_room, cfi->cie_count, 1, CFI_CIES_MAX, "CIEs"));
	_cleanup_error_ struct error *err = read_cie_head(&cie, &b, &letters);
	if (!err)
		err = read_augmentation(cfi, &cie, letters, &b);
	if (err || bytes_left(&b) > CFI_INITIAL_MAX)
		cie.usable = false; // kept, so that its FDEs are known to be unusable
	if (!cie.usable)
		cfi->damaged++;
	cie.program = b;
	TRY(hash_add(&cfi->by_offset, hash_u64(offset), (uint32_t)cfi->cie_count));
	cfi->cies[cfi->cie_count++] = cie;
	return NULL;
}

/* What a record says before its body. */
struct record {
	uint64_t offset; /* where it begins */
	uint64_t id_at;  /* offset of the id */
	uint64_t id;
	bool wide; /* DWARF64 */
	bool end;  /* the terminator */
	struct bytes body;
};

/* Cut the next record off B. In .eh_frame the id has 4 bytes even if the length has 12. */
static struct error *read_record(struct bytes *b, enum cfi_kind kind, struct record *ret)
{
	bool eh = kind != CFI_DEBUG_FRAME;
	uint32_t narrow;
	uint64_t size;

	*ret = (struct record){.offset = bytes_offset(b)};
	TRY(bytes_u32(b, &narrow));
	size = narrow;
	if (narrow == UINT32_MAX) {
		ret->wide = true;
		TRY(bytes_u64(b, &size));
	}
	ret->end = size == 0;
	if (ret->end)
		return NULL;
	TRY(bytes_cut(b, size, &ret->body));
	ret->id_at = bytes_offset(&ret->body);
	if (ret->wide && !eh)
		return bytes_u64(&ret->body, &ret->id);
	TRY(bytes_u32(&ret->body, &narrow));
	// In .debug_frame all ones mean a CIE; with 8 bytes all of them.
	ret->id = !eh && narrow == UINT32_MAX ? UINT64_MAX : narrow;
	return NULL;
}

struct cie_key {
	const struct cfi *cfi;
	uint64_t offset;
};

static bool cie_equal(const void *context, uint32_t item)
{
	const struct cie_key *key = context;

	return key->cfi->cies[item].offset == key->offset;
}

static bool find_cie(const struct cfi *cfi, uint64_t offset, uint32_t *ret)
{
	struct cie_key key = {cfi, offset};

	return hash_find(&cfi->by_offset, hash_u64(offset), cie_equal, &key, ret);
}

/* The FDE in RECORD, once its CIE is known. */
static struct error *read_fde(struct cfi *cfi, const struct record *record, uint32_t number)
{
	const struct cfi_cie *cie = &cfi->cies[number];
	struct bytes b = record->body;
	uint64_t start, size, skip;

	TRY(cfi_pointer(&b, cie->encoding, cfi->addr, 0, &start));
	TRY(formatted_number(&b, cie->encoding & FORMAT_MASK, &size));
	if (cie->sized) {
		TRY(bytes_uleb(&b, &skip));
		TRY(bytes_skip(&b, skip));
	}
	if (!size || size > UINT64_MAX - start)
		return bytes_error(&b, "range of 0x%llx bytes", (unsigned long long)size);
	cfi->fdes[cfi->fde_count++] = (struct cfi_fde){.start = start,
						       .end = start + size,
						       .cie = number,
						       .program = (uint32_t)bytes_offset(&b),
						       .program_size = (uint32_t)bytes_left(&b)};
	return NULL;
}

/* Where the CIE of an FDE begins. */
static uint64_t cie_offset(const struct cfi *cfi, const struct record *record)
{
	return cfi->kind != CFI_DEBUG_FRAME ? record->id_at - record->id : record->id;
}

static bool is_cie(const struct cfi *cfi, const struct record *record)
{
	return cfi->kind != CFI_DEBUG_FRAME ? record->id == 0 : record->id == UINT64_MAX;
}

/*
 * An FDE may point at a CIE that stands behind it. One reading finds all CIEs, a second one the
 * FDEs.
 */
static struct error *read_pass(struct cfi *cfi, bool cies)
{
	struct bytes b = cfi->section;
	struct record record;

	while (bytes_left(&b) >= 4) {
		_cleanup_error_ struct error *err = read_record(&b, cfi->kind, &record);
		// Without its length, what follows a record cannot be found.
		if (err) {
			cfi->damaged += cies;
			return NULL;
		}
		// A linker may leave a terminator between two inputs. It is the end only where
		// nothing else tells the end.
		if (record.end && cfi->kind == CFI_EH_FRAME_OPEN)
			return NULL;
		if (record.end || is_cie(cfi, &record) != cies)
			continue;
		if (cies) {
			TRY(read_cie(cfi, record.offset, record.body));
			continue;
		}
		uint32_t number;
		TRY(ARRAY_RESERVE(cfi->fdes, cfi->fde_room, cfi->fde_count, 1, CFI_FDES_MAX,
				  "FDEs"));
		if (find_cie(cfi, cie_offset(cfi, &record), &number) && cfi->cies[number].usable)
			err = read_fde(cfi, &record, number);
		else
			err = bytes_error(&record.body, "no usable CIE");
		if (err)
			cfi->damaged++;
	}
	return NULL;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct cfi_fde *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	// Of two FDEs of one start, that which comes first in the file.
	return left->program < right->program ? -1 : left->program > right->program;
}

struct error *cfi_read(struct bytes section, uint64_t addr, enum cfi_kind kind, struct cfi *ret)
{
	_cleanup_(cfi_deinit) struct cfi cfi = {.section = section, .addr = addr, .kind = kind};

	TRY(read_pass(&cfi, true));
	TRY(read_pass(&cfi, false));
	bool sorted = true;
	for (size_t i = 1; sorted && i < cfi.fde_count; i++)
		sorted = compare_fdes(&cfi.fdes[i - 1], &cfi.fdes[i]) < 0;
	if (!sorted)
		qsort(cfi.fdes, cfi.fde_count, sizeof(*cfi.fdes), compare_fdes);
	*ret = take_struct(cfi);
	return NULL;
}
