# SPDX-License-Identifier: Apache-2.0
# needs: 3.8
# quick: 3.13
"""Names that nobody wrote for a terminal: not ASCII, separators, line ends, escape sequences, halves of characters."""
from expect import LONG, pause, tell

NAMES = [
    "spaces and (parentheses) [brackets]",
    "semi;colon; and 7",
    "line\nend\r\n\ttab",
    "\x1b[31mred\x1b[0m \x07",
    "nul\x00inside",
    "caf\u00e9",                # one byte a character inside the interpreter
    "\u03bb\u4e2d\u6587",       # two
    "\U0001f40d snake",         # four
    "\u202ereversed",
    "half \ud83d of a pair",
]


def rest():
    tell(1)
    while True: pause(LONG)


def call(function):
    return function()


function = rest
for name in NAMES:
    def function(inner=function):
        return inner()
    more = {"co_qualname": name} if hasattr(function.__code__, "co_qualname") else {}
    # NUL cannot be in the name of a file that a program opens, but a code object may hold it.
    function.__code__ = function.__code__.replace(co_name=name, co_filename="/srv/" + name + ".py", **more)
call(function)
