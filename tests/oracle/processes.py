#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oracle of whole stacks: processes.py STACKS

Starts real programs, stops each at some moments, and compares the stacks of all its threads by the host walker
(STACKS, stacks.c) with those of eu-stack, frame for frame and name for name. Differences that are explained are counted
under their explanation; any other is wrong. The last line is "N processes of N programs, N stacks equal, N explained, N
wrong". Fails on anything that is wrong, and below 100 processes (a process stopped at two moments counts twice) or 30
programs.
"""
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROCESSES, PROGRAMS = 100, 30

PYTHON_THREADS = """
import threading, time
for n in range(3): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
time.sleep(60)
"""
C_PLUS_PLUS = """
#include <regex>
#include <map>
#include <string>
std::map<std::string, std::regex> all;
int main() { return all.size(); }
"""
# (shell command, moments at which it is stopped). The first word says which program must be there. A leading "tty "
# gives it a terminal. Everything runs below a folder of its own, in which big.txt, big.c and big.cc are.
COMMANDS = [
    ("sleep 60", 1), ("tail -f big.txt", 1), ("cat", 1), ("tty cat", 1), ("bash -c 'sleep 60; true'", 1),
    ("tty bash --norc", 1), ("dash -c 'sleep 60; true'", 1), ("bash -c 'while :; do :; done'", 4),
    ("perl -e 'sleep 60'", 1), ("perl -e 'while (1) { $x = join q(,), sort map { $_ * 7 % 5 } 1..99 }'", 5),
    ("/usr/bin/python3 -c 'import time; time.sleep(60)'", 1),
    ("/usr/bin/python3 -c 'while True: sorted(map(str, range(999)))'", 5),
    ("/usr/bin/python3 threads.py", 1),
    ("sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n'", 4),
    ("openssl speed -seconds 30 sha256", 4), ("openssl s_server -nocert -accept 0", 1),
    ("openssl genrsa -f4 8192", 4), ("gdb -q -nx --args sleep 1", 1), ("ssh-agent -D", 1), ("tty top -b -d 1", 2),
    ("tty less big.txt", 1), ("tty vi -u NONE big.txt", 1), ("tty nano big.txt", 1), ("gcc -O2 -c big.c -o c.o", 4),
    ("g++ -O2 -c big.cc -o cc.o", 4), ("clang -O2 -c big.c -o clang.o", 4), ("rustc --version --verbose", 0),
    ("tar cf - /usr/lib/x86_64-linux-gnu | gzip -9 >/dev/null", 3),
    ("xz -9 -T2 -k -c /usr/bin/gdb >/dev/null", 3), ("zstd -19 -T2 -c /usr/bin/gdb >/dev/null", 3),
    ("bzip2 -9 -c /usr/bin/gdb >/dev/null", 3), ("sort -R big.txt --parallel=2 -o sorted.txt && sleep 60", 2),
    ("awk 'BEGIN { while (1) x = x % 7 + sqrt(x) }'", 3), ("sha256sum /dev/zero", 3), ("md5sum /dev/zero", 2),
    ("b2sum /dev/zero", 2), ("wc /dev/zero", 2), ("find / -name nothing -size +9999999", 2),
    ("grep -rE '(a|b)*nothing$' /usr/share", 3), ("sed -n '/x*y*nothing$/p' /dev/zero", 1),
    ("factor 1000000000000000000000000000057000000000000000000000000000810000000000000061", 2),
    ("node -e 'setInterval(() => {}, 1000)'", 1), ("tclsh tcl.tcl", 2), ("bc -q loop.bc", 2), ("make -f slow.mk", 2),
    ("git cat-file --batch", 1), ("tty man bash", 1), ("tty watch date", 1), ("timeout 60 sleep 60", 1),
    ("strace -o /dev/null sleep 60", 1), ("curl -s telnet://127.0.0.1:9", 0), ("tmux -L oracle -D", 1),
    ("dd if=/dev/zero of=/dev/null bs=1k", 3), ("od /dev/zero", 2), ("base64 /dev/zero", 2), ("yes", 2),
    ("mkfifo -m 600 pipe; exec tee <pipe", 1), ("flock lock sleep 60", 1), ("setpriv sleep 60", 1),
    ("env sleep 60", 1), ("nice sleep 60", 1), ("stdbuf -o0 tail -f big.txt", 1), ("cmake --version", 0),
    ("objdump -d /usr/bin/gdb", 3), ("readelf -wi /usr/bin/gdb", 1), ("nm /usr/bin/gdb", 0), ("vmstat 1", 1),
    ("script -qc 'sleep 60' /dev/null", 1), ("sudo -V", 0), ("ssh -V", 0), ("diff big.txt /dev/zero", 1),
]

# An explanation: a name, what makes a difference one, a reason. A and B are the frames of cairn and of eu-stack, END how
# cairn's walk ended; pcs of A and B differ.
ROOT = "outermost frame of the thread"


def is_part(a, b):
    """Are A's frames among B's, in the same order, from the same first one to the same last one?"""
    rest = iter(frame.pc for frame in b)
    return a[0].pc == b[0].pc and a[-1].pc == b[-1].pc and all(frame.pc in rest for frame in a)


def is_prefix(a, b):
    return [frame.pc for frame in a] == [frame.pc for frame in b[: len(a)]]


EXPLANATIONS = [
    ("eu-stack ends where there is no unwind information; cairn goes on to the root",
     lambda a, b, end: end == ROOT and len(b) < len(a) and is_prefix(b, a)),
    ("eu-stack takes code without unwind information for code with frame pointers and leaves out its caller",
     lambda a, b, end: end == ROOT and len(b) < len(a) and is_part(b, a)),
    ("code made at run time: cairn ends and says so, eu-stack guesses",
     lambda a, b, end: end != ROOT and a[-1].where == "[anonymous]"),
    ("eu-stack shows one more frame, at address zero or one, below the first one of the thread",
     lambda a, b, end: end == ROOT and is_prefix(a, b) and len(b) == len(a) + 1 and b[-1].pc <= 1),
]


class Frame:
    def __init__(self, pc, name, where=""):
        self.pc, self.name, self.where = pc, name, where

    def text(self):
        return f"0x{self.pc:x} {self.name or '???'} {self.where}".rstrip()


def cairn_stacks(stacks, pid):
    """{tid: (frames, end)}; None: that failed."""
    done = subprocess.run([stacks, str(pid)], capture_output=True, text=True, errors="replace", timeout=60)
    if done.returncode:
        print(f"{pid}: {done.stderr.strip()}")
        return None
    found = {}
    for line in done.stdout.split("\n"):
        field = line.split("\t")
        if field[0] == "thread":
            frames = []
            found[int(field[1])] = (frames, field[2])
        elif field[0] == "frame":
            frames.append(Frame(int(field[1], 16), field[4] if field[3] == "1" else "", field[2]))
    return found


def eu_stacks(pid):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DEBUGINFOD")}
    done = subprocess.run(["eu-stack", "-n", "0", "-p", str(pid)], capture_output=True, text=True, errors="replace",
                          timeout=60, env=environment)
    found = {}
    for line in done.stdout.split("\n"):
        if match := re.match(r"TID (\d+):", line):
            frames = found[int(match.group(1))] = []
        elif match := re.match(r"#\d+ +0x([0-9a-f]+)(?: - 1)?(?: +(.*))?$", line):
            frames.append(Frame(int(match.group(1), 16), (match.group(2) or "").strip()))
    return found


class Aliases:
    """Names of one address are one function."""

    def __init__(self):
        self.of = {}

    def read(self, path):
        if path not in self.of:
            names = self.of[path] = {}
            for option in ("-D", "-a"):
                done = subprocess.run(["nm", option, "--defined-only", path], capture_output=True, text=True)
                for line in done.stdout.split("\n"):
                    field = line.split()
                    if len(field) == 3:
                        names.setdefault(field[2].split("@")[0], set()).add(field[0])
        return self.of[path]

    def same(self, path, a, b):
        names = self.read(path)
        return bool(names.get(a, set()) & names.get(b, set()))


def plain(name):
    """Without version, clone suffix, parameters and blanks, which the two write differently."""
    name = re.sub(r"@.*| \[clone.*|\.(cold|isra|part|constprop|lto_priv|llvm).*", "", name)
    name = re.sub(r"\(anonymous namespace\)", "_anonymous_", name)
    # A function has several names in libc: clone3, __clone3; malloc, __libc_malloc; sprintf, _IO_sprintf. The table that
    # would tell may be in a debug file.
    return re.sub(r"^_*(GI_+)?(libc_|IO_)?", "", re.sub(r"\s+", "", re.split(r"\((?!\))", name)[0]))


def name_difference(ours, theirs, aliases):
    for a, b in zip(ours, theirs):
        # Jump stubs have names for cairn only.
        if a.name.endswith("@plt") and not b.name:
            continue
        if plain(a.name) != plain(b.name) and not aliases.same(a.where, plain(a.name), plain(b.name)):
            return f"{a.text()}, eu-stack says {b.name or '???'}"
    return None


class Tally:
    def __init__(self):
        self.processes, self.programs, self.equal, self.whole, self.wrong = 0, set(), 0, 0, 0
        self.explained = {}
        self.aliases = Aliases()

    def judge(self, title, ours, end, theirs):
        if not theirs:
            self.wrong += 1
            print(f"wrong: {title}: eu-stack gives no stack")
            return
        if [frame.pc for frame in ours] == [frame.pc for frame in theirs]:
            difference = name_difference(ours, theirs, self.aliases)
            if not difference:
                self.equal += 1
                self.whole += end == ROOT
                return
            self.wrong += 1
            print(f"wrong name: {title}: {difference}", flush=True)
            return
        for reason, holds in EXPLANATIONS:
            if holds(ours, theirs, end):
                self.explained[reason] = self.explained.get(reason, 0) + 1
                return
        self.wrong += 1
        print(f"wrong: {title}: cairn ({end}):", *(frame.text() for frame in ours), "eu-stack:",
              *(frame.text() for frame in theirs), sep="\n    ", flush=True)


def session(leader):
    """The processes of a session."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getsid(int(name)) == leader:
                found.append(int(name))
        except ProcessLookupError:
            continue
    return found


def state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def compare(pid, stacks, tally):
    try:
        os.kill(pid, signal.SIGSTOP)
        for _ in range(50):
            if state(pid) in ("T", "t", "Z", "gone"):
                break
            time.sleep(0.01)
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            comm = file.read().strip()
    except OSError:
        return
    if state(pid) != "T":
        return
    ours = cairn_stacks(stacks, pid)
    if ours is None:
        tally.wrong += state(pid) == "T"
        return
    theirs = eu_stacks(pid)
    tally.processes += 1
    tally.programs.add(comm)
    for tid, (frames, end) in ours.items():
        tally.judge(f"{comm} {tid}", frames, end, theirs.get(tid))


def start(command, folder):
    tty = command.startswith("tty ")
    ends = pty.openpty() if tty else None
    stream = ends[1] if tty else subprocess.PIPE
    child = subprocess.Popen(["/bin/bash", "-c", command.removeprefix("tty ")], cwd=folder, start_new_session=True,
                             stdin=stream, stdout=stream if tty else subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**os.environ, "TERM": "xterm", "LC_ALL": "C"})
    if tty:
        os.close(ends[1])
    return child, ends[0] if tty else -1


def run(command, moments, stacks, folder, tally):
    program = command.removeprefix("tty ").split()[0]
    if not shutil.which(program):
        print(f"no {program} here, left out")
        return
    child, terminal = start(command, folder)
    try:
        time.sleep(0.25)
        for _ in range(moments):
            for pid in session(child.pid):
                compare(pid, stacks, tally)
            send(session(child.pid), signal.SIGCONT)
            time.sleep(0.03)
    finally:
        send(session(child.pid), signal.SIGKILL)
        child.wait()
        if terminal >= 0:
            os.close(terminal)


def fill(folder):
    """The files that the commands read."""
    functions = "\n".join(f"int f{n}(int a) {{ int s = 0; for (int i = 0; i < a; i++) s += i * {n} ^ a % {n + 1}; "
                          "return s; }" for n in range(6000))
    files = {
        "big.txt": "\n".join(f"line {n * 7919 % 100003} of a text" for n in range(400000)),
        "big.c": functions, "big.cc": C_PLUS_PLUS, "threads.py": PYTHON_THREADS,
        "tcl.tcl": "proc f {n} { while 1 { incr n; string length [expr {$n * 7}] } }\nf 1\n",
        "loop.bc": "while (1) { x = x + 2 ^ 99 % 7 }\n", "slow.mk": "all:\n\tsleep 60\n",
    }
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def main(stacks):
    if not shutil.which("eu-stack"):
        print("no eu-stack here")
        return 77
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="cairn-oracle-") as folder:
        fill(folder)
        for command, moments in COMMANDS:
            if moments:
                run(command, moments, stacks, folder, tally)
    for reason, count in sorted(tally.explained.items()):
        print(f"explained, {count} stacks: {reason}")
    print(f"{tally.whole} of the equal stacks reach the root in both")
    print(f"{tally.processes} processes of {len(tally.programs)} programs, {tally.equal} stacks equal, "
          f"{sum(tally.explained.values())} explained, {tally.wrong} wrong")
    return 1 if tally.wrong or tally.processes < PROCESSES or len(tally.programs) < PROGRAMS else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
