# SPDX-License-Identifier: Apache-2.0
"""A program that damages its own interpreter, CPython 3.11 to 3.14, and then stays: hostile.py DAMAGE SPINS [LIBRARY].

LIBRARY is hostile.c as a library. Nothing that was damaged is used by the interpreter again.
"""
import ctypes
import sys

# Of struct _PyInterpreterFrame: previous, and the code object (pycore_frame.h, 3.14: pycore_interpframe_structs.h).
PREVIOUS = {11: 48}.get(sys.version_info[1], 8)
CODE = {11: 32}.get(sys.version_info[1], 0)
FRAME = 24  # f_frame of PyFrameObject

damage, spins, library = sys.argv[1], sys.argv[2] == "spin", sys.argv[3:]
libc = ctypes.CDLL(None)
TEXT = "wide \u2603 \x1b[31m\x1b]0;title\x07\x9b1m\nline\u202e\ud800 " * 3


def word(address):
    return ctypes.c_uint64.from_address(address)


def frames():
    """Addresses of the frames of this thread, the caller's first."""
    found, frame = [], sys._getframe(1)
    while frame:
        found.append(word(id(frame) + FRAME).value)
        frame = frame.f_back
    return found


def stay():
    print("ready", flush=True)
    while spins:
        abs(1)
    libc.pause()


def damaged(kind):
    # Those of stay() and of this function may come back here.
    outer = frames()[2:]
    inner, last = outer[0], outer[-1]
    if kind == "itself":
        word(inner + PREVIOUS).value = inner
    elif kind == "circle":
        word(last + PREVIOUS).value = inner
    elif kind == "wild":
        word(inner + PREVIOUS).value = 0x4141414141414141
    elif kind == "odd":
        word(inner + PREVIOUS).value = inner + 3
    elif kind == "no-code":
        word(inner + CODE).value = 8
    elif kind == "text-for-code":
        word(inner + CODE).value = id(TEXT)
    elif kind == "changing":
        flipping = ctypes.CDLL(library[0])
        for one in outer:
            flipping.flip(ctypes.c_uint64(one + PREVIOUS))
            flipping.flip(ctypes.c_uint64(one + CODE))
        for value in (0, inner, last, id(TEXT), inner + 4, 0x4141414141414141, 2 ** 64 - 8):
            flipping.flip_to(ctypes.c_uint64(value))
        flipping.flip_for_ever()
    stay()


def deeper(depth, kind):
    return deeper(depth - 1, kind) if depth else damaged(kind)


def with_names(kind):
    """Names that are not meant for terminals, or are 100 MB long; values, too."""
    text = "A" * 100000000 if kind == "long" else TEXT
    nested = []
    for _ in range(100000):
        nested = [nested]
    many = [0] * 1000000

    def function():
        value, deep, wide, table = text, nested, many, {text: text}
        stay()

    name = {"co_name": text, "co_qualname": text, "co_filename": text}
    function.__code__ = function.__code__.replace(**name)
    function()


if damage in ("long", "escapes"):
    with_names(damage)
else:
    deeper(12, damage)
