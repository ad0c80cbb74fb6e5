# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
"""The main thread is through and waits for another one."""
import threading

from expect import LONG, pause, tell


def rest():
    tell(1)
    while True: pause(LONG)


threading.Thread(target=rest, name="still there").start()
