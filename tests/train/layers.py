#!/usr/bin/python3
"""layers.py: layer boundaries of transformers as PyTorch exports them, norms first and last, opset 14 and 17.

    tests/train/layers.py build/plimsoll

Level 1 recomputes inside every layer that is found: the scores of each must be switched on, the arena must shrink, and the losses of some steps
must be the same to the bit. The same is asked in bfloat16, where a result is rounded before it is kept: its cluster ends with a Cast.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from against_torch import Gpt  # noqa: E402
from budget_curve import bert  # noqa: E402

LAYERS = 3


def models():
    torch.manual_seed(3)
    yield "norms first", Gpt(LAYERS, 64, 4, 64, 50), torch.randint(0, 50, (8, 64)), torch.randint(0, 50, (8, 64))
    model, examples, labels, _ = bert(LAYERS, 64, 4, 64, 50)
    yield "norms last", model, examples, labels


def run(command, folder, *words):
    done = subprocess.run([command, "train", f"{folder}/model.onnx", "--data", folder, "--batch", "4", "--threads", "1", "--json",
                           *words], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip()}


def check(command, folder, precision):
    """What is wrong, or nothing."""
    def train(*words):
        return run(command, folder, "--precision", precision, *words)

    plain = train("--plan", "--recompute", "none")
    for level in ("level1", "level2"):
        found = train("--plan", "--recompute", level)
        if "error" in found:
            return found["error"]
        last = r"Softmax\+Cast\+" if precision == "bf16" else r"Softmax\+"
        rows = re.findall(rf"(ON|OFF) +: +(\S*{last}):1:-1 +(\d+)", found["memory_optimizer"])
        if [row[0] for row in rows] != ["ON"] or int(rows[0][2]) != LAYERS:
            return f"{level}: expected the scores of {LAYERS} layers, found {rows}"
        if not found["accounts"]["planned"] < plain["accounts"]["planned"]:
            return f"{level}: an arena of {found['accounts']['planned']}, as without it"
    losses = [train("--epochs", "3", "--recompute", mode).get("epoch_losses") for mode in ("none", "level1", "level2")]
    if losses[0] is None or losses[1] != losses[0] or losses[2] != losses[0]:
        return f"losses {losses}"
    return None


def main():
    failed = passed = 0
    warnings.simplefilter("ignore")
    for opset in (14, 17):
        for name, model, examples, labels in models():
            with tempfile.TemporaryDirectory() as folder:
                np.save(f"{folder}/x.npy", examples.numpy())
                np.save(f"{folder}/labels.npy", labels.numpy())
                torch.onnx.export(model.train(), examples[:4], f"{folder}/model.onnx", input_names=["x"], output_names=["y"],
                                  opset_version=opset, do_constant_folding=False,
                                  training=torch.onnx.TrainingMode.PRESERVE)
                for precision in ("f32", "bf16"):
                    wrong = check(sys.argv[1], folder, precision)
                    passed, failed = passed + (wrong is None), failed + (wrong is not None)
                    print(f"{'ok  ' if wrong is None else 'FAIL'} {name}, opset {opset}, {precision}{'' if wrong is None else ': ' + wrong}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
