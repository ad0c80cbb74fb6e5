#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bring the table of system calls up to a newer kernel's: syscalls.py TABLE [HEADER].

HEADER is the kernel's <asm/unistd_64.h>. What it has and the table lacks is added, with no descriptor; which argument is
one has to be seen in the kernel's source or in /sys/kernel/tracing/events/syscalls, and is written by hand. Rows that the
table has and the header does not are newer than the header, and stay. A number or name that contradicts the header is
refused.
"""
import re
import sys

ROW = re.compile(r'^SYSCALL\((\w+), *(\d+), *(-?\d+), *("[^"]*")\)$', re.M)
DEFINE = re.compile(r"^#define __NR_(\w+)\s+(\d+)$", re.M)
DEBIAN = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"


def row(name, number, descriptor, word):
    return f"SYSCALL({name + ',':<24} {number + ',':<5} {descriptor + ',':<3} {word})"


def main(table_path, header_path=DEBIAN):
    with open(table_path, encoding="ascii") as file:
        text = file.read()
    with open(header_path, encoding="ascii") as file:
        wanted = dict((number, name) for name, number in DEFINE.findall(file.read()))
    rows = {number: (name, number, descriptor, word) for name, number, descriptor, word in ROW.findall(text)}
    for number, name in wanted.items():
        if rows.setdefault(number, (name, number, "-1", '""'))[0] != name:
            sys.exit(f"{number} is {name} in {header_path} and {rows[number][0]} in {table_path}")
    head = text[: ROW.search(text).start()]
    lines = [row(*rows[number]) for number in sorted(rows, key=int)]
    with open(table_path, "w", encoding="ascii") as file:
        file.write(head + "\n".join(lines) + "\n")
    print(f"{table_path}: {len(rows)} system calls, of which {header_path} has {len(wanted)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
