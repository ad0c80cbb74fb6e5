# SPDX-License-Identifier: Apache-2.0
"""Python in another mount and PID namespace, without and with a user namespace: named as on the host."""
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

import pythons
from pythons import check_dump, check_samples

# Each runs what follows it in namespaces of its own, with {root} as its root.
WAYS = {
    "pid and mount namespace": ["unshare", "--mount", "--pid", "--fork", "--root={root}", "--mount-proc=/proc"],
    "user namespace": ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--root={root}",
                       "--mount-proc=/proc"],
    "overlay": ["unshare", "--mount", "--pid", "--fork", "sh", "-ec",
                "mount -t tmpfs none {over}; mkdir {over}/up {over}/work {over}/root; "
                "mount -t overlay none -o lowerdir={root},upperdir={over}/up,workdir={over}/work {over}/root; "
                "mount -t proc none {over}/root/proc; mount --bind {root}/out {over}/root/out; "
                'exec chroot {over}/root "$@"', "sh"],
}


def libraries(path):
    done = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return set(re.findall(r"(/\S+) \(0x", done.stdout))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with Debian's interpreter, its library and nothing else."""
    interpreter = pythons.debian()
    if not interpreter or not shutil.which("unshare") or not shutil.which("ldd"):
        pytest.skip("needs the distribution's python3, unshare and ldd")
    folder = tmp_path_factory.mktemp("root")
    version = "%d.%d" % interpreter.version[:2]
    library = pathlib.Path(f"/usr/lib/python{version}")
    shutil.copytree(library, folder / str(library)[1:], symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__", "test", "dist-packages", "config-*", "idlelib"))
    wanted = {interpreter.path}.union(libraries(interpreter.path), *map(libraries, library.glob("lib-dynload/*.so")))
    for name in wanted:
        target = folder / name[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, target)
    shutil.copytree(pythons.PROGRAMS, folder / "srv/a service")
    for name in ("proc", "out", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    os.chmod(folder / "out", 0o777)
    return folder


def inside(pid, path):
    """The process that runs PATH below PID, as the host counts."""
    for _ in range(200):
        below = [pid]
        while below:
            one = below.pop()
            below += map(int, pathlib.Path(f"/proc/{one}/task/{one}/children").read_text(encoding="ascii").split())
            if os.readlink(f"/proc/{one}/exe").endswith(path):
                return one
        time.sleep(0.02)
    raise AssertionError(f"nothing below {pid} runs {path}")


def host_tids(pid, told):
    """What threads told, by the ids that the host has for them."""
    found = {}
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        ids = re.search(r"^NSpid:(.*)$", status.read_text(encoding="utf-8"), re.M)[1].split()
        if int(ids[-1]) in told:
            found[int(ids[0])] = told[int(ids[-1])]
    assert len(found) == len(told)
    return found


@pytest.mark.parametrize("program", ["code_kinds", "threads"])
@pytest.mark.parametrize("way", WAYS)
def test_python_in_a_container_is_named_as_on_the_host(cairn, as_root, root, tmp_path, way, program):
    interpreter = pythons.debian()
    before = [word.format(root=root, over=tmp_path / "over") for word in WAYS[way]]
    (tmp_path / "over").mkdir()
    command = [*before, interpreter.path, f"/srv/a service/{program}.py"]
    told_by = root / "out/expect.jsonl"
    told_by.unlink(missing_ok=True)
    target = pythons.Target(command, tmp_path, "spin", CAIRN_EXPECT="/out/expect.jsonl")
    target.expect_path = told_by
    try:
        try:
            told = target.wait_ready()
        except AssertionError as error:
            if "Operation not permitted" in str(error) or "unshare failed" in str(error):
                pytest.skip(f"this machine does not allow it: {error}")
            raise
        pid = inside(target.pid, interpreter.path)
        told = host_tids(pid, told)
        check_dump(pythons.threads_of(pythons.dump_busy(cairn, pid)), told)
        done = cairn.run("record", "-p", pid, "-F", "499", "-d", "1", "-o", tmp_path / "out.html")
        assert done.returncode == 0, done.stderr
        assert check_samples(pythons.profile_of(tmp_path / "out.html").get(pid, []), told)
    finally:
        subprocess.run(["kill", "-KILL", *children(target.pid)], check=False)
        target.stop()


def children(pid):
    """All below PID, which is unshare and ends when its child does."""
    found = []
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    for word in path.read_text(encoding="ascii").split() if path.exists() else []:
        found += [word, *children(int(word))]
    return found
