# SPDX-License-Identifier: Apache-2.0
# needs: 3.6
# quick: 3.6 3.9
"""Coroutines without a loop: await, async with, async for, an object with __await__."""
from expect import LONG, pause, tell


class Awaitable:
    def __await__(self):
        yield 1
        tell(1)
        while True: pause(LONG)


class Manager:
    async def __aenter__(self):
        await Awaitable()

    async def __aexit__(self, *what):
        pass


class Numbers:
    def __aiter__(self):
        return self

    async def __anext__(self):
        async with Manager():
            pass


async def loop():
    async for _ in Numbers():
        pass


async def outer():
    await loop()


def main():
    coroutine = outer()
    coroutine.send(None)
    coroutine.send(None)


main()
