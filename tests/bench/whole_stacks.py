# SPDX-License-Identifier: Apache-2.0
"""Stacks of cairn and perf, and what is whole about them.

cairn says itself which of its stacks are whole; perf does not. So both are held against the same criterion, which
needs names: the outermost user frame is a function that nothing calls.
"""
import bisect
import collections
import dataclasses
import re
import subprocess

# The C library's and the loader's first functions, those of threads, and Go's (runtime/symtab.go, topofstack()).
ROOTS = frozenset("""
    _start _dl_start_user __restore_rt
    clone __clone clone3 __clone3 __GI___clone3 __GI___clone
    runtime.goexit runtime.mstart runtime.mcall runtime.morestack runtime.rt0_go
    _rt0_amd64 _rt0_amd64_linux runtime.clone
""".split())
# A stripped program's _start has no name, but nothing else of the program calls this.
START_MAIN = frozenset(["__libc_start_main", "__libc_start_main_impl", "_start_c"])
# By frame pointers perf misses the caller of a C library's function that keeps none. Nothing of the program is missing
# then, and the stack counts as whole in perf's favour.
NEARLY_ROOTS = START_MAIN | {"__libc_start_call_main", "start_thread"}
# In these the kernel has taken the user stack away, or there never was one: nothing is missing.
NO_USER_STACK = frozenset("""
    do_exit do_group_exit bprm_execve begin_new_exec do_execveat_common.isra.0 do_execveat_common ret_from_fork
    ret_from_fork_asm schedule_tail load_elf_binary exec_binprm search_binary_handler
""".split())
KERNEL_ADDR = 0xFFFF800000000000
PERF_END = 0xFFFFFFFFFFFFFFFF  # what perf shows as a frame where its walk by DWARF failed


@dataclasses.dataclass
class Stack:
    """Frames are (name, what), outermost first; WHAT is symbol, identity, neither, kernel or inlined."""
    frames: list
    count: int
    cut: str = ""
    text: str = ""

    def user(self):
        return [frame for frame in self.frames if frame[1] not in ("kernel", "inlined")]


def plain(name):
    """Without versions of symbols, Go's ABI marks and what a compiler adds."""
    return re.sub(r"(@.*|\.abi0|\.abiinternal|\.cold|\.part\.\d+)$", "", name)


def judge(stack, roots=ROOTS):
    """whole, not whole, or unknown where the outermost frame has no name to judge by."""
    user = stack.user()
    if not user:
        gone = any(plain(name) in NO_USER_STACK for name, _ in stack.frames)
        return "whole" if gone else "not whole"
    name, what = user[0]
    if what == "symbol":
        return "whole" if plain(name) in roots else "not whole"
    if len(user) > 1 and plain(user[1][0]) in START_MAIN:
        return "whole"
    return "unknown"


def cairn_frame(text):
    if text.endswith("_[k]"):
        return text[:-4], "kernel"
    if text.endswith("_[i]"):
        return text[:-4], "inlined"
    if text.endswith("_[j]"):
        text = text[:-4]
        return text, "neither" if text.startswith("[") else "symbol"
    if re.fullmatch(r"\([/\[].*\+0x[0-9a-f]+\)", text):
        return text, "identity"
    if re.fullmatch(r"\([/\[].*\)|\[.*\]", text):
        return text, "neither"
    return text, "symbol"


def read_folded(path, wanted):
    """The stacks of the processes called WANTED in a folded file of cairn."""
    stacks = []
    for line in open(path, encoding="utf-8", errors="replace"):
        text, _, count = line.rstrip("\n").rpartition(" ")
        comm, *frames = text.split(";")
        if comm not in wanted:
            continue
        cut = ""
        if frames and (match := re.fullmatch(r"\[cut: (.*)\]", frames[0])):
            cut = match.group(1)
            frames = frames[1:]
        stacks.append(Stack([cairn_frame(frame) for frame in frames], int(count), cut, text))
    return stacks


class Names:
    """Names for a stripped program from its twin with symbols: both have the same text at the same addresses."""

    def __init__(self, path):
        # perf script shows an address without a symbol by its offset in the file.
        segments = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
        text = re.search(r"LOAD +(0x[0-9a-f]+) (0x[0-9a-f]+) .* R E ", segments)
        self.bias = int(text.group(2), 16) - int(text.group(1), 16)
        self.at = []
        out = subprocess.run(["nm", "-n", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            addr, kind, name = line.split(None, 2)
            if kind in "tT":
                self.at.append((int(addr, 16), name))

    def find(self, addr):
        place = bisect.bisect_right(self.at, addr + self.bias, key=lambda one: one[0])
        return self.at[place - 1][1] if place else ""


def perf_frame(line, twin):
    match = re.match(r"\s*([0-9a-f]+) (.*) \((.*)\)$", line)
    if not match:
        return None
    addr, name, _ = int(match.group(1), 16), match.group(2), match.group(3)
    if addr == PERF_END:
        return None
    if addr >= KERNEL_ADDR:
        return name, "kernel"
    if name != "[unknown]":
        return name, "symbol"
    return (twin.find(addr), "neither") if twin else (name, "neither")


def root_named(stack):
    """An outermost frame that only the twin could name is judged by that name, and still counts as unnamed."""
    return plain(next((name for name, what in stack.frames if what != "kernel"), "")) in ROOTS


def read_perf(lines, wanted, twin=None):
    """The stacks of WANTED in the output of perf script -F comm,pid,ip,sym,dso: a head, frames leaf first, a blank."""
    counted = collections.Counter()
    comm, frames = None, []
    for line in [*lines, ""]:
        if not line.strip():
            if comm in wanted:
                counted[tuple(reversed(frames))] += 1
            comm, frames = None, []
        elif comm is None:
            comm = re.sub(r"\s+\d+\s*$", "", line).strip()
        elif (frame := perf_frame(line, twin)):
            frames.append(frame)
    return [Stack(list(frames), count) for frames, count in counted.items()]


def share(part, whole):
    return 100.0 * part / whole if whole else None


def tally_frames(stacks):
    found = collections.Counter()
    for stack in stacks:
        for _, what in stack.user():
            found[what] += stack.count
    total = sum(found.values())
    return {what: share(found[what], total) for what in ("symbol", "identity", "neither")}


def tally_perf(stacks):
    samples = sum(stack.count for stack in stacks)
    whole = sum(stack.count for stack in stacks
                if judge(stack, ROOTS | NEARLY_ROOTS) == "whole" or root_named(stack))
    return {"samples": samples, "whole": share(whole, samples), "frames": tally_frames(stacks)}


def tally_cairn(stacks, allowed_cut):
    """What cairn says of its stacks; and where it says whole, whether the outermost function agrees."""
    samples = sum(stack.count for stack in stacks)
    cuts, roots, disagree = collections.Counter(), collections.Counter(), collections.Counter()
    for stack in stacks:
        if stack.cut:
            cuts[stack.cut] += stack.count
            continue
        verdict = judge(stack)
        roots[verdict] += stack.count
        if verdict == "not whole":
            disagree[stack.text] += stack.count
    whole = sum(roots.values())
    examples = collections.Counter()
    for stack in stacks:
        if stack.cut and stack.cut != allowed_cut:
            examples[stack.text] += stack.count
    return {
        "samples": samples,
        "whole": share(whole, samples),
        "allowed": share(whole + cuts[allowed_cut], samples),
        "cuts": {reason: share(count, samples) for reason, count in cuts.most_common()},
        "frames": tally_frames(stacks),
        "roots": dict(roots),
        "disagree": disagree.most_common(5),
        "examples": examples.most_common(8),
    }
