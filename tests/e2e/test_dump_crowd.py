# SPDX-License-Identifier: Apache-2.0
"""200 threads that wait or run, some with signals pouring in, do not notice that they are looked at."""
import collections
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import pytest

TARGET = pathlib.Path(__file__).resolve().parents[1] / "targets/crowd.c"
CROWD = {"futex": 48, "epoll": 48, "sleep": 48, "read": 48, "spin": 7, "crowd": 1}
CALLS = {"futex": "futex 0x", "epoll": "epoll_wait on ", "sleep": "nanosleep", "read": "read from "}
DUMPS = 5


@pytest.fixture
def crowd(tmp_path):
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    path = tmp_path / "crowd"
    subprocess.run(["cc", "-g", "-O2", "-o", str(path), str(TARGET), "-pthread"], check=True)
    # The threads that run leave a CPU to others.
    process = subprocess.Popen(["nice", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


class Watch(threading.Thread):
    """Queues signals for a process, and notes names of its threads that were seen stopped."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.sent, self.stopped, self.ends = pid, 0, set(), False

    def run(self):
        queue = ctypes.CDLL(None, use_errno=True).sigqueue
        queue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
        while not self.ends:
            self.sent += queue(self.pid, signal.SIGRTMIN, None) == 0
            self.look()
            time.sleep(0.0005)

    def look(self):
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{tid}/stat", encoding="ascii") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            if rest.split()[0] in "tT":
                self.stopped.add(name)


@pytest.mark.parametrize("options", [[], ["--nonblocking"]])
def test_a_crowd_notices_nothing(cairn, crowd, options):
    watch = Watch(crowd.pid)
    watch.start()
    try:
        results = [cairn.run("dump", crowd.pid, "-j", "--no-lines", *options) for _ in range(DUMPS)]
    finally:
        watch.ends = True
        watch.join()
    for result in results:
        assert result.returncode == 0, result.stderr
        threads = json.loads(result.stdout)["threads"]
        assert collections.Counter(thread["name"] for thread in threads) == CROWD
        for thread in threads:
            if thread["name"] in CALLS:
                assert thread["waits_in"] and CALLS[thread["name"]] in thread["waits_in"], thread
                assert thread["end"] == "root" and not thread["stopped_us"], thread
            elif options:
                assert not thread["stopped_us"], thread
    assert watch.stopped <= (set() if options else {"spin"})
    answer, _ = crowd.communicate(timeout=30)
    interrupted, signals = map(int, answer.split())
    assert interrupted == 0
    assert signals == watch.sent > 0
