# SPDX-License-Identifier: Apache-2.0
"""Processes in control groups named as container runtimes name them, beside the runtime's files."""
import json
import os
import pathlib
import secrets
import subprocess
import sys
import time

import pytest

BURN = "import os, time\nend = time.time() + 60\nwhile time.time() < end: pass"
SHORT = "while :; do /bin/sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'; done"
GROUPS = [pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/sys/fs/cgroup/cpu")]


def remove(group):
    """Processes that were killed leave their group a moment later."""
    for _ in range(50):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.1)
    return group.rmdir()


@pytest.fixture
def groups(as_root):
    """Makes control groups, v2's or v1's, and removes them."""
    made = []

    def make(path):
        for root in GROUPS:
            if (root / "cgroup.procs").exists():
                group = root / path
                missing = [p for p in [group, *group.parents] if not p.exists()]
                try:
                    group.mkdir(parents=True, exist_ok=True)
                except OSError:
                    continue
                made.extend(missing)
                return group
        pytest.skip("no control group can be made here")
    yield make
    for group in made:
        remove(group)


@pytest.fixture
def runtime_files():
    made = []

    def write(path, value):
        path = pathlib.Path(path)
        made.extend(p for p in [path.parent, *path.parent.parents] if not p.exists())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
        made.insert(0, path)
    yield write
    for path in made:
        path.unlink() if path.is_file() else path.rmdir()


class Busy:
    """A process that runs inside of a group until it is left."""

    def __init__(self, group, *command):
        self.command = ["/bin/sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', str(group), *command]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, start_new_session=True)
        return self.process

    def __exit__(self, *_):
        os.killpg(self.process.pid, 9)
        self.process.wait()


def profile(cairn, folder, *more):
    run = cairn.run("agent", "-o", folder, "-d", "2", "-f", "49", "--no-flamegraph", *more)
    assert run.returncode == 0, run.stderr
    head, *lines = (folder / "last_profile.col").read_text().split("\n")
    return json.loads(head[2:]), lines


# The first two frames are the container and the process, or three with an index in front.
def of(lines, container):
    return [line for line in lines if container in line.split(";")[:2]]


def test_a_container_is_named_by_its_group_and_its_runtime(cairn, groups, runtime_files, tmp_path):
    docker, unknown = secrets.token_hex(32), secrets.token_hex(32)
    runtime_files(f"/var/lib/docker/containers/{docker}/config.v2.json", {"ID": docker, "Name": "/web;1"})
    with Busy(groups(f"docker/{docker}"), sys.executable, "-c", BURN), \
         Busy(groups(f"system.slice/docker-{unknown}.scope"), sys.executable, "-c", BURN), \
         Busy(groups("lxc.payload.box-1"), sys.executable, "-c", BURN):
        head, lines = profile(cairn, tmp_path)
        off, off_lines = profile(cairn, tmp_path, "--disable-container-names")
    assert head["container_names_enabled"] is True
    assert {"web;1", unknown[:12], "box-1"} <= set(head["containers"])
    for name in ["web|1", unknown[:12], "box-1"]:
        assert of(lines, name), name
    assert (off["containers"], off["container_names_enabled"]) == ([], False)
    assert not of(off_lines, "box-1")


def test_short_lived_processes_of_a_container_are_in_it(cairn, groups, tmp_path):
    with Busy(groups("lxc.payload.box-2"), "/bin/sh", "-c", SHORT):
        _, lines = profile(cairn, tmp_path)
    inside = sum(int(line.rsplit(" ", 1)[1]) for line in of(lines, "box-2"))
    shells = sum(int(line.rsplit(" ", 1)[1]) for line in lines if "sh" in line.split(";")[:3])
    assert inside > 0.9 * shells > 0
