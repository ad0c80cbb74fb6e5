# SPDX-License-Identifier: Apache-2.0
# -*- coding: utf-8 -*-
"""Objects, frames and threads at known addresses, for src/runtimes/python/test-values.c.

Rows, their texts in hex (- for an empty one):

    V VERSION UNICODE-WIDTH TRACED FREE-THREADED TYPE       the interpreter; the address of type(code)
    L ADDRESS TEXT                      a value, and how it is shown in a line
    M ADDRESS TEXT                      the same with attributes and more of all
    F ADDRESS CODE DEFINITIONS COUNT    a frame object that rests where it is; its variables follow
    v KIND NAME TEXT                    0 argument, 1 local, 2 of a function around it, 3 in a namespace; * any text
    T MODULES COUNT                     sys.modules; the names of threads follow
    t IDENT NAME
    E
"""
import binascii
import collections
import datetime
import functools
import os
import sys
import threading
import types
import warnings
import weakref

THREE = sys.version_info[0] >= 3
KEPT = []
warnings.simplefilter("ignore")


def hexed(text):
    if isinstance(text, type(u"")):
        text = text.encode("utf-8")
    return binascii.hexlify(text).decode("ascii") or "-"


def tell(*words):
    print(" ".join(str(word) for word in words))


def address(thing):
    return "0x%x" % id(thing)


def line(thing, text=None):
    KEPT.append(thing)
    tell("L", id(thing), hexed(repr(thing) if text is None else text))


def more(thing, text):
    KEPT.append(thing)
    tell("M", id(thing), hexed(text))


def head():
    free = False
    if sys.version_info >= (3, 13):
        import sysconfig
        free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    tell("V", sys.version_info[0] << 8 | sys.version_info[1], 0 if THREE else 2 if sys.maxunicode == 0xFFFF else 4,
         int(hasattr(sys, "getobjects")), int(free), id(types.CodeType))


def numbers():
    for number in (0, 1, -1, 7, 255, 256, 257, -6, 2 ** 15, 2 ** 30 - 1, 2 ** 30, -2 ** 30, 2 ** 31, 2 ** 60, 2 ** 62,
                   2 ** 63 - 1, 2 ** 63, -2 ** 63, 2 ** 64, 10 ** 9, 10 ** 18, 10 ** 36, 10 ** 100, -10 ** 100,
                   2 ** 511 + 12345, 2 ** 512 - 1, -2 ** 512 + 1, 123456789012345678901234567890):
        line(number)
    line(2 ** 512, "<int of 513 bits>")
    line(-2 ** 100000, "<negative int of 100001 bits>")
    for number in (True, False, None, Ellipsis, NotImplemented):
        line(number)
    for number in (0.0, -0.0, 1.0, -1.5, 0.1, 1 / 3.0, 1e15, 1e16, 123456789012345680.0, 1e22, 1e23, 1e-4, 1e-5,
                   1.5e-7, 5e-324, 1.7976931348623157e308, 2.5e100, float("inf"), float("-inf"), float("nan"), 100.0,
                   1234.5678, 9007199254740993.0, 0.00012345):
        line(number)
    for number in (0j, 1j, -1j, 1 + 2j, 1 - 2j, -0.0 + 1j, complex(-0.0, 2), complex(1.5, float("nan")),
                   complex(0, -0.0), complex(float("inf"), 1e50)):
        line(number)


def text_of(text):
    """repr() of Python 3, which shows what can be shown: 2.7 escapes it all."""
    return repr(text) if THREE else u"u" + quoted(text)


def quoted(text):
    quote = u'"' if u"'" in text and u'"' not in text else u"'"
    done = u""
    for c in text:
        if c in u"\\" + quote:
            done += u"\\" + c
        elif c in u"\t\n\r":
            done += {u"\t": u"\\t", u"\n": u"\\n", u"\r": u"\\r"}[c]
        elif u" " <= c < u"\x7f" or c > u"\xa0" and c not in u"\xad\u200b\u202e\ue000\ud800":
            done += c
        else:
            done += u"\\x%02x" % ord(c) if ord(c) < 256 else u"\\u%04x" % ord(c)
    return quote + done + quote


def strings():
    for text in (u"", u"a", u"it's", u'say "so"', u"'\"", u"back\\slash", u"tab\tline\nreturn\r", u"\0\x01\x1b[31mred\x7f",
                 u"na\xefve", u"\x80\x9b\xa0\xad", u"\u65e5\u672c\u8a9e", u"\u200b\u202e\ue000", u"\U0001f600 smile",
                 u"x" * 80, u"\u0416" * 80):
        line(text, text_of(text))
    line(u"x" * 81, text_of(u"x" * 80 + u"\u2026") + u" <81 characters>")
    line(u"\U0001f600" * 1000000, text_of(u"\U0001f600" * (80 if sys.maxunicode > 0xFFFF else 40) + u"\u2026") +
         u" <%d characters>" % len(u"\U0001f600" * 1000000))
    if THREE:
        line(u"\ud800 alone")
    for data in (b"", b"abc", b"it's", b'\'"', b"\0\xff\x1b[0m\x80\n", bytes(bytearray(range(32, 112)))):
        line(data)
        line(bytearray(data), "bytearray(%s%r)" % ("" if THREE else "b", data))  # whose own repr() escapes too much
    line(b"y" * 5000, repr(b"y" * 80)[:-1] + u"\u2026' <5000 bytes>")
    emptied = bytearray(b"front and back")
    del emptied[:6]
    line(emptied)


class Plain(object):
    pass


class Int(int):
    pass


class Text(type(u"")):
    pass


class List(list):
    pass


class Point(collections.namedtuple("Base", "x y")):
    pass


class Wrong(ValueError):
    pass


def containers():
    for thing in ((), (1,), (1, 2), [], [1, [2, [3]]], {}, {"a": 1}, {1: (2, 3), "b": None}, frozenset(), set(),
                  frozenset([5]), set(["one"]), [()], ([], {}), [[], [[]]], list(range(8)), (None, True, 1.5, u"x" if THREE else "x")):
        line(thing)
    line(list(range(1000)), "[0, 1, 2, 3, 4, 5, 6, 7, %s 992 more]" % "\xe2\x80\xa6" if not THREE else
         u"[0, 1, 2, 3, 4, 5, 6, 7, \u2026 992 more]")
    line([[[[1]]]], u"[[[[\u2026]]]]")
    line([[[[]]]], u"[[[[]]]]")
    around = [1]
    around.append(around)
    line(around, u"[1, [\u2026]]")
    itself = {}
    itself[1] = itself
    line(itself, u"{1: {\u2026}}")
    holes = dict((number, -number) for number in range(100))
    for number in range(100):
        if number != 55:
            del holes[number]
    line(holes, "{55: -55}")
    gone = set(range(50))
    for number in range(49):
        gone.discard(number)
    line(gone, "{49}" if THREE else "set([49])")
    emptied = {1: 2}
    del emptied[1]
    line(emptied, "{}")
    if sys.version_info >= (3, 6):
        line(dict((number, number) for number in range(70000)),
             u"{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, \u2026 69992 more}")
        line(dict((u"key %d" % number, number) for number in range(300)),
             u"{'key 0': 0, 'key 1': 1, 'key 2': 2, 'key 3': 3, 'key 4': 4, 'key 5': 5, 'key 6': 6, 'key 7': 7, \u2026 292 more}")
    line(Int(7), "__main__.Int(7)")
    if THREE:
        line(Int(10 ** 30), "__main__.Int(%r)" % (10 ** 30))
    line(Text(u"sub"), "__main__.Text(%s)" % text_of(u"sub"))
    line(List([1, 2]), "__main__.List([1, 2])")
    line(Point(1, 2), "__main__.Point((1, 2))")
    line(collections.OrderedDict([(1, 2)]), "collections.OrderedDict({1: 2})")
    line(collections.defaultdict(int, {1: 2}), "collections.defaultdict({1: 2})")
    if THREE:
        line(range(10))
        line(range(1, 10, 3))
        line(types.MappingProxyType({1: 2}), "mappingproxy({1: 2})")
    line(slice(1, 2))
    line(slice(None, None, -1))


class Slots(object):
    __slots__ = ("one", "two", "unset")

    def __init__(self):
        self.one, self.two = 1, "2"


class MoreSlots(Slots):
    __slots__ = ("three",)


class SlotsAndDict(MoreSlots):
    pass


class Outer(object):
    class Inner(object):
        pass


class Old:
    def __init__(self):
        self.old = 1


def at(name, thing, rest=""):
    return u"<%s at %s%s>" % (name, address(thing), rest)


def filled(thing, *pairs):
    for name, value in pairs:
        setattr(thing, name, value)
    return thing


def instances():
    plain = Plain()
    line(plain, at("__main__.Plain", plain))
    more(plain, at("__main__.Plain", plain))
    few = filled(Plain(), ("a", 1), ("b", [2]))
    line(few, at("__main__.Plain", few))
    if sys.version_info >= (3, 6):
        more(few, at("__main__.Plain", few, " a=1, b=[2]"))
    # Once asked for, an instance has a dict of its own.
    asked = filled(Plain(), ("a", 5))
    assert asked.__dict__ == {"a": 5}
    more(asked, at("__main__.Plain", asked, " a=5"))
    other = Plain()
    other.__dict__ = {"own": 3}
    more(other, at("__main__.Plain", other, " own=3"))
    gone = filled(Plain(), ("a", 1))
    del gone.a
    more(gone, at("__main__.Plain", gone))
    many = filled(Plain(), *[("m%d" % number, number) for number in range(40)])
    if sys.version_info >= (3, 6):
        more(many, at("__main__.Plain", many, " " + ", ".join("m%d=%d" % (n, n) for n in range(32)) + u", \u2026 8 more"))
    circle = Plain()
    circle.me = circle
    more(circle, at("__main__.Plain", circle, u" me=<__main__.Plain at %s \u2026>" % address(circle)))
    slots = Slots()
    more(slots, at("__main__.Slots", slots, " one=1, two='2'"))
    threes = filled(MoreSlots(), ("three", 3))
    more(threes, at("__main__.MoreSlots", threes, " three=3, one=1, two='2'"))
    both = filled(SlotsAndDict(), ("three", 3), ("four", 4))
    more(both, at("__main__.SlotsAndDict", both, " four=4, three=3, one=1, two='2'"))
    inner = Outer.Inner()
    line(inner, at("__main__.Outer.Inner" if THREE else "__main__.Inner", inner))
    old = Old()
    more(old, at("__main__.Old", old, " old=1"))
    line(ValueError("x", 1), "ValueError('x', 1)")
    line(Wrong("why"), "__main__.Wrong('why')")
    line(KeyError(), "KeyError()")
    line(LookupError(2, "no such"), "LookupError(2, 'no such')")
    when = datetime.datetime(2020, 1, 2)
    line(when, at("datetime.datetime", when))


def things():
    def local_function():
        yield plain

    plain = Plain()
    qualified = "things.<locals>.local_function" if THREE else "local_function"
    line(local_function, at("function " + qualified, local_function))
    generator = local_function()
    line(generator, at("generator object " + qualified, generator) if THREE else
         u"<generator object %s at %s>" % (qualified, address(local_function.__code__)))
    line(local_function.__code__, at("code object " + (qualified if sys.version_info >= (3, 11) else "local_function"),
                                     local_function.__code__))
    line(local_function.__closure__[0], u"<cell: %s>" % at("__main__.Plain", plain))
    line(len)
    line([].append)
    line({}.get)
    holder = Holder()
    line(holder.method, u"<bound method %s of %s>" % ("Holder.method" if THREE else "method", at("__main__.Holder", holder)))
    line(sys, "<module 'sys'>")
    line(os.path, "<module 'posixpath'>")
    line(int, "<class 'int'>")
    line(Plain, "<class '__main__.Plain'>")
    line(Outer.Inner, "<class '__main__.Outer.Inner'>" if THREE else "<class '__main__.Inner'>")
    line(Old, "<class '__main__.Old'>")
    line(collections.OrderedDict, "<class 'collections.OrderedDict'>")
    line(ValueError, "<class 'ValueError'>")
    line(type, "<class 'type'>")
    line(weakref.ref(plain), u"<weakref: %s>" % at("__main__.Plain", plain))
    passing = Plain()
    line(weakref.ref(passing), u"<weakref: None>")
    del passing
    partial = functools.partial(len)
    line(partial, at("functools.partial", partial))
    KEPT.append(plain)


class Holder(object):
    def method(self):
        return self


ANY = object()


def frame(object, variables, definitions=0):
    """VARIABLES: kind, name, value; in no order."""
    KEPT.append(object)
    tell("F", id(object), id(object.f_code), definitions, len(variables))
    for kind, name, value in variables:
        KEPT.append(value)
        tell("v", kind, hexed(name), "*" if value is ANY else hexed(repr(value)))


def generating(argument):
    inside = [argument]
    yield inside
    after = 1
    yield after


class Resting(object):
    """Frames that rest as long as the program does."""

    def function(self, second, kept, *rest, **options):
        unset, local, around, many = 1, 12.5, [second], None
        del unset
        number = 5

        def inner(own, *nothing):
            number = own + 1
            frame(sys._getframe(), [(0, "own", 1), (0, "nothing", ()), (1, "number", 2), (2, "around", around),
                                    (2, "kept", kept), (2, "self", ANY)])
            self.last()
            return kept, around

        frame(sys._getframe(), [(0, "self", ANY), (0, "second", second), (0, "kept", kept), (0, "rest", rest),
                                (0, "options", options), (1, "local", local), (1, "around", around), (1, "many", many),
                                (1, "number", 5), (1, "inner", ANY)])
        inner(1)

    def body(self):
        class Body(object):
            number = 1

            def method(self):
                pass

            frame(sys._getframe(), [(3, "number", 1), (2, "self", ANY)])
            self.function("two", [3], 4, 5, key=6)

    def module(self):
        names = {"body": self.body, "frame": frame, "sys": sys, "__name__": "module", "ANY": ANY}
        source = """
a = 1
def f(): pass
class C: pass
import os
frame(sys._getframe(), [(3, "a", 1), (3, "b", ANY), (3, "ANY", ANY), (3, "body", ANY)])
frame(sys._getframe(), list((3, name, ANY) for name in list(globals())), 1)
body()
"""
        names["b"] = []
        exec(compile(source, "module", "exec"), names)

    def last(self):
        generator = generating(1)
        next(generator)
        frame(generator.gi_frame, [(0, "argument", 1), (1, "inside", [1])])
        if THREE:
            exec(KEYWORDS, {"frame": frame, "sys": sys, "end": end, "ANY": ANY})
        else:
            end()


KEYWORDS = """
def keywords(a, *, only, cell=2):
    def keep():
        return cell
    values = [x for x in ()]
    frame(sys._getframe(), [(0, "a", 1), (0, "only", 3), (0, "cell", 2), (1, "keep", ANY), (1, "values", [])])
    end()
keywords(1, only=3)
"""


def threads():
    def wait(started, end):
        started.release()
        end.acquire()

    names = [u"one", u"named \u65e5\u672c", u"x" * 300, u"\x1b[31m"]
    end = threading.Lock()
    end.acquire()
    for name in names:
        started = threading.Semaphore(0)
        thread = threading.Thread(target=wait, args=(started, end), name=name if THREE else name.encode("utf-8"))
        thread.daemon = True
        thread.start()
        started.acquire()
        KEPT.append(thread)
    told = [(thread.ident, thread.name) for thread in threading.enumerate()]
    tell("T", id(sys.modules), len(told))
    for ident, name in told:
        tell("t", ident, hexed(name))


def end():
    threads()
    tell("E")
    sys.stdout.flush()
    sys.stdin.read()


head()
numbers()
strings()
containers()
instances()
things()
Resting().module()
