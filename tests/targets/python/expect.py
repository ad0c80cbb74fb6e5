# SPDX-License-Identifier: Apache-2.0
"""How a target of the tests says which stack its threads have: for CPython 2.7 and 3.5 on.

A thread calls tell(1) and stays on the next line for ever: `while True: pause(LONG)`. What it tells is one line of JSON in
the file that CAIRN_EXPECT names: {"tid", "ident", "name", "frames": [{"function", "file", "first_line", "line"}, ...]},
the innermost frame first, by what the interpreter itself says of its frames. Once THREADS threads have told, the line
{"ready": true} follows. CAIRN_PAUSE says what pausing is: "block" in a system call, or "spin", for a sampler.
"""
import json
import os
import sys
import threading
import time

pause = abs if os.environ.get("CAIRN_PAUSE", "spin") == "spin" else time.sleep
LONG = 1000

_lock = threading.Lock()
_state = {"threads": 1, "told": 0}


def threads(count):
    """How many threads will tell; 1 if nobody says."""
    _state["threads"] = count


def text(value):
    """A name or a path; up to Python 2 they are bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def frames_from(frame, line=None):
    """The stack from FRAME outwards; LINE: where the innermost one is going to stay."""
    found = []
    while frame is not None:
        code = frame.f_code
        found.append({
            "function": text(getattr(code, "co_qualname", code.co_name)),
            "file": text(code.co_filename),
            "first_line": code.co_firstlineno,
            "line": line or frame.f_lineno,
        })
        frame, line = frame.f_back, None
    return found


def native_id():
    return int(os.readlink("/proc/thread-self").rsplit("/", 1)[1])


def thread_name(ident):
    for thread in threading.enumerate():
        if thread.ident == ident:
            return text(thread.name)
    return None


def write(rows):
    data = "".join(json.dumps(row) + "\n" for row in rows).encode("ascii")
    out = os.open(os.environ["CAIRN_EXPECT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    while data:
        data = data[os.write(out, data):]
    os.close(out)


def add(row):
    with _lock:
        _state["told"] += 1
        write([row] + ([{"ready": True}] if _state["told"] == _state["threads"] else []))


def tell(lines, outer=()):
    """The caller is going to stay LINES lines below this call. OUTER: frames that the interpreter does not link."""
    frame = sys._getframe(1)
    ident = threading.current_thread().ident
    add({
        "tid": native_id(),
        "ident": ident,
        "name": thread_name(ident),
        "frames": frames_from(frame, frame.f_lineno + lines) + list(outer),
    })


def tell_for(thread, tid):
    """Another thread waits inside a function of the library: tell where, once it is still."""
    before = None
    while True:
        now = frames_from(sys._current_frames()[thread.ident])
        if now == before:
            break
        before = now
        time.sleep(0.2)
    add({"tid": tid, "ident": thread.ident, "name": text(thread.name), "frames": now})
