# SPDX-License-Identifier: Apache-2.0
"""How bench-whole shows its results: a table for a terminal, the same in Markdown, and what fell short."""
import platform
import time

HEAD = ("load", "samples", "whole %", "cut, % by reason", "symbol %", "identity %", "neither %", "root named %",
        "perf fp whole %", "perf dwarf whole %", "dwarf MB", "dwarf s")
CUTS_SHOWN = 3
LEAST_PER_SECOND = 10  # fewer samples than this say nothing: the load did not run, or the machine was full


def percent(value):
    # Cut off, not rounded: 99.96 is not 100.0.
    return "–" if value is None else f"{int(value * 10 + 1e-6) / 10:.1f}"


def row_cells(row):
    if "skipped" in row:
        return [row["load"], "skipped: " + row["skipped"], *[""] * (len(HEAD) - 2)]
    cairn, fp, dwarf = row["cairn"], row.get("fp", {}), row.get("dwarf", {})
    roots = cairn["roots"]
    judged = roots.get("whole", 0) + roots.get("not whole", 0)
    cuts = [f"{percent(value)} {reason}" for reason, value in cairn["cuts"].items()]
    more = [f"{len(cuts) - CUTS_SHOWN} more"] if len(cuts) > CUTS_SHOWN else []
    return [
        row["load"], str(cairn["samples"]), percent(cairn["whole"]), ", ".join(cuts[:CUTS_SHOWN] + more) or "none",
        *(percent(cairn["frames"][what]) for what in ("symbol", "identity", "neither")),
        percent(100 * roots.get("whole", 0) / judged if judged else None),
        *(percent(perf.get("whole")) for perf in (fp, dwarf)),
        f"{dwarf['bytes'] / 1e6:.1f}" if dwarf else "–", f"{dwarf['seconds']:.1f}" if dwarf else "–",
    ]


def aligned(rows):
    """Numbers to the right, words to the left."""
    cells = [list(HEAD), *map(row_cells, rows)]
    # A skipped row says why; its text does not make a column of numbers wide.
    widths = [max(len(line[i]) for line in cells if i != 1 or not line[1].startswith("skipped"))
              for i in range(len(HEAD))]
    words = {0, HEAD.index("cut, % by reason")}
    out = []
    for line in cells:
        parts = [text.ljust(width) if i in words or text.startswith("skipped") else text.rjust(width)
                 for i, (text, width) in enumerate(zip(line, widths))]
        out.append("  ".join(parts).rstrip())
    return "\n".join(out)


def markdown(rows):
    words = {0, HEAD.index("cut, % by reason")}
    lines = ["| " + " | ".join(HEAD) + " |",
             "| " + " | ".join("---" if i in words else "--:" for i in range(len(HEAD))) + " |"]
    lines += ["| " + " | ".join(row_cells(row)) + " |" for row in rows]
    return "\n".join(lines)


def cpu_name():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def circumstances(facts):
    """Where and when the figures come from, in one line."""
    return (f"{time.strftime('%Y-%m-%d')}, {facts['cpu']}, {facts['cpus']} CPUs, Linux {facts['kernel']}, "
            f"{facts['perf'] or 'without perf'}, {facts['seconds']:g} s each at {facts['hz']} Hz, "
            f"load average before the run {facts['load_before']:.1f}")


def shortfalls(rows, seconds):
    """(load, what is wrong) for every row that misses what is demanded of it."""
    found = []
    for row in rows:
        if "skipped" in row:
            continue
        cairn = row["cairn"]
        value = cairn["allowed"]
        if cairn["samples"] < LEAST_PER_SECOND * seconds:
            found.append((row, f"only {cairn['samples']} samples"))
        elif value < row["least"]:
            found.append((row, f"{percent(value)} % whole, {row['least']:g} % demanded"))
    return found


def print_examples(title, examples):
    if not examples:
        return
    print(f"  {title}")
    for text, count in examples:
        print(f"    {count:6} {text}")


def print_shortfalls(found):
    for row, what in found:
        print(f"\n{row['load']}: {what}")
        print_examples("cut most often:", row["cairn"]["examples"])


def print_disagreements(rows, verbose):
    """Stacks that cairn calls whole although their outermost function is not known as one."""
    for row in rows:
        if "skipped" in row:
            continue
        count = row["cairn"]["roots"].get("not whole", 0)
        if count:
            print(f"\n{row['load']}: {count} stacks are whole by cairn, and their outermost function is none of the known ones")
            if verbose:
                print_examples("most often:", row["cairn"]["disagree"])


def print_notes(rows):
    for row in rows:
        notes = row.get("notes", [])
        if notes:
            print(f"{row['load']}: " + "; ".join(notes))
