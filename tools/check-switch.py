#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No `default:` in a switch over an enum: check-switch.py BUILD, which has a compile_commands.json.

A default would swallow the value that is added next year. Only a compiler knows what is an enum: clang finds a
default that hides values (-Wswitch-enum), and one that has nothing left to catch (-Wcovered-switch-default).
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

import source

QUESTION = ["-Wno-everything", "-Wswitch-enum", "-Wcovered-switch-default", "-fsyntax-only"]
DROPPED = re.compile(r"^-(W|f(?!\bPIC\b)|M|g|O)")


def question(entry):
    """The compile command of ENTRY, turned into the question."""
    words = shlex.split(entry["command"])[1:]
    kept, skip = [], False
    for word in words:
        if skip or word == "-c":
            skip = False
        elif word in ("-o", "-MQ", "-MF"):
            skip = True
        elif not DROPPED.match(word):
            kept.append(word)
    return ["clang", *QUESTION, *kept]


def ask(entry):
    run = subprocess.run(question(entry), cwd=entry["directory"], capture_output=True, text=True)
    return run.stderr, run.returncode


def main(build):
    report = source.Report("check-switch")
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    units = {os.path.realpath(os.path.join(e["directory"], e["file"])): e for e in entries if e["file"].endswith(".c")}
    # The generated ones embed data and are not ours to style.
    units = {path: e for path, e in units.items() if "/src/" in path and not path.startswith(os.path.realpath(build))}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (text, code) in zip(units, pool.map(ask, units.values())):
            for line, what in re.findall(r"^[^\n:]+:(\d+):\d+: (?:warning|error): (.*)$", text, re.M):
                report.add(path, int(line), what)
            if code and "warning" not in text and "error" not in text:
                report.add(path, 1, "clang: " + text.strip())
    return report.finish(len(units))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
