#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder of src/ includes only from folders above it in tools/layers.txt: check-layers.py ROOT."""
import os
import re
import sys

import source

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)


def layers(root):
    with open(os.path.join(root, "tools/layers.txt"), encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def check_include(root, path, included, order):
    """What is wrong with PATH including INCLUDED; None: nothing."""
    name = os.path.basename(path)
    if "/" not in included:
        if included in ("unit.h", "starved.h", "http-server.h") and name.startswith("test-"):
            return None
        if included.endswith(".skel.h"):
            return None  # made by the build from src/bpf
        return f'"{included}": paths begin at src/'
    top = included.split("/")[0]
    if top not in order:
        return f'"{included}": {top} is no layer'
    if not os.path.exists(os.path.join(root, "src", included)):
        return f'"{included}": there is no such file'
    parts = path.split("/")
    if len(parts) < 3:
        return None  # main.c stands above all layers
    if order.index(top) > order.index(parts[1]):
        return f'"{included}": {parts[1]} stands before {top}'
    return None


def main(root):
    report = source.Report("check-layers")
    order = layers(root)
    for entry in sorted(os.listdir(os.path.join(root, "src"))):
        holds_sources = source.files(root, [os.path.join("src", entry)], (".c", ".h"))
        if os.path.isdir(os.path.join(root, "src", entry)) and entry not in order and holds_sources:
            report.add(f"src/{entry}", 1, "is not in tools/layers.txt")
    paths = source.files(root, ["src"], (".c", ".h"))
    for path in paths:
        if path.count("/") > 1 and path.split("/")[1] not in order:
            continue
        text = source.read(root, path)
        for match in INCLUDE.finditer(text):
            wrong = check_include(root, path, match.group(1), order)
            if wrong:
                report.add(path, text.count("\n", 0, match.start()) + 1, wrong)
    return report.finish(len(paths))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
