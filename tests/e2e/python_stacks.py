# SPDX-License-Identifier: Apache-2.0
"""Python stacks against what the programs say of themselves, for every interpreter of this machine: by samples taken in
the kernel, by a dump of the live process, by a dump of a core file.

Each program of tests/targets/python runs twice: busy at the line it told, for the sampler and for a dump that has to
stop a thread; and asleep there, for a dump that need not, and for the core. One session records all busy ones of an
interpreter.
"""
import json
import os
import shutil
import signal
import subprocess

import pytest

import pythons
from pythons import difference, python_frames

SAMPLE_KEYS = ("function", "file", "line")
DUMP_KEYS = ("function", "file", "line", "first_line")


class Crowd:
    """All programs that one interpreter can run."""

    dumps = {}  # of all crowds: the tests of dumps and those of cores are not neighbours

    def __init__(self, cairn, interpreter, folder):
        self.cairn, self.interpreter, self.folder = cairn, interpreter, folder
        self.busy, self.told, self.profile, self.log = {}, {}, None, ""
        self.with_cores = pythons.has_gcore() and "--core" in cairn.run("dump", "--help").stdout

    def start_busy(self):
        """One after the other; those that are ready hold still until all are."""
        for program in [] if self.busy else pythons.programs():
            if self.interpreter.runs(program):
                target = pythons.start(self.interpreter, program, self.folder / program.name, "spin")
                self.busy[program.name] = target
                self.told[program.name] = target.wait_ready()
                os.kill(target.pid, signal.SIGSTOP)

    def record(self):
        if self.profile is None:
            self.start_busy()
            self.signal(signal.SIGCONT)
            output = self.folder / "out.html"
            pids = ",".join(str(target.pid) for target in self.busy.values())
            done = self.cairn.run("record", "-p", pids, "-F", "997", "-d", "2", "-o", output)
            self.signal(signal.SIGSTOP)
            assert done.returncode == 0, done.stderr
            self.log, self.profile = done.stderr, pythons.profile_of(output)
        return self.profile

    def dump_busy(self, name):
        self.start_busy()
        target = self.busy[name]
        os.kill(target.pid, signal.SIGCONT)
        try:
            return dump(self.cairn, target.pid), self.told[name]
        finally:
            os.kill(target.pid, signal.SIGSTOP)

    def dump_asleep(self, name):
        """(dump of the process, dump of its core or None, what it told)"""
        key = self.interpreter.id, name
        if key in self.dumps:
            return self.dumps[key]
        program = next(program for program in pythons.programs() if program.name == name)
        folder = self.folder / f"asleep-{name}"
        target = pythons.start(self.interpreter, program, folder, "block")
        try:
            told = target.wait_ready()
            pythons.wait_still(target.pid)
            live = dump(self.cairn, target.pid)
            core = pythons.make_core(target.pid, folder) if self.with_cores else None
        finally:
            target.stop()
        dead = dump(self.cairn, "--core", core, self.interpreter.path) if core else None
        shutil.rmtree(folder)
        self.dumps[key] = live, dead, told
        return self.dumps[key]

    def signal(self, number):
        for target in self.busy.values():
            os.kill(target.pid, number)

    def stop(self):
        for target in self.busy.values():
            target.stop()


def dump(cairn, *what):
    """The threads of `cairn dump -j`."""
    done = cairn.run("dump", *what, "-j")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["schema"] == 1
    return {thread["tid"]: thread for thread in answer["threads"]}


def check_dump(threads, told):
    """Each thread that told has the stack it told; no other thread is missing or strange."""
    wrong = []
    for tid, row in told.items():
        if tid not in threads:
            wrong.append(f"thread {tid}, {row['name']!r}: not in the dump")
            continue
        found = difference(python_frames(threads[tid]["frames"]), row["frames"], DUMP_KEYS)
        if found:
            wrong.append(f"thread {tid}, {row['name']!r}:\n{found}")
    assert not wrong, "\n".join(wrong)


def check_samples(stacks, told):
    """Each sample has the stack of one of the threads, and each thread that is busy was seen."""
    seen, total, wrong = set(), 0, []
    for frames, count in stacks:
        total += count
        found = {tid: difference(python_frames(frames), row["frames"], SAMPLE_KEYS) for tid, row in told.items()}
        same = [tid for tid, text in found.items() if text is None]
        seen.update(same)
        if not same:
            shown = " <- ".join(f"{frame['function'][:60]}" for frame in frames[:12])
            wrong.append(f"{count} samples: {shown}\n{min(found.values(), key=len)}")
    assert total > 0, "no samples"
    assert not wrong, f"of {total} samples, wrong:\n" + "\n".join(wrong)
    return seen


def known(interpreter, program):
    """What cairn cannot do yet, with the reason; a case that passes all the same is not a failure."""
    if program == "subinterpreter":
        return "of a thread that runs two interpreters the frames of one are found"
    if interpreter.version >= (3, 14):
        return "frames of 3.14 are not readable, seen with Debian's 3.14.10"
    return None


def cases():
    for interpreter in pythons.interpreters():
        for program in pythons.programs():
            if interpreter.runs(program):
                reason = known(interpreter, program.name)
                yield pytest.param(interpreter, program.name, id=f"{interpreter.id}-{program.name}",
                                   marks=pytest.mark.xfail(reason=reason) if reason else ())


@pytest.fixture(scope="module")
def crowd_of(cairn, tmp_path_factory):
    """The crowd of the interpreter that is being tested: one at a time."""
    now = {}

    def get(interpreter):
        if interpreter.id not in now:
            while now:
                now.popitem()[1].stop()
            now[interpreter.id] = Crowd(cairn, interpreter, tmp_path_factory.mktemp(interpreter.id))
        return now[interpreter.id]

    yield get
    while now:
        now.popitem()[1].stop()


@pytest.fixture(scope="session")
def has_walker():
    if "KIND_python" not in (pythons.ROOT / "src/capture/naming.c").read_text(encoding="utf-8"):
        pytest.skip("cairn record does not name Python yet")


@pytest.fixture(scope="session")
def has_core(cairn):
    if "--core" not in cairn.run("dump", "--help").stdout:
        pytest.skip("cairn dump does not read cores yet")
    if not pythons.has_gcore():
        pytest.skip("needs gcore, from gdb")


@pytest.mark.parametrize("version", pythons.WANTED)
def test_there_is_an_interpreter_of_each_version(version):
    if version not in {interpreter.kind for interpreter in pythons.interpreters()}:
        pytest.skip(f"no CPython {version} on this machine")


@pytest.mark.parametrize("interpreter, program", cases())
def test_samples_have_the_stack_that_the_program_told(crowd_of, has_walker, as_root, interpreter, program):
    crowd = crowd_of(interpreter)
    profile = crowd.record()
    if not any(frame["kind"] == "python" for stacks in profile.values() for frames, _ in stacks for frame in frames):
        pytest.fail(f"no Python frame in any sample\n{crowd.log}")
    target, told = crowd.busy[program], crowd.told[program]
    seen = check_samples(profile.get(target.pid, []), told)
    busy = {"extension_calls": 2, "extension_numpy": 2}.get(program, 1)
    assert len(seen) >= busy, f"only {len(seen)} threads seen"


@pytest.mark.parametrize("interpreter, program", cases())
def test_a_dump_of_a_busy_process_has_the_stacks_that_it_told(crowd_of, as_root, interpreter, program):
    threads, told = crowd_of(interpreter).dump_busy(program)
    check_dump(threads, told)


@pytest.mark.parametrize("interpreter, program", cases())
def test_a_dump_of_a_sleeping_process_has_the_stacks_that_it_told(crowd_of, interpreter, program):
    live, _, told = crowd_of(interpreter).dump_asleep(program)
    check_dump(live, told)


@pytest.mark.parametrize("interpreter, program", cases())
def test_a_core_has_the_stacks_that_the_live_process_had(crowd_of, has_core, interpreter, program):
    live, dead, told = crowd_of(interpreter).dump_asleep(program)
    check_dump(dead, told)
    for tid, thread in live.items():
        assert tid in dead, f"thread {tid} is not in the dump of the core"
        assert dead[tid]["frames"] == thread["frames"]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """{version: a program with that CPython inside}, for what can be linked here."""
    folder = tmp_path_factory.mktemp("embedded")
    found = {}
    for interpreter in pythons.interpreters():
        for name in (f"{interpreter.path}-config", f"{interpreter.path}m-config"):
            if not shutil.which("gcc") or not os.path.exists(name):
                continue
            flags = [config(name, "--cflags"), config(name, "--embed", "--ldflags") or config(name, "--ldflags")]
            program = folder / f"myapp-{interpreter.id}"
            words = ["gcc", "-fPIC", pythons.PROGRAMS / "embed.c", "-o", program, *" ".join(flags).split()]
            library = os.path.join(os.path.dirname(os.path.dirname(interpreter.path)), "lib")
            done = subprocess.run([*map(str, words), f"-Wl,-rpath,{library}", f"-L{library}"], capture_output=True,
                                  text=True, check=False)
            if done.returncode == 0:
                found[interpreter] = program
                break
    if not found:
        pytest.skip("needs gcc and the headers of an interpreter")
    return found


def config(name, *words):
    done = subprocess.run([name, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def prefix(interpreter):
    return os.path.dirname(os.path.dirname(interpreter.path))


@pytest.mark.parametrize("name", ["code_kinds", "callback_ctypes"])
def test_an_interpreter_inside_another_program_is_found(cairn, has_walker, embedded, as_root, tmp_path, name):
    targets = {}
    try:
        for interpreter, program in embedded.items():
            folder = tmp_path / interpreter.id
            folder.mkdir()
            home = {"PYTHONHOME": prefix(interpreter), "PYTHONPATH": str(pythons.PROGRAMS)}
            target = pythons.Target([program, pythons.PROGRAMS / f"{name}.py"], folder, "spin", **home)
            targets[interpreter] = target, target.wait_ready()
        pids = ",".join(str(target.pid) for target, _ in targets.values())
        done = cairn.run("record", "-p", pids, "-F", "997", "-d", "2", "-o", tmp_path / "out.html")
        assert done.returncode == 0, done.stderr
        profile = pythons.profile_of(tmp_path / "out.html")
        for interpreter, (target, told) in targets.items():
            stacks = profile.get(target.pid, [])
            assert check_samples(stacks, told), interpreter.id
            # The program's own frames stay: they are not the interpreter's.
            assert all("run_script" in [frame["function"] for frame in frames] for frames, _ in stacks), interpreter.id
            check_dump(dump(cairn, target.pid), told)
    finally:
        for target, _ in targets.values():
            target.stop()
