# SPDX-License-Identifier: Apache-2.0
# -*- coding: utf-8 -*-
"""Strings, code objects and frames at known addresses, for src/runtimes/python/test-code.c.

Rows, their texts in hex (- for an empty one):

    V VERSION UNICODE-WIDTH TRACED FREE-THREADED TYPE       the interpreter; the address of type(code)
    T ADDRESS TEXT                                          a string, and how it is to be shown
    N ADDRESS                                               something else
    C ADDRESS FIRST-LINE FLAGS ARGCOUNT KWONLY NLOCALS FUNCTION NAME FILE OFFSET:LINE...
    F ADDRESS LINE CODE                                     a frame object that rests where it is
    E
"""
import binascii
import codecs
import dis
import functools
import sys
import warnings

THREE = sys.version_info[0] >= 3
STEP = 2 if sys.version_info >= (3, 6) else 1
KEPT = []
warnings.simplefilter("ignore")

ODD_SOURCE = u"""
def naïve_日本(a, *, b=1):
    class Thing:
        def method(self, *args, **more):
            return [self
                    for x in args]
    return Thing, lambda: (yield)
def 𝒳(): pass
"""


def escaped(error):
    bad = bytearray(error.object[error.start:error.end])
    return u"".join(u"\\x%02x" % byte for byte in bad), error.end


codecs.register_error("escaped", escaped)


def hexed(data):
    return binascii.hexlify(data).decode("ascii") or "-"


def shown(text):
    """As text.h says."""
    if not isinstance(text, type(u"")):
        return text.decode("utf-8", "escaped").replace(u"\0", u"\\x00").encode("utf-8")
    done, units, at = b"", [ord(c) for c in text], 0
    while at < len(units):
        unit = units[at]
        if not THREE and 0xD800 <= unit < 0xDC00 and 0xDC00 <= (units + [0])[at + 1] < 0xE000:  # 2.7 alone has pairs
            unit = 0x10000 + ((unit & 0x3FF) << 10) + (units[at + 1] & 0x3FF)
            at += 1
        if not unit:
            done += b"\\x00"
        elif 0xD800 <= unit < 0xE000:
            done += ("\\u%04x" % unit).encode("ascii")
        else:
            done += ("\\U%08x" % unit).encode("ascii").decode("unicode_escape").encode("utf-8")
        at += 1
    return done


def say(*words):
    print(" ".join(str(word) for word in words))


def codes(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            for inner in codes(constant):
                yield inner


def lines_of(code):
    """OFFSET:LINE of each unit of code; 0 is no line."""
    size = len(code.co_code)
    lines = dict.fromkeys(range(0, size, STEP), code.co_firstlineno)
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            lines.update(dict.fromkeys(range(start, end, STEP), line or 0))
    else:
        for start, line in dis.findlinestarts(code):
            lines.update(dict.fromkeys(range(start, size, STEP), line))
    return ["%d:%d" % (-STEP, code.co_firstlineno)] + ["%d:%d" % pair for pair in sorted(lines.items())]


def tell_code(code):
    KEPT.append(code)
    function = getattr(code, "co_qualname", code.co_name)
    say("C", id(code), code.co_firstlineno, code.co_flags, code.co_argcount, getattr(code, "co_kwonlyargcount", 0),
        code.co_nlocals, hexed(shown(function)), hexed(shown(code.co_name)), hexed(shown(code.co_filename)), *lines_of(code))


def tell_codes():
    with open(__file__, "rb") as file:
        source = file.read()
    for code in codes(compile(source, __file__, "exec")):
        tell_code(code)
    if THREE:
        name = __import__("os").fsdecode(b"/odd \xff;\x1b[1m\n\xc3\xa9.py")
        for code in codes(compile(ODD_SOURCE, name, "exec")):
            tell_code(code)
    else:
        tell_code(compile("a = 1", "/odd \xff;\x1b[1m\n\xc3\xa9.py", "exec"))
    tell_code(compile("\n" * 70000 + "a = 1\n" * 3, "<string>", "exec"))


class Text(type(u"")):
    pass


def unready(text):
    """A string of kind 0: what PyUnicode_FromUnicode() makes of no text."""
    import ctypes  # which is broken in builds of 3.5 of today
    api = ctypes.pythonapi
    api.PyUnicode_FromUnicode.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t]
    api.PyUnicode_FromUnicode.restype = ctypes.py_object
    api.PyUnicode_AsUnicode.argtypes = [ctypes.py_object]
    api.PyUnicode_AsUnicode.restype = ctypes.c_void_p
    made = api.PyUnicode_FromUnicode(None, len(text))
    data = text.encode("utf-32-le")
    ctypes.memmove(api.PyUnicode_AsUnicode(made), data, len(data))
    return made


def tell_text(text, meant=None):
    KEPT.append(text)
    say("T", id(text), hexed(shown(text if meant is None else meant)))


def tell_texts():
    texts = ["", "plain", "x" * 900, u"\xe9t\xe9", u"日本", u"日" * 300, u"a\0b", u"\ud800 alone", Text(u"plain"), Text(u"日本"),
             b"\xf0\x9d\x92\xb3".decode("utf-8"), Text(b"\xf0\x9d\x92\xb3".decode("utf-8"))]
    if not THREE:
        texts += ["\xff\xfe", "\xe6\x97\xa5\xe6\x9c\xac", "a\0b", "\xe6\x97", type("Bytes", (str,), {})("plain")]
    for text in texts:
        tell_text(text)
    if (3, 6) <= sys.version_info < (3, 12):
        tell_text(unready(u"日本 kind 0"), u"日本 kind 0")
    for other in [None, 7, 7.5, [], {}, type, tell_text] + ([b"bytes"] if THREE else []):
        KEPT.append(other)
        say("N", id(other))


def tell_frame(frame):
    KEPT.append(frame)
    say("F", id(frame), frame.f_lineno or 0, id(frame.f_code))


def generate():
    yield 1
    yield (
        2)


def tell_frames():
    begun, other, fresh = generate(), generate(), generate()
    next(begun)
    next(other)
    next(other)
    KEPT.extend([begun, other, fresh])
    for generator in (begun, other, fresh):
        tell_frame(generator.gi_frame)
    frame = sys._getframe(1)
    while frame:
        tell_frame(frame)
        frame = frame.f_back


def rest(*ignored):
    tell_frames(); say("E"); sys.stdout.flush(); sys.stdin.read()


class Manager(object):
    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        rest()

    def __getattr__(self, name):
        with self:
            pass


def recurse(depth):
    if depth:
        return recurse(
            depth - 1)
    [Manager().anything
     for _ in "1"]


def main():
    free = False
    if sys.version_info >= (3, 13):
        free = bool(__import__("sysconfig").get_config_var("Py_GIL_DISABLED"))
    say("V", sys.version_info[0] << 8 | sys.version_info[1], 0 if THREE else 2 if sys.maxunicode == 0xFFFF else 4,
        int(hasattr(sys, "getobjects")), int(free), id(type(main.__code__)))
    tell_texts()
    tell_codes()
    functools.reduce(lambda a, b: (
        recurse(b)), [1, 5])


main()
