#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone: check-headers.py ROOT [BUILD]. BUILD has generated headers that some include."""
import concurrent.futures
import os
import subprocess
import sys

import source

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-missing-field-initializers",
            "-Wno-unused-function"]


def multiarch():
    """Where Debian keeps <asm/types.h>, which clang does not look for when it compiles for BPF."""
    run = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True)
    return "/usr/include/" + run.stdout.strip()


def generated_folders(build):
    folders = set()
    for place, _, names in os.walk(build or "/nonexistent"):
        if any(name.endswith((".skel.h", ".gen.h")) for name in names):
            folders.add(place)
    return sorted(folders)


def compilers(root, path, build):
    """The command lines that HEADER must pass: the host's, or that of BPF programs."""
    includes = ["-I" + os.path.join(root, "src"), "-I" + os.path.join(root, "tests")]
    includes += ["-I" + folder for folder in generated_folders(build)]
    if path.startswith("src/bpf/") or path.endswith(".bpf.h"):
        return ["clang", "-target", "bpf", "-O2", "-I" + multiarch(), *includes]
    return ["gcc", "-std=gnu17", "-D_GNU_SOURCE", *includes]


def compile_alone(root, path, build):
    name = path.split("/", 1)[1]
    command = compilers(root, path, build) + WARNINGS + ["-fsyntax-only", "-x", "c", "-"]
    run = subprocess.run(command, input=f'#include "{name}"\n', capture_output=True, text=True)
    return run.stderr.strip() if run.returncode else ""


def main(root, build=None):
    report = source.Report("check-headers")
    paths = source.files(root, ["src", "tests"], (".h",))
    paths = [p for p in paths if not p.startswith("tests/targets/")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, errors in zip(paths, pool.map(lambda p: compile_alone(root, p, build), paths)):
            if errors:
                report.add(path, 1, "does not compile alone:\n    " + errors.replace("\n", "\n    "))
    return report.finish(len(paths))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
