"""Normalizations, from the text of Operators.md."""
import numpy as np

from float_types import any_float, as_type, reals, tolerance, values_of
from harness import broadcastable, choice, random_shape, reference, rejects


def rms_cases(rng):
    kind, scale_kind = any_float(rng), any_float(rng)
    shape = random_shape(rng, least=1)
    if rng.random() < 0.2:
        shape = [int(rng.integers(1, 4)), int(rng.integers(200, 900))]
    axis = int(rng.integers(-len(shape), len(shape)))
    if rng.random() < 0.6:
        scale_shape = shape[axis % len(shape):]
        scale_kind = kind
    else:
        scale_shape = broadcastable(rng, shape)
    attrs = {"axis": axis, "epsilon": float(rng.uniform(1e-6, 0.1)), "stash_type": choice(rng, [1, 1, 11])}
    worst = max((kind, scale_kind), key=lambda k: tolerance(k)["rtol"])
    return {"inputs": [reals(rng, shape, kind), reals(rng, scale_shape, scale_kind)], "attrs": attrs, "opset": 23,
            "scale_kind": scale_kind, **tolerance(worst)}


@reference("RMSNormalization", rms_cases)
def rms_normalization(inputs, attrs, scale_kind, **_):
    x, scale = values_of(inputs[0]), values_of(inputs[1])
    axes = tuple(range(attrs["axis"] % x.ndim, x.ndim))
    mean = np.mean(x * x, axis=axes, keepdims=True) if x.size else 1
    return [(x / np.sqrt(mean + np.float32(attrs["epsilon"])) * scale, scale_kind)]


def layer_cases(rng):
    """Scale and bias of any shape that can be broadcast to X."""
    kind = any_float(rng)
    shape = random_shape(rng, least=1)
    axis = int(rng.integers(-len(shape), len(shape)))
    parameters = [reals(rng, broadcastable(rng, shape) if rng.random() < 0.7 else shape[axis % len(shape):], kind)
                  for _ in range(int(rng.integers(1, 3)))]
    attrs = {"axis": axis, "epsilon": float(rng.uniform(1e-4, 0.1))}
    return {"inputs": [reals(rng, shape, kind), *parameters], "attrs": attrs, "opset": 17, **tolerance(kind)}


@reference("LayerNormalization", layer_cases)
def layer_normalization(inputs, attrs, **_):
    x, scale, *bias = map(values_of, inputs)
    axes = tuple(range(attrs["axis"] % x.ndim, x.ndim))
    if x.size == 0:
        return [x]
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + np.float32(attrs["epsilon"]))
    return [y * scale + (bias[0] if bias else 0)]


rejects("LayerNormalization", [np.zeros((2, 3), np.float32), np.zeros(2, np.float32)], opset=17, says="expected 3 elements")


def group_cases(rng):
    kind, opset = any_float(rng), choice(rng, [18, 21, 22])
    groups, per = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    shape = [int(rng.integers(1, 4)), groups * per, *random_shape(rng, most=4, largest=6)]
    parameters = groups if opset < 21 else groups * per
    attrs = {"num_groups": groups, "epsilon": float(rng.uniform(1e-5, 0.1))}
    return {"inputs": [reals(rng, shape, kind), reals(rng, [parameters], kind), reals(rng, [parameters], kind)],
            "attrs": attrs, "opset": opset, **tolerance(kind)}


@reference("GroupNormalization", group_cases)
def group_normalization(inputs, attrs, opset, **_):
    x, scale, bias = map(values_of, inputs)
    groups = attrs["num_groups"]
    if x.size == 0:
        return [x]
    grouped = x.reshape(x.shape[0], groups, -1)
    y = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + np.float32(attrs["epsilon"]))
    if opset < 21:
        return [(y * scale[:, None] + bias[:, None]).reshape(x.shape)]
    y = y.reshape(x.shape[0], x.shape[1], -1)
    return [(y * scale[:, None] + bias[:, None]).reshape(x.shape)]


def mvn_cases(rng):
    kind = any_float(rng)
    shape = random_shape(rng, largest=7)
    if rng.random() < 0.3:
        shape = [3, 2, int(rng.integers(1, 5)), int(rng.integers(100, 300))]
    axes = [int(a) - (len(shape) if rng.random() < 0.5 else 0) for a in range(len(shape)) if rng.random() < 0.5]
    attrs = {"axes": axes} if axes else {}
    if not axes:
        shape = [int(rng.integers(1, 5)) for _ in range(4)]
    return {"inputs": [reals(rng, shape, kind)], "attrs": attrs, "opset": choice(rng, [9, 13]), **tolerance(kind)}


@reference("MeanVarianceNormalization", mvn_cases)
def mean_variance_normalization(inputs, attrs, **_):
    x = values_of(inputs[0])
    axes = tuple(attrs.get("axes", [0, 2, 3]))
    if x.size == 0:
        return [x]
    mean = x.mean(axes, keepdims=True)
    return [(x - mean) / (np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True)) + 1e-9)]


def lp_cases(rng):
    kind = any_float(rng)
    shape = random_shape(rng, least=1, largest=8)
    if rng.random() < 0.3:
        shape = [2, int(rng.integers(1, 400)), choice(rng, [1, 200])]
    x = values_of(reals(rng, shape, kind))
    if rng.random() < 0.3:
        x[...] = 0
    attrs = {"axis": int(rng.integers(-len(shape), len(shape))), "p": choice(rng, [1, 2])}
    return {"inputs": [as_type(x, kind)[0]], "attrs": attrs, "opset": choice(rng, [1, 22]), **tolerance(kind)}


@reference("LpNormalization", lp_cases)
def lp_normalization(inputs, attrs, **_):
    x = values_of(inputs[0])
    norm = (np.abs(x) ** attrs["p"]).sum(attrs["axis"], keepdims=True) ** (1 / attrs["p"])
    return [np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm))]


def lrn_cases(rng):
    kind = any_float(rng)
    shape = [int(rng.integers(1, 4)), int(rng.integers(1, 9)), *random_shape(rng, most=4, largest=5)]
    if rng.random() < 0.2:
        shape = [1, 5, int(rng.integers(100, 400))]
    attrs = {"size": int(rng.integers(1, 12)), "alpha": float(rng.uniform(0.01, 1)), "beta": choice(rng, [0.5, 0.75, 1.0, 1.3]),
             "bias": float(rng.uniform(0.5, 2))}
    return {"inputs": [reals(rng, shape, kind)], "attrs": attrs, "opset": choice(rng, [1, 13]), **tolerance(kind)}


@reference("LRN", lrn_cases)
def lrn(inputs, attrs, **_):
    x = values_of(inputs[0])
    size, total = attrs["size"], np.zeros(x.shape)
    for c in range(x.shape[1]):
        first, last = max(0, c - (size - 1) // 2), min(x.shape[1] - 1, c + -(-(size - 1) // 2))
        total[:, c] = (x[:, first:last + 1] ** 2).sum(1)
    alpha, beta, bias = (float(np.float32(attrs[key])) for key in ("alpha", "beta", "bias"))
    return [x / (bias + alpha / size * total) ** beta]


X = np.zeros([2, 4, 3], np.float32)
rejects("RMSNormalization", [X, np.ones(4, np.float32)], opset=23, says="cannot be broadcast")
rejects("RMSNormalization", [X, np.ones(3, np.float32)], {"axis": 3}, opset=23, says="axis 3")
rejects("RMSNormalization", [X, np.ones(3, np.float32)], {"stash_type": 6}, opset=23, says="stash_type")
rejects("GroupNormalization", [X, np.ones(4, np.float32), np.ones(4, np.float32)], {"num_groups": 3}, says="divided")
rejects("GroupNormalization", [X, np.ones(4, np.float32), np.ones(4, np.float32)], {"num_groups": 0}, says="num_groups")
rejects("GroupNormalization", [X, np.ones(4, np.float32), np.ones(4, np.float32)], says="num_groups")
rejects("GroupNormalization", [X, np.ones(2, np.float32), np.ones(4, np.float32)], {"num_groups": 2}, says="one per channel")
rejects("MeanVarianceNormalization", [X], says="axis 3")
rejects("MeanVarianceNormalization", [X], {"axes": [0, -3]}, says="twice")
rejects("LpNormalization", [X], {"p": 3}, says="expected 1 or 2")
rejects("LpNormalization", [X], {"axis": -4}, says="axis -4")
rejects("LRN", [X], {"size": 0}, says="size")
rejects("LRN", [X], says="'size' is missing")
rejects("LRN", [np.zeros(3, np.int32)], {"size": 1}, says="int32")
