# SPDX-License-Identifier: Apache-2.0
# needs: 3.5
# quick: all
# imports: asyncio
"""asyncio: tasks gathered by a task, one of them is running, others wait."""
import asyncio

from expect import LONG, pause, tell


async def waits(seconds):
    await asyncio.sleep(seconds)


async def innermost():
    await asyncio.sleep(0.01)
    tell(1)
    while True: pause(LONG)


async def middle():
    await innermost()


async def nested():
    await asyncio.gather(middle(), waits(1000))


async def main():
    await asyncio.gather(waits(2000), nested())


loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
loop.run_until_complete(main())
