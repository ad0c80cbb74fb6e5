# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# quick: 3.12 3.14
"""A profile function and a trace function, which the evaluator calls around other code."""
import sys

from expect import LONG, pause, tell


def profiled():
    return 1


def profile(frame, event, argument):
    sys.setprofile(None)
    tell(1)
    while True: pause(LONG)


def trace(frame, event, argument):
    sys.settrace(None)
    sys.setprofile(profile)
    profiled()


def main():
    sys.settrace(trace)
    profiled()


main()
