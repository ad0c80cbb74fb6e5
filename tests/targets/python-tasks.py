# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio at known addresses, for src/runtimes/python/test-tasks.c; 3.5 and later.

Rows, their texts in hex (- for an empty one):

    V VERSION UNICODE-WIDTH TRACED FREE-THREADED TYPE       the interpreter; the address of type(code)
    K MODULES THREAD IDENT COUNT    sys.modules, the thread state (0: not known), get_ident(); tasks follow, in no order
    k ADDRESS AWAITED-BY NAME FUNCTIONS     a task, that which waits for it or 0, what it is in, outermost first
    E
"""
import asyncio
import binascii
import os
import sys
import threading
import types

KEPT = []


def hexed(text):
    return binascii.hexlify(text.encode("utf-8")).decode("ascii") or "-"


def tell(*words):
    print(" ".join(str(word) for word in words))


def head():
    import sysconfig
    tell("V", sys.version_info[0] << 8 | sys.version_info[1], 0, int(hasattr(sys, "getobjects")),
         int(bool(sysconfig.get_config_var("Py_GIL_DISABLED"))), id(types.CodeType))


def thread_state():
    if sys.version_info < (3, 14):
        return 0
    import ctypes
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    return ctypes.pythonapi.PyThreadState_Get()


async def inner():
    await asyncio.Event().wait()


async def middle():
    await inner()


async def deep(depth):
    if depth:
        await deep(depth - 1)
    else:
        await middle()


@types.coroutine
def generated():
    yield from middle()


async def through_generator():
    await generated()


async def parent(child):
    await child


async def gathering(children):
    await asyncio.gather(*children)


async def any_of(child):
    await asyncio.wait([child])


async def limited(child):
    await asyncio.wait_for(child, 1000)


async def shielded(child):
    await asyncio.shield(child)


class Awaitable:
    def __await__(self):
        return middle().__await__()


async def through_object():
    await Awaitable()


EXPECTED = []


def task(coroutine, functions, by=None, name=None):
    made = asyncio.get_event_loop().create_task(coroutine)
    if name and hasattr(made, "set_name"):
        made.set_name(name)
    EXPECTED.append([made, functions, by])
    return made


def report():
    tell("K", id(sys.modules), thread_state(), threading.get_ident(), len(EXPECTED))
    for made, functions, by in EXPECTED:
        name = made.get_name() if hasattr(made, "get_name") else ""
        tell("k", id(made), id(by) if by else 0, hexed(name), hexed(">".join(functions)))
    tell("E")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


async def grouped():
    async with asyncio.TaskGroup() as group:
        made = group.create_task(middle())
        EXPECTED.append([made, ["middle", "inner", "wait"], asyncio.current_task()])
        await inner()


async def done():
    pass


async def main():
    rest = ["middle", "inner", "wait"]
    task(middle(), rest, name="named \u65e5")
    task(deep(20), ["deep"] * 21 + rest)
    task(through_generator(), ["through_generator", "generated"] + rest)
    task(through_object(), ["through_object"] + rest)
    child = task(middle(), rest)
    waiting = task(parent(child), ["parent"])
    EXPECTED[-2][2] = waiting
    few = [task(middle(), rest) for _ in range(3)]
    gather = task(gathering(few), ["gathering"])
    for row in EXPECTED[-4:-1]:
        row[2] = gather
    for function in any_of, limited, shielded:
        child = task(middle(), rest)
        by = task(function(child), [function.__name__])
        EXPECTED[-2][2] = by
    if sys.version_info >= (3, 6):
        exec(GENERATOR, globals())
        task(iterating(), ["iterating", "numbers"] + rest)
    if sys.version_info >= (3, 11):
        task(grouped(), ["grouped", "inner", "wait"])
    KEPT.append(asyncio.get_event_loop().create_task(done()))
    await asyncio.sleep(0.2)
    EXPECTED.append([None, ["main", "sleep"], None])
    current = getattr(asyncio, "current_task", None) or asyncio.Task.current_task
    EXPECTED[-1][0] = current()
    asyncio.get_event_loop().call_later(0.1, report)
    await asyncio.sleep(100)


GENERATOR = """
async def numbers():
    await middle()
    yield 1


async def iterating():
    async for number in numbers():
        pass
"""

head()
if sys.version_info >= (3, 10):
    asyncio.set_event_loop(asyncio.new_event_loop())
asyncio.get_event_loop().run_until_complete(main())
