# SPDX-License-Identifier: Apache-2.0
"""Processes that lie about themselves, or change while they are looked at: they are shown as far as they go, soon, and
nothing of them reaches the terminal."""
import json
import pathlib
import re
import shutil
import subprocess
import time

import pytest

import pythons

TARGETS = pathlib.Path(__file__).resolve().parents[1] / "targets"
# Debian's, and the newest: layouts of frames differ before and behind 3.12.
INTERPRETERS = [one for one in pythons.interpreters()
                if (3, 11) <= one.version[:2] <= (3, 14) and (one.path.startswith("/usr/") or one.kind == "3.14")]
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
PATIENCE = 20  # seconds for a dump; it takes some 0.1 on a machine that does nothing else
TEXT_MAX = 16 << 20  # a list of frames that goes round is 16,384 frames deep


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """hostile.c as a program and as a library."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("hostile")
    source = TARGETS / "hostile.c"
    # Without a frame pointer and with one: other rules read what is written over.
    for name, flags in ("plain", []), ("framed", ["-fno-omit-frame-pointer"]), ("hostile.so", ["-shared", "-fPIC"]):
        subprocess.run(["cc", "-O1", "-pthread", *flags, "-o", folder / name, source], check=True)
    return folder


@pytest.fixture
def start():
    started = []

    def start_one(*command):
        started.append(subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == b"ready\n"
        return started[-1].pid

    yield start_one
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def dump(cairn, pid, *options):
    began = time.monotonic()
    done = cairn.run("dump", pid, *options, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert not CONTROL.search(done.stdout + done.stderr)
    assert len(done.stdout) < TEXT_MAX
    return done.stdout, time.monotonic() - began


def frames_of(text):
    return [frame for thread in json.loads(text)["threads"] for frame in thread["frames"]]


@pytest.mark.parametrize("interpreter", INTERPRETERS, ids=lambda one: one.id)
@pytest.mark.parametrize("damage", ["itself", "circle", "wild", "odd", "no-code", "text-for-code"])
def test_frames_that_are_damaged_are_shown_as_far_as_they_go(cairn, start, interpreter, damage):
    pid = start(interpreter.path, TARGETS / "hostile.py", damage, "wait")
    text, _ = dump(cairn, pid, "-j", "-l")
    python = [frame["function"] for frame in frames_of(text) if frame["kind"] == "python"]
    assert python[:2] == ["stay", "damaged"]
    dump(cairn, pid, "-n", "-l")


@pytest.mark.parametrize("interpreter", INTERPRETERS, ids=lambda one: one.id)
def test_frames_that_change_meanwhile_do_no_harm(cairn, start, built, interpreter, tmp_path, as_root):
    for spins in "wait", "spin":
        pid = start(interpreter.path, TARGETS / "hostile.py", "changing", spins, built / "hostile.so")
        for _ in range(2):
            dump(cairn, pid, "-l", "-j")
        dump(cairn, pid, "--nonblocking", "-n")
        done = cairn.run("record", "-p", pid, "-d", "1", "-F", "999", "-o", tmp_path / "out.folded")
        assert done.returncode == 0, done.stderr
        assert not CONTROL.search((tmp_path / "out.folded").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["plain", "framed"])
def test_a_stack_that_changes_meanwhile_does_no_harm(cairn, start, built, kind, tmp_path, as_root):
    pid = start(built / kind)
    for options in ["-j"], ["-n"], ["--nonblocking", "-j"]:
        for _ in range(2):
            dump(cairn, pid, *options)
    for walker in "loop", "tail":
        done = cairn.run("record", "-p", pid, "-d", "1", "-F", "999", "--walker", walker, "-o", tmp_path / "out.folded")
        assert done.returncode == 0 or "bpf_loop" in done.stderr, done.stderr


@pytest.mark.parametrize("interpreter", INTERPRETERS[:1], ids=lambda one: one.id)
@pytest.mark.parametrize("kind", ["long", "escapes"])
def test_names_and_values_are_cut_and_cannot_write_to_the_terminal(cairn, start, interpreter, kind, tmp_path, as_root):
    pid = start(interpreter.path, TARGETS / "hostile.py", kind, "spin")
    for options in ["-l"], ["-l", "-l", "-j"], []:
        text, took = dump(cairn, pid, *options)
        assert took < PATIENCE / 2
    assert ("AAAA" if kind == "long" else "wide \u2603") in text
    done = cairn.run("record", "-p", pid, "-d", "1", "-o", tmp_path / "out.folded")
    assert done.returncode == 0, done.stderr
    folded = (tmp_path / "out.folded").read_text(encoding="utf-8")
    assert len(folded) < TEXT_MAX and not CONTROL.search(folded)
