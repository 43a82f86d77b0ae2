#!/usr/bin/python3
"""mixed_precision.py: `plimsoll train --precision bf16` beside PyTorch in float and in PyTorch's own bfloat16 (torch.autocast).

    tests/train/mixed_precision.py build/plimsoll [--steps 200] [gpt] [lstm] [resnet18]

All train from the same weights over the same data in the same order. How far a training comes from PyTorch's in float is, over
the mean of every ten steps' losses, the largest distance relative to float's. Ours may come as far as PyTorch's own does by
rounding to bfloat16, by the farthest of three ways: autocast, initial weights rounded once, data rounded once; 1 % where that is more. A training
that has nearly learned its data magnifies every rounding (rounding.py), so that one way alone would be chance. The first loss must be
float's: forward, nothing is rounded. What is told must be measured, what is planned less than in float (the tables of
planning, which a few more nodes may lengthen by a step of 160 KiB, are not counted: of the LSTM there are 8 KiB to save), and the smallest limit must give the same bits.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

# Debian's oneDNN 2.6 runs AMX without asking the kernel for it, and ends with an illegal instruction where a processor has it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
import torch

from against_torch import cases, export, train_plimsoll, train_torch

warnings.filterwarnings("ignore")
FIRST_TOLERANCE, LEAST_BOUND = 1e-5, 1e-2
MODELS = ("gpt", "lstm", "resnet18")


def smooth(losses, width=10):
    return np.array([np.mean(losses[i:i + width]) for i in range(0, len(losses), width)])


def distance(found, expected):
    return np.max(np.abs(smooth(found) - smooth(expected)) / np.abs(smooth(expected)))


def train_autocast(case, steps):
    """PyTorch with bfloat16 where it thinks that is safe; losses in float."""
    plain, loss = case.model.forward, case.loss

    def rounded(*inputs):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return plain(*inputs)

    case.model.forward, case.loss = rounded, lambda scores, y: loss(scores.float(), y)
    try:
        return train_torch(case, steps)
    finally:
        case.model.forward, case.loss = plain, loss


def with_rounded_weights(case):
    with torch.no_grad():
        for parameter in case.model.parameters():
            parameter.copy_(parameter.bfloat16().float())
    return case


def with_rounded_data(case):
    if case.examples.is_floating_point():
        case.examples = case.examples.bfloat16().float()
    return case


def fresh(make):
    torch.manual_seed(7)
    return make()


def plan(command, case, model, folder, *words):
    done = subprocess.run([command, "train", model, "--data", folder, "--batch", str(case.batch), "--threads", "1", "--plan",
                           "--json", *case.arguments, *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check(command, name, make, steps):
    """What is wrong, or nothing; and a line that tells what was found."""
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model.onnx"
        case = fresh(make)
        export(case, model)

        def trained(*words, count=steps):
            changed = fresh(make)
            changed.arguments = [*changed.arguments, *words]
            losses, report = train_plimsoll(command, changed, model, folder, count)
            if losses is None:
                raise RuntimeError(report)
            if report["predicted_bytes"] != report["measured_bytes"]:
                raise RuntimeError(f"told {report['predicted_bytes']}, measured {report['measured_bytes']}")
            return losses

        ours = trained("--precision", "bf16")
        told, in_float = plan(command, case, model, folder, "--precision", "bf16"), plan(command, case, model, folder)
        again = trained("--precision", "bf16", "--limit", str(told["minimum_limit_bytes"]), count=10)
    floats = train_torch(fresh(make), steps)
    theirs = {"autocast": train_autocast(fresh(make), steps), "weights": train_torch(with_rounded_weights(fresh(make)), steps),
              "data": train_torch(with_rounded_data(fresh(make)), steps)}
    far = {way: distance(losses, floats) for way, losses in theirs.items()}
    first = abs(ours[0] - floats[0]) / abs(floats[0])
    here, bound = distance(ours, floats), max(*far.values(), LEAST_BOUND)
    tail = max(1, steps // 20)
    end = abs(np.mean(ours[-tail:]) - np.mean(floats[-tail:])) / np.mean(floats[-tail:])
    planned = told["accounts"]["planned"], in_float["accounts"]["planned"]
    told_less = planned[0] < planned[1] and told["rounded"]
    same = ours[:10] == again
    line = (f"{name}: {steps} steps, loss {floats[0]:.5f} to {np.mean(floats[-tail:]):.5f}; ours in bf16 within {here:.1e}, at the end "
            f"{end:.1e}; PyTorch's {', '.join(f'{way} {d:.1e}' for way, d in far.items())}; planned {planned[0]:,} of "
            f"{planned[1]:,}, least {told['minimum_limit_bytes']:,}")
    wrong = [text for text, good in (("the first loss", first <= FIRST_TOLERANCE), ("the losses", here <= bound),
                                     ("the peak", told_less), ("the bits of the least limit", same)) if not good]
    return wrong, line


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    good = True
    for name, make in cases():
        if name not in (arguments.models or MODELS):
            continue
        wrong, line = check(arguments.command, name, make, arguments.steps)
        print(f"{'FAIL' if wrong else 'ok  '} {line}{' WRONG: ' + ', '.join(wrong) if wrong else ''}", flush=True)
        good &= not wrong
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
