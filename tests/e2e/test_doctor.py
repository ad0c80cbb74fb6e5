# SPDX-License-Identifier: Apache-2.0
"""doctor on the machine that runs the tests, with and without privileges."""
import os
import pathlib
import re
import shutil

import pytest


def verdicts(result):
    """{check: (verdict, text)}, and the last line's capture."""
    *lines, last = result.stdout.rstrip("\n").split("\n")
    found = {}
    for line in lines:
        assert re.match(r"^(ok   |less |no   ) .{15} \S", line), line
        found[line[6:21].strip()] = (line[:5].strip(), line[22:])
    assert last.startswith("capture: ")
    return found, last[len("capture: ") :].split(":")[0]

def test_the_exit_status_says_whether_the_bpf_capture_works(cairn):
    result = cairn.run("doctor")
    found, capture = verdicts(result)
    assert len(found) >= 20
    assert (result.returncode == 0) == (capture == "bpf")
    assert (capture == "bpf") == all(verdict != "no" for verdict, _ in found.values())

def test_brief_leaves_out_what_is_all_right(cairn):
    found, _ = verdicts(cairn.run("doctor", "--brief"))
    assert all(verdict != "ok" for verdict, _ in found.values())

def test_what_it_says_is_what_the_kernel_shows(cairn):
    found, _ = verdicts(cairn.run("doctor"))
    assert os.uname().release in found["kernel"][1]
    assert (found["kernel types"][0] == "ok") == os.access("/sys/kernel/btf/vmlinux", os.R_OK)
    rate = pathlib.Path("/proc/sys/kernel/perf_event_max_sample_rate")
    if not rate.exists():
        pytest.skip("this kernel has no perf events")
    assert rate.read_text().strip() in found["sample rate"][1]

def test_without_privileges_it_names_the_command_that_would_give_them(cairn_for_all, as_nobody):
    result = cairn_for_all.run("doctor", before=as_nobody)
    found, capture = verdicts(result)
    assert result.returncode == 1
    assert capture in ("poll", "none")
    assert found["capture bpf"][0] == "no" and "run as root" in found["capture bpf"][1]
    assert found["privileges"] == ("no", found["privileges"][1])
    assert "not root, without CAP_BPF" in found["privileges"][1]
    assert "sudo cairn" in found["privileges"][1]
    assert "sudo" in found["BPF programs"][1]

def test_a_pid_namespace_of_its_own_is_noticed(cairn, as_root):
    if not shutil.which("unshare"):
        pytest.skip("needs unshare, from util-linux")
    result = cairn.run("doctor", before=["unshare", "--pid", "--fork", "--mount-proc"])
    if "unshare:" in result.stderr:
        pytest.skip("may not make namespaces here: " + result.stderr.strip())
    found, capture = verdicts(result)
    assert found["PID namespace"][0] == "no"
    assert "--pid=host" in found["PID namespace"][1]
    assert (capture, result.returncode) == ("poll", 1)

def test_one_missing_capability_is_named(cairn, as_root):
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv, from util-linux")
    result = cairn.run("doctor", before=["setpriv", "--bounding-set=-syslog", "--inh-caps=-syslog"])
    found, _ = verdicts(result)
    assert found["privileges"][0] == "less"
    assert "root, without CAP_SYSLOG" in found["privileges"][1]
