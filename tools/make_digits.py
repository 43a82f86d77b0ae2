#!/usr/bin/python3
"""make_digits.py: trains the example model and writes examples/{digits.onnx, digit.npy, digit.txt}.

A small convolutional network on scikit-learn's handwritten digits (8x8 pixels, 1,797 of them, a fifth held back for the
test). Needs Debian's python3-torch and python3-sklearn. Takes about half a minute.
"""
import pathlib
import sys
import warnings

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
EPOCHS, BATCH = 40, 64
NEEDED_ACCURACY = 0.97
MAX_BYTES = 300_000


def network():
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(*block(1, 16), *block(16, 32), nn.MaxPool2d(2), *block(32, 64), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(64 * 2 * 2, 64), nn.ReLU(), nn.Linear(64, 10))


def train(model, images, labels):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    model.train()
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
        schedule.step()
    model.eval()


def main():
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    train_set, test_set = train_test_split(np.arange(len(labels)), test_size=0.2, random_state=0, stratify=labels)

    model = network()
    train(model, images[train_set], labels[train_set])
    with torch.no_grad():
        right = model(images[test_set]).argmax(1) == labels[test_set]
    accuracy = right.float().mean().item()
    print(f"test accuracy {accuracy:.2%} on {len(test_set)} digits")
    if accuracy < NEEDED_ACCURACY:
        sys.exit(f"error: below {NEEDED_ACCURACY:.0%}")

    EXAMPLES.mkdir(exist_ok=True)
    path = EXAMPLES / "digits.onnx"
    warnings.filterwarnings("ignore")
    # Training mode "preserve" and no folding keep BatchNormalization in the file: a pass of ours folds it.
    torch.onnx.export(model, images[:1], str(path), input_names=["image"], output_names=["logits"], opset_version=15,
                      dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    if path.stat().st_size > MAX_BYTES:
        sys.exit(f"error: {path} has {path.stat().st_size} bytes, more than {MAX_BYTES}")

    # The picture for the demo is of the test set, which the model has never seen, and easy to read at 8x8.
    shown = test_set[2]
    np.save(EXAMPLES / "digit.npy", images[shown:shown + 1].numpy())
    (EXAMPLES / "digit.txt").write_text(f"{labels[shown].item()}\n")
    print(f"wrote {path} ({path.stat().st_size} bytes); the digit shown is a {labels[shown].item()}")


if __name__ == "__main__":
    main()
