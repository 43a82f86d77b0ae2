"""A FastAPI service whose reports are remembered by functools: the last 200, or all."""
import functools
import random
import sys

import uvicorn
from fastapi import FastAPI

form, port = sys.argv[1], int(sys.argv[3])
app = FastAPI()


@functools.lru_cache(maxsize=None if form == "leaks" else 200)
def report(number: int):
    chance = random.Random(number)
    return [{"row": i, "value": chance.random(), "text": f"report {number}, row {i}"} for i in range(25)]


@app.get("/{number}")
async def read(number: int):
    rows = report(number)
    return {"number": number, "sum": sum(row["value"] for row in rows)}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)
