#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of lines and what their interpreter says of them, for python-lines.txt.

    for python in python2.7 python3.6 ...; do $python python-lines.py; done > python-lines.txt

A row is VERSION NAME FIRST-LINE SIZE TABLE, the table in hex (- for an empty one) and SIZE the bytes of code, then
OFFSET:LINE wherever the line changes from one unit of code to the next; - is no line. What is true comes from
PyCode_Addr2Line(), which f_lineno and tracebacks ask as well; offset -1 is a frame that has not begun.
"""
import binascii
import ctypes
import sys

SOURCE = """
def plain(a, b=2):
    c = a + b
    if c:
        return [
            c,
            a,
            b]
    return c

def far(a):
    a()
{blank_200}
    a(1)
{blank_600}
    return a(2)

def back(a):
    for i in a:
        try:
            a(i,
              b=[a
                 for a in i],
              c=lambda x:
                  x)
        except ValueError as e:
            print(e)
        finally:
            a()
    while a:
        with a as b:
            if b: continue
            yield b
            break

def long_line(a):
    a = [{calls}]; a = a; \\
        a(2)
    return {{
        'k': a(1)}}

class Thing(object):
    @staticmethod
    def method(a):

        def inner(b):
            return a, b
        return inner
"""
SOURCE = SOURCE.format(blank_200="\n" * 200, blank_600="\n" * 600, calls=", ".join(["a(1, a.b.c)"] * 24))
NEW_SOURCE = """
async def waits(a):
    async with a as b:
        await b(
            f"{a} {
            b}" if MANY else f"{a}")
    async for c in b:
        match c:
            case 1: yield c
            case {"x": [y, *_]} if y:
                await y
            case _:
                raise ValueError(
                    c)
"""
if sys.version_info < (3, 12):
    NEW_SOURCE = NEW_SOURCE.replace(' {\n            b}', "")


def codes(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            for inner in codes(constant):
                yield inner


def line_at(code, offset):
    ask = ctypes.pythonapi.PyCode_Addr2Line
    ask.argtypes = [ctypes.py_object, ctypes.c_int]
    return ask(code, offset)


def says(code):
    """What co_lines() has for each unit, to hold against the other answer."""
    lines = {}
    for start, end, line in code.co_lines():
        for offset in range(start, end, 2):
            lines[offset] = line
    return lines


def row(code):
    table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    size, step = len(code.co_code), 2 if sys.version_info >= (3, 6) else 1
    offsets = [-1] + list(range(0, size, step))
    lines = [line_at(code, offset) for offset in offsets]
    if hasattr(code, "co_lines"):
        known = says(code)
        assert all((known[o] if known[o] is not None else -1) == l for o, l in zip(offsets[1:], lines[1:]))
    words = ["%d.%d" % sys.version_info[:2], getattr(code, "co_qualname", code.co_name), str(code.co_firstlineno), str(size),
             binascii.hexlify(table).decode("ascii") or "-"]
    last = object()
    for offset, line in zip(offsets, lines):
        if line != last:
            words.append("%d:%s" % (offset, "-" if line == -1 else line))
        last = line
    return " ".join(words)


def main():
    sources = [SOURCE] + ([NEW_SOURCE] if sys.version_info >= (3, 10) else [])
    for source in sources:
        for code in codes(compile(source, "source.py", "exec")):
            print(row(code))


main()
