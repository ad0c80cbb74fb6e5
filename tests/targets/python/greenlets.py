# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# imports: greenlet
"""Greenlets: the current one runs on a stack of its own, and others wait in switch()."""
import greenlet

from expect import LONG, pause, tell


def inner():
    waiting.switch()
    tell(1)
    while True: pause(LONG)


def outer():
    deeper(5)


def deeper(depth):
    if depth:
        return deeper(depth - 1)
    inner()


def waits():
    current.switch()


current = greenlet.greenlet(outer)
waiting = greenlet.greenlet(waits)
current.switch()
