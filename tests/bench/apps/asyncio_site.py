# SPDX-License-Identifier: Apache-2.0
"""asyncio_site.py PORT LOOP: a site with aiohttp on the event loop of asyncio or of uvloop."""
import asyncio
import json
import sys

from aiohttp import web

DOCUMENT = {"rows": [{"id": n, "name": f"row {n}", "value": n / 3} for n in range(150)]}


async def part(number, depth):
    if depth:
        return await part(number, depth - 1) + 1
    await asyncio.sleep(0)
    return sum(json.loads(json.dumps(DOCUMENT))["rows"][number]["id"] for _ in range(2))


async def numbers():
    for number in range(5):
        yield number, await part(number, 4)


async def gathered(request):
    found = await asyncio.gather(*(part(number, 6) for number in range(8)))
    return web.json_response(found)


async def iterated(request):
    return web.json_response([number async for number in numbers()])


async def in_thread(request):
    found = await asyncio.get_running_loop().run_in_executor(None, json.dumps, DOCUMENT)
    return web.Response(text=found, content_type="application/json")


def main():
    app = web.Application()
    app.add_routes([web.get("/gathered", gathered), web.get("/iterated", iterated), web.get("/thread", in_thread)])
    if sys.argv[2] == "uvloop":
        import uvloop
        uvloop.install()
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None,
                loop=asyncio.new_event_loop())


if __name__ == "__main__":
    main()
