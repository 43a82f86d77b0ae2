"""A WSGI application; FORM=leaks: it keeps what it saw of every request 'for debugging'."""
import json
import os

SEEN = []


def application(environ, start_response):
    body = json.dumps([{"path": environ["PATH_INFO"], "i": i, "text": "x" * 60} for i in range(40)])
    if os.environ["FORM"] == "leaks":
        SEEN.append(json.loads(body)[:12])
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body.encode()]
