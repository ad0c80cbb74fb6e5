# SPDX-License-Identifier: Apache-2.0
"""A short storm of processes; `make bench-storm` is the long one, which also looks for growing memory."""
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT


def test_in_a_storm_of_processes_every_tick_is_accounted_for(cairn, as_root):
    for tool in ("bpftool", "clang", "gcc"):
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}")
    command = [sys.executable, ROOT / "tests/bench/storm.py", cairn.path, "--minutes", "0.33", "--session", "4", "--every", "2"]
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=180, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_command_may_start_more_processes_than_tables_hold(cairn, as_root, tmp_path):
    script = ("i=0; while [ $i -lt 4300 ]; do /bin/true; i=$((i+1)); done; "
              f"exec {sys.executable} -c 'import time\nend = time.time() + 1\nwhile time.time() < end: pass' &\nwait")
    output = tmp_path / "many.folded"
    done = cairn.run("record", "-F", "199", "-o", output, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert "did not fit" not in done.stderr
    names = {line.split(";")[0] for line in output.read_text(encoding="utf-8").split("\n")}
    assert any(name.startswith("python") for name in names), names
