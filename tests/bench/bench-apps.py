#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real applications of Python under load: bench-apps.py CAIRN [--quick] [--only NAME,...] [--python PYTHON] [--verbose]

Each application of python_apps.py is recorded at 99 Hz: how many samples are whole, with frames of Python and machine code
in the right order. Then it is frozen again and again, and cairn's dump is compared with that of `py-spy dump --native`, stack
for stack. docs/benchmarks.md says what is counted. Status 1: an application misses its share, or a difference that nobody has
explained. Needs root.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import app_stacks
import python_apps
import session

HZ = 99
WHOLE_PERCENT = 99.0
FREEZE_SECONDS = 5


class Freezer:
    """A control group of version 2 that holds processes still while others look at them. SIGSTOP would not do: py-spy refuses
    a process that it stopped."""

    def __init__(self, pids):
        mounts = (line.split() for line in session.read_text("/proc/mounts").split("\n"))
        root = next((words[1] for words in mounts if words[2:3] == ["cgroup2"]), None)
        if not root:
            raise RuntimeError("processes are frozen by cgroup v2, which is not mounted")
        self.folder = pathlib.Path(root) / f"cairn-bench-{os.getpid()}"
        self.folder.mkdir()
        for pid in pids:
            (self.folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def set(self, frozen):
        (self.folder / "cgroup.freeze").write_text(str(int(frozen)), encoding="ascii")
        deadline = time.monotonic() + FREEZE_SECONDS
        while f"frozen {int(frozen)}" not in session.read_text(self.folder / "cgroup.events"):
            if time.monotonic() > deadline:
                raise RuntimeError("a process does not freeze")
            time.sleep(0.002)

    def __enter__(self):
        self.set(True)

    def __exit__(self, *_):
        self.set(False)

    def remove(self):
        """The processes in it have ended, or end this moment."""
        deadline = time.monotonic() + FREEZE_SECONDS
        while self.folder.exists() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
            time.sleep(0.05)


def run(words, patience=60):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=patience, check=False, env=session.clean_environment())
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def record(bench, pids):
    """A Tally of samples."""
    output = bench.folder / "app.html"
    run([bench.cairn, "record", "-p", ",".join(map(str, pids)), "-F", HZ, "-d", bench.seconds, "--native", "-o", output],
        patience=bench.seconds + 120)
    return app_stacks.tally_samples(app_stacks.read_page(output))


def compare(bench, pids, freezer):
    """Counter of how cairn's stacks and py-spy's differ, and an example of each kind."""
    found, examples = collections.Counter(), {}
    for turn in range(bench.freezes):
        time.sleep(0.02 + 0.013 * (turn % 7))
        pid = pids[turn % len(pids)]
        with freezer:
            ours = json.loads(run([bench.cairn, "dump", pid, "-j", "--no-lines"]))
            theirs = json.loads(run([bench.pyspy, "dump", "-p", pid, "--native", "-j"]))
        for kind, example in app_stacks.compare(ours, theirs):
            found[kind] += 1
            examples.setdefault(kind, example)
    return found, examples


class Bench:
    def __init__(self, args, folder):
        self.cairn, self.python = args.cairn.resolve(), args.python
        self.seconds, self.freezes = (3, 5) if args.quick else (10, 40)
        self.folder, self.verbose = pathlib.Path(folder), args.verbose
        self.apps = pathlib.Path(args.apps).resolve()
        self.pyspy = None
        self.failed = []

    def app(self, app):
        freezer = None
        try:
            with python_apps.Running(self.apps, app, self.folder) as running:
                freezer = Freezer(running.pids)
                tally = record(self, running.pids)
                differences, examples = compare(self, running.pids, freezer)
        finally:
            if freezer:
                freezer.remove()
        right = 100 * tally.right / tally.samples if tally.samples else 0
        print(f"{app.name:<16} {tally.samples:>7} {percent(right):>8} {percent(100 * tally.mixed / max(1, tally.samples)):>8} "
              f"{tally.depth:>6}  {sum(differences.values()):>6} {differences['equal']:>6}", flush=True)
        self.judge(app, tally, right, differences)
        for reason, (count, stack) in tally.wrong.items():
            print(f"    {count} samples: {reason}")
            if self.verbose:
                print("".join(f"        {frame}\n" for frame in stack), end="")
        for kind, count in sorted(differences.items()):
            if kind != "equal":
                reason = app_stacks.EXPLAINED.get(kind)
                print(f"    {count} stacks of frozen threads: {kind}" + (f" ({reason})" if reason else ""))
                if self.verbose:
                    print("\n".join(f"        {line}" for line in examples[kind]))

    def judge(self, app, tally, right, differences):
        if tally.samples < 5 * self.seconds:
            self.failed.append(f"{app.name}: only {tally.samples} samples: it was not busy")
        if right < WHOLE_PERCENT:
            self.failed.append(f"{app.name}: {percent(right)} % of the samples are whole and in order")
        for kind in differences:
            if kind not in app_stacks.EXPLAINED and kind != "equal":
                self.failed.append(f"{app.name}: {kind}")


def percent(number):
    """Cut off, not rounded: 100.0 means all."""
    return f"{int(number * 10) / 10:.1f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="short runs: to see that it works, not to quote")
    parser.add_argument("--only", default=",".join(app.name for app in python_apps.APPS))
    parser.add_argument("--python", default="/usr/bin/python3", help="the interpreter that runs them")
    parser.add_argument("--apps", default="build/bench-apps", help="where they are installed")
    parser.add_argument("--verbose", action="store_true", help="show a stack of each kind")
    args = parser.parse_args()
    if os.geteuid():
        sys.exit("bench-apps: needs root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # nothing is left behind, and nothing frozen
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        bench.pyspy = python_apps.install(args.python, bench.apps)
        print(f"{os.uname().release}, {os.cpu_count()} CPUs, {run([bench.apps / 'bin/python', '--version']).strip()}, "
              f"{run([bench.pyspy, '--version']).strip()}" + (", short runs" if args.quick else ""))
        print(f"{bench.seconds} s at {HZ} Hz; then {bench.freezes} looks at the frozen process\n")
        print(f"{'application':<16} {'samples':>7} {'right %':>8} {'mixed %':>8} {'frames':>6}  {'frozen':>6} {'equal':>6}")
        for app in python_apps.APPS:
            if app.name in args.only.split(","):
                bench.app(app)
    print("\n" + ("\n".join(["missed:", *bench.failed]) if bench.failed else "every application has its share"))
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
