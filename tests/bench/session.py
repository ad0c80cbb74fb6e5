# SPDX-License-Identifier: Apache-2.0
"""A run of cairn watched from outside: CPU time, memory, its BPF programs and maps. What the kernel says of them in
/proc/PID/fdinfo is the only source; names of programs are no use where several cairns run at a time."""
import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import time

BPF_MAP_VMA = "anon_inode:bpf-map"
PERF_VMA = "anon_inode:[perf_event]"
ARRAY_OF_MAPS = "12"  # BPF_MAP_TYPE_ARRAY_OF_MAPS of linux/bpf.h


def read_text(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def clean_environment():
    """CAIRN_ variables of whoever measures are options to the program."""
    return {**{k: v for k, v in os.environ.items() if not k.startswith("CAIRN")}, "LC_ALL": "C"}


def fdinfo(pid):
    """Of each open descriptor: {key: first word of its value}."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fdinfo"):
            rows = (line.split(":", 1) for line in read_text(f"/proc/{pid}/fdinfo/{name}").split("\n") if ":" in line)
            found.append({key: (value.split() or [""])[0] for key, value in rows})
    return found


def bpftool(*words):
    """bpftool's answer; None for what is not there."""
    done = subprocess.run(["bpftool", "-j", *map(str, words)], capture_output=True, text=True, check=False)
    with contextlib.suppress(ValueError):
        answer = json.loads(done.stdout)
        if not (isinstance(answer, dict) and "error" in answer):
            return answer
    return None


def bpf_ids(pid):
    """{"prog": ids, "map": ids, "link": ids} that a process holds, those of maps inside maps included."""
    ids = {"prog": set(), "map": set(), "link": set()}
    of_maps = set()
    for entry in fdinfo(pid):
        if entry.get("map_type") == ARRAY_OF_MAPS:
            of_maps.add(int(entry["map_id"]))
        for kind, found in ids.items():
            if f"{kind}_id" in entry and not (kind != "link" and "link_id" in entry):
                found.add(int(entry[f"{kind}_id"]))
    for number in of_maps:
        for slot in bpftool("map", "dump", "id", number) or []:
            value = slot.get("value")
            if isinstance(value, list):
                ids["map"].add(int.from_bytes((int(byte, 16) for byte in value), "little"))
    return ids


def left_behind(ids, patience=5):
    """Which of IDS the kernel still has. Freeing is deferred in the kernel, hence the patience."""
    deadline = time.monotonic() + patience
    while True:
        left = {kind: sorted(n for n in found if bpftool(kind, "show", "id", n)) for kind, found in ids.items()}
        if not any(left.values()) or time.monotonic() > deadline:
            return {kind: found for kind, found in left.items() if found}
        time.sleep(0.1)


@functools.lru_cache(maxsize=None)
def map_facts(number):
    """Ids of maps are not used again, and cairn's maps have their memory from the start."""
    return bpftool("map", "show", "id", number) or {}


def map_bytes(ids, name=None):
    """Kernel memory of the maps (those called NAME), as the kernel charges it."""
    facts = [map_facts(number) for number in ids["map"]]
    return sum(one.get("bytes_memlock", 0) for one in facts if name in (None, one.get("name")))


def program_times(pid):
    """{id of a program: (ns, runs)}; needs kernel.bpf_stats_enabled."""
    return {int(e["prog_id"]): (int(e.get("run_time_ns", 0)), int(e.get("run_cnt", 0)))
            for e in fdinfo(pid) if "prog_id" in e and "link_id" not in e}


def cpu_ns(pid):
    """CPU time of all threads that live, in ns."""
    total = 0
    with contextlib.suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            words = read_text(f"/proc/{pid}/task/{tid}/schedstat").split()
            total += int(words[0]) if words else 0
    return total


def memory(pid):
    """Bytes by kind. Pages of BPF maps count as resident where cairn maps them; they are told apart here, for the kernel
    charges the whole map whether it is mapped or not."""
    status = dict(line.split(":", 1) for line in read_text(f"/proc/{pid}/status").split("\n") if ":" in line)
    sizes = {"rss": 0, "pss": 0, "mapped_maps": 0, "perf_rings": 0}
    name = ""
    for line in read_text(f"/proc/{pid}/smaps").split("\n"):
        words = line.split()
        if len(words) >= 5 and "-" in words[0] and not words[0].endswith(":"):
            name = " ".join(words[5:])
        elif words and words[0] == "Size:" and name == PERF_VMA:
            sizes["perf_rings"] += int(words[1]) * 1024
        elif words and words[0] in ("Rss:", "Pss:"):
            kind = words[0][:-1].lower()
            if name != BPF_MAP_VMA:
                sizes[kind] += int(words[1]) * 1024
            elif kind == "rss":
                sizes["mapped_maps"] += int(words[1]) * 1024
    sizes["anonymous"] = int(status.get("RssAnon", "0").split()[0]) * 1024
    sizes["vm_rss"] = int(status.get("VmRSS", "0").split()[0]) * 1024
    sizes["vm_hwm"] = int(status.get("VmHWM", "0").split()[0]) * 1024
    return sizes


def ended(pid):
    """Is the child done, and only waits to be waited for?"""
    return read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] in ([], ["Z"])


class Session:
    """cairn as a child. Use it as a context: whatever happens, it is gone at the end."""

    def __init__(self, cairn, *words, log=subprocess.DEVNULL):
        self.words = [str(cairn), *map(str, words)]
        self.log = log

    def __enter__(self):
        self.started = time.monotonic()
        self.child = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                      env=clean_environment())
        self.pid = self.child.pid
        self.status = None
        return self

    def __exit__(self, *_):
        if self.status is None:
            self.child.kill()
            self.child.wait()

    def wait_sampling(self, patience=20):
        """Until a program is attached to a perf event."""
        while time.monotonic() - self.started < patience:
            if any("link_id" in entry for entry in fdinfo(self.pid)):
                return
            if self.child.poll() is not None:
                break
            time.sleep(0.005)
        raise RuntimeError(f"{' '.join(self.words)}: does not sample (status {self.child.poll()})")

    def end(self, number=signal.SIGINT):
        """Ask it to end. Gives (status, seconds until it was gone, CPU seconds of its whole life)."""
        begin = time.monotonic()
        if number is not None:
            self.child.send_signal(number)
        _, status, usage = os.wait4(self.pid, 0)
        seconds = time.monotonic() - begin
        self.status = self.child.returncode = os.waitstatus_to_exitcode(status)
        self.peak_rss = usage.ru_maxrss * 1024
        return self.status, seconds, usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def bpf_statistics():
    """kernel.bpf_stats_enabled, as it was before when done."""
    path = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    before = path.read_text(encoding="ascii")
    path.write_text("1", encoding="ascii")
    try:
        yield
    finally:
        path.write_text(before, encoding="ascii")


def read_folded(path):
    """[(frames, the process's name first; count)] of a folded file."""
    rows = []
    for line in read_text(path).split("\n"):
        stack, _, count = line.rpartition(" ")
        if stack and count.isdigit():
            rows.append((stack.split(";"), int(count)))
    return rows


def compile_c(source, target, *flags):
    subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(target), *flags], check=True)
    return target
