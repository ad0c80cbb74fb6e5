#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls and constructs that the house does without: check-banned.py ROOT."""
import re
import sys

import source

CALLS = {
    "strcpy": "no bound; use str_copy() or snprintf()",
    "strcat": "no bound; use struct strbuf",
    "sprintf": "no bound; use snprintf() or str_format()",
    "vsprintf": "no bound; use vsnprintf()",
    "strtok": "hidden state; use strcspn()",
    "atoi": "cannot fail; use str_parse_u64()",
    "gets": "no bound",
    "alloca": "no bound",
    "exit": "return a failure; only main ends the process",
}
LOGGERS = {"log_error", "log_warning", "log_info"}
LOGGING_LAYERS = ("src/cli/", "src/agent/", "src/server/", "src/main.c")
# Functions of ours must not look like a library's, or come to clash with its next version.
LIBRARY_PREFIXES = ("elf_", "gelf_", "dwarf_", "dwfl_", "bpf_", "btf_", "ring_buffer_", "sqlite3_", "cairn_")
CALL = re.compile(r"(?<![\w.>])([a-z_]+)\s*\(")
TYPEDEF = re.compile(r"(?<!\w)([us](?:8|16|32|64))(?!\w)")
PROMISE = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def check_calls(report, path, code):
    for match in CALL.finditer(code):
        name = match.group(1)
        if name in CALLS and not (name == "exit" and path == "src/main.c"):
            report.add(path, line_of(code, match), f"{name}(): {CALLS[name]}")
        if name in LOGGERS and path.startswith("src/") and not path.startswith(LOGGING_LAYERS):
            report.add(path, line_of(code, match), f"{name}(): this layer logs with log_debug() only")


def check_types(report, path, code):
    if path.endswith(".bpf.c") or (path.startswith("src/bpf/") and path.endswith(".h")):
        return
    for match in TYPEDEF.finditer(code):
        report.add(path, line_of(code, match), f"{match.group(1)}: the kernel's name; use <stdint.h> or __u32")
    for match in re.finditer(r"^typedef\s+struct\b(?:[^;({]*;|[^;({]*\{)", code, re.M):
        report.add(path, line_of(code, match), "typedef of a struct: structs keep their tag")
    for match in re.finditer(r"\b(LINUX_VERSION_CODE|KERNEL_VERSION)\b", code):
        report.add(path, line_of(code, match), f"{match.group(1)}: features are probed, not guessed")


def check_functions(report, path, stripped):
    for function in source.functions(stripped):
        if "_cleanup_" in function.body and re.search(r"\bgoto\b", function.body):
            report.add(path, function.line, f"{function.name}(): goto in a function with scope guards")
        for match in re.finditer(r"^[ \t]*#[ \t]*if", function.body, re.M):
            report.add(path, function.body_line + function.body.count("\n", 0, match.start()),
                       f"{function.name}(): #if inside a function; a feature is a file and its fallback")
        is_ours = not path.endswith(".bpf.c") and not path.startswith("src/bpf/")
        if is_ours and function.name.startswith(LIBRARY_PREFIXES):
            report.add(path, function.line, f"{function.name}(): the prefix belongs to somebody else")


def main(root):
    report = source.Report("check-banned")
    paths = source.files(root, ["src", "tests"], (".c", ".h"))
    for path in paths:
        text = source.read(root, path)
        stripped = source.code(text)
        code = source.without_preprocessor(stripped)
        for line, comment in source.comments(text):
            for match in PROMISE.finditer(comment):
                report.add(path, line + comment.count("\n", 0, match.start()),
                           f"{match.group(1)} without an issue: write {match.group(1)}(#7)")
        check_functions(report, path, stripped)
        # Programs that tests profile are strangers' code on purpose.
        if not path.startswith("tests/"):
            check_calls(report, path, code)
            check_types(report, path, code)
    return report.finish(len(paths))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
