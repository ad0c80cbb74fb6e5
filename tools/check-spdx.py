#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence in its first line, and the right one: check-spdx.py ROOT.

BPF programs, and headers that only they include, are GPL-2.0-only; what they share with the host, and everything in
src/abi, is GPL-2.0-only OR Apache-2.0; the rest is Apache-2.0.
"""
import os
import re
import sys

import source

SUFFIXES = (".c", ".h", ".def", ".py", ".sh", ".mjs", ".js", ".ts", ".tsx", ".css", "meson.build", "meson_options.txt",
            "Makefile", ".go", ".rs", ".java")
MARK = re.compile(r"SPDX-License-Identifier: ([^*\n]+?)\s*(?:\*/|-->)?\s*$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
KERNEL, BOTH, USER = "GPL-2.0-only", "GPL-2.0-only OR Apache-2.0", "Apache-2.0"


def included_from(root, paths, other_side):
    """Files of src/ that PATHS include, directly or not, but for those whose names end with OTHER_SIDE."""
    todo, seen = list(paths), set()
    while todo:
        for name in INCLUDE.findall(source.read(root, todo.pop())):
            included = os.path.join("src", name)
            if included.endswith(other_side) or included in seen:
                continue
            if os.path.exists(os.path.join(root, included)):
                seen.add(included)
                todo.append(included)
    return seen


def expected(path, by_programs, by_host):
    """The licences that PATH may have."""
    if path.endswith(".bpf.c"):
        return {KERNEL}
    if path.startswith("src/abi/"):
        return {BOTH}
    # One of this pair is chosen by the compiler's target; the names say for which side each is.
    if path.endswith(".bpf.h"):
        return {KERNEL, BOTH}
    if path.endswith("-host.h"):
        return {USER, BOTH}
    if path in by_programs:
        return {BOTH} if path in by_host else {KERNEL, BOTH}
    # A walker is written for both even before a program includes it.
    if path.startswith(("src/unwind/", "src/bpf/")) and path.endswith((".h", ".def")):
        return {USER, BOTH}
    return {USER}


def main(root):
    report = source.Report("check-spdx")
    paths = source.files(root, ["src", "tests", "tools", "ui"], SUFFIXES)
    paths += [p for p in ("meson.build", "meson_options.txt", "Makefile") if os.path.exists(os.path.join(root, p))]
    units = source.files(root, ["src", "tests"], (".c",))
    by_programs = included_from(root, [p for p in units if p.endswith(".bpf.c")], "-host.h")
    by_host = included_from(root, [p for p in units if not p.endswith(".bpf.c")], ".bpf.h")
    for path in paths:
        head = source.read(root, path).split("\n")[:2]
        if head and head[0].startswith("#!"):
            head.pop(0)
        mark = MARK.search(head[0]) if head else None
        allowed = expected(path, by_programs, by_host)
        if not mark:
            report.add(path, 1, "no SPDX-License-Identifier in the first line")
        elif mark.group(1) not in allowed:
            report.add(path, 1, f"is {mark.group(1)}, should be {' or '.join(sorted(allowed))}")
    return report.finish(len(paths))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
