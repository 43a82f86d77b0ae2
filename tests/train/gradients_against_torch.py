#!/usr/bin/python3
"""gradients_against_torch.py: the gradient of every operator that PyTorch has, beside PyTorch's own.

    tests/train/gradients_against_torch.py build/plimsoll [--seeds 2] [NAME...]

A case is one node with random inputs of random sizes and PyTorch's function for it. All float outputs are multiplied by random
numbers and summed; the sum and its gradients are compared, in double and in float.
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

warnings.filterwarnings("ignore")  # scatter_reduce is a beta
TOLERANCE = {np.float64: 1e-8, np.float32: 3e-4}  # relative to the largest element
FLOAT_POSITIONS = {"Resize": 2e-6, "Upsample": 2e-6}  # in double: where they sample is computed in float, as ONNX Runtime does
DOMAIN = "ai.onnx.preview.training"


class Case:
    """`inputs` are arrays: floats are differentiated unless `fixed` has their number; None is absent."""

    def __init__(self, op, function, inputs, attributes=None, opset=21, domain="", outputs=1, fixed=(), types=tuple(TOLERANCE)):
        self.op, self.function, self.inputs, self.attributes = op, function, inputs, attributes or {}
        self.opset, self.domain, self.outputs, self.fixed, self.types = opset, domain, outputs, fixed, types

    def differentiated(self, i):
        x = self.inputs[i]
        return x is not None and x.dtype == np.float64 and i not in self.fixed


class Draw:
    """Sizes and values of one seed. Values keep clear of whole multiples of 0.5, where kinks are."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def size(self, low=1, high=5):
        return int(self.random.integers(low, high + 1))

    def reals(self, *shape, low=-2.0, high=2.0):
        x = self.random.uniform(low, high, shape)
        near = np.round(x * 2) / 2
        return np.where(np.abs(x - near) < 0.01, near + 0.02, x)

    def distinct(self, *shape):
        count = int(np.prod(shape))
        return (self.random.permutation(count).reshape(shape) + 0.3) / count * 4 - 2

    def integers(self, high, *shape):
        return self.random.integers(0, high, shape).astype(np.int64)


def ints(*values):
    return np.array(values, np.int64)


def unary_cases(d):
    a, b = d.size(), d.size()

    def case(op, function, low=-2.0, high=2.0, opset=21, **attributes):
        return Case(op, function, [d.reals(a, b, low=low, high=high)], attributes, opset)

    yield case("Abs", torch.abs)
    yield case("Acos", torch.acos, -0.9, 0.9)
    yield case("Acosh", torch.acosh, 1.1, 3)
    yield case("Asin", torch.asin, -0.9, 0.9)
    yield case("Asinh", torch.asinh)
    yield case("Atan", torch.atan)
    yield case("Atanh", torch.atanh, -0.9, 0.9)
    yield case("Ceil", torch.ceil)
    yield case("Celu", lambda x: F.celu(x, 0.75), alpha=0.75)
    yield case("Clip", lambda x: torch.clamp(x, -1, 1), opset=6, min=-1.0, max=1.0)
    yield case("Cos", torch.cos)
    yield case("Cosh", torch.cosh)
    yield case("Elu", lambda x: F.elu(x, 0.5), alpha=0.5)
    yield case("Erf", torch.erf)
    yield case("Exp", torch.exp)
    yield case("Floor", torch.floor)
    yield case("Gelu", F.gelu)
    yield case("Gelu", lambda x: F.gelu(x, approximate="tanh"), approximate="tanh")
    yield case("HardSigmoid", lambda x: F.hardtanh(0.25 * x + 0.5, 0, 1), alpha=0.25)
    yield case("HardSwish", F.hardswish)
    yield case("Identity", lambda x: x)
    yield case("LeakyRelu", lambda x: F.leaky_relu(x, 0.25), alpha=0.25)
    yield case("Log", torch.log, 0.1, 3)
    yield case("LogSoftmax", lambda x: torch.log_softmax(x, 1), axis=1)
    yield case("Softmax", lambda x: torch.softmax(x, 0), axis=0)
    yield case("Mish", F.mish)
    yield case("Neg", torch.neg)
    yield case("Reciprocal", torch.reciprocal, 0.2, 3)
    yield case("Relu", torch.relu)
    yield case("Round", torch.round)
    yield case("Selu", lambda x: 1.25 * F.elu(x, 1.75), alpha=1.75, gamma=1.25)
    yield case("Shrink", lambda x: F.hardshrink(x, 0.75), lambd=0.75)
    yield case("Shrink", lambda x: F.softshrink(x, 0.75), lambd=0.75, bias=0.75)
    yield case("Sigmoid", torch.sigmoid)
    yield case("Sign", torch.sign)
    yield case("Sin", torch.sin)
    yield case("Sinh", torch.sinh)
    yield case("Softplus", F.softplus)
    yield case("Softsign", F.softsign)
    yield case("Sqrt", torch.sqrt, 0.1, 3)
    yield case("Swish", F.silu, opset=24)
    yield case("Tan", torch.tan, -1, 1)
    yield case("Tanh", torch.tanh)
    yield case("ThresholdedRelu", lambda x: F.threshold(x, 0.75, 0), alpha=0.75)
    yield case("Trilu", torch.triu)
    yield case("Trilu", torch.tril, upper=0)
    yield case("Cast", lambda x: x.double(), to=TensorProto.DOUBLE)


def binary_cases(d):
    a, b, c = d.size(), d.size(), d.size()
    x, y = d.reals(a, b, c, low=0.3, high=2), d.reals(b, 1, low=0.3, high=2)
    for op, function in [("Add", torch.add), ("Sub", torch.sub), ("Mul", torch.mul), ("Div", torch.div), ("Pow", torch.pow),
                         ("Max", torch.maximum), ("Min", torch.minimum), ("Mean", lambda p, q: (p + q) / 2),
                         ("Sum", torch.add)]:
        yield Case(op, function, [x, y])
    yield Case("Mod", torch.fmod, [x, y], {"fmod": 1})
    yield Case("PRelu", lambda p, q: torch.where(p > 0, p, p * q), [d.reals(a, b, c), d.reals(b, 1)])
    yield Case("Where", torch.where, [d.integers(2, a, b, c).astype(bool), d.reals(a, b, c), d.reals(b, c)])
    yield Case("MatMul", torch.matmul, [d.reals(a, b, c), d.reals(a, c, 3)])
    yield Case("MatMul", torch.matmul, [d.reals(c), d.reals(a, c, 3)])
    yield Case("Gemm", lambda p, q, r: 0.5 * p.T @ q + 2 * r, [d.reals(b, a), d.reals(b, c), d.reals(c)],
               {"alpha": 0.5, "beta": 2.0, "transA": 1})
    yield Case("Einsum", lambda p, q: torch.einsum("...ij,jk->...ik", p, q), [d.reals(a, b, c), d.reals(c, 2)],
               {"equation": "...ij,jk->...ik"})
    yield Case("CastLike", lambda p, q: p + 0 * q.sum().detach(), [d.reals(a, b), d.reals(1)], fixed=(1,))
    n = d.size(2, 4)
    square = d.reals(2, n, n) + 3 * np.eye(n)
    yield Case("Det", torch.det, [square])
    yield Case("Inverse", torch.inverse, [square], opset=21, domain="com.microsoft")


def movement_cases(d):
    a, b, c = d.size(2), d.size(2), d.size(2)
    x = d.reals(a, b, c)
    yield Case("Concat", lambda p, q: torch.cat([p, q], 1), [x, d.reals(a, 2, c)], {"axis": 1})
    yield Case("DepthToSpace", lambda p: F.pixel_shuffle(p, 2), [d.reals(a, 8, b, c)], {"blocksize": 2, "mode": "CRD"})
    yield Case("SpaceToDepth", lambda p: F.pixel_unshuffle(p, 2).reshape(a, 2, 4, b, c).transpose(1, 2).reshape(a, 8, b, c),
               [d.reals(a, 2, 2 * b, 2 * c)], {"blocksize": 2})
    yield Case("Expand", lambda p, _: p.expand(3, a, b), [d.reals(a, 1), ints(3, a, b)])
    yield Case("Flatten", lambda p: p.flatten(1), [x], {"axis": 1})
    index = d.integers(b, 3, 2)
    yield Case("Gather", lambda p, i: p[:, i], [x, index], {"axis": 1})
    index = d.integers(b, a, 3, c)
    yield Case("GatherElements", lambda p, i: torch.gather(p, 1, i), [x, index], {"axis": 1})
    index = np.stack([d.integers(a, 4), d.integers(b, 4)], 1)
    yield Case("GatherND", lambda p, i: p[i[:, 0], i[:, 1]], [x, index])
    index = np.argsort(d.random.random((a, b, c)), 1)[:, :1]
    updates = d.reals(a, 1, c)
    yield Case("ScatterElements", lambda p, i, u: p.scatter(1, i, u), [x, index, updates], {"axis": 1})
    for reduction, name in [("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin")]:
        yield Case("ScatterElements", lambda p, i, u, name=name: p.scatter_reduce(1, i, u, name),
                   [d.reals(a, b, c), d.integers(b, a, 3, c), d.reals(a, 3, c)], {"axis": 1, "reduction": reduction}, 18)
    yield Case("ScatterND", lambda p, i, u: p.index_put((i[:, 0],), u), [x, ints(1, 0)[:, None], d.reals(2, b, c)])
    yield Case("Pad", lambda p, _, v: F.pad(p, (1, 2, 0, 1)), [x, ints(0, 0, 1, 0, 1, 2), np.zeros(())], fixed=(2,))
    yield Case("Pad", lambda p, _: F.pad(p, (1, 1), mode="reflect"), [d.reals(2, 3, 4), ints(0, 0, 1, 0, 0, 1)],
               {"mode": "reflect"})
    yield Case("Pad", lambda p, _: F.pad(p, (2, 1), mode="replicate"), [x, ints(0, 0, 2, 0, 0, 1)], {"mode": "edge"})
    yield Case("Reshape", lambda p, _: p.reshape(c, -1), [x, ints(c, -1)])
    yield Case("ReverseSequence", lambda p, n: torch.cat([torch.cat([p[:k, i].flip(0), p[k:, i]])[:, None]
                                                         for i, k in enumerate(n.tolist())], 1),
               [x, d.integers(a, b) + 1])
    yield Case("Slice", lambda p, *_: p[:, 1:], [x, ints(1), ints(99), ints(1)])
    yield Case("Split", lambda p, _: torch.split(p, [1, b - 1], 1), [x, ints(1, b - 1)], {"axis": 1}, outputs=2)
    yield Case("Squeeze", lambda p, _: p.squeeze(1), [d.reals(a, 1, b), ints(1)])
    yield Case("Unsqueeze", lambda p, _: p.unsqueeze(0), [x, ints(0)])
    yield Case("Tile", lambda p, _: p.repeat(2, 1, 3), [x, ints(2, 1, 3)])
    yield Case("Transpose", lambda p: p.permute(2, 0, 1), [x], {"perm": [2, 0, 1]})
    mask = d.integers(2, b).astype(bool)
    mask[0] = True
    yield Case("Compress", lambda p, m: p[:, m], [x, mask], {"axis": 1})
    yield Case("Col2Im", lambda p, *_: F.fold(p, (4, 5), (2, 2)), [d.reals(2, 12, 12), ints(4, 5), ints(2, 2)], opset=18)
    pooled, place = F.max_pool2d(torch.tensor(d.distinct(1, 2, 4, 6)), 2, return_indices=True)
    flat = place.numpy() + 24 * np.arange(2).reshape(1, 2, 1, 1)
    yield Case("MaxUnpool", lambda p, _: F.max_unpool2d(p, place, 2), [pooled.numpy(), flat],
               {"kernel_shape": [2, 2], "strides": [2, 2]})


def reduction_cases(d):
    a, b, c = d.size(2), d.size(2), d.size(2)
    x, axes = d.reals(a, b, c, low=0.2), ints(1)
    both = d.reals(a, b, c)
    yield Case("ReduceSum", lambda p, _: p.sum(1, True), [both, axes])
    yield Case("ReduceMean", lambda p, _: p.mean(1, True), [both, axes])
    yield Case("ReduceProd", lambda p, _: p.prod(1, True), [both, axes])
    yield Case("ReduceMax", lambda p, _: p.amax(1, True), [both, axes])
    yield Case("ReduceMin", lambda p, _: p.amin(1, True), [both, axes])
    yield Case("ReduceL1", lambda p, _: p.norm(1, 1, True), [both, axes])
    yield Case("ReduceL2", lambda p, _: p.norm(2, 1, True), [both, axes])
    yield Case("ReduceLogSum", lambda p, _: p.sum(1, True).log(), [x, axes])
    yield Case("ReduceLogSumExp", lambda p, _: p.logsumexp(1, True), [both, axes])
    yield Case("ReduceSumSquare", lambda p, _: (p * p).sum(1, True), [both, axes])
    yield Case("CumSum", lambda p, _: p.cumsum(1), [both, np.array(1)])
    yield Case("CumProd", lambda p, _: p.cumprod(1), [both, np.array(1)], opset=26)
    yield Case("TopK", lambda p, _: torch.topk(p, 2, 1)[0], [d.distinct(a, b, c), ints(2)], {"axis": 1}, outputs=2)
    yield Case("LpNormalization", lambda p: F.normalize(p, dim=1, eps=0), [both], {"axis": 1})
    yield Case("LayerNormalization", lambda p, w, v: F.layer_norm(p, (c,), w, v, float(np.float32(1e-5))),
               [both, d.reals(c), d.reals(c)])
    yield Case("RMSNormalization", lambda p, w: p / (p.pow(2).mean(-1, True) + float(np.float32(1e-5))).sqrt() * w,
               [both, d.reals(c)], opset=23)
    image, eps = d.reals(2, 4, b + 1, c), float(np.float32(1e-5))
    yield Case("InstanceNormalization", lambda p, w, v: F.instance_norm(p, weight=w, bias=v, eps=eps),
               [image, d.reals(4), d.reals(4)])
    yield Case("GroupNormalization", lambda p, w, v: F.group_norm(p, 2, w, v, eps), [image, d.reals(4), d.reals(4)],
               {"num_groups": 2})
    yield Case("BatchNormalization",
               lambda p, w, v, m, s: F.batch_norm(p, m.detach(), s.detach(), w, v, False, 0.1, eps),
               [image, d.reals(4), d.reals(4), d.reals(4), d.reals(4, low=0.5)], fixed=(3, 4))
    yield Case("BatchNormalization",
               lambda p, w, v, m, s: F.batch_norm(p, None, None, w, v, True, 0.1, eps),
               [image, d.reals(4), d.reals(4), d.reals(4), d.reals(4, low=0.5)], {"training_mode": 1}, fixed=(3, 4))
    size = d.size(1, 3)
    yield Case("LRN", lambda p: F.local_response_norm(p, size, 0.25, 0.5, 1.5), [image],
               {"size": size, "alpha": 0.25, "beta": 0.5, "bias": 1.5}) if size % 2 else \
        Case("LRN", lambda p: F.local_response_norm(p, 3, 0.25, 0.5, 1.5), [image],
             {"size": 3, "alpha": 0.25, "beta": 0.5, "bias": 1.5})
    yield Case("MeanVarianceNormalization",
               lambda p: (p - p.mean((0, 2, 3), True)) / (p.var((0, 2, 3), False, True).sqrt() + 1e-9), [image])


def window_cases(d):
    n, g = d.size(1, 3), 2
    k, s, p, dil = d.size(1, 3), d.size(1, 2), d.size(0, 1), d.size(1, 2)
    for space in (1, 2, 3):
        conv = [F.conv1d, F.conv2d, F.conv3d][space - 1]
        transposed = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][space - 1]
        side = [7, 6, 5][:space]
        attributes = {"kernel_shape": [k] * space, "strides": [s] * space, "pads": [p] * 2 * space,
                      "dilations": [dil] * space, "group": g}
        yield Case("Conv", lambda x, w, b, f=conv: f(x, w, b, s, p, dil, g),
                   [d.reals(n, 4, *side), d.reals(6, 2, *[k] * space), d.reals(6)], attributes)
        yield Case("ConvTranspose", lambda x, w, b, f=transposed: f(x, w, b, s, p if k > 1 else 0, 0, g, dil),
                   [d.reals(n, 4, *side), d.reals(4, 3, *[k] * space), d.reals(6)],
                   {**attributes, "pads": [p if k > 1 else 0] * 2 * space})
        pool = max(k, 2)
        attributes = {"kernel_shape": [pool] * space, "strides": [s] * space, "pads": [p] * 2 * space}
        mean = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][space - 1]
        most = [F.max_pool1d, F.max_pool2d, F.max_pool3d][space - 1]
        yield Case("AveragePool", lambda x, f=mean: f(x, pool, s, p), [d.reals(n, 3, *side)],
                   {**attributes, "count_include_pad": 1})
        yield Case("MaxPool", lambda x, f=most: f(x, pool, s, p), [d.distinct(n, 3, *side)], attributes)
        axes = tuple(range(2, 2 + space))
        yield Case("GlobalAveragePool", lambda x, a=axes: x.mean(a, True), [d.reals(n, 3, *side)])
        yield Case("GlobalMaxPool", lambda x, a=axes: x.amax(a, True), [d.distinct(n, 3, *side)])
    yield Case("LpPool", lambda x: F.lp_pool2d(x, 2, 2), [d.reals(n, 2, 4, 6, low=0.2)],
               {"kernel_shape": [2, 2], "strides": [2, 2], "p": 2})
    yield Case("GlobalLpPool", lambda x: x.pow(2).sum((2, 3), True).sqrt(), [d.reals(n, 2, 4, 3, low=0.2)], {"p": 2})


def sampling_cases(d):
    h, w, oh, ow = d.size(3, 6), d.size(3, 6), d.size(2, 9), d.size(2, 9)
    x = d.reals(2, 3, h, w)
    for mode, torch_mode in [("nearest", "nearest"), ("linear", "bilinear"), ("cubic", "bicubic")]:
        for align in (False, True):
            if mode == "nearest" and align:
                continue
            coordinates = "align_corners" if align else "asymmetric" if mode == "nearest" else "half_pixel"
            attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": "floor"}
            options = {} if mode == "nearest" else {"align_corners": align}
            yield Case("Resize", lambda p, *_, m=torch_mode, o=options: F.interpolate(p, (oh, ow), mode=m, **o),
                       [x, None, None, ints(2, 3, oh, ow)], attributes)
    for mode in ("linear", "cubic"):
        yield Case("Resize", lambda p, *_, m=mode: F.interpolate(p, (oh, ow), mode="bi" + m, antialias=True),
                   [x, None, None, ints(2, 3, oh, ow)],
                   {"mode": mode, "antialias": 1, "exclude_outside": 1, "cubic_coeff_a": -0.5})
    yield Case("Upsample", lambda p, _: F.interpolate(p, scale_factor=2, mode="nearest"),
               [x, np.array([1, 1, 2, 2], np.float32)], opset=9)
    grid = d.reals(2, oh, ow, 2, low=-1.3, high=1.3)
    for mode, torch_mode in [("nearest", "nearest"), ("linear", "bilinear"), ("cubic", "bicubic")]:
        for padding in ("zeros", "border", "reflection"):
            align = bool(d.integers(2, 1)[0])
            yield Case("GridSample",
                       lambda p, q, m=torch_mode, pad=padding, a=align: F.grid_sample(p, q, m, pad, a),
                       [x, grid], {"mode": mode, "padding_mode": padding, "align_corners": int(align)})
    align = bool(d.integers(2, 1)[0])
    yield Case("AffineGrid", lambda t, _: F.affine_grid(t, (2, 3, h, w), align), [d.reals(2, 2, 3), ints(2, 3, h, w)],
               {"align_corners": int(align)})
    yield Case("DFT", lambda p, *_: torch.view_as_real(torch.fft.fft(torch.view_as_complex(p), dim=1)),
               [d.reals(2, h, 2), None, np.array(1)])
    yield Case("DFT", lambda p, *_: torch.view_as_real(torch.fft.rfft(p[..., 0], dim=1)),
               [d.reals(2, h, 1), None, np.array(1)], {"onesided": 1})


def loss_cases(d):
    n, c, l = d.size(2), d.size(2), d.size()
    scores, labels = d.reals(n, c, l), d.integers(c, n, l)
    weight = d.reals(c, low=0.3)
    for reduction in ("mean", "sum", "none"):
        yield Case("SoftmaxCrossEntropyLoss", lambda x, y, w, r=reduction: F.cross_entropy(x, y, w.detach(), reduction=r),
                   [scores, labels, weight], {"reduction": reduction}, fixed=(2,))
        yield Case("NegativeLogLikelihoodLoss", lambda x, y, w, r=reduction: F.nll_loss(x, y, w.detach(), reduction=r),
                   [scores, labels, weight], {"reduction": reduction}, fixed=(2,))


def recurrent_cases(d):
    t, n, i, h = d.size(2), d.size(1, 3), d.size(1, 4), d.size(1, 4)
    order = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}  # of torch's gates, as ONNX has them
    modules = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}
    for op, gates in order.items():
        for both in (False, True):
            ways = 2 if both else 1

            def function(x, w, r, b, op=op, gates=gates, ways=ways, both=both):
                values = []
                for way in range(ways):
                    unsort = np.argsort(gates)
                    take = lambda m: torch.cat([m.reshape(len(gates), h, -1)[k] for k in unsort]) if m.dim() == 2 else \
                        torch.cat([m.reshape(len(gates), h)[k] for k in unsort])
                    bw, br = b[way].split(len(gates) * h)
                    values += [take(w[way]), take(r[way]), take(bw), take(br)]
                module = modules[op](i, h, bidirectional=both).to(x.dtype)
                module._flat_weights = values
                y, state = module(x)
                y = y.reshape(t, n, ways, h).transpose(1, 2)
                return (y, *state) if op == "LSTM" else (y, state)

            size = len(gates) * h
            yield Case(op, function, [d.reals(t, n, i), d.reals(ways, size, i), d.reals(ways, size, h), d.reals(ways, 2 * size)],
                       {"hidden_size": h, "direction": "bidirectional" if both else "forward",
                        **({"linear_before_reset": 1} if op == "GRU" else {})}, 14, outputs=3 if op == "LSTM" else 2)


def attention_cases(d):
    b, groups, heads, s, t, e = d.size(1, 2), d.size(1, 3), d.size(1, 2), d.size(2, 4), d.size(2, 5), d.size(1, 4)
    q, k, v = d.reals(b, heads * groups, s, e), d.reals(b, heads, t, e), d.reals(b, heads, t, 3)

    def attend(q, k, v, mask=None, causal=False, cap=0.0):
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        scores = q @ k.transpose(2, 3) / e ** 0.5
        if cap:
            scores = cap * torch.tanh(scores / cap)
        if mask is not None:
            scores = scores + mask
        if causal:
            scores = scores.masked_fill(torch.ones(s, k.shape[2]).triu(k.shape[2] - s + 1).bool(), float("-inf"))
        return torch.softmax(scores, -1) @ v

    yield Case("Attention", attend, [q, k, v, d.reals(s, t)], opset=23)
    yield Case("Attention", lambda *x: attend(*x, cap=1.5), [q, k, v], {"softcap": 1.5}, 23)
    yield Case("Attention", lambda q, k, v, _, pk, pv: attend(q, torch.cat([pk, k], 2), torch.cat([pv, v], 2), causal=True),
               [q, k[:, :, :1].repeat(s, 2), v[:, :, :1].repeat(s, 2), None, d.reals(b, heads, 2, e), d.reals(b, heads, 2, 3)],
               {"is_causal": 1}, 23)


def multi_head_cases(d):
    """ONNX Runtime's MultiHeadAttention: floats only."""
    b, heads, s, t, e, f = d.size(1, 3), d.size(1, 3), d.size(2, 4), d.size(2, 5), d.size(1, 4), d.size(1, 4)
    q, k, v = d.reals(b, s, heads * e), d.reals(b, t, heads * e), d.reals(b, t, heads * f)
    bias, added = d.reals(heads * (2 * e + f)), d.reals(1, heads, s, t)
    lengths = d.random.integers(1, t + 1, b).astype(np.int32)
    seen = (d.random.random((b, t)) < 0.7).astype(np.int32)
    seen[:, 0] = 1

    def attend(q, k, v, bias=None, added=None, hidden=None, causal=False, scale=e ** -0.5):
        if bias is not None:
            of_q, of_k, of_v = bias.split([heads * e, heads * e, heads * f])
            q, k, v = q + of_q, k + of_k, v + of_v
        q, k, v = (x.reshape(b, x.shape[1], heads, -1).transpose(1, 2) for x in (q, k, v))
        scores = q @ k.transpose(2, 3) * scale
        if added is not None:
            scores = scores + added
        if hidden is not None:
            scores = scores - 10000.0 * hidden[:, None, None]
        if causal:
            scores = scores.masked_fill(torch.ones(s, k.shape[2]).triu(1).bool(), float("-inf"))
        return (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, s, -1)

    def case(function, inputs, **attributes):
        return Case("MultiHeadAttention", function, inputs, {"num_heads": heads, **attributes}, 21, "com.microsoft", types=(np.float32,))

    yield case(attend, [q, k, v])
    yield case(lambda q, k, v, c: attend(q, k, v, c, scale=0.3), [q, k, v, bias], scale=0.3)
    yield case(lambda q, k, v, c, _, m: attend(q, k, v, c, m), [q, k, v, bias, None, added])
    yield case(lambda q, k, v, c, n, m: attend(q, k, v, c, m, torch.arange(t) >= n[:, None]), [q, k, v, bias, lengths, added])
    yield case(lambda q, k, v, _, n: attend(q, k, v, hidden=n == 0), [q, k, v, None, seen])
    yield case(lambda *x: attend(*x, causal=True), [q, k[:, :1].repeat(s, 1), v[:, :1].repeat(s, 1)], unidirectional=1)


FAMILIES = [unary_cases, binary_cases, movement_cases, reduction_cases, window_cases, sampling_cases, loss_cases, recurrent_cases,
            attention_cases, multi_head_cases]


def write_model(case, kind, weights, path):
    """One node, the weighted sum of its outputs, and Gradient."""
    real = helper.np_dtype_to_tensor_dtype(np.dtype(kind)) if hasattr(helper, "np_dtype_to_tensor_dtype") else \
        onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(kind)]
    names, inputs, constants = [], [], []
    for i, x in enumerate(case.inputs):
        names.append("" if x is None else f"x{i}")
        if x is None:
            continue
        x = x.astype(kind) if x.dtype == np.float64 else x
        if case.differentiated(i):
            inputs.append(helper.make_tensor_value_info(f"x{i}", real, x.shape))
        else:
            constants.append(numpy_helper.from_array(np.asarray(x), f"x{i}"))
    while names and not names[-1]:
        names.pop()
    outputs = [f"y{i}" for i in range(case.outputs)]
    attributes = dict(case.attributes)
    if case.op == "Cast":
        attributes["to"] = real
    nodes = [helper.make_node(case.op, names, outputs, "node", domain=case.domain, **attributes)]
    parts = []
    for i, weight in enumerate(weights):
        constants.append(numpy_helper.from_array(weight.astype(kind), f"w{i}"))
        nodes.append(helper.make_node("Mul", [f"y{i}", f"w{i}"], [f"p{i}"]))
        nodes.append(helper.make_node("ReduceSum", [f"p{i}"], [f"s{i}"], keepdims=0))
        parts.append(f"s{i}")
    nodes.append(helper.make_node("Sum", parts, ["y"]))
    xs = [f"x{i}" for i in range(len(case.inputs)) if case.differentiated(i)]
    nodes.append(helper.make_node("Gradient", xs, [f"d_{x}" for x in xs], domain=DOMAIN, xs=xs, y="y"))
    made = [helper.make_tensor_value_info(name, real, None) for name in ["y", *[f"d_{x}" for x in xs]]]
    graph = helper.make_graph(nodes, "case", inputs, made, constants)
    imports = [helper.make_opsetid("", case.opset), helper.make_opsetid(DOMAIN, 1)]
    if case.domain:
        imports.append(helper.make_opsetid(case.domain, 1))
    pathlib.Path(path).write_bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())
    return xs


def torch_result(case, kind, draw):
    tensors = []
    for i, x in enumerate(case.inputs):
        tensor = None if x is None else torch.tensor(np.asarray(x).astype(kind) if x.dtype == np.float64 else np.asarray(x))
        if tensor is not None and case.differentiated(i):
            tensor.requires_grad_(True)
        tensors.append(tensor)
    found = case.function(*tensors)
    found = list(found) if isinstance(found, tuple) else [found]
    weights = [draw.reals(*y.shape, low=0.5) for y in found]
    total = sum((y * torch.tensor(w.astype(kind))).sum() for y, w in zip(found, weights))
    if total.requires_grad:
        total.backward()
    gradients = [np.zeros(x.shape) if x.grad is None else x.grad.numpy()
                 for i, x in enumerate(tensors) if case.differentiated(i)]
    return weights, [total.detach().numpy(), *gradients]


def check(command, case, seed):
    """None, or what is wrong."""
    for kind in case.types:
        tolerance = max(TOLERANCE[kind], FLOAT_POSITIONS.get(case.op, 0))
        weights, expected = torch_result(case, kind, Draw(seed + 1000))
        with tempfile.TemporaryDirectory() as folder:
            xs = write_model(case, kind, weights, f"{folder}/model.onnx")
            words = [command, "run", f"{folder}/model.onnx", "--output", folder, "--threads", "1"]
            for name in xs:
                np.save(f"{folder}/{name}.npy", np.ascontiguousarray(case.inputs[int(name[1:])].astype(kind)))
                words += ["--input", f"{name}={folder}/{name}.npy"]
            result = subprocess.run(words, capture_output=True, text=True)
            if result.returncode != 0:
                return result.stderr.strip()[:300]
            found = [np.load(f"{folder}/{i}.npy") for i in range(len(expected))]
        for name, ours, theirs in zip(["y", *xs], found, expected):
            if ours.shape != theirs.shape:
                return f"{name}: shape {ours.shape}, PyTorch's {theirs.shape}"
            far = np.max(np.abs(ours - theirs), initial=0) / max(1, np.max(np.abs(theirs), initial=0))
            if not far <= tolerance:
                return f"{name} in {np.dtype(kind).name}: {far:.1e} from PyTorch's"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    work = []
    for seed in range(arguments.seeds):
        for number, family in enumerate(FAMILIES):
            for case in family(Draw(100 * seed + number)):
                if not arguments.names or case.op in arguments.names:
                    work.append((case, seed))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (case, seed), wrong in zip(work, pool.map(lambda item: check(arguments.command, *item), work)):
            if wrong is not None:
                failed += 1
                print(f"FAIL {case.op} {case.attributes} (seed {seed}): {wrong}")
    print(f"{len({case.op for case, _ in work})} operators")
    print(f"{len(work) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
