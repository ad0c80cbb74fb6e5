/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF of one object through libdw: what is opened, what is cached, what is refused. */
#define LOG_DOMAIN "symbolize"
#include "symbolize/debuginfo.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "symbolize/dies.h"

/* Rough sizes of what libdw keeps of each, measured with elfutils 0.188. */
enum { LINE_ROW_BYTES = 56, UNIT_BYTES = 1024 };

/* A unit in which something was looked up. */
struct unit {
	Dwarf_Off offset; /* of its entry */
	struct die_ranges functions;
	bool lines; /* its line program may be read */
};

struct debuginfo {
	Dwarf *dwarf;
	Dwarf *alt;                /* NULL: it needs none */
	struct object *alt_object; /* what alt reads from */
	Elf_Data *line_data;       /* .debug_line; owned by libelf */
	struct unit *unit;         /* sorted by offset */
	size_t unit_count, unit_room;
	struct die_ranges ranges; /* of all units, made when .debug_aranges did not help */
	bool ranges_known;
	size_t bytes;     /* estimate of what libelf and libdw hold */
	uint64_t used_ns; /* spent on looking up */
};

void debuginfo_free(struct debuginfo *info)
{
	if (!info)
		return;
	if (info->dwarf)
		dwarf_end(info->dwarf);
	if (info->alt)
		dwarf_end(info->alt);
	object_free(info->alt_object);
	for (size_t i = 0; i < info->unit_count; i++)
		die_ranges_deinit(&info->unit[i].functions);
	free(info->unit);
	die_ranges_deinit(&info->ranges);
	free(info);
}

size_t debuginfo_bytes(const struct debuginfo *info)
{
	size_t bytes = sizeof(*info) + info->bytes + info->unit_room * sizeof(*info->unit) +
		       info->ranges.room * sizeof(*info->ranges.range);

	for (size_t i = 0; i < info->unit_count; i++)
		bytes += info->unit[i].functions.room * sizeof(struct die_range);
	return bytes;
}

/* Bytes that libdw will hold of SECTION once it is unpacked. */
static uint64_t section_bytes(Elf_Scn *scn, const GElf_Shdr *section, const char *name)
{
	GElf_Chdr packed;
	uint64_t bytes = 0;

	if (section->sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(scn, &packed) ? packed.ch_size : UINT64_MAX;
	if (!str_starts(name, ".zdebug_"))
		return section->sh_size;
	// "ZLIB" and the size, big-endian.
	const Elf_Data *data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf || data->d_size < 12)
		return UINT64_MAX;
	for (int i = 4; i < 12; i++)
		bytes = bytes << 8 | ((const uint8_t *)data->d_buf)[i];
	return bytes;
}

/* The size of all debug sections together. False: there are no entries among them, or the size is
 * beyond the limit. */
static bool measure(Elf *elf, uint64_t *ret)
{
	uint64_t total = 0;
	bool entries = false;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr section;
		const char *name = NULL;
		if (gelf_getshdr(scn, &section))
			name = elf_strptr(elf, names, section.sh_name);
		if (!name || section.sh_type == SHT_NOBITS ||
		    (!str_starts(name, ".debug_") && !str_starts(name, ".zdebug_")))
			continue;
		uint64_t bytes = section_bytes(scn, &section, name);
		if (bytes > DEBUGINFO_BYTES - total)
			return false;
		total += bytes;
		entries |= str_ends(name, "debug_info");
	}
	*ret = total;
	return entries;
}

static Elf_Data *find_line_data(Elf *elf)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr section;
		const char *name = NULL;
		if (gelf_getshdr(scn, &section))
			name = elf_strptr(elf, names, section.sh_name);
		if (name && section.sh_type != SHT_NOBITS &&
		    (!strcmp(name, ".debug_line") || !strcmp(name, ".zdebug_line")))
			return elf_getdata(scn, NULL);
	}
	return NULL;
}

/*
 * Give libdw the shared file that entries of this one refer to. Left alone it would open the path
 * that stands in the file. False: it needs one that is not there, so that the entries must not be
 * touched.
 */
static struct error *join_alt(struct debuginfo *info, const struct debugfile_search *search,
			      struct object *object, bool *ret_usable)
{
	struct debugfile_alt wanted = {0};
	const char *nested;
	const void *build_id;
	uint64_t bytes;

	ssize_t size = dwelf_dwarf_gnu_debugaltlink(info->dwarf, &wanted.name, &build_id);
	*ret_usable = size == 0;
	if (size <= 0)
		return NULL;
	wanted.build_id = build_id;
	wanted.build_id_size = (size_t)size;
	TRY(debugfile_open_alt(search, object, &wanted, &info->alt_object));
	Elf *elf = info->alt_object ? object_elf(info->alt_object) : NULL;
	if (!elf || !measure(elf, &bytes))
		return NULL;
	info->alt = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	// One that refers to yet another file would have that opened.
	if (!info->alt || dwelf_dwarf_gnu_debugaltlink(info->alt, &nested, &build_id) != 0)
		return NULL;
	dwarf_setalt(info->dwarf, info->alt);
	info->bytes += bytes;
	*ret_usable = true;
	return NULL;
}

struct error *debuginfo_open(const struct debugfile_search *search, struct object *object,
			     struct debuginfo **ret)
{
	struct debuginfo *info;
	uint64_t bytes;
	bool usable;

	*ret = NULL;
	Elf *elf = object_elf(object);
	if (!elf || !measure(elf, &bytes))
		return NULL;
	info = calloc(1, sizeof(*info));
	if (!info)
		return error_oom();
	info->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!info->dwarf) {
		log_debug("no DWARF object=%s error=\"%s\"", object_name(object), dwarf_errmsg(-1));
		debuginfo_free(info);
		return NULL;
	}
	info->bytes = bytes;
	struct error *err = join_alt(info, search, object, &usable);
	if (err || !usable) {
		debuginfo_free(info);
		return err;
	}
	info->line_data = find_line_data(elf);
	*ret = info;
	return NULL;
}

/* The address ranges of all units, from their entries. */
static struct error *list_units(struct debuginfo *info)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die;

	info->ranges_known = true;
	for (unsigned i = 0; i < DEBUGINFO_UNITS; i++) {
		// The last argument stays NULL: asking for it would open a .dwo file.
		if (dwarf_get_units(info->dwarf, cu, &cu, &version, &type, &die, NULL) != 0)
			break;
		info->bytes += UNIT_BYTES;
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			TRY(die_ranges_add(&info->ranges, &die));
	}
	die_ranges_sort(&info->ranges);
	return NULL;
}

/* The unit that holds ADDR: by .debug_aranges, which not every compiler writes, then by the
 * entries of all units. */
static struct error *find_die(struct debuginfo *info, uint64_t addr, Dwarf_Die *ret,
			      bool *ret_found)
{
	Dwarf_Aranges *aranges;
	Dwarf_Off offset;

	*ret_found =
		!dwarf_getaranges(info->dwarf, &aranges, NULL) &&
		!dwarf_getarangeinfo(dwarf_getarange_addr(aranges, addr), NULL, NULL, &offset) &&
		dwarf_offdie(info->dwarf, offset, ret);
	if (*ret_found)
		return NULL;
	if (!info->ranges_known)
		TRY(list_units(info));
	const struct die_range *range = die_ranges_find(&info->ranges, addr);
	*ret_found = range && dwarf_offdie(info->dwarf, range->offset, ret);
	return NULL;
}

/* Is the line program of the unit of DIE small enough to be unpacked into rows? */
static bool lines_fit(const struct debuginfo *info, Dwarf_Die *die)
{
	uint64_t offset, bytes;
	uint32_t narrow = 0;

	if (!info->line_data || !info->line_data->d_buf ||
	    !die_number(die, DW_AT_stmt_list, &offset))
		return false;
	struct bytes b = bytes_over(info->line_data->d_buf, info->line_data->d_size, ".debug_line");
	// Only the size matters here: a byte order that is not ours makes it large or absurd.
	struct error *err = bytes_seek(&b, offset);
	if (!err)
		err = bytes_u32(&b, &narrow);
	bytes = narrow;
	if (!err && narrow == UINT32_MAX)
		err = bytes_u64(&b, &bytes);
	error_free(err); // damaged: no lines
	return !err && bytes <= DEBUGINFO_LINE_BYTES;
}

/* Units split off into a .dwo file have nothing but a skeleton here. */
static bool is_skeleton(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_dwo_name) || dwarf_hasattr(die, DW_AT_GNU_dwo_name);
}

static struct die_limit limit_of(unsigned entries)
{
	return (struct die_limit){.entries = entries,
				  .deadline_ns =
					  clock_monotonic_ns() + DEBUGINFO_LOOKUP_MS * 1000000ull};
}

static struct error *add_unit(struct debuginfo *info, Dwarf_Die *die, size_t at)
{
	struct unit unit = {.offset = dwarf_dieoffset(die), .lines = lines_fit(info, die)};
	Dwarf_Lines *lines;
	size_t count;

	TRY(ARRAY_RESERVE(info->unit, info->unit_room, info->unit_count, 1, DEBUGINFO_UNITS,
			  "units of DWARF"));
	struct error *err = NULL;
	if (!is_skeleton(die))
		err = die_list_functions(die, limit_of(DEBUGINFO_ENTRIES), &unit.functions);
	if (err) {
		die_ranges_deinit(&unit.functions);
		return err;
	}
	unit.lines = unit.lines && !dwarf_getsrclines(die, &lines, &count);
	if (unit.lines)
		info->bytes += count * LINE_ROW_BYTES;
	memmove(info->unit + at + 1, info->unit + at,
		(info->unit_count - at) * sizeof(*info->unit));
	info->unit[at] = unit;
	info->unit_count++;
	return NULL;
}

/* What is cached of the unit of DIE. */
static struct error *get_unit(struct debuginfo *info, Dwarf_Die *die, const struct unit **ret)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	size_t low = 0, high = info->unit_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (info->unit[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == info->unit_count || info->unit[low].offset != offset)
		TRY(add_unit(info, die, low));
	*ret = &info->unit[low];
	return NULL;
}

/* Languages whose names need no scope. */
static bool is_flat(Dwarf_Die *unit)
{
	int language = dwarf_srclang(unit);

	return language == DW_LANG_C89 || language == DW_LANG_C || language == DW_LANG_C99 ||
	       language == DW_LANG_C11 || language == DW_LANG_Mips_Assembler;
}

/* File and line of ADDR. */
static void find_line(Dwarf_Die *unit, uint64_t addr, struct debuginfo_call *call)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, addr);
	int number;

	if (!line)
		return;
	call->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		call->line = (uint32_t)number;
}

/* File and line of the call that DIE, inlined, stands for: where its caller was. */
static void find_call_line(Dwarf_Die *unit, Dwarf_Die *die, struct debuginfo_call *call)
{
	uint64_t file, line;
	Dwarf_Files *files;
	size_t count;

	if (die_number(die, DW_AT_call_line, &line) && line <= UINT32_MAX)
		call->line = (uint32_t)line;
	if (die_number(die, DW_AT_call_file, &file) &&
	    dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count)
		call->file = dwarf_filesrc(files, file, NULL, NULL);
}

static struct error *name_call(Dwarf_Die *unit, Dwarf_Die *die, struct debuginfo_call *call)
{
	Dwarf_Die named;

	die_names(die, &call->linkage_name, &call->name, &named);
	if (!call->linkage_name && call->name && !is_flat(unit))
		TRY(die_scoped_name(&named, call->name, &call->scoped_name));
	return NULL;
}

void debuginfo_calls_deinit(struct debuginfo_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(take(calls[i].scoped_name));
}

/* Fill RET from DIES, which are outermost first. */
static struct error *describe(const struct unit *unit, Dwarf_Die *unit_die, Dwarf_Die *dies,
			      size_t count, struct debuginfo_call *ret)
{
	for (size_t i = 0; i < count; i++) {
		struct debuginfo_call *call = &ret[count - 1 - i];
		TRY(name_call(unit_die, &dies[i], call));
		if (i + 1 < count && unit->lines)
			find_call_line(unit_die, &dies[i + 1], call);
	}
	return NULL;
}

static struct error *find_calls(struct debuginfo *info, uint64_t addr, size_t max,
				struct debuginfo_call *ret, size_t *ret_count)
{
	_cleanup_free_ Dwarf_Die *dies = calloc(max, sizeof(*dies));
	const struct unit *unit;
	Dwarf_Die unit_die, function;
	bool found;
	size_t count = 1;

	if (!dies)
		return error_oom();
	TRY(find_die(info, addr, &unit_die, &found));
	if (!found)
		return NULL;
	TRY(get_unit(info, &unit_die, &unit));
	memset(ret, 0, max * sizeof(*ret));
	const struct die_range *range = die_ranges_find(&unit->functions, addr);
	if (range && dwarf_offdie(info->dwarf, range->offset, &function)) {
		count = die_calls(&function, addr, limit_of(DEBUGINFO_LOOKUP), max, dies);
		ret[count - 1].start = range->start;
		struct error *err = describe(unit, &unit_die, dies, count, ret);
		if (err) {
			debuginfo_calls_deinit(ret, count);
			return err;
		}
	}
	if (unit->lines)
		find_line(&unit_die, addr, &ret[0]);
	// With DWARF 5 libdw leaves out the directory of the compilation.
	const char *dir = die_text(&unit_die, DW_AT_comp_dir);
	for (size_t i = 0; i < count; i++)
		ret[i].dir = dir;
	*ret_count = count;
	return NULL;
}

struct error *debuginfo_find(struct debuginfo *info, uint64_t addr, size_t max,
			     struct debuginfo_call *ret, size_t *ret_count)
{
	uint64_t start_ns = clock_monotonic_ns();

	*ret_count = 0;
	if (info->used_ns > DEBUGINFO_TOTAL_MS * 1000000ull)
		return NULL;
	struct error *err = find_calls(info, addr, max, ret, ret_count);
	info->used_ns += clock_monotonic_ns() - start_ns;
	return err;
}
