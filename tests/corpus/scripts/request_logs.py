"""A service by Bottle and Waitress whose answers carry the log of their request. It has one logger that knows the request, or
one logger for each request, with its handler; and logging forgets no logger."""
import io
import logging
import sys
import uuid

import bottle
import waitress

form, port = sys.argv[1], int(sys.argv[3])
app = bottle.Bottle()
common = logging.getLogger("shop")
common.setLevel(logging.INFO)
common.propagate = False


@app.get("/<number>")
def read(number):
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    if form == "leaks":
        logger = logging.getLogger(f"shop.request.{uuid.uuid4()}")
        logger.propagate = False
        logger.setLevel(logging.INFO)
    else:
        logger = common
    logger.addHandler(handler)
    for step in range(int(number) % 40 + 20):
        logger.info("step %d of %s: %s", step, number, "took its time " * 3)
    if form == "steady":
        logger.removeHandler(handler)
    return text.getvalue()


waitress.serve(app, host="127.0.0.1", port=port, threads=1, _quiet=True)
