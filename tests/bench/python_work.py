# SPDX-License-Identifier: Apache-2.0
"""A fixed amount of work, or a known stack, for bench-python:

python_work.py work NAME ROUNDS       waits for a line on standard input, works, prints seconds: all of them, and those in
                                      which it waited for a CPU
python_work.py depth COUNT            spins COUNT functions deep
python_work.py threads COUNT FILE     COUNT threads wait, one more notes the longest gap in its time in FILE
"""
import json
import mmap
import os
import re
import struct
import sys
import threading
import time


# --- work: method calls and small objects, C code with Python around it, C code alone

class Task(object):
    def __init__(self, number, priority):
        self.number, self.priority, self.waiting, self.handled = number, priority, [], 0

    def add(self, packet):
        self.waiting.append(packet)
        return self.priority

    def run(self, scheduler):
        self.handled += 1
        while self.waiting:
            scheduler.send(self, self.waiting.pop())


class Device(Task):
    def run(self, scheduler):
        self.handled += 1
        if self.waiting:
            scheduler.send(self, self.waiting.pop() + 1)


class Scheduler(object):
    def __init__(self, count):
        self.tasks = [(Device if number % 3 else Task)(number, number % 7) for number in range(count)]
        self.left = 0

    def send(self, source, packet):
        if self.left:
            self.left -= 1
            self.choose(source, packet).add(packet)

    def choose(self, source, packet):
        return self.tasks[(source.number * 31 + packet) % len(self.tasks)]

    def run(self, packets):
        self.left = packets
        for task in self.tasks:
            task.add(task.number)
        while self.left and any(task.waiting for task in self.tasks):
            for task in sorted(self.tasks, key=lambda task: task.priority):
                task.run(self)


def objects():
    Scheduler(50).run(15000)


DOCUMENT = {"rows": [{"id": n, "name": "row %d" % n, "tags": ["a", "b", str(n)], "value": n / 3} for n in range(200)]}


def documents():
    for _ in range(15):
        json.loads(json.dumps(DOCUMENT, indent=1))


TEXT = " ".join("user%d@host%d.example wrote %d bytes at 10.0.%d.%d" % (n, n % 7, n * 31, n % 256, n % 13)
                for n in range(500))
ADDRESS = re.compile(r"(\w+)@([\w.]+)")
NUMBERS = re.compile(r"\b(?:(\d{1,3})\.){3}\d{1,3}\b|\b\d+\b")


def texts():
    for _ in range(15):
        ADDRESS.sub(lambda match: match.group(2) + "/" + match.group(1), TEXT)
        NUMBERS.findall(TEXT)


WORK = {"objects": objects, "documents": documents, "texts": texts}


def waited_ns():
    """How long this thread was ready to run and did not: the second number of schedstat."""
    with open("/proc/thread-self/schedstat") as file:
        return int(file.read().split()[1])


def work(name, rounds):
    function = WORK[name]
    function()
    print("ready", flush=True)
    sys.stdin.readline()
    begin, waited = time.perf_counter(), waited_ns()
    for _ in range(rounds):
        function()
    print(time.perf_counter() - begin, (waited_ns() - waited) / 1e9, flush=True)


# --- a known stack

def descend(depth):
    if depth > 1:
        return descend(depth - 1)
    while True:
        pass


# --- threads

def wait_deep(depth, event):
    if depth:
        return wait_deep(depth - 1, event)
    event.wait()


def note_gaps(path):
    """Whoever stops this thread leaves a gap in its time, less what it was ready to run and waited for a CPU. The file is one
    number in ns; writing 0 begins anew."""
    with open(path, "r+b") as file:
        longest = mmap.mmap(file.fileno(), 8)
    statistics = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    last, waited_last = time.monotonic_ns(), 0
    while True:
        now, waited = time.monotonic_ns(), int(os.pread(statistics, 100, 0).split()[1])
        gap = now - last - (waited - waited_last)
        if gap > struct.unpack_from("Q", longest)[0]:
            struct.pack_into("Q", longest, 0, gap)
        last, waited_last = now, waited


def threads(count, path):
    threading.stack_size(256 * 1024)
    event = threading.Event()
    for _ in range(count - 1):
        threading.Thread(target=wait_deep, args=(10, event), daemon=True).start()
    time.sleep(0.5)
    print("ready", flush=True)
    note_gaps(path)


def main():
    kind, *words = sys.argv[1:]
    if kind == "work":
        work(words[0], int(words[1]))
    elif kind == "depth":
        descend(int(words[0]) - 2)  # the module and this function
    else:
        threads(int(words[0]), words[1])


if __name__ == "__main__":
    main()
