#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables are complete, and what belongs to a row is there: check-tables.py ROOT.

A .def file's first comment shows its row, `FORMAT(name, suffix, help)`; every row has that many arguments, names and
ids occur once, texts are not empty. A command has its file and a text, a format its golden file, a fuzz target its
corpus; and every test and fuzz target is in its layer's meson.build, or it would never run.
"""
import os
import re
import sys

import source

TEXTS = ("help", "text", "covers")
ROW = re.compile(r"^([A-Z][A-Z_0-9]*)\(", re.M)


def arguments(text):
    """The arguments of a row whose opening parenthesis has been read, or None if it does not close."""
    parts, part, depth, quoted = [], "", 0, False
    for at, char in enumerate(text):
        if char == '"' and text[at - 1] != "\\":
            quoted = not quoted
        if not quoted and char in "([{":
            depth += 1
        if not quoted and char in ")]}":
            if not depth:
                parts.append(part.strip())
                return parts
            depth -= 1
        if char == "," and not quoted and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    return None


def rows(text):
    """(line, macro, arguments) of every row."""
    stripped = "".join(text)
    for _, comment in source.comments(text):
        stripped = stripped.replace(comment, re.sub(r"[^\n]", " ", comment), 1)
    for match in ROW.finditer(stripped):
        yield stripped.count("\n", 0, match.start()) + 1, match.group(1), arguments(stripped[match.end() :])


def signatures(text):
    """{macro: [parameter, ...]} from the comments of a table."""
    found = {}
    for _, comment in source.comments(text):
        for macro, parameters in re.findall(r"\b([A-Z][A-Z_0-9]*)\(([a-z][\w, \n*]*)\)", comment):
            names = [p.strip(" *\n") for p in parameters.split(",")]
            found.setdefault(macro, names)
    return found


def check_table(report, root, path):
    """Check one .def file; gives its rows as dictionaries."""
    text = source.read(root, path)
    shapes = signatures(text)
    seen, found = {}, []
    for line, macro, values in rows(text):
        shape = shapes.get(macro)
        if not shape:
            report.add(path, line, f"no comment shows the row: {macro}(name, ...)")
            continue
        if values is None or len(values) != len(shape):
            report.add(path, line, f"{macro} takes {', '.join(shape)}")
            continue
        row = dict(zip(shape, values), line=line)
        for key, value in row.items():
            if key in TEXTS and not re.search(r'"[^"]*\w[^"]*"', value):
                report.add(path, line, f"the {key} is empty")
            if key in ("name", "id"):
                if (macro, key, value) in seen:
                    report.add(path, line, f"{key} {value} is also in line {seen[macro, key, value]}")
                seen[macro, key, value] = line
        found.append(row)
    if not found:
        report.add(path, 1, "a table without rows")
    return found


def check_commands(report, root, table):
    for row in table:
        path = f"src/cli/{row['name']}.c"
        if not os.path.exists(os.path.join(root, path)):
            report.add("src/cli/commands.def", row["line"], f"there is no {path}")
        elif f"command_{row['name']}" not in source.read(root, path):
            report.add(path, 1, f"defines no command_{row['name']}")


def check_formats(report, root, table):
    golden = source.files(root, ["tests/golden"], ("",))
    for row in table:
        if not any(path.endswith(row["suffix"].strip('"')) for path in golden):
            report.add("src/formats/formats.def", row["line"],
                       f"no file in tests/golden ends with {row['suffix']}")


def meson_names(root, layer, variable):
    path = os.path.join(root, "src", layer, "meson.build")
    if not os.path.exists(path):
        return set()
    lists = re.findall(rf"\b{variable}\s*\+?=\s*\[(.*?)\]", source.read(root, path), re.S)
    return {name for text in lists for name in re.findall(r"'([^']+)'", text)}


def check_listed(report, root, prefix, *variables):
    """Files src/LAYER/PREFIXname.c are named in one of VARIABLES of their layer; gives the names."""
    for path in source.files(root, ["src"], (".c",)):
        name = os.path.basename(path)
        if not name.startswith(prefix):
            continue
        layer, *folders = path.split("/")[1:-1]
        name = "/".join([*folders, name[len(prefix) : -2]])
        if not re.search(r"\bmain\b|\bRUN_TESTS\b|LLVMFuzzerTestOneInput", source.read(root, path)):
            continue  # a helper that tests share
        if not any(name in meson_names(root, layer, variable) for variable in variables):
            report.add(path, 1, f"is not in {' or '.join(variables)} of src/{layer}/meson.build, so it never runs")
        yield path, name


def check_corpora(report, root):
    for path, name in check_listed(report, root, "fuzz-", "fuzz_targets"):
        name = name.replace("/", "-")
        folder = os.path.join(root, "tests/corpus", name)
        if not os.path.isdir(folder) or not os.listdir(folder):
            report.add(path, 1, f"has no inputs in tests/corpus/{name}")


def main(root):
    report = source.Report("check-tables")
    paths = source.files(root, ["src"], (".def",))
    tables = {path: check_table(report, root, path) for path in paths}
    check_commands(report, root, tables.get("src/cli/commands.def", []))
    check_formats(report, root, tables.get("src/formats/formats.def", []))
    list(check_listed(report, root, "test-", "unit_tests", "starved_tests"))
    check_corpora(report, root)
    return report.finish(len(paths))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
