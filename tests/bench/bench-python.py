#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What profiling Python costs, beside others: bench-python.py CAIRN [--quick] [--only stacks,slowdown,dump]

Prints ns per sample by the kernel's BPF statistics; how much longer a fixed amount of work takes while it is profiled;
how long a dump of all threads takes, and the longest stop of a running thread. py-spy, austin and pystack come from PyPI
into a folder of the bench's own. Status 1: cairn is not the first of a group, and REASONS does not say why. Needs root.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import session

HERE = pathlib.Path(__file__).resolve().parent
WORK = HERE / "python_work.py"
DEPTHS = (10, 30, 100)
STACK_HZ = 999
RATES = (99, 999)
LOADS = ("objects", "documents", "texts")
THREADS = (1, 50, 500)
PEERS = ["py-spy", "pystack", "austin-dist"]
OLD_AUSTIN = "austin-dist<4"  # 4.0 needs glibc 2.38
# Who may be before cairn, and why: {(part, tool): reason}.
FROM_OUTSIDE = "it reads from another CPU, which it keeps busy, while the program runs on: no native frames, stacks may be torn"
NO_MACHINE_FRAMES = "it does not read machine code; with --native it does, as cairn always does"
REASONS = {
    ("dump", "py-spy dump"): NO_MACHINE_FRAMES,
    ("dump", "py-spy dump --nonblocking"): NO_MACHINE_FRAMES,
    ("slowdown", "austin"): FROM_OUTSIDE,
    ("slowdown", "py-spy record --nonblocking"): FROM_OUTSIDE,
    ("stop", "py-spy dump --nonblocking"): "it stops nothing, and what runs meanwhile may be torn; so does cairn dump --nonblocking",
}


class Report:
    """Groups of rows; who is first in each."""

    def __init__(self):
        self.failed = []

    def section(self, text):
        print(f"\n{text}", flush=True)

    def row(self, name, value, note=""):
        print(f"  {name:<58} {value:>12}   {note}".rstrip(), flush=True)

    def group(self, part, title, figures, unit, margin=0.0):
        """FIGURES: [(tool, number, note)], less is better; differences up to MARGIN are noise. "(...)" is no tool."""
        self.section(title)
        for tool, number, note in sorted(figures, key=lambda one: one[1]):
            self.row(tool, f"{number:.2f} {unit}", note)
        ours = min((number for tool, number, _ in figures if tool.startswith("cairn")), default=None)
        if ours is None:
            self.failed.append(f"{title}: no figure of cairn")
            return
        before = [tool for tool, number, _ in figures if not tool.startswith(("cairn", "(")) and number < ours - margin]
        for tool in before:
            reason = REASONS.get((part, tool))
            print(f"  {tool} is before cairn: {reason or 'no reason is known'}", flush=True)
            if not reason:
                self.failed.append(f"{title}: {tool} is first")
        if not before:
            print("  first: cairn", flush=True)


class Bench:
    def __init__(self, args, folder):
        self.cairn, self.python, self.quick = args.cairn.resolve(), args.python, args.quick
        self.folder, self.report = pathlib.Path(folder), Report()
        self.peers = install_peers(args.peers)
        self.version = version_of(self.python)

    def times(self, whole, short):
        return short if self.quick else whole


# --- what is compared

def version_of(python):
    done = subprocess.run([python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"], capture_output=True,
                          text=True, check=True)
    return tuple(map(int, done.stdout.split(".")))


def says_version(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip().split("\n")[0] if done.returncode == 0 else None


def install_peers(folder):
    """{name: path}; what cannot be had is missing, and said."""
    folder = pathlib.Path(folder)
    pip = [str(folder / "bin/pip"), "-q", "--disable-pip-version-check", "install"]
    if not (folder / "bin/py-spy").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([*pip, *PEERS], check=False)
        if (folder / "bin/austin").exists() and not says_version(folder / "bin/austin"):
            subprocess.run([*pip, OLD_AUSTIN], check=False)
    found = {}
    for name in ("py-spy", "pystack", "austin"):
        version = says_version(folder / "bin" / name) if (folder / "bin" / name).exists() else None
        print(f"{name}: {version or 'not to be had here'}")
        if version:
            found[name] = str(folder / "bin" / name)
    for name in ("perf", "gdb"):
        version = says_version(name) if shutil.which(name) else None
        print(f"{name}: {version or 'not here'}")
        if version:
            found[name] = name
    return found


def go_first():
    """What is compared comes before whatever else this machine does, other sessions (autogroups) included."""
    os.setsid()
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:
        group.write("-15")
    os.nice(-15)


def start(words, **more):
    return subprocess.Popen([str(word) for word in words], text=True, env=session.clean_environment(),
                            stderr=subprocess.DEVNULL, preexec_fn=go_first, **more)


def stop(child, number=signal.SIGINT, patience=60):
    """Ask a profiler to end."""
    if child.poll() is None:
        child.send_signal(number)
    try:
        child.wait(patience)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


# --- ns per sample

def python_depth(stack):
    """Frames that are Python's: whatever else a stack has is the same at every depth."""
    return sum(1 for frame in stack if "descend" in frame)


def sample_stack(bench, depth):
    """(ns per sample, samples, Python frames "descend" of most samples)"""
    output = bench.folder / "stack.folded"
    target = start([bench.python, WORK, "depth", depth], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        with session.Session(bench.cairn, "record", "-p", target.pid, "-F", STACK_HZ, "-o", output) as run:
            run.wait_sampling()
            time.sleep(bench.times(10, 2))
            times = session.program_times(run.pid)
            status, _, _ = run.end()
    finally:
        stop(target, signal.SIGKILL)
    if status:
        raise RuntimeError(f"cairn record ended with status {status}")
    ns, runs = max(times.values(), key=lambda one: one[1])
    rows = session.read_folded(output)
    samples = sum(count for _, count in rows)
    stack = max(rows, key=lambda row: row[1])[0]
    return ns, runs, samples, python_depth(stack), len([f for f in stack[1:] if not f.endswith("_[k]")])


def idle_tick(bench):
    """ns of a tick that hits another process."""
    with session.Session(bench.cairn, "record", "-F", STACK_HZ, "-o", bench.folder / "idle.folded", "--", "sleep", "1000") as run:
        run.wait_sampling()
        time.sleep(bench.times(5, 1))
        ns, runs = max(session.program_times(run.pid).values(), key=lambda one: one[1])
        run.end()
    return ns / runs if runs else 0


def bench_stacks(bench):
    bench.report.section(f"ns per sample of a Python stack, by the kernel's BPF statistics ({STACK_HZ} Hz, one process)")
    other = idle_tick(bench)
    for depth in DEPTHS:
        ns, runs, samples, python, frames = sample_stack(bench, depth)
        cost = (ns - (runs - samples) * other) / samples if samples else float("nan")
        bench.report.row(f"{depth} Python functions", f"{cost:.0f} ns", f"{samples} samples, {frames} user frames, "
                         f"{python} of them descend()")
        if python != depth - 2:
            bench.report.failed.append(f"the stack should have {depth - 2} times descend(), it has {python}")


# --- slowdown

class Profiler:
    """A way to profile PID: the words of the command, and when it samples."""

    def __init__(self, name, words, python_options=(), settle=1.5):
        self.name, self.words, self.python_options, self.settle = name, words, python_options, settle


def profilers(bench, rate):
    """PID in a word stands for the target's id."""
    out, micros = str(bench.folder), 1000000 // rate
    found = [
        Profiler("(nothing)", None, settle=0.2),
        Profiler("cairn record", [bench.cairn, "record", "-p", "PID", "-F", rate, "-o", f"{out}/c.html"], settle=1),
    ]
    if "py-spy" in bench.peers:
        words = [bench.peers["py-spy"], "record", "-p", "PID", "-r", rate, "-o", f"{out}/p.raw", "-f", "raw", "-d", "unlimited"]
        found += [Profiler("py-spy record", words), Profiler("py-spy record --nonblocking", [*words, "--nonblocking"])]
    if "austin" in bench.peers:
        found.append(Profiler("austin", [bench.peers["austin"], "-i", micros, "-p", "PID", "-o", f"{out}/a.austin"]))
    if "perf" in bench.peers and bench.version >= (3, 12):
        words = ["perf", "record", "-p", "PID", "-F", rate, "-g", "-o", f"{out}/perf.data"]
        found += [Profiler("(nothing, but python -X perf)", None, ("-X", "perf"), settle=0.2),
                  Profiler("perf record -g, python -X perf", words, ("-X", "perf"))]
    return found


class Run:
    """One run of the work: its seconds (without those in which it waited for a CPU, which others had), CPU seconds of the
    profiler, and what went wrong."""

    def __init__(self, seconds=None, cpu=0.0, wrong=""):
        self.seconds, self.cpu, self.wrong = seconds, cpu, wrong


def run_work(bench, load, rounds, profiler):
    target = start([bench.python, *profiler.python_options, WORK, "work", load, rounds], stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE)
    watcher = None
    try:
        target.stdout.readline()
        if profiler.words:
            words = [str(target.pid) if word == "PID" else word for word in profiler.words]
            watcher = start(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(profiler.settle)
        if watcher and watcher.poll() is not None:
            return Run(wrong=f"ended with status {watcher.returncode} before the work")
        cpu = session.cpu_ns(watcher.pid) if watcher else 0
        target.stdin.write("\n")
        target.stdin.flush()
        seconds, waited = map(float, target.stdout.readline().split())
        cpu = session.cpu_ns(watcher.pid) - cpu if watcher else 0
        wrong = f"status {watcher.returncode} during the work" if watcher and watcher.poll() not in (None, 0) else ""
        return Run(seconds - waited, cpu / 1e9, wrong)
    finally:
        if watcher:
            stop(watcher)
        target.kill()
        target.wait()


def calibrate(bench, load):
    run = run_work(bench, load, 10, Profiler("(nothing)", None, settle=0))
    return max(1, round(bench.times(4.0, 1.0) * 10 / run.seconds))


def slowdown_of(bench, load, rate):
    """{name: runs}, which alternate."""
    rounds, found = calibrate(bench, load), {}
    ways = profilers(bench, rate)
    for turn in range(bench.times(9, 3)):
        for profiler in ways if turn % 2 else reversed(ways):
            found.setdefault(profiler.name, []).append(run_work(bench, load, rounds, profiler))
    return found


def summary(runs):
    """(median seconds or None, a note)"""
    done = [run for run in runs if run.seconds]
    wrong = next((run.wrong for run in runs if run.wrong), "")
    if not done:
        return None, wrong
    seconds = statistics.median(run.seconds for run in done)
    cpu = statistics.median(100 * run.cpu / run.seconds for run in done)
    return seconds, f"its own CPU {cpu:5.1f} %" + (f"; {wrong}" if wrong else "")


def bench_slowdown(bench):
    turns = bench.times(9, 3)
    print(f"\nslowdown: Python {'.'.join(map(str, bench.version))}, medians of {turns} alternating runs; time is what the work "
          "took without waiting for a CPU")
    for rate in RATES:
        for load in LOADS:
            runs = slowdown_of(bench, load, rate)
            base, _ = summary(runs["(nothing)"])
            spread = 100 * statistics.pstdev(run.seconds for run in runs["(nothing)"]) / base
            figures = []
            for name, some in runs.items():
                seconds, note = summary(some)
                if seconds and name != "(nothing)":
                    figures.append((name, 100 * (seconds / base - 1), note))
                elif not seconds:
                    bench.report.row(name, "-", note)
            title = f"{load} at {rate} Hz, percent more time than without"
            bench.report.group("slowdown", title, figures, "%", margin=max(0.5, spread))
            bench.report.row("(nothing)", f"{base:.3f} s", f"standard deviation {spread:.2f} %")


# --- dump

def dump_words(bench):
    found = {"cairn dump": [bench.cairn, "dump", "PID"],
             "cairn dump --nonblocking": [bench.cairn, "dump", "PID", "--nonblocking"]}
    if "py-spy" in bench.peers:
        found["py-spy dump"] = [bench.peers["py-spy"], "dump", "-p", "PID"]
        found["py-spy dump --native"] = [bench.peers["py-spy"], "dump", "-p", "PID", "--native"]
        found["py-spy dump --nonblocking"] = [bench.peers["py-spy"], "dump", "-p", "PID", "--nonblocking"]
    if "pystack" in bench.peers:
        found["pystack remote"] = [bench.peers["pystack"], "remote", "PID"]
        found["pystack remote --native"] = [bench.peers["pystack"], "remote", "PID", "--native"]
    if "gdb" in bench.peers:
        found["gdb thread apply all bt"] = ["gdb", "-p", "PID", "-batch", "-ex", "thread apply all bt"]
    return found


def begin_gaps(gaps):
    with open(gaps, "r+b") as file:  # not cut to nothing: the target has it mapped
        file.write(struct.pack("Q", 0))


class Dumped:
    """One run of a command that dumps: milliseconds it took, of CPU, of the longest stop; how it ended."""

    def __init__(self, took, cpu, stop, status):
        self.took, self.cpu, self.stop, self.status = took, cpu, stop, status


def dump_once(words, pid, gaps):
    begin_gaps(gaps)
    time.sleep(0.05)
    words = [str(pid) if word == "PID" else str(word) for word in words]
    with tempfile.TemporaryFile() as out:
        begin = time.monotonic()
        child = start(words, stdin=subprocess.DEVNULL, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        took = 1000 * (time.monotonic() - begin)
    child.returncode = os.waitstatus_to_exitcode(status)
    time.sleep(0.05)
    stop_ms = struct.unpack("Q", gaps.read_bytes())[0] / 1e6
    return Dumped(took, 1000 * (usage.ru_utime + usage.ru_stime), stop_ms, child.returncode)


def nothing_once(seconds, gaps):
    begin_gaps(gaps)
    time.sleep(0.1 + seconds)
    return struct.unpack("Q", gaps.read_bytes())[0] / 1e6


def bench_dump(bench):
    gaps = bench.folder / "gaps"
    gaps.write_bytes(struct.pack("Q", 0))
    for count in THREADS:
        target = start([bench.python, WORK, "threads", count, gaps], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            target.stdout.readline()
            times, stops = [], [("(nobody, for 0.2 s)", statistics.median(nothing_once(0.2, gaps) for _ in range(5)), "")]
            for name, words in dump_words(bench).items():
                runs = [dump_once(words, target.pid, gaps) for _ in range(bench.times(9, 3))]
                status = {run.status for run in runs}
                if status != {0}:
                    bench.report.row(f"{name}, {count} threads", "-", f"status {sorted(status)}: not counted")
                    continue
                cpu = f"CPU {statistics.median(run.cpu for run in runs):.1f} ms"
                times.append((name, statistics.median(run.took for run in runs), cpu))
                stops.append((name, statistics.median(run.stop for run in runs), ""))
        finally:
            target.kill()
            target.wait()
        bench.report.group("dump", f"time of a dump of {count} threads", times, "ms")
        # The scheduler takes the spinning thread off its CPU, too: what nobody causes is no difference.
        bench.report.group("stop", f"longest stop of a running thread, {count} threads", stops[1:], "ms",
                           margin=max(0.2, stops[0][1]))
        bench.report.row(*stops[0][:1], f"{stops[0][1]:.2f} ms")


PARTS = {"stacks": bench_stacks, "slowdown": bench_slowdown, "dump": bench_dump}


def default_python():
    """One that perf can name (3.12 and later) if there is one."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    pyenv = sorted(versions.glob("3.12.*/bin/python3.12"))
    return str(pyenv[-1]) if pyenv else "/usr/bin/python3"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="short runs: to see that it works, not to quote")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}; separated by commas")
    parser.add_argument("--python", default=default_python(), help="the interpreter that is profiled")
    parser.add_argument("--peers", default="build/bench-peers", help="where the other profilers are installed")
    args = parser.parse_args()
    if os.geteuid():
        sys.exit("bench-python: needs root")
    print(f"{os.uname().release}, {os.cpu_count()} CPUs" + (", short runs" if args.quick else ""))
    with tempfile.TemporaryDirectory() as folder, session.bpf_statistics():
        bench = Bench(args, folder)
        for part in args.only.split(","):
            PARTS[part](bench)
    failed = bench.report.failed
    print("\n" + ("\n".join(["not first, or wrong:", *failed]) if failed else "cairn is first everywhere"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
