# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
"""Code whose files have odd names, empty ones, and far away lines; a name of 100,000 characters."""
import sys

from expect import LONG, pause, tell

FILES = ["a file with spaces.py", "semi;colon.py", "line\nend.py", "\x1b[31mred.py", "", "<string>", "x" * 5000]
if sys.version_info[0] > 2:
    FILES += ["caf\u00e9.py", "\u4e2d\u6587/\U0001f40d.py"]


def rest():
    tell(1)
    while True: pause(LONG)


scope = {"inner": rest}
for count, name in enumerate(FILES):
    source = "\n" * (70000 * (count % 2) + 300 * count) + "def step(inner=inner):\n\n\n    return inner()\n"
    exec(compile(source, name, "exec"), scope)
    scope["inner"] = scope["step"]

long_name = "n" * 100000
exec(compile("def %s():\n    return inner()\n" % long_name, "long", "exec"), scope)
scope[long_name]()
