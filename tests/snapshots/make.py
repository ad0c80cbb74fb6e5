#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the snapshots of tests/snapshots anew: make.py BUILD [KIND...]; KIND is 3.11, 3.13t, 3.14d, "3.13 with musl", ...

One for each kind of interpreter on this machine (../e2e/pythons.py finds them; CAIRN_PYTHONS names more), of program.py at
rest; and for each way in which frames hang together one of a thread inside a second interpreter. What an interpreter that is not here anymore once gave is kept as it is.
"""
import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import pythons  # noqa: E402

# What is added to the name of a snapshot, the program, and the kinds of interpreters; None: all.
PROGRAMS = [("", HERE / "program.py", None),
            ("-subinterpreter", pythons.PROGRAMS / "subinterpreter.py", {"3.9", "3.11", "3.14"})]
HEAD = """# SPDX-License-Identifier: Apache-2.0
# CPython {version}{kind}, {linked}: {program} at rest. Made by make.py; see src/runtimes/python/test-snapshot.h.
"""


def told_text(rows):
    """What the threads told, as lines of a snapshot."""
    lines = []
    for tid, row in sorted(rows.items()):
        lines.append(f"thread {tid:x}")
        for frame in row["frames"]:
            lines.append("    python " + " | ".join(str(frame[key]) for key in ("function", "file", "first_line", "line")))
    return "".join(line + "\n" for line in lines)


@contextlib.contextmanager
def in_place(program):
    """A folder with PROGRAM, whose name is the same each time: paths are in what is recorded."""
    place = pathlib.Path(tempfile.gettempdir()) / "cairn-snapshot"
    place.mkdir()
    try:
        for path in program, pythons.PROGRAMS / "expect.py":
            shutil.copy(path, place)
        yield place
    finally:
        shutil.rmtree(place)


def make(record, interpreter, program, output):
    with tempfile.TemporaryDirectory() as folder, in_place(program) as place:
        # Addresses that do not change from one time to the next keep differences small.
        target = pythons.Target(["setarch", "-R", interpreter.path, place / program.name], folder, "block",
                                PYTHONHASHSEED="0")
        try:
            told = told_text(target.wait_ready())
            pythons.wait_still(target.pid)
            done = subprocess.run([record, str(target.pid)], input=told, capture_output=True, text=True, check=False)
        finally:
            target.stop()
    if done.returncode:
        return done.stderr.strip()
    kind = interpreter.kind[len("%d.%d" % interpreter.version[:2]):]
    version = ".".join(map(str, interpreter.version))
    head = HEAD.format(version=version, kind=kind, linked="with libpython" if interpreter.shared else "static",
                       program=program.name)
    output.write_text(head + done.stdout, encoding="utf-8")
    return None


def main(build, *kinds):
    record = pathlib.Path(build).resolve() / "tests/snapshots/snapshot-record"
    made, failed = set(), 0
    for interpreter in pythons.interpreters():
        if interpreter.kind in made or (kinds and interpreter.kind not in kinds):
            continue
        made.add(interpreter.kind)
        for suffix, program, wanted in PROGRAMS:
            if wanted is not None and interpreter.kind not in wanted:
                continue
            output = HERE / f"python-{interpreter.kind.replace(' ', '-')}{suffix}.txt"
            wrong = make(record, interpreter, program, output)
            failed += wrong is not None
            print(f"{interpreter.path}: {wrong or output.name}", flush=True)
    return 1 if failed or not made else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
