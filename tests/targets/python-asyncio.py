# SPDX-License-Identifier: Apache-2.0
"""Event loops in two threads, and what tasks they have, for tests/e2e/test_dump_tasks.py; 3.5 and later.

Each thread tells {"tid", "tasks": [{"id", "name", "state", "awaited_by", "frames"}]} as expect.py does. The loop of the
main thread waits; that of the other is held up by a task that blocks, beside one that would like to begin. With
CAIRN_QUIET_LOOPS they do not say which thread runs them, like those that are not written in Python.
"""
import asyncio
import os
import sys
import threading
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from expect import LONG, add, native_id, pause, threads

NEXT = ("cr_await", "gi_yieldfrom", "ag_await")
FRAME = ("cr_frame", "gi_frame", "ag_frame")


def member(thing, names):
    return next((getattr(thing, name) for name in names if hasattr(thing, name)), None)


def frames_of(coroutine, running):
    """Innermost first. The frames of a task that runs are those of its thread, but for the outermost."""
    found = []
    while coroutine is not None and member(coroutine, FRAME) is not None:
        frame = member(coroutine, FRAME)
        code = frame.f_code
        found.insert(0, {"function": getattr(code, "co_qualname", code.co_name), "file": code.co_filename,
                         "first_line": code.co_firstlineno, "line": frame.f_lineno})
        coroutine = None if running else member(coroutine, NEXT)
    return found


class Board:
    """The tasks of one loop."""

    def __init__(self):
        self.rows = []

    def task(self, coroutine, by=None, name=None, state="waiting"):
        made = asyncio.get_event_loop().create_task(coroutine)
        if name and hasattr(made, "set_name"):
            made.set_name(name)
        self.add(made, coroutine, by, state)
        return made

    def add(self, made, coroutine, by=None, state="waiting"):
        self.rows.append([made, coroutine, by, state])

    def tell(self):
        rows = []
        if os.environ.get("CAIRN_QUIET_LOOPS"):
            asyncio.get_event_loop().__dict__.pop("_thread_id")
        for made, coroutine, by, state in self.rows:
            rows.append({"id": hex(id(made)), "name": made.get_name() if hasattr(made, "get_name") else None,
                         "state": state, "awaited_by": hex(id(by)) if by else None,
                         "frames": frames_of(coroutine, state == "running")})
        add({"tid": native_id(), "tasks": rows})


async def leaf():
    await asyncio.Event().wait()


@types.coroutine
def generated():
    yield from leaf()


async def nested(depth):
    await (nested(depth - 1) if depth else generated())


async def parent(child):
    await child


async def gathering(children):
    await asyncio.gather(*children)


async def limited(child):
    await asyncio.wait_for(child, LONG)


async def wait(board):
    child = board.task(nested(3), name="child \u65e5")
    board.rows[1][2] = board.task(parent(child), name="parent")
    few = [board.task(leaf()) for _ in range(3)]
    gather = board.task(gathering(few))
    for row in board.rows[-4:-1]:
        row[2] = gather
    child = board.task(leaf(), name="in time")
    by = board.task(limited(child), name="limited")
    board.rows[-2][2] = by
    asyncio.get_event_loop().call_later(0.3, board.tell)
    await asyncio.sleep(LONG)


async def blocks(board):
    board.tell(); pause(LONG)


async def block(board):
    board.task(leaf(), name="not begun", state="ready")
    await blocks(board)


def run(function):
    board = Board()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    coroutine = function(board)
    made = loop.create_task(coroutine)
    board.add(made, coroutine, state="running" if function is block else "waiting")
    loop.run_until_complete(made)


threads(2)
threading.Thread(target=run, args=(block,), name="blocked", daemon=True).start()
run(wait)
