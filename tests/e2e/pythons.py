# SPDX-License-Identifier: Apache-2.0
"""Which interpreters are on this machine, and the programs of tests/targets/python running in them."""
import contextlib
import functools
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from conftest import ROOT

PROGRAMS = ROOT / "tests/targets/python"
# Where interpreters are looked for. CAIRN_PYTHONS: more of them, separated by colons.
PLACES = ["/usr/bin/python[23].*", "~/.pyenv/versions/*/bin/python[23].*", "/opt/pythons/*/bin/python[23].*"]
WANTED = ["2.7", "3.5", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.13t", "3.14t", "3.12d",
          "3.14d", "3.12 with musl"]
ABOUT = """
import sys
try:
    import sysconfig
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    musl = "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "")
except ImportError:
    free = musl = False
found = []
for name in %r:
    try:
        __import__(name)
        found.append(name)
    except ImportError:
        pass
print("%%d.%%d.%%d" %% sys.version_info[:3], "t" if free else "", "d" if hasattr(sys, "gettotalrefcount") else "",
      " with musl" if musl else "", "libpython" if "/libpython" in open("/proc/self/maps").read() else "static", ",".join(found), sep="|")
"""


class Program:
    """A file of tests/targets/python, and what its first lines say that it needs."""

    def __init__(self, path):
        self.path, self.name = path, path.stem
        head = path.read_text(encoding="utf-8")
        self.needs = tuple(map(int, re.search(r"^# needs: (\d+)\.(\d+)$", head, re.M).groups()))
        self.imports = [word for line in re.findall(r"^# imports: (.*)$", head, re.M) for word in line.split()]


@functools.lru_cache(maxsize=None)
def programs():
    paths = sorted(path for path in PROGRAMS.glob("*.py") if "\n# needs: " in path.read_text(encoding="utf-8"))
    return [Program(path) for path in paths]


class Interpreter:
    def __init__(self, path):
        self.path = path
        modules = sorted({name for program in programs() for name in program.imports})
        done = self.ask(modules)
        if done.returncode < 0:
            # An old interpreter that a newer compiler built may crash in one of them (3.5 in ctypes).
            done = self.ask([name for name in modules if self.ask([name]).returncode == 0])
        done.check_returncode()
        version, free, debug, libc, linked, found = done.stdout.strip().split("|")
        self.version = tuple(map(int, version.split(".")))
        self.modules = set(found.split(","))
        self.kind = f"{self.version[0]}.{self.version[1]}{free}{debug}{libc}"
        self.shared = linked == "libpython"
        place = "debian" if path.startswith("/usr/") else "libpython" if self.shared else "static"
        self.id = f"{version}{free}{debug}{libc.replace(' ', '-')}-{place}"

    def ask(self, modules):
        source = "from __future__ import print_function\n" + ABOUT % modules
        return subprocess.run([self.path, "-c", source], capture_output=True, text=True, timeout=60, check=False,
                              env=clean_environment())

    def runs(self, program):
        return self.version[:2] >= program.needs and self.modules.issuperset(program.imports)


def clean_environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CAIRN", "PYTHON"))}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}


@functools.lru_cache(maxsize=None)
def interpreters():
    """Each interpreter once; a link beside it is the same one."""
    paths = [path for place in PLACES for path in sorted(glob.glob(os.path.expanduser(place)))]
    paths += [path for path in os.environ.get("CAIRN_PYTHONS", "").split(":") if path]
    found = {}
    for path in paths:
        if not re.search(r"/python\d\.\d+[a-z]*$", path) or not os.access(path, os.X_OK):
            continue
        status = os.stat(path)
        if (status.st_dev, status.st_ino) not in found:
            with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
                found[status.st_dev, status.st_ino] = Interpreter(path)
    return list(found.values())


def debian():
    """The distribution's own, which every machine of the tests has."""
    return next((one for one in interpreters() if one.path.startswith("/usr/bin/")), None)


class Target:
    """A program that runs, and what it told of its stacks."""

    def __init__(self, command, folder, pause, **environment):
        self.expect_path = pathlib.Path(folder) / "expect.jsonl"
        self.log_path = pathlib.Path(folder) / "log"
        environment = clean_environment(**{"CAIRN_EXPECT": str(self.expect_path), "CAIRN_PAUSE": pause, **environment})
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env=environment, preexec_fn=lambda: os.nice(5))
        self.pid = self.child.pid

    def wait_ready(self, patience=60):
        """{tid: what it told}"""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            rows = self.expect_path.read_bytes().split(b"\n") if self.expect_path.exists() else []
            if b'{"ready": true}' in rows:
                told = [json.loads(row) for row in rows if row and row != b'{"ready": true}']
                return {row["tid"]: row for row in told}
            if self.child.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"{self.child.args}: told nothing\n{self.log_path.read_text(errors='replace')}")

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()


def wait_still(pid, patience=5):
    """Until no thread runs: what is between the last word of a thread and its rest takes a moment."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        states = []
        for stat in glob.glob(f"/proc/{pid}/task/*/stat"):
            with contextlib.suppress(OSError):
                states.append(pathlib.Path(stat).read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0])
        if "R" not in states:
            return
        time.sleep(0.02)


def start(interpreter, program, folder, pause):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return Target([interpreter.path, program.path], folder, pause)


def make_core(pid, folder):
    """A core file by gdb's gcore."""
    done = subprocess.run(["gcore", "-o", str(folder / "core"), str(pid)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False)
    path = folder / f"core.{pid}"
    assert path.exists(), done.stdout + done.stderr
    return path


def has_gcore():
    return shutil.which("gcore") is not None


# --- what cairn said

def python_frames(frames):
    return [frame for frame in frames if frame["kind"] == "python"]


def profile_of(page):
    """The profile inside a flame graph: {pid: [(frames, innermost first; samples)]}."""
    text = re.search(r'<script type="application/json" id="cairn-profile">(.*?)</script>', page.read_text(encoding="utf-8"),
                     re.S)
    data = json.loads(text[1])
    strings, table, stacks, samples = (data[key] for key in ("strings", "frames", "stacks", "samples"))
    found = {}
    for stack, process, value in zip(samples["stack"], samples["process"], samples["value"]):
        frames = []
        while stack >= 0:
            frame = stacks["frame"][stack]
            file = table["file"][frame]
            frames.append({"kind": data["kinds"][table["kind"][frame]], "function": strings[table["name"][frame]],
                           "file": strings[file] if file >= 0 else None, "line": table["line"][frame]})
            stack = stacks["parent"][stack]
        found.setdefault(data["processes"]["pid"][process], []).append((frames, value))
    return found


def as_utf8(text):
    """What UTF-8 cannot say cairn writes as repr() does, and NUL too."""
    return re.sub("[\ud800-\udfff\0]", lambda one: repr(one[0])[1:-1], text)


def same_text(said, expected):
    """Texts from a target have a maximum: a long one may end early, and says so."""
    expected = as_utf8(expected)
    if (said or "") == expected:
        return True
    return len(expected) > 1000 and said is not None and said.endswith("\u2026") and len(said) > 200 \
        and expected.startswith(said[:-1])


def difference(said, expected, keys):
    """None, or a text for a person: where Python frames are not what the target told."""
    rows = []
    for number in range(max(len(said), len(expected))):
        one = said[number] if number < len(said) else None
        other = expected[number] if number < len(expected) else None
        if one and other and all(same_text(one[key], other[key]) if isinstance(other[key], str) else one[key] == other[key]
                                 for key in keys):
            continue
        show = lambda frame: "nothing" if frame is None else ", ".join(f"{key} {str(frame[key])[:200]!r}" for key in keys)
        rows.append(f"frame {number}: cairn has {show(one)}; the target told {show(other)}")
        if len(rows) == 5:
            break
    return "\n".join(rows) if rows else None


def main():
    for interpreter in interpreters():
        missing = [program.name for program in programs() if not interpreter.runs(program)]
        print(f"{interpreter.id:<24} {interpreter.path}  not: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
