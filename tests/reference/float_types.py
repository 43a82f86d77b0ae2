"""Tensors of every float type together with the exact float64 values that they stand for."""
import numpy as np

from harness import choice

FLOATS = ["float", "double", "float16", "bfloat16"]
NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16}


def widen_bfloat16(bits):
    wide = np.left_shift(np.atleast_1d(bits).astype(np.uint32), np.uint32(16)).view(np.float32)
    return wide.astype(np.float64).reshape(bits.shape)


def as_type(values, kind):
    """(tensor of that type, its values as float64). Rounding is to nearest; only bfloat16 is cut off."""
    values = np.asarray(values, np.float64)
    if kind == "bfloat16":
        bits = np.right_shift(np.atleast_1d(values).astype(np.float32).view(np.uint32), np.uint32(16))
        bits = bits.astype(np.uint16).reshape(values.shape)
        return (bits, "bfloat16"), widen_bfloat16(bits)
    tensor = values.astype(NUMPY[kind])
    return tensor, tensor.astype(np.float64)


def values_of(tensor):
    if tensor is None:
        return None
    if isinstance(tensor, tuple):
        return widen_bfloat16(tensor[0])
    return tensor.astype(np.float64)


def reals(rng, shape, kind, low=-2.0, high=2.0):
    return as_type(rng.uniform(low, high, shape), kind)[0]


def any_float(rng, kinds=FLOATS):
    return choice(rng, kinds)


def tolerance(kind):
    """For sums: relative and absolute."""
    return {"float": {"rtol": 2e-5, "atol": 2e-6}, "double": {"rtol": 1e-10, "atol": 1e-12},
            "float16": {"rtol": 4e-3, "atol": 4e-3}, "bfloat16": {"rtol": 2e-2, "atol": 2e-2}}[kind]
