/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/python/described.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtimes/python/containers.h"
#include "runtimes/python/dicts.h"
#include "runtimes/python/instances.h"
#include "runtimes/python/numbers.h"
#include "runtimes/python/text.h"

enum {
	NAME_MAX_BYTES = 256,
	DIMENSIONS_MAX = 64, /* numpy's own limit, NPY_MAXDIMS, since 2.0 */
};

/* "<WHAT NAME at 0x…>" with the string at the member OFFSET of ADDR; no name if there is none. */
static void print_named(struct python_print *print, const char *what, uint64_t addr,
			uint32_t offset)
{
	char name[NAME_MAX_BYTES] = "";
	uint64_t text;

	if (python_heap_u64(&print->heap, addr, offset, &text))
		python_text_read(&print->heap.memory, print->heap.offsets, text, name,
				 sizeof(name));
	python_out_addf(&print->out, "<%s%s%s at 0x%" PRIx64 ">", what, name[0] ? " " : "", name,
			addr);
}

static void print_type(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	char name[PYTHON_TYPE_NAME_MAX];
	struct python_type class;

	if (!python_heap_type_at(&print->heap, addr, &class)) {
		python_print_unreadable(print, addr);
		return;
	}
	python_type_name(&print->heap, &class, name);
	python_out_addf(&print->out, "<class '%s'>", name);
}

/* A class of the old kind, and its name in RET. 2.7, Include/classobject.h: cl_bases, cl_dict,
 * cl_name. */
static void old_class_name(struct python_print *print, uint64_t addr, char *ret, size_t size)
{
	const struct python_offsets *at = print->heap.offsets;
	char module[NAME_MAX_BYTES / 2] = "", name[NAME_MAX_BYTES / 2] = "?";
	uint64_t dict, text;

	if (python_heap_u64(&print->heap, addr, at->object_header + 8, &dict) &&
	    python_dict_find(&print->heap, dict, "__module__", &text) == PYTHON_FIND_found)
		python_text_read(&print->heap.memory, at, text, module, sizeof(module));
	if (python_heap_u64(&print->heap, addr, at->object_header + 16, &text))
		python_text_read(&print->heap.memory, at, text, name, sizeof(name));
	snprintf(ret, size, "%s%s%s", module, module[0] ? "." : "", name);
}

static void print_module(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	const struct python_offsets *at = print->heap.offsets;
	char name[NAME_MAX_BYTES] = "?";
	uint64_t dict, text;

	if (python_heap_u64(&print->heap, addr, at->module_dict, &dict) &&
	    python_dict_find(&print->heap, dict, "__name__", &text) == PYTHON_FIND_found)
		python_text_read(&print->heap.memory, at, text, name, sizeof(name));
	python_out_addf(&print->out, "<module '%s'>", name);
}

static void print_builtin(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	const struct python_offsets *at = print->heap.offsets;
	char name[64] = "?", owner[PYTHON_TYPE_NAME_MAX];
	uint64_t definition, text, self = 0;
	struct python_type of;

	if (python_heap_u64(&print->heap, addr, at->builtin_definition, &definition) &&
	    python_heap_u64(&print->heap, definition, 0, &text) &&
	    !python_heap_string(&print->heap, text, name, sizeof(name)))
		snprintf(name, sizeof(name), "?");
	if (!python_heap_u64(&print->heap, addr, at->builtin_self, &self) || !self ||
	    !python_heap_type(&print->heap, self, &of) || of.kind == PYTHON_KIND_module) {
		python_out_addf(&print->out, "<built-in function %s>", name);
		return;
	}
	python_type_name(&print->heap, &of, owner);
	python_out_addf(&print->out, "<built-in method %s of %s object at 0x%" PRIx64 ">", name,
			owner, self);
}

static void print_method(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	const struct python_offsets *at = print->heap.offsets;
	uint32_t offset =
		at->function_qualname == PYTHON_ABSENT ? at->function_name : at->function_qualname;
	char name[NAME_MAX_BYTES] = "?";
	uint64_t function, text, self;
	struct python_type of;

	if (python_heap_u64(&print->heap, addr, at->method_function, &function) &&
	    python_heap_type(&print->heap, function, &of) && of.kind == PYTHON_KIND_function &&
	    python_heap_u64(&print->heap, function, offset, &text))
		python_text_read(&print->heap.memory, at, text, name, sizeof(name));
	// A method of 2.7 that was taken from its class has no object.
	if (!python_heap_u64(&print->heap, addr, at->method_self, &self) || !self) {
		python_out_addf(&print->out, "<unbound method %s>", name);
		return;
	}
	python_out_addf(&print->out, "<bound method %s of ", name);
	if (python_print_enter(print, addr, ELLIPSIS)) {
		python_print_value(print, self);
		python_print_leave(print);
	}
	python_out_add(&print->out, ">");
}

/* "<coroutine object NAME at 0x…>"; 2.7 has the name in the frame's code alone. */
static void print_generator(struct python_print *print, uint64_t addr,
			    const struct python_type *type)
{
	const struct python_offsets *at = print->heap.offsets;
	const char *what = type->kind == PYTHON_KIND_generator   ? "generator object"
			   : type->kind == PYTHON_KIND_coroutine ? "coroutine object"
								 : "async_generator object";
	uint64_t frame, code;

	if (at->generator_qualname != PYTHON_ABSENT)
		print_named(print, what, addr, at->generator_qualname);
	else if (python_heap_u64(&print->heap, addr, at->generator_frame, &frame) &&
		 python_heap_u64(&print->heap, frame, at->frame_code, &code))
		print_named(print, what, code, at->code_name);
	else
		print_named(print, what, addr, PYTHON_ABSENT);
}

/* What another object stands for: "<WHAT: value>". */
static void print_holder(struct python_print *print, const char *what, uint64_t addr,
			 uint32_t offset)
{
	uint64_t value = 0;

	if (!python_heap_u64(&print->heap, addr, offset, &value)) {
		python_print_unreadable(print, addr);
		return;
	}
	python_out_addf(&print->out, "<%s", what);
	if (!value) {
		python_out_add(&print->out, ": empty>");
		return;
	}
	if (python_print_enter(print, addr, ELLIPSIS)) {
		python_out_add(&print->out, ": ");
		python_print_value(print, value);
		python_print_leave(print);
	}
	python_out_add(&print->out, ">");
}

struct attributes {
	struct python_print *print;
	uint64_t shown, count;
};

static bool print_attribute(void *context, const struct python_attribute *attribute)
{
	struct attributes *attributes = context;
	struct python_print *print = attributes->print;

	if (attributes->count++ >= print->limits.attributes)
		return true;
	attributes->shown++;
	python_out_addf(&print->out, "%s%s=", attributes->shown == 1 ? " " : ", ", attribute->name);
	python_print_value(print, attribute->value);
	return !print->out.full;
}

static void print_attributes(struct python_print *print, uint64_t addr,
			     const struct python_type *type)
{
	struct attributes attributes = {.print = print};

	if (!print->limits.attributes || !python_print_enter(print, addr, " " ELLIPSIS))
		return;
	if (!python_attributes(&print->heap, addr, type, print_attribute, &attributes))
		python_out_add(&print->out, " <unreadable>");
	python_print_leave(print);
	if (attributes.shown < attributes.count)
		python_out_addf(&print->out, "%s" ELLIPSIS " %" PRIu64 " more",
				attributes.shown ? ", " : " ", attributes.count - attributes.shown);
}

static void print_instance(struct python_print *print, uint64_t addr,
			   const struct python_type *type)
{
	char name[NAME_MAX_BYTES] = "?";
	uint64_t class;

	// 2.7, Include/classobject.h: in_class, in_dict.
	if (type->kind != PYTHON_KIND_old_instance)
		python_type_name(&print->heap, type, name);
	else if (python_heap_u64(&print->heap, addr, print->heap.offsets->object_header, &class))
		old_class_name(print, class, name, sizeof(name));
	python_out_addf(&print->out, "<%s at 0x%" PRIx64, name, addr);
	print_attributes(print, addr, type);
	python_out_add(&print->out, ">");
}

/* "KeyError('x')": how it was made. */
static void print_exception(struct python_print *print, uint64_t addr,
			    const struct python_type *type)
{
	char name[PYTHON_TYPE_NAME_MAX];
	struct python_type args_type;
	uint64_t args, count;

	python_type_name(&print->heap, type, name);
	if (!python_heap_u64(&print->heap, addr, print->heap.offsets->exception_args, &args) ||
	    !python_heap_type(&print->heap, args, &args_type) ||
	    args_type.kind != PYTHON_KIND_tuple) {
		print_instance(print, addr, type);
		return;
	}
	python_out_addf(&print->out, "%s(", name);
	if (python_print_enter(print, addr, ELLIPSIS)) {
		if (!python_tuple_items_print(print, args, &count))
			python_out_add(&print->out, "<unreadable>");
		python_print_leave(print);
	}
	python_out_add(&print->out, ")");
}

/*
 * "<numpy.ndarray float64 (3, 4) at 0x…>". The begin of PyArrayObject is the same in all versions
 * of numpy (ndarraytypes.h, PyArrayObject_fields): data, int nd, dimensions, strides, base, descr;
 * that of PyArray_Descr is the type of an item.
 */
static void print_array(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	uint32_t header = print->heap.offsets->object_header, count = 0;
	char name[PYTHON_TYPE_NAME_MAX], item[PYTHON_TYPE_NAME_MAX] = "?";
	uint64_t dimensions, descr, item_type, length;
	struct python_type of;

	python_type_name(&print->heap, type, name);
	if (python_heap_u64(&print->heap, addr, header + 40, &descr) &&
	    python_heap_u64(&print->heap, descr, header, &item_type) &&
	    python_heap_type_at(&print->heap, item_type, &of))
		python_type_name(&print->heap, &of, item);
	python_out_addf(&print->out, "<%s %s (", name,
			strncmp(item, "numpy.", 6) != 0 ? item : item + 6);
	if (!python_heap_u32(&print->heap, addr, header + 8, &count) || count > DIMENSIONS_MAX ||
	    !python_heap_u64(&print->heap, addr, header + 16, &dimensions))
		count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!python_heap_u64(&print->heap, dimensions, i * 8, &length))
			break;
		python_out_addf(&print->out, "%s%" PRIu64, i ? ", " : "", length);
	}
	python_out_addf(&print->out, "%s) at 0x%" PRIx64 ">", count == 1 ? "," : "", addr);
}

static void print_old_class(struct python_print *print, uint64_t addr,
			    const struct python_type *type)
{
	char name[NAME_MAX_BYTES];

	old_class_name(print, addr, name, sizeof(name));
	python_out_addf(&print->out, "<class '%s'>", name);
}

static void print_range(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	uint32_t header = print->heap.offsets->object_header;
	struct python_type of;
	uint64_t step, value = 0;
	bool by_one = python_heap_u64(&print->heap, addr, header + 16, &step) &&
		      python_heap_type(&print->heap, step, &of) &&
		      python_int_u64(&print->heap, step, of.kind, &value) && value == 1;

	// Objects/rangeobject.c and Include/sliceobject.h: start, stop, step.
	python_members_print(print, addr, "range", by_one ? 2 : 3);
}

static void print_slice(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	python_members_print(print, addr, "slice", 3);
}

static void print_proxy(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	python_members_print(print, addr, "mappingproxy", 1);
}

static void print_function(struct python_print *print, uint64_t addr,
			   const struct python_type *type)
{
	const struct python_offsets *at = print->heap.offsets;

	print_named(print, "function", addr,
		    at->function_qualname == PYTHON_ABSENT ? at->function_name
							   : at->function_qualname);
}

static void print_code(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	const struct python_offsets *at = print->heap.offsets;

	print_named(print, "code object", addr,
		    at->code_qualname == PYTHON_ABSENT ? at->code_name : at->code_qualname);
}

static void print_cell(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	print_holder(print, "cell", addr, print->heap.offsets->cell_value);
}

static void print_weakref(struct python_print *print, uint64_t addr, const struct python_type *type)
{
	print_holder(print, "weakref", addr, print->heap.offsets->weakref_object);
}

typedef void print_fn(struct python_print *print, uint64_t addr, const struct python_type *type);

/* What is not here is an instance. */
static print_fn *const printers[PYTHON_KINDS] = {
	[PYTHON_KIND_range] = print_range,         [PYTHON_KIND_slice] = print_slice,
	[PYTHON_KIND_mapping_proxy] = print_proxy, [PYTHON_KIND_type] = print_type,
	[PYTHON_KIND_old_class] = print_old_class, [PYTHON_KIND_exception] = print_exception,
	[PYTHON_KIND_module] = print_module,       [PYTHON_KIND_function] = print_function,
	[PYTHON_KIND_builtin] = print_builtin,     [PYTHON_KIND_method] = print_method,
	[PYTHON_KIND_code] = print_code,           [PYTHON_KIND_cell] = print_cell,
	[PYTHON_KIND_weakref] = print_weakref,     [PYTHON_KIND_generator] = print_generator,
	[PYTHON_KIND_coroutine] = print_generator, [PYTHON_KIND_async_generator] = print_generator,
	[PYTHON_KIND_array] = print_array,
};

void python_described_print(struct python_print *print, uint64_t addr,
			    const struct python_type *type)
{
	print_fn *printer = printers[type->kind];

	(printer ? printer : print_instance)(print, addr, type);
}
