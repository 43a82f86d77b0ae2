#!/usr/bin/env python3
"""Load times against nodes: bench/load_times.py [--nodes 1000,10000,50000] [--shapes chain,wide,...] [--json FILE]

Writes models of four shapes (a chain; wide into a Concat; many small initializers; many bodies), runs each once through
`build/plimsoll run` and prints time per node, what was told, and what the process had in anonymous memory at its peak
beyond a model of one node.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "reference"))
import numpy as np  # noqa: E402

from model_file import Graph, Node, encode_model  # noqa: E402

X = ("x", "float", [16])
CONDITION = ("c", "bool", [])


def chain(count):
    nodes, last = [], "x"
    for i in range(count):
        nodes.append(Node("Tanh" if i % 2 else "Sigmoid", [last], [f"v{i}"]))
        last = f"v{i}"
    return Graph(nodes, [X], [last])


def wide(count):
    """Values that differ, all alive at the Concat, whose pieces do not lie one behind the other."""
    nodes = [Node("Mul", ["x", f"w{i % 100}"], [f"v{i}"]) if i < 100 else Node("Tanh", [f"v{i - 100}"], [f"v{i}"])
             for i in range(count)]
    nodes.append(Node("Concat", [f"v{i}" for i in range(count)], ["y"], {"axis": 1}))
    weights = {f"w{i}": np.full(1, i, np.float32) for i in range(100)}
    return Graph(nodes, [("x", "float", [4, 4])], ["y"], weights)


def initializers(count):
    nodes, last, weights = [], "x", {}
    for i in range(count):
        weights[f"w{i}"] = np.full(16, i, np.float32)
        nodes.append(Node("Add", [last, f"w{i}"], [f"a{i}"]))
        nodes.append(Node("Tanh", [f"a{i}"], [f"v{i}"]))
        last = f"v{i}"
    return Graph(nodes, [X], [last], weights)


def bodies(count):
    nodes, last = [], "x"
    for i in range(count // 3):
        branch = lambda op, name, value=last: Graph([Node(op, [value], [name])], [], [(name, "float", [16])])
        nodes.append(Node("If", ["c"], [f"v{i}"],
                          {"then_branch": branch("Tanh", f"t{i}"), "else_branch": branch("Sigmoid", f"e{i}")}))
        last = f"v{i}"
    return Graph(nodes, [X, CONDITION], [last])


SHAPES = {"chain": chain, "wide": wide, "initializers": initializers, "bodies": bodies}


def measure(path, command, timeout):
    """Processor time, the report, and the anonymous peak from /proc (sampled: a run of seconds has many samples)."""
    start, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([command, "run", path, "--json", "--threads", "1"], stdout=out)
        anonymous = 0
        while process.poll() is None:
            try:
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                anonymous = max(anonymous, next((int(line.split()[1]) * 1024 for line in status.splitlines()
                                                 if line.startswith("RssAnon")), 0))
            except OSError:
                pass
            if time.monotonic() - start > timeout:
                process.kill()
                process.wait()
                return None
            time.sleep(0.002)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        elapsed = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        out.seek(0)
        return {"seconds": elapsed, "anonymous": anonymous, **json.loads(out.read())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="1000,10000,50000")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--json")
    options = parser.parse_args()
    command = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        pathlib.Path(path).write_bytes(encode_model(chain(1), {"": 17}, 8))
        base = measure(path, command, 60)["anonymous"]
        print(f"{'shape':14}{'nodes':>8}{'seconds':>10}{'us/node':>10}{'told MB':>10}{'ledger MB':>11}{'anonymous MB':>14}")
        for name in options.shapes.split(","):
            for count in map(int, options.nodes.split(",")):
                pathlib.Path(path).write_bytes(encode_model(SHAPES[name](count), {"": 17}, 8))
                found = measure(path, command, options.timeout)
                if found is None:
                    print(f"{name:14}{count:>8}  over {options.timeout} s", flush=True)
                    continue
                rows.append({"shape": name, "nodes": count, "seconds": found["seconds"],
                             "predicted_bytes": found["predicted_bytes"], "measured_bytes": found["measured_bytes"],
                             "anonymous_bytes": found["anonymous"] - base})
                row = rows[-1]
                print(f"{name:14}{count:>8}{row['seconds']:>10.2f}{1e6 * row['seconds'] / count:>10.1f}"
                      f"{row['predicted_bytes'] / 1e6:>10.1f}{row['measured_bytes'] / 1e6:>11.1f}"
                      f"{row['anonymous_bytes'] / 1e6:>14.1f}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
