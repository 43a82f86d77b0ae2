#!/usr/bin/python3
"""bench/budget_curve.py [gpt] [bert] [resnet50] [--shares 1,0.5,0.33] [--rounds 2] [--plimsoll build/plimsoll] [--keep FOLDER]

What a step of training costs where less memory is allowed: whole steps with SGD and momentum by `plimsoll train --limit`, at shares
of the arena that the plan without recomputation has. Every share runs in a process of its own, in turns, and the fastest
round counts; the estimate of the planner stands beside.
With --torch: whole steps of PyTorch with the same optimizer, plain and with its checkpointing of every second layer and of all, and the process's
peak memory.
Needs python3-torch, python3-torchvision.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import blas

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "train"))


def bert(layers=12, width=768, heads=12, tokens=128, words=30522):
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
            self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

        def forward(self, x):
            batch = x.shape[0]
            q, k, v = (f(x).view(batch, tokens, heads, width // heads).transpose(1, 2) for f in self.qkv)
            weights = torch.softmax(q @ k.transpose(-1, -2) / (width // heads) ** 0.5, -1)
            x = self.norm1(x + self.out((weights @ v).transpose(1, 2).reshape(batch, tokens, width)))
            return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Parameter(0.02 * torch.randn(1, tokens, width))
            self.norm, self.layers = nn.LayerNorm(width, eps=1e-12), nn.ModuleList(Layer() for _ in range(layers))
            self.head = nn.Linear(width, 2)

        def forward(self, ids):
            x = self.norm(self.words(ids) + self.places)
            for layer in self.layers:
                x = checkpointed(layer, x)
            return self.head(x[:, 0])

    return Bert(), torch.randint(0, words, (8, tokens)), torch.randint(0, 2, (8,)), 4


def gpt():
    import torch
    from against_torch import Gpt

    class Checkpointed(Gpt):
        def forward(self, tokens):
            x = self.tokens(tokens) + self.places
            for block in self.blocks:
                x = checkpointed(block, x, self.mask)
            return self.head(self.norm(x))

    return Checkpointed(6, 256, 8, 256, 1000), torch.randint(0, 1000, (16, 256)), torch.randint(0, 1000, (16, 256)), 8


def resnet50():
    import torch
    import torchvision
    model = torchvision.models.resnet50()
    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        for name, block in list(stage.named_children()):
            stage.add_module(name, Wrapped(block))
    return model, torch.randn(16, 3, 224, 224), torch.randint(0, 1000, (16,)), 8


MODELS = {"gpt": gpt, "bert": bert, "resnet50": resnet50}
CHECKPOINTS = {"every": 0, "count": 0}  # every N-th layer; 0: none


def checkpointed(layer, *inputs):
    from torch.utils.checkpoint import checkpoint
    CHECKPOINTS["count"] += 1
    every = CHECKPOINTS["every"]
    return checkpoint(layer, *inputs) if every and CHECKPOINTS["count"] % every == 0 else layer(*inputs)


def Wrapped(block):
    import torch

    class Wrap(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.block = block

        def forward(self, x):
            return checkpointed(self.block, x)

    return Wrap()


def made(name):
    import torch
    torch.manual_seed(1)
    return MODELS[name]()


def export(name, folder, opset):
    """model.onnx and the data; the batch."""
    import numpy as np
    import torch
    model, examples, labels, batch = made(name)
    input_name = "x"
    np.save(folder / f"{input_name}.npy", examples.numpy())
    np.save(folder / "labels.npy", labels.numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.train(), examples[:batch], str(folder / "model.onnx"), input_names=[input_name], output_names=["y"],
                          opset_version=opset, do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE)
    (folder / "batch").write_text(str(batch))


def train(arguments, folder, *more):
    done = subprocess.run([arguments.plimsoll, "train", folder / "model.onnx", "--data", folder, "--batch",
                           (folder / "batch").read_text(), "--no-shuffle", "--threads", str(arguments.threads), "--optimizer", "sgd", "--lr", "1e-4",
                           "--momentum", "0.9", "--json", *map(str, more)], capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip()}
    return json.loads(done.stdout)


def step_seconds(arguments, folder, steps, *more):
    """Of the fastest step, as with PyTorch: the first one touches all memory."""
    report = train(arguments, folder, "--epochs", "100", "--max-steps", steps, *more)
    return report if "error" in report else {**report, "step": report["fastest_step_ms"] / 1e3}


def torch_steps(name, every, steps, threads):
    """The fastest step of PyTorch in a process of its own, and its peak."""
    words = [sys.executable, __file__, "--worker", name, str(every), "--steps", str(steps), "--threads", str(threads)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=blas.torch_environment(threads))
    return json.loads(done.stdout)


def torch_worker(name, every, steps, threads):
    import torch
    torch.set_num_threads(threads)
    CHECKPOINTS["every"] = every
    model, examples, labels, batch = made(name)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9)
    times = []
    for step in range(steps):
        CHECKPOINTS["count"] = 0
        at = step % 2 * batch
        start = time.perf_counter()
        scores = model(examples[at:at + batch])
        loss = torch.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels[at:at + batch].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    print(json.dumps({"step": min(times), "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def curve(arguments, name, folder):
    whole = train(arguments, folder, "--plan", "--recompute", "none")
    arena = whole["accounts"]["planned"]
    rest = whole["peak_bytes"] - arena
    best = {}
    for _ in range(arguments.rounds):
        for share in arguments.shares:
            limit = [] if share == 1 else ["--limit", int(rest + share * arena)]
            found = step_seconds(arguments, folder, arguments.steps, *limit)
            if "error" in found:
                print(f"{name} {share}: {found['error'][:200]}")
                continue
            if share not in best or found["step"] < best[share]["step"]:
                best[share] = found
    for share, found in best.items():
        limit = [] if share == 1 else ["--limit", int(rest + share * arena)]
        told = train(arguments, folder, "--plan", *limit)
        extra = found["step"] / best[1.0]["step"] - 1 if 1.0 in best else 0
        print(f"{name:9} {share:5.2f} of {arena:,} bytes: {found['step'] * 1e3:8.0f} ms, {extra:+6.1%} (estimated "
              f"{told.get('extra_time', 0):+.1%}), {len(told.get('recomputed', []))} nodes again, measured "
              f"{found['measured_bytes']:,}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--shares", type=lambda text: [float(part) for part in text.split(",")], default=[1.0, 0.5, 1 / 3])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--plimsoll", default=str(ROOT / "build" / "plimsoll"))
    parser.add_argument("--keep", help="a folder in which the exports stay, and are found again")
    parser.add_argument("--export-only", action="store_true")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_intermixed_args()
    if arguments.worker:
        return torch_worker(arguments.worker[0], int(arguments.worker[1]), arguments.steps, arguments.threads)
    if arguments.torch:
        print(blas.described(arguments.threads))
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(arguments.keep or temporary) / f"{name}-{arguments.opset}"
            if not (folder / "batch").exists():
                folder.mkdir(parents=True, exist_ok=True)
                export(name, folder, arguments.opset)
            if arguments.export_only:
                continue
            if arguments.torch:
                for every, what in ((0, "plain"), (2, "every second layer"), (1, "all layers")):
                    found = torch_steps(name, every, arguments.steps, arguments.threads)
                    print(f"{name:9} torch, {what}: {found['step'] * 1e3:8.0f} ms, {found['peak'] / 2**20:,.0f} MiB", flush=True)
            else:
                curve(arguments, name, folder)


if __name__ == "__main__":
    sys.exit(main())
