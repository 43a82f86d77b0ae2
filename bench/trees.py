#!/usr/bin/python3
"""trees.py [--threads N] [--seconds S]: ensembles of trees against ONNX Runtime (the Node package).

100 full trees of depth 8 on 50 features, as regressor with one target and as classifier with ten classes, batches of 1 and
1,000. What a run of a model that does nothing takes in Node is told, and taken off ONNX Runtime's times.
"""
import argparse
import json
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


def model(name, batch):
    rng = np.random.default_rng(0)
    x = [("x", "float", [batch, FEATURES])]
    if name == "nothing":
        graph = Graph([Node("Identity", ["x"], ["y"])], x, [("y", "float", [batch, FEATURES])])
    elif name == "regressor":
        graph = Graph([Node("TreeEnsembleRegressor", ["x"], ["y"], {**forest(rng, 1), "n_targets": 1}, "ai.onnx.ml")], x,
                      [("y", "float", [batch, 1])])
    else:
        attrs = {**forest(rng, 10), "classlabels_int64s": list(range(10))}
        graph = Graph([Node("TreeEnsembleClassifier", ["x"], ["l", "y"], attrs, "ai.onnx.ml")], x,
                      [("l", "int64", [batch]), ("y", "float", [batch, 10])])
    return encode_model(graph, {"": 15, "ai.onnx.ml": 3}, ir_version=8)


def ours(path, threads, seconds, data):
    done = subprocess.run([str(ROOT / "build" / "plimsoll"), "bench", path, "--json", "--threads", str(threads), "--seconds",
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
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    onnxruntime_npm.ensure()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for batch in [1, 1000]:
            data = str(folder / "x")
            x = np.random.default_rng(1).normal(size=[batch, FEATURES]).astype(np.float32)
            np.save(f"{data}.npy", x)
            x.tofile(f"{data}.raw")
            nothing = None
            for kind in ["nothing", "regressor", "classifier"]:
                path = str(folder / f"{kind}.onnx")
                pathlib.Path(path).write_bytes(model(kind, batch))
                them = theirs(folder, path, options.threads, options.seconds, data, batch)
                if kind == "nothing":
                    nothing = them
                    print(f"batch {batch}, {options.threads} threads: a run in Node takes {them['min_ms'] * 1000:.0f} us by itself")
                    continue
                us = ours(path, options.threads, options.seconds, data)
                net = {k: them[k] - nothing[k] for k in ["min_ms", "median_ms"]}
                print(f"  {kind}: " + ", ".join(
                    f"{k[:-3]} {us[k] * 1000:.1f} us, ONNX Runtime {net[k] * 1000:.1f} us, ratio {us[k] / net[k]:.2f}" for k in net))
    return 0


if __name__ == "__main__":
    sys.exit(main())
