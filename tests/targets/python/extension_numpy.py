# SPDX-License-Identifier: Apache-2.0
# needs: 3.5
# imports: numpy
"""numpy: machine code under Python, and Python called back by numpy."""
import threading

import numpy

import expect
from expect import LONG, pause, tell

MATRIX = numpy.ones((300, 300))


def multiplies():
    tell(1)
    while True: MATRIX.dot(MATRIX)


def for_each(value):
    tell(1)
    while True: pause(LONG)


expect.threads(2)
thread = threading.Thread(target=multiplies, name="multiplies")
thread.daemon = True
thread.start()
numpy.apply_along_axis(for_each, 0, MATRIX)
