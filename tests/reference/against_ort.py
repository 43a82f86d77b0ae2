#!/usr/bin/python3
"""Compares `plimsoll run` with ONNX Runtime on the random cases of the references: against_ort.py [--count N] [NAME...]

NAME is an operator or a family, as for run.py. Cases whose tensors Node cannot hold, and cases that ONNX Runtime does not take,
are counted. Exit status 77: ONNX Runtime is not here.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import harness
import run

sys.path.insert(0, os.path.join(harness.ROOT, "tools"))
import onnxruntime_npm  # noqa: E402

UNAVAILABLE = 77
NODE_TYPES = {"float32", "float64", "int8", "uint8", "bool", "int16", "uint16", "int32", "uint32", "int64", "uint64"}


def write_case(arguments, op, folder):
    """The job of one case, or why there is none."""
    if any(isinstance(t, tuple) or t.dtype.name not in NODE_TYPES for t in arguments["inputs"] if t is not None):
        return "a type that Node lacks"
    if any(t.size == 0 for t in arguments["inputs"] if t is not None):
        return "an empty tensor, for which ONNX Runtime often answers with memory that it never wrote"
    model, given = harness.one_node_model(op, arguments["inputs"], arguments.get("attrs") or {}, arguments.get("outputs", 1),
                                          arguments.get("opset", harness.DEFAULT_OPSET), arguments.get("domain", ""), (), False, None)
    os.mkdir(folder)
    inputs = []
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model)
    for name, tensor in given.items():
        path = os.path.join(folder, name)
        np.ascontiguousarray(tensor).tofile(path)
        inputs.append({"name": name, "type": tensor.dtype.name, "dims": list(tensor.shape), "file": path})
    return {"model": os.path.join(folder, "model.onnx"), "directory": folder, "inputs": inputs}


def ask(jobs, folder):
    """Answers to all jobs. One that ends the process is asked alone, and has no answer."""
    if not jobs:
        return []
    try:
        return ask_together(jobs, folder)
    except subprocess.CalledProcessError as problem:
        if len(jobs) == 1:
            return [{"error": f"ONNX Runtime died with status {problem.returncode}"}]
        half = len(jobs) // 2
        return ask(jobs[:half], folder) + ask(jobs[half:], folder)


def ask_together(jobs, folder):
    path = os.path.join(folder, "job.json")
    with open(path, "w") as file:
        json.dump({"cases": jobs}, file)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "against_ort.js")
    done = subprocess.run(["node", script, path], env=onnxruntime_npm.environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def difference(op, arguments, answer):
    found, types = harness.case(op, with_types=True, **arguments)
    for i, output in enumerate(answer["outputs"]):
        expected = np.fromfile(output["file"], output["type"]).reshape(output["dims"])
        problem = harness.compare(found[i], types[i], expected, arguments.get("rtol"), arguments.get("atol", 0.0))
        if problem:
            return f"output {i}: {problem} (ONNX Runtime)"
    return None


def compare_operator(op, generator, count, seed):
    """Prints what differs; gives how many cases agree, differ, and were not compared, and why."""
    agree = differ = 0
    reasons = {}
    with tempfile.TemporaryDirectory() as folder:
        jobs, kept = [], []
        for index in range(count):
            arguments = generator(np.random.default_rng([seed, index]))
            job = write_case(arguments, op, os.path.join(folder, str(index)))
            if isinstance(job, str):
                reasons[job] = reasons.get(job, 0) + 1
            else:
                jobs.append(job)
                kept.append((index, arguments))
        for (index, arguments), answer in zip(kept, ask(jobs, folder)):
            if "error" in answer:
                reason = answer["error"].replace(jobs[0]["model"].split("/0/")[0], "")[-160:]
                reasons[reason] = reasons.get(reason, 0) + 1
                continue
            try:
                problem = difference(op, arguments, answer)
            except harness.Refused as error:
                problem = f"refused: {error}"
            agree, differ = agree + (problem is None), differ + (problem is not None)
            if problem:
                print(f"{op} case {index} seed {seed} ({harness.describe(arguments)}): {problem}", file=sys.stderr)
    return agree, differ, reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    try:
        onnxruntime_npm.ensure()
    except onnxruntime_npm.Unavailable as problem:
        print(f"skipped: {problem}")
        return UNAVAILABLE
    run.load_families()
    failed = 0
    for name, op, _, generator, family in harness.REFERENCES:
        if not run.wanted(options.names, name, op, family):
            continue
        with np.errstate(all="ignore"):
            agree, differ, reasons = compare_operator(op, generator, options.count, options.seed)
        failed += differ
        left = "; ".join(f"{number} not compared: {reason}" for reason, number in reasons.items())
        print(f"{name}: {agree} agree, {differ} differ{'; ' + left if left else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
