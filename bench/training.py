#!/usr/bin/python3
"""bench/training.py [--models resnet50,gpt] [--steps N] [--threads 1] [--whole] [--plimsoll build/plimsoll] [--json FILE]

Forward and backward of whole models, ours against Debian's PyTorch: milliseconds, peak memory of the process, and how far
the gradients are apart. Models come from torch: the loss is part of them, torch.onnx.export writes them in training mode,
their parameters become inputs, and a Gradient node asks for the gradients. torch runs in a process of its own, with the fastest
kernels that its BLAS has for this processor (blas.py).
With --whole: whole steps, with SGD and momentum, by `plimsoll train`; both sides take turns for --rounds, and the fastest counts.
Needs python3-torch, python3-torchvision, python3-onnx and libopenblas0-pthread.
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
OPSET = 17


def resnet50():
    import torch
    from torch import nn
    from torchvision.models import resnet50 as make

    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = make()

        def forward(self, images, targets):
            return nn.functional.cross_entropy(self.model(images), targets)

    return WithLoss(), {"images": torch.randn(8, 3, 224, 224), "targets": torch.randint(0, 1000, (8,))}


def gpt(layers=6, width=256, heads=8, tokens=256, batch=8, vocabulary=1000):
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, mask):
            q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
            split = lambda y: y.view(batch, tokens, heads, width // heads).transpose(1, 2)  # noqa: E731
            scores = split(q) @ split(k).transpose(-1, -2) * (width // heads) ** -0.5
            scores = scores.masked_fill(mask, float("-inf")).softmax(-1)
            mixed = (scores @ split(v)).transpose(1, 2).reshape(batch, tokens, width)
            x = x + self.project(mixed)
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.register_buffer("mask", torch.ones(tokens, tokens, dtype=torch.bool).triu(1))

        def forward(self, ids, targets):
            x = self.words(ids) + self.places.weight
            for block in self.blocks:
                x = block(x, self.mask)
            return nn.functional.cross_entropy(self.head(self.norm(x)).view(-1, vocabulary), targets)

    return Gpt(), {"ids": torch.randint(0, vocabulary, (batch, tokens)),
                   "targets": torch.randint(0, vocabulary, (batch * tokens,))}


MODELS = {"resnet50": resnet50, "gpt": gpt}


def made(name):
    import torch
    torch.manual_seed(1)
    model, inputs = MODELS[name]()
    return model.train(), inputs


def export(name, folder):
    """MODEL.onnx with parameters as inputs and their gradients as outputs, and all inputs as NAME.npy."""
    import numpy as np
    import onnx
    import torch
    model, inputs = made(name)
    path = folder / f"{name}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, tuple(inputs.values()), str(path), opset_version=OPSET,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                          input_names=list(inputs), output_names=["loss"])
    proto = onnx.load(str(path))
    graph = proto.graph
    wanted = {n for n, _ in model.named_parameters()}
    parameters = [i for i in graph.initializer if i.name in wanted]
    for tensor in parameters:
        graph.initializer.remove(tensor)
        graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        graph.output.append(onnx.helper.make_tensor_value_info(f"{tensor.name}_grad", tensor.data_type, tensor.dims))
    names = [tensor.name for tensor in parameters]
    graph.node.append(onnx.helper.make_node("Gradient", names, [f"{n}_grad" for n in names], name="gradient",
                                            domain="ai.onnx.preview.training", xs=names, y="loss"))
    proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.preview.training", 1))
    path.write_bytes(proto.SerializeToString())
    arrays = {n: t.numpy() for n, t in inputs.items()}
    arrays.update((n, p.detach().numpy()) for n, p in model.named_parameters() if n in names)
    for n, array in arrays.items():
        np.save(folder / f"{n}.npy", array)
    return path, list(arrays), names


def ours(arguments, path, inputs, folder):
    given = [f"--input={n}={folder / n}.npy" for n in inputs]
    command = [arguments.plimsoll, "run", path, *given, f"--threads={arguments.threads}", f"--repeat={arguments.steps}",
               "--json", f"--output={folder / 'out'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path.name}: {done.stderr}")
    report = json.loads(done.stdout)
    return {"ms": report["median_ms"], "peak_rss": report["peak_rss_bytes"], "told": report["predicted_bytes"]}


def torch_worker(arguments):
    import numpy as np
    import torch
    torch.set_num_threads(arguments.threads)
    model, inputs = made(arguments.torch)
    times = []
    for _ in range(arguments.steps):
        model.zero_grad(set_to_none=True)
        start = time.perf_counter()
        loss = model(**inputs)
        loss.backward()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    np.savez(arguments.gradients, loss=loss.detach().numpy(),
             **{n: p.grad.numpy() for n, p in model.named_parameters()})
    print(json.dumps({"ms": sorted(times)[len(times) // 2] * 1e3, "peak_rss": peak}))


def difference(folder, names):
    """Of the gradients: the largest distance, relative to the length of its tensor."""
    import numpy as np
    theirs = np.load(folder / "torch.npz")
    worst = (0.0, "")
    for i, n in enumerate(names):
        mine, other = np.load(folder / "out" / f"{i + 1}.npy"), theirs[n]
        worst = max(worst, (float(np.linalg.norm(mine - other) / max(np.linalg.norm(other), 1e-8)), n))
    return {"loss": float(np.load(folder / "out" / "0.npy")), "loss_torch": float(theirs["loss"]),
            "worst": worst[0], "worst_at": worst[1]}


def measure(arguments, name, folder):
    path, inputs, names = export(name, folder)
    if arguments.keep:
        print(f"{path} and its inputs are kept")
    command = [sys.executable, __file__, "--torch", name, f"--steps={arguments.steps}", f"--threads={arguments.threads}",
               f"--gradients={folder / 'torch.npz'}"]
    theirs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True,
                                       env=blas.torch_environment(arguments.threads)).stdout)
    mine = ours(arguments, path, inputs, folder)
    return {"name": name, "ours": mine, "torch": theirs, **difference(folder, names)}


def measure_whole(arguments, name, folder):
    """Whole steps: the models, their data and both sides are those of budget_curve.py."""
    import budget_curve
    if not (folder / "batch").exists():
        budget_curve.export(name, folder, OPSET)
    best = {}
    for _ in range(arguments.rounds):
        theirs = budget_curve.torch_steps(name, 0, arguments.steps, arguments.threads)
        mine = budget_curve.step_seconds(arguments, folder, arguments.steps)
        if "error" in mine:
            sys.exit(f"{name}: {mine['error']}")
        rounds = {"torch": {"ms": theirs["step"] * 1e3, "peak_rss": theirs["peak"]},
                  "ours": {"ms": mine["step"] * 1e3, "peak_rss": mine["peak_rss_bytes"], "told": mine["predicted_bytes"]}}
        for side, found in rounds.items():
            best[side] = min(best.get(side, found), found, key=lambda one: one["ms"])
    return {"name": name, **best}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="with the optimizer")
    parser.add_argument("--rounds", type=int, default=2, help="of --whole")
    parser.add_argument("--plimsoll", default=str(ROOT / "build" / "plimsoll"))
    parser.add_argument("--json", help="write the results there")
    parser.add_argument("--keep", help="a folder in which the models and their inputs stay")
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    parser.add_argument("--gradients", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch:
        return torch_worker(arguments)
    results = []
    print(blas.described(arguments.threads))
    print("model      ours ms  torch ms  ratio   ours MiB  torch MiB  ratio   told MiB  worst gradient")
    for name in arguments.models.split(","):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(arguments.keep or temporary) / name
            folder.mkdir(parents=True, exist_ok=True)
            r = (measure_whole if arguments.whole else measure)(arguments, name, folder)
        results.append(r)
        mine, theirs, mib = r["ours"], r["torch"], 2**20
        print(f"{name:10} {mine['ms']:7.0f} {theirs['ms']:9.0f} {mine['ms'] / theirs['ms']:6.2f} "
              f"{mine['peak_rss'] / mib:10.0f} {theirs['peak_rss'] / mib:10.0f} "
              f"{mine['peak_rss'] / theirs['peak_rss']:6.2f} {mine['told'] / mib:10.0f}  "
              + (f"{r['worst']:.1e} {r['worst_at']}" if "worst" in r else ""), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
