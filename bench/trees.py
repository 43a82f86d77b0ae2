#!/usr/bin/python3
"""trees.py [--threads N] [--seconds S] [--rounds R]: ensembles of trees against ONNX Runtime (the Node package).

100 full trees of depth 8 on 50 features, as regressor with one target and as classifier with ten classes, batches of 1 and
1,000. What a run of a model that does nothing takes in Node is told, and taken off ONNX Runtime's times. One row takes less
than Node's own time varies by: there, a model has several ensembles side by side, and a share of its time is told. The two
take turns; the least time of all rounds counts.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "reference")]
import onnxruntime_npm  # noqa: E402
from model_file import Graph, Node, encode_model  # noqa: E402

TREES, DEPTH, FEATURES = 100, 8, 50
COPIES = {1: 8, 1000: 1}  # ensembles in a model, by batch


def forest(rng, targets):
    """Attributes of a full forest; every leaf has a weight for every target."""
    inner, leaves = 2 ** DEPTH - 1, 2 ** DEPTH
    count = inner + leaves
    ids = np.arange(count)
    is_leaf = ids >= inner
    one = {"treeids": ids * 0, "nodeids": ids, "truenodeids": np.where(is_leaf, 0, 2 * ids + 1),
           "falsenodeids": np.where(is_leaf, 0, 2 * ids + 2)}
    attrs = {f"nodes_{name}": [int(v) for _ in range(TREES) for v in values] for name, values in one.items()}
    attrs["nodes_treeids"] = [t for t in range(TREES) for _ in range(count)]
    attrs["nodes_modes"] = ["LEAF" if leaf else "BRANCH_LEQ" for _ in range(TREES) for leaf in is_leaf]
    attrs["nodes_featureids"] = [int(v) for v in rng.integers(0, FEATURES, TREES * count)]
    attrs["nodes_values"] = [float(v) for v in rng.normal(size=TREES * count).astype(np.float32)]
    prefix = "target" if targets == 1 else "class"
    attrs[f"{prefix}_treeids"] = [t for t in range(TREES) for _ in range(leaves * targets)]
    attrs[f"{prefix}_nodeids"] = [int(inner + leaf) for _ in range(TREES) for leaf in range(leaves) for _ in range(targets)]
    attrs[f"{prefix}_ids"] = [c for _ in range(TREES * leaves) for c in range(targets)]
    attrs[f"{prefix}_weights"] = [float(v) for v in rng.uniform(0, 1, TREES * leaves * targets).astype(np.float32)]
    return attrs


def model(name, batch, copies=1):
    rng = np.random.default_rng(0)
    x = [("x", "float", [batch, FEATURES])]
    nodes, parts, columns = [], [], FEATURES
    for i in range(copies):
        parts.append(f"y{i}")
        if name == "regressor":
            columns = 1
            nodes.append(Node("TreeEnsembleRegressor", ["x"], [parts[i]], {**forest(rng, 1), "n_targets": 1}, "ai.onnx.ml"))
        elif name == "classifier":
            columns = 10
            attrs = {**forest(rng, 10), "classlabels_int64s": list(range(10))}
            nodes.append(Node("TreeEnsembleClassifier", ["x"], [f"l{i}", parts[i]], attrs, "ai.onnx.ml"))
        else:
            nodes.append(Node("Identity", ["x"], [parts[i]]))
    if copies == 1:
        nodes[0].outputs[-1] = "y"
    else:
        nodes.append(Node("Concat", parts, ["y"], {"axis": 1}))
    graph = Graph(nodes, x, [("y", "float", [batch, columns * copies])])
    return encode_model(graph, {"": 15, "ai.onnx.ml": 3}, ir_version=8)


def ours(path, threads, seconds, data):
    done = subprocess.run([os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll")), "bench", path, "--json", "--threads", str(threads), "--seconds",
                           str(seconds), "--input", f"x={data}.npy"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def theirs(folder, path, threads, seconds, data, batch):
    job = {"model": path, "threads": threads, "seconds": seconds,
           "inputs": [{"name": "x", "type": "float32", "dims": [batch, FEATURES], "file": f"{data}.raw"}]}
    (folder / "job.json").write_text(json.dumps(job))
    done = subprocess.run(["node", "--expose-gc", str(ROOT / "bench" / "ort.js"), str(folder / "job.json")], check=True,
                          capture_output=True, text=True, env=onnxruntime_npm.environment())
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    onnxruntime_npm.ensure()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for batch in [1, 1000]:
            data = str(folder / "x")
            x = np.random.default_rng(1).normal(size=[batch, FEATURES]).astype(np.float32)
            np.save(f"{data}.npy", x)
            x.tofile(f"{data}.raw")
            copies = COPIES[batch]
            paths = {kind: str(folder / f"{kind}.onnx") for kind in ["nothing", "regressor", "classifier"]}
            for kind, path in paths.items():
                pathlib.Path(path).write_bytes(model(kind, batch, 1 if kind == "nothing" else copies))
            us, them = collections.defaultdict(list), collections.defaultdict(list)
            for _ in range(options.rounds):
                for kind, path in paths.items():
                    them[kind].append(theirs(folder, path, options.threads, options.seconds, data, batch)["min_ms"])
                    us[kind].append(ours(path, options.threads, options.seconds, data)["min_ms"])
            print(f"batch {batch}, {options.threads} threads: a run that does nothing takes {1000 * min(them['nothing']):.1f} us in "
                  f"Node, {1000 * min(us['nothing']):.2f} us here")
            for kind in ["regressor", "classifier"]:
                mine, net = min(us[kind]) / copies, (min(them[kind]) - min(them["nothing"])) / copies
                print(f"  {kind}: {1000 * mine:.2f} us, ONNX Runtime {1000 * net:.2f} us, ratio {mine / net:.2f}"
                      + (f" (each of {copies} side by side)" if copies > 1 else ""), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
