# SPDX-License-Identifier: Apache-2.0
"""Work with numpy for ever: C code that calls Python back, and the hand-written machine code of a BLAS in two threads."""
import threading

import numpy

RANDOM = numpy.random.default_rng(1)


def curve(x):
    return x * x - 0.5 if x > 0.3 else -x


def spread(row):
    return float(numpy.percentile(row, 90) - numpy.percentile(row, 10))


def called_back():
    table = RANDOM.random((60, 80))
    return numpy.vectorize(curve)(table).sum() + numpy.apply_along_axis(spread, 1, table).max()


def solved():
    table = RANDOM.random((220, 220))
    return numpy.linalg.svd(table @ table.T, compute_uv=False)[0] + numpy.linalg.inv(table)[0, 0]


def transformed():
    signal = RANDOM.random(1 << 14)
    found = numpy.fft.irfft(numpy.fft.rfft(signal) * numpy.linspace(1, 0, len(signal) // 2 + 1))
    return numpy.sort(found)[::7].cumsum()[-1] + numpy.einsum("i,i->", found, signal)


class Kept(numpy.ndarray):
    """An array that is told of each operation on it, in Python."""

    def __array_finalize__(self, source):
        self.made = getattr(source, "made", 0) + 1

    def __array_ufunc__(self, ufunc, method, *inputs, **more):
        plain = [one.view(numpy.ndarray) if isinstance(one, Kept) else one for one in inputs]
        return getattr(ufunc, method)(*plain, **more)


def told():
    array = RANDOM.random(4000).view(Kept)
    for _ in range(20):
        array = numpy.sqrt(array * array + 1).view(Kept)
    return array.made


def work():
    while True:
        for one in (called_back, solved, transformed, told):
            one()


if __name__ == "__main__":
    threading.Thread(target=work, daemon=True).start()
    work()
