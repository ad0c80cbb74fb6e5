# SPDX-License-Identifier: Apache-2.0
"""Which interpreters are on this machine, and the programs of tests/targets/python running in them."""
import contextlib
import functools
import glob
import json
import os
import pathlib
import re
import resource
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
PATIENCE = 90  # seconds until a program has told its stacks, beside a group of others
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
        self.quick = [word for line in re.findall(r"^# quick: (.*)$", head, re.M) for word in line.split()]

    def quick_for(self, interpreter):
        """Does a short run take it with this interpreter, too?"""
        return "all" in self.quick or interpreter.kind.replace(" ", "-") in self.quick


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


def prepare():
    """In a process that becomes a target: it leaves CPUs to others, and may leave a core file in its folder."""
    os.nice(5)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


class Target:
    """A program that runs, and what it told of its stacks."""

    def __init__(self, command, folder, pause, **environment):
        self.folder = pathlib.Path(folder)
        self.expect_path = self.folder / "expect.jsonl"
        self.log_path = self.folder / "log"
        environment = clean_environment(**{"CAIRN_EXPECT": str(self.expect_path), "CAIRN_PAUSE": pause, **environment})
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env=environment, cwd=self.folder, preexec_fn=prepare)
        self.pid = self.child.pid
        self.deadline = time.monotonic() + PATIENCE

    def look(self):
        """{tid: what it told}, None if it is not ready yet; it has only so much time."""
        rows = self.expect_path.read_bytes().split(b"\n") if self.expect_path.exists() else []
        if b'{"ready": true}' in rows:
            told = [json.loads(row) for row in rows if row and row != b'{"ready": true}']
            return {row["tid"]: row for row in told}
        time.sleep(0.005)
        if self.child.poll() is None and time.monotonic() < self.deadline:
            return None
        raise AssertionError(f"{self.child.args}: told nothing\n{self.log_path.read_text(errors='replace')}")

    def wait_ready(self):
        told = self.look()
        while told is None:
            told = self.look()
        return told

    def close(self):
        self.stop()

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()


def wait_still(pid, patience=1):
    """Until no thread runs: what is between the last word of a thread and its rest takes a moment. Some never rest."""
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


def kernel_makes_cores():
    """Not where another program is given them."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="ascii").strip()
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    return bool(re.match(r"[^|@/][^/]*$", pattern)) and hard == resource.RLIM_INFINITY


def why_no_cores():
    """None if there can be core files."""
    if kernel_makes_cores() or shutil.which("gcore"):
        return None
    return "the kernel gives cores to another program, and there is no gcore (gdb)"


def make_core(target):
    """A core file: the kernel's, after which the target is gone, else gdb's."""
    if not kernel_makes_cores():
        return core_by_gdb(target.pid, target.folder)
    target.child.send_signal(signal.SIGABRT)
    target.child.wait()
    found = list(target.folder.glob("*core*"))
    assert found, f"no core file in {target.folder}"
    return found[0]


def core_by_gdb(pid, folder):
    done = subprocess.run(["gcore", "-o", str(folder / "core"), str(pid)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False)
    path = folder / f"core.{pid}"
    assert path.exists(), done.stdout + done.stderr
    return path


# --- what cairn said

SAMPLE_KEYS = ("function", "file", "line")
DUMP_KEYS = ("function", "file", "line", "first_line")


def threads_of(done):
    """{tid: thread} of what `cairn dump -j` printed."""
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["schema"] == 1
    return {thread["tid"]: thread for thread in answer["threads"]}


def dump(cairn, *what):
    return threads_of(cairn.run("dump", *what, "-j"))


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


def dump_busy(cairn, pid):
    """Where others have the CPUs a thread may get none in the time that it is given to stop; the dump says so."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(tid), 0)
    for _ in range(20):
        done = cairn.run("dump", pid, "-j")
        if "did not stop in time" not in done.stdout:
            break
    return done


def modules_of(file):
    """What may stand before a function of FILE: an end of its path, as one is imported."""
    if file.startswith("<"):
        frozen = re.match(r"<frozen (.*)>$", file)
        return [frozen[1] + "."] if frozen else [""]
    words = re.sub(r"(/__init__)?\.py$", "", file).split("/")
    return [".".join(words[-count:]) + "." for count in range(1, len(words) + 1) if words[-count:] != [""]] or [""]


def with_module(frame, said):
    """FRAME as a sample has it: before the function stands its module, one of those that its file allows."""
    file = said["file"] or "" if said and same_text(said["file"], frame["file"]) else frame["file"]
    names = [module + frame["function"] for module in modules_of(file)]
    return {**frame, "function": next((name for name in names if said and same_text(said["function"], name)), names[0])}


def same_text(said, expected):
    """Texts from a target have a maximum: a long one may end early, and says so."""
    expected = as_utf8(expected)
    if (said or "") == expected:
        return True
    return len(expected) > 1000 and said is not None and said.endswith("\u2026") and len(said) > 200 \
        and expected.startswith(said[:-1])


def difference(said, expected, keys, as_said=lambda frame, _: frame):
    """None, or a text for a person: where Python frames are not what the target told."""
    rows = []
    for number in range(max(len(said), len(expected))):
        one = said[number] if number < len(said) else None
        other = as_said(expected[number], one) if number < len(expected) else None
        if one and other and all(same_text(one[key], other[key]) if isinstance(other[key], str) else one[key] == other[key]
                                 for key in keys):
            continue
        show = lambda frame: "nothing" if frame is None else ", ".join(f"{key} {str(frame[key])[:200]!r}" for key in keys)
        rows.append(f"frame {number}: cairn has {show(one)}; the target told {show(other)}")
        if len(rows) == 5:
            break
    return "\n".join(rows) if rows else None


def check_dump(threads, told):
    """Each thread that told has the stack it told; all stacks are whole."""
    wrong = [f"thread {tid}, {thread['name']!r}: ends by {thread['end']}, {thread['frames'][-1:]}"
             for tid, thread in threads.items() if thread["end"] != "root" and thread["state"] != "ended"]
    for tid, row in told.items():
        if tid not in threads:
            wrong.append(f"thread {tid}, {row['name']!r}: not in the dump")
            continue
        found = difference(python_frames(threads[tid]["frames"]), row["frames"], DUMP_KEYS)
        if found:
            wrong.append(f"thread {tid}, {row['name']!r}:\n{found}")
    assert not wrong, "\n".join(wrong)


def says_what_is_missing(frames):
    """By a frame in the place of others, or by a line 0."""
    return any(frame["function"].startswith(("[cut: ", "[no Python frames: ", "[unreadable ")) or
               frame["kind"] == "python" and not frame["line"] for frame in frames)


def check_samples(stacks, told):
    """Each sample has the stack of one of the threads; one, or of many 5 %, may be incomplete if they say so: where others
    have the CPUs, code may come too late to be loaded. Returns the threads that were seen."""
    seen, total, incomplete, silent, wrong = set(), 0, 0, 0, []
    for frames, count in stacks:
        total += count
        found = {tid: difference(python_frames(frames), row["frames"], SAMPLE_KEYS, with_module)
                 for tid, row in told.items()}
        same = [tid for tid, text in found.items() if text is None]
        seen.update(same)
        if same:
            continue
        incomplete += count
        silent += 0 if says_what_is_missing(frames) else count
        shown = " <- ".join(f"{frame['function'][:60]}" for frame in frames[:12])
        wrong.append(f"{count} samples: {shown}\n{min(found.values(), key=len)}")
    assert total > 0, "no samples"
    assert not silent and incomplete <= max(1, total // 20), f"of {total} samples, wrong:\n" + "\n".join(wrong)
    return seen


def main():
    for interpreter in interpreters():
        missing = [program.name for program in programs() if not interpreter.runs(program)]
        print(f"{interpreter.id:<24} {interpreter.path}  not: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
