#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many stacks are whole: bench-whole.py CAIRN [--seconds N] [--only NAME,...] [--no-perf] [--json FILE] [--markdown]

Runs each load of whole_loads.py and records the whole machine with cairn, then with perf by frame pointers, then with
perf by DWARF, while the load goes on. Status 1: a load misses its share of whole stacks. docs/benchmarks.md says what
the columns mean.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import whole_loads
import whole_report
import whole_stacks

HZ = 99
WARM_SECONDS = 1.0
LOOK_SECONDS = 0.25
PERF_SECONDS = 600
PERF_TRIES = 2
SKIP_STATUS = 77


class Running:
    """A load that is started again whenever it ends, until the end of the with block."""

    def __init__(self, load, work):
        self.command, self.load, self.work = load.command(work), load, work
        self.comms = set(load.comms)
        self.stopping = threading.Event()
        self.process = self.failure = None
        self.thread = threading.Thread(target=self.repeat)

    def start(self):
        self.process = subprocess.Popen(self.command, cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)

    def repeat(self):
        while not self.stopping.is_set():
            self.start()
            while self.process.poll() is None and not self.stopping.wait(LOOK_SECONDS):
                self.look()
            if self.process.returncode:
                self.failure = f"{self.command[0]} ended with status {self.process.returncode}"
                return

    def look(self):
        """Threads that named themselves are found while they run."""
        if not self.load.own_threads:
            return
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/comm"):
            try:
                self.comms.add(task.read_text(encoding="utf-8", errors="replace").rstrip("\n"))
            except OSError:
                pass  # the thread has ended meanwhile

    def __enter__(self):
        self.thread.start()
        time.sleep(WARM_SECONDS)
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def forks():
    return int(re.search(r"^processes (\d+)", pathlib.Path("/proc/stat").read_text(encoding="ascii"), re.M).group(1))


def record_cairn(args, work, running):
    out = work / "cairn.folded"
    before = forks()
    done = subprocess.run([args.cairn, "record", "-a", "-F", str(HZ), "-d", str(args.seconds), "-o", str(out)],
                          capture_output=True, text=True, check=False,
                          env={k: v for k, v in os.environ.items() if not k.startswith("CAIRN")})
    if done.returncode:
        raise RuntimeError(f"cairn record: {done.stderr.strip()}")
    stacks = whole_stacks.read_folded(out, running.comms)
    tally = whole_stacks.tally_cairn(stacks, running.load.allowed_cut)
    notes = [line.strip() for line in done.stderr.splitlines() if line.startswith("cairn:")]
    lost = re.search(r"(\d+) lost", done.stdout + done.stderr)
    if lost and int(lost.group(1)):
        notes.append(f"{lost.group(1)} samples of the machine lost")
    if not running.load.own_threads:
        notes.append(f"{(forks() - before) / args.seconds:.0f} processes and threads started a second, on the whole machine")
    return tally, notes


class PerfFailed(Exception):
    """perf did not do it; cairn's figures stand without it."""


def perf(arguments):
    """perf 6.1 was seen to die of an assertion of its own now and then; a second try tells whether it is for good."""
    for _ in range(PERF_TRIES):
        done = subprocess.run(["perf", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=PERF_SECONDS, check=False)
        if not done.returncode:
            return done.stdout
    last = (done.stderr.strip().splitlines() or [""])[-1]
    raise PerfFailed(f"perf {arguments[0]} ended with status {done.returncode}: {last}")


def record_perf(args, work, running, how):
    data = work / f"perf-{how}.data"
    perf(["record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-a", "--call-graph", how, "-o", str(data), "--", "sleep",
          str(args.seconds)])
    twin = running.load.names_from
    start = time.monotonic()
    text = perf(["script", "-i", str(data), "--no-inline", "-F", "comm,pid,ip,sym,dso", "--comms",
                 ",".join(sorted(running.comms))])
    seconds = time.monotonic() - start
    stacks = whole_stacks.read_perf(text.splitlines(), running.comms,
                                    whole_stacks.Names(work / twin) if twin else None)
    tally = whole_stacks.tally_perf(stacks)
    tally.update(bytes=data.stat().st_size, seconds=seconds)
    data.unlink()
    return tally


def run_load(args, load, work):
    row = {"load": load.name, "least": load.least}
    try:
        whole_loads.prepare(load, work)
        for twin in whole_loads.LOADS:
            if load.names_from and twin.comms[0] == load.names_from:
                whole_loads.prepare(twin, work)
        with Running(load, work) as running:
            row["cairn"], row["notes"] = record_cairn(args, work, running)
            for how in ("fp", "dwarf") if args.perf else ():
                try:
                    row[how] = record_perf(args, work, running, how)
                except (PerfFailed, subprocess.TimeoutExpired) as failed:
                    row["notes"].append(str(failed))
    except whole_loads.Missing as missing:
        return {"load": load.name, "skipped": f"{missing} is not installed"}
    if running.failure:
        raise RuntimeError(f"{load.name}: {running.failure}")
    return row


def perf_version():
    if not shutil.which("perf"):
        return ""
    return subprocess.run(["perf", "--version"], capture_output=True, text=True, check=False).stdout.strip()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cairn", type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=10, help="of each recording")
    parser.add_argument("--only", default="", help="these loads, by name, with commas between")
    parser.add_argument("--no-perf", dest="perf", action="store_false")
    parser.add_argument("--json", type=pathlib.Path, help="write everything there")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument("--work", type=pathlib.Path, help="folder for what the loads need, kept for the next run")
    parser.add_argument("--verbose", action="store_true", help="show examples of stacks")
    args = parser.parse_args()
    names = [load.name for load in whole_loads.LOADS]
    args.only = [name for name in args.only.split(",") if name] or names
    for name in args.only:
        if name not in names:
            parser.error(f"no load {name!r}; there are: {', '.join(names)}")
    return args


def gather_facts(args):
    return {"cpu": whole_report.cpu_name(), "cpus": len(os.sched_getaffinity(0)), "kernel": os.uname().release,
            "perf": perf_version() if args.perf else "", "seconds": args.seconds, "hz": HZ,
            "load_before": os.getloadavg()[0]}


def show(args, facts, rows):
    if args.json:
        args.json.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(whole_report.circumstances(facts) + "\n")
    print(whole_report.markdown(rows) if args.markdown else whole_report.aligned(rows))
    print()
    whole_report.print_notes(rows)
    whole_report.print_disagreements(rows, args.verbose)
    if args.verbose:
        for row in rows:
            if row.get("cairn", {}).get("examples"):
                print(f"\n{row['load']}:")
                whole_report.print_examples("cut:", row["cairn"]["examples"])
    missed = whole_report.shortfalls(rows, args.seconds)
    whole_report.print_shortfalls(missed)
    return 1 if missed else 0


def main():
    args = parse_arguments()
    if os.geteuid():
        print("bench-whole: skipped, sampling the whole machine needs root")
        return SKIP_STATUS
    facts = gather_facts(args)
    if args.perf and not facts["perf"]:
        print("bench-whole: perf is not installed (package linux-perf); its columns stay empty")
        args.perf = False
    kept = args.work
    work = kept.resolve() if kept else pathlib.Path(tempfile.mkdtemp(prefix="bench-whole-"))
    work.mkdir(parents=True, exist_ok=True)
    rows = []
    try:
        for load in whole_loads.LOADS:
            if load.name in args.only:
                print(f"bench-whole: {load.name}", file=sys.stderr, flush=True)
                rows.append(run_load(args, load, work))
    finally:
        if not kept:
            shutil.rmtree(work, ignore_errors=True)
    return show(args, facts, rows)


if __name__ == "__main__":
    sys.exit(main())
