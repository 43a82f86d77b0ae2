"""Operators that have kernels for every float type: products, convolutions, pooling, sums, elementwise. In float64, from
the text of Operators.md."""
import itertools
import math

import numpy as np

from float_types import any_float, as_type, reals, tolerance, values_of
from harness import broadcastable, choice, random_shape, reference
from model_file import TYPE_NAMES, TYPES


def sums(kind, terms):
    """Sums of `terms` products of numbers up to 2, rounded once in 16 bits."""
    accept = tolerance(kind)
    size = 4 * math.sqrt(max(terms, 1))
    own = {"float": 2e-6, "double": 1e-14, "float16": 2e-6, "bfloat16": 2e-6}[kind]
    rounding = {"float": 0, "double": 0, "float16": 2e-3, "bfloat16": 1e-2}[kind]
    return {"rtol": max(rounding, accept["rtol"] / 10), "atol": own * size * 4}


def integer(rng, low, high):
    return int(rng.integers(low, high + 1))


# ---- products ---------------------------------------------------------------------------------------------------

def matmul_cases(rng):
    kind = any_float(rng)
    m, k, n = (choice(rng, [1, 2, 3, 5, 14, 33, integer(rng, 1, 90)]) for _ in range(3))
    batch = random_shape(rng, most=2, largest=3)
    left, right = [*batch, m, k], [k, n] if rng.random() < 0.5 else [*broadcastable(rng, batch), k, n]
    return {"inputs": [reals(rng, left, kind), reals(rng, right, kind)], "attrs": {}, **sums(kind, k)}


@reference("MatMul", matmul_cases)
def matmul(inputs, **_):
    return [np.matmul(values_of(inputs[0]), values_of(inputs[1]))]


def gemm_cases(rng):
    kind = any_float(rng)
    m, k, n = (choice(rng, [1, 3, 16, 31, integer(rng, 1, 70)]) for _ in range(3))
    attrs = {"transA": integer(rng, 0, 1), "transB": integer(rng, 0, 1),
             "alpha": choice(rng, [1.0, 0.5]), "beta": choice(rng, [1.0, 0.25])}
    c = choice(rng, [None, [n], [1, n], [m, 1], [m, n], [1]])
    inputs = [reals(rng, [k, m] if attrs["transA"] else [m, k], kind), reals(rng, [n, k] if attrs["transB"] else [k, n], kind)]
    if c is not None:
        inputs.append(reals(rng, c, kind))
    return {"inputs": inputs, "attrs": attrs, "opset": 13, **sums(kind, k)}


@reference("Gemm", gemm_cases)
def gemm(inputs, attrs, **_):
    a, b = values_of(inputs[0]), values_of(inputs[1])
    y = attrs["alpha"] * ((a.T if attrs["transA"] else a) @ (b.T if attrs["transB"] else b))
    return [y + attrs["beta"] * values_of(inputs[2]) if len(inputs) > 2 else y]


# ---- windows ----------------------------------------------------------------------------------------------------

def window_attrs(rng, rank, kernel, with_dilation=True):
    attrs = {"strides": [integer(rng, 1, 2) for _ in range(rank)]}
    attrs["dilations"] = [integer(rng, 1, 2) if with_dilation else 1 for _ in range(rank)]
    attrs["pads"] = [integer(rng, 0, (k - 1) // 2) for k in kernel] + [integer(rng, 0, (k - 1) // 2) for k in kernel]
    return attrs


def conv_cases(rng):
    kind, rank = any_float(rng), choice(rng, [1, 2, 2, 2, 2, 3])
    form = choice(rng, ["dense", "dense", "depthwise", "grouped", "few", "pointwise"])
    channels = {"dense": choice(rng, [1, 3, 16, 19]), "depthwise": choice(rng, [2, 17, 32]), "grouped": 4 * integer(rng, 1, 5),
                "few": 16 + integer(rng, 0, 3), "pointwise": choice(rng, [3, 32, 40])}[form]
    groups = {"depthwise": channels, "grouped": choice(rng, [2, 4])}.get(form, 1)
    out = {"depthwise": channels, "grouped": groups * integer(rng, 1, 5), "few": integer(rng, 1, 7)}.get(form, choice(rng, [1, 8, 16, 33, 40]))
    kernel = [1] * rank if form == "pointwise" else [choice(rng, [1, 2, 3, 3, 5]) for _ in range(rank)]
    attrs = window_attrs(rng, rank, kernel)
    if form == "pointwise" and rng.random() < 0.7:
        attrs["strides"], attrs["pads"] = [1] * rank, [0] * 2 * rank
    attrs |= {"group": groups, "kernel_shape": kernel}
    least = [(k - 1) * d + 1 for k, d in zip(kernel, attrs["dilations"])]
    size = [low + integer(rng, 0, 12 if rank < 3 else 4) for low in least]
    inputs = [reals(rng, [integer(rng, 1, 2), channels, *size], kind), reals(rng, [out, channels // groups, *kernel], kind)]
    if rng.random() < 0.6:
        inputs.append(reals(rng, [out], kind))
    return {"inputs": inputs, "attrs": attrs, **sums(kind, channels // groups * math.prod(kernel))}


def padded(x, pads, value):
    rank = len(pads) // 2
    return np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])], constant_values=value)


def taps(x, kernel, strides, dilations):
    """For each tap: its position, and the elements that meet it, [N, C, out...]."""
    outs = [(size - (k - 1) * d - 1) // s + 1 for size, k, s, d in zip(x.shape[2:], kernel, strides, dilations)]
    for tap in itertools.product(*map(range, kernel)):
        index = tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilations, outs, strides))
        yield tap, x[(slice(None), slice(None), *index)]


@reference("Conv", conv_cases)
def conv(inputs, attrs, **_):
    x, w = values_of(inputs[0]), values_of(inputs[1])
    groups = attrs["group"]
    y = 0
    for tap, seen in taps(padded(x, attrs["pads"], 0), attrs["kernel_shape"], attrs["strides"], attrs["dilations"]):
        seen = seen.reshape(seen.shape[0], groups, -1, *seen.shape[2:])
        weights = w[(slice(None), slice(None), *tap)].reshape(groups, -1, w.shape[1])
        part = np.einsum("ngc...,goc->ngo...", seen, weights)
        y = y + part.reshape(part.shape[0], -1, *part.shape[3:])
    if len(inputs) > 2:
        y = y + values_of(inputs[2]).reshape(1, -1, *[1] * (y.ndim - 2))
    return [y]


def transpose_cases(rng):
    kind, rank = any_float(rng), choice(rng, [1, 2, 2])
    groups = choice(rng, [1, 1, 2])
    channels, out = groups * choice(rng, [1, 3, 9]), choice(rng, [1, 4, 9])
    kernel = [choice(rng, [1, 2, 3, 4]) for _ in range(rank)]
    attrs = {"strides": [integer(rng, 1, 3) for _ in range(rank)], "group": groups}
    inputs = [reals(rng, [integer(rng, 1, 2), channels, *[integer(rng, 1, 6) for _ in kernel]], kind),
              reals(rng, [channels, out, *kernel], kind)]
    if rng.random() < 0.5:
        inputs.append(reals(rng, [out * groups], kind))
    return {"inputs": inputs, "attrs": attrs, **sums(kind, channels * math.prod(kernel))}


@reference("ConvTranspose", transpose_cases)
def conv_transpose(inputs, attrs, **_):
    x, w = values_of(inputs[0]), values_of(inputs[1])
    groups, strides, kernel = attrs["group"], attrs["strides"], w.shape[2:]
    outs = [(i - 1) * s + k for i, s, k in zip(x.shape[2:], strides, kernel)]
    y = np.zeros([x.shape[0], w.shape[1] * groups, *outs])
    grouped = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    for tap in itertools.product(*map(range, kernel)):
        weights = w[(slice(None), slice(None), *tap)].reshape(groups, -1, w.shape[1])
        part = np.einsum("ngc...,gco->ngo...", grouped, weights)
        index = tuple(slice(t, t + (i - 1) * s + 1, s) for t, i, s in zip(tap, x.shape[2:], strides))
        y[(slice(None), slice(None), *index)] += part.reshape(part.shape[0], -1, *part.shape[3:])
    if len(inputs) > 2:
        y = y + values_of(inputs[2]).reshape(1, -1, *[1] * (y.ndim - 2))
    return [y]


def pool_cases(rng):
    kind, rank = any_float(rng), choice(rng, [1, 2, 2])
    kernel = [integer(rng, 1, 3) for _ in range(rank)]
    attrs = window_attrs(rng, rank, kernel, with_dilation=False) | {"kernel_shape": kernel}
    shape = [integer(rng, 1, 2), choice(rng, [1, 5, 17]), *[k + integer(rng, 0, 9) for k in kernel]]
    return {"inputs": [reals(rng, shape, kind)], "attrs": attrs, **sums(kind, math.prod(kernel))}


@reference("MaxPool", pool_cases)
def max_pool(inputs, attrs, **_):
    x = padded(values_of(inputs[0]), attrs["pads"], -np.inf)
    return [np.max([seen for _, seen in taps(x, attrs["kernel_shape"], attrs["strides"], attrs["dilations"])], axis=0)]


def average_cases(rng):
    arguments = pool_cases(rng)
    del arguments["attrs"]["dilations"]
    arguments["attrs"]["count_include_pad"] = integer(rng, 0, 1)
    return arguments


@reference("AveragePool", average_cases)
def average_pool(inputs, attrs, **_):
    x = values_of(inputs[0])
    ones = padded(np.ones_like(x), attrs["pads"], attrs["count_include_pad"])
    form = (attrs["kernel_shape"], attrs["strides"], [1] * len(attrs["strides"]))
    total = sum(seen for _, seen in taps(padded(x, attrs["pads"], 0), *form))
    return [total / sum(seen for _, seen in taps(ones, *form))]


def global_cases(rng):
    kind = any_float(rng)
    shape = [integer(rng, 1, 3), choice(rng, [1, 7, 33]), *[integer(rng, 1, 9) for _ in range(integer(rng, 1, 3))]]
    return {"inputs": [reals(rng, shape, kind)], "attrs": {}, **sums(kind, math.prod(shape[2:]))}


@reference("GlobalAveragePool", global_cases)
def global_average_pool(inputs, **_):
    x = values_of(inputs[0])
    return [x.mean(axis=tuple(range(2, x.ndim)), keepdims=True)]


@reference("GlobalMaxPool", global_cases)
def global_max_pool(inputs, **_):
    x = values_of(inputs[0])
    return [x.max(axis=tuple(range(2, x.ndim)), keepdims=True)]


# ---- rows ---------------------------------------------------------------------------------------------------------

def softmax_cases(rng):
    kind = any_float(rng)
    shape = random_shape(rng, least=1)
    if rng.random() < 0.3:
        shape = [integer(rng, 1, 4), choice(rng, [77, 1000, 5000])]
    axis = integer(rng, -len(shape), len(shape) - 1)
    rounding = {"float": 1e-5, "double": 1e-12, "float16": 2e-3, "bfloat16": 1e-2}[kind]
    return {"inputs": [reals(rng, shape, kind, -6, 6)], "attrs": {"axis": axis}, "opset": 13, "rtol": rounding,
            "atol": 6e-8 if kind == "float16" else 1e-14}


def softmax_of(x, axis):
    if x.size == 0:
        return x
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@reference("Softmax", softmax_cases)
def softmax(inputs, attrs, **_):
    return [softmax_of(values_of(inputs[0]), attrs["axis"])]


@reference("LogSoftmax", lambda rng: softmax_cases(rng) | {"atol": 1e-3} if rng.random() < 0.5 else softmax_cases(rng) | {"atol": 1e-2})
def log_softmax(inputs, attrs, **_):
    x = values_of(inputs[0])
    return [np.log(softmax_of(x, attrs["axis"]))]


def layer_cases(rng):
    kind = any_float(rng)
    shape = random_shape(rng, least=1, largest=9)
    if rng.random() < 0.4:
        shape = [integer(rng, 1, 5), choice(rng, [96, 768, 1200])]
    shape = [max(d, 1) for d in shape]
    axis = integer(rng, -len(shape), len(shape) - 1)
    parameters = shape[axis % len(shape):]
    inputs = [reals(rng, shape, kind), reals(rng, parameters, kind)]
    if rng.random() < 0.6:
        inputs.append(reals(rng, parameters, kind))
    attrs, outputs = {"axis": axis, "epsilon": 0.01}, 1
    if rng.random() < 0.3:
        attrs["stash_type"] = choice(rng, [TYPES[name] for name in ("float", "float16", "double", "bfloat16")])
    stash = TYPE_NAMES[attrs.get("stash_type", 1)]
    if stash in ("float", "bfloat16") and rng.random() < 0.3:
        outputs = 3  # the moments, in that type
        kind = stash if stash == "bfloat16" or kind == "double" else kind
    return {"inputs": inputs, "attrs": attrs, "outputs": outputs, "opset": 17, **tolerance(kind)}


@reference("LayerNormalization", layer_cases)
def layer_normalization(inputs, attrs, outputs, **_):
    x, scale = values_of(inputs[0]), values_of(inputs[1])
    axes = tuple(range(attrs["axis"] % x.ndim, x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(((x - mean) ** 2).mean(axis=axes, keepdims=True) + np.float32(attrs["epsilon"]))
    y = (x - mean) * inverse * scale
    stash = TYPE_NAMES[attrs.get("stash_type", 1)]
    return [y + values_of(inputs[2]) if len(inputs) > 2 else y, (mean, stash), (inverse, stash)][:outputs]


def batch_cases(rng):
    kind = any_float(rng)
    channels = choice(rng, [1, 5, 40])
    shape = [integer(rng, 1, 3), channels, *[integer(rng, 1, 7) for _ in range(integer(rng, 0, 2))]]
    inputs = [reals(rng, shape, kind), *[reals(rng, [channels], kind) for _ in range(3)], reals(rng, [channels], kind, 0.1, 2)]
    return {"inputs": inputs, "attrs": {"epsilon": 0.01}, "opset": 15, **tolerance(kind)}


@reference("BatchNormalization", batch_cases)
def batch_normalization(inputs, attrs, **_):
    x = values_of(inputs[0])
    scale, bias, mean, variance = (values_of(t).reshape(1, -1, *[1] * (x.ndim - 2)) for t in inputs[1:])
    return [(x - mean) / np.sqrt(variance + np.float32(attrs["epsilon"])) * scale + bias]


REDUCTIONS = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min,
              "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k), "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
              "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k)}


def reduce_cases(rng, values=lambda rng, shape, kind, count: (reals(rng, shape, kind, 0.5, 1.5), {})):
    kind = any_float(rng)
    shape = [max(d, 1) for d in random_shape(rng, least=1, largest=9)]
    if rng.random() < 0.4:
        shape = [integer(rng, 1, 70), choice(rng, [64, 130, 5000])]
    axes = [a for a in range(len(shape)) if rng.random() < 0.5] or [len(shape) - 1]
    count = math.prod(shape[a] for a in axes)
    tensor, limits = values(rng, shape, kind, count)
    return {"inputs": [tensor, np.array(axes, np.int64)], "attrs": {"keepdims": integer(rng, 0, 1)}, "opset": 18,
            "constant_inputs": [1], "atol": 0.0, "rtol": sums(kind, count)["rtol"] * 4, **limits}


def factors(rng, shape, kind, count):
    """Numbers whose products mean the same in every order, in which operators may multiply differently.

    Mostly no product of any part of them leaves the type's normal numbers (16 bits: float's, in which they are multiplied), so
    every multiplication is off by at most a unit u, relative; the errors add up like a random walk, of `count` steps of at
    most u / sqrt(3), and six of its deviations are allowed. A float16 result may be below its normal numbers: then it is off
    by half of 2^-24 besides.
    Or they are so far below one, or above, that the product ends below the least number, or beyond the largest, in every
    order. Below one, a rounding in the subnormal numbers is off by at most half the least number, and what is multiplied
    afterwards makes that smaller: all together they are off by less than `count` times half of it, mostly 0.
    """
    unit = {"double": 2.0 ** -53}.get(kind, 2.0 ** -24)
    walk = 6 * unit * math.sqrt(count / 3)
    limits = {"rtol": {"float16": 2.0 ** -11, "bfloat16": 2.0 ** -8}.get(kind, 0.0) + walk}
    least = {"double": 2.0 ** -1074, "float16": 2.0 ** -24, "bfloat16": 2.0 ** -133}.get(kind, 2.0 ** -149)
    if count >= 2000 and rng.random() < 0.5:  # 0.4 ^ 2000 and 2.5 ^ 2000 are no doubles
        if rng.random() < 0.5:
            return reals(rng, shape, kind, 2.5, 4), limits
        return reals(rng, shape, kind, 0.1, 0.4), {**limits, "atol": count * (2.0 ** -1074 if kind == "double" else 2.0 ** -149) / 2 + least / 2}
    reach = {"double": 700.0, "float16": 11.0}.get(kind, 80.0) / count  # e^11 < 65504, e^80 < 2^127, e^-80 > 2^-126
    values = values_of(reals(rng, shape, kind, max(0.5, math.exp(-reach)), min(1.5, math.exp(reach))))
    within = np.where(np.abs(np.log(values)) > reach, 1.0, values)  # bfloat16 is cut off, and that can be far
    return as_type(within, kind)[0], {**limits, "atol": least / 2 if kind == "float16" else 0.0}


def expected_reduction(function):
    def reduction(inputs, attrs, **_):
        with np.errstate(over="ignore", under="ignore"):
            y = function(values_of(inputs[0]), axis=tuple(inputs[1]), keepdims=bool(attrs["keepdims"]))
        if isinstance(inputs[0], np.ndarray) and inputs[0].dtype == np.float16:
            y = np.where(np.abs(y) >= 65520, np.inf, y)
        elif not isinstance(inputs[0], np.ndarray) or inputs[0].dtype == np.float32:
            y = np.where(np.abs(y) > 3.4e38, np.inf, y)
        return [y]
    reduction.__module__ = __name__
    return reduction


reference("ReduceProd", lambda rng: reduce_cases(rng, factors))(expected_reduction(np.prod))
for op, of in REDUCTIONS.items():
    reference(op, reduce_cases)(expected_reduction(of))


# ---- elementwise -----------------------------------------------------------------------------------------------------

def pair_cases(rng):
    kind = any_float(rng)
    shape = random_shape(rng, largest=20)
    return {"inputs": [reals(rng, shape, kind), reals(rng, broadcastable(rng, shape), kind, 0.25, 2)], "attrs": {},
            "opset": 14, **(tolerance(kind) | {"atol": 1e-6})}


def register_pair(name, function):
    @reference(name, pair_cases)
    def pair(inputs, **_):
        return [function(values_of(inputs[0]), values_of(inputs[1]))]


for op, of in {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Min": np.minimum, "Max": np.maximum,
               "PRelu": lambda x, slope: np.where(x < 0, x * slope, x)}.items():
    register_pair(op, of)


def single_cases(rng):
    kind = any_float(rng)
    shape = random_shape(rng) if rng.random() < 0.7 else [integer(rng, 1000, 3000)]
    accept = {"float": 2e-6, "double": 1e-13, "float16": 2e-3, "bfloat16": 1e-2}[kind]
    return {"inputs": [reals(rng, shape, kind, -8, 8)], "attrs": {}, "opset": 20, "rtol": accept, "atol": accept * 1e-2}


def gelu_cases(rng):
    """1 + erf cancels where x is negative: what is left is off by units in the last place of x."""
    arguments = single_cases(rng)
    return arguments | {"atol": arguments["rtol"] * 2}


def register_single(name, function):
    @reference(name, gelu_cases if name == "Gelu" else single_cases)
    def single(inputs, **_):
        return [function(values_of(inputs[0]))]


erf = np.vectorize(math.erf, otypes=[np.float64])
for op, of in {"Relu": lambda x: np.maximum(x, 0), "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Tanh": np.tanh, "Erf": erf,
               "Exp": np.exp, "Abs": np.abs, "Neg": np.negative, "Floor": np.floor,
               "Gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))) if x.size else x,
               "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
               "Softplus": lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)}.items():
    register_single(op, of)


def resize_cases(rng):
    kind = any_float(rng)
    shape = [integer(rng, 1, 2), choice(rng, [1, 3, 17]), integer(rng, 1, 9), integer(rng, 1, 9)]
    sizes = [shape[0], shape[1], integer(rng, 1, 20), integer(rng, 1, 20)]
    return {"inputs": [reals(rng, shape, kind), None, None, np.array(sizes, np.int64)],
            "attrs": {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}, "opset": 18, "symbolic": False,
            "constant_inputs": [3], **(tolerance("float" if kind == "double" else kind))}


@reference("Resize", resize_cases)
def resize(inputs, **_):
    x, sizes = values_of(inputs[0]), inputs[3]
    for axis in (2, 3):
        size, out = x.shape[axis], int(sizes[axis])
        at = np.clip((np.arange(out) + 0.5) * size / out - 0.5, 0, size - 1)
        low = np.floor(at).astype(int)
        high, part = np.minimum(low + 1, size - 1), at - low
        part = part.reshape([-1 if i == axis else 1 for i in range(4)])
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return [x]
