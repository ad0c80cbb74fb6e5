# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio in `cairn dump`, against what tests/targets/python-asyncio.py tells of them in every interpreter."""
import json
import subprocess

import pytest

import pythons

PROGRAM = pythons.ROOT / "tests/targets/python-asyncio.py"
KEYS = ("function", "file", "line", "first_line")


def cases():
    found = [one for one in pythons.interpreters() if one.version >= (3, 5) and "asyncio" in one.modules]
    return [pytest.param(one, id=one.id) for one in found]


def start(interpreter, folder, **environment):
    target = pythons.Target([interpreter.path, PROGRAM], folder, "block", **environment)
    try:
        told = target.wait_ready()
        pythons.wait_still(target.pid)
        return target, told
    except BaseException:
        target.stop()
        raise


def dump(cairn, *what):
    done = cairn.run("dump", "-j", *what)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def out_of_reach(interpreter):
    """Versions whose tasks in C nothing leads to."""
    return interpreter.version[:2] == (3, 6) or (interpreter.version >= (3, 14) and "t" in interpreter.kind)


def check(found, told):
    tasks = {task["id"]: task for task in found["tasks"]}
    for tid, row in told.items():
        for expected in row["tasks"]:
            task = tasks.pop(expected["id"])
            assert task["tid"] == tid
            for key in ("name", "state", "awaited_by"):
                assert task[key] == expected[key], (key, expected)
            frames = [{key: frame[key] for key in KEYS} for frame in task["frames"]]
            # What asyncio does inside is its own business: an iterator of C is no frame.
            assert frames == expected["frames"]
    assert not tasks


@pytest.mark.parametrize("interpreter", cases())
def test_tasks_are_those_that_the_program_told(cairn, tmp_path, interpreter):
    target, told = start(interpreter, tmp_path)
    try:
        found = dump(cairn, target.pid)
    finally:
        target.stop()
    if out_of_reach(interpreter):
        assert any("tasks of asyncio that cannot be seen" in note for note in found["notes"]), found["notes"]
    else:
        check(found, told)
        assert not found["notes"]


@pytest.mark.parametrize("interpreter", cases())
def test_a_core_has_the_tasks_that_the_process_had(cairn, tmp_path, interpreter):
    if pythons.why_no_cores():
        pytest.skip(pythons.why_no_cores())
    target, told = start(interpreter, tmp_path)
    try:
        core = pythons.make_core(target)
    finally:
        target.stop()
    found = dump(cairn, "--core", core, interpreter.path)
    if not out_of_reach(interpreter):
        check(found, told)


@pytest.mark.parametrize("interpreter", [case for case in cases() if case.values[0].version >= (3, 7)])
def test_loops_that_do_not_tell_their_thread_are_told_by_it(cairn, tmp_path, interpreter):
    target, told = start(interpreter, tmp_path, CAIRN_QUIET_LOOPS="1")
    try:
        check(dump(cairn, target.pid), told)
    finally:
        target.stop()


@pytest.fixture
def target(tmp_path):
    process, told = start(pythons.debian(), tmp_path)
    yield process, told
    process.stop()


def test_tasks_stand_below_the_thread_that_runs_them(cairn, target):
    process, _ = target
    text = cairn.run("dump", process.pid).stdout
    blocks = {block.split()[1]: block for block in text.split("\n\n") if block.startswith("Thread ")}
    main = blocks[str(process.pid)]
    assert "\n  9 tasks of asyncio:\n" in main
    assert '\n    task "limited": waiting\n' in main and '\n        awaits task "in time": waiting\n' in main
    assert '\n    task "parent": waiting for task "child \u65e5"\n        parent (' in main
    assert '\n        awaits task "child \u65e5": waiting\n            Event.wait (' in main
    assert "\n        awaits 3 tasks with this stack: " in main
    other = next(block for tid, block in blocks.items() if tid != str(process.pid))
    assert '\n    task "not begun": ready\n        leaf (' in other
    assert ": running\n        block (" in other


def test_tasks_are_those_of_the_chosen_threads(cairn, target):
    process, told = target
    found = dump(cairn, process.pid, "-t", "blocked")
    assert {task["tid"] for task in found["tasks"]} == set(told) - {process.pid}
    assert len(found["tasks"]) == 2


def test_variables_of_coroutines_are_shown_on_demand(cairn, target):
    process, _ = target
    found = dump(cairn, process.pid, "-l", "-t", "main")
    child = next(task for task in found["tasks"] if task["name"] == "child \u65e5")
    depths = [local["value"] for frame in child["frames"] if frame["function"] == "nested"
              for local in frame["locals"] if local["name"] == "depth"]
    assert depths == ["0", "1", "2", "3"]


def test_a_program_without_asyncio_has_no_tasks(cairn):
    process = subprocess.Popen([pythons.debian().path, "-c", "import time; print(1, flush=True); time.sleep(60)"],
                               stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        found = dump(cairn, process.pid)
        assert found["tasks"] == [] and found["notes"] == []
    finally:
        process.kill()
        process.wait()
