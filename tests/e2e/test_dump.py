# SPDX-License-Identifier: Apache-2.0
"""What `cairn dump` shows of programs of machine code, and that they do not notice."""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import pytest

TARGET = pathlib.Path(__file__).resolve().parents[1] / "targets/dump-threads.c"
WAITING = {"dump-threads", "locked-0", "locked-1", "locked-2", "reader", "sleeper", "watcher"}


@pytest.fixture(scope="module")
def program():
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    # Not in a folder of pytest's own, which is closed to other users.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "dump-threads"
        subprocess.run(["cc", "-g", "-O2", "-o", str(path), str(TARGET), "-pthread"], check=True)
        yield path


@pytest.fixture
def target(program):
    process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


def threads(result):
    """{name: thread} of the JSON of one process."""
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["schema"] == 1
    return {thread["name"]: thread for thread in document["threads"]}


def functions(thread):
    return [frame["function"] for frame in thread["frames"]]


def test_every_thread_is_shown_where_it_is(cairn, target):
    found = threads(cairn.run("dump", target.pid, "-j"))
    assert set(found) == WAITING | {"spinner"}
    assert {name for name in found if found[name]["main"]} == {"dump-threads"}
    for name, inner, waits in (("locked-0", "wait_for_lock", "futex 0x"), ("reader", "reader", "read from "),
                               ("sleeper", "sleeper", "nanosleep"), ("spinner", "spin_here", None),
                               ("dump-threads", "main", "pause")):
        thread = found[name]
        assert inner in functions(thread), thread
        assert thread["end"] == "root", thread
        assert (waits or "") in (thread["waits_in"] or ""), thread
        frame = next(frame for frame in thread["frames"] if frame["function"] == inner)
        assert frame["file"].endswith("dump-threads.c") and frame["line"] > 0
        assert frame["object"].endswith("/dump-threads")
    assert "(pipe:[" in found["reader"]["waits_in"]
    assert found["spinner"]["state"] == "running"
    assert found["locked-0"]["state"] == "waiting"
    assert found["dump-threads"]["state"] == "idle"


def test_threads_that_wait_are_never_stopped_and_notice_nothing(cairn, target):
    for _ in range(20):
        found = threads(cairn.run("dump", target.pid, "-j"))
        assert {name for name in found if found[name]["stopped_us"]} <= {"spinner"}
    target.stdin.close()
    assert target.wait(10) == 0, "a system call of the target was interrupted"


def test_equal_stacks_are_told_once(cairn, target):
    text = cairn.run("dump", target.pid, "--no-lines").stdout
    assert "  3 threads with this stack:\n" in text
    assert text.count("    wait_for_lock (dump-threads)\n") == 1
    assert text.count('"locked-') == 3


@pytest.mark.parametrize("options, names", [
    (["-t", "main"], {"dump-threads"}),
    (["-t", "^locked"], {"locked-0", "locked-1", "locked-2"}),
    (["-t", "!locked,!main"], {"reader", "sleeper", "watcher", "spinner"}),
    (["-t", "locked", "-t", "!locked-1"], {"locked-0", "locked-2"}),
])
def test_threads_are_chosen_by_name(cairn, target, options, names):
    assert set(threads(cairn.run("dump", "-p", target.pid, "-j", *options))) == names


def test_threads_are_chosen_by_number(cairn, target):
    tids = sorted(map(int, os.listdir(f"/proc/{target.pid}/task")))
    found = threads(cairn.run("dump", target.pid, "-j", "-L", f"{tids[0]},{tids[2]}"))
    assert {thread["tid"] for thread in found.values()} == {tids[0], tids[2]}
    nobody = cairn.run("dump", target.pid, "-t", "nobody-is-called-this")
    assert nobody.returncode == 1 and "has no thread that -t and -L allow" in nobody.stderr


def test_nonblocking_stops_nothing_and_says_so(cairn, target):
    found = threads(cairn.run("dump", target.pid, "-j", "--nonblocking"))
    assert all(not thread["stopped_us"] for thread in found.values())
    assert functions(found["spinner"]) == ["[cut: the thread runs, and --nonblocking stops none]"]
    assert "wait_for_lock" in functions(found["locked-0"])


def test_kernel_stacks_are_shown_to_root(cairn, target, as_root):
    found = threads(cairn.run("dump", target.pid, "-j", "-k", "-t", "reader"))
    kinds = [frame["kind"] for frame in found["reader"]["frames"]]
    assert kinds[0] == "kernel" and "native" in kinds
    assert kinds == sorted(kinds, key=["kernel", "native"].index)


def test_without_privileges_own_processes_are_seen_and_others_are_not(cairn_for_all, program, as_nobody):
    own = subprocess.Popen([*as_nobody, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    other = subprocess.Popen(["sleep", "60"])
    try:
        assert own.stdout.readline() == "ready\n"
        found = threads(cairn_for_all.run("dump", own.pid, "-j", before=as_nobody))
        assert "wait_for_lock" in functions(found["locked-0"])
        assert "spin_here" in functions(found["spinner"])
        refused = cairn_for_all.run("dump", other.pid, before=as_nobody)
        assert refused.returncode == 1
        assert f"process {other.pid} cannot be looked at: it runs as uid 0 and cairn as uid 65534" in refused.stderr
        noted = json.loads(cairn_for_all.run("dump", own.pid, "-j", "-k", before=as_nobody).stdout)["notes"]
        assert any(note.startswith("no kernel stacks") for note in noted), noted
    finally:
        for process in own, other:
            process.kill()
            process.wait()


def test_several_processes_are_one_line_of_json_each(cairn, program):
    started = [subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for _ in range(2)]
    try:
        for process in started:
            process.stdout.readline()
        result = cairn.run("dump", "-N", "^dump-threads$", "-t", "main", "-j")
        assert result.returncode == 0
        pids = [json.loads(line)["process"]["pid"] for line in result.stdout.splitlines()]
        assert sorted(pids) == sorted(process.pid for process in started)
    finally:
        for process in started:
            process.kill()
            process.communicate()


def test_children_are_followed_when_asked_for(cairn):
    shell = subprocess.Popen(["sh", "-c", "sleep 60 & wait"])
    try:
        for _ in range(100):
            lines = cairn.run("dump", shell.pid, "-s", "-j").stdout.splitlines()
            names = [json.loads(line)["process"]["name"] for line in lines]
            if names == ["sh", "sleep"]:
                break
            time.sleep(0.05)
        assert names == ["sh", "sleep"]
        assert len(cairn.run("dump", shell.pid, "-j").stdout.splitlines()) == 1
    finally:
        subprocess.run(["pkill", "-P", str(shell.pid)], check=False)
        shell.kill()
        shell.wait()


def test_a_command_is_started_looked_at_and_goes_on(cairn, tmp_path):
    result = cairn.run("dump", "--after", "300ms", "-j", "--", "sh", "-c", "sleep 1; exit 7")
    assert result.returncode == 7
    assert json.loads(result.stdout)["process"]["command"].startswith("sh -c")
    early = cairn.run("dump", "--after", "10", "--", "sh", "-c", "exit 3")
    assert early.returncode == 1 and "sh ended within 10 s, with status 3" in early.stderr
    absent = cairn.run("dump", "--", "/no/such/program")
    assert absent.returncode == 1 and "start /no/such/program: No such file" in absent.stderr


@pytest.mark.parametrize("words, status, said", [
    ([], 2, "say what to look at"),
    (["nginx"], 1, "\"nginx\" is no process id; processes are found by name with -N"),
    (["999999999"], 1, "is no process id"),
    (["-p", str((4 << 20) - 1)], 1, f"there is no process {(4 << 20) - 1}"),
    (["-N", "no-process-is-called-this"], 1, "no process has a name that matches"),
    (["1", "-t", "17"], 2, "-t 17: names threads; -L chooses them by number"),
    (["1", "-t", "a("], 2, "-t a(: "),
    (["1", "-i"], 2, "-i: threads that wait are shown always"),
    (["1", "--no-color"], 2, "--no-color: it is --color never here"),
    (["1", "--", "true"], 2, "a command after -- goes with no other process"),
])
def test_wrong_words_get_one_clear_sentence(cairn, words, status, said):
    result = cairn.run("dump", *words)
    assert (result.returncode, result.stdout) == (status, "")
    assert said in result.stderr.splitlines()[0]


def test_what_is_no_program_is_named(cairn, as_root):
    for pid in os.listdir("/proc"):
        if pid.isdigit() and open(f"/proc/{pid}/stat").read().split(") ")[1].split()[1] == "2":
            break
    else:
        pytest.skip("no thread of the kernel is to be seen here")
    result = cairn.run("dump", pid)
    assert result.returncode == 1 and "is a thread of the kernel" in result.stderr


def test_a_name_cannot_write_to_the_terminal(cairn, tmp_path):
    script = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'\\x1b[31m\\nred'); print(1, flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        for options in ([], ["-j"]):
            text = cairn.run("dump", process.pid, *options).stdout
            assert "\x1b" not in text and "[31m" in text
        assert "\x1b[" in cairn.run("dump", process.pid, "--color", "always").stdout
        assert "\x1b[" in cairn.run("dump", process.pid, env={"CLICOLOR_FORCE": "1"}).stdout
        assert "\x1b[" not in cairn.run("dump", process.pid, env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}).stdout
    finally:
        process.kill()
        process.wait()


def test_a_process_stopped_by_a_signal_is_shown_and_stays_stopped(cairn, target):
    target.send_signal(signal.SIGSTOP)
    for _ in range(100):
        if open(f"/proc/{target.pid}/stat").read().split(") ")[1][0] == "T":
            break
        time.sleep(0.01)
    found = threads(cairn.run("dump", target.pid, "-j"))
    assert {thread["state"] for thread in found.values()} == {"stopped"}
    assert "spin_here" in functions(found["spinner"])
    assert open(f"/proc/{target.pid}/stat").read().split(") ")[1][0] == "T"


def eu_stacks(pid):
    """{tid: [pc]}, innermost first."""
    text = subprocess.run(["eu-stack", "-n", "0", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    found = {}
    for line in text.splitlines():
        if line.startswith("TID "):
            frames = found.setdefault(int(line.split()[1].rstrip(":")), [])
        elif line.startswith("#"):
            frames.append(int(line.split()[1], 16))
    return found


@pytest.mark.parametrize("command", [
    None, ["sleep", "60"], ["sh", "-c", "sleep 60; true"], ["/usr/bin/python3", "-c", "input()"],
    ["perl", "-e", "sleep 60"], ["tail", "-f", "/dev/null"], ["cat"],
])
def test_stacks_are_those_of_eu_stack(cairn, program, command):
    command = command or [str(program)]
    for needed in "eu-stack", command[0]:
        if not shutil.which(needed):
            pytest.skip(f"needs {needed}")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        # The other tool stops threads: first come first served.
        shown = json.loads(cairn.run("dump", process.pid, "-n", "-j").stdout)["threads"]
        wanted = eu_stacks(process.pid)
        assert {thread["tid"] for thread in shown} == set(wanted)
        for thread in shown:
            if thread["state"] == "running":
                continue
            pcs = [int(frame["pc"], 16) for frame in thread["frames"] if frame["pc"] and not frame["inlined"]]
            assert pcs == wanted[thread["tid"]], thread
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def core(target, tmp_path):
    """A core of the target, and what was shown of it alive just before."""
    if not shutil.which("gcore"):
        pytest.skip("needs gcore, from gdb")
    made = subprocess.run(["gcore", "-o", str(tmp_path / "core"), str(target.pid)], capture_output=True, check=False)
    path = tmp_path / f"core.{target.pid}"
    if not path.exists():
        pytest.skip(f"gcore made none: {made.stderr[-200:]}")
    return path


def shown(thread):
    return [(frame["function"], frame["file"], frame["line"], frame["pc"]) for frame in thread["frames"]]


def test_a_core_shows_what_the_live_process_did(cairn, target, core):
    live = json.loads(cairn.run("dump", target.pid, "-j").stdout)["threads"]
    document = json.loads(cairn.run("dump", "--core", core, "-j").stdout)
    dead = {thread["tid"]: thread for thread in document["threads"]}
    assert document["process"]["pid"] == target.pid
    assert set(dead) == {thread["tid"] for thread in live}
    for thread in live:
        if thread["name"] == "spinner":
            assert "spin_here" in functions(dead[thread["tid"]])
        else:
            assert shown(dead[thread["tid"]]) == shown(thread)
        assert dead[thread["tid"]]["end"] == "root"


def test_a_core_has_the_name_of_the_first_thread(cairn, target, core):
    found = json.loads(cairn.run("dump", "--core", core, "-j", "-t", "^dump-threads$").stdout)["threads"]
    assert [(thread["tid"], thread["name"]) for thread in found] == [(target.pid, "dump-threads")]


def test_a_core_is_found_whole_in_its_packed_form(cairn, core):
    plain = json.loads(cairn.run("dump", "--core", core, "-j").stdout)["threads"]
    for packer in "gzip", "zstd", "xz":
        if not shutil.which(packer):
            continue
        packed = pathlib.Path(f"{core}.{packer}")
        with open(packed, "wb") as out:
            subprocess.run([packer, "-1", "-c", str(core)], stdout=out, check=True)
        assert json.loads(cairn.run("dump", "--core", packed, "-j").stdout)["threads"] == plain


def test_a_cut_core_says_what_it_lacks(cairn, core):
    size = core.stat().st_size
    for part in 1, 8, 15:
        cut = core.with_name(f"cut-{part}")
        cut.write_bytes(core.read_bytes()[: size * part // 16])
        result = cairn.run("dump", "--core", cut)
        assert result.returncode in (0, 1), result.stderr
        assert "cut" in result.stdout + result.stderr


def test_a_stack_that_a_core_holds_as_zeros_is_not_whole(cairn, core):
    """As gdb writes what it cannot read."""
    data = bytearray(core.read_bytes())
    offset, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    for number in range(count):
        kind, _, begin, _, _, size, memory = struct.unpack_from("<IIQQQQQ", data, offset + 56 * number)
        if kind == 1 and size == memory == 8 << 20:
            data[begin : begin + size] = bytes(size)
    blank = core.with_name("blank")
    blank.write_bytes(data)
    document = json.loads(cairn.run("dump", "--core", blank, "-j").stdout)
    ends = {thread["tid"]: (thread["end"], len(thread["frames"])) for thread in document["threads"]}
    assert ends.pop(document["process"]["pid"])[0] == "root"
    assert {end for end, _ in ends.values()} == {"unreadable"}
    assert all(any(f"thread {tid} was" in note for note in document["notes"]) for tid in ends), document["notes"]


def test_what_is_no_core_is_named(cairn, core, program):
    for words, said in (([program], "an ELF file, and not a core"), (["/etc/passwd"], "not a core file"),
                        (["/no/such/core"], "No such file"), ([core, "/no/such/program"], "No such file"),
                        ([core, "-p", "1"], "--core goes with no process")):
        result = cairn.run("dump", "--core", *words)
        assert result.returncode in (1, 2) and said in result.stderr
    other = cairn.run("dump", "--core", core, "/bin/sh")
    assert "another file than the one that was mapped: not used" in other.stdout


GIL = """
import threading
def spin(number):
    words = {"number": number, "odd": "\\x1b[31m"}
    while True: pass
for i in range(2):
    thread = threading.Thread(target=spin, args=(i,), name="spinner-%d" % i)
    thread.daemon = True
    thread.start()
event = threading.Event()
threading.Thread(target=event.wait, name="waits", daemon=True).start()
print("ready", flush=True)
spin(7)
"""


@pytest.fixture
def python():
    if not pathlib.Path("/usr/bin/python3").exists():
        pytest.skip("needs the system's Python")
    process = subprocess.Popen(["/usr/bin/python3", "-c", GIL], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()


def test_who_holds_and_who_waits_for_the_lock_of_python_is_shown(cairn, python):
    seen = set()
    for _ in range(20):
        document = json.loads(cairn.run("dump", python.pid, "-j", "--no-lines").stdout)
        assert document["process"]["python"].startswith("3.")
        states = {thread["python_name"]: thread["state"] for thread in document["threads"]}
        assert set(states) == {"MainThread", "spinner-0", "spinner-1", "waits"}
        assert states.pop("waits") == "waiting"
        seen |= set(states.values())
    assert {"gil-holder", "gil-waiter"} <= seen <= {"gil-holder", "gil-waiter", "running", "waiting"}


def test_variables_of_python_are_shown_and_cannot_write_to_the_terminal(cairn, python):
    found = json.loads(cairn.run("dump", python.pid, "-j", "-l", "-t", "^spinner-1$").stdout)["threads"]
    assert [thread["python_name"] for thread in found] == ["spinner-1"]
    frame = next(frame for frame in found[0]["frames"] if frame["function"] == "spin")
    values = {local["name"]: (local["value"], local["argument"]) for local in frame["locals"]}
    assert values["number"] == ("1", True)
    assert values["words"] == ("{'number': 1, 'odd': '\\x1b[31m'}", False)
    text = cairn.run("dump", python.pid, "-l").stdout
    assert "number = 7\n" in text and "\x1b" not in text


def test_frames_of_the_interpreter_are_shown_when_asked_for(cairn, python):
    plain, native = (json.loads(cairn.run("dump", python.pid, "-j", "-t", "waits", *options).stdout)["threads"][0]
                     for options in ([], ["-n"]))
    assert "_PyEval_EvalFrameDefault" in functions(native) and "start_thread" in functions(native)
    assert "_PyEval_EvalFrameDefault" not in functions(plain) and "start_thread" not in functions(plain)
    kinds = [[frame["function"] for frame in thread["frames"] if frame["kind"] == "python"]
             for thread in (plain, native)]
    assert kinds[0] == kinds[1] and len(kinds[0]) >= 4


def test_lines_below_python_are_looked_up_when_asked_for(cairn, python):
    if not list(pathlib.Path("/usr/lib/debug/.build-id").glob("*/*")):
        pytest.skip("needs debug information of the C library")
    plain, native = (json.loads(cairn.run("dump", python.pid, "-j", "-t", "waits", *options).stdout)["threads"][0]
                     for options in ([], ["-n"]))
    lines = [[frame["line"] for frame in thread["frames"] if "/libc" in (frame["object"] or "")]
             for thread in (plain, native)]
    assert lines[0] and not any(lines[0]) and any(lines[1])
    assert all(frame["line"] for frame in plain["frames"] if frame["kind"] == "python")
