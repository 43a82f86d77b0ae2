#!/usr/bin/python3
"""A service that runs other people's snippets, and whose memory stays where it was.

    PYTHONPATH=build/python /usr/bin/python3 examples/snippet_service.py --port 8080 --preload torch
    curl -s localhost:8080/run -d '{"code": "import torch\\ny = float(torch.ones(3).sum())", "result": "y"}'
    curl -s localhost:8080/memory

Each snippet gets a fresh interpreter that was started ahead and has `--preload` imported; after it that interpreter
ends, and everything it took goes back to the system. Standard library and plimsoll only.
"""
import argparse
import http.server
import json
import math
import os
import sys

import plimsoll

MOST_REQUEST_BYTES = 1 << 20
# How a snippet may end, as HTTP.
STATUSES = [(plimsoll.RemoteError, 422, "exception"), (plimsoll.NotTransferable, 422, "result is not plain data"),
            (plimsoll.ResultTooLarge, 413, "result too large"), (plimsoll.TimeLimitExceeded, 408, "time limit"),
            (plimsoll.MemoryLimitExceeded, 507, "memory limit"), (plimsoll.Busy, 503, "busy"),
            (plimsoll.Cancelled, 503, "closing"), (plimsoll.Error, 500, "worker died")]


def jsonable(value):
    """Plain data as JSON has it: arrays as lists, bytes and very large numbers as hexadecimal digits."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [jsonable(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "tolist"):
        value = value.tolist()
        return jsonable(value) if not hasattr(value, "tolist") else float(value)  # some numbers have no other form
    if isinstance(value, int) and value.bit_length() > 1024:
        return hex(value)
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def figures(receipt):
    if receipt is None:
        return None
    return {"wall_ms": receipt.wall_ms, "cpu_ms": receipt.cpu_ms, "peak_bytes": receipt.peak_bytes,
            "limit_bytes": receipt.limit_bytes, "mechanism": receipt.mechanism, "sandbox": receipt.sandbox}


def run_snippet(pool, snippet):
    """(HTTP status, JSON) of one snippet."""
    try:
        # A full queue is told at once instead of keeping the client waiting.
        future = pool.submit_source(snippet["code"], snippet.get("inputs"), snippet.get("result"), block=False)
        result = future.result()
        value = jsonable(result.value)
        json.dumps(value)
        return 200, {"value": value, "stdout": result.stdout, "stderr": result.stderr,
                     "truncated": result.truncated, "receipt": figures(result.receipt)}
    except plimsoll.InvalidArgument as error:
        return 400, {"error": str(error)}
    except (ValueError, TypeError, RecursionError) as error:
        return 422, {"error": "result is not JSON", "message": str(error)}
    except plimsoll.Error as error:
        status, kind = next((status, kind) for type_, status, kind in STATUSES if isinstance(error, type_))
        return status, {"error": kind, "message": str(error), "stdout": getattr(error, "stdout", ""),
                        "stderr": getattr(error, "stderr", ""), "receipt": figures(getattr(error, "receipt", None))}


def memory(pool):
    sample = plimsoll.observe.read(os.getpid(), tree=False)
    process = sample["process"]
    return {"private_bytes": process["sum_bytes"] - process["shared_file_bytes"] - process["shared_memory_bytes"],
            "rss_bytes": process["rss_bytes"], "container_bytes": (sample.get("container") or {}).get("kernel_bytes"),
            "worker_pids": pool.worker_pids(), "pool": pool.statistics()}


class Handler(http.server.BaseHTTPRequestHandler):
    pool = None  # set by serve()

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/memory":
            self.reply(200, memory(self.pool))
        else:
            self.reply(404, {"error": "try POST /run or GET /memory"})

    def do_POST(self):
        try:
            size = int(self.headers.get("Content-Length", ""))
        except ValueError:
            return self.reply(411, {"error": "a Content-Length is needed"})
        if self.path != "/run" or not 0 < size <= MOST_REQUEST_BYTES:
            return self.reply(404 if self.path != "/run" else 413, {"error": f"POST /run, at most {MOST_REQUEST_BYTES} bytes"})
        try:
            snippet = json.loads(self.rfile.read(size))
            if not isinstance(snippet, dict) or "code" not in snippet:
                raise ValueError("expected an object with 'code'")
        except (ValueError, RecursionError) as error:
            return self.reply(400, {"error": str(error)})
        return self.reply(*run_snippet(self.pool, snippet))

    def log_message(self, format, *arguments):  # pylint: disable=redefined-builtin
        pass


def serve(options):
    sandbox = None
    if options.sandbox != "none":  # snippets see installed packages, and nothing of ours
        sandbox = plimsoll.Sandbox(strict=options.sandbox == "strict", own_modules=False)
    with plimsoll.Pool(options.workers, limit=options.limit, timeout=options.timeout, preload=options.preload,
                       recycle_after_jobs=1, sandbox=sandbox, plain=True, output_limit="64KiB",
                       result_limit="4MiB", processes=64) as pool:
        pool.wait_ready()
        handler = type("PoolHandler", (Handler,), {"pool": pool})
        with http.server.ThreadingHTTPServer(("127.0.0.1", options.port), handler) as server:
            print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
            server.serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8080, help="0: any free one")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", default="1GiB", help="memory of each snippet")
    parser.add_argument("--timeout", type=float, default=10, help="seconds for each snippet")
    parser.add_argument("--preload", nargs="*", default=[], help="modules that interpreters import ahead")
    parser.add_argument("--sandbox", choices=["best-effort", "strict", "none"], default="best-effort")
    try:
        serve(parser.parse_args())
    except KeyboardInterrupt:
        print("stopped", flush=True)
    except plimsoll.Error as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
