# SPDX-License-Identifier: Apache-2.0
"""What `cairn record` is told to sample, when it ends, and what it writes."""
import json
import os
import re
import subprocess
import sys
import time

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="sampling needs root")

SPIN = "x = 0\nwhile True:\n    x += 1\n"


@pytest.fixture
def spinner():
    """A process that is always busy."""
    process = subprocess.Popen([sys.executable, "-c", SPIN])
    yield process
    process.kill()
    process.wait()


def stacks(path):
    """(process, frames, count) of each line of a folded file."""
    for line in path.read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        name, *frames = stack.split(";")
        yield name, frames, int(count)


@needs_root
def test_a_command_is_sampled_with_its_children_and_ends_the_session(cairn, tmp_path):
    out = tmp_path / "out.folded"
    work = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done"
    start = time.monotonic()
    result = cairn.run("record", "-F", "997", "-d", "60", "-o", str(out), "--", "sh", "-c", work)
    assert (result.returncode, time.monotonic() - start < 50) == (0, True)
    names = {name for name, _, _ in stacks(out)}
    assert names <= {"sh", "true", "dash", "bash", "cairn"} and "true" in names


@needs_root
def test_only_the_process_that_was_named_is_sampled(cairn, tmp_path, spinner):
    out = tmp_path / "out.folded"
    for target in (["-p", str(spinner.pid), "-d", "1"], [str(spinner.pid), "1"], ["-L", str(spinner.pid), "1"]):
        result = cairn.run("record", "-F", "499", "-o", str(out), *target)
        assert result.returncode == 0, result.stderr
        found = list(stacks(out))
        assert {name for name, _, _ in found} == {open(f"/proc/{spinner.pid}/comm").read().strip()}
        assert sum(count for _, _, count in found) > 20


@needs_root
def test_a_name_is_an_expression_and_must_match(cairn, tmp_path, spinner):
    out = tmp_path / "out.folded"
    comm = open(f"/proc/{spinner.pid}/comm").read().strip()
    result = cairn.run("record", "-N", f"^{re.escape(comm)}$", "-d", "1", "-o", str(out))
    assert result.returncode == 0, result.stderr
    result = cairn.run("record", "-N", "no-such-name-here", "-d", "1", "-o", str(out))
    assert result.returncode == 1
    assert 'no process has a name that matches "no-such-name-here"' in result.stderr


@needs_root
def test_every_format_is_written_and_told_by_the_suffix(cairn, tmp_path, spinner):
    for name in ("out.folded", "out.col", "out.html"):
        result = cairn.run("record", "-p", str(spinner.pid), "-d", "1", "-o", str(tmp_path / name))
        assert result.returncode == 0, result.stderr
    header = json.loads((tmp_path / "out.col").read_text().split("\n", 1)[0][2:])
    assert header["sampling_event"] == "cpu-time" and header["sampling_frequency"] == 99
    page = (tmp_path / "out.html").read_text()
    assert page.rstrip().endswith("</html>")
    data = re.search(r'<script type="application/json" id="cairn-profile">(.*?)</script>', page, re.S)
    assert json.loads(data.group(1))["session"]["samples"] > 20


@needs_root
def test_the_summary_counts_what_the_file_holds(cairn, tmp_path, spinner):
    out = tmp_path / "out.folded"
    result = cairn.run("record", "-p", str(spinner.pid), "-F", "499", "-d", "1", "-o", str(out))
    said = re.search(r"(\d+) samples, ([\d.]+) % of the stacks whole", result.stderr)
    total = sum(count for _, _, count in stacks(out))
    whole = sum(count for _, frames, count in stacks(out) if not frames[0].startswith("[cut:"))
    assert int(said.group(1)) == total
    assert said.group(2) == f"{100 * whole / total:.1f}"


@needs_root
def test_the_end_of_what_is_sampled_ends_the_session(cairn, tmp_path):
    out = tmp_path / "out.folded"
    target = subprocess.Popen(["timeout", "1", sys.executable, "-c", SPIN])
    start = time.monotonic()
    # Nobody waits for the target here, so that it would stay as a zombie.
    recorder = subprocess.Popen([cairn.path, "record", "-p", str(target.pid), "-o", str(out)])
    target.wait()
    assert recorder.wait(timeout=30) == 0
    assert time.monotonic() - start < 25 and out.exists()


@needs_root
def test_a_command_that_is_not_there_is_named_and_nothing_is_written(cairn, tmp_path):
    out = tmp_path / "out.folded"
    result = cairn.run("record", "-o", str(out), "--", "/no/such/program")
    assert result.returncode == 1
    assert "start /no/such/program: No such file or directory" in result.stderr
    assert list(tmp_path.iterdir()) == []
