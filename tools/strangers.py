#!/usr/bin/python3
"""strangers.py FILE...: models that nobody chose, here and in ONNX Runtime (npm's, for Node), on random inputs that it accepts.

FILE is a model, a folder that is searched for *.onnx, or a text file with a path on each line. Prints a line for every model that does
not agree: refused here though ONNX Runtime runs it, other answers, or ended by a signal. Random operators differ, of course, and models
whose answer hangs on one rounding. Run on 36 models of npm packages, 859 of ONNX Runtime's tests and 1,225 of OpenCV's: docs/conformance.md.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "reference"))
import onnxruntime_npm  # noqa: E402
from model_file import encode_value  # noqa: E402

PLIMSOLL = ROOT / "build" / "plimsoll"
SECONDS = 300
TOLERANCE = {2: 5e-3, 4: 3e-4, 8: 1e-6}  # of the largest value, by bytes of a float


def models_of(arguments):
    for argument in map(pathlib.Path, arguments):
        if argument.is_dir():
            yield from sorted(argument.rglob("*.onnx"))
        elif argument.suffix == ".onnx":
            yield argument
        else:
            yield from map(pathlib.Path, argument.read_text().split("\n")[:-1])


def array_of(tensor):
    if tensor["type"] == "string":
        with open(tensor["file"], encoding="utf-8") as file:
            return np.array(json.load(file), object).reshape(tensor["dims"])
    return np.fromfile(tensor["file"], tensor["type"]).reshape(tensor["dims"])


def difference(found, expected):
    if found.shape != expected.shape:
        return f"shape {found.shape}, there {expected.shape}"
    if expected.dtype.kind == "O":
        return None if [str(s) for s in found.ravel()] == expected.ravel().tolist() else "other strings"
    if expected.dtype.kind != "f":
        count = int((found != expected).sum())
        return f"{count} of {found.size} integers differ" if count else None
    if not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return "other elements are finite"
    finite = np.isfinite(expected)
    apart = np.abs(found[finite].astype(float) - expected[finite]).max(initial=0)
    apart /= max(np.abs(expected[finite].astype(float)).max(initial=0), 1e-3)
    return f"{apart:.2g} of the largest value" if apart > TOLERANCE[expected.dtype.itemsize] else None


def run_here(model, answer, folder):
    """None if it agrees."""
    arguments = [str(PLIMSOLL), "run", model, "--output", str(folder / "here")]
    for k, tensor in enumerate(answer.get("inputs", [])):
        (folder / f"{k}.pb").write_bytes(encode_value(tensor["name"], array_of(tensor)))
        arguments += ["--input", f"{tensor['name']}={folder / f'{k}.pb'}"]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS} s"
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    if answer["outcome"] != "ok":
        return None  # there is nothing to compare with
    if done.returncode:
        return done.stderr.strip()[-300:]
    for k, tensor in enumerate(answer["outputs"]):
        problem = difference(np.load(folder / "here" / f"{k}.npy"), array_of(tensor))
        if problem:
            return f"output '{tensor['name']}': {problem}"
    return None


def answers_of(models, folder, exact=True):
    """Of every model; a new process of Node after one that died. `exact`: integers are multiplied without saturation on every machine
    (by a rewrite of ONNX Runtime's that fails on some models that share a weight)."""
    at = 0
    while at < len(models):
        place = folder / str(at)
        place.mkdir()
        (place / "list").write_text("".join(f"{m}\n" for m in models[at:]))
        command = ["node", str(ROOT / "tools/ort/probe.js"), str(place / "list"), str(place), *(["exact"] if exact else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=onnxruntime_npm.environment()) as process:
            for k, line in enumerate(process.stdout):
                yield json.loads(line), place / str(k)
                at += 1
        if at < len(models):
            yield {"model": models[at], "outcome": "died", "error": "ONNX Runtime ended the process"}, place
            at += 1


def main():
    onnxruntime_npm.ensure()
    models = [str(m.resolve()) for m in models_of(sys.argv[1:])]
    compared = differ = 0
    with tempfile.TemporaryDirectory() as folder:
        for answer, place in answers_of(models, pathlib.Path(folder)):
            problem = run_here(answer["model"], answer, place)
            compared += answer["outcome"] == "ok"
            differ += problem is not None
            if problem:
                print(f"{answer['model']}: {problem}", flush=True)
            if answer["outcome"] != "died":
                subprocess.run(["rm", "-r", str(place)], check=True)
    print(f"{len(models)} models, {compared} run by ONNX Runtime, {differ} to look at")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
