# SPDX-License-Identifier: Apache-2.0
"""What is in the snapshots: three threads of a program in any CPython from 2.7 on, that stay where they said they do.

make.py runs it beside ../targets/python/expect.py.
"""
import threading

import expect
from expect import LONG, pause, tell

never = threading.Condition()
tids = []


class Point(object):
    kind = "class"

    def __init__(self):
        self.x, self.name = 1, u"caf\u00e9"

    def __eq__(self, other):
        return rest(other, more=self)


def rest(value, *args, **more):
    number, big, real, nothing, text = -7, 2 ** 100, 0.5, None, u"tea \u2615"
    items = [1, b"two", (3.0, None), {"four": 4}, frozenset([5])]
    tell(1)
    while True: pause(LONG)


def generator(values):
    point = Point()
    for value in values:
        yield [point].index(value)


def deeper(depth):
    if depth:
        return deeper(depth - 1)
    return list(generator(iter([u"\U0001f3d4", "second"])))


def closure(bound):
    def inner(start=3):
        return bound, deeper(start)
    return inner


def waits():
    tids.append(expect.native_id())
    with never:
        never.wait()


def works():
    sorted([2, 1], key=lambda each: closure("kept")(each))


def main():
    expect.threads(3)
    waiting = threading.Thread(target=waits, name="waits")
    working = threading.Thread(target=works, name="works")
    for thread in waiting, working:
        thread.daemon = True
        thread.start()
    while not tids:
        pause(0.01)
    expect.tell_for(waiting, tids[0])
    closure(waiting)()


main()
