#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how CPython lays out its objects: python-layouts.py [--check | --write] FIELDS LAYOUTS [INCLUDE ...].

For each folder of headers (INCLUDE holds Python.h; without any, those of the interpreters found) a program is compiled
and run, once per build of that version, that prints an offset for each row of FIELDS (fields.def). --check compares
LAYOUTS (layouts.def) with them, --write writes it anew and keeps what it says of versions whose headers are not here.
With neither, what was measured is printed.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

LATEST = 0x030E
# The builds of a version that differ: first and last version, and the flags of those that must not. Py_DEBUG alone
# moves nothing, but brings Py_TRACE_REFS along up to 3.7 (bpo-36465); from 3.13 on traced objects have no links inside
# (gh-108634).
BUILDS = {
    "PLAIN": (0x0207, LATEST, [(0x0207, []), (0x0308, ["-DPy_DEBUG"])]),
    "TRACED": (0x0207, 0x030C, [(0x0207, ["-DPy_DEBUG", "-DPy_TRACE_REFS"]), (0x0308, ["-DPy_TRACE_REFS"])]),
    "FREE": (0x030D, LATEST, [(0x030D, ["-DPy_GIL_DISABLED"]), (0x030D, ["-DPy_GIL_DISABLED", "-DPy_DEBUG"])]),
}

# Where a version keeps its private headers.
HEADERS = [
    (0x0207, 0x0306, ["frameobject.h", "structmember.h", "code.h"]),
    (0x0307, 0x0307, ["frameobject.h", "internal/pystate.h"]),
    (0x0308, 0x030A, ["frameobject.h", "internal/pycore_pystate.h"]),
    (0x0309, 0x030A, ["internal/pycore_interp.h", "internal/pycore_runtime.h"]),
    (0x030B, LATEST, ["internal/pycore_interp.h", "internal/pycore_runtime.h", "internal/pycore_frame.h",
                      "internal/pycore_dict.h", "internal/pycore_object.h", "internal/pycore_gil.h"]),
    (0x030E, LATEST, ["internal/pycore_interpframe.h", "internal/pycore_tstate.h"]),
    (0x0305, 0x030B, ["longintrepr.h"]),
    (0x0207, 0x0207, ["longintrepr.h"]),
]

# What a version has in no header that it installs: Objects/dictobject.c (3.3 to 3.5), Objects/dict-common.h (3.6 to
# 3.10), Objects/moduleobject.c (up to 3.8).
PRIVATE = """
#if PY_VERSION_HEX >= 0x03060000 && PY_VERSION_HEX < 0x030b0000
struct keys { Py_ssize_t references, size; void *lookup; Py_ssize_t usable, nentries; char indices[]; };
struct entry { Py_hash_t hash; PyObject *key, *value; };
#elif PY_VERSION_HEX >= 0x03000000 && PY_VERSION_HEX < 0x03060000
struct entry { Py_hash_t hash; PyObject *key, *value; };
struct keys { Py_ssize_t references, size; void *lookup; Py_ssize_t usable; struct entry entries[]; };
#endif
struct module { PyObject_HEAD PyObject *dict; };
#if PY_VERSION_HEX >= 0x03000000
static unsigned bit(PyASCIIObject *object)
{
	unsigned word;

	memcpy(&word, (char *)object + offsetof(PyASCIIObject, state), sizeof(word));
	return word ? __builtin_ctz(word) : 99;
}
#endif
"""


def at(kind, member, first=0x0207, last=LATEST):
    return first, last, f"offsetof({kind}, {member})"


def value(text, first=0x0207, last=LATEST):
    return first, last, text


def bit(member):
    return value(f"({{ PyASCIIObject o = {{0}}; o.state.{member} = ~0; bit(&o); }})", 0x0305)


OLD, NEW = "PyFrameObject", "_PyInterpreterFrame"
CODE, TYPE, HEAP, THREAD, INTERP = "PyCodeObject", "PyTypeObject", "PyHeapTypeObject", "PyThreadState", "PyInterpreterState"
RUNTIME, KEYS, GIL = "_PyRuntimeState", "struct _dictkeysobject", "struct _gil_runtime_state"
ASCII, TEXT, OBJECT, VAR = "PyASCIIObject", "PyUnicodeObject", "PyObject", "PyVarObject"
GENERATOR, FUNCTION = "PyGenObject", "PyFunctionObject"

# Members that only some builds have.
ONLY = {"gil_enabled": ["FREE"], "frame_tlbc_index": ["FREE"], "code_tlbc": ["FREE"],
        "object_refcount": ["PLAIN", "TRACED"]}

FIELDS = {
    "runtime_interpreters": [at(RUNTIME, "interpreters.head", 0x0307)],
    "runtime_initialized": [at(RUNTIME, "initialized", 0x0307)],
    "runtime_finalizing": [at(RUNTIME, "finalizing", 0x0307, 0x0308), at(RUNTIME, "_finalizing", 0x0309)],
    "runtime_holder": [at(RUNTIME, "gilstate.tstate_current", 0x0307, 0x030B)],
    "runtime_gilstate_main": [at(RUNTIME, "gilstate.autoInterpreterState", 0x0307, 0x030B)],
    "interpreter_next": [at(INTERP, "next")],
    "interpreter_threads": [at(INTERP, "tstate_head", 0x0207, 0x030A), at(INTERP, "threads.head", 0x030B)],
    "interpreter_id": [at(INTERP, "id", 0x0307)],
    "interpreter_modules": [at(INTERP, "modules", 0x0207, 0x030B), at(INTERP, "imports.modules", 0x030C)],
    "interpreter_sysdict": [at(INTERP, "sysdict")],
    "interpreter_builtins": [at(INTERP, "builtins")],
    "interpreter_evaluator": [at(INTERP, "eval_frame", 0x0306, 0x030C)],
    "interpreter_gil": [at(INTERP, "ceval.gil", 0x030C)],
    "gil_holder": [at(GIL, "last_holder", 0x030C)],
    "gil_locked": [at(GIL, "locked", 0x030C)],
    "gil_enabled": [at(GIL, "enabled", 0x030D)],
    "thread_next": [at(THREAD, "next")],
    "thread_interpreter": [at(THREAD, "interp")],
    "thread_id": [at(THREAD, "thread_id")],
    "thread_native_id": [at(THREAD, "native_thread_id", 0x030B)],
    "thread_frame": [at(THREAD, "frame", 0x0207, 0x030A), at(THREAD, "cframe", 0x030B, 0x030C),
                     at(THREAD, "current_frame", 0x030D)],
    "thread_dict": [at(THREAD, "dict")],
    "thread_state": [at(THREAD, "state", 0x030D)],
    "thread_data_stack": [at(THREAD, "datastack_chunk", 0x030B)],
    "cframe_frame": [at("_PyCFrame", "current_frame", 0x030B, 0x030C)],
    "cframe_previous": [at("_PyCFrame", "previous", 0x030B, 0x030C)],
    "frame_code": [at(OLD, "f_code", 0x0207, 0x030A), at(NEW, "f_code", 0x030B, 0x030C),
                   at(NEW, "f_executable", 0x030D)],
    "frame_previous": [at(OLD, "f_back", 0x0207, 0x030A), at(NEW, "previous", 0x030B)],
    "frame_ip": [at(OLD, "f_lasti", 0x0207, 0x030A), at(NEW, "prev_instr", 0x030B, 0x030C),
                 at(NEW, "instr_ptr", 0x030D)],
    "frame_owner": [at(NEW, "is_entry", 0x030B, 0x030B), at(NEW, "owner", 0x030C)],
    "frame_tlbc_index": [at(NEW, "tlbc_index", 0x030E)],
    "frame_globals": [at(OLD, "f_globals", 0x0207, 0x030A), at(NEW, "f_globals", 0x030B)],
    "frame_builtins": [at(OLD, "f_builtins", 0x0207, 0x030A), at(NEW, "f_builtins", 0x030B)],
    "frame_locals": [at(OLD, "f_locals", 0x0207, 0x030A), at(NEW, "f_locals", 0x030B)],
    "frame_function": [at(NEW, "f_func", 0x030B, 0x030B), at(NEW, "f_funcobj", 0x030C)],
    "frame_object": [at(NEW, "frame_obj", 0x030B)],
    "frame_fast": [at(OLD, "f_localsplus", 0x0207, 0x030A), at(NEW, "localsplus", 0x030B)],
    "frame_stack": [at(OLD, "f_valuestack", 0x0207, 0x030A)],
    "frame_stack_top": [at(OLD, "f_stacktop", 0x0207, 0x0309), at(NEW, "stackpointer", 0x030E)],
    "frame_stack_depth": [at(OLD, "f_stackdepth", 0x030A, 0x030A), at(NEW, "stacktop", 0x030B, 0x030D)],
    "frame_generator": [at(OLD, "f_gen", 0x0305, 0x030A)],
    "frame_line": [at(OLD, "f_lineno", 0x0207, 0x030A)],
    # bpo-42693 is in 3.10: f_lasti counts instructions.
    "frame_lasti_unit": [value("1", 0x0207, 0x0309), value("2", 0x030A, 0x030A)],
    "code_argcount": [at(CODE, "co_argcount")],
    "code_posonly": [at(CODE, "co_posonlyargcount", 0x0308)],
    "code_kwonly": [at(CODE, "co_kwonlyargcount", 0x0305)],
    "code_flags": [at(CODE, "co_flags")],
    "code_nlocals": [at(CODE, "co_nlocals")],
    "code_stacksize": [at(CODE, "co_stacksize")],
    "code_varnames": [at(CODE, "co_varnames", 0x0207, 0x030A)],
    "code_cellvars": [at(CODE, "co_cellvars", 0x0207, 0x030A)],
    "code_freevars": [at(CODE, "co_freevars", 0x0207, 0x030A)],
    "code_cell_arguments": [at(CODE, "co_cell2arg", 0x0305, 0x030A)],
    "code_cell_argument_size": [value("sizeof(*((PyCodeObject *)0)->co_cell2arg)", 0x0305, 0x030A)],
    "code_local_names": [at(CODE, "co_localsplusnames", 0x030B)],
    "code_local_kinds": [at(CODE, "co_localspluskinds", 0x030B)],
    "code_locals": [at(CODE, "co_nlocalsplus", 0x030B)],
    "code_filename": [at(CODE, "co_filename")],
    "code_name": [at(CODE, "co_name")],
    "code_qualname": [at(CODE, "co_qualname", 0x030B)],
    "code_first_line": [at(CODE, "co_firstlineno")],
    "code_lines": [at(CODE, "co_lnotab", 0x0207, 0x0309), at(CODE, "co_linetable", 0x030A)],
    "code_code": [at(CODE, "co_code", 0x0207, 0x030A)],
    "code_bytes": [at(CODE, "co_code_adaptive", 0x030B)],
    "code_tlbc": [at(CODE, "co_tlbc", 0x030E)],
    "code_size": [at(VAR, "ob_size", 0x030B)],
    # Objects/codeobject.c: from 3.11 on the instructions are the items.
    "code_basicsize": [value("sizeof(PyCodeObject)", 0x0207, 0x030A), at(CODE, "co_code_adaptive", 0x030B)],
    "object_refcount": [at(OBJECT, "ob_refcnt")],
    "object_type": [at(OBJECT, "ob_type")],
    "object_header": [value("sizeof(PyObject)")],
    "type_name": [at(TYPE, "tp_name")],
    "type_basicsize": [at(TYPE, "tp_basicsize")],
    "type_itemsize": [at(TYPE, "tp_itemsize")],
    "type_flags": [at(TYPE, "tp_flags")],
    "type_base": [at(TYPE, "tp_base")],
    "type_mro": [at(TYPE, "tp_mro")],
    "type_dict": [at(TYPE, "tp_dict")],
    "type_dictoffset": [at(TYPE, "tp_dictoffset")],
    "type_heap_name": [at(HEAP, "ht_name")],
    "type_heap_qualname": [at(HEAP, "ht_qualname", 0x0305)],
    "type_heap_keys": [at(HEAP, "ht_cached_keys", 0x0305)],
    "type_flag_values": [value("Py_TPFLAGS_INLINE_VALUES", 0x030D)],
    "type_flag_dict": [value("Py_TPFLAGS_MANAGED_DICT", 0x030B)],
    "managed_values_before": [value("before(_PyObject_ValuesPointer)", 0x030B, 0x030B),
                              value("before(_PyObject_DictOrValuesPointer)", 0x030C, 0x030C)],
    "managed_dict_before": [value("before(_PyObject_ManagedDictPointer)", 0x030B, 0x030B),
                            value("before(_PyObject_DictOrValuesPointer)", 0x030C, 0x030C),
                            value("before(_PyObject_ManagedDictPointer)", 0x030D)],
    "unicode_length": [at(TEXT, "length", 0x0207, 0x0207), at(ASCII, "length", 0x0305)],
    "unicode_data": [at(TEXT, "str", 0x0207, 0x0207), at(TEXT, "data.any", 0x0305)],
    "unicode_state": [at(ASCII, "state", 0x0305)],
    "unicode_kind_bit": [bit("kind")],
    "unicode_compact_bit": [bit("compact")],
    "unicode_ascii_bit": [bit("ascii")],
    "unicode_ascii_data": [value("sizeof(PyASCIIObject)", 0x0305)],
    "unicode_compact_data": [value("sizeof(PyCompactUnicodeObject)", 0x0305)],
    "unicode_wstr": [at(ASCII, "wstr", 0x0305, 0x030B)],
    "unicode_wstr_length": [at("PyCompactUnicodeObject", "wstr_length", 0x0305, 0x030B)],
    "bytes_size": [at(VAR, "ob_size")],
    "bytes_data": [at("PyBytesObject", "ob_sval")],
    "bytearray_size": [at(VAR, "ob_size")],
    "bytearray_data": [at("PyByteArrayObject", "ob_bytes", 0x0207, 0x0207),
                       at("PyByteArrayObject", "ob_start", 0x0305)],
    "tuple_size": [at(VAR, "ob_size")],
    "tuple_items": [at("PyTupleObject", "ob_item")],
    "list_size": [at(VAR, "ob_size")],
    "list_items": [at("PyListObject", "ob_item")],
    "dict_used": [at("PyDictObject", "ma_used")],
    "dict_keys": [at("PyDictObject", "ma_keys", 0x0305)],
    "dict_values": [at("PyDictObject", "ma_values", 0x0305)],
    "dict_mask": [at("PyDictObject", "ma_mask", 0x0207, 0x0207)],
    "dict_table": [at("PyDictObject", "ma_table", 0x0207, 0x0207)],
    "keys_size": [at("struct keys", "size", 0x0305, 0x030A)],
    "keys_log2_size": [at(KEYS, "dk_log2_size", 0x030B)],
    "keys_log2_index_bytes": [at(KEYS, "dk_log2_index_bytes", 0x030B)],
    "keys_kind": [at(KEYS, "dk_kind", 0x030B)],
    "keys_nentries": [at("struct keys", "nentries", 0x0306, 0x030A), at(KEYS, "dk_nentries", 0x030B)],
    "keys_indices": [at("struct keys", "indices", 0x0306, 0x030A), at(KEYS, "dk_indices", 0x030B)],
    "keys_entries": [at("struct keys", "entries", 0x0305, 0x0305)],
    "entry_key": [at("PyDictEntry", "me_key", 0x0207, 0x0207), at("struct entry", "key", 0x0305, 0x030A),
                  at("PyDictKeyEntry", "me_key", 0x030B)],
    "entry_value": [at("PyDictEntry", "me_value", 0x0207, 0x0207), at("struct entry", "value", 0x0305, 0x030A),
                    at("PyDictKeyEntry", "me_value", 0x030B)],
    "entry_size": [value("sizeof(PyDictEntry)", 0x0207, 0x0207), value("sizeof(struct entry)", 0x0305, 0x030A),
                   value("sizeof(PyDictKeyEntry)", 0x030B)],
    "unicode_entry_key": [at("PyDictUnicodeEntry", "me_key", 0x030B)],
    "unicode_entry_value": [at("PyDictUnicodeEntry", "me_value", 0x030B)],
    "unicode_entry_size": [value("sizeof(PyDictUnicodeEntry)", 0x030B)],
    "values_capacity": [at("struct _dictvalues", "capacity", 0x030D)],
    "values_size": [at("struct _dictvalues", "size", 0x030D)],
    "values_valid": [at("struct _dictvalues", "valid", 0x030D)],
    # Up to 3.10 ma_values is an array of pointers itself.
    "values_items": [value("0", 0x0305, 0x030A), at("struct _dictvalues", "values", 0x030B)],
    "set_used": [at("PySetObject", "used")],
    "set_mask": [at("PySetObject", "mask")],
    "set_table": [at("PySetObject", "table")],
    "set_entry_key": [at("setentry", "key")],
    "set_entry_hash": [at("setentry", "hash")],
    "set_entry_size": [value("sizeof(setentry)")],
    "long_size": [at(VAR, "ob_size", 0x0207, 0x030B)],
    "long_tag": [at("PyLongObject", "long_value.lv_tag", 0x030C)],
    "long_digits": [at("PyLongObject", "ob_digit", 0x0207, 0x030B),
                    at("PyLongObject", "long_value.ob_digit", 0x030C)],
    "long_digit_size": [value("sizeof(digit)")],
    "int_value": [at("PyIntObject", "ob_ival", 0x0207, 0x0207)],
    "float_value": [at("PyFloatObject", "ob_fval")],
    "complex_value": [at("PyComplexObject", "cval")],
    "module_dict": [at("struct module", "dict")],
    "function_code": [at(FUNCTION, "func_code")],
    "function_name": [at(FUNCTION, "func_name")],
    "function_qualname": [at(FUNCTION, "func_qualname", 0x0305)],
    "function_globals": [at(FUNCTION, "func_globals")],
    "function_closure": [at(FUNCTION, "func_closure")],
    "method_function": [at("PyMethodObject", "im_func")],
    "method_self": [at("PyMethodObject", "im_self")],
    "builtin_definition": [at("PyCFunctionObject", "m_ml")],
    "builtin_self": [at("PyCFunctionObject", "m_self")],
    "cell_value": [at("PyCellObject", "ob_ref")],
    "weakref_object": [at("PyWeakReference", "wr_object")],
    "frame_object_frame": [at("struct _frame", "f_frame", 0x030B)],
    "exception_args": [at("PyBaseExceptionObject", "args")],
    "generator_frame": [at(GENERATOR, "gi_frame", 0x0207, 0x030A)],
    "generator_iframe": [at(GENERATOR, "gi_iframe", 0x030B)],
    "generator_state": [at(GENERATOR, "gi_frame_state", 0x030B)],
    "generator_name": [at(GENERATOR, "gi_name", 0x0305)],
    "generator_qualname": [at(GENERATOR, "gi_qualname", 0x0305)],
}

# Where _Py_DebugOffsets says it of the interpreter that carries it: member, first version.
CARRIED = {
    "runtime_interpreters": "runtime_state.interpreters_head",
    "runtime_finalizing": "runtime_state.finalizing",
    "interpreter_next": "interpreter_state.next",
    "interpreter_threads": "interpreter_state.threads_head",
    "interpreter_id": "interpreter_state.id",
    "interpreter_modules": "interpreter_state.imports_modules",
    "interpreter_sysdict": "interpreter_state.sysdict",
    "interpreter_builtins": "interpreter_state.builtins",
    "interpreter_gil": "interpreter_state.ceval_gil",
    "thread_next": "thread_state.next",
    "thread_interpreter": "thread_state.interp",
    "thread_id": "thread_state.thread_id",
    "thread_native_id": "thread_state.native_thread_id",
    "thread_frame": "thread_state.current_frame",
    "thread_data_stack": "thread_state.datastack_chunk",
    "frame_code": "interpreter_frame.executable",
    "frame_previous": "interpreter_frame.previous",
    "frame_ip": "interpreter_frame.instr_ptr",
    "frame_owner": "interpreter_frame.owner",
    "frame_fast": "interpreter_frame.localsplus",
    "frame_stack_top": ("interpreter_frame.stackpointer", 0x030E),
    "frame_tlbc_index": ("interpreter_frame.tlbc_index", 0x030E),
    "code_argcount": "code_object.argcount",
    "code_local_names": "code_object.localsplusnames",
    "code_local_kinds": "code_object.localspluskinds",
    "code_filename": "code_object.filename",
    "code_name": "code_object.name",
    "code_qualname": "code_object.qualname",
    "code_first_line": "code_object.firstlineno",
    "code_lines": "code_object.linetable",
    "code_bytes": "code_object.co_code_adaptive",
    "code_tlbc": ("code_object.co_tlbc", 0x030E),
    "object_header": "pyobject.size",
    "object_type": "pyobject.ob_type",
    "type_name": "type_object.tp_name",
    "type_flags": "type_object.tp_flags",
    "unicode_length": "unicode_object.length",
    "unicode_state": "unicode_object.state",
    "unicode_ascii_data": "unicode_object.asciiobject_size",
    "bytes_size": "bytes_object.ob_size",
    "bytes_data": "bytes_object.ob_sval",
    "tuple_size": "tuple_object.ob_size",
    "tuple_items": "tuple_object.ob_item",
    "list_size": "list_object.ob_size",
    "list_items": "list_object.ob_item",
    "dict_keys": "dict_object.ma_keys",
    "dict_values": "dict_object.ma_values",
    "set_used": ("set_object.used", 0x030E),
    "set_mask": ("set_object.mask", 0x030E),
    "set_table": ("set_object.table", 0x030E),
    "long_tag": "long_object.lv_tag",
    "long_digits": "long_object.ob_digit",
    "float_value": "float_object.ob_fval",
    "generator_iframe": ("gen_object.gi_iframe", 0x030E),
    "generator_state": ("gen_object.gi_frame_state", 0x030E),
    "generator_name": ("gen_object.gi_name", 0x030E),
}

PROGRAM = """
#define Py_BUILD_CORE 1
#define NDEBUG 1
#include <stddef.h>
#include <string.h>
#include <stdio.h>
#include <Python.h>
%(includes)s
%(private)s
#define before(function) ((char *)&object[64] - (char *)function(&object[64]))
int main(void)
{
	static PyObject object[128];

	(void)object;
%(lines)s
	return 0;
}
"""


def name_of(version):
    return f"{version >> 8}.{version & 255}"


def version_of(include):
    """(0x030b, "3.11.2") of the headers in a folder."""
    with open(os.path.join(include, "patchlevel.h"), encoding="utf-8") as file:
        text = file.read()
    major, minor, micro = (int(re.search(rf"#define PY_{part}_VERSION\s+(\d+)", text).group(1))
                           for part in ("MAJOR", "MINOR", "MICRO"))
    return major << 8 | minor, f"{major}.{minor}.{micro}"


def expressions(version, build):
    for field, told in CARRIED.items() if version >= 0x030D else ():
        member, first = told if isinstance(told, tuple) else (told, 0x030D)
        if first <= version:
            yield "carried:" + field, f"offsetof(_Py_DebugOffsets, {member})"
    for field, choices in FIELDS.items():
        if build not in ONLY.get(field, BUILDS):
            continue
        for first, last, text in choices:
            if first <= version <= last:
                yield field, text


def configured(include):
    """The flags of BUILDS that the headers in a folder set themselves."""
    command = [os.environ.get("CC", "cc"), "-E", "-dM", f"-I{os.path.dirname(include)}"]
    command += ["-include", os.path.join(include, "pyconfig.h"), "-xc", "/dev/null"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    known = {flag for _, _, kinds in BUILDS.values() for _, flags in kinds for flag in flags}
    return {flag for flag in known if re.search(rf"^#define {flag[2:]}\b", text, re.M)}


def measure(include, build, flags):
    """{field: offset} in one build, compiled with FLAGS."""
    version, _ = version_of(include)
    names = [name for first, last, group in HEADERS if first <= version <= last for name in group]
    program = PROGRAM % {
        "includes": "\n".join(f'#include "{name}"' for name in names
                              if os.path.exists(os.path.join(include, name))),
        "private": PRIVATE,
        "lines": "\n".join(f'\tprintf("{field} %lu\\n", (unsigned long)({text}));'
                           for field, text in expressions(version, build)),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "probe")
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(program)
        command = [os.environ.get("CC", "cc"), "-w", "-O1", "-std=gnu17", *flags]
        # Debian's pyconfig.h is in a folder of the architecture beside the others.
        command += [f"-I{path}" for path in (include, include + "/internal", include + "/internal/mimalloc",
                                             os.path.dirname(include))]
        # Functions that are declared and inlined elsewhere are never called.
        command += ["-ffunction-sections", "-Wl,--gc-sections", path + ".c", "-o", path]
        subprocess.run(command, check=True)
        lines = subprocess.run([path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {field: int(number) for field, number in (line.split() for line in lines)}


def found():
    """Folders of headers on this machine, newest first."""
    paths = glob.glob("/usr/include/python*") + glob.glob("/usr/local/include/python*")
    paths += glob.glob(os.path.expanduser("~/.pyenv/versions/*/include/python*"))
    paths += glob.glob("/opt/pythons/*/include/python*")
    return sorted(path for path in paths if os.path.exists(os.path.join(path, "Python.h"))
                  and os.path.exists(os.path.join(path, "patchlevel.h")))


def measure_all(includes):
    """{(version, build): {field: offset}}, and sentences about headers of one version that differ."""
    measured, odd, where = {}, [], {}
    for include in includes:
        version, text = version_of(include)
        if not 0x0207 <= version <= LATEST or 0x0207 < version < 0x0305:
            continue
        own = configured(include)
        variants = [(build, flags) for build, (first, last, kinds) in BUILDS.items() if first <= version <= last
                    for since, flags in kinds if since <= version and own <= set(flags)]
        for build, flags in variants:
            label = " ".join([text, *flags])
            values = measure(include, build, flags)
            known = measured.setdefault((version, build), values)
            where.setdefault((version, build), label)
            for field in {**known, **values}:
                if known.get(field) != values.get(field):
                    odd.append(f"{field}: {known.get(field)} in {where[version, build]}, "
                               f"{values.get(field)} in {label}")
    return measured, odd


ROW = re.compile(r"^(OFFSET|CARRIED)\((\w+), 0x(\w+), 0x(\w+), (\w+), (\d+)\)", re.M)


def read_rows(path):
    """What a table says: {(version, build): {field: offset}}, and sentences about rows that overlap."""
    told, odd = {}, []
    if not os.path.exists(path):
        return told, odd
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for macro, field, first, last, build, number in ROW.findall(text):
        field = {"OFFSET": "", "CARRIED": "carried:"}[macro] + field
        names = list(BUILDS) if build == "ANY" else [build]
        for version in versions(int(first, 16), int(last, 16)):
            for name in names:
                if not BUILDS[name][0] <= version <= BUILDS[name][1]:
                    continue
                if field in told.setdefault((version, name), {}):
                    odd.append(f"{field} of {name_of(version)} {name} has two rows")
                told[version, name][field] = int(number)
    return told, odd


def versions(first, last):
    return [v for v in [0x0207, *range(0x0305, LATEST + 1)] if first <= v <= last]


def groups(told, field, version, apart):
    """[(offset, build)] of a field in one version; APART: no row is for all builds."""
    values = {b: told[version, b].get(field) for b in BUILDS if (version, b) in told}
    if len(set(values.values())) == 1 and not apart:
        values = {"ANY": next(iter(values.values()))}
    return [(offset, build) for build, offset in values.items() if offset is not None]


def rows_of(told, field, apart):
    pending, done = {}, []
    for version in versions(0x0207, LATEST):
        now = groups(told, field, version, apart)
        for key in [key for key in pending if key not in now]:
            done.append((*pending.pop(key), key))
        for key in now:
            pending[key] = (pending.get(key, (version,))[0], version)
    done += [(*span, key) for key, span in pending.items()]
    macro, name = ("CARRIED", field.split(":")[1]) if ":" in field else ("OFFSET", field)
    return [f"{macro}({name}, {first:#06x}, {last:#06x}, {build}, {offset})"
            for first, last, (offset, build) in sorted(done)]


def rows(told, field):
    """The fewest rows that say what is told of a field."""
    return min(rows_of(told, field, False), rows_of(told, field, True), key=len)


HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OFFSET(field, first, last, build, value): what python_offsets.FIELD is in versions FIRST to LAST
 * (0x030b: 3.11) of BUILD (layout.h); without a row the version has no such member. Measured from
 * the headers of each version by tools/python-layouts.py, which writes this table and checks it.
 *
 * CARRIED(field, first, last, build, at): where _Py_DebugOffsets, which 3.13 and later carry at the
 * begin of _PyRuntime, says it.
 */
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("fields")
    parser.add_argument("layouts")
    parser.add_argument("include", nargs="*")
    options = parser.parse_args()

    with open(options.fields, encoding="utf-8") as file:
        fields = re.findall(r"^FIELD\((\w+),", file.read(), re.M)
    odd = [f"{field} is not measured" for field in fields if field not in FIELDS]
    odd += [f"{field} is not in {options.fields}" for field in FIELDS if field not in fields]
    measured, more = measure_all(options.include or found())
    told, overlaps = read_rows(options.layouts)
    odd += more
    if options.check:
        odd += overlaps
        for key, values in measured.items():
            row = told.get(key, {})
            odd += [f"{field} of {name_of(key[0])} {key[1]}: table {row.get(field)}, headers {values.get(field)}"
                    for field in {**row, **values} if row.get(field) != values.get(field)]
    for sentence in odd:
        print(f"python-layouts: {sentence}", file=sys.stderr)
    if odd:
        return 1
    if not options.check:
        told = {**(told if options.write else {}), **measured}
        text = HEAD + "".join(row + "\n" for field in [*fields, *("carried:" + f for f in CARRIED)]
                              for row in rows(told, field))
        with open(options.layouts if options.write else "/dev/stdout", "w", encoding="utf-8") as file:
            file.write(text)
    seen = sorted({version for version, _ in measured})
    print(f"python-layouts: {len(fields)} members, headers of {', '.join(map(name_of, seen)) or 'no version'}",
          file=sys.stderr)
    return 0 if seen or options.include else 77


if __name__ == "__main__":
    sys.exit(main())
