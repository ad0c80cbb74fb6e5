# SPDX-License-Identifier: Apache-2.0
"""The poll capture: processes looked at from outside, most of it without any privileges."""
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import pythons
from conftest import NOBODY, ROOT

CROWD = ROOT / "tests/targets/crowd.c"
SPIN = "x = 0\nwhile True:\n    x += 1\n"
KILLS = 12
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
HOSTILE = r"""
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A stack pointer that leads nowhere, and a frame pointer that leads to itself. */
static void *lies(void *unused)
{
	__asm__ volatile("mov %%rsp, %%r12\n1: mov $0x10, %%rsp\nmov %%rsp, %%rbp\nnop\nnop\n"
			 "mov %%r12, %%rsp\nlea -8(%%rsp), %%rbp\nmov %%rbp, (%%rbp)\njmp 1b" ::: "memory");
	return unused;
}

/* Code that comes and goes. */
static void *moves(void *unused)
{
	static const uint8_t code[] = {0xb9, 0, 0, 1, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

	for (;;) {
		void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(at, code, sizeof(code));
		((void (*)(void))at)();
		munmap(at, 4096);
	}
	return unused;
}

static void *ends(void *unused)
{
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	pthread_create(&thread, NULL, lies, NULL);
	pthread_create(&thread, NULL, moves, NULL);
	for (;;) {
		pid_t child = fork();
		if (!child)
			execl("/proc/self/exe", "again", NULL);
		if (argc < 2)
			_exit(0);
		waitpid(child, NULL, 0);
		if (!pthread_create(&thread, NULL, ends, NULL))
			pthread_join(thread, NULL);
	}
}
"""


def stacks(path):
    """(process, frames, count) of each line of a folded file."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        stack, count = line.rsplit(" ", 1)
        name, *frames = stack.split(";")
        yield name, frames, int(count)


def total(path):
    return sum(count for _, _, count in stacks(path))


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def folder(as_root):
    """Where nobody may write. (Another pytest closes the folder of pytest's own to others.)"""
    with tempfile.TemporaryDirectory() as path:
        os.chown(path, NOBODY, NOBODY)
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


@pytest.fixture
def spinner(as_nobody):
    """A process of nobody's that is always busy."""
    python = pythons.debian()
    if not python:
        pytest.skip("needs the distribution's python3")
    process = subprocess.Popen([*as_nobody, python.path, "-c", SPIN], cwd="/")
    time.sleep(0.3)
    yield process
    process.kill()
    process.wait()


def compiled(source, path):
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    subprocess.run(["cc", "-g", "-O2", "-x", "c", "-o", str(path), "-", "-pthread"], input=source, text=True, check=True)
    path.chmod(0o755)
    return path


# --- without privileges

def test_auto_says_once_why_it_is_poll_and_what_differs(cairn_for_all, as_nobody, folder, spinner):
    out = folder / "x.folded"
    result = cairn_for_all.run("record", "-p", spinner.pid, "-d", "2", "-o", out, before=as_nobody)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("the poll capture is used instead") == 1
    assert "not permitted" in result.stderr and "kernel frames are missing" in result.stderr
    found = list(stacks(out))
    assert {name for name, _, _ in found} == {"python3.11"} or {name for name, _, _ in found} == {"python3"}
    whole = sum(count for _, frames, count in found if frames[0].startswith("<module>"))
    assert whole == total(out) > 0
    assert not any(frame.endswith("_[k]") for _, frames, _ in found for frame in frames)


def test_samples_are_seconds_of_cpu_time(cairn_for_all, as_nobody, folder, spinner):
    before = cpu_seconds(spinner.pid)
    result = cairn_for_all.run("record", "-p", spinner.pid, "-d", "4", "-F", "200", "-o", folder / "x.folded", before=as_nobody)
    spent = cpu_seconds(spinner.pid) - before
    assert result.returncode == 0, result.stderr
    # What it consumes while cairn starts and ends is not sampled.
    assert 0.6 * 200 * spent <= total(folder / "x.folded") <= 200 * spent + 8


def test_everything_means_ones_own_processes(cairn_for_all, as_nobody, folder, spinner):
    other = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        result = cairn_for_all.run("record", "-a", "-d", "2", "-o", folder / "x.folded", "--by-thread", before=as_nobody)
    finally:
        other.kill()
        other.wait()
    assert result.returncode == 0, result.stderr
    assert re.search(r"note: \d+ processes may not be looked at", result.stderr)
    assert "it runs as uid 0 and cairn as uid 65534" in result.stderr
    tids = {frames[0].split()[1].rstrip(":") for _, frames, _ in stacks(folder / "x.folded")}
    assert str(spinner.pid) in tids and str(other.pid) not in tids


def test_a_program_that_becomes_ones_own_is_seen(cairn_for_all, as_nobody, folder):
    python = pythons.debian()
    if not python:
        pytest.skip("needs the distribution's python3")
    run = subprocess.Popen([*as_nobody, str(cairn_for_all.path), "record", "-q", "-a", "-d", "6", "--by-thread", "-o",
                            str(folder / "x.folded")], stdin=subprocess.DEVNULL)
    time.sleep(1)
    # It begins as root, waits a moment, and gives up its rights.
    child = subprocess.Popen(["sh", "-c", 'sleep 0.5; exec "$@"', "sh", *as_nobody, python.path, "-c", SPIN], cwd="/")
    try:
        assert run.wait(timeout=60) == 0
    finally:
        child.kill()
        child.wait()
    assert str(child.pid) in {frames[0].split()[1].rstrip(":") for _, frames, _ in stacks(folder / "x.folded")}


@pytest.mark.parametrize("hides", [1, 2])
def test_processes_that_proc_hides_are_no_obstacle(cairn_for_all, as_nobody, folder, hides):
    python = pythons.debian()
    if not python or not shutil.which("unshare"):
        pytest.skip("needs the distribution's python3, and unshare")
    script = f"mount -t proc -o hidepid={hides} proc /proc && exec \"$@\""
    words = ["sh", "-c", f"{python.path} -c '{SPIN}' & sleep 0.3; {cairn_for_all.path} record -a -d 2 -o {folder}/x.folded; "
             "status=$?; kill $!; exit $status"]
    result = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", *as_nobody, *words], capture_output=True, text=True,
                            timeout=60, check=False)
    if "mount:" in result.stderr or "unshare:" in result.stderr:
        pytest.skip("may not mount here: " + result.stderr.strip())
    assert result.returncode == 0, result.stderr
    assert any("<module> (<string>:" in frame for _, frames, _ in stacks(folder / "x.folded") for frame in frames)


def test_what_is_not_ones_own_is_refused_with_the_reason(cairn_for_all, as_nobody, folder):
    other = subprocess.Popen(["sleep", "60"])
    try:
        result = cairn_for_all.run("record", "-p", other.pid, "-d", "1", "-o", folder / "x.folded", before=as_nobody)
    finally:
        other.kill()
        other.wait()
    assert result.returncode == 1
    assert "it runs as uid 0 and cairn as uid 65534: run as that user or with CAP_SYS_PTRACE" in result.stderr
    assert not (folder / "x.folded").exists()


def test_a_command_is_followed_through_fork_and_exec(cairn_for_all, as_nobody, folder, spinner):
    work = f"for i in 1 2 3; do {pythons.debian().path} -c 'sum(range(40000000))' & done; wait"
    result = cairn_for_all.run("record", "-o", folder / "x.folded", "--by-thread", "--", "sh", "-c", work, before=as_nobody)
    assert result.returncode == 0, result.stderr
    found = [(name, frames) for name, frames, _ in stacks(folder / "x.folded") if name.startswith("python3")]
    tids = {frames[0].split()[1] for _, frames in found}
    assert len(tids) == 3 and str(spinner.pid) not in tids
    assert any("<module> (<string>:1)" in frame for _, frames in found for frame in frames)


def test_an_agent_without_privileges_writes_sessions(cairn_for_all, as_nobody, folder, spinner):
    run = subprocess.Popen([*as_nobody, str(cairn_for_all.path), "agent", "--rootless", "-o", str(folder), "-d", "1", "-f", "99",
                            "-c", "--no-flamegraph"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 60
    while len(list(folder.glob("profile_*.col"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    run.send_signal(signal.SIGTERM)
    said, _ = run.communicate(timeout=30)
    assert run.returncode == 0, said
    assert said.count("is used instead") == 1
    profiles = sorted(folder.glob("profile_*.col"))
    assert len(profiles) >= 3
    assert all("_[p]" in profile.read_text(encoding="utf-8") for profile in profiles[:3])


def test_in_a_user_namespace_of_its_own(cairn_for_all, as_nobody, folder):
    python = pythons.debian()
    if not python or not shutil.which("unshare"):
        pytest.skip("needs the distribution's python3, and unshare")
    before = [*as_nobody, "unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("may not make namespaces here")
    result = cairn_for_all.run("record", "-o", folder / "x.folded", "--", python.path, "-c", "sum(range(30000000))", before=before)
    assert result.returncode == 0, result.stderr
    assert any("<module> (<string>:1)" in frame for _, frames, _ in stacks(folder / "x.folded") for frame in frames)


# --- stacks

@pytest.mark.parametrize("mode", ["wall", "cpu"])
def test_python_stacks_are_those_that_the_program_tells(cairn_for_all, as_nobody, folder, mode):
    python = pythons.debian()
    if not python:
        pytest.skip("needs the distribution's python3")
    program = next(one for one in pythons.programs() if one.name == ("threads" if mode == "wall" else "recursion"))
    target = pythons.Target([*as_nobody, python.path, program.path], folder, "block" if mode == "wall" else "spin")
    try:
        told = target.wait_ready()
        page = folder / "x.html"
        result = cairn_for_all.run("record", "-p", target.pid, "-m", mode, "-d", "2", "-o", page, before=as_nobody)
        assert result.returncode == 0, result.stderr
    finally:
        target.stop()
    found = []
    for frames, _ in pythons.profile_of(page)[target.pid]:
        found.append([(frame["file"], frame["line"]) for frame in pythons.python_frames(frames)])
    for row in told.values():
        frames = row["frames"][1:] if mode == "cpu" else row["frames"]
        expected = [(frame["file"], frame["line"]) for frame in frames]
        assert any(stack[-len(expected):] == expected for stack in found), (row, found)


def test_a_crowd_that_waits_is_never_stopped(cairn_for_all, as_nobody, folder):
    path = compiled(CROWD.read_text(encoding="utf-8"), folder / "crowd")
    crowd = subprocess.Popen([*as_nobody, "nice", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert crowd.stdout.readline() == "ready\n"
        before = switches(crowd.pid)
        result = cairn_for_all.run("record", "-p", crowd.pid, "-m", "wall", "-F", "50", "-d", "2", "--by-thread", "-o",
                                   folder / "x.folded", before=as_nobody)
        after = switches(crowd.pid)
        assert result.returncode == 0, result.stderr
        interrupted, _ = map(int, crowd.communicate(timeout=30)[0].split())
    finally:
        crowd.kill()
        crowd.wait()
    # A stop wakes a thread, and it goes to sleep again: a turn on a CPU that nothing else gives these.
    assert len(before) == 192 and after == before
    assert interrupted == 0
    counts = {tid: 0 for tid in before}
    for _, frames, count in stacks(folder / "x.folded"):
        tid = int(frames[0].split()[1].rstrip(":"))
        counts[tid] = counts.get(tid, 0) + count
    looks = {counts[tid] for tid in before}
    assert max(looks) > 0 and max(looks) - min(looks) <= 1, looks


def switches(pid):
    """{tid: turns on a CPU} of the threads of a crowd that wait."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text(encoding="utf-8").strip() in ("futex", "epoll", "sleep", "read"):
            lines = (task / "status").read_text(encoding="utf-8").splitlines()
            found[int(task.name)] = [int(line.split()[1]) for line in lines if "ctxt_switches" in line]
    return found


# --- what goes wrong

def test_a_target_runs_on_when_cairn_is_killed(cairn_for_all, as_nobody, folder, spinner):
    for moment in range(KILLS):
        run = subprocess.Popen([*as_nobody, str(cairn_for_all.path), "record", "-q", "--capture", "poll", "-p", str(spinner.pid),
                                "-F", "1000", "-o", str(folder / "x.folded")], stdin=subprocess.DEVNULL)
        time.sleep(0.4 + 0.0037 * moment)
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert "TracerPid:\t0\n" in pathlib.Path(f"/proc/{spinner.pid}/status").read_text(encoding="utf-8")
    before = cpu_seconds(spinner.pid)
    deadline = time.monotonic() + 20
    while cpu_seconds(spinner.pid) < before + 0.05:
        assert time.monotonic() < deadline and state(spinner.pid) == "R"
        time.sleep(0.02)


def test_a_process_that_is_traced_is_left_alone_and_told(cairn, tmp_path, as_root):
    target = subprocess.Popen([sys.executable, "-c", SPIN])
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    try:
        time.sleep(0.3)
        assert libc.ptrace(PTRACE_SEIZE, target.pid, None, None) == 0
        result = cairn.run("record", "--capture", "poll", "-p", target.pid, "-d", "1", "-o", tmp_path / "x.folded")
        assert result.returncode == 0, result.stderr
        assert f"is traced by process {os.getpid()} already" in result.stderr
        assert re.search(r"; [1-9]\d* lost$", result.stderr, re.M), result.stderr
        assert total(tmp_path / "x.folded") == 0
    finally:
        target.kill()
        target.wait()


def test_hostile_programs_do_no_harm(cairn, tmp_path, as_root):
    path = compiled(HOSTILE, tmp_path / "hostile")
    target = subprocess.Popen([str(path), "forks"], start_new_session=True)
    try:
        for mode in "cpu", "wall":
            result = cairn.run("record", "--capture", "poll", "-p", target.pid, "-s", "-m", mode, "-F", "500", "-d", "2", "-o",
                               tmp_path / "x.folded")
            assert result.returncode == 0, result.stderr
            assert total(tmp_path / "x.folded") > 0
    finally:
        os.killpg(target.pid, signal.SIGKILL)
        target.wait()


def test_a_target_that_ends_is_named_and_ends_the_session(cairn, tmp_path, as_root):
    target = subprocess.Popen(["timeout", "--foreground", "2", sys.executable, "-c", SPIN])
    time.sleep(0.3)
    pid = int(pathlib.Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text(encoding="utf-8").split()[0])
    begin = time.monotonic()
    result = cairn.run("record", "--capture", "poll", "-p", pid, "-d", "60", "-o", tmp_path / "x.folded")
    target.wait()
    assert result.returncode == 0, result.stderr
    assert time.monotonic() - begin < 30
    assert any("<module> (<string>:" in frame for _, frames, _ in stacks(tmp_path / "x.folded") for frame in frames)


@pytest.mark.parametrize("words, said", [
    (["-K"], "-K does not go with it"),
    (["-c", "1000"], "-e and -c do not go with it"),
    (["-e", "page-faults"], "-e and -c do not go with it"),
    (["--cpus", "0"], "--cpus do not go with it"),
    (["-F", "2000"], "at most 1000 times a second"),
])
def test_what_cannot_be_had_from_outside_is_refused(cairn, tmp_path, words, said):
    result = cairn.run("record", "--capture", "poll", "-a", "-d", "1", *words, "-o", tmp_path / "x")
    assert result.returncode == 1
    assert said in result.stderr
    assert not (tmp_path / "x").exists()
