# SPDX-License-Identifier: Apache-2.0
# needs: 3.8
# quick: 3.8 3.12 3.13t 3.14
"""A thread inside a second interpreter, started by code of the first one."""
import os
import sys

import expect

try:
    import _interpreters as interpreters  # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters

SOURCE = """
import sys
sys.path.insert(0, %r)
import expect

def rest():
    expect.tell(1, OUTER)
    while True: expect.pause(expect.LONG)

def main():
    rest()

main()
"""


def run(source):
    outer = expect.frames_from(sys._getframe(0), sys._getframe(0).f_lineno + 2)
    source = source.replace("OUTER", repr(outer))
    interpreters.run_string(interpreters.create(), source)


run(SOURCE % os.path.dirname(os.path.abspath(__file__)))
