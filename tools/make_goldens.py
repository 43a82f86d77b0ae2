#!/usr/bin/python3
"""make_goldens.py [NAME...]

Asks ONNX Runtime for the answers of the models in the cache, and keeps questions and answers in ONNX's test layout:
${PLIMSOLL_CACHE:-~/.cache/plimsoll}/goldens/NAME/{model.onnx, VERSION, test_data_set_K/{input_K,output_K}.pb}.
`plimsoll verify DIR...` reads it. Goldens that are up to date are left alone; a model that is not there is skipped.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import cases
import onnxruntime_npm
from cache import cache_dir, chosen, model_path, sha256
from tensor_proto import encode

UNAVAILABLE = 77  # exit status without ONNX Runtime: a test run may skip
TOOLS = pathlib.Path(__file__).resolve().parent


def version_text(name):
    """Changes whenever the answers might: with ONNX Runtime, the inputs, or the model."""
    model = model_path(name).stat()
    return (f"{onnxruntime_npm.INFERENCE.name} {onnxruntime_npm.INFERENCE.version}\n"
            f"inputs {sha256(cases.__file__)}\n"
            f"model {model.st_size} bytes of {model.st_mtime_ns}\n")


def up_to_date(name):
    try:
        return (cache_dir() / "goldens" / name / "VERSION").read_text() == version_text(name)
    except FileNotFoundError:
        return False


def ask(job, scratch):
    """Runs one job in ONNX Runtime and returns its JSON answer."""
    job_file = scratch / "job.json"
    job_file.write_text(json.dumps(job))
    done = subprocess.run(["node", str(TOOLS / "ort" / "run.js"), str(job_file)],
                          env=onnxruntime_npm.environment(), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def make(name, directory):
    """Fills `directory` with the goldens of one model."""
    (directory / "model.onnx").symlink_to(model_path(name))
    with tempfile.TemporaryDirectory(prefix="plimsoll-goldens-") as scratch_name:
        scratch = pathlib.Path(scratch_name)
        feeds = [cases.data_set(name, index) for index in range(cases.data_set_count(name))]
        sets = []
        for index, feed in enumerate(feeds):
            raw = scratch / str(index)
            raw.mkdir()
            sets.append({"directory": str(raw), "inputs": cases.save_raw(raw, feed)})
        answer = ask({"model": str(model_path(name)), "sets": sets}, scratch)
        for index, (feed, outputs) in enumerate(zip(feeds, answer["sets"])):
            data_set = directory / f"test_data_set_{index}"
            data_set.mkdir()
            # ONNX's layout counts inputs in the graph's order.
            for k, input_name in enumerate(answer["inputs"]):
                (data_set / f"input_{k}.pb").write_bytes(encode(input_name, feed[input_name]))
            for k, output in enumerate(outputs):
                array = np.fromfile(output["file"], output["type"]).reshape(output["dims"])
                if array.dtype.kind == "f" and not np.isfinite(array).all():
                    raise ValueError(f"{name}: output '{output['name']}' is not finite and proves nothing")
                (data_set / f"output_{k}.pb").write_bytes(encode(output["name"], array))
    (directory / "VERSION").write_text(version_text(name))


def replace_goldens(name):
    """Makes the goldens beside their place and renames: an interrupted run leaves the old ones or none."""
    place = cache_dir() / "goldens" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    staging = pathlib.Path(tempfile.mkdtemp(prefix=f".{name}.", dir=place.parent))
    try:
        make(name, staging)
        staging.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
        os.rename(staging, place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(cases.CASES)}")
    failures = 0
    for name in chosen(parser.parse_args().names, cases.CASES):
        if not model_path(name).exists():
            print(f"skipped {name}: {model_path(name)} is not there", flush=True)
            continue
        if up_to_date(name):
            continue
        try:
            onnxruntime_npm.ensure()
            replace_goldens(name)
            print(f"made goldens of {name}", flush=True)
        except onnxruntime_npm.Unavailable as problem:
            print(f"error: {problem}", file=sys.stderr)
            return UNAVAILABLE
        except (subprocess.CalledProcessError, ValueError) as problem:
            print(f"error: {name}: {problem}", file=sys.stderr)
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
