#!/usr/bin/python3
"""against_torch.py: `plimsoll train` and PyTorch side by side, from the same weights over the same data in the same order.

    tests/train/against_torch.py build/plimsoll [--steps 200] [mlp] [gpt] [resnet18] [lstm] [optimizer] [loss] [schedule] [gradients]

Each model is exported from PyTorch, trained by both, and the losses of every step are compared: within 1e-5 (relative)
in the first steps, where no difference of rounding has grown yet, and within 1e-2 at the end. Rates of every step are compared too.
"""
import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from torch.optim import lr_scheduler as rates

warnings.filterwarnings("ignore")
FIRST_STEPS, FIRST_TOLERANCE, LAST_TOLERANCE = 5, 1e-5, 1e-2


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))

    def forward(self, x):
        return self.layers(x)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        batch, time, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        weights = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, time, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """A small GPT: `layers` blocks, tokens of `words`."""

    def __init__(self, layers=2, width=64, heads=4, time=32, words=100):
        super().__init__()
        self.tokens, self.places = nn.Embedding(words, width), nn.Parameter(0.02 * torch.randn(1, time, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("mask", torch.triu(torch.ones(time, time, dtype=torch.bool), 1))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(16, 32, num_layers=2, batch_first=True), nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def resnet18():
    import torchvision
    return torchvision.models.resnet18(num_classes=10)


class Case:
    """A model, its input's name, its data, and how both sides train it."""

    def __init__(self, model, examples, labels, batch, optimizer, arguments, name="x", loss=None, schedule=None, validation=None):
        self.model, self.examples, self.labels, self.batch = model, examples, labels, batch
        self.optimizer, self.arguments, self.name = optimizer, arguments, name
        self.schedule, self.validation = schedule, validation  # of the optimizer and the steps; examples and labels
        self.loss = loss or (lambda scores, y: F.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1)))


def classes(count, of=10):
    return torch.randint(0, of, (count,))


def cases():
    yield "mlp", lambda: Case(Mlp(), torch.randn(256, 20), classes(256), 32,
                              lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
                              ["--optimizer", "sgd", "--lr", "0.1", "--momentum", "0.9", "--nesterov"])
    yield "gpt", lambda: Case(Gpt(), torch.randint(0, 100, (64, 32)), torch.randint(0, 100, (64, 32)), 8,
                              lambda p: torch.optim.AdamW(p, 1e-3),
                              ["--optimizer", "adamw", "--lr", "1e-3", "--clip-norm", "1"], "tokens")
    yield "lstm", lambda: Case(Lstm(), torch.randn(128, 12, 16), classes(128), 16,
                               lambda p: torch.optim.Adam(p, 2e-3), ["--optimizer", "adam", "--lr", "2e-3"])
    # Larger steps part, in PyTorch too, by single inputs of Relu that round to the other side of 0: rounding.py.
    yield "resnet18", lambda: Case(resnet18(), torch.randn(64, 3, 64, 64), classes(64), 16,
                                   lambda p: torch.optim.SGD(p, 1e-4, momentum=0.9),
                                   ["--optimizer", "sgd", "--lr", "1e-4", "--momentum", "0.9"])


class AdamReference(torch.optim.Optimizer):
    """What PyTorch has not: AdamW in Hugging Face's order, decay last, and Lamb as its paper has it."""

    def __init__(self, parameters, lr, decay, lamb=False):
        super().__init__(parameters, {"lr": lr})
        self.decay, self.lamb, self.count = decay, lamb, 0

    @torch.no_grad()
    def step(self):
        self.count += 1
        rate, epsilon = self.param_groups[0]["lr"], 1e-6 if self.lamb else 1e-8
        for p in self.param_groups[0]["params"]:
            first, second = self.state[p].setdefault("moments", (torch.zeros_like(p), torch.zeros_like(p)))
            first.mul_(0.9).add_(p.grad, alpha=0.1)
            second.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
            corrections = 1 - 0.9**self.count, 1 - 0.999**self.count
            if self.lamb:
                update = first / corrections[0] / ((second / corrections[1]).sqrt() + epsilon) + self.decay * p
                norms = p.norm(), update.norm()
                p.sub_(rate * (norms[0] / norms[1] if min(norms) > 0 else 1) * update)
            else:
                p.sub_(rate * corrections[1]**0.5 / corrections[0] * first / (second.sqrt() + epsilon))
                p.sub_(rate * self.decay * p)


OPTIMIZERS = {
    "sgd": (lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.01), ["sgd", "--lr", "0.1", "--weight-decay", "0.01"]),
    "momentum": (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), ["sgd", "--lr", "0.1", "--momentum", "0.9"]),
    "adam": (lambda p: torch.optim.Adam(p, 2e-3, weight_decay=0.01), ["adam", "--lr", "2e-3", "--weight-decay", "0.01"]),
    "adamw": (lambda p: torch.optim.AdamW(p, 2e-3, weight_decay=0.1), ["adamw", "--lr", "2e-3", "--weight-decay", "0.1"]),
    "adamw-hf": (lambda p: AdamReference(p, 2e-3, 0.1), ["adamw-hf", "--lr", "2e-3", "--weight-decay", "0.1"]),
    "lamb": (lambda p: AdamReference(p, 2e-3, 0.1, lamb=True), ["lamb", "--lr", "2e-3", "--weight-decay", "0.1"]),
    "adagrad": (lambda p: torch.optim.Adagrad(p, 0.05), ["adagrad", "--lr", "0.05"]),
    "rmsprop": (lambda p: torch.optim.RMSprop(p, 2e-3, momentum=0.5), ["rmsprop", "--lr", "2e-3", "--momentum", "0.5"]),
}
# The model's last layer, labels, PyTorch's loss, ours.
LOSSES = {
    "mse": (None, torch.randn, F.mse_loss, ["mse"]),
    "l1": (None, torch.randn, F.l1_loss, ["l1"]),
    "smoothl1": (None, torch.randn, lambda x, y: F.smooth_l1_loss(x, y, beta=0.5), ["smoothl1", "--loss-beta", "0.5"]),
    "huber": (None, torch.randn, lambda x, y: F.huber_loss(x, y, delta=0.5), ["huber", "--loss-beta", "0.5"]),
    "sum": (None, torch.randn, lambda x, y: F.mse_loss(x, y, reduction="sum"), ["mse", "--reduction", "sum"]),
    "bce": (nn.Sigmoid, torch.rand, F.binary_cross_entropy, ["bce"]),
    "bcewithlogits": (None, torch.rand, F.binary_cross_entropy_with_logits, ["bcewithlogits"]),
    "kldiv": (lambda: nn.LogSoftmax(1), lambda *s: torch.softmax(torch.randn(*s), 1),
              lambda x, y: F.kl_div(x, y, reduction="batchmean"), ["kldiv", "--reduction", "batchmean"]),
    "nll": (lambda: nn.LogSoftmax(1), lambda n, _: classes(n), F.nll_loss, ["nll"]),
}


# PyTorch's, of an optimizer and the number of steps; ours.
SCHEDULES = {
    "linear": (lambda o, n: rates.LambdaLR(o, lambda i: min(i / 5, (n - i) / (n - 5))), ["linear", "--warmup", "5"]),
    "cosine": (lambda o, n: rates.CosineAnnealingLR(o, n), ["cosine"]),
    "step": (lambda o, n: rates.StepLR(o, 10, 0.5), ["step", "--step-size", "10", "--gamma", "0.5"]),
    "exponential": (lambda o, n: rates.ExponentialLR(o, 0.97), ["exponential", "--gamma", "0.97"]),
    "one-cycle": (lambda o, n: rates.OneCycleLR(o, 0.1, n, cycle_momentum=False, final_div_factor=float("inf")), ["one-cycle"]),
    "plateau": (lambda o, n: rates.ReduceLROnPlateau(o, factor=0.3, patience=10), ["plateau", "--gamma", "0.3"]),
}
# What is done to gradients before they are used.
GRADIENTS = {"clip-norm": ["--clip-norm", "0.5"], "clip-value": ["--clip-value", "0.01"], "accumulate": ["--accumulate", "2"]}


def small_cases():
    """Every optimizer, loss and schedule, on the smallest model."""
    def of_schedule(schedule, words):
        # Few examples, and others to validate: the validation's loss soon rises, which is what a plateau waits for.
        return lambda: Case(Mlp(), torch.randn(64, 20), classes(64), 32, lambda p: torch.optim.SGD(p, 0.1),
                            ["--optimizer", "sgd", "--lr", "0.1", "--schedule", *words], schedule=schedule,
                            validation=(torch.randn(64, 20), classes(64)))

    def of_gradients(words):
        return lambda: Case(Mlp(), torch.randn(256, 20), classes(256), 16, lambda p: torch.optim.SGD(p, 0.1),
                            ["--optimizer", "sgd", "--lr", "0.1", *words])

    def of_optimizer(optimizer, words):
        return lambda: Case(Mlp(), torch.randn(256, 20), classes(256), 32, optimizer, ["--optimizer", *words])

    def of_loss(last, labels, loss, words):
        def make():
            model = Mlp() if last is None else nn.Sequential(Mlp(), last())
            return Case(model, torch.randn(256, 20), labels(256, 10), 32, lambda p: torch.optim.SGD(p, 1e-3),
                        ["--optimizer", "sgd", "--lr", "1e-3", "--loss", *words], loss=loss)
        return make

    for name, given in OPTIMIZERS.items():
        yield f"optimizer-{name}", of_optimizer(*given)
    for name, given in LOSSES.items():
        yield f"loss-{name}", of_loss(*given)
    for name, given in SCHEDULES.items():
        yield f"schedule-{name}", of_schedule(*given)
    for name, words in GRADIENTS.items():
        yield f"gradients-{name}", of_gradients(words)


def export(case, path):
    # Dropout is 0 everywhere; batch normalization must not be folded away.
    buffer = io.BytesIO()
    torch.onnx.export(case.model, case.examples[:case.batch], buffer, input_names=[case.name], output_names=["y"],
                      opset_version=14, do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE,
                      dynamic_axes={case.name: {0: "batch"}, "y": {0: "batch"}} if case.name == "x" else None)
    pathlib.Path(path).write_bytes(buffer.getvalue())


def argument(case, name, otherwise):
    return float(case.arguments[case.arguments.index(name) + 1]) if name in case.arguments else otherwise


def validation_loss(case):
    examples, labels = (part.split(case.batch) for part in case.validation)
    with torch.no_grad():
        return np.mean([case.loss(case.model(x), y).item() for x, y in zip(examples, labels)])


def train_torch(case, steps, rates_to=None):
    case.model.train()
    optimizer = case.optimizer(case.model.parameters())
    schedule = case.schedule(optimizer, steps) if case.schedule else None
    parts = int(argument(case, "--accumulate", 1))
    losses, per_epoch = [], len(case.examples) // (case.batch * parts)
    for step in range(steps):
        optimizer.zero_grad()
        of_parts = []
        for part in range(parts):
            at = (step % per_epoch * parts + part) * case.batch
            loss = case.loss(case.model(case.examples[at:at + case.batch]), case.labels[at:at + case.batch])
            (loss / parts).backward()
            of_parts.append(loss.item())
        if most := argument(case, "--clip-norm", 0):
            nn.utils.clip_grad_norm_(case.model.parameters(), most)
        if most := argument(case, "--clip-value", 0):
            nn.utils.clip_grad_value_(case.model.parameters(), most)
        if rates_to is not None:
            rates_to.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if isinstance(schedule, rates.ReduceLROnPlateau):
            if (step + 1) % per_epoch == 0:
                schedule.step(validation_loss(case))
        elif schedule is not None:
            schedule.step()
        losses.append(np.mean(of_parts))
    return losses


def train_plimsoll(command, case, model, folder, steps, rates_to=None):
    np.save(f"{folder}/{case.name}.npy", case.examples.numpy())
    np.save(f"{folder}/labels.npy", case.labels.numpy())
    per_epoch = len(case.examples) // (case.batch * int(argument(case, "--accumulate", 1)))
    log = f"{folder}/log.csv"
    words = ["--schedule-steps", str(steps)] if case.schedule else []
    if case.validation is not None:
        pathlib.Path(f"{folder}/validation").mkdir()
        for name, part in zip((case.name, "labels"), case.validation):
            np.save(f"{folder}/validation/{name}.npy", part.numpy())
        words += ["--validation", f"{folder}/validation"]
    result = subprocess.run(
        [command, "train", model, "--data", folder, "--batch", str(case.batch), "--no-shuffle", "--threads", "1",
         "--epochs", str(-(-steps // per_epoch)), "--max-steps", str(steps), "--log", log, "--json", *case.arguments, *words],
        capture_output=True, text=True)
    if result.returncode != 0:
        return None, result.stderr.strip()
    with open(log) as file:
        rows = list(csv.DictReader(file))
    if rates_to is not None:
        rates_to.extend(float(row["rate"]) for row in rows)
    return [float(row["loss"]) for row in rows], json.loads(result.stdout)


def compare(name, ours, theirs):
    differences = [abs(a - b) / max(abs(b), 1e-6) for a, b in zip(ours, theirs)]
    first = max(differences[:FIRST_STEPS])
    # The last steps' mean: single losses of a training that has nearly learned its data are near 0.
    tail = max(1, len(ours) // 20)
    end_ours, end_theirs = np.mean(ours[-tail:]), np.mean(theirs[-tail:])
    last = abs(end_ours - end_theirs) / max(abs(end_theirs), 1e-6)
    good = first <= FIRST_TOLERANCE and last <= LAST_TOLERANCE and len(ours) == len(theirs)
    print(f"{'ok  ' if good else 'FAIL'} {name}: {len(ours)} steps, loss {ours[0]:.5f} to {end_ours:.5f} "
          f"(torch {theirs[0]:.5f} to {end_theirs:.5f}), first steps within {first:.1e}, the end within {last:.1e}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    good = True
    for name, make in [*cases(), *small_cases()]:
        if arguments.models and not any(name.startswith(wanted) for wanted in arguments.models):
            continue
        torch.manual_seed(7)
        case = make()
        with tempfile.TemporaryDirectory() as folder:
            model = f"{folder}/model.onnx"
            export(case, model)
            our_rates, their_rates = [], []
            ours, report = train_plimsoll(arguments.command, case, model, folder, arguments.steps, our_rates)
            if ours is None:
                print(f"FAIL {name}: {report}")
                good = False
                continue
            good &= compare(name, ours, train_torch(case, arguments.steps, their_rates))
            if not np.allclose(our_rates, their_rates, rtol=1e-6, atol=1e-9):
                print(f"FAIL {name}: rates {our_rates}, expected {their_rates}")
                good = False
            if name == "schedule-plateau" and our_rates[-1] == our_rates[0]:
                print(f"FAIL {name}: the rate never fell: the validation does not do what it is there for")
                good = False
            if report["predicted_bytes"] != report["measured_bytes"]:
                print(f"FAIL {name}: told {report['predicted_bytes']}, measured {report['measured_bytes']}")
                good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
