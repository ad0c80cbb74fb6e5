# SPDX-License-Identifier: Apache-2.0
"""What record and agent say of Python: whose samples, which frames, and their text in .col files; and processes that
start, end or become another program meanwhile."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

import pythons

PACKAGE = """
class Worker:
    def __init__(self):
        self.rounds = 0

    def run(self):
        self.step()

    def step(self):
        while True:
            self.rounds += 1
"""
APPLICATION = """
import threading
import time
import zlib
import thing.work

def compresses():
    data = b"0123456789abcdef" * (1 << 20)
    while True: zlib.compress(data, 6)

def sleeps():
    while True: time.sleep(1000)

for function in compresses, sleeps:
    threading.Thread(target=function, daemon=True).start()
print("ready", flush=True)
thing.work.Worker().run()
"""
VERSION = "import platform; print(platform.python_version())"


def debian():
    if not pythons.debian():
        pytest.skip("needs the distribution's python3")
    return pythons.debian().path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A program, and a package that was installed for it."""
    path = tmp_path_factory.mktemp("application")
    packages = path / "site-packages"
    for name, text in (("thing/__init__.py", ""), ("thing/work.py", PACKAGE),
                       ("thing-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: Thing\nVersion: 1.2\n"),
                       ("thing-1.2.dist-info/RECORD", "thing/__init__.py,,\nthing/work.py,,\n")):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    (path / "app.py").write_text(APPLICATION)
    return path


@pytest.fixture(scope="module")
def application(folder):
    environment = pythons.clean_environment(PYTHONPATH=str(folder / "site-packages"))
    process = subprocess.Popen([debian(), folder / "app.py"], stdout=subprocess.PIPE, env=environment)
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def record(cairn, as_root, application, tmp_path):
    def run(*options, suffix="folded"):
        output = tmp_path / f"out.{suffix}"
        done = cairn.run("record", "-p", application.pid, "-F", "499", "-d", "1", "-o", output, *options)
        assert done.returncode == 0, done.stderr
        lines = [line for line in output.read_text(encoding="utf-8").split("\n") if line and not line.startswith("# ")]
        return [line.rpartition(" ")[0].split(";") for line in lines]

    return run


def python_frames(stack):
    return [frame for frame in stack if frame.endswith("_[p]")]


def has(stacks, function):
    return any(function in frame for stack in stacks for frame in stack)


def test_a_python_frame_in_a_col_file_is_the_one_of_gprofiler(record, folder):
    version = subprocess.run([debian(), "-c", VERSION], capture_output=True, text=True, check=True).stdout.strip()
    work = f"{folder}/site-packages/thing/work.py"
    stacks = record(suffix="col")
    assert python_frames(next(stack for stack in stacks if has([stack], "Worker"))) == [
        f"app.<module> ({folder}/app.py:1)_[p]",
        f"thing.work.Worker.run ({work}:6 [Thing==1.2])_[p]",
        f"thing.work.Worker.step ({work}:9 [Thing==1.2])_[p]",
    ]
    frames = python_frames(next(stack for stack in stacks if has([stack], "compresses")))
    assert [re.sub(r":\d+", ":N", frame) for frame in frames] == [
        f"threading.Thread.{name} (/usr/lib/python{version.rpartition('.')[0]}/threading.py:N"
        f" [standard-library=={version}])_[p]" for name in ("_bootstrap", "_bootstrap_inner", "run")
    ] + [f"app.compresses ({folder}/app.py:N)_[p]"]


def test_package_versions_are_left_out_when_asked_to(record, folder):
    stacks = record("--no-python-versions", suffix="col")
    assert has(stacks, f"thing.work.Worker.step ({folder}/site-packages/thing/work.py:9)_[p]")
    assert not has(stacks, "==")


def test_frames_of_the_interpreter_are_added_when_asked_for(record):
    plain, native = record(), record("--native")
    assert has(plain, "step") and not has(plain, "_PyEval_EvalFrameDefault")
    evaluated = [stack for stack in native if has([stack], "step")]
    assert evaluated and all(has([stack], "_PyEval_EvalFrameDefault") for stack in evaluated)
    steps = [{tuple(frame.partition(" ")[0] for frame in python_frames(stack)) for stack in stacks
              if has([stack], "step")} for stacks in (plain, native)]
    assert steps[0] == steps[1] and len(steps[0]) == 1


def test_only_who_holds_the_lock_of_python_is_sampled(record):
    everybody, holders = record(), record("-m", "gil")
    assert has(everybody, "compresses") and has(everybody, "step")
    assert has(holders, "step") and not has(holders, "sleeps")
    # Around deflate(), in deflateInit2_() and deflateEnd() too, a thread holds the lock; inside it does not.
    inside = [any("deflate" in stack for stack in stacks) for stacks in (everybody, holders)]
    assert inside == [True, False]


def test_by_the_clock_threads_that_wait_are_seen_too(record):
    assert has(record("-m", "wall"), "app.sleeps") and not has(record(), "app.sleeps")


@pytest.mark.parametrize("options, python", [
    ([], True), (["--python-mode", "auto"], True), (["--python-mode", "py-spy"], True),
    (["--python-mode", "none"], False), (["--no-python"], False),
])
def test_the_agent_reads_python_as_its_mode_says(cairn, as_root, application, tmp_path, options, python):
    done = cairn.run("agent", "--pids", application.pid, "-f", "199", "-d", "1", "--no-flamegraph", "-o", tmp_path, *options)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "last_profile.col").read_text(encoding="utf-8")
    assert ("_[p]" in text) == python
    # Without Python its own machine code is there.
    assert "python3" in text


STARTS = """
import threading, time
def rest(): time.sleep(%g)
threads = [threading.Thread(target=rest) for _ in range(4)]
for thread in threads: thread.start()
class Last:
    def __del__(self): time.sleep(%g)
last = Last()
for thread in threads: thread.join()
"""


def check_answer(done):
    """Whatever a process does, an answer is a document, or a sentence that says why there is none."""
    assert done.returncode in (0, 1), done.stderr
    if done.returncode:
        assert re.match(r"cairn(: | dump: )?.*\b(ended|no process|nothing|cannot be looked at)", done.stderr), done.stderr
        return None
    return json.loads(done.stdout)


@pytest.mark.parametrize("interpreter", [
    pytest.param(one, id=one.id) for one in pythons.interpreters() if one.kind in ("2.7", "3.11", "3.14")
])
def test_a_dump_while_an_interpreter_starts_and_ends(cairn, interpreter):
    for after in (0, 0.01, 0.02, 0.04, 0.08, 0.15):
        process = subprocess.Popen([interpreter.path, "-c", STARTS % (0.05, 0.05)], env=pythons.clean_environment())
        try:
            time.sleep(after)
            check_answer(cairn.run("dump", process.pid, "-j", "-l"))
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()


def test_a_dump_while_the_interpreter_is_finalising(cairn):
    program = """
import os, sys, time
class Last:
    def __del__(self, write=os.write, sleep=time.sleep):
        write(1, b"ready\\n")
        sleep(1000)
sys.last = Last()
"""
    process = subprocess.Popen([debian(), "-c", program], stdout=subprocess.PIPE, env=pythons.clean_environment())
    try:
        assert process.stdout.readline() == b"ready\n"
        thread = check_answer(cairn.run("dump", process.pid, "-j", "-n", "-l"))["threads"][0]
        functions = [frame["function"] for frame in thread["frames"]]
        assert thread["end"] == "root" and "Last.__del__" in functions and "Py_FinalizeEx" in functions
    finally:
        process.kill()
        process.wait()


def test_dumps_and_a_recording_of_a_process_that_becomes_others(cairn, as_root, tmp_path):
    program = tmp_path / "again.py"
    program.write_text("import os, sys\nsum(range(200000))\nos.execv(sys.executable, [sys.executable, __file__])\n")
    process = subprocess.Popen([debian(), program], env=pythons.clean_environment())
    recorder = subprocess.Popen([cairn.path, "record", "-p", str(process.pid), "-F", "997", "-d", "2", "-o",
                                 tmp_path / "out.folded"], stderr=subprocess.PIPE, text=True)
    try:
        seen = [check_answer(cairn.run("dump", process.pid, "-j")) for _ in range(12)]
        assert any(frame["kind"] == "python" for answer in seen if answer for thread in answer["threads"]
                   for frame in thread["frames"])
        assert recorder.wait(60) == 0, recorder.stderr.read()
        assert "again.<module>" in (tmp_path / "out.folded").read_text(encoding="utf-8")
        assert process.poll() is None
    finally:
        for one in recorder, process:
            one.kill()
            one.communicate()


def test_a_process_that_is_stopped_by_a_signal_has_its_python_frames(cairn, tmp_path):
    program = next(program for program in pythons.programs() if program.name == "generators")
    target = pythons.start(pythons.debian(), program, tmp_path, "spin")
    try:
        told = target.wait_ready()
        os.kill(target.pid, signal.SIGSTOP)
        while open(f"/proc/{target.pid}/stat", encoding="ascii").read().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.01)
        pythons.check_dump(pythons.dump(cairn, target.pid), told)
    finally:
        target.stop()
