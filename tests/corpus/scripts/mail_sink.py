"""An SMTP server of aiosmtpd's that puts mail into a queue; whoever delivers it works, or has died."""
import asyncio
import sys

from aiosmtpd.smtp import SMTP

form, port = sys.argv[1], int(sys.argv[2])
queue = asyncio.Queue()


class Handler:
    async def handle_DATA(self, server, session, envelope):
        await queue.put(envelope)
        return "250 queued"


async def deliver():
    while True:
        envelope = await queue.get()
        if form == "leaks":
            raise ConnectionError("the relay is not there")  # nobody looks at this task's outcome
        envelope.content.decode()


async def main():
    delivering = asyncio.create_task(deliver())
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(Handler()), "127.0.0.1", port)
    await server.serve_forever()
    await delivering


asyncio.run(main())
