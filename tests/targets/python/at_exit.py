# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
"""The program has ended, the interpreter has not: a function registered with atexit."""
import atexit

from expect import LONG, pause, tell


@atexit.register
def last():
    tell(1)
    while True: pause(LONG)
