"""Measurements for subscribers by websockets. A queue stands before each of them: of 100, whose oldest go, or without a bound
for one who reads nothing."""
import asyncio
import json
import random
import sys

import websockets

form, seed, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
queues = set()


async def serve(socket):
    queue = asyncio.Queue(0 if form == "leaks" else 100)
    queues.add(queue)
    try:
        while True:
            await socket.send(await queue.get())
    except websockets.ConnectionClosed:
        pass
    finally:
        queues.discard(queue)


async def measure():
    while True:
        for queue in queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(json.dumps({"values": [chance.random() for _ in range(chance.randrange(50, 350))]}))
        await asyncio.sleep(0.03 * chance.uniform(0.7, 1.4))


async def main():
    async with websockets.serve(serve, "127.0.0.1", port, ping_interval=None, compression=None, write_limit=2**14):
        await measure()


asyncio.run(main())
