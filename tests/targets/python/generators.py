# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# quick: all
"""Generators that ask generators, by for, next, send and sum."""
from expect import LONG, pause, tell


def innermost():
    yield 1
    tell(1)
    while True: pause(LONG)


def by_next():
    inner = innermost()
    yield next(inner)
    yield next(inner)


def by_send():
    inner = by_next()
    yield inner.send(None)
    yield inner.send(None)


def by_for():
    for value in by_send():
        yield value


class Method(object):
    def generator(self):
        for value in (value for value in by_for()):
            yield value


def main():
    return sum(value for value in Method().generator())


main()
