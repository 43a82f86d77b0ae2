"""Pooling, regions, grids and blocks, from the text of Operators.md."""
import itertools
import math

import numpy as np

from float_types import any_float, as_type, reals, tolerance, values_of
from harness import choice, random_shape, reference, rejects

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


# ---- LpPool, MaxUnpool ------------------------------------------------------------------------------------------------

def window_attrs(rng, space, size, dilate=True):
    kernel = [int(rng.integers(1, 4)) for _ in range(space)]
    attrs = {"kernel_shape": kernel}
    if rng.random() < 0.6:
        attrs["strides"] = [int(rng.integers(1, 4)) for _ in range(space)]
    if dilate and rng.random() < 0.4:
        attrs["dilations"] = [int(rng.integers(1, 3)) for _ in range(space)]
    if rng.random() < 0.5:
        attrs["pads"] = [int(rng.integers(0, k)) for k in kernel * 2]
    return attrs


def lp_pool_cases(rng):
    kind, space, opset = any_float(rng), int(rng.integers(1, 4)), choice(rng, [1, 2, 11, 18, 22])
    shape = [int(rng.integers(1, 3)), int(rng.integers(1, 3)), *rng.integers(5, 9, space)]
    attrs = window_attrs(rng, space, shape, dilate=opset >= 18)
    if rng.random() < 0.3 and "dilations" not in attrs:
        attrs.pop("pads", None)
        attrs["auto_pad"] = choice(rng, ["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif opset >= 18 and rng.random() < 0.5:
        attrs["ceil_mode"] = 1
    attrs["p"] = choice(rng, [1, 2, 3]) if opset >= 2 else choice(rng, [1.0, 2.0, 2.5])
    return {"inputs": [reals(rng, shape, kind)], "attrs": attrs, "opset": opset, **tolerance(kind)}


@reference("LpPool", lp_pool_cases)
def lp_pool(inputs, attrs, **_):
    x = values_of(inputs[0])
    space = x.ndim - 2
    kernel, p = attrs["kernel_shape"], attrs["p"]
    strides, dilations = attrs.get("strides", [1] * space), attrs.get("dilations", [1] * space)
    pads, mode = attrs.get("pads", [0] * 2 * space), attrs.get("auto_pad", "NOTSET")
    out, begin = [], []
    for i in range(space):
        size, extent = x.shape[i + 2], (kernel[i] - 1) * dilations[i] + 1
        if mode.startswith("SAME"):
            count = -(-size // strides[i])
            total = max(0, (count - 1) * strides[i] + extent - size)
            first = total // 2 if mode == "SAME_UPPER" else total - total // 2
        else:
            first, last = (pads[i], pads[space + i]) if mode == "NOTSET" else (0, 0)
            room = (size + first + last - extent) / strides[i]
            count = (math.ceil(room) if attrs.get("ceil_mode") else math.floor(room)) + 1
            if attrs.get("ceil_mode") and (count - 1) * strides[i] >= size + first:
                count -= 1
        out.append(count)
        begin.append(first)
    y = np.zeros([*x.shape[:2], *out])
    for at in np.ndindex(*out):
        for tap in np.ndindex(*kernel):
            source = [a * s - b + t * d for a, s, b, t, d in zip(at, strides, begin, tap, dilations)]
            if all(0 <= q < n for q, n in zip(source, x.shape[2:])):
                y[(..., *at)] += np.abs(x[(..., *source)]) ** p
    return [y ** (1 / p)]


def unpool_cases(rng):
    kind, space = any_float(rng), int(rng.integers(1, 4))
    shape = [int(rng.integers(1, 3)), int(rng.integers(1, 3)), *(int(n) for n in rng.integers(1, 5, space))]
    attrs = {"kernel_shape": [int(rng.integers(2, 4)) for _ in range(space)]}
    if rng.random() < 0.7:
        attrs["strides"] = [int(rng.integers(1, 4)) for _ in range(space)]
    if rng.random() < 0.3:
        attrs["pads"] = [int(n) for n in rng.integers(0, 2, space)] + [0] * space
    full = unpooled_shape(shape, attrs)
    if min(full) < 1:
        attrs.pop("pads")
        full = unpooled_shape(shape, attrs)
    indices = rng.integers(0, np.prod(full), shape).astype(np.int64)
    inputs = [reals(rng, shape, kind), indices]
    if rng.random() < 0.5:
        inputs.append(np.array(full[:2] + [n + int(rng.integers(0, 3)) for n in full[2:]], np.int64))
    return {"inputs": inputs, "attrs": attrs, "opset": choice(rng, [9, 11, 22]), "rtol": 0}


def unpooled_shape(shape, attrs):
    space = len(shape) - 2
    strides, pads = attrs.get("strides", [1] * space), attrs.get("pads", [0] * 2 * space)
    return list(shape[:2]) + [(shape[i + 2] - 1) * strides[i] + attrs["kernel_shape"][i] - pads[i] - pads[space + i]
                              for i in range(space)]


@reference("MaxUnpool", unpool_cases)
def max_unpool(inputs, attrs, **_):
    x = values_of(inputs[0])
    full = unpooled_shape(x.shape, attrs)
    y = np.zeros(full)
    for value, index in zip(x.ravel(), inputs[1].ravel()):
        y.ravel()[index] = value
    if len(inputs) < 3:
        return [y]
    result = np.zeros(inputs[2])
    result[tuple(slice(n) for n in full)] = y
    return [result]


# ---- regions ------------------------------------------------------------------------------------------------------------

def regions(rng, count, height, width, kind, batch=None):
    corners = rng.uniform(-2, 1.2, [count, 4]) * [width, height, width, height]
    boxes = np.concatenate([np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1)
    if rng.random() < 0.8:
        boxes = np.abs(boxes)
    if batch is not None:
        boxes = np.concatenate([rng.integers(0, batch, [count, 1]), boxes], 1)
    return as_type(boxes, kind)[0]


def roi_pool_cases(rng):
    kind = any_float(rng)
    n, c, h, w = (int(v) for v in rng.integers(1, [3, 4, 9, 9]))
    attrs = {"pooled_shape": [int(v) for v in rng.integers(1, 4, 2)], "spatial_scale": choice(rng, [1.0, 0.5])}
    return {"inputs": [reals(rng, [n, c, h, w], kind), regions(rng, int(rng.integers(0, 5)), h, w, kind, n)], "attrs": attrs,
            "opset": choice(rng, [1, 22]), "rtol": 0}


def half_away(x):
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


@reference("MaxRoiPool", roi_pool_cases)
def max_roi_pool(inputs, attrs, **_):
    x, rois = map(values_of, inputs)
    (ph, pw), scale = attrs["pooled_shape"], attrs["spatial_scale"]
    y = np.zeros([len(rois), x.shape[1], ph, pw])
    for r, (image, *corners) in enumerate(rois):
        x1, y1, x2, y2 = (half_away(v * scale) for v in corners)
        width, height = max(x2 - x1 + 1, 1), max(y2 - y1 + 1, 1)
        for i, j in np.ndindex(ph, pw):
            rows = slice(max(0, math.floor(i * height / ph) + y1), max(0, min(x.shape[2], math.ceil((i + 1) * height / ph) + y1)))
            cols = slice(max(0, math.floor(j * width / pw) + x1), max(0, min(x.shape[3], math.ceil((j + 1) * width / pw) + x1)))
            part = x[int(image), :, rows, cols]
            if part.size:
                y[r, :, i, j] = part.max(axis=(1, 2))
    return [y]


def roi_align_cases(rng):
    kind, opset = any_float(rng, ["float", "double", "float16"]), choice(rng, [10, 16, 22])
    n, c, h, w = (int(v) for v in rng.integers(1, [3, 4, 9, 9]))
    count = int(rng.integers(0, 5))
    attrs = {"output_height": int(rng.integers(1, 4)), "output_width": int(rng.integers(1, 4)), "mode": choice(rng, ["avg", "max"]),
             "sampling_ratio": int(rng.integers(0, 4)), "spatial_scale": choice(rng, [1.0, 0.5])}
    if opset >= 16 and rng.random() < 0.6:
        attrs["coordinate_transformation_mode"] = choice(rng, ["half_pixel", "output_half_pixel"])
    return {"inputs": [reals(rng, [n, c, h, w], kind), regions(rng, count, h, w, kind), rng.integers(0, n, count).astype(np.int64)],
            "attrs": attrs, "opset": opset, **tolerance(kind)}


@reference("RoiAlign", roi_align_cases)
def roi_align(inputs, attrs, opset, **_):
    x, rois = map(values_of, inputs[:2])
    shift = 0.5 if opset >= 16 and attrs.get("coordinate_transformation_mode", "half_pixel") == "half_pixel" else 0.0
    height, width = x.shape[2:]
    y = np.zeros([len(rois), x.shape[1], attrs["output_height"], attrs["output_width"]])
    for r, image in enumerate(inputs[2]):
        x1, y1, x2, y2 = rois[r] * attrs["spatial_scale"] - shift
        w, h = x2 - x1, y2 - y1
        if not shift:
            w, h = max(w, 1.0), max(h, 1.0)
        bin_h, bin_w = h / attrs["output_height"], w / attrs["output_width"]
        rows = attrs["sampling_ratio"] or max(0, math.ceil(bin_h))
        cols = attrs["sampling_ratio"] or max(0, math.ceil(bin_w))
        for i, j in np.ndindex(*y.shape[2:]):
            samples, largest = [], []
            for a, b in np.ndindex(rows, cols):
                v, u = y1 + i * bin_h + (a + 0.5) * bin_h / rows, x1 + j * bin_w + (b + 0.5) * bin_w / cols
                if v < -1 or v > height or u < -1 or u > width:
                    samples.append(np.zeros(x.shape[1]))
                    largest.append(np.zeros(x.shape[1]))
                    continue
                v, u = min(max(v, 0), height - 1), min(max(u, 0), width - 1)
                v0, u0 = int(v), int(u)
                v1, u1 = min(v0 + 1, height - 1), min(u0 + 1, width - 1)
                parts = [(1 - (v - v0)) * (1 - (u - u0)) * x[image, :, v0, u0], (1 - (v - v0)) * (u - u0) * x[image, :, v0, u1],
                         (v - v0) * (1 - (u - u0)) * x[image, :, v1, u0], (v - v0) * (u - u0) * x[image, :, v1, u1]]
                samples.append(sum(parts))
                largest.append(np.maximum.reduce(parts))
            if samples:
                y[r, :, i, j] = sum(samples) / len(samples) if attrs["mode"] == "avg" else np.maximum.reduce(largest)
    return [y]


# ---- grids ----------------------------------------------------------------------------------------------------------------

def grid_cases(rng):
    opset = choice(rng, [16, 20, 22])
    space = 2 if opset == 16 else choice(rng, [1, 2, 3])
    kind = any_float(rng, ["float", "double"])
    shape = [int(v) for v in rng.integers(1, 4, 2)] + [int(v) for v in rng.integers(1, 6, space)]
    out = [int(v) for v in rng.integers(1, 5, space)]
    mode = choice(rng, ["nearest", "linear", "cubic"])
    grid = rng.uniform(-2.5, 2.5, [shape[0], *out, space])
    attrs = {"align_corners": choice(rng, [0, 1]), "padding_mode": choice(rng, ["zeros", "border", "reflection"]),
             "mode": {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode) if opset == 16 else mode}
    x_kind = choice(rng, ["float", "double", "float16", "bfloat16", "int", "string", "complex"])
    if x_kind == "string" and mode != "nearest":
        x_kind = "float"
    limits = {}
    if x_kind == "int":
        x = rng.integers(0, 100, shape).astype(choice(rng, INTEGERS))
        limits = {"rtol": 0, "atol": 1}  # the interpolated number may lie at the edge of an integer
        if mode != "nearest":
            x = x.astype(choice(rng, [np.int32, np.int64]))
    elif x_kind == "string":
        x = np.array([f"t{v}" for v in rng.integers(0, 9, int(np.prod(shape)))], object).reshape(shape)
    elif x_kind == "complex":
        x = (rng.uniform(-2, 2, shape) + 1j * rng.uniform(-2, 2, shape)).astype(np.complex64)
        limits = {"rtol": 1e-4, "atol": 1e-4}
    else:
        x = reals(rng, shape, x_kind)
        limits = {"rtol": 1e-4, "atol": 1e-4} if x_kind in ("float", "double") else tolerance(x_kind)
    return {"inputs": [x, as_type(grid, kind)[0]], "attrs": attrs,
            "opset": opset, **limits}


def reflected(x, low, high):
    if high <= low:
        return low
    while x < low or x > high:
        x = 2 * low - x if x < low else 2 * high - x
    return x


def axis_taps(coordinate, size, mode, padding, align):
    at = (coordinate + 1) / 2 * (size - 1) if align else ((coordinate + 1) * size - 1) / 2
    low, high = (0, size - 1) if align else (-0.5, size - 0.5)
    if mode == "nearest":
        at = float(np.rint(at))
    # With cubic weights the border goes on outside, as PyTorch and ONNX Runtime have it: the position itself is not moved there.
    if (at < low or at > high) and not (padding == "border" and mode == "cubic"):
        at = {"zeros": at, "border": min(max(at, 0), size - 1), "reflection": reflected(at, low, high)}[padding]
    first = math.floor(at)
    t = at - first
    if mode == "nearest":
        taps = [(int(at), 1.0)]
    elif mode == "linear":
        taps = [(first, 1 - t), (first + 1, t)]
    else:
        def keys(d):
            d, a = abs(d), -0.75
            return (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1 if d <= 1 else a * (d ** 3 - 5 * d ** 2 + 8 * d - 4)
        taps = [(first + k, keys(k - t)) for k in (-1, 0, 1, 2)]
    result = []
    for index, weight in taps:
        if not 0 <= index < size:
            if padding == "zeros":
                index = None
            elif padding == "border":
                index = min(max(index, 0), size - 1)
            else:
                index = int(reflected(index, low, high))
        result.append((index, weight))
    return result


@reference("GridSample", grid_cases)
def grid_sample(inputs, attrs, **_):
    x = inputs[0] if isinstance(inputs[0], np.ndarray) else values_of(inputs[0])
    grid = values_of(inputs[1])
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(attrs["mode"], attrs["mode"])
    space = x.ndim - 2
    text = x.dtype == object
    y = np.full([*x.shape[:2], *grid.shape[1:-1]], "" if text else 0, object if text else np.result_type(x.dtype, np.float64))
    for n, *at in np.ndindex(grid.shape[:-1]):
        taps = [axis_taps(grid[(n, *at, space - 1 - d)], x.shape[d + 2], mode, attrs["padding_mode"], attrs["align_corners"])
                for d in range(space)]
        for combination in itertools.product(*taps):
            if any(index is None for index, _ in combination):
                continue
            source = x[(n, slice(None), *(index for index, _ in combination))]
            y[(n, slice(None), *at)] = source if text else \
                y[(n, slice(None), *at)] + source * np.prod([weight for _, weight in combination])
    return [np.trunc(y) if x.dtype.kind in "iu" else y]


def affine_cases(rng):
    kind, space = any_float(rng), choice(rng, [2, 3])
    size = [int(v) for v in rng.integers(1, 6, space + 2)]
    theta = reals(rng, [size[0], space, space + 1], kind)
    return {"inputs": [theta, np.array(size, np.int64)], "attrs": {"align_corners": choice(rng, [0, 1])}, "opset": 20,
            **tolerance(kind)}


@reference("AffineGrid", affine_cases)
def affine_grid(inputs, attrs, **_):
    theta, size = values_of(inputs[0]), [int(v) for v in inputs[1]]
    axes = []
    for n in size[2:]:
        if attrs["align_corners"]:
            axes.append(np.linspace(-1, 1, n) if n > 1 else np.zeros(1))
        else:
            axes.append((2 * np.arange(n) + 1) / n - 1)
    places = np.stack([*np.meshgrid(*axes, indexing="ij")][::-1] + [np.ones(size[2:])], -1)
    return [np.stack([places @ theta[n].T for n in range(size[0])]) if size[0] else np.zeros([0, *size[2:], len(axes)])]


# ---- blocks and boxes -----------------------------------------------------------------------------------------------------

def col2im_cases(rng):
    space = int(rng.integers(1, 4))
    block = [int(v) for v in rng.integers(1, 4, space)]
    attrs = {}
    if rng.random() < 0.5:
        attrs["strides"] = [int(v) for v in rng.integers(1, 4, space)]
    if rng.random() < 0.5:
        attrs["dilations"] = [int(v) for v in rng.integers(1, 3, space)]
    if rng.random() < 0.5:
        attrs["pads"] = [int(v) for v in rng.integers(0, 3, 2 * space)]
    image = [int(v) for v in rng.integers(6, 10, space)]
    if rng.random() < 0.1:
        image[-1] = 300
    blocks = block_counts(image, block, attrs)
    shape = [int(rng.integers(0, 3)), int(rng.integers(1, 3)) * int(np.prod(block)), int(np.prod(blocks))]
    limits = {}
    if rng.random() < 0.7:
        kind = any_float(rng)
        x, limits = reals(rng, shape, kind), tolerance(kind)
    else:
        dtype = choice(rng, [*INTEGERS, bool, np.complex64])
        x = rng.integers(0, 2 if dtype is bool else 100, shape).astype(dtype)
    return {"inputs": [x, np.array(image, np.int64), np.array(block, np.int64)], "attrs": attrs, "opset": 18, **limits}


def block_counts(image, block, attrs):
    space = len(image)
    strides, dilations = attrs.get("strides", [1] * space), attrs.get("dilations", [1] * space)
    pads = attrs.get("pads", [0] * 2 * space)
    return [(image[i] + pads[i] + pads[space + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(space)]


@reference("Col2Im", col2im_cases)
def col2im(inputs, attrs, **_):
    x = inputs[0] if isinstance(inputs[0], np.ndarray) and inputs[0].dtype.kind in "iubc" else values_of(inputs[0])
    image, block = [int(v) for v in inputs[1]], [int(v) for v in inputs[2]]
    space, blocks = len(image), block_counts(image, block, attrs)
    strides, dilations = attrs.get("strides", [1] * space), attrs.get("dilations", [1] * space)
    pads = attrs.get("pads", [0] * 2 * space)
    x = x.reshape(x.shape[0], x.shape[1] // int(np.prod(block)), *block, *blocks)
    y = np.zeros([*x.shape[:2], *image], x.dtype)
    for tap in np.ndindex(*block):
        for at in np.ndindex(*blocks):
            target = [a * s - p + t * d for a, s, p, t, d in zip(at, strides, pads, tap, dilations)]
            if all(0 <= q < n for q, n in zip(target, image)):
                y[(slice(None), slice(None), *target)] += x[(slice(None), slice(None), *tap, *at)]
    return [y]


def crop_cases(rng):
    shape = random_shape(rng, least=1)
    axes = [a for a in range(len(shape)) if rng.random() < 0.6]
    attrs = {}
    if not axes or rng.random() < 0.3:
        axes = list(range(len(shape)))
    else:
        attrs["axes"] = [choice(rng, [a, a - len(shape)]) for a in axes]
    target = rng.integers(0, 9, len(axes)).astype(choice(rng, [np.int32, np.int64]))
    dtype = choice(rng, [*INTEGERS, np.float32, np.float16, np.float64, bool, object, np.complex128])
    x = rng.integers(0, 100, shape)
    x = np.array([f"c{v}" for v in x.ravel()], object).reshape(shape) if dtype is object else x.astype(dtype)
    return {"inputs": [x, target], "attrs": attrs, "opset": 18}


@reference("CenterCropPad", crop_cases)
def center_crop_pad(inputs, attrs, **_):
    x, target = inputs
    axes = [a % x.ndim for a in attrs.get("axes", range(x.ndim))]
    for axis, size in zip(axes, target):
        before = x.shape[axis]
        if size <= before:
            first = (before - size) // 2
            x = np.take(x, np.arange(first, first + size), axis)
        else:
            left = (size - before) // 2
            x = np.pad(x, [(left, size - before - left) if a == axis else (0, 0) for a in range(x.ndim)], constant_values="" if x.dtype == object else 0)
    return [x]


def nms_cases(rng):
    batch, classes, count = int(rng.integers(1, 3)), int(rng.integers(1, 3)), int(rng.integers(0, 30))
    boxes = rng.uniform(0, 1, [batch, count, 4]).astype(np.float32)
    centered = choice(rng, [0, 1])
    if centered:
        boxes[..., 2:] *= 0.5
    scores = rng.choice(np.linspace(0, 1, 12), [batch, classes, count]).astype(np.float32)
    inputs = [boxes, scores, np.array(choice(rng, [0, 1, 5, 100]), np.int64) if rng.random() < 0.5 else np.array([50], np.int64)]
    if rng.random() < 0.8:
        inputs.append(np.array([rng.uniform(0, 1)], np.float32))
        if rng.random() < 0.6:
            inputs.append(np.array(rng.uniform(0, 1), np.float32))
    return {"inputs": inputs, "attrs": {"center_point_box": centered}, "opset": choice(rng, [10, 11])}


@reference("NonMaxSuppression", nms_cases)
def non_max_suppression(inputs, attrs, **_):
    boxes, scores = inputs[:2]
    most = int(inputs[2].ravel()[0])
    overlap = np.float32(inputs[3].ravel()[0]) if len(inputs) > 3 else np.float32(0)
    least = inputs[4].ravel()[0] if len(inputs) > 4 else None
    if attrs["center_point_box"]:
        middle, half = boxes[..., :2], boxes[..., 2:] / np.float32(2)
        low, high = middle - half, middle + half
    else:
        low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    chosen = []
    for b, c in np.ndindex(*scores.shape[:2]):
        kept = []
        for i in sorted(range(scores.shape[2]), key=lambda k: (-scores[b, c, k], k)):
            if len(kept) >= most:
                break
            if least is not None and not scores[b, c, i] > least:
                continue
            clear = True
            for j in kept:
                both = np.prod(np.maximum(0, np.minimum(high[b, i], high[b, j]) - np.maximum(low[b, i], low[b, j])))
                either = np.prod(high[b, i] - low[b, i]) + np.prod(high[b, j] - low[b, j]) - both
                clear = clear and not (both > 0 and either > 0 and both / either > overlap)
            if clear:
                kept.append(i)
        chosen += [[b, c, i] for i in kept]
    return [np.array(chosen, np.int64).reshape(-1, 3)]


def deform_cases(rng):
    kind, space = any_float(rng), choice(rng, [1, 2, 2, 2, 3])
    groups, offset_groups = choice(rng, [1, 1, 2]), choice(rng, [1, 2])
    channels, outputs = 2 * groups * choice(rng, [1, 2]), groups * int(rng.integers(1, 4))
    size = [int(v) for v in rng.integers(3, 7 if space < 3 else 5, space)]
    if space == 2 and rng.random() < 0.2:
        size = [12, 14]
    kernel = [int(v) for v in rng.integers(1, 4 if space < 3 else 3, space)]
    attrs = {"group": groups, "offset_group": offset_groups}
    if rng.random() < 0.4:
        attrs["kernel_shape"] = kernel
    if rng.random() < 0.4:
        attrs["strides"] = [int(v) for v in rng.integers(1, 3, space)]
    if rng.random() < 0.6:
        attrs["pads"] = [int(v) for v in rng.integers(0, 3, 2 * space)]
    if rng.random() < 0.3:
        attrs["dilations"] = [int(v) for v in rng.integers(1, 3, space)]
        attrs["pads"] = [2] * 2 * space
    out = block_counts(size, kernel, attrs)
    batch, taps = int(rng.integers(1, 3)), int(np.prod(kernel))
    inputs = [reals(rng, [batch, channels, *size], kind), reals(rng, [outputs, channels // groups, *kernel], kind),
              reals(rng, [batch, offset_groups * taps * space, *out], kind)]
    if rng.random() < 0.5:
        inputs.append(reals(rng, [outputs], kind) if rng.random() < 0.7 else None)
        if inputs[-1] is None or rng.random() < 0.6:
            inputs.append(reals(rng, [batch, offset_groups * taps, *out], kind))
    limits = tolerance(kind)
    return {"inputs": inputs, "attrs": attrs, "opset": choice(rng, [19, 22]), "rtol": limits["rtol"], "atol": limits["atol"] * 20}


@reference("DeformConv", deform_cases)
def deform_conv(inputs, attrs, **_):
    x, w, offset = map(values_of, inputs[:3])
    space, kernel = x.ndim - 2, w.shape[2:]
    strides, dilations = attrs.get("strides", [1] * space), attrs.get("dilations", [1] * space)
    pads, groups, offset_groups = attrs.get("pads", [0] * 2 * space), attrs["group"], attrs["offset_group"]
    out = offset.shape[2:]
    offset = offset.reshape(x.shape[0], offset_groups, *kernel, space, *out)
    mask = values_of(inputs[4]).reshape(x.shape[0], offset_groups, *kernel, *out) if len(inputs) > 4 else None
    bias = values_of(inputs[3]) if len(inputs) > 3 and inputs[3] is not None else np.zeros(w.shape[0])
    y = np.zeros([x.shape[0], w.shape[0], *out]) + bias.reshape(1, -1, *[1] * space)
    per_group, per_offset, rows = x.shape[1] // groups, x.shape[1] // offset_groups, w.shape[0] // groups
    for n, c, *at in np.ndindex(x.shape[0], x.shape[1], *out):
        for tap in np.ndindex(*kernel):
            shifts = offset[(n, c // per_offset, *tap, slice(None), *at)]
            place = [a * s - p + t * d + q for a, s, p, t, d, q in zip(at, strides, pads, tap, dilations, shifts)]
            value = 0.0
            for corner in itertools.product([0, 1], repeat=space):
                index = [math.floor(v) + k for v, k in zip(place, corner)]
                if all(0 <= i < m for i, m in zip(index, x.shape[2:])):
                    value += x[(n, c, *index)] * np.prod([1 - abs(v - i) for v, i in zip(place, index)])
            if mask is not None:
                value *= mask[(n, c // per_offset, *tap, *at)]
            group = c // per_group
            y[(n, slice(group * rows, (group + 1) * rows), *at)] += value * w[(slice(group * rows, (group + 1) * rows), c % per_group, *tap)]
    return [y]


IMAGE = np.zeros([1, 2, 4, 4], np.float32)
rejects("LpPool", [IMAGE], {"kernel_shape": [2, 2], "p": 0}, says="'p'")
rejects("LpPool", [IMAGE], says="kernel_shape")
rejects("LpPool", [IMAGE], {"kernel_shape": [2]}, says="kernel_shape")
rejects("LpPool", [IMAGE], {"kernel_shape": [6, 6]}, says="shape")
rejects("MaxUnpool", [IMAGE, np.full([1, 2, 4, 4], 1 << 40)], {"kernel_shape": [1, 1]}, says="outside [0, 32)")
rejects("MaxUnpool", [IMAGE, np.full([1, 2, 4, 4], -1)], {"kernel_shape": [1, 1]}, says="index -1")
rejects("MaxUnpool", [IMAGE, np.zeros([1, 2, 4, 4], np.int64), np.array([1, 2, 4, 3])], {"kernel_shape": [1, 1]}, says="smaller")
rejects("MaxUnpool", [IMAGE, np.zeros([1, 2, 4, 3], np.int64)], {"kernel_shape": [1, 1]}, says="differ")
rejects("MaxRoiPool", [IMAGE, np.array([[1, 0, 0, 1, 1]], np.float32)], {"pooled_shape": [1, 1]}, opset=22, says="batch index 1")
rejects("MaxRoiPool", [IMAGE, np.array([[np.nan, 0, 0, 1, 1]], np.float32)], {"pooled_shape": [1, 1]}, opset=22, says="not finite")
rejects("MaxRoiPool", [IMAGE, np.zeros([1, 4], np.float32)], {"pooled_shape": [1, 1]}, opset=22, says="differ")
rejects("MaxRoiPool", [IMAGE, np.zeros([1, 5], np.float32)], {"pooled_shape": [1, 0]}, opset=22, says="pooled_shape")
BOX = np.array([[0, 0, 3, 3]], np.float32)
rejects("RoiAlign", [IMAGE, BOX, np.array([1])], says="batch index 1")
rejects("RoiAlign", [IMAGE, BOX, np.array([-1])], says="batch index -1")
rejects("RoiAlign", [IMAGE, np.full([1, 4], np.inf, np.float32), np.array([0])], says="not finite")
rejects("RoiAlign", [IMAGE, BOX, np.array([0])], {"sampling_ratio": 1 << 40}, says="sampling_ratio")
rejects("RoiAlign", [IMAGE, BOX, np.array([0, 0])], says="differ")
GRID = np.zeros([1, 2, 2, 2], np.float32)
rejects("GridSample", [IMAGE, GRID], {"mode": "bilinear"}, opset=20, says="bilinear")
rejects("GridSample", [IMAGE, GRID], {"padding_mode": "wrap"}, opset=20, says="wrap")
rejects("GridSample", [IMAGE, GRID[..., :1]], opset=20, says="differ")
rejects("GridSample", [np.full([1, 1, 2, 2], "a", object), GRID], opset=20, says="strings")
rejects("AffineGrid", [np.zeros([1, 2, 3], np.float32), np.array([1, 1, 2])], opset=20, says="4 or 5")
rejects("AffineGrid", [np.zeros([2, 2, 3], np.float32), np.array([1, 1, 2, 2])], opset=20, says="differ")
rejects("AffineGrid", [np.zeros([1, 2, 3], np.float32), np.array([1, 1, -2, 2])], opset=20, says="shape")
COLUMNS = np.zeros([1, 4, 9], np.float32)
rejects("Col2Im", [COLUMNS, np.array([5, 4]), np.array([2, 2])], says="blocks")
rejects("Col2Im", [COLUMNS, np.array([4, 4]), np.array([2, 3])], says="multiple")
rejects("Col2Im", [COLUMNS, np.array([4, 4]), np.array([0, 2])], says="no elements")
rejects("Col2Im", [COLUMNS, np.array([4, 4]), np.array([2])], says="elements")
rejects("Col2Im", [COLUMNS, np.array([-4, 4]), np.array([2, 2])], says="")
rejects("CenterCropPad", [IMAGE, np.array([1, 2])], says="one per axis")
rejects("CenterCropPad", [IMAGE, np.array([1, 2, 3, -4])], says="shape")
rejects("CenterCropPad", [IMAGE, np.array([1, 2])], {"axes": [0, 4]}, says="axis 4")
rejects("NonMaxSuppression", [np.zeros([1, 3, 4], np.float32), np.zeros([1, 1, 3], np.float32), np.array(1), np.array(np.nan, np.float32)],
        says="iou_threshold")
rejects("NonMaxSuppression", [np.zeros([1, 3, 5], np.float32), np.zeros([1, 1, 3], np.float32)], says="differ")
rejects("NonMaxSuppression", [np.zeros([1, 3, 4], np.float32), np.zeros([1, 1, 4], np.float32)], says="differ")
rejects("NonMaxSuppression", [np.zeros([1, 3, 4], np.float32), np.zeros([1, 1, 3], np.float32), np.array([1, 2])], says="one number")
WEIGHTS, OFFSETS = np.zeros([1, 2, 2, 2], np.float32), np.zeros([1, 8, 3, 3], np.float32)
rejects("DeformConv", [IMAGE, WEIGHTS, OFFSETS[:, :7]], says="input 2: expected shape [1, 8, 3, 3]")
rejects("DeformConv", [IMAGE, WEIGHTS, OFFSETS, np.zeros(2, np.float32)], says="input 3")
rejects("DeformConv", [IMAGE, WEIGHTS, OFFSETS], {"group": 2}, says="differ")
rejects("DeformConv", [IMAGE, WEIGHTS, OFFSETS], {"offset_group": 3}, says="divided")
rejects("DeformConv", [IMAGE, WEIGHTS, OFFSETS], {"channels_last": 1}, says="channels_last")
