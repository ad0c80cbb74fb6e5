# SPDX-License-Identifier: Apache-2.0
# needs: 3.6
# quick: 3.13
"""Asynchronous generators and comprehensions."""
from expect import LONG, pause, tell


async def numbers():
    yield 1
    tell(1)
    while True: pause(LONG)


async def outer():
    return [number async for number in numbers()]


def main():
    outer().send(None)


main()
