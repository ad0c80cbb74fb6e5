# SPDX-License-Identifier: Apache-2.0
"""kill -9 at any moment: what has a final name is whole, and the kernel holds nothing of ours any more."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/bench"))
import session  # noqa: E402

MOMENTS = 24
LEFT_BY_A_KILL = re.compile(r".*\.tmp$")  # base/file.h, agent/session-files.h: a name for the blink before rename()


def assert_col_is_whole(path):
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines[0].startswith("# ")
    header = json.loads(lines[0][2:])
    assert header["metadata"]["sampling_frequency"] == 99
    for line in lines[1:]:
        assert re.search(r"^.*;.+ [1-9]\d*$", line), f"{path.name}: {line[-100:]!r}"


def assert_html_is_whole(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") or text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")


def assert_whole(folder):
    """Everything below FOLDER but what a kill may leave; gives how many profiles there are."""
    count = 0
    for path in sorted(folder.iterdir()):
        if LEFT_BY_A_KILL.match(path.name):
            continue
        if path.is_symlink():
            assert path.resolve(strict=True).parent == folder.resolve()
            continue
        {".col": assert_col_is_whole, ".html": assert_html_is_whole}[path.suffix](path)
        count += 1
    return count


def kill_after(cairn, words, seconds):
    """Gives the ids of what it had in the kernel shortly before."""
    with session.Session(cairn.path, *words) as run:
        time.sleep(max(0.0, seconds - 0.1))
        ids = session.bpf_ids(run.pid)
        time.sleep(max(0.0, seconds - (time.monotonic() - run.started)))
        run.child.send_signal(signal.SIGKILL)
        run.status = run.child.wait()
    assert run.status in (-signal.SIGKILL, 0)
    return ids


def seconds_of(cairn, words):
    """How long a whole run takes here, from the start to the files."""
    with session.Session(cairn.path, *words) as run:
        status, _, _ = run.end(None)
        assert status == 0
        return time.monotonic() - run.started


@pytest.fixture
def busy():
    """Stacks to name and to write: a build of sorts, again and again."""
    program = "import json\nwhile True:\n json.dumps([{str(i): i} for i in range(2000)])"
    child = subprocess.Popen([sys.executable, "-c", program])
    yield child
    child.kill()
    child.wait()


def test_a_killed_agent_leaves_whole_files_and_nothing_in_the_kernel(cairn, as_root, busy, tmp_path):
    profiles = 0
    one = seconds_of(cairn, ["agent", "-o", tmp_path / "whole", "-d", "1", "-f", "99"])
    for i in range(MOMENTS):
        folder = tmp_path / str(i)
        words = ["agent", "-o", folder, "-d", "1", "-f", "99", "-c"]
        ids = kill_after(cairn, words, 2 * one * i / MOMENTS)
        if folder.exists():
            profiles += assert_whole(folder)
        assert not session.left_behind(ids)
    assert profiles > 0, "no session was over by any of the moments"


def test_a_killed_recording_leaves_a_whole_file_or_none(cairn, as_root, busy, tmp_path):
    kept = 0
    one = seconds_of(cairn, ["record", "-a", "-F", "99", "-d", "0.3", "-o", tmp_path / "whole.html"])
    for i in range(MOMENTS):
        folder = tmp_path / str(i)
        folder.mkdir()
        words = ["record", "-a", "-F", "99", "-d", "0.3", "-o", folder / "machine.html"]
        # Most moments are around the end, where the file is written.
        ids = kill_after(cairn, words, one * (0.7 + 0.6 * i / MOMENTS) if i % 4 else one * i / MOMENTS)
        kept += assert_whole(folder)
        assert not session.left_behind(ids)
    if kept in (0, MOMENTS):
        pytest.skip(f"this machine is too uneven for the moments: {kept} of {MOMENTS} recordings were over")


def test_a_file_that_was_there_stays_whole(cairn, as_root, busy, tmp_path):
    output = tmp_path / "machine.html"
    done = cairn.run("record", "-a", "-d", "0.2", "-o", output)
    assert done.returncode == 0, done.stderr
    before = output.read_bytes()
    kill_after(cairn, ["record", "-a", "-o", output], 0.5)
    assert output.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["machine.html"]


def test_what_a_killed_run_left_is_no_obstacle(cairn, as_root, tmp_path):
    (tmp_path / "last_profile.col.tmp").symlink_to("nowhere")
    (tmp_path / "last_flamegraph.html.tmp").symlink_to("nowhere")
    done = cairn.run("agent", "-o", tmp_path, "-d", "1", "-f", "99")
    assert done.returncode == 0, done.stderr
    assert assert_whole(tmp_path) == 2
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
    assert os.readlink(tmp_path / "last_profile.col").startswith("profile_")
    assert pathlib.Path(os.readlink(tmp_path / "last_flamegraph.html")).suffix == ".html"
