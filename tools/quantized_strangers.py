#!/usr/bin/python3
"""quantized_strangers.py FOLDER [--most-bytes 6000000]: the models of `bench/strangers.py --export` in every mode of `plimsoll quantize`.

Each is calibrated on its own inputs; what comes of it must pass ONNX's checker, be opened and run by ONNX Runtime (npm's, for Node),
and answer there as here: floats to 25 dB, integers but for one in fifty. Prints a line for every one that does not. See docs/quantize.md.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import onnxruntime_npm
import strangers

STATIC = ["--mode", "static"]
MODES = {
    "dynamic": ["--mode", "dynamic", "--per-channel"],
    "static": STATIC,
    "static_channels": [*STATIC, "--per-channel"],
    "static_operators": [*STATIC, "--per-channel", "--format", "qoperator"],
    "static_signed": [*STATIC, "--per-channel", "--activation-type", "int8"],
    "static_16": [*STATIC, "--activation-type", "uint16"],
    "blocks_4": ["--mode", "nbits", "--bits", "4", "--block-size", "32"],
    "blocks_8": ["--mode", "nbits", "--bits", "8", "--block-size", "32"],
    "fp16": ["--mode", "fp16", "--keep-io-types"],
}
DECIBELS, INTEGERS = 25, 0.02


def difference(found, expected):
    if found.shape != expected.shape:
        return f"shape {found.shape}, there {expected.shape}"
    if expected.dtype.kind != "f":
        differ = (found != expected).mean() if expected.size else 0
        return f"{differ:.1%} of the integers differ" if differ > INTEGERS else None
    finite = np.isfinite(expected)
    if not np.array_equal(np.isfinite(found), finite):
        return "other elements are finite"
    signal = (expected[finite].astype(float) ** 2).sum()
    noise = ((found[finite].astype(float) - expected[finite]) ** 2).sum()
    return f"{10 * np.log10(signal / noise):.1f} dB" if noise * 10 ** (DECIBELS / 10) > signal else None


def quantize(model, mode, target, samples):
    """What is wrong with the outcome by itself, or None."""
    calibration = ["--calibration", str(samples)] if "static" in mode else []
    done = subprocess.run([str(strangers.PLIMSOLL), "quantize", str(model), str(target), *MODES[mode], *calibration],
                          capture_output=True, text=True, timeout=strangers.SECONDS)
    if done.returncode:
        return f"not quantized: {done.stderr.strip()[-300:]}"
    try:
        onnx.checker.check_model(str(target), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        text = str(error)
        return None if "No Op registered" in text or "No opset import" in text else f"ONNX's checker: {text[:300]}"
    return None


def make(source, most_bytes, target):
    """Every model in every mode; how many outcomes are wrong."""
    wrong = 0
    for model in sorted(source.glob("*.onnx")):
        if model.stat().st_size > most_bytes:
            continue
        with tempfile.TemporaryDirectory() as folder:
            sample = pathlib.Path(folder, "0")
            sample.mkdir()
            for tensor in json.loads(model.with_suffix(".json").read_text()):
                (sample / f"{tensor['name'].replace('/', '_')}.npy").symlink_to(tensor["npy"])
            for mode in MODES:
                problem = quantize(model, mode, target / f"{model.stem}.{mode}.onnx", folder)
                wrong += problem is not None
                if problem:
                    print(f"{model.stem}, {mode}: {problem}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--most-bytes", type=float, default=6e6)
    options = parser.parse_args()
    onnxruntime_npm.ensure()
    strangers.difference = difference
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as folder:
        wrong = make(options.folder, options.most_bytes, pathlib.Path(made))
        models = sorted(map(str, pathlib.Path(made).glob("*.onnx")))
        refused = differ = 0
        for answer, place in strangers.answers_of(models, pathlib.Path(folder), exact=False):
            name = pathlib.Path(answer["model"]).stem
            problem = strangers.run_here(answer["model"], answer, place)
            refused += answer["outcome"] != "ok"
            differ += problem is not None
            if answer["outcome"] != "ok":
                print(f"{name}: ONNX Runtime: {answer['error'][:300]}", flush=True)
            if problem:
                print(f"{name}: {problem}", flush=True)
    print(f"{len(models)} models, {wrong} wrong by themselves, {refused} refused by ONNX Runtime, {differ} to look at")
    return 1 if wrong or refused else 0


if __name__ == "__main__":
    sys.exit(main())
