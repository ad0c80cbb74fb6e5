# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# quick: 2.7 3.12
"""Every kind of code object calls the next: functions, methods, lambda, exec, eval, comprehensions, class bodies."""
from expect import LONG, pause, tell


def rest():
    tell(1)
    while True: pause(LONG)


def comprehension():
    return {key: [rest() for _ in range(1)] for key in [1]}


def set_comprehension():
    return {comprehension() for _ in range(1)}


def decorate(function):
    set_comprehension()
    return function


def decorated_class():
    class Body(object):
        class Inside(object):
            @decorate
            def method(self):
                return self
    return Body


def run_source():
    exec("def from_source():\n    # the line below is the third\n    decorated_class()\nfrom_source()\n", globals())


def evaluate():
    eval("run_source() or 1")


many_lines = lambda value: (
    value,
    evaluate(),
)


class Outer(object):
    class Inner(object):
        def method(self):
            def nested(*args, **kwargs):
                many_lines(kwargs)
            nested(1, 2, 3, four=4)

        @classmethod
        def of_class(cls):
            cls().method()

        @staticmethod
        def of_none():
            Outer.Inner.of_class()


if True:
    Outer.Inner.of_none()
