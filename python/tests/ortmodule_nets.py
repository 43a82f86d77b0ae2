"""Modules that the tests of ORTModule train, and how they are held against PyTorch."""
import copy
import math

import torch
from torch import nn

from plimsoll.training.ortmodule import ORTModule


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


class ConvNet(nn.Module):
    def __init__(self, **norm):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8, **norm)
        self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, stride=2), nn.BatchNorm2d(8, **norm)
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.norm1(self.conv1(x))), 2)
        return self.out(torch.relu(self.norm2(self.conv2(x))).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width=32, heads=4, dropout=0.0):
        super().__init__()
        self.heads, self.drop = heads, nn.Dropout(dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        batch, tokens, width = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, dim=2))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)).masked_fill(mask, float("-inf"))
        mixed = (self.drop(scores.softmax(-1)) @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.drop(self.project(mixed))
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    def __init__(self, layers=2, width=32, tokens=16, vocabulary=50, dropout=0.0, tied=False):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, dropout=dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.words.weight
        self.register_buffer("mask", torch.ones(tokens, tokens, dtype=torch.bool).triu(1))

    def forward(self, ids):
        tokens = ids.shape[1]
        x = self.words(ids) + self.places.weight[:tokens]
        for block in self.blocks:
            x = block(x, self.mask[:tokens, :tokens])
        return self.head(self.norm(x))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(6, 8, num_layers=2, batch_first=True, bidirectional=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


def made(net, *arguments, seed=0, **keywords):
    torch.manual_seed(seed)
    return net(*arguments, **keywords)


def close(ours, theirs, tolerance=1e-5):
    """Relative to the largest of them: elements near zero are sums of larger ones."""
    scale = max(float(theirs.detach().abs().max()), 1e-3) if theirs.numel() else 1.0
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance * scale)


def same_training(net, batches, loss, steps=6, tolerance=1e-5, rate=0.05):
    """Both are trained; losses, gradients and buffers stay together. Returns ours and theirs."""
    ours, theirs = ORTModule(net), copy.deepcopy(net)
    optimizers = [torch.optim.SGD(one.parameters(), rate, momentum=0.9) for one in (ours, theirs)]
    for step in range(steps):
        batch, target = batches(step)
        losses = []
        for model, optimizer in zip((ours, theirs), optimizers):
            optimizer.zero_grad()
            losses.append(loss(model(batch), target))
            losses[-1].backward()
        assert ours._fallback.pending is None
        close(losses[0], losses[1], tolerance * (1 + step))
        for (name, a), (other, b) in zip(ours.named_parameters(), theirs.named_parameters()):
            assert name == other
            assert (a.grad is None) == (b.grad is None), name
            if a.grad is not None:
                close(a.grad, b.grad, 10 * tolerance * (1 + step))
        for optimizer in optimizers:
            optimizer.step()
        for (_, a), (_, b) in zip(ours.named_buffers(), theirs.named_buffers()):
            if a.dtype.is_floating_point:
                close(a, b, 10 * tolerance * (1 + step))
            else:
                assert torch.equal(a, b)
    return ours, theirs
