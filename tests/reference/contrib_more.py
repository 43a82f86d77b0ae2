"""com.microsoft's rarer operators, from the text of ContribOperators.md."""
import math

import numpy as np

from contrib import contrib, refuses, some
from float_types import any_float, reals, tolerance, values_of
from harness import choice, random_shape


def loose(kind, factor=4):
    accept = tolerance(kind)
    return {"rtol": accept["rtol"] * factor, "atol": max(accept["atol"] * factor, accept["rtol"] * factor)}


def gated_add_cases(rng):
    kind = any_float(rng)
    shape = random_shape(rng, least=1)
    return {"inputs": [reals(rng, shape, kind), reals(rng, shape, kind), reals(rng, [*shape[:-1], 1], kind)], **loose(kind)}


@contrib("GatedAdd", gated_add_cases)
def gated_add(inputs, **_):
    x, y, gate = (values_of(i) for i in inputs)
    return [x + y * gate]


def gated_norm_cases(rng):
    kind = choice(rng, ["float", "float16", "bfloat16"])
    group = some(rng, 9)
    shape = [*random_shape(rng, most=3), group * some(rng, 3)]
    attrs = {"epsilon": 1e-3} if rng.random() < 0.5 else {}
    return {"inputs": [reals(rng, shape, kind), reals(rng, [group], kind), reals(rng, shape, kind, -4, 4)], "attrs": attrs, **loose(kind)}


@contrib("GatedRMSNorm", gated_norm_cases)
def gated_rms_norm(inputs, attrs, **_):
    x, scale, gate = (values_of(i) for i in inputs)
    groups = x.reshape(*x.shape[:-1], x.shape[-1] // scale.size, scale.size)
    normal = groups / np.sqrt((groups ** 2).mean(-1, keepdims=True) + np.float32(attrs.get("epsilon", 1e-5))) * scale
    return [normal.reshape(x.shape) * gate / (1 + np.exp(-gate))]


def integer16_cases(rng):
    batch, m, k, n = some(rng, 3), some(rng), some(rng, 9), some(rng)
    number = lambda *shape: rng.integers(-32768, 32768, shape).astype(np.int16)  # noqa: E731
    return {"inputs": [number(batch, m, k), number(*choice(rng, [(k, n), (batch, k, n)]))]}


@contrib("MatMulInteger16", integer16_cases)
def mat_mul_integer16(inputs, **_):
    return [(inputs[0].astype(np.int64) @ inputs[1].astype(np.int64)).astype(np.int32)]


def unfold_cases(rng):
    shape = random_shape(rng, most=4, least=1, zeros=False)
    axis = int(rng.integers(-len(shape), len(shape)))
    attrs = {"dim": axis, "size": some(rng, shape[axis]), "step": some(rng, 3)}
    dtype = choice(rng, [np.float32, np.int64, np.uint8, np.float64])
    return {"inputs": [rng.integers(0, 100, shape).astype(dtype)], "attrs": attrs}


@contrib("UnfoldTensor", unfold_cases)
def unfold_tensor(inputs, attrs, **_):
    windows = np.lib.stride_tricks.sliding_window_view(inputs[0], attrs["size"], attrs["dim"])
    steps = [slice(None)] * inputs[0].ndim
    steps[attrs["dim"]] = slice(None, None, attrs["step"])
    return [windows[tuple(steps)]]


def is_between_buckets(buckets, attrs, longest=40):
    """Whether a distance lies where two buckets meet, as 12 does between 8 and 18: two logarithms decide then, by an ulp."""
    buckets //= 1 + attrs["is_bidirectional"]
    exact, farthest = buckets // 2, attrs["max_distance"]
    distances = np.array([d for d in range(exact + 1, longest) if d != farthest])
    bucket = np.log(distances / exact) / np.log(farthest / exact) * (buckets - exact)
    return np.any(abs(bucket - np.round(bucket)) < 1e-4)


def relative_cases(rng):
    kind = choice(rng, ["float", "float16"])
    buckets, heads = 4 * some(rng, 5), some(rng, 3)
    attrs = {"max_distance": buckets + some(rng, 100), "is_bidirectional": int(rng.integers(2))}
    while is_between_buckets(buckets, attrs):
        attrs["max_distance"] += 1
    lengths = [np.array([some(rng, 40)], np.int64) for _ in range(2)]
    return {"inputs": [reals(rng, [buckets, heads], kind), *lengths], "attrs": attrs, **tolerance(kind)}


@contrib("RelativePositionBias", relative_cases)
def relative_position_bias(inputs, attrs, **_):
    """The buckets of each head stand behind each other in memory, whatever the table's shape says."""
    table = values_of(inputs[0])
    buckets, heads = table.shape
    by_head = table.reshape(heads, buckets)
    distance = np.arange(int(inputs[2][0]))[None] - np.arange(int(inputs[1][0]))[:, None]
    first = np.zeros(distance.shape, int)
    if attrs["is_bidirectional"]:
        buckets //= 2
        first = np.where(distance > 0, buckets, 0)
        distance = np.abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = buckets // 2
    ratio = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact)) / np.log(np.float32(attrs["max_distance"]) / np.float32(exact))
    far = np.minimum(exact + (ratio * np.float32(buckets - exact)).astype(int), buckets - 1)
    return [by_head[:, first + np.where(distance < exact, distance, far)][None]]


def rfft_cases(rng):
    kind = choice(rng, ["float", "double"])
    shape = [*random_shape(rng, most=3), 2 * some(rng, 20)]
    return {"inputs": [reals(rng, shape, kind)], "attrs": {"signal_ndim": 1, "onesided": 1, "normalized": 0}, **loose(kind, 20)}


@contrib("Rfft", rfft_cases)
def rfft(inputs, **_):
    y = np.fft.rfft(values_of(inputs[0]))
    return [np.stack([y.real, y.imag], -1)]


def irfft_cases(rng):
    kind = choice(rng, ["float", "double"])
    x = np.fft.rfft(rng.uniform(-2, 2, [*random_shape(rng, most=3, zeros=False), 2 * some(rng, 20)]))
    dtype = {"float": np.float32, "double": np.float64}[kind]
    return {"inputs": [np.stack([x.real, x.imag], -1).astype(dtype)], "attrs": {"signal_ndim": 1}, **loose(kind, 20)}


@contrib("Irfft", irfft_cases)
def irfft(inputs, **_):
    x = inputs[0].astype(float)
    return [np.fft.irfft(x[..., 0] + 1j * x[..., 1])]


def murmur_cases(rng):
    kind = choice(rng, ["int32", "uint32", "int64", "uint64", "float32", "float64", "string"])
    shape = random_shape(rng, most=3)
    if kind == "string":
        letters = list("abcdeé中 ")
        x = np.array(["".join(rng.choice(letters, int(rng.integers(0, 9)))) for _ in range(math.prod(shape))], object).reshape(shape)
    else:
        x = rng.integers(0, 1 << 30, shape).astype(kind)
    attrs = {"seed": int(rng.integers(0, 1 << 32))} if rng.random() < 0.5 else {}
    if rng.random() < 0.5:
        attrs["positive"] = int(rng.integers(2))
    return {"inputs": [x], "attrs": attrs}


def murmur(data, seed):
    mask, rotated = 0xffffffff, lambda v, n: (v << n | v >> (32 - n)) & 0xffffffff  # noqa: E731
    mixed = lambda k: rotated(k * 0xcc9e2d51 & mask, 15) * 0x1b873593 & mask  # noqa: E731
    whole, h = len(data) // 4 * 4, seed
    for i in range(0, whole, 4):
        h = (rotated(h ^ mixed(int.from_bytes(data[i:i + 4], "little")), 13) * 5 + 0xe6546b64) & mask
    h ^= mixed(int.from_bytes(data[whole:], "little")) ^ len(data)
    h = (h ^ h >> 16) * 0x85ebca6b & mask
    h = (h ^ h >> 13) * 0xc2b2ae35 & mask
    return h ^ h >> 16


def warping_cases(rng):
    shape = [1, *(int(n) for n in rng.integers(1, 12, 2))]
    costs = rng.integers(-3, 4, shape).astype(np.float32) if rng.random() < 0.3 else rng.normal(size=shape).astype(np.float32)
    return {"inputs": [costs], "attrs": {}, "constant_inputs": [0] if rng.random() < 0.2 else []}


@contrib("DynamicTimeWarping", warping_cases)
def dynamic_time_warping(inputs, **_):
    """Sums of the cheapest ways to every element; back from the last one. Of equal ones the next column is taken."""
    costs = inputs[0][0]
    sums = np.full([n + 1 for n in costs.shape], np.inf, np.float32)
    sums[0, 0] = 0
    came = {}
    for at in np.ndindex(costs.shape):
        r, c = at[0] + 1, at[1] + 1
        before = [(r - 1, c - 1), (r - 1, c), (r, c - 1)]
        values = [sums[b] for b in before]
        best = next((k for k in (0, 1) if all(values[k] < v for j, v in enumerate(values) if j != k)), 2)
        sums[r, c] = costs[at] + values[best]
        came[r, c] = before[best]
    path, at = [], costs.shape
    while at != (0, 0):
        path.append((at[0] - 1, at[1] - 1))
        at = came.get(at, (at[0], at[1] - 1) if at[0] == 0 else (at[0] - 1, at[1]))
    return [(np.array(path[::-1], np.int32).T, "int32")]


@contrib("MurmurHash3", murmur_cases)
def murmur_hash3(inputs, attrs, **_):
    x = inputs[0]
    data = [e.encode() if isinstance(e, str) else e.tobytes() for e in x.ravel()]
    y = np.array([murmur(d, attrs.get("seed", 0)) for d in data], np.uint32).reshape(x.shape)
    return [(y, "uint32") if attrs.get("positive", 1) else (y.view(np.int32), "int32")]


def crop_cases(rng):
    kind = choice(rng, ["float", "double"])
    images, rois = some(rng, 3), some(rng, 4, 0)
    shape = [images, some(rng, 3), some(rng, 8), some(rng, 8)]
    attrs = {"extrapolation_value": 3.0} if rng.random() < 0.5 else {}
    boxes = reals(rng, [rois, 4], kind, -0.2, 1.2)
    size = np.array([some(rng, 5), some(rng, 5)], np.int32)
    return {"inputs": [reals(rng, shape, kind), boxes, rng.integers(0, images, rois).astype(np.int32), size], "attrs": attrs,
            "constant_inputs": [3] if rng.random() < 0.5 else [], **loose(kind)}


@contrib("CropAndResize", crop_cases)
def crop_and_resize(inputs, attrs, **_):
    x, rois, images, (height, width) = values_of(inputs[0]), values_of(inputs[1]), inputs[2], inputs[3].tolist()

    def places(begin, end, count, size):
        return np.linspace(begin, end, count) * (size - 1) if count > 1 else np.array([(begin + end) / 2 * (size - 1)])
    y = np.full([len(rois), x.shape[1], height, width], np.float32(attrs.get("extrapolation_value", 0)), float)
    for r, (box, image) in enumerate(zip(rois, images)):
        for i, at_y in enumerate(places(box[0], box[2], height, x.shape[2])):
            for j, at_x in enumerate(places(box[1], box[3], width, x.shape[3])):
                if not (0 <= at_y <= x.shape[2] - 1 and 0 <= at_x <= x.shape[3] - 1):
                    continue
                top, left, down, right = math.floor(at_y), math.floor(at_x), math.ceil(at_y), math.ceil(at_x)
                rows = [x[image, :, row, left] * (1 - at_x + left) + x[image, :, row, right] * (at_x - left) for row in (top, down)]
                y[r, :, i, j] = rows[0] * (1 - at_y + top) + rows[1] * (at_y - top)
    return [y]


def qembed_cases(rng):
    batch, length, width, words, places = some(rng, 3), some(rng, 6), some(rng, 9), some(rng, 9), 6 + some(rng, 3)
    dtype = choice(rng, [np.int8, np.uint8])
    bounds = np.iinfo(dtype)
    table = lambda *shape: rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)  # noqa: E731
    segmented = rng.random() < 0.6
    tables = [table(words, width), table(places, width), table(2, width) if segmented else None, table(width), table(width)]
    scales = [None if t is None else np.array(rng.uniform(0.01, 0.1), np.float32) for t in tables]
    zeros = [None if t is None else table() for t in tables]
    ids = lambda most: rng.integers(0, most, [batch, length]).astype(np.int32)  # noqa: E731
    mask = ids(2) if rng.random() < 0.5 else None
    attrs = {"epsilon": 1e-5} if rng.random() < 0.5 else {}
    return {"inputs": [ids(words), ids(2) if segmented else None, *tables, mask, *scales, *zeros], "attrs": attrs, "outputs": 2,
            "rtol": 1e-4, "atol": 1e-4}


@contrib("QEmbedLayerNormalization", qembed_cases)
def qembed_layer_normalization(inputs, attrs, **_):
    ids, segment_ids, tables, mask, scales, zeros = inputs[0], inputs[1], inputs[2:7], inputs[7], inputs[8:13], inputs[13:18]
    words, places, segments, gamma, beta = (
        None if t is None else (t.astype(float) - z.astype(float)) * float(s) for t, s, z in zip(tables, scales, zeros))
    x = words[ids] + places[:ids.shape[1]] + (0 if segments is None else segments[segment_ids])
    centered = x - x.mean(-1, keepdims=True)
    y = centered / np.sqrt((centered ** 2).mean(-1, keepdims=True) + np.float32(attrs.get("epsilon", 1e-12))) * gamma + beta
    counts = np.zeros(len(ids)) if mask is None else (mask == 1).sum(1)
    return [y, counts.astype(np.int32)]


def qconv_cases(rng):
    batch, channels, filters, kernel = some(rng, 2), some(rng, 4), some(rng, 4), some(rng, 3)
    size, last = kernel + some(rng, 4), bool(rng.integers(2))
    number = lambda *shape: rng.integers(0, 256, shape).astype(np.uint8)  # noqa: E731
    scale = lambda least=0.01: np.array(rng.uniform(least, least + 0.1), np.float32)  # noqa: E731
    x = number(batch, size, size, channels) if last else number(batch, channels, size, size)
    bias = [rng.integers(-500, 500, filters).astype(np.int32)] if rng.random() < 0.5 else []
    attrs = {"channels_last": 1} if last else {}
    attrs |= {"pads": [1, 1, 1, 1]} if rng.random() < 0.5 else {}
    return {"inputs": [x, scale(), number(), number(filters, channels, kernel, kernel), scale(), number(), scale(1), number(), *bias],
            "attrs": attrs, "atol": 1.0}


@contrib("QLinearConv", qconv_cases)
def qlinear_conv(inputs, attrs, **_):
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *bias = inputs
    x = np.moveaxis(x, -1, 1) if attrs.get("channels_last") else x
    pad = attrs.get("pads", [0])[0]
    x = np.pad(x.astype(int) - int(x_zero), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    y = np.einsum("nchwij,ocij->nohw", windows, w.astype(int) - int(w_zero))
    y = y + (bias[0][None, :, None, None] if bias else 0)
    y = np.clip(np.rint(y * float(x_scale) * float(w_scale) / float(y_scale)) + int(y_zero), 0, 255).astype(np.uint8)
    return [np.moveaxis(y, 1, -1) if attrs.get("channels_last") else y]


def transpose_cases(rng):
    channels, filters, kernel, size, stride = some(rng, 3), some(rng, 3), some(rng, 3), some(rng, 5), some(rng, 2)
    pads = np.array([int(rng.integers(0, kernel)) // 2] * 4, np.int64)
    inputs = [reals(rng, [1, channels, size, size], "float"), reals(rng, [channels, filters, kernel, kernel], "float"), pads]
    return {"inputs": inputs, "attrs": {"strides": [stride, stride]}, "constant_inputs": choice(rng, [[], [2]]),
            "rtol": 1e-4, "atol": 1e-5}


@contrib("ConvTransposeWithDynamicPads", transpose_cases)
def conv_transpose(inputs, attrs, **_):
    x, w, pads = inputs
    stride, kernel, size = attrs["strides"][0], w.shape[2], x.shape[2]
    whole = (size - 1) * stride + kernel
    y = np.zeros([1, w.shape[1], whole, whole])
    for i in range(size):
        for j in range(size):
            y[0, :, i * stride:i * stride + kernel, j * stride:j * stride + kernel] += np.einsum("c,coab->oab", x[0, :, i, j].astype(float), w)
    end = whole - int(pads[2])
    return [y[:, :, int(pads[0]):end, int(pads[1]):end]]


def mrotary_cases(rng):
    kind = choice(rng, ["float", "float16"])
    batch, steps, heads, rows = some(rng, 2), some(rng, 4), some(rng, 3), 9
    shares = [some(rng, 3), some(rng, 3, 0), some(rng, 3, 0)]
    pairs = sum(shares)
    size = 2 * pairs + (some(rng, 4, 0) if rng.random() < 0.4 else 0)
    attrs = {"mrope_section": shares, "mrope_layout": int(rng.integers(2)), "interleaved": int(rng.integers(2))}
    if size > 2 * pairs or rng.random() < 0.5:
        attrs |= {"num_heads": heads, "rotary_embedding_dim": 2 * pairs}
    flat = bool(rng.integers(2))
    x = reals(rng, [batch, steps, heads * size] if flat else [batch, heads, steps, size], kind)
    tables = [reals(rng, [rows, pairs], kind, -1, 1) for _ in range(2)]
    symbolic = {"symbolic": False} if flat and "num_heads" not in attrs else {}
    return {"inputs": [x, rng.integers(0, rows, [3, batch, steps]), *tables], "attrs": attrs, **symbolic, **loose(kind)}


@contrib("MRotaryEmbedding", mrotary_cases)
def mrotary_embedding(inputs, attrs, **_):
    x, positions, (cosine, sine) = values_of(inputs[0]), inputs[1], (values_of(t) for t in inputs[2:])
    shares, pairs = attrs["mrope_section"], cosine.shape[1]
    which = np.repeat([0, 1, 2], shares)
    if attrs["mrope_layout"]:
        p = np.arange(pairs)
        which = np.where((p % 3 == 1) & (p < 3 * shares[1]), 1, np.where((p % 3 == 2) & (p < 3 * shares[2]), 2, 0))
    cos, sin = (np.stack([t[positions[which[i]], i] for i in range(pairs)], -1)[:, None] for t in (cosine, sine))
    flat = x.ndim == 3
    heads = x if not flat else np.swapaxes(x.reshape(*x.shape[:2], attrs.get("num_heads") or x.shape[2] // (2 * pairs), -1), 1, 2)
    y = heads.copy()
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if attrs["interleaved"] else (slice(0, pairs), slice(pairs, 2 * pairs))
    y[..., first] = heads[..., first] * cos - heads[..., second] * sin
    y[..., second] = heads[..., first] * sin + heads[..., second] * cos
    return [np.swapaxes(y, 1, 2).reshape(x.shape) if flat else y]


F, I64 = np.float32, np.int64
refuses("MRotaryEmbedding", [np.zeros([1, 2, 8], F), np.zeros([3, 1, 2], I64), *[np.zeros([4, 4], F)] * 2], {"mrope_section": [2, 2]}, says="3 numbers")
refuses("MRotaryEmbedding", [np.zeros([1, 2, 8], F), np.zeros([3, 1, 2], I64), *[np.zeros([4, 4], F)] * 2], {"mrope_section": [2, 2, 1]}, says="differ")
refuses("MRotaryEmbedding", [np.zeros([1, 2, 6], F), np.zeros([3, 1, 2], I64), *[np.zeros([4, 4], F)] * 2], {"mrope_section": [2, 1, 1]}, says="heads of 8")
refuses("MRotaryEmbedding", [np.zeros([1, 2, 8], F), np.full([3, 1, 2], 4), *[np.zeros([4, 4], F)] * 2], {"mrope_section": [2, 1, 1]}, says="4")
X = np.zeros([2, 4], F)
refuses("GatedAdd", [X, X, X], says="1")
refuses("GatedAdd", [X, X, X[0, :1]], says="rank")
refuses("GatedAdd", [X, X], says="inputs")
refuses("GatedRMSNorm", [X, X[0, :3], X], says="groups of 3")
refuses("GatedRMSNorm", [X, X[0], X[:1]], says="differ")
refuses("MatMulInteger16", [np.zeros([2, 2], np.int16), np.zeros([3, 2], np.int16)], says="")
refuses("MatMulInteger16", [np.zeros([2, 2], np.int32), np.zeros([2, 2], np.int32)], says="type")
refuses("UnfoldTensor", [X], {"size": 5, "dim": 1}, says="windows of 5")
refuses("UnfoldTensor", [X], {"size": 0}, says="size")
refuses("UnfoldTensor", [X], {"size": 1, "dim": 2}, says="2")
refuses("UnfoldTensor", [X], {"size": 1, "step": 0}, says="step")
ONE = np.array([1], I64)
refuses("RelativePositionBias", [X, ONE, ONE], {"max_distance": 0}, says="max_distance")
refuses("RelativePositionBias", [X[:1], ONE, ONE], {"max_distance": 8}, says="buckets")
refuses("RelativePositionBias", [X, -ONE, ONE], {"max_distance": 8}, says="length", constant_inputs=[1])
refuses("RelativePositionBias", [X, -ONE, ONE], {"max_distance": 8}, says="length")
refuses("RelativePositionBias", [X, np.array([1, 2], I64), ONE], {"max_distance": 8}, says="one number", constant_inputs=[1])
refuses("Rfft", [X], {"normalized": 1}, says="normalized")
refuses("Rfft", [X], {"signal_ndim": 2}, says="signal_ndim")
refuses("Rfft", [F(1)], says="scalar")
refuses("Irfft", [X], says="differ")
refuses("Irfft", [X[:, :2][:1]], says="at least 2")
refuses("MurmurHash3", [X.astype(np.float16)], says="type")
refuses("MurmurHash3", [X], {"seed": -1}, says="seed")
refuses("DynamicTimeWarping", [np.zeros((2, 3, 4), np.float32)], says="one matrix")
refuses("DynamicTimeWarping", [np.zeros((1, 3, 0), np.float32)], says="rows and columns")
refuses("DynamicTimeWarping", [np.zeros((3, 4), np.float32)], says="rank")
IMAGE, BOX, WHICH = np.zeros([1, 1, 3, 3], F), np.array([[0, 0, 1, 1]], F), np.zeros([1], np.int32)
refuses("CropAndResize", [IMAGE, BOX, WHICH + 1, np.array([2, 2], np.int32)], says="batch index 1")
refuses("CropAndResize", [IMAGE, BOX, WHICH, np.array([0, 2], np.int32)], says="crop_size", constant_inputs=[3])
refuses("CropAndResize", [IMAGE, BOX, WHICH, np.array([0, 2], np.int32)], says="crop_size")
refuses("CropAndResize", [IMAGE, BOX[:, :3], WHICH, np.array([2, 2], np.int32)], says="differ")
refuses("CropAndResize", [IMAGE, BOX, WHICH, np.array([2, 2], np.int32)], {"mode": "cubic"}, says="mode")
refuses("ConvTransposeWithDynamicPads", [IMAGE, np.zeros([1, 1, 2, 2], F), np.zeros([3], I64)], says="pads", constant_inputs=[2])
refuses("ConvTransposeWithDynamicPads", [IMAGE, np.zeros([1, 1, 2, 2], F), np.zeros([3], I64)], says="expected 4 pads")
refuses("QLinearConv", [np.zeros([1, 1, 3, 3], np.uint8)], says="inputs")


def accumulator_cases(rng):
    kind = choice(rng, ["float", "double"])
    shape = random_shape(rng)
    inputs = [reals(rng, shape, kind), reals(rng, shape, kind)]
    if rng.random() < 0.7:
        inputs.append(np.array([rng.random() < 0.5]))
    return {"inputs": inputs, "outputs": 2, **tolerance(kind)}


@contrib("InPlaceAccumulatorV2", accumulator_cases)
def in_place_accumulator(inputs, **_):
    total, gradient = values_of(inputs[0]), values_of(inputs[1])
    anew = len(inputs) > 2 and bool(inputs[2][0])
    return [np.array([True]), gradient if anew else total + gradient]


def all_l2_cases(rng):
    kind = any_float(rng)
    inputs = [reals(rng, random_shape(rng, most=4), kind) for _ in range(some(rng, 4))]
    return {"inputs": inputs, **tolerance("float")}


@contrib("ReduceAllL2", all_l2_cases)
def reduce_all_l2(inputs, **_):
    return [np.sqrt(np.array([sum(float((values_of(i).astype(np.float64) ** 2).sum()) for i in inputs)])).astype(np.float32)]


refuses("InPlaceAccumulatorV2", [np.zeros(3, np.float32), np.zeros(3, np.float64)], outputs=2, says="type")
refuses("ReduceAllL2", [np.zeros(3, np.int32)], says="type")
