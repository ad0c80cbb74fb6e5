#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sizes and indentation of C sources: check-style.py ROOT."""
import sys

import source

FILE_LINES = 1000
FUNCTION_LINES = 80
LEVELS = 3
PARAMETERS = 5
COLUMNS = 100


def check_lines(report, path, text):
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if len(lines) > FILE_LINES:
        report.add(path, len(lines), f"{len(lines)} lines in a file, {FILE_LINES} allowed")
    for number, line in enumerate(lines, 1):
        columns = len(line.expandtabs(8))
        if columns > COLUMNS:
            report.add(path, number, f"{columns} columns, {COLUMNS} allowed")
        if line != line.rstrip():
            report.add(path, number, "blanks at the end of the line")
    for number, line in enumerate(source.code(text).split("\n"), 1):
        if line.startswith("        ") and line.strip():
            report.add(path, number, "indented with blanks instead of tabs")


def check_functions(report, path, text):
    for function in source.functions(source.code(text)):
        if function.lines() > FUNCTION_LINES:
            report.add(path, function.line,
                       f"{function.name}(): {function.lines()} lines, {FUNCTION_LINES} allowed")
        if len(function.parameters) > PARAMETERS:
            report.add(path, function.line,
                       f"{function.name}(): {len(function.parameters)} parameters, {PARAMETERS} allowed")
        levels, line = source.nesting(function)
        if levels > LEVELS:
            report.add(path, line, f"{function.name}(): {levels} levels, {LEVELS} allowed")


def main(root):
    report = source.Report("check-style")
    paths = source.files(root, ["src", "tests"], (".c", ".h", ".def"))
    for path in paths:
        text = source.read(root, path)
        check_lines(report, path, text)
        if path.startswith("src/") and not path.endswith(".def"):
            check_functions(report, path, text)
    return report.finish(len(paths))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
