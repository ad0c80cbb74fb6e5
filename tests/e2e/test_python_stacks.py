# SPDX-License-Identifier: Apache-2.0
"""Python stacks against what the programs say of themselves, for every interpreter of this machine: by samples taken in
the kernel, by a dump of the live process, by a dump of a core file.

Each program of tests/targets/python runs twice: busy at the line it told, for the sampler and for a dump that has to
stop a thread; and asleep there, for a dump that need not, and for the core. The busy ones of several interpreters are
recorded together. The distribution's interpreter runs every program; the others those that say so, unless
CAIRN_ALL_PYTHONS=1 asks for everything.
"""
import contextlib
import os
import shutil
import signal
import subprocess

import pytest

import pythons
from pythons import check_dump, check_samples

WHOLE = os.environ.get("CAIRN_ALL_PYTHONS", "") not in ("", "0")
TOGETHER = 24  # busy programs in one recording, of two seconds
RECORDINGS = 3
TWO_BUSY_THREADS = {"extension_calls", "extension_numpy"}


def cases():
    """Every program of every interpreter that this run is about."""
    return [(interpreter, program) for interpreter in pythons.interpreters() for program in pythons.programs()
            if interpreter.runs(program) and (WHOLE or interpreter is pythons.debian() or program.quick_for(interpreter))]


def parameters(chosen):
    return [pytest.param((interpreter, program), id=f"{interpreter.id}-{program.name}")
            for interpreter, program in chosen]


class Seen:
    """A program that was looked at while it was busy."""

    def __init__(self, target, told):
        self.target, self.told = target, told
        self.stacks, self.dump, self.log = [], None, ""


@contextlib.contextmanager
def busy_targets(targets):
    """{case: Seen} for {case: Target}: those that are ready hold still until all are. Those that fail are left out."""
    try:
        found, waiting = {}, dict(targets)
        while waiting:
            for case, target in list(waiting.items()):
                with contextlib.suppress(AssertionError):
                    told = target.look()
                    if told is None:
                        continue
                    os.kill(target.pid, signal.SIGSTOP)
                    found[case] = Seen(target, told)
                del waiting[case]
        yield found
    finally:
        for target in targets.values():
            target.stop()


def record_all(cairn, several, output):
    """In one session, and in another one those that never got a CPU beside what else this machine does."""
    if not several:
        return
    for one in several:
        os.kill(one.target.pid, signal.SIGCONT)
    pids = ",".join(str(one.target.pid) for one in several)
    done = cairn.run("record", "-p", pids, "-F", "997", "-d", "2", "-o", output)
    profile = pythons.profile_of(output) if done.returncode == 0 else {}
    for one in several:
        os.kill(one.target.pid, signal.SIGSTOP)
        one.stacks, one.log = profile.get(one.target.pid, []), done.stderr


def look_at(cairn, targets, folder):
    """{case: Seen} for {case: Target}: one recording of all, a dump of each; none of them runs any more."""
    with busy_targets(targets) as seen:
        for _ in range(RECORDINGS):
            record_all(cairn, [one for one in seen.values() if not one.stacks], folder / "out.html")
        for one in seen.values():
            os.kill(one.target.pid, signal.SIGCONT)
            one.dump = pythons.dump_busy(cairn, one.target.pid)
            os.kill(one.target.pid, signal.SIGSTOP)
    return seen


@pytest.fixture(scope="module")
def busy(cairn, request, tmp_path_factory):
    """What was seen of a busy program; it is looked at together with its neighbours among the tests that were chosen."""
    chosen = []
    for item in request.session.items:
        case = item.callspec.params.get("busy_case") if hasattr(item, "callspec") else None
        if case and case not in chosen:
            chosen.append(case)
    seen = {}

    def get(case):
        if case not in seen:
            first = chosen.index(case) // TOGETHER * TOGETHER
            folder = tmp_path_factory.mktemp("busy")
            targets = {(interpreter, program): pythons.start(interpreter, program, folder / f"{number}", "spin")
                       for number, (interpreter, program) in enumerate(chosen[first : first + TOGETHER])}
            seen.update(targets)
            seen.update(look_at(cairn, targets, folder))
        if isinstance(seen[case], pythons.Target):
            seen[case].look()  # which says why it was not ready
        return seen[case]

    return get


@pytest.fixture(scope="module")
def asleep(cairn, tmp_path_factory):
    """(dump of a sleeping program, of its core or None, what it told)"""
    seen, with_cores = {}, pythons.why_no_cores() is None

    def get(case):
        if case not in seen:
            folder = tmp_path_factory.mktemp("asleep")
            with contextlib.closing(pythons.start(*case, folder, "block")) as target:
                told = target.wait_ready()
                pythons.wait_still(target.pid)
                live = pythons.dump(cairn, target.pid)
                core = pythons.make_core(target) if with_cores else None
            dead = pythons.dump(cairn, "--core", core, case[0].path) if core else None
            shutil.rmtree(folder)
            seen[case] = live, dead, told
        return seen[case]

    return get


@pytest.mark.parametrize("version", pythons.WANTED)
def test_there_is_an_interpreter_of_each_version(version):
    if version not in {interpreter.kind for interpreter in pythons.interpreters()}:
        pytest.skip(f"no CPython {version} on this machine")


@pytest.mark.parametrize("busy_case", parameters(cases()))
def test_samples_have_the_stack_that_the_program_told(busy, as_root, busy_case):
    one = busy(busy_case)
    assert one.stacks, f"no samples\n{one.log}"
    seen = check_samples(one.stacks, one.told)
    assert len(seen) >= (2 if busy_case[1].name in TWO_BUSY_THREADS else 1), f"only {len(seen)} threads seen"


@pytest.mark.parametrize("busy_case", parameters(cases()))
def test_a_dump_of_a_busy_process_has_the_stacks_that_it_told(busy, as_root, busy_case):
    one = busy(busy_case)
    check_dump(pythons.threads_of(one.dump), one.told)


@pytest.mark.parametrize("case", parameters(cases()))
def test_a_dump_of_a_sleeping_process_has_the_stacks_that_it_told(asleep, case):
    live, _, told = asleep(case)
    check_dump(live, told)


@pytest.mark.parametrize("case", parameters(cases()))
def test_a_core_has_the_stacks_that_the_live_process_had(asleep, case):
    if pythons.why_no_cores():
        pytest.skip(pythons.why_no_cores())
    live, dead, told = asleep(case)
    check_dump(dead, told)
    assert set(dead) == set(live)
    for tid, thread in live.items():
        # One that runs was elsewhere when the core was made.
        if thread["state"] not in ("running", "gil-holder"):
            assert dead[tid]["frames"] == thread["frames"]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """{interpreter: a program with that CPython inside}, for what can be linked here."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("embedded")
    found = {}
    for interpreter in pythons.interpreters():
        for name in (f"{interpreter.path}-config", f"{interpreter.path}m-config"):
            if os.path.exists(name) and build_embedded(name, interpreter, folder / f"myapp-{interpreter.id}"):
                found[interpreter] = folder / f"myapp-{interpreter.id}"
                break
    if not found:
        pytest.skip("needs the headers of an interpreter, and its library")
    return found


def build_embedded(name, interpreter, program):
    """NAME: the interpreter's own python-config."""
    library = os.path.join(prefix(interpreter), "lib")
    flags = [config(name, "--cflags"), config(name, "--embed", "--ldflags") or config(name, "--ldflags")]
    words = ["gcc", "-fPIC", pythons.PROGRAMS / "embed.c", "-o", program, *" ".join(flags).split(), "-rdynamic",
             f"-Wl,-rpath,{library}", f"-L{library}"]
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=False).returncode == 0


def config(name, *words):
    done = subprocess.run([name, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def prefix(interpreter):
    return os.path.dirname(os.path.dirname(interpreter.path))


@pytest.mark.parametrize("name", ["callback_ctypes"] + ["code_kinds"] * WHOLE)
def test_an_interpreter_inside_another_program_is_found(cairn, embedded, as_root, tmp_path, name):
    targets = {}
    for interpreter, program in embedded.items():
        folder = tmp_path / interpreter.id
        folder.mkdir()
        home = {"PYTHONHOME": prefix(interpreter), "PYTHONPATH": str(pythons.PROGRAMS)}
        targets[interpreter] = pythons.Target([program, pythons.PROGRAMS / f"{name}.py"], folder, "spin", **home)
    seen = look_at(cairn, targets, tmp_path)
    for interpreter, target in targets.items():
        assert interpreter in seen, target.look()
        one = seen[interpreter]
        assert check_samples(one.stacks, one.told), interpreter.id
        # The program's own frames stay, where the interpreter is another file than the program.
        for frames, _ in one.stacks:
            assert not interpreter.shared or "run_script" in [frame["function"] for frame in frames], interpreter.id
        check_dump(pythons.threads_of(one.dump), one.told)
