# SPDX-License-Identifier: Apache-2.0
"""The interpreter is being taken down, and an object that goes with it runs code: until the end of input."""
import os
import sys


class Last(object):
    def __del__(self, read=os.read, write=os.write):
        write(1, b"ready\n")
        read(0, 1)


sys.last = Last()
