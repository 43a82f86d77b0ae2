#!/usr/bin/python3
"""rounding.py: ResNet-18 beside PyTorch, where training magnifies every rounding.

    tests/train/rounding.py build/plimsoll

Of a million inputs of Relu some lie within a rounding of 0. Whoever rounds such a one to the other side has gradients that
differ by a thousandth, and weights that part from there on: PyTorch in float leaves PyTorch in double so, and PyTorch with
another convolution leaves both. What can be proved is
  gradients  of the first step, where nothing has a kink (SiLU for Relu, means for maxima): every parameter's as near to double
             as PyTorch's float is
  losses     of the first steps of ResNet-18 as it is: no farther from double than PyTorch comes by rounding alone
"""
import copy
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch

from against_torch import Case, classes, export, resnet18, train_plimsoll, train_torch

GRADIENT_FACTOR = 4  # ours may be so many times as far from double as PyTorch's float, all in all
LOSS_FACTOR = 3
SETTINGS = [(4, 1e-2), (16, 1e-4)]  # batch, rate
STEPS = 5


def smooth(module):
    """Without kinks."""
    for name, child in module.named_children():
        if isinstance(child, torch.nn.ReLU):
            setattr(module, name, torch.nn.SiLU())
        elif isinstance(child, torch.nn.MaxPool2d):
            setattr(module, name, torch.nn.AvgPool2d(3, 2, 1))
        else:
            smooth(child)
    return module


def make(batch, rate, change=lambda model: model):
    torch.manual_seed(7)
    return Case(change(resnet18()), torch.randn(64, 3, 64, 64), classes(64), batch,
                lambda p: torch.optim.SGD(p, rate, momentum=0.9),
                ["--optimizer", "sgd", "--lr", str(rate), "--momentum", "0.9"])


def read_moments(path):
    """The optimizer's float tensors of a checkpoint, by name (src/runtime/checkpoint_file.cpp)."""
    with open(path, "rb") as file:
        content = file.read()
    place = 32

    def take(form):
        nonlocal place
        value = struct.unpack_from("<" + form, content, place)[0]
        place += struct.calcsize("<" + form)
        return value

    def text():
        nonlocal place
        length = take("I")
        place += length
        return content[place - length:place].decode()

    for _ in range(take("I")):
        text()
        kind = take("B")
        if kind == 2:
            text()
        else:
            take("qf"[kind])
    moments = {}
    for _ in range(take("I")):
        name, role, kind = text(), take("B"), take("B")
        dims = [take("q") for _ in range(take("I"))]
        at, size, _ = take("Q"), take("Q"), take("Q")
        if role == 2 and kind == 1:
            moments[name] = np.frombuffer(content, np.float32, size // 4, at).reshape(dims)
    return moments


def first_gradients(command, case, model, folder):
    """With momentum, what the optimizer keeps after one step is the gradient."""
    train_plimsoll(command, case, model, folder, 0)  # writes the data
    subprocess.run([command, "train", model, "--data", folder, "--batch", str(case.batch), "--no-shuffle", "--threads", "1",
                    "--epochs", "1", "--max-steps", "1", "--checkpoint", f"{folder}/step", "--checkpoint-every", "1",
                    *case.arguments], check=True, capture_output=True)
    return read_moments(f"{folder}/step")


def torch_gradients(case, kind):
    model = copy.deepcopy(case.model).to(kind).train()
    case.loss(model(case.examples[:case.batch].to(kind)), case.labels[:case.batch]).backward()
    return {name: parameter.grad.double().numpy() for name, parameter in model.named_parameters()}


def distance(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def compare_gradients(command, batch, rate):
    case = make(batch, rate, smooth)
    with tempfile.TemporaryDirectory() as folder:
        export(case, f"{folder}/model.onnx")
        ours = first_gradients(command, case, f"{folder}/model.onnx", folder)
    floats, doubles = torch_gradients(case, torch.float32), torch_gradients(case, torch.float64)
    worst, good = (0, ""), True
    for name, expected in doubles.items():
        found = [value for key, value in ours.items() if key.startswith(name) and value.shape == expected.shape]
        if len(found) != 1:
            print(f"FAIL gradients: {len(found)} moments of '{name}'")
            return False
        here, theirs = distance(found[0], expected), distance(floats[name], expected)
        worst = max(worst, (here / theirs, name))
        good &= here <= GRADIENT_FACTOR * theirs
    print(f"{'ok  ' if good else 'FAIL'} gradients, batch {batch}: {len(doubles)} parameters, at most {worst[0]:.1f} times "
          f"as far from double as PyTorch's float ({worst[1]})")
    return good


def compare_losses(command, batch, rate):
    case = make(batch, rate)
    with tempfile.TemporaryDirectory() as folder:
        export(case, f"{folder}/model.onnx")
        ours, report = train_plimsoll(command, case, f"{folder}/model.onnx", folder, STEPS)
    if ours is None:
        print(f"FAIL losses: {report}")
        return False
    case = make(batch, rate)
    case.model.double()
    case.examples = case.examples.double()
    exact = train_torch(case, STEPS)
    plain = train_torch(make(batch, rate), STEPS)
    with torch.backends.mkldnn.flags(enabled=False):  # the same sums in another order
        other = train_torch(make(batch, rate), STEPS)
    case = make(batch, rate)
    with torch.no_grad():
        for parameter in case.model.parameters():
            parameter.mul_(1 + 6e-8 * torch.sign(torch.randn_like(parameter)))
    moved = train_torch(case, STEPS)
    far = lambda losses: max(abs(a - b) / abs(b) for a, b in zip(losses, exact))
    least, most = far(ours), max(far(plain), far(other), far(moved))
    good = least <= LOSS_FACTOR * most
    print(f"{'ok  ' if good else 'FAIL'} losses, batch {batch}, rate {rate}: {STEPS} steps within {least:.1e} of double; PyTorch "
          f"{far(plain):.1e}, in another order {far(other):.1e}, from weights moved by a bit {far(moved):.1e}")
    return good


def main():
    torch.set_num_threads(1)
    good = True
    for batch, rate in SETTINGS:
        good &= compare_gradients(sys.argv[1], batch, rate)
        good &= compare_losses(sys.argv[1], batch, rate)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
