// SPDX-License-Identifier: Apache-2.0
/* Finding CPython in an object file: by its symbols, and without those by data that it has. */
#include "runtimes/python/find.h"

#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "object/arch.h"
#include "object/object.h"
#include "object/symbols.h"
#include "runtimes/python/dispatch.h"
#include "runtimes/python/evaluator.h"
#include "runtimes/python/hidden.h"

/* Symbols of interest. A version is told by the newest name that it has, of those that are in its
 * stable or documented interface (docs.python.org, "New in version"). */
#define SYMBOLS(X)                                                                                 \
	X(runtime, "_PyRuntime")                                                                   \
	X(current, "_PyThreadState_Current")                                                       \
	X(head, "interp_head")                                                                     \
	X(head_getter, "PyInterpreterState_Head")                                                  \
	X(code_type, "PyCode_Type")                                                                \
	X(evaluator, "_PyEval_EvalFrameDefault")                                                   \
	X(evaluator_old, "PyEval_EvalFrameEx")                                                     \
	X(version, "Py_Version")                                                                   \
	X(since_2_7, "PyCapsule_New")                                                              \
	X(until_2_7, "PyString_Type")                                                              \
	X(since_3_5, "PyModule_FromDefAndSpec2")                                                   \
	X(since_3_6, "PyOS_FSPath")                                                                \
	X(since_3_7, "PyContextVar_New")                                                           \
	X(since_3_8, "PyConfig_InitPythonConfig")                                                  \
	X(since_3_9, "PyFrame_GetCode")                                                            \
	X(since_3_10, "PyModule_AddObjectRef")                                                     \
	X(unicode_4, "PyUnicodeUCS4_DecodeUTF8")                                                   \
	X(unicode_2, "PyUnicodeUCS2_DecodeUTF8")

enum symbol_id {
#define ID(name, text) SYMBOL_##name,
	SYMBOLS(ID)
#undef ID
		SYMBOLS_COUNT
};

static const char *const names[SYMBOLS_COUNT] = {
#define NAME(name, text) [SYMBOL_##name] = text,
	SYMBOLS(NAME)
#undef NAME
};

struct names_found {
	struct object_symbol symbol[SYMBOLS_COUNT]; /* addr 0: there is none */
	struct python_object cold; /* its ranges: other parts of the evaluator that have symbols */
	struct python_range opcodes; /* functions of a tail-calling evaluator */
};

static uint64_t addr_of(const struct names_found *found, enum symbol_id id)
{
	return found->symbol[id].addr;
}

static void look_exported(const struct object_exports *exports, struct names_found *found)
{
	for (size_t i = 0; i < SYMBOLS_COUNT; i++)
		object_export_find(exports, names[i], &found->symbol[i]);
}

/* A symbol of the full table, which also has those that are not exported. */
static void look_at(void *context, const char *name, const struct object_symbol *symbol)
{
	struct names_found *found = context;

	for (size_t i = 0; i < SYMBOLS_COUNT; i++)
		if (!strcmp(name, names[i]) && symbol->addr)
			found->symbol[i] = *symbol;
	if (str_starts(name, "_PyEval_EvalFrameDefault.") ||
	    str_starts(name, "PyEval_EvalFrameEx."))
		python_evaluator_add(&found->cold, symbol->addr, symbol->size);
	// CPython 3.14, Python/ceval_macros.h: _TAIL_CALL_ before the name of an opcode.
	if (!str_starts(name, "_TAIL_CALL_") || !symbol->size ||
	    symbol->size > UINT64_MAX - symbol->addr)
		return;
	if (!found->opcodes.end || symbol->addr < found->opcodes.start)
		found->opcodes.start = symbol->addr;
	if (symbol->addr + symbol->size > found->opcodes.end)
		found->opcodes.end = symbol->addr + symbol->size;
}

/* PY_VERSION_HEX; 0: not told. */
static uint32_t version_told(struct object *object, const struct names_found *found)
{
	uint64_t addr = addr_of(found, SYMBOL_version), hex;

	// An unsigned long; 3.11 and later.
	if (addr && object_read(object, addr, &hex, sizeof(hex)) && hex <= UINT32_MAX)
		return (uint32_t)hex;
	return 0;
}

static uint16_t version_of(const struct names_found *found, uint32_t told)
{
	static const struct {
		uint16_t version;
		uint8_t id;
	} since[] = {
		{0x030a, SYMBOL_since_3_10}, {0x0309, SYMBOL_since_3_9}, {0x0308, SYMBOL_since_3_8},
		{0x0307, SYMBOL_since_3_7},  {0x0306, SYMBOL_since_3_6}, {0x0305, SYMBOL_since_3_5},
	};

	if (told)
		return (uint16_t)(told >> 16);
	if (addr_of(found, SYMBOL_until_2_7))
		return addr_of(found, SYMBOL_since_2_7) ? 0x0207 : 0;
	for (size_t i = 0; i < ARRAY_COUNT(since); i++)
		if (addr_of(found, since[i].id))
			return since[i].version;
	return 0;
}

/* interp_head of a stripped interpreter, by the function that returns it. */
static uint64_t find_head(struct object *object, const struct names_found *found)
{
	const struct arch *arch = arch_find(object_machine(object));
	uint64_t getter = addr_of(found, SYMBOL_head_getter), addr;
	uint8_t code[32];

	if (addr_of(found, SYMBOL_head))
		return addr_of(found, SYMBOL_head);
	if (!arch || !getter || !object_read(object, getter, code, sizeof(code)) ||
	    !arch->returned_variable(bytes_over(code, sizeof(code), "code"), getter, &addr))
		return 0;
	return addr;
}

static void find_evaluator(struct object *object, const struct names_found *found,
			   struct python_object *python)
{
	// Up to 3.5 PyEval_EvalFrameEx evaluates; since then (PEP 523) it calls what does.
	enum symbol_id id =
		addr_of(found, SYMBOL_evaluator) ? SYMBOL_evaluator : SYMBOL_evaluator_old;
	const struct object_symbol *main = &found->symbol[id];

	if (main->addr)
		python_evaluator_add(python, main->addr, main->size);
	if (!python->evals && !python_dispatch_find(object, python))
		return;
	if (found->opcodes.end)
		python_evaluator_add(python, found->opcodes.start,
				     found->opcodes.end - found->opcodes.start);
	for (uint32_t i = 0; i < found->cold.evals; i++)
		python_evaluator_add(python, found->cold.eval[i].start,
				     found->cold.eval[i].end - found->cold.eval[i].start);
	python_evaluator_follow(object, python);
}

/* Is OBJECT worth a look at all of its symbols? */
static bool looks_like_python(struct object *object, struct names_found *found,
			      struct python_hidden *hidden)
{
	struct object_exports exports;

	if (object_exports_open(object, &exports)) {
		struct object_symbol symbol;
		if (object_export_find(&exports, names[SYMBOL_runtime], &symbol) ||
		    object_export_find(&exports, names[SYMBOL_current], &symbol)) {
			look_exported(&exports, found);
			return true;
		}
	}
	return python_hidden_find(object, hidden);
}

/* What leads to the interpreters of PYTHON, of which the version is known. */
static void find_root(struct object *object, const struct names_found *found,
		      const struct python_hidden *hidden, struct python_object *python)
{
	if (python->version <= 0x0306) {
		python->interpreters = find_head(object, found);
		python->holder = addr_of(found, SYMBOL_current);
	} else {
		python->runtime = addr_of(found, SYMBOL_runtime);
		if (!python->runtime)
			python->runtime = hidden->runtime;
	}
	if (!python->runtime && !python->interpreters)
		python->data = hidden->data;
}

/* PyPy has the functions of CPython's C interface under names of its own (cpyext). */
static bool is_pypy(struct object *object)
{
	struct object_exports exports;
	struct object_symbol symbol;

	return object_exports_open(object, &exports) &&
	       object_export_find(&exports, "PyPy_DecRef", &symbol);
}

bool python_object_find(struct object *object, struct python_object *ret)
{
	struct names_found found = {0};
	struct python_hidden hidden = {0};

	if (!arch_find(object_machine(object)))
		return false;
	if (is_pypy(object)) {
		*ret = (struct python_object){.pypy = true};
		return true;
	}
	if (!looks_like_python(object, &found, &hidden))
		return false;
	object_symbols(object, look_at, &found);
	object_release(object);

	uint32_t told = version_told(object, &found);
	struct python_object python = {
		.version = version_of(&found, told),
		.version_hex = told,
		.code_type = addr_of(&found, SYMBOL_code_type),
	};
	if (!python.version)
		python.version = hidden.version;
	if (!python.version)
		return false;
	if (python.version == 0x0207)
		python.unicode_width = addr_of(&found, SYMBOL_unicode_4) ? 4 : 2;
	find_root(object, &found, &hidden, &python);
	if (!python.runtime && !python.interpreters && !python.data.end)
		return false;
	find_evaluator(object, &found, &python);
	object_release(object);
	*ret = python;
	return true;
}
