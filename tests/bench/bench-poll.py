#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the poll capture costs, beside py-spy, which works alike: bench-poll.py CAIRN [--quick]

A fixed amount of Python work in a process of 1 and of 50 threads, of which the others wait: how much longer it takes
while it is profiled at 99 Hz, and what the profiler itself uses of a CPU. Time in which the work was ready and waited for
a CPU does not count. py-spy comes from PyPI into a folder of the bench's own. Needs root for the rows with bpf alone.
"""
import argparse
import importlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import session

python = importlib.import_module("bench-python")

HERE = pathlib.Path(__file__).resolve().parent
RATE = 99
THREADS = (1, 50)
WARM_SECONDS = 2.0
LOAD = """
import sys, threading
sys.path.insert(0, %r)
import python_work
event = threading.Event()
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=python_work.wait_deep, args=(10, event), daemon=True).start()
python_work.work("objects", int(sys.argv[2]))
""" % str(HERE)


def tools(args, peers, out):
    """{name: words before the process id; None: no profiler}"""
    cairn = [str(args.cairn), "record", "-q", "-F", str(RATE), "-o", str(out / "x.folded")]
    found = {"(no profiler)": None, "cairn --capture poll": [*cairn, "--capture", "poll", "-p"],
             "cairn --capture poll -m wall": [*cairn, "--capture", "poll", "-m", "wall", "-p"]}
    if not os.geteuid():
        found["cairn --capture bpf"] = [*cairn, "--capture", "bpf", "-p"]
    if "py-spy" in peers:
        spy = [peers["py-spy"], "record", "-r", str(RATE), "-f", "raw", "-d", "600", "-o", str(out / "x.raw"), "-p"]
        found["py-spy record"] = spy
        found["py-spy record --idle"] = [*spy[:-1], "--idle", "-p"]
        found["py-spy record --nonblocking"] = [*spy[:-1], "--nonblocking", "-p"]
        found["py-spy record --native"] = [*spy[:-1], "--native", "-p"]
    return found


def start_load(args, threads, rounds):
    words = [args.python, "-c", LOAD, str(threads), str(rounds)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=session.clean_environment())
    assert child.stdout.readline() == "ready\n"
    return child


def run(args, threads, rounds, words):
    """Seconds that the work took, and the share of a CPU that the profiler used meanwhile."""
    load = start_load(args, threads, rounds)
    profiler = python.start([*words, load.pid], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL) if words else None
    try:
        if profiler:
            time.sleep(WARM_SECONDS)
            assert profiler.poll() is None, f"{words}: ended with status {profiler.returncode}"
        used = session.cpu_ns(profiler.pid) if profiler else 0
        begin = time.monotonic()
        load.stdin.write("\n")
        load.stdin.flush()
        seconds, waited = map(float, load.stdout.readline().split())
        took = time.monotonic() - begin
        used = session.cpu_ns(profiler.pid) - used if profiler else 0
    finally:
        if profiler:
            python.stop(profiler)
        load.kill()
        load.wait()
    return seconds - waited, 100 * used / 1e9 / took


def calibrate(args):
    """Rounds of some two seconds, or one."""
    took, _ = run(args, 1, 20, None)
    return max(1, int(20 * (1 if args.quick else 2) / took))


def bench(args, peers, out):
    rounds, found = calibrate(args), {}
    named = tools(args, peers, out)
    for threads in THREADS:
        for _ in range(2 if args.quick else 5):
            for name, words in named.items():
                found.setdefault((threads, name), []).append(run(args, threads, rounds, words))
    for threads in THREADS:
        alone = [took for took, _ in found[threads, "(no profiler)"]]
        base = statistics.median(alone)
        print(f"\n{threads} thread{'s, of which one works' if threads > 1 else ''}: {base:.2f} s of work, "
              f"standard deviation {100 * statistics.stdev(alone) / base:.1f} %; {RATE} Hz")
        for name in named:
            took = statistics.median(one for one, _ in found[threads, name])
            used = statistics.median(share for _, share in found[threads, name])
            print(f"  {name:<32} {100 * (took / base - 1):+6.1f} % longer   {used:6.2f} % of a CPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("cairn", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, and less exact")
    parser.add_argument("--peers", default="build/bench-peers", help="folder with py-spy, made if it is missing")
    parser.add_argument("--python", default=python.default_python())
    args = parser.parse_args()
    peers = python.install_peers(args.peers)
    with tempfile.TemporaryDirectory() as folder:
        bench(args, peers, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
