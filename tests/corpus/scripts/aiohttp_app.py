"""A client's state by connection, taken out when the request is done, or not."""
import sys

from aiohttp import web

form, port = sys.argv[1], int(sys.argv[2])
states = {}


async def page(request):
    states[id(request)] = {"path": request.path, "request": request, "rows": [f"{request.path} {i}" * 3 for i in range(20)]}
    text = "\n".join(states[id(request)]["rows"])
    if form == "steady":
        del states[id(request)]
    return web.Response(text=text)


app = web.Application()
app.router.add_get("/{tail:.*}", page)
web.run_app(app, host="127.0.0.1", port=port, print=None)
