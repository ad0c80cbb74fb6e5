# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# quick: all
"""Functions that C code calls, one inside the other: sorted, reduce, re.sub, map, filter, json, max."""
import functools
import json
import re

from expect import LONG, pause, tell


def rest(value):
    tell(1)
    while True: pause(LONG)


def default(value):
    return max([1, 2], key=rest)


def encode(value):
    return json.dumps({"a": [value]}, default=default)


def each(value):
    return list(filter(encode, [object()]))


def replace(match):
    return list(map(each, [1]))


def combine(left, right):
    return re.sub("a", replace, "banana")


def key(value):
    return functools.reduce(combine, [1, 2])


sorted([3, 1, 2], key=functools.partial(key))
