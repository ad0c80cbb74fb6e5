#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The single-step oracle: step.py STEP [TARGET...]

Builds the targets, runs STEP (step.c) on each, and holds every disagreement against exceptions.txt. The last line is
"N instructions, N callers equal, N exceptions listed, N wrong". Fails on anything that is wrong, and if fewer
instructions ran than the oracle promises. A target whose compiler is missing is named and left out.
"""
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "targets")
LEAST = 200_000
GAPS = ("no unwind rows", "register not kept")
SECONDS = 150  # for one target, on a machine that is busy with other things
CRYPTO = "-Wl,--no-as-needed -l:libcrypto.so.3"

# name: (command that builds it, options of STEP). Without --entry the dynamic loader's part is stepped through, too;
# one program that does is enough, for that part is the longest.
TARGETS = {
    "loader": ("gcc -O2 {s}/frames.c -o {o} -lm", ""),
    "c-O0": ("gcc -O0 {s}/frames.c -o {o} -lm", "--entry"),
    "c-O2-frame-pointer": ("gcc -O2 -fno-omit-frame-pointer {s}/frames.c -o {o} -lm", "--entry"),
    "c-O3-avx": ("gcc -O3 -mavx -mno-avx512f {s}/frames.c -o {o} -lm", "--entry"),
    "c-Os-now": ("gcc -Os -Wl,-z,now {s}/frames.c -o {o} -lm", "--entry"),
    "c-clang": ("clang -O2 {s}/frames.c -o {o} -lm", "--entry"),
    "c-no-pie": ("gcc -O2 -no-pie -fcf-protection=full {s}/frames.c -o {o} -lm", "--entry"),
    "c-static": ("gcc -O2 -static {s}/frames.c -o {o} -lm", ""),
    "c-static-pie": ("gcc -O2 -static-pie {s}/frames.c -o {o} -lm", ""),
    "c-musl": ("musl-gcc -O2 -static {s}/frames.c -o {o} -lm", ""),
    "libraries": ("gcc -O2 {s}/libraries.c -o {o} -lm -ldl " + CRYPTO, "--entry --steps 200000"),
    "libraries-static": ("gcc -O2 -static {s}/libraries.c -o {o} -lm -ldl", "--entry --steps 100000"),
    "c++": ("g++ -O2 {s}/objects.cc -o {o}", "--entry --steps 300000"),
    "c++-O0-now": ("g++ -O0 -Wl,-z,now {s}/objects.cc -o {o}", "--entry --steps 150000"),
    "rust": ("rustc -O {s}/panics.rs -o {o}", "--entry --steps 250000"),
    "go": ("go build -o {o} {s}/goroutines.go", "--entry --go --steps 300000"),
}
# One CPU for Go, so that goroutines run on the thread that is watched.
ENVIRONMENT = {"GOMAXPROCS": "1", "CGO_ENABLED": "0", "GO111MODULE": "off", "LC_ALL": "C"}


def read_exceptions(path):
    """Rows: kind, pattern of the object's path, pattern of the function, reason; separated by blanks."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                kind, where, function, reason = line.split(None, 3)
                rows.append((kind, where, function, reason.strip()))
    return rows


def find_exception(rows, kind, where, function):
    for row in rows:
        if all(fnmatch.fnmatchcase(text, pattern) for text, pattern in zip((kind, where, function), row)):
            return row
    return None


class Totals:
    def __init__(self):
        self.instructions = self.equal = self.frame_pointers = self.given_up = self.no_caller = 0
        self.stacks = self.stacks_equal = self.listed = self.wrong = 0
        self.used = set()


def build(name, folder):
    """The program; None: its compiler is not here."""
    out = os.path.join(folder, name)
    command = TARGETS[name][0].format(s=SOURCES, o=out).split()
    if not shutil.which(command[0]):
        print(f"{name}: no {command[0]} here, left out")
        return None
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT})
    if done.returncode and CRYPTO in TARGETS[name][0]:
        print(f"{name}: built without libcrypto")
        done = subprocess.run([word for word in command if word not in CRYPTO.split()], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} cannot be built: {done.stderr}")
    return out


def judge(name, lines, rows, totals):
    """Add up what STEP printed. Places of one function are shown once, with the first of them."""
    shown = {}
    for kind, count, where, function, addr, expected, got, end in (line[1:] for line in lines if line[0] == "wrong"):
        # A walk that says itself that it ends too early is one thing, a wrong caller another.
        key = (kind + "-cut" if end in GAPS else kind, where, function)
        shown.setdefault(key, [0, 0, addr, expected, got, end])
        shown[key][0] += int(count)
        shown[key][1] += 1
    for (kind, where, function), (count, places, addr, expected, got, end) in sorted(shown.items()):
        row = find_exception(rows, kind, where, function)
        if row:
            totals.used.add(row)
            totals.listed += count
            continue
        totals.wrong += count
        print(f"  wrong: {kind}: {function} in {where}: {count} times at {places} places, at {addr} "
              f"expected {expected}, got {got} ({end})")


def step(name, program, stepper, rows, totals):
    command = [stepper, *TARGETS[name][1].split(), "--", program]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS,
                              stdin=subprocess.DEVNULL, env={**os.environ, **ENVIRONMENT})
    except subprocess.TimeoutExpired:
        print(f"  wrong: {name} took longer than {SECONDS} s")
        totals.wrong += 1
        return
    lines = [line.split("\t") for line in done.stdout.split("\n") if line]
    last = next((line for line in lines if line[0] == "total"), None)
    if done.returncode or not last:
        print(f"  wrong: {name} ended with status {done.returncode}: {done.stderr.strip()}")
        totals.wrong += 1
    if not last:
        return
    instructions, judged, equal, pointers, given_up, no_caller, stacks, stacks_equal = map(int, last[1:])
    print(f"{name}: {instructions} instructions, {judged} callers judged, {equal} equal, {no_caller} unknown; "
          f"frame pointers {pointers} equal, {given_up} given up; {stacks} stacks, {stacks_equal} equal", flush=True)
    totals.instructions += instructions
    totals.equal += equal
    totals.frame_pointers += pointers
    totals.given_up += given_up
    totals.no_caller += no_caller
    totals.stacks += stacks
    totals.stacks_equal += stacks_equal
    judge(name, lines, rows, totals)


def main(stepper, names):
    rows = read_exceptions(os.path.join(HERE, "exceptions.txt"))
    totals = Totals()
    with tempfile.TemporaryDirectory(prefix="cairn-oracle-") as folder:
        for name in names or TARGETS:
            program = build(name, folder)
            if program:
                step(name, program, stepper, rows, totals)
    print(f"{totals.stacks} whole stacks, {totals.stacks_equal} equal; frame pointers {totals.frame_pointers} equal, "
          f"{totals.given_up} given up; {totals.no_caller} instructions whose caller was not seen to call")
    for row in rows:
        print(f"exception {'met' if row in totals.used else 'not met here'}: {' '.join(row)}")
    print(f"{totals.instructions} instructions, {totals.equal} callers equal, {totals.listed} exceptions listed, "
          f"{totals.wrong} wrong")
    if not names and totals.instructions < LEAST:
        print(f"fewer instructions than {LEAST}")
        return 1
    return 1 if totals.wrong else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
