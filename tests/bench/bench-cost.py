#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What profiling costs the machine: bench-cost.py CAIRN [--quick]

Prints, and compares with the budgets: ns per sample by the kernel's BPF statistics, beside a program that only calls
bpf_get_stackid; CPU time of cairn; its memory with 300 processes; the time to the first sample and from the end of
sampling to the file. Status 1: a budget is missed. Needs root.
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import session

HERE = pathlib.Path(__file__).resolve().parent
DEPTHS = (10, 30, 100)
STACK_HZ = 999
HZ = 99
PROCESSES = 300
AGENT_SESSION = 60  # seconds, cairn agent's own choice
MIB = 1 << 20
BUDGET_MEMORY = 60 * MIB
BUDGET_CPU = 1.0  # percent of one core
BUDGET_FIRST = 1.0  # seconds
# Programs that differ in what they map, each awake now and then so that their stacks are sampled.
SLEEPERS = [
    ["sleep", "1000"],
    ["bash", "-c", "while read -t 0.4 -u 9 || true; do for i in {1..400}; do :; done; done 9<> <(sleep 1000)"],
    ["perl", "-e", "while (1) { select(undef, undef, undef, 0.4); my $x = join ',', map { $_ * $_ } 1 .. 2000 }"],
    ["perl", "-MPOSIX", "-MData::Dumper", "-e", "while (1) { select(undef, undef, undef, 0.5); Dumper([1 .. 500]) }"],
    ["python3", "-c", "import time\nwhile True:\n time.sleep(.4); sum(x * x for x in range(9000))"],
    ["python3", "-c", "import time, json, ssl, hashlib\nwhile True:\n time.sleep(.5)\n"
     " json.dumps(list(range(5000))); hashlib.sha256(bytes(400000)).digest()"],
    ["python3", "-c", "import time, sqlite3, zlib, bz2, lzma, ctypes\nd = sqlite3.connect(':memory:')\nwhile True:\n"
     " time.sleep(.5); d.execute('select ' + '+'.join(['1'] * 90)).fetchall(); zlib.compress(bytes(300000))"],
]


class Report:
    """Lines of the one table that is printed, and whether every budget held."""

    def __init__(self):
        self.missed = []

    def section(self, text):
        print(f"\n{text}", flush=True)

    def row(self, name, value, budget="", ok=None):
        verdict = "" if ok is None else "   ok" if ok else "   MISSED"
        print(f"  {name:<58} {value:>12}   {budget}{verdict}", flush=True)
        if ok is False:
            self.missed.append(name)


class Bench:
    def __init__(self, cairn, folder, quick):
        self.cairn, self.folder, self.quick = cairn, pathlib.Path(folder), quick
        self.report = Report()
        self.frames = session.compile_c(HERE / "frames.c", self.folder / "frames", "-fomit-frame-pointer")
        self.frames_fp = session.compile_c(HERE / "frames.c", self.folder / "frames-fp", "-fno-omit-frame-pointer")
        self.slots = session.compile_c(HERE / "slots.c", self.folder / "slots")
        self.stackid = session.compile_c(HERE / "stackid.c", self.folder / "stackid", "-lbpf")
        self.object = self.folder / "stackid.bpf.o"
        machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}", "-c",
                        str(HERE / "stackid.bpf.c"), "-o", str(self.object)], check=True)

    def seconds(self, whole, short):
        return short if self.quick else whole


@contextlib.contextmanager
def running(*commands):
    """Programs that run while the block does."""
    children = []
    try:
        for command in commands:
            children.append(subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        yield children
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


# --- ns per sample

def user_frames(stack):
    return [frame for frame in stack[1:] if not frame.endswith("_[k]")]


def sample_target(bench, walker, pid):
    """(ns, runs, samples, user frames of most samples) of a short recording of PID."""
    output = bench.folder / "stack.folded"
    with session.Session(bench.cairn, "record", "-p", pid, "-F", STACK_HZ, "--walker", walker, "-o", output) as run:
        run.wait_sampling()
        time.sleep(bench.seconds(10, 2))
        times = session.program_times(run.pid)
        status, _, _ = run.end()
    if status:
        raise RuntimeError(f"cairn record ended with status {status}")
    ns, runs = max(times.values(), key=lambda one: one[1])
    rows = session.read_folded(output)
    depths = {}
    for stack, count in rows:
        depths[len(user_frames(stack))] = depths.get(len(user_frames(stack)), 0) + count
    return ns, runs, sum(count for _, count in rows), max(depths, key=depths.get, default=0)


def sample_minimal(bench, pid):
    seconds = bench.seconds(10, 2)
    words = [bench.stackid, bench.object, pid, STACK_HZ, seconds]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    return tuple(int(word) for word in done.stdout.split()[1:])


def ns_of_other_ticks(measure):
    """What a tick costs that hits another process: it is part of the program's statistics."""
    with running(["sleep", "1000"]) as (idle,):
        ns, runs, _, _ = measure(idle.pid)
    return ns / runs if runs else 0


def ns_per_sample(measured, other_ns):
    ns, runs, samples, _ = measured
    return (ns - (runs - samples) * other_ns) / samples if samples else float("nan")


def bench_stacks(bench):
    bench.report.section(f"ns per sample, by the kernel's BPF statistics ({STACK_HZ} Hz, one process that runs)")
    with running([bench.frames, 5]) as (child,):
        above = sample_target(bench, "auto", child.pid)[3] - 5  # main and what calls it, and the leaf
    for walker in ("loop", "tail"):
        other = ns_of_other_ticks(lambda pid, walker=walker: sample_target(bench, walker, pid))
        for depth in DEPTHS:
            with running([bench.frames, depth - above]) as (child,):
                measured = sample_target(bench, walker, child.pid)
            name = f"cairn --walker {walker}, no frame pointers, {measured[3]} frames"
            bench.report.row(name, f"{ns_per_sample(measured, other):.0f} ns", f"{measured[2]} samples")
            if measured[3] != depth:
                bench.report.row(f"the stack should have {depth} frames", f"{measured[3]}", "", False)
    other = ns_of_other_ticks(lambda pid: sample_minimal(bench, pid))
    for depth in DEPTHS:
        with running([bench.frames_fp, depth - above]) as (child,):
            measured = sample_minimal(bench, child.pid)
        name = f"bpf_get_stackid twice, frame pointers, {measured[3]} frames"
        bench.report.row(name, f"{ns_per_sample(measured, other):.0f} ns", f"{measured[2]} samples")


# --- CPU time

def perf_cpu(bench, seconds):
    """CPU percent of perf record's user side; None where there is no perf for this kernel."""
    perf = shutil.which("perf")
    if not perf:
        return None
    command = [perf, "record", "-a", "-F", str(HZ), "-g", "-o", str(bench.folder / "perf.data"), "--", "sleep", str(seconds)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return None if child.returncode else 100 * (usage.ru_utime + usage.ru_stime) / seconds


def bench_cpu(bench):
    seconds, settle = bench.seconds(30, 5), 2
    cpus = len(os.sched_getaffinity(0))
    bench.report.section(f"CPU time: record -a -F {HZ} for {seconds} s while {cpus} CPUs run stacks of 30 frames, "
                         "in percent of one core")
    with running(*[[bench.frames, 24]] * cpus):
        output = bench.folder / "machine.html"
        with session.Session(bench.cairn, "record", "-a", "-F", HZ, "-o", output) as run:
            run.wait_sampling()
            time.sleep(settle)
            cpu, programs, begin = session.cpu_ns(run.pid), session.program_times(run.pid), time.monotonic()
            time.sleep(seconds)
            cpu_after, programs_after = session.cpu_ns(run.pid), session.program_times(run.pid)
            wall = (time.monotonic() - begin) * 1e9
            status, stop_seconds, cpu_whole = run.end()
        perf = perf_cpu(bench, seconds)
    if status or not output.exists():
        raise RuntimeError(f"cairn record ended with status {status}")
    user = 100 * (cpu_after - cpu) / wall
    kernel = 100 * sum(ns - programs.get(n, (0, 0))[0] for n, (ns, _) in programs_after.items()) / wall
    end_seconds = cpu_whole - cpu_after / 1e9
    bench.report.row("to start (load, verify, read /proc), CPU seconds", f"{cpu / 1e9:.3f} s")
    bench.report.row("cairn's process while sampling", f"{user:.3f} %")
    bench.report.row("its BPF programs", f"{kernel:.3f} %")
    bench.report.row("both", f"{user + kernel:.3f} %", f"budget {BUDGET_CPU} %", user + kernel <= BUDGET_CPU)
    bench.report.row("names and output at the end, CPU seconds", f"{end_seconds:.3f} s")
    share = 100 * end_seconds / AGENT_SESSION
    bench.report.row(f"all of it in sessions of {AGENT_SESSION} s, each with its end", f"{user + kernel + share:.3f} %",
                     f"budget {BUDGET_CPU} %", user + kernel + share <= BUDGET_CPU)
    bench.report.row("from SIGINT to the end of the process, file written", f"{stop_seconds:.3f} s")
    bench.report.row(f"perf record -a -F {HZ} -g, its process alone", "no perf" if perf is None else f"{perf:.3f} %",
                     "no names, no output but raw samples")


# --- memory

def wait_sleepers(children, patience=60):
    """Until the interpreters have loaded what they load."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        before = [session.cpu_ns(child.pid) for child in children]
        time.sleep(1)
        if sum(session.cpu_ns(child.pid) - ns for child, ns in zip(children, before)) < 1.5e9:
            return


def bench_memory(bench):
    seconds = bench.seconds(60, 6)
    bench.report.section(f"memory: agent with {PROCESSES} more processes, sessions of {AGENT_SESSION} s, after {seconds} s")
    commands = [SLEEPERS[i % len(SLEEPERS)] for i in range(PROCESSES)]
    with running(*commands) as children:
        wait_sleepers(children)
        folder = bench.folder / "agent"
        with session.Session(bench.cairn, "agent", "-o", folder, "-f", HZ, "-d", AGENT_SESSION, "-c") as run:
            run.wait_sampling()
            time.sleep(seconds)
            alive = sum(child.poll() is None for child in children)
            ids = session.bpf_ids(run.pid)
            maps, sizes = session.map_bytes(ids), session.memory(run.pid)
            run.child.send_signal(session.signal.SIGINT)
            anonymous = 0
            while not session.ended(run.pid):
                anonymous = max(anonymous, session.memory(run.pid)["anonymous"])
                time.sleep(0.005)
            status, _, _ = run.end(None)
    if alive != PROCESSES or status:
        raise RuntimeError(f"{alive} processes were there, cairn ended with status {status}")
    total = sizes["rss"] + sizes["perf_rings"] + maps
    rows = [("resident, without the BPF maps it maps", sizes["rss"]), ("proportional, without the BPF maps", sizes["pss"]),
            (f"kernel memory of {len(ids['map'])} BPF maps", maps), ("rings of side-band records", sizes["perf_rings"])]
    for name, value in rows:
        bench.report.row(name, f"{value / MIB:.1f} MiB")
    bench.report.row("resident, maps and rings together", f"{total / MIB:.1f} MiB", f"budget {BUDGET_MEMORY // MIB} MiB",
                     total <= BUDGET_MEMORY)
    bench.report.row("VmRSS (has the pages of maps that it maps)", f"{sizes['vm_rss'] / MIB:.1f} MiB")
    # Peaks count mapped pages of BPF maps as the present size does: what is above it is cairn's own.
    for name, peak in (("while sampling", sizes["vm_hwm"]), ("while names are found", run.peak_rss)):
        together = total + max(0, peak - sizes["vm_rss"])
        bench.report.row(f"together at the peak {name}", f"{together / MIB:.1f} MiB", f"budget {BUDGET_MEMORY // MIB} MiB",
                         together <= BUDGET_MEMORY)
    bench.report.row("anonymous memory while names are found, the most seen", f"{anonymous / MIB:.1f} MiB",
                     "the rest is mapped files")


# --- times

def first_sample(bench):
    """Seconds from exec to the first sample, by a clock that is the target."""
    output = bench.folder / "first.folded"
    with subprocess.Popen([str(bench.slots)], stdout=subprocess.PIPE, text=True) as clock:
        begin_ns, slot_ms = map(int, clock.stdout.readline().split())
        time.sleep(0.1)
        exec_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with session.Session(bench.cairn, "record", "-a", "-F", HZ, "-d", 1.5, "-o", output) as run:
            status, _, _ = run.end(None)
        clock.kill()
    slots = [int(match[1]) for stack, _ in session.read_folded(output) if stack[0] == "slots"
             for match in re.finditer(r"^slot_(\d{4})$", "\n".join(stack), re.M)]
    if status or not slots:
        raise RuntimeError(f"no sample of the clock (status {status})")
    return (begin_ns + min(slots) * slot_ms * 1000000 - exec_ns) / 1e9


def bench_times(bench):
    bench.report.section(f"time: record -a -F {HZ} -d 1.5, several times")
    times = sorted(first_sample(bench) for _ in range(bench.seconds(9, 3)))
    median = times[len(times) // 2]
    bench.report.row("from exec to the first sample, median", f"{median:.3f} s", f"budget {BUDGET_FIRST} s",
                     median <= BUDGET_FIRST)
    bench.report.row("the slowest", f"{times[-1]:.3f} s", f"budget {BUDGET_FIRST} s", times[-1] <= BUDGET_FIRST)


PARTS = {"stacks": bench_stacks, "cpu": bench_cpu, "memory": bench_memory, "times": bench_times}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="short runs: to see that it works, not to quote")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}; separated by commas")
    args = parser.parse_args()
    if os.geteuid():
        sys.exit("bench-cost: needs root")
    print(f"{os.uname().release}, {os.cpu_count()} CPUs" + (", short runs" if args.quick else ""))
    with tempfile.TemporaryDirectory() as folder, session.bpf_statistics():
        bench = Bench(args.cairn.resolve(), folder, args.quick)
        for part in args.only.split(","):
            PARTS[part](bench)
    missed = bench.report.missed
    print("\n" + (f"budgets missed: {'; '.join(missed)}" if missed else "all budgets hold"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
