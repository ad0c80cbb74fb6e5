# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# quick: all
"""A function 500 deep in itself, partly through C code."""
import sys

from expect import LONG, pause, tell

sys.setrecursionlimit(3000)


def descend(depth):
    if depth % 100 == 50:
        return list(map(descend, [depth - 1]))
    if depth:
        return descend(depth - 1)
    tell(1)
    while True: pause(LONG)


descend(500)
