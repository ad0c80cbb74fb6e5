# SPDX-License-Identifier: Apache-2.0
"""`cairn record --by-thread` calls Python's threads as threading does, in every interpreter."""
import subprocess

import pytest

import pythons

PROGRAM = """
import sys, threading, time
def burn():
    end = time.time() + 60
    while time.time() < end: pass
for name in "worker one", "worker two":
    thread = threading.Thread(target=burn, name=name)
    thread.daemon = True
    thread.start()
sys.stdout.write("ready\\n"); sys.stdout.flush()
burn()
"""


@pytest.mark.parametrize("interpreter", [pytest.param(one, id=one.id) for one in pythons.interpreters()])
def test_threads_have_the_names_that_the_program_gave(cairn, as_root, tmp_path, interpreter):
    process = subprocess.Popen([interpreter.path, "-c", PROGRAM], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        done = cairn.run("record", "-p", process.pid, "-d", "1", "-F", "199", "--by-thread", "-o", tmp_path / "x.folded")
        assert done.returncode == 0, done.stderr
    finally:
        process.kill()
        process.wait()
    found = {frame.partition(": ")[2] for line in (tmp_path / "x.folded").read_text().splitlines()
             for frame in line.split(";") if frame.startswith("thread ")}
    assert found == {"MainThread", "worker one", "worker two"}
