"""Operators of ONNX's experimental days that ONNX Runtime still runs at every opset, by the texts they had."""
import numpy as np

from float_types import any_float, reals, tolerance, values_of
from harness import choice, random_shape, reference, rejects


def factor_cases(rng):
    kind = any_float(rng, ["float", "double", "float16"])
    attrs = {name: float(np.float32(rng.uniform(0.3, 2))) for name in ("alpha", "beta")}
    return {"inputs": [reals(rng, random_shape(rng), kind)], "attrs": attrs, "opset": choice(rng, [7, 9, 13]),
            "rtol": 4 * tolerance(kind)["rtol"], "atol": 4 * tolerance(kind)["atol"]}


@reference("Affine", factor_cases)
def affine(inputs, attrs, **_):
    return [attrs["alpha"] * values_of(inputs[0]) + attrs["beta"]]


@reference("ScaledTanh", factor_cases)
def scaled_tanh(inputs, attrs, **_):
    return [attrs["alpha"] * np.tanh(attrs["beta"] * values_of(inputs[0]))]


@reference("ParametricSoftplus", factor_cases)
def parametric_softplus(inputs, attrs, **_):
    return [attrs["alpha"] * np.log1p(np.exp(attrs["beta"] * values_of(inputs[0])))]


def image_cases(rng):
    kind = any_float(rng, ["float", "double", "float16"])
    shape = [int(rng.integers(1, 5)) for _ in range(4)]
    attrs = {"scale": float(np.float32(rng.uniform(0.3, 2)))}
    if rng.random() < 0.8:
        attrs["bias"] = [float(np.float32(v)) for v in rng.uniform(-2, 2, shape[1])]
    return {"inputs": [reals(rng, shape, kind)], "attrs": attrs, "opset": choice(rng, [1, 7, 12]),
            "rtol": 2 * tolerance(kind)["rtol"], "atol": 2 * tolerance(kind)["atol"]}


@reference("ImageScaler", image_cases)
def image_scaler(inputs, attrs, **_):
    x = values_of(inputs[0])
    return [attrs["scale"] * x + np.array(attrs.get("bias", [0] * x.shape[1]))[:, None, None]]


def scale_cases(rng):
    case = factor_cases(rng)
    return {**case, "attrs": {"scale": case["attrs"]["alpha"]}}


@reference("Scale", scale_cases)
def scale(inputs, attrs, **_):
    return [attrs["scale"] * values_of(inputs[0])]


def crop_cases(rng):
    kind = any_float(rng, ["float", "double", "float16"])
    left, top, right, bottom, height, width = (int(v) for v in rng.integers(0, 4, 6))
    attrs = {"border": [left, top, right, bottom]}
    if rng.random() < 0.5:
        attrs["scale"] = [height, width]
    shape = [int(v) for v in rng.integers(1, 3, 2)] + [top + max(bottom, height) + int(rng.integers(0, 3)), left + max(right, width) + 1]
    return {"inputs": [reals(rng, shape, kind)], "attrs": attrs, "opset": choice(rng, [1, 7, 12])}


@reference("Crop", crop_cases)
def crop(inputs, attrs, **_):
    x = inputs[0]
    left, top, right, bottom = attrs["border"]
    height, width = attrs.get("scale", [x.shape[2] - top - bottom, x.shape[3] - left - right])
    return [x[:, :, top:top + height, left:left + width]]


def slice_cases(rng):
    shape = [int(v) for v in rng.integers(1, 6, 3)]
    axes = np.array([2, 0])
    starts, ends = rng.integers(-3, 3, 2), rng.integers(-2, 7, 2)
    return {"inputs": [reals(rng, shape, "float"), starts, ends, axes], "opset": 9}


@reference("DynamicSlice", slice_cases)
def dynamic_slice(inputs, **_):
    x, starts, ends, axes = inputs
    parts = [slice(None)] * 3
    for start, end, axis in zip(starts, ends, axes):
        parts[axis] = slice(int(start), int(end))
    return [x[tuple(parts)]]


IMAGE = np.ones([1, 2, 3, 4], np.float32)
rejects("ImageScaler", [IMAGE], {"bias": [1.0, 2.0, 3.0]}, says="one per channel", opset=7)
rejects("Crop", [IMAGE], {"border": [1, 2, 3]}, says="expected 4 numbers", opset=7)
rejects("Crop", [IMAGE], {"border": [0, 2, 0, 2]}, says="3 pixels are fewer than 4", opset=7)
