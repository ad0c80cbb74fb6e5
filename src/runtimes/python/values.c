/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/values.h"

#include <inttypes.h>

#include "runtimes/python/containers.h"
#include "runtimes/python/described.h"
#include "runtimes/python/instances.h"
#include "runtimes/python/literals.h"
#include "runtimes/python/numbers.h"
#include "runtimes/python/print.h"

const struct python_value_limits python_value_line = {
	.depth = 3,
	.items = 8,
	.characters = 80,
	.attributes = 0,
	.reads = 2000,
};

const struct python_value_limits python_value_more = {
	.depth = 5,
	.items = 64,
	.characters = 1024,
	.attributes = 32,
	.reads = 50000,
};

bool python_print_enter(struct python_print *print, uint64_t addr, const char *otherwise)
{
	bool known = false;

	for (unsigned i = 0; i < print->depth; i++)
		known |= print->path[i] == addr;
	if (known || print->depth >= print->limits.depth ||
	    print->depth >= PYTHON_PRINT_DEPTH_MAX) {
		python_out_add(&print->out, otherwise);
		return false;
	}
	print->path[print->depth++] = addr;
	return true;
}

void python_print_leave(struct python_print *print)
{
	print->depth--;
}

void python_print_unreadable(struct python_print *print, uint64_t addr)
{
	python_out_addf(&print->out, "<unreadable at 0x%" PRIx64 ">", addr);
}

enum form {
	FORM_described,
	FORM_constant,
	FORM_number,
	FORM_literal,
	FORM_container,
};

static const enum form forms[PYTHON_KINDS] = {
	[PYTHON_KIND_none] = FORM_constant,
	[PYTHON_KIND_ellipsis] = FORM_constant,
	[PYTHON_KIND_not_implemented] = FORM_constant,
	[PYTHON_KIND_bool] = FORM_number,
	[PYTHON_KIND_small] = FORM_number,
	[PYTHON_KIND_long] = FORM_number,
	[PYTHON_KIND_float] = FORM_number,
	[PYTHON_KIND_complex] = FORM_number,
	[PYTHON_KIND_text] = FORM_literal,
	[PYTHON_KIND_bytes] = FORM_literal,
	[PYTHON_KIND_bytearray] = FORM_literal,
	[PYTHON_KIND_tuple] = FORM_container,
	[PYTHON_KIND_list] = FORM_container,
	[PYTHON_KIND_dict] = FORM_container,
	[PYTHON_KIND_set] = FORM_container,
	[PYTHON_KIND_frozenset] = FORM_container,
};

static const char *constant(enum python_kind kind)
{
	return kind == PYTHON_KIND_none       ? "None"
	       : kind == PYTHON_KIND_ellipsis ? "Ellipsis"
					      : "NotImplemented";
}

/* What TYPE is made of, as the language writes it. */
static void print_form(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	switch (forms[type->kind]) {
	case FORM_described:
		python_described_print(print, addr, type);
		break;
	case FORM_constant:
		python_out_add(&print->out, constant(type->kind));
		break;
	case FORM_number:
		if (!python_number_print(&print->heap, addr, type->kind, &print->out))
			python_print_unreadable(print, addr);
		break;
	case FORM_literal:
		python_literal_print(print, addr, type->kind);
		break;
	case FORM_container:
		python_container_print(print, addr, type->kind);
		break;
	}
}

void python_print_value(struct python_print *print, uint64_t addr)
{
	char name[PYTHON_TYPE_NAME_MAX];
	struct python_type type;

	if (!print->heap.reads_left)
		print->out.full = true;
	if (print->out.full)
		return;
	if (!python_heap_type(&print->heap, addr, &type)) {
		python_print_unreadable(print, addr);
		return;
	}
	// An instance of a class that was made of a built-in one: as if it were made anew.
	bool wrapped = !type.exact && forms[type.kind] != FORM_described;
	if (wrapped) {
		python_type_name(&print->heap, &type, name);
		python_out_addf(&print->out, "%s(", name);
	}
	print_form(print, addr, &type);
	python_out_add(&print->out, wrapped ? ")" : "");
}

size_t python_value_print(const struct python_values *from, uint64_t addr, char *to, size_t size)
{
	struct python_print print = {.limits = *from->limits, .out = python_out_init(to, size)};

	python_heap_init(&print.heap, from->memory, from->offsets, print.limits.reads);
	python_print_value(&print, addr);
	return python_out_end(&print.out);
}
