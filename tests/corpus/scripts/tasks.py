"""asyncio: tasks that wait for an event; it comes, or it does not."""
import asyncio
import random
import sys

form, seed = sys.argv[1], int(sys.argv[2])
random.seed(seed)
tasks = set()


async def handle(event, data):
    await event.wait()
    return len(data)


async def main():
    while True:
        event = asyncio.Event()
        task = asyncio.create_task(handle(event, "x" * random.randrange(500, 4000)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if form == "steady":
            event.set()
        await asyncio.sleep(0.02 + random.random() * 0.02)


asyncio.run(main())
