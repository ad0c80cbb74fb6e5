#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn in a storm of short-lived processes: storm.py CAIRN [--minutes 10] [--rate 500] [--hz 999]

`cairn agent` takes sessions one after the other while programs are started at the given rate. Checked: no growth of
memory after the first minute, but for unwind rows (kept within --memory as programs are met for the first time); every
tick that hit a process is in a file or counted as lost; the number of ticks is that of a counter of our own; the end is
clean, and no BPF object and no file is left behind. Status 1: one of it does not hold. Needs root.
"""
import argparse
import concurrent.futures
import ctypes
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import session

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
WARM_UP = 60  # seconds until memory has to be stable
LOOKS_MIN = 12  # less says nothing about growth
GROWTH_MAX = 2 * MIB  # over the whole storm: what a fitted line may rise by
COUNTS_DIFFER_MAX = 0.02  # two timers do not tick at the same moments
SYS_BPF, BPF_LOOKUP, BPF_MAP_FD_BY_ID = 321, 1, 14
TICKS_COUNTER = 0  # BPF_samples of src/abi/tables.h
PROGRAMS = ["/bin/true", "/bin/echo", "/bin/ls", "/usr/bin/id", "/bin/uname"]


class TickCounter:
    """The counter of ticks that cairn's BPF program keeps. A descriptor of our own holds the map, so that it can be read
    when cairn is gone."""

    def __init__(self, ids):
        number = next(n for n in ids["map"] if session.bpftool("map", "show", "id", n)["name"] == "bpf_counters")
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.bpf(BPF_MAP_FD_BY_ID, struct.pack("=III", number, 0, 0))
        possible = session.read_text("/sys/devices/system/cpu/possible").strip()
        self.cpus = int(re.split("[-,]", possible)[-1]) + 1

    def bpf(self, command, attributes):
        buffer = ctypes.create_string_buffer(attributes, 128)
        result = self.libc.syscall(SYS_BPF, command, buffer, len(buffer))
        if result < 0:
            raise OSError(ctypes.get_errno(), f"bpf command {command}")
        return result

    def read(self):
        key, value = ctypes.c_uint32(TICKS_COUNTER), (ctypes.c_uint64 * self.cpus)()
        self.bpf(BPF_LOOKUP, struct.pack("=IIQQQ", self.fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
        return sum(value)

    def close(self):
        os.close(self.fd)


def watch(run, ids, seconds, every):
    """[(seconds since the start, bytes without unwind rows, bytes of unwind rows)] of cairn, until the storm is over."""
    rows, begin = [], time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        if run.child.poll() is not None:
            raise RuntimeError(f"cairn ended in the storm with status {run.child.returncode}")
        sizes = session.memory(run.pid)
        held = session.bpf_ids(run.pid)
        for kind, found in held.items():
            ids[kind] |= found
        unwind_rows = session.map_bytes(held, "segment")
        rows.append((now, sizes["rss"] + sizes["perf_rings"] + session.map_bytes(held) - unwind_rows, unwind_rows))
        time.sleep(min(every, max(0.0, seconds - now)))
    return rows


def growth(rows):
    """Bytes that a line through ROWS rises by from the first to the last (least squares)."""
    count = len(rows)
    mean_x, mean_y = sum(row[0] for row in rows) / count, sum(row[1] for row in rows) / count
    slope = (sum((x - mean_x) * (y - mean_y) for x, y, _ in rows) / sum((x - mean_x) ** 2 for x, _, _ in rows))
    return slope * (rows[-1][0] - rows[0][0])


class Verdict:
    def __init__(self):
        self.failed = 0

    def check(self, ok, text):
        print(f"{'ok     ' if ok else 'FAILED '} {text}", flush=True)
        self.failed += not ok


def count_col(path):
    """Samples in a .col file."""
    return sum(int(line.rpartition(" ")[2]) for line in session.read_text(path).split("\n")[1:] if line)


class Storm:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.seconds = args.minutes * 60
        self.output = folder / "profiles"
        self.forks = session.compile_c(HERE / "forks.c", folder / "forks")
        self.ticks = session.compile_c(HERE / "stackid.c", folder / "stackid", "-lbpf")
        machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
        self.object = folder / "stackid.bpf.o"
        subprocess.run(["clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}", "-c",
                        str(HERE / "stackid.bpf.c"), "-o", str(self.object)], check=True)
        self.ids = {}

    def weather(self):
        programs = [p for p in PROGRAMS if os.path.exists(p)]
        return subprocess.Popen([str(self.forks), str(self.args.rate), str(self.seconds), *programs],
                                stdout=subprocess.PIPE, text=True)

    def count_beside(self, counter, seconds):
        """Ticks that hit a process in the same SECONDS: by cairn's program, and by one of our own."""
        words = [str(self.ticks), str(self.object), "0", str(self.args.hz), str(seconds)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as own:
            own.stdout.readline()
            before = counter.read()
            line = own.stdout.readline()
            return counter.read() - before, int(line.split()[2])

    def take(self):
        """The storm itself. Leaves what was seen in members."""
        agent = ["agent", "-o", self.output, "-f", self.args.hz, "-d", self.args.session, "-c", "-v"]
        # The counter of our own runs for whole seconds, inside of the storm.
        counted_seconds = max(1, int(self.seconds) - 2)
        with open(self.folder / "log", "w", encoding="utf-8") as log, session.Session(self.args.cairn, *agent, log=log) as run:
            run.wait_sampling()
            time.sleep(0.5)
            self.ids = session.bpf_ids(run.pid)
            counter = TickCounter(self.ids)
            storm = self.weather()
            # Waits in a thread, so that both counters are read at the same moment.
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                beside = pool.submit(self.count_beside, counter, counted_seconds)
                self.rows = watch(run, self.ids, self.seconds, self.args.every)
                self.ticks_seen, self.ticks_counted = beside.result()
            self.started = [int(word) for word in storm.communicate()[0].split()]
            self.status, self.stop_seconds, _ = run.end(signal.SIGTERM)
            self.ticks_all = counter.read()
            counter.close()
        self.log = session.read_text(self.folder / "log")

    def judge(self):
        verdict = Verdict()
        started, failed, reaped, _ = self.started
        print(f"{started} processes started in {self.seconds:.0f} s, {failed} could not be, {reaped} waited for")
        verdict.check(self.status == 0, f"status {self.status} {self.stop_seconds:.2f} s after SIGTERM")
        sessions = [(pathlib.Path(path), int(samples), int(lost)) for path, samples, lost in
                    re.findall(r"session file=(\S+) samples=(\d+) lost=(\d+)", self.log)]
        samples, lost = sum(row[1] for row in sessions), sum(row[2] for row in sessions)
        away = sum(int(n) for n in re.findall(r"(\d+) samples did not fit into the profile", self.log))
        verdict.check(samples + lost == self.ticks_all,
                      f"{self.ticks_all} ticks hit a process: {samples} samples and {lost} lost in {len(sessions)} sessions")
        in_files = sum(count_col(path) for path, _, _ in sessions)
        verdict.check(in_files + away == samples, f"{in_files} samples are in the files, {away} were turned away")
        ratio = self.ticks_seen / self.ticks_counted if self.ticks_counted else 0
        verdict.check(abs(ratio - 1) < COUNTS_DIFFER_MAX + 3 / max(1, self.ticks_counted) ** 0.5,
                      f"{self.ticks_seen} ticks, {self.ticks_counted} by a counter beside: {100 * ratio:.2f} %")
        self.judge_memory(verdict)
        left = session.left_behind(self.ids)
        held = ", ".join(f"{len(found)} {kind}s" for kind, found in self.ids.items())
        verdict.check(not left, f"BPF objects left of {held}: {left or 'none'}")
        expected = {path.name for path, _, _ in sessions} | {path.with_suffix(".html").name for path, _, _ in sessions}
        other = {entry.name for entry in self.output.iterdir()} ^ (expected | {"last_profile.col", "last_flamegraph.html"})
        verdict.check(not other, f"files left or missing: {', '.join(sorted(other)) or 'none'}")
        for line in self.log.split("\n"):
            if re.search(r" (WARNING|ERROR|CRITICAL): |^cairn: ", line):
                print(f"        cairn said: {line}")
        return verdict.failed

    def judge_memory(self, verdict):
        for what, at in (("memory with maps, without unwind rows", 1), ("unwind rows", 2)):
            sizes = [row[at] / MIB for row in self.rows]
            print(f"        {what}: {sizes[0]:.1f} MiB at first, {sizes[-1]:.1f} at last, {max(sizes):.1f} at most")
        if self.args.trace:
            for at, rest, unwind_rows in self.rows:
                print(f"        {at:6.1f} s {rest / MIB:8.2f} {unwind_rows / MIB:8.2f}")
        late = [row for row in self.rows if row[0] >= WARM_UP]
        if len(late) < LOOKS_MIN:
            print("        too short a storm to tell growth")
            return
        rise = growth(late)
        verdict.check(rise <= GROWTH_MAX, f"growth after the first minute: {rise / MIB:.2f} MiB in "
                                          f"{late[-1][0] - late[0][0]:.0f} s, {GROWTH_MAX / MIB:.0f} allowed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=500, help="programs started each second")
    parser.add_argument("--hz", type=int, default=999)
    parser.add_argument("--session", type=int, default=20, help="seconds of each session")
    parser.add_argument("--trace", action="store_true", help="print every look at memory")
    parser.add_argument("--every", type=float, default=5, help="seconds between looks at memory")
    args = parser.parse_args()
    if os.geteuid():
        sys.exit("storm: needs root")
    for tool in ("bpftool", "clang", "gcc"):
        if not shutil.which(tool):
            sys.exit(f"storm: needs {tool}")
    with tempfile.TemporaryDirectory() as folder:
        storm = Storm(args, pathlib.Path(folder))
        storm.take()
        return 1 if storm.judge() else 0


if __name__ == "__main__":
    sys.exit(main())
