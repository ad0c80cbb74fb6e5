# SPDX-License-Identifier: Apache-2.0
# needs: 2.7
# quick: 3.12 3.14
"""Methods that C code calls, one inside the other; with, try, except and finally; a destructor."""
from expect import LONG, pause, tell


class Deleted(object):
    def __del__(self):
        tell(1)
        while True: pause(LONG)


class Chain(object):
    @property
    def first(self):
        return self.not_there

    def __getattr__(self, name):
        return [1, 2].index(self)

    def __eq__(self, other):
        return {self: 1}

    def __hash__(self):
        return len(self)

    def __len__(self):
        return self[1]

    def __getitem__(self, key):
        return str(self)

    def __str__(self):
        for _ in self:
            pass

    def __iter__(self):
        return self() and None

    def __call__(self):
        with self:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *what):
        return self < 1

    def __lt__(self, other):
        try:
            raise ValueError("first")
        except ValueError:
            try:
                raise KeyError("second")
            finally:
                last()


def last():
    gone = Deleted()
    del gone


Chain().first
