# SPDX-License-Identifier: Apache-2.0
"""Judging stacks of Python for bench-apps: a sample by itself, and cairn's dump against py-spy's. Stacks are innermost first.

With `record --native` a stack has the evaluator's machine frame and, behind it, the Python frames that it evaluates. So an order
that is right can be seen: Python frames begin behind an evaluator and nowhere else, and every evaluator has some.
"""
import dataclasses
import json
import os
import re

EVALUATORS = ("_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx")
# What starts Python code: a program, `python -m`, a thread.
ROOTS = ("<module>", "_run_module_as_main", "_bootstrap")
START = ("libc.so", "libc-2.", "libpthread", "ld-linux")
EXAMPLES_FRAMES = 60
INNERMOST_LINE = "the innermost Python function has another line"
LEAVES_OFF = "py-spy has the first of the machine frames, and not the others"
# What differs from py-spy, and why: {kind: reason}.
EXPLAINED = {
    INNERMOST_LINE: "py-spy 0.4.0 gives the line before when the first instruction of a line runs; pystack has cairn's",
    LEAVES_OFF: "its unwinder stops in hand-written machine code (a BLAS)",
}


@dataclasses.dataclass
class Tally:
    samples: int = 0
    right: int = 0
    mixed: int = 0  # have machine frames, of another object than the interpreter, inside of Python frames
    depth: int = 0  # frames of the deepest stack
    wrong: dict = dataclasses.field(default_factory=dict)  # {reason: [samples, a stack]}


def read_page(page):
    """[(frames, samples)] of a flame graph."""
    text = re.search(r'<script type="application/json" id="cairn-profile">(.*?)</script>', page.read_text(encoding="utf-8"),
                     re.S)
    data = json.loads(text[1])
    strings, table, stacks, samples = (data[key] for key in ("strings", "frames", "stacks", "samples"))

    def frame_of(index):
        text_of = lambda key: strings[table[key][index]] if table[key][index] >= 0 else None
        return {"kind": data["kinds"][table["kind"][index]], "function": text_of("name"), "file": text_of("file"),
                "line": table["line"][index], "object": text_of("object")}

    frames, found = [frame_of(index) for index in range(len(table["kind"]))], []
    for stack, value in zip(samples["stack"], samples["value"]):
        chain = []
        while stack >= 0:
            chain.append(frames[stacks["frame"][stack]])
            stack = stacks["parent"][stack]
        found.append((chain, value))
    return found


def show(frame):
    where = f"{frame['file']}:{frame['line']}" if frame.get("file") else frame.get("object") or ""
    return f"{frame['kind']:<7} {frame['function']} ({where})"


# --- a sample by itself

def is_evaluator(frame):
    return frame["kind"] == "native" and frame["function"].startswith(EVALUATORS)


def may_evaluate(frame):
    """Cold parts of the evaluator have no name where symbols were stripped."""
    return is_evaluator(frame) or (frame["kind"] == "native" and frame["function"].startswith("("))


def what_is_wrong(frames):
    """None, or why the stack is not whole and in order."""
    cut = next((frame for frame in frames if frame["kind"] == "cut"), None)
    if cut:
        return cut["function"]
    python = [frame for frame in frames if frame["kind"] == "python"]
    if not python and sum(map(is_evaluator, frames)) > 1:
        return "an interpreter, but no Python frames"
    innermost = True
    for number, frame in enumerate(frames):
        before = frames[number - 1] if number else None
        behind = frames[number + 1] if number + 1 < len(frames) else None
        if frame["kind"] == "python" and (before is None or not (before["kind"] == "python" or may_evaluate(before))):
            return "Python frames that nobody evaluates"
        # The innermost one may have begun or ended this moment, and have no frame yet or no more.
        if is_evaluator(frame) and (behind is None or behind["kind"] != "python"):
            if not innermost:
                return "an evaluator without Python frames"
        innermost = innermost and not is_evaluator(frame)
    if python and python[-1]["function"].rpartition(".")[2] not in ROOTS:
        return f"the outermost Python function is {python[-1]['function']}"
    return None


def is_mixed(frames):
    """A frame of an extension inside of a Python frame?"""
    python = max((number for number, frame in enumerate(frames) if frame["kind"] == "python"), default=0)
    return any(frame["kind"] == "native" and not is_interpreter(frame["object"]) for frame in frames[:python])


def tally_samples(rows):
    tally = Tally()
    for frames, count in rows:
        reason = what_is_wrong(frames)
        tally.samples += count
        tally.right += 0 if reason else count
        tally.mixed += count if is_mixed(frames) else 0
        tally.depth = max(tally.depth, len(frames))
        if reason:
            row = tally.wrong.setdefault(reason, [0, [show(frame) for frame in frames[:EXAMPLES_FRAMES]]])
            row[0] += count
    return tally


# --- beside py-spy

def is_interpreter(path):
    name = os.path.basename(path or "")
    return name.startswith(("python", "libpython"))


def our_frames(thread):
    """("python", function, file, line) or ("machine", object), innermost first."""
    found = []
    for frame in thread["frames"]:
        if frame["kind"] == "python":
            found.append(("python", frame["function"].rpartition(".")[2], os.path.basename(frame["file"] or ""), frame["line"]))
        elif frame["kind"] == "cut":
            found.append(("cut", frame["function"]))
        elif not is_interpreter(frame["object"]):
            found.append(("machine", os.path.basename(frame["object"] or "")))
    return found


def their_frames(thread):
    found = []
    for frame in thread["frames"]:
        if not frame["module"]:
            found.append(("python", frame["name"].rpartition(".")[2], os.path.basename(frame["filename"]), frame["line"]))
        elif not is_interpreter(frame["module"]):
            found.append(("machine", os.path.basename(frame["module"])))
    return found


def runs_of(frames):
    """(Python frames; objects of machine code inside of each, without repetition)"""
    python, machine = [], [[]]
    for frame in frames:
        if frame[0] == "machine":
            if not machine[-1] or machine[-1][-1] != frame[1]:
                machine[-1].append(frame[1])
        else:
            python.append(frame)
            machine.append([])
    # Outside of all Python frames is what starts a program.
    return python, machine[:-1]


def difference(ours, theirs):
    """What kind of difference there is; "equal"."""
    our_python, our_machine = runs_of(ours)
    their_python, their_machine = runs_of(theirs)
    if our_python != their_python:
        if len(our_python) != len(their_python):
            return f"Python frames: py-spy has {'more' if len(their_python) > len(our_python) else 'fewer'}"
        if our_python[1:] == their_python[1:] and our_python[0][:3] == their_python[0][:3]:
            return INNERMOST_LINE
        wrong = next((one, other) for one, other in zip(our_python, their_python) if one != other)
        names = ("kind", "function", "file", "line")
        return "Python frames: another " + next(name for name, a, b in zip(names, *wrong) if a != b)
    if our_machine == their_machine:
        return "equal"
    # Its machine frames begin as cairn's do, and there are no more of them.
    if their_machine[0] == our_machine[0][:len(their_machine[0])] and not any(their_machine[1:]):
        return LEAVES_OFF
    for one, other in zip(our_machine, their_machine):
        if one != other:
            return f"machine code: cairn {'+'.join(one) or 'nothing'}, py-spy {'+'.join(other) or 'nothing'}"
    return "machine code"


def side_by_side(ours, theirs):
    rows = ["cairn:", *(f"    {' '.join(map(str, frame))}" for frame in ours[:EXAMPLES_FRAMES])]
    return rows + ["py-spy:", *(f"    {' '.join(map(str, frame))}" for frame in theirs[:EXAMPLES_FRAMES])]


def compare(ours, theirs):
    """(kind of difference, example) for each thread that py-spy knows: those that run Python."""
    by_tid = {thread["tid"]: thread for thread in ours["threads"]}
    by_id = {thread["python_id"]: thread for thread in ours["threads"]}
    for thread in theirs:
        mine = by_tid.get(thread["os_thread_id"]) or by_id.get(thread["thread_id"])
        if mine is None:
            yield "a thread that cairn does not know", [str(thread)[:500]]
            continue
        one, other = our_frames(mine), their_frames(thread)
        yield difference(one, other), side_by_side(one, other)
