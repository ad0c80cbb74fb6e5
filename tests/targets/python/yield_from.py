# SPDX-License-Identifier: Apache-2.0
# needs: 3.5
# quick: 3.10
"""Generators that delegate, thirty deep."""
from expect import LONG, pause, tell


def innermost():
    yield 1
    tell(1)
    while True: pause(LONG)


def delegate(depth):
    if depth:
        yield from delegate(depth - 1)
    else:
        result = yield from innermost()
        return result


def main():
    for _ in delegate(30):
        pass


main()
