#!/usr/bin/python3
"""bench/ortmodule.py [--models gpt,resnet50] [--steps N] [--rounds N] [--threads 1] [--package build/python] [--level 0]

Forward and backward of bench/training.py's models in PyTorch, plain and in an ORTModule: milliseconds of a step (the
smallest), the peak of the process above what it held before the first step, in the first (which exports and plans) and in those
behind it, and how far the gradients are apart. Each run is a process of its own, the two kinds take turns, with the fastest kernels
of PyTorch's BLAS (blas.py). Needs python3-torch, python3-torchvision and libopenblas0-pthread.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import blas

ROOT = pathlib.Path(__file__).resolve().parent.parent


def resident():
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file if ":" in line)
    return {name: int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")}


def one(arguments):
    sys.path[:0] = [str(ROOT / "bench"), str(pathlib.Path(arguments.package).resolve())]
    import torch
    import training
    torch.set_num_threads(arguments.threads)
    model, inputs = training.made(arguments.run)
    if arguments.ours:
        from plimsoll.training.ortmodule import ORTModule
        model = ORTModule(model)
    before, times, first_peak = resident()["VmRSS"], [], 0
    for _ in range(arguments.steps + 1):
        model.zero_grad()
        start = time.perf_counter()
        loss = model(*inputs.values())
        loss.backward()
        times.append(time.perf_counter() - start)
        if len(times) == 1:
            first_peak = resident()["VmHWM"] - before
            pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    peak = resident()["VmHWM"] - before
    torch.save([p.grad for p in model.parameters()], arguments.save)
    print(json.dumps({"ms": 1000 * min(times[1:]), "first_ms": 1000 * times[0], "peak": peak, "first_peak": first_peak,
                      "loss": loss.item()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="gpt,resnet50")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--level", default="0")
    parser.add_argument("--package", default=str(ROOT / "build/python"))
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--save", help=argparse.SUPPRESS)
    parser.add_argument("--ours", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        return one(arguments)
    import tempfile
    import torch
    environment = {**blas.torch_environment(arguments.threads), "ORTMODULE_MEMORY_OPT_LEVEL": arguments.level}
    print(blas.described(arguments.threads))
    for name in arguments.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            found, gradients = {}, {}
            for kind in ("pytorch", "ortmodule") * arguments.rounds:
                path = f"{folder}/{kind}.pt"
                command = [sys.executable, __file__, "--run", name, "--save", path, "--steps", str(arguments.steps), "--threads",
                           str(arguments.threads), "--package", arguments.package] + ["--ours"] * (kind == "ortmodule")
                done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
                result = json.loads(done.stdout.splitlines()[-1])
                found[kind] = min(found.get(kind, result), result, key=lambda one: one["ms"])
                gradients[kind] = torch.load(path)
            apart = max(float((a - b).abs().max() / b.abs().max().clamp(min=1e-6)) for a, b in zip(gradients["ortmodule"], gradients["pytorch"]))
            for kind, result in found.items():
                print(f"{name:10} {kind:10} {result['ms']:9.1f} ms  peak {result['peak']:13,} bytes  first {result['first_ms']:9.1f} ms"
                      f" {result['first_peak']:13,} bytes  loss {result['loss']:.6f}", flush=True)
            print(f"{name:10} gradients apart by at most {apart:.2g} of the largest of their parameter")
    return 0


if __name__ == "__main__":
    sys.exit(main())
