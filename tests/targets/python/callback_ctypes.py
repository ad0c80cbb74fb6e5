# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# imports: ctypes
"""Python called by a C library that was called by Python: qsort through ctypes."""
import ctypes

from expect import LONG, pause, tell

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
libc = ctypes.CDLL(None)


def rest(left, right):
    tell(1)
    while True: pause(LONG)


def sort(compare):
    numbers = (ctypes.c_int * 2)(2, 1)
    libc.qsort(numbers, ctypes.c_size_t(2), ctypes.c_size_t(4), COMPARE(compare))


def compare_outer(left, right):
    sort(rest)
    return 0


sort(compare_outer)
