# SPDX-License-Identifier: Apache-2.0
"""The agent as a service: one on a machine, its files, its log, what it does when it is told to stop."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (ERROR|WARNING|INFO|DEBUG): cairn\.[a-z0-9-]+: .+")
HELD = ("Could not acquire gProfiler's lock. Is it already running? Try 'sudo netstat -xp | grep gprofiler' to see which "
        "process holds the lock.")


class Agent:
    """An agent of one short session after the other, in the background; its own process only is sampled."""

    def __init__(self, cairn, folder, *more, before=(), **env):
        self.folder = folder
        words = ["agent", "-o", folder, "-d", "1", "-f", "19", "--capture", "poll", "--pids", os.getpid(), "--no-flamegraph"]
        self.run = subprocess.Popen([*map(str, before), str(cairn.path), *map(str, [*words, *more])], text=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    env={**os.environ, **env})

    def wait_for(self, profiles):
        deadline = time.monotonic() + 60
        while len(list(self.folder.glob("profile_*.col"))) < profiles:
            assert self.run.poll() is None, self.run.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return self

    def stop(self, number=signal.SIGTERM):
        self.run.send_signal(number)
        return self.end()

    def end(self):
        said = self.run.communicate(timeout=60)[0]
        return self.run.returncode, said


def alone(cairn, folder, *more, **options):
    """A whole run of one session."""
    agent = Agent(cairn, folder, *more, **options)
    return agent.end()


def test_what_must_hold_is_said_in_gprofilers_words(cairn, cairn_for_all, as_nobody, tmp_path):
    code, said = alone(cairn_for_all, tmp_path, before=as_nobody)
    assert (code, said) == (1, "cairn: agent: Not running as root, rerun with --rootless or as root.\n")
    code, said = alone(cairn, tmp_path, "--rootless")
    assert code == 1 and "Running as root" in said
    code, said = alone(cairn, tmp_path, "--log-usage")
    assert (code, said) == (1, "cairn: agent: --log-usage is available only when run as a container!\n")
    assert not list(tmp_path.iterdir())


def test_a_pid_namespace_of_ones_own_is_refused_unless_allowed(cairn, as_root, tmp_path):
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("needs unshare and new PID namespaces")
    run = cairn.run("agent", "-o", tmp_path, "-d", "1", "--capture", "poll", "--pids", "1", before=inside)
    assert run.returncode == 1
    assert "Please run me in the init PID namespace! In Docker, make sure you pass '--pid=host'." in run.stderr
    assert "You can disable this check with --disable-pidns-check." in run.stderr
    allowed = cairn.run("agent", "-o", tmp_path, "-d", "1", "--capture", "poll", "--pids", "1", "--disable-pidns-check",
                        before=inside)
    assert "init PID namespace" not in allowed.stderr


def test_agents_exclude_each_other_and_gprofiler(cairn, as_root, tmp_path):
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind("\0\0gprofiler_lock")
    except OSError:
        pytest.skip("an agent runs here")
    lock.close()
    one = Agent(cairn, tmp_path / "one", "-c", GPROFILER_BESIDE_OTHERS="0").wait_for(1)
    try:
        code, said = alone(cairn, tmp_path / "two", GPROFILER_BESIDE_OTHERS="0")
        assert (code, said) == (1, f"cairn: agent: {HELD}\n")
        with pytest.raises(OSError):
            socket.socket(socket.AF_UNIX).bind("\0\0gprofiler_lock")
        assert alone(cairn, tmp_path / "two")[0] == 0
    finally:
        code, said = one.stop(signal.SIGKILL)
    assert alone(cairn, tmp_path / "three", GPROFILER_BESIDE_OTHERS="0")[0] == 0, "the lock of a killed agent is free"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_session_which_is_written(cairn, as_root, tmp_path, number):
    agent = Agent(cairn, tmp_path / "out", "-c", "-d", "60", "--pid-file", tmp_path / "pid", "-v")
    while not (tmp_path / "pid").exists():
        assert agent.run.poll() is None
        time.sleep(0.05)
    assert (tmp_path / "pid").read_text() == str(agent.run.pid)
    time.sleep(1.5)
    for _ in range(3):  # whoever stops a group through a wrapper sends several
        agent.run.send_signal(number)
    code, said = agent.end()
    assert code == 0, said
    assert len(list((tmp_path / "out").glob("profile_*.col"))) == 1
    assert not (tmp_path / "pid").exists()


def test_the_log_is_in_gprofilers_form_and_rotated(cairn, as_root, tmp_path):
    log = tmp_path / "a/b/agent.log"
    agent = Agent(cairn, tmp_path / "out", "-c", "--log-file", log, "--log-rotate-max-size", "400",
                  "--log-rotate-backup-count", "2", "--token", "sesame").wait_for(4)
    code, said = agent.stop()
    assert code == 0
    assert sorted(path.name for path in log.parent.iterdir()) == ["agent.log", "agent.log.1", "agent.log.2"]
    kept = "".join(path.read_text() for path in log.parent.iterdir())
    for line in (kept + said).splitlines():
        assert LINE.fullmatch(line), line
    assert log.read_text().splitlines()[-1].endswith("INFO: cairn.agent: cairn ends")
    assert "sesame" not in kept + said
    assert "session file=" in said and " DEBUG: " not in said


def test_a_log_that_cannot_be_kept_is_a_failure_if_it_was_asked_for(cairn, cairn_for_all, as_nobody, tmp_path):
    code, said = alone(cairn, tmp_path, "--log-file", "/proc/nowhere/log")
    assert code == 1 and "/proc/nowhere" in said
    folder = tmp_path / "out"
    folder.mkdir()
    os.chmod(folder, 0o777)
    for above in folder.parents:
        if os.stat(above).st_uid == os.geteuid() and above != above.parent and "pytest" in str(above):
            os.chmod(above, 0o755)
    sleeper = subprocess.Popen([*as_nobody, sys.executable, "-c", "while True: pass"])
    try:
        words = ["agent", "--rootless", "-o", folder, "-d", "1", "--pids", sleeper.pid]
        run = cairn_for_all.run(*words, before=["env", "-u", "GPROFILER_LOG_FILE", *as_nobody])
    finally:
        sleeper.kill()
        sleeper.wait()
    assert run.returncode == 0, run.stdout + run.stderr


def test_heartbeat_and_controller(cairn, as_root, tmp_path):
    beat = tmp_path / "beat"
    controller = subprocess.Popen(["sleep", "1000"])
    agent = Agent(cairn, tmp_path / "out", "-c", "--heartbeat-file", beat, "--controller-pid", controller.pid).wait_for(1)
    first = beat.stat().st_mtime_ns
    agent.wait_for(3)
    assert beat.stat().st_mtime_ns > first
    controller.kill()
    controller.wait()
    code, said = agent.end()
    assert code == 0
    assert f"Controller process {controller.pid} has exited; gProfiler stopping..." in said
    code, said = alone(cairn, tmp_path / "out", "--controller-pid", controller.pid)
    assert code == 1 and f"Controller process {controller.pid} is not running" in said


def test_there_are_no_cores_unless_allowed(cairn, as_root, tmp_path):
    for more, wanted in (([], "0"), (["--dont-disable-core-files"], "4096")):
        agent = Agent(cairn, tmp_path / wanted, "-c", *more, before=["prlimit", "--core=4096"]).wait_for(1)
        with open(f"/proc/{agent.run.pid}/limits", encoding="ascii") as limits:
            core = next(line for line in limits if line.startswith("Max core"))
        agent.stop()
        assert core.split()[4] == wanted


def test_what_a_killed_agent_left_is_removed_and_nothing_else(cairn, as_root, tmp_path):
    dead = subprocess.run(["sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    left = [f"profile_2026-01-02T03:04:05.col.{dead}.tmp", f"profile_2026-01-02T03:04:05.html.{dead}.tmp"]
    kept = [f"profile_2026-01-02T03:04:05.col.{os.getpid()}.tmp", f"notes.{dead}.tmp", "profile_x.tmp"]
    for name in left + kept:
        (tmp_path / name).write_text("half")
    code, said = alone(cairn, tmp_path)
    assert code == 0
    assert "had not finished files=2" in said
    assert not [name for name in left if (tmp_path / name).exists()]
    assert all((tmp_path / name).exists() for name in kept)


def test_usage_is_logged_in_a_container(cairn, as_root, tmp_path):
    code, said = alone(cairn, tmp_path, "--log-usage", GPROFILER_IN_CONTAINER="1")
    assert code == 0
    assert "usage cpu_seconds=" in said or "does not say what CPU time" in said
    assert "usage memory_bytes=" in said or "does not say what memory" in said


def test_the_status_can_be_asked_by_anybody(cairn, as_root, tmp_path):
    place = tmp_path / "socket"
    none = cairn.run("status", "--socket", place)
    assert none.returncode == 1 and f"no agent answers at {place}" in none.stderr
    agent = Agent(cairn, tmp_path / "out", "-c", "--status-socket", place).wait_for(2)
    told = json.loads(cairn.run("status", "-j", "--socket", place).stdout)
    assert told["pid"] == agent.run.pid and told["capture"] == "poll"
    assert told["sessions"] >= 1 and told["sessions_failed"] == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", told["last_session"])
    text = cairn.run("status", "--socket", place).stdout
    assert re.search(rf"^pid +{agent.run.pid}$", text, re.M)
    assert place.stat().st_mode & 0o777 == 0o666
    code, said = alone(cairn, tmp_path / "two", "--status-socket", place)
    assert code == 1 and "another agent has it" in said
    for _ in range(20):  # clients that do not wait for the answer
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            with contextlib.suppress(OSError):
                client.connect(str(place))
    assert agent.stop()[0] == 0
    assert not place.exists()
    killed = Agent(cairn, tmp_path / "killed", "-c", "--status-socket", place).wait_for(1)
    killed.stop(signal.SIGKILL)
    assert place.exists()
    assert alone(cairn, tmp_path / "three", "--status-socket", place)[0] == 0


def test_systemd_hears_of_start_life_and_end(cairn, as_root, tmp_path):
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(str(tmp_path / "notify"))
    heard.settimeout(60)
    agent = Agent(cairn, tmp_path / "out", "-c", NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="400000")
    assert heard.recv(1000).startswith(b"READY=1")
    assert heard.recv(1000) == b"WATCHDOG=1"
    agent.run.send_signal(signal.SIGTERM)
    while not heard.recv(1000).startswith(b"STOPPING=1"):
        pass
    assert agent.end()[0] == 0
