# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# imports: zlib
"""Threads inside C extensions that let go of the GIL: zlib and hashlib with large buffers."""
import hashlib
import threading
import zlib

import expect
from expect import tell

DATA = b"0123456789abcdef" * (1 << 20)


def compresses():
    tell(1)
    while True: zlib.compress(DATA, 6)


def hashes():
    tell(1)
    while True: hashlib.sha256(DATA)


expect.threads(2)
thread = threading.Thread(target=compresses, name="compresses")
thread.daemon = True
thread.start()
hashes()
