# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# quick: all
"""Threads that run, sleep, and wait for locks, conditions and queues; the main thread joins one of them."""
import threading
import time

try:
    import queue
except ImportError:
    import Queue as queue

import expect
from expect import LONG, pause, tell

lock = threading.Lock()
condition = threading.Condition()
never = queue.Queue()
tids = {}


def known(function):
    def run():
        tids[threading.current_thread().name] = expect.native_id()
        function()
    return run


def spins():
    deeper(20)


def deeper(depth):
    if depth:
        deeper(depth - 1)
    tell(1)
    while True: pause(LONG)


def sleeps():
    tell(1)
    while True: time.sleep(1000)


def waits_for_lock():
    with lock:
        pass


def waits_for_condition():
    with condition:
        condition.wait()


def waits_for_queue():
    never.get()


def starts():
    lock.acquire()
    waiting = [threading.Thread(target=known(waits_for_lock), name="waits for a lock"),
               threading.Thread(target=known(waits_for_condition), name="waits for a condition \u2615 \u00fc"),
               threading.Thread(target=known(waits_for_queue), name="waits for a queue; or\nnot")]
    telling = [threading.Thread(target=spins), threading.Thread(target=sleeps, name="x" * 300)]
    expect.threads(len(waiting) + len(telling) + 1)
    main = threading.current_thread()
    tids[main.name] = expect.native_id()
    observer = threading.Thread(target=observe, args=(waiting, main, telling), name="observer")
    for thread in waiting + telling + [observer]:
        thread.daemon = True
        thread.start()
    telling[0].join()


def observe(waiting, main, telling):
    while len(tids) < len(waiting) + 1:
        time.sleep(0.01)
    for thread in waiting + [main]:
        expect.tell_for(thread, tids[thread.name])


starts()
