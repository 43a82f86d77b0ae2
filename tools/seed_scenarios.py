#!/usr/bin/python3
"""One scenario of tools/seed_claims.py in this process: prints its figures as JSON.

  PYTHONPATH=build/python tools/seed_scenarios.py dropped '{"model": "lstm"}'
"""
import gc
import json
import pathlib
import sys
from array import array

import torch
from plimsoll.torch_doctor import process, series, tensors
from torch.utils.data import DataLoader, Dataset

ITERATIONS = 40
WARM_UP = 5


def models(name):
    if name == "mlp":
        layers = [part for _ in range(8) for part in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
        return torch.nn.Sequential(*layers, torch.nn.Linear(512, 8)), torch.randn(64, 512)
    if name == "convolutions":
        layers = [part for _ in range(4) for part in (torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.BatchNorm2d(16),
                                                      torch.nn.ReLU())]
        return torch.nn.Sequential(*layers), torch.randn(4, 16, 32, 32)
    if name == "lstm":
        return torch.nn.LSTM(64, 64, num_layers=2), torch.randn(50, 8, 64)
    if name == "transformer":
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0)
        return torch.nn.TransformerEncoder(layer, 4), torch.randn(64, 4, 64)
    raise ValueError(name)


class Meter:
    """The slope of malloc's live bytes, sampled at the start of each iteration, and the peak above the start."""

    def __init__(self):
        self.numbers, self.values, self.length = array("q", bytes(8 * 64)), array("q", bytes(8 * 64)), 0
        self.start = None

    def sample(self, number):
        if number == WARM_UP:
            process.trim()
            self.start = process.read().resident_bytes
            pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
        if number >= WARM_UP:
            self.numbers[self.length], self.values[self.length] = number, process.read().heap_live_bytes
            self.length += 1

    def figures(self, **more):
        status = pathlib.Path("/proc/self/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
        slope = series.theil_sen(list(zip(self.numbers, self.values))[:self.length])
        return {"heap_live": slope.value, "peak": max(peak - self.start, 0), **more}


def repeat(call):
    meter = Meter()
    for number in range(ITERATIONS):
        meter.sample(number)
        call()
    return meter


def first_tensor(result):
    return next(tensors.nested_tensors(result))


def saved_bytes(model, x):
    saved = tensors.saved_by_call(model(x), x, model) or {}
    return saved.get("intermediate_bytes", 0) + saved.get("output_bytes", 0)


def dropped(model, no_grad=False, collect=True):
    net, x = models(model)
    if not collect:
        gc.disable()
    with torch.set_grad_enabled(not no_grad):
        return repeat(lambda: net(x)).figures(saved=saved_bytes(net, x))


def long(calls):
    """What a long loop adds after a hundred calls."""
    net, x = torch.nn.LSTM(16, 16), torch.randn(10, 2, 16)
    for number in range(calls):
        net(x)
        if number == 100:
            before = process.read()
    after = process.read()
    return {"heap_live": after.heap_live_bytes - before.heap_live_bytes,
            "anonymous": after.anonymous_bytes - before.anonymous_bytes}


def lifetime(model):
    net, x = models(model)
    for _ in range(WARM_UP):
        net(x)
    before = process.read().heap_live_bytes
    output = net(x)
    held = process.read().heap_live_bytes - before
    del output
    return {"held": held, "left": process.read().heap_live_bytes - before, "saved": saved_bytes(net, x)}


def kept(model, no_grad):
    net, x = models(model)
    outputs = []
    with torch.set_grad_enabled(not no_grad):
        meter = repeat(lambda: outputs.append(net(x)))
    return meter.figures(output=outputs[0].numel() * 4)


class Owner:
    def __init__(self, output):
        self.output, self.me = output, self


def cycle(model, collect):
    net, x = models(model)
    if not collect:
        gc.disable()
    return repeat(lambda: Owner(net(x))).figures()


class Rows(Dataset):
    """The article's dataset, with more rows and more columns."""

    def __init__(self):
        import numpy
        self.data = numpy.random.rand(512, 20_480)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return torch.from_numpy(self.data[index]).float()


@torch.no_grad()
def loader(workers=0, delete=False):
    net, data, meter, number = torch.nn.Linear(20_480, 8), Rows(), Meter(), 0
    batches = DataLoader(data, batch_size=32, num_workers=workers, persistent_workers=workers > 0)
    for _ in range(3):
        for batch in batches:
            meter.sample(number)
            output = net(batch)
            size = batch.numel() * 4
            number += 1
            if delete:
                del batch, output
    return meter.figures(batch=size)


@torch.no_grad()
def statistics(train):
    channels = 512
    net = torch.nn.Sequential(torch.nn.Conv2d(8, channels, 1), torch.nn.BatchNorm2d(channels)).train(train)
    x = torch.randn(2, 8, 8, 8)
    before = [buffer.clone() for buffer in net.buffers()]
    meter = repeat(lambda: net(x))
    changed = not all(torch.equal(old, new) for old, new in zip(before, net.buffers()))
    size = sum(tensors.storages(list(net.buffers())).values())
    return meter.figures(channels=channels, changed=changed, statistics=size)


def allocator():
    torch.ones(1 << 20)
    large = torch.ones(64 << 20)
    full = process.read().anonymous_bytes
    del large
    large_returned = full - process.read().anonymous_bytes
    small = [torch.ones(15_000) for _ in range(1000)]
    pin = torch.ones(15_000)
    full = process.read().anonymous_bytes
    small.clear()
    freed = process.read().anonymous_bytes
    process.trim()
    return {"large": 256 << 20, "large_returned": large_returned, "small": 60_000_000, "small_returned": full - freed,
            "small_trimmed": freed - process.read().anonymous_bytes, "pin": pin.numel()}


@torch.no_grad()
def in_place(inplace):
    net = torch.nn.Sequential(*(torch.nn.ReLU(inplace=inplace) for _ in range(6)))
    x = torch.randn(4 << 20)
    return repeat(lambda: net(x)).figures()


def version():
    return {"torch": torch.__version__}


if __name__ == "__main__":
    torch.manual_seed(1)
    print(json.dumps(globals()[sys.argv[1]](**json.loads(sys.argv[2]))))
