# SPDX-License-Identifier: Apache-2.0
"""What goes wrong from outside: places to write, privileges, targets that vanish or lie. Each has a clear message, or shows
in the profile; none crashes or hangs."""
import contextlib
import os
import re
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import NOBODY, ROOT

sys.path.insert(0, str(ROOT / "tests/bench"))
import session  # noqa: E402

SPIN = "__attribute__((noinline)) void spin_here(void) { for (;;) __asm__ volatile(\"\" : : : \"memory\"); }\n"
MAIN = SPIN + "int main(void) { spin_here(); return 0; }\n"
# Calls code that it wrote itself: mov rax, [flag]; jmp to itself.
JIT = """
#include <sys/mman.h>
#include <string.h>
int main(void)
{
	char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, "\\x55\\x48\\x89\\xe5\\xeb\\xfe", 6);
	((void (*)(void))code)();
	return 0;
}
"""
# Runs in a file that is no ELF file: the first argument, mapped executable. Its first bytes are "jmp to itself".
MAPPED = """
#include <fcntl.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDONLY);
	char *code = mmap(0, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	((void (*)(void))(code + 4096))();
	return 0;
}
"""


@contextlib.contextmanager
def running(*words, settle=0.2, **more):
    child = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, **more)
    try:
        time.sleep(settle)
        yield child
    finally:
        child.kill()
        child.wait()


@pytest.fixture
def compiled(tmp_path):
    """Makes programs; skips where the compiler for them is missing."""

    def make(text, *flags, name="target", compiler="gcc"):
        if not shutil.which(compiler):
            pytest.skip(f"needs {compiler}")
        source = tmp_path / f"{name}.c"
        source.write_text(text, encoding="utf-8")
        made = subprocess.run([compiler, "-O2", "-fomit-frame-pointer", str(source), "-o", str(tmp_path / name), *flags],
                              capture_output=True, text=True, check=False)
        if made.returncode:
            pytest.skip(f"{compiler} {' '.join(flags)}: {made.stderr.strip().splitlines()[-1]}")
        return tmp_path / name

    return make


@pytest.fixture
def record(cairn, tmp_path):
    """Record a process and give its rows; every run has to end well."""

    def take(pid, *words, seconds=0.7):
        output = tmp_path / "out.folded"
        done = cairn.run("record", "-p", pid, "-F", "199", "-d", str(seconds), "-o", output, *words, timeout=60)
        assert done.returncode == 0, done.stderr
        assert " samples, " in done.stderr
        return session.read_folded(output), done.stderr

    return take


def frames_of(rows):
    return {frame for stack, _ in rows for frame in stack[1:]}


def failed(result, *said):
    """It says one line that names the matter, and ends with 1."""
    assert result.returncode == 1, result.stderr
    lines = result.stderr.rstrip("\n").split("\n")
    assert len(lines) == 1 and lines[0].startswith("cairn: "), result.stderr
    for text in said:
        assert text in lines[0]


# --- where to write

def test_an_output_directory_that_is_missing_is_said_at_once(cairn, as_root, tmp_path):
    begin = time.monotonic()
    failed(cairn.run("record", "-a", "-d", "30", "-o", tmp_path / "none/x.html"), "none/x.html", "No such file or directory")
    assert time.monotonic() - begin < 10


def test_an_output_that_is_a_directory_is_said(cairn, as_root, tmp_path):
    failed(cairn.run("record", "-a", "-d", "30", "-f", "html", "-o", tmp_path), str(tmp_path), "directory")


def test_an_agent_directory_that_is_a_file_is_said(cairn, as_root, tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    failed(cairn.run("agent", "-o", tmp_path / "file", "-d", "1"), "file")
    failed(cairn.run("agent", "-o", tmp_path / "file/below", "-d", "1"), "file/below", "Not a directory")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.fixture
def full_disk(as_root, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("may not mount here: " + done.stderr.strip())
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_fails_and_leaves_nothing(cairn, full_disk):
    failed(cairn.run("record", "-a", "-d", "0.3", "-o", full_disk / "x.html"), "x.html")
    assert not list(full_disk.iterdir())


def test_an_agent_on_a_full_disk_leaves_no_half_file(cairn, full_disk):
    failed(cairn.run("agent", "-o", full_disk, "-d", "1", "-f", "99"), "No space left on device")
    assert not [path for path in full_disk.iterdir() if path.suffix == ".html"]
    for path in full_disk.glob("profile_*.col"):
        lines = path.read_text(encoding="utf-8").split("\n")
        assert all(re.search(r" [0-9]+$", line) for line in lines[1:]), "half written"


# --- what was asked for

@pytest.mark.parametrize("words, status, said", [
    (["-p", "4194304"], 1, "there is no process 4194304"),
    (["4194304", "1"], 1, "there is no process 4194304"),
    (["-L", "4194304"], 1, "there is no thread 4194304"),
    (["-N", "no-process-is-called-that"], 1, "no process has a name that matches"),
    (["-G", "/sys/fs/cgroup/none-such", "-d", "1"], 1, "none-such"),
    (["-a", "-e", "heat"], 2, "-e heat"),
    (["-a", "-f", "png"], 2, "-f png"),
    (["-p", "0"], 2, "-p 0"),
    (["-a", "-p", "1"], 2, "-a samples everything"),
    (["-U", "-K", "-a"], 2, "-U and -K exclude each other"),
    (["-a", "-d", "0"], 2, "-d 0"),
])
def test_what_cannot_be_sampled_is_named(cairn, as_root, tmp_path, words, status, said):
    result = cairn.run("record", *words, "-o", tmp_path / "x")
    assert result.returncode == status, result.stderr
    assert said in result.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command, missing", [(["record", "-a", "-d", "1", "--capture", "bpf"], "not permitted"),
                                              (["agent", "-d", "1", "--capture", "bpf"], "Not running as root"),
                                              (["agent", "-d", "1", "--capture", "bpf", "--rootless"], "not permitted")])
def test_without_privileges_it_says_what_is_missing(cairn_for_all, as_nobody, tmp_path_factory, command, missing):
    folder = tmp_path_factory.mktemp("nobody")
    os.chown(folder, NOBODY, NOBODY)
    for above in [folder, *folder.parents]:
        if above.stat().st_uid == os.geteuid() and str(above).startswith("/tmp/"):
            above.chmod(above.stat().st_mode | 0o711)
    output = folder / "x.html" if command[0] == "record" else folder
    result = cairn_for_all.run(*command, "-o", output, before=as_nobody)
    failed(result, missing, "root")
    assert not list(folder.iterdir())


# --- targets that go away

def test_a_target_that_ends_is_still_named(compiled, record):
    target = compiled(MAIN)
    with running("timeout", "--foreground", "0.6", target, settle=0) as parent:
        time.sleep(0.2)
        pid = int(session.read_text(f"/proc/{parent.pid}/task/{parent.pid}/children").split()[0])
        rows, _ = record(pid, seconds=1.2)
        assert not os.path.exists(f"/proc/{pid}")
    assert "spin_here" in frames_of(rows)


def test_a_target_that_becomes_another_program_is_followed(compiled, record):
    other = compiled(MAIN.replace("spin_here", "spin_there"), name="other")
    first = compiled(f'#include <unistd.h>\n#include <time.h>\n{SPIN.replace("for (;;)", "for (time_t t = time(0); time(0) < t + 2;)")}'
                     f'int main(void) {{ spin_here(); execl("{other}", "other", (char *)0); return 1; }}\n', name="first")
    with running(first, settle=0) as child:
        rows, said = record(child.pid, seconds=3)
    assert {"spin_here", "spin_there"} <= frames_of(rows), said
    assert {stack[0] for stack, _ in rows} == {"first", "other"}


def test_a_stopped_target_gives_no_samples_and_is_left_stopped(compiled, record):
    with running(compiled(MAIN)) as child:
        child.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        rows, said = record(child.pid)
        assert session.read_text(f"/proc/{child.pid}/stat").split()[2] == "T"
    assert not rows
    assert " 0 samples" in said


def test_a_deleted_program_has_its_names(compiled, record):
    target = compiled(MAIN)
    with running(target) as child:
        target.unlink()
        rows, said = record(child.pid)
    assert "spin_here" in frames_of(rows), said
    assert "100.0 % of the stacks whole" in said


def test_a_replaced_program_keeps_its_own_names(compiled, record, tmp_path):
    target = compiled(MAIN)
    with running(target) as child:
        other = compiled("int zero;\n" * 3 + MAIN.replace("spin_here", "not_this_one"), name="other")
        other.rename(target)
        rows, _ = record(child.pid)
    assert "spin_here" in frames_of(rows)
    assert "not_this_one" not in frames_of(rows)


# --- targets that lie

def perf_map(pid):
    return pathlib.Path(f"/tmp/perf-{pid}.map")


def plant_huge(path, _):
    with open(path, "wb") as file:
        file.write(b"7f0000000000 10 name\n" * 100)
        file.truncate(8 << 30)


def plant_fifo(path, _):
    os.mkfifo(path)


def plant_link(path, folder):
    secret = folder / "secret"
    secret.write_text("0 ffffffffffffffff top_secret\n", encoding="utf-8")
    path.symlink_to(secret)


def plant_device(path, _):
    path.symlink_to("/dev/zero")


def plant_directory(path, _):
    path.mkdir()


def plant_nonsense(path, _):
    path.write_bytes(b"\xff\xfe;\x1b[31m\0" * 5000 + b"\n-1 -1 x\nzz 10 y\n" + b"1 1 " + b"A" * 300000)


@pytest.mark.parametrize("plant", [plant_huge, plant_fifo, plant_link, plant_device, plant_directory, plant_nonsense])
def test_a_hostile_perf_map_is_no_way_in(compiled, cairn, as_root, tmp_path, record, plant):
    with running(compiled(JIT)) as child:
        path = perf_map(child.pid)
        try:
            plant(path, tmp_path)
            rows, _ = record(child.pid)
        finally:
            with contextlib.suppress(FileNotFoundError):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert sum(count for _, count in rows) > 10
    assert all("\x1b" not in frame and "\0" not in frame for frame in frames_of(rows))
    assert "[jit]_[j]" in frames_of(rows) or "[jit]" in frames_of(rows), frames_of(rows)


@pytest.mark.parametrize("name, head", [("nothing", b""), ("magic", b"\x7fELF"), ("header", b"\x7fELF\x02\x01\x01" + b"\xff" * 57)])
def test_code_in_a_file_that_is_no_program_is_shown_as_such(compiled, record, as_root, tmp_path, name, head):
    file = tmp_path / f"{name}.bin"
    file.write_bytes(head.ljust(4096, b"\xa5") + b"\xeb\xfe" + b"\xcc" * 61438)
    with running(compiled(MAPPED), file) as child:
        rows, _ = record(child.pid)
    assert sum(count for _, count in rows) > 10
    assert any(f"{name}.bin" in frame for frame in frames_of(rows)), frames_of(rows)


def test_a_file_that_shrinks_below_its_mapping_does_not_kill_cairn(compiled, record, as_root, tmp_path):
    file = tmp_path / "shrinks.bin"
    file.write_bytes(b"\x7fELF\x02\x01\x01".ljust(4096, b"\0") + b"\xeb\xfe" + b"\xcc" * 61438)
    with running(compiled(MAPPED), file) as child:
        os.truncate(file, 4100)
        rows, _ = record(child.pid)
    assert sum(count for _, count in rows) > 0


# --- programs of other kinds

def test_a_program_of_32_bits_keeps_its_kernel_stack(compiled, record, as_root):
    target = compiled("#include <unistd.h>\nint main(void) { char b[4096]; for (;;) if (read(0, b, 0)) return 1; }\n", "-m32")
    with running(target) as child:
        rows, said = record(child.pid)
    assert "[cut: 32-bit code]" in frames_of(rows), said
    assert any(frame.endswith("_[k]") for frame in frames_of(rows))
    assert "32-bit code" in said


@pytest.mark.parametrize("compiler, flags", [("gcc", ["-static-pie"]), ("gcc", ["-static"]), ("gcc", ["-no-pie"]),
                                             ("musl-gcc", []), ("musl-gcc", ["-static"])])
def test_other_ways_to_link(compiled, record, as_root, compiler, flags):
    with running(compiled(MAIN, *flags, compiler=compiler)) as child:
        rows, said = record(child.pid)
    assert {"main", "spin_here"} <= frames_of(rows), said
    assert "100.0 % of the stacks whole" in said


def test_a_program_in_another_mount_namespace_has_its_own_names(compiled, record, as_root, tmp_path):
    inside = compiled(MAIN.replace("spin_here", "spin_inside"), name="inside")
    outside = compiled(MAIN.replace("spin_here", "spin_outside"), name="program")
    script = f"mount --bind {inside} {outside} && exec {outside}"
    with running("unshare", "-m", "sh", "-c", script, settle=0.5) as child:
        if child.poll() is not None:
            pytest.skip("may not make namespaces here")
        rows, said = record(child.pid)
    assert "spin_inside" in frames_of(rows), said
    assert "spin_outside" not in frames_of(rows)


def test_a_program_whose_directories_are_hidden_has_names(compiled, record, as_root, tmp_path):
    target = compiled(MAIN)
    script = f"cp {target} /mnt/program 2>/dev/null || exit 1; mount -t tmpfs none {tmp_path} && exec /mnt/program"
    # A file system that only the target sees.
    script = f"mount -t tmpfs none /mnt && {script}"
    with running("unshare", "-m", "sh", "-c", script, settle=0.5) as child:
        if child.poll() is not None:
            pytest.skip("may not make namespaces here")
        rows, said = record(child.pid)
    assert "spin_here" in frames_of(rows), said


# --- being told to stop

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("wait", [0.02, 0.15, 0.6])
def test_a_signal_ends_it_at_any_time_with_its_file(cairn, as_root, tmp_path, number, wait):
    output = tmp_path / "x.html"
    with session.Session(cairn.path, "record", "-a", "-o", output) as run:
        time.sleep(wait)
        status, seconds, _ = run.end(number)
    # Before it listens, a signal ends it like any program.
    assert status in (0, -number)
    assert seconds < 20
    if status == 0:
        assert output.read_text(encoding="utf-8").rstrip().endswith("</html>")
    else:
        assert wait < 0.1 and not output.exists()
