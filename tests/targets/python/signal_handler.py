# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# quick: 3.12
"""A handler of a signal that came in the middle of a function, and one that came in the middle of that."""
import os
import signal
import sys

from expect import LONG, pause, tell


def second(number, frame):
    tell(1)
    while True: pause(LONG)


def first(number, frame):
    if sys.version_info < (3, 8):
        second(number, frame)  # handlers are not interrupted by others there
    os.kill(os.getpid(), signal.SIGUSR2)
    while True: pass


def main():
    signal.signal(signal.SIGUSR1, first)
    signal.signal(signal.SIGUSR2, second)
    os.kill(os.getpid(), signal.SIGUSR1)
    while True: pass


main()
