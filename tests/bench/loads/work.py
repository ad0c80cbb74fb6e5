# SPDX-License-Identifier: Apache-2.0
"""Calls, classes, generators, regular expressions, JSON, sorting and compression, until it is stopped."""
import json
import re
import zlib


class Node:
    def __init__(self, value):
        self.value, self.left, self.right = value, None, None

    def add(self, value):
        side = "left" if value < self.value else "right"
        child = getattr(self, side)
        if child:
            child.add(value)
        else:
            setattr(self, side, Node(value))

    def walk(self):
        if self.left:
            yield from self.left.walk()
        yield self.value
        if self.right:
            yield from self.right.walk()


def trees(seed):
    root = Node(500)
    for i in range(300):
        root.add((seed * 7919 + i * 104729) % 1009)
    return sum(root.walk())


def texts(seed):
    rows = [{"id": i, "name": f"row {i * seed}", "tags": [i, str(i)]} for i in range(200)]
    text = json.dumps(rows, indent=1)
    back = [row for row in json.loads(text) if re.search(r"row \d*[05]$", row["name"])]
    back.sort(key=lambda row: row["name"])
    return len(re.sub(r'"id": (\d+)', lambda match: match.group(1), text)) + len(back)


def main():
    total = 0
    while total != -1:
        total += trees(total % 1000) + texts(total % 1000) + zlib.crc32(zlib.compress(str(total).encode() * 2000))


main()
