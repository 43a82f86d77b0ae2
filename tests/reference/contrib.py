"""com.microsoft's float operators but for attention, from the text of ContribOperators.md."""
import math

import numpy as np

from float_types import any_float, as_type, reals, tolerance, values_of
from harness import choice, random_shape, reference, rejects

MICROSOFT = {"domain": "com.microsoft", "opset": 1}
erf = np.vectorize(math.erf, otypes=[np.float64])


def contrib(op, generator, name=None):
    """A reference whose cases are of com.microsoft."""
    def cases(rng):
        return {**MICROSOFT, **generator(rng)}
    return reference(op, cases, name=f"com.microsoft.{name or op}")


def refuses(op, inputs, attrs=None, says="", **arguments):
    rejects(op, inputs, attrs, says, name=f"com.microsoft.{op}", **{**MICROSOFT, **arguments})


def some(rng, most=6, least=1):
    return int(rng.integers(least, most + 1))


def gelu_of(x):
    return 0.5 * x * (1 + erf(x / np.sqrt(2))) if x.size else x


def biased_cases(rng):
    kind = any_float(rng)
    shape = random_shape(rng, least=1)
    return {"inputs": [reals(rng, shape, kind), reals(rng, shape[-1:], kind)], **tolerance(kind)}


def unary_cases(rng):
    kind = any_float(rng)
    return {"inputs": [reals(rng, random_shape(rng), kind, -4, 4)], **tolerance(kind)}


@contrib("Gelu", unary_cases)
def gelu(inputs, **_):
    return [gelu_of(values_of(inputs[0]))]


@contrib("BiasGelu", biased_cases)
def bias_gelu(inputs, **_):
    return [gelu_of(values_of(inputs[0]) + values_of(inputs[1]))]


def fast_gelu_cases(rng):
    case = biased_cases(rng) if rng.random() < 0.5 else unary_cases(rng)
    case["rtol"], case["atol"] = max(case["rtol"], 1e-5), max(case["atol"], 1e-5)  # the text has 0.797885
    return case


@contrib("FastGelu", fast_gelu_cases)
def fast_gelu(inputs, **_):
    x = values_of(inputs[0])
    x = x + values_of(inputs[1]) if len(inputs) > 1 else x
    return [0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))]


def gemm_fast_gelu_cases(rng):
    kind = any_float(rng, ["float", "float", "float16", "bfloat16"])
    depth, columns = some(rng, 9), some(rng, 20)
    inputs = [reals(rng, [some(rng), some(rng), depth], kind), reals(rng, [depth, columns], kind)]
    if rng.random() < 0.5:
        inputs.append(reals(rng, [columns], kind))
    loose = {"float": 1e-5, "float16": 2e-2, "bfloat16": 2e-1}[kind]
    return {"inputs": inputs, "rtol": loose, "atol": loose}


@contrib("GemmFastGelu", gemm_fast_gelu_cases)
def gemm_fast_gelu(inputs, **_):
    x = values_of(inputs[0]) @ values_of(inputs[1]) + (values_of(inputs[2]) if len(inputs) > 2 else 0)
    return [0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))]


def quick_gelu_cases(rng):
    return {**unary_cases(rng), "attrs": {"alpha": float(rng.uniform(0.5, 2))} if rng.random() < 0.7 else {}}


@contrib("QuickGelu", quick_gelu_cases)
def quick_gelu(inputs, attrs, **_):
    x = values_of(inputs[0])
    return [x / (1 + np.exp(-np.float32(attrs.get("alpha", 1.702)) * x))]


def bias_split_gelu_cases(rng):
    kind = any_float(rng)
    shape = [some(rng, 3), some(rng, 5), 2 * some(rng, 9)]
    return {"inputs": [reals(rng, shape, kind), reals(rng, shape[-1:], kind)], **tolerance(kind)}


@contrib("BiasSplitGelu", bias_split_gelu_cases)
def bias_split_gelu(inputs, **_):
    left, right = np.split(values_of(inputs[0]) + values_of(inputs[1]), 2, -1)
    return [left * gelu_of(right)]


def bias_add_cases(rng):
    kind = any_float(rng)
    shape = [some(rng, 3), some(rng, 5), some(rng, 40)]
    return {"inputs": [reals(rng, shape, kind), reals(rng, shape[-1:], kind), reals(rng, shape, kind)], **tolerance(kind)}


@contrib("BiasAdd", bias_add_cases)
def bias_add(inputs, **_):
    return [sum(map(values_of, inputs))]


# ---- normalizations ----------------------------------------------------------------------------------


def skip_cases(simplified):
    def cases(rng):
        kind = any_float(rng, ["float", "float16", "bfloat16", "double"])
        shape = [some(rng, 3), some(rng, 6), some(rng, 70)]
        if rng.random() < 0.3:
            shape = shape[1:]
        skip = list(shape)
        if not simplified and len(shape) == 3 and rng.random() < 0.4:
            skip = choice(rng, [[1, *shape[1:]], shape[1:]])
        width = shape[-1:]
        inputs = [reals(rng, s, kind) for s in (shape, skip, width)]
        if not simplified:
            inputs.append(reals(rng, width, kind) if rng.random() < 0.7 else None)
        inputs.append(reals(rng, width, kind) if rng.random() < 0.5 else None)
        while inputs[-1] is None:
            inputs.pop()
        outputs = choice(rng, [1, [True, False, False, True]])
        return {"inputs": inputs, "attrs": {"epsilon": float(rng.uniform(1e-6, 1e-2))}, "outputs": outputs,
                **tolerance(kind)}
    return cases


def skip_results(total, y, outputs):
    return [y] if outputs == 1 else [y, total]


@contrib("SkipLayerNormalization", skip_cases(False))
def skip_layer_normalization(inputs, attrs, outputs, **_):
    x, skip, gamma, beta, bias = (values_of(t) for t in (*inputs, None, None)[:5])
    total = x + skip + (0 if bias is None else bias)
    y = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + np.float32(attrs["epsilon"]))
    return skip_results(total, y * gamma + (0 if beta is None else beta), outputs)


@contrib("SkipSimplifiedLayerNormalization", skip_cases(True))
def skip_simplified_layer_normalization(inputs, attrs, outputs, **_):
    x, skip, gamma, bias = (values_of(t) for t in (*inputs, None)[:4])
    total = x + skip + (0 if bias is None else bias)
    y = total / np.sqrt(np.mean(total * total, -1, keepdims=True) + np.float32(attrs["epsilon"])) * gamma
    return skip_results(total, y, outputs)


def simplified_cases(rng):
    kind = any_float(rng)
    shape = random_shape(rng, least=1, zeros=False)
    axis = choice(rng, [-1, -1, len(shape) - 1, int(rng.integers(-len(shape), len(shape)))])
    attrs = {"axis": axis, "epsilon": float(rng.uniform(1e-6, 0.1))}
    place = {"domain": "", "opset": 17} if rng.random() < 0.5 else {}
    return {"inputs": [reals(rng, shape, kind), reals(rng, shape[axis % len(shape):], kind)], "attrs": attrs,
            "outputs": 1 if kind == "double" else choice(rng, [1, 2]), **place, **tolerance(kind)}


@contrib("SimplifiedLayerNormalization", simplified_cases)
def simplified_layer_normalization(inputs, attrs, outputs, **_):
    x, scale = map(values_of, inputs)
    axes = tuple(range(attrs["axis"] % x.ndim, x.ndim))
    inverse = 1 / np.sqrt(np.mean(x * x, axes, keepdims=True) + np.float32(attrs["epsilon"]))
    return [x * inverse * scale, inverse][:outputs]


def embed_cases(rng):
    kind = any_float(rng, ["float", "float16"])
    batch, length, width, words = some(rng, 3), some(rng, 7), some(rng, 40), some(rng, 9)
    ids = rng.integers(0, words, [batch, length]).astype(np.int32)
    with_segments, with_positions = rng.random() < 0.7, rng.random() < 0.4
    rows = length + some(rng, 4, 0)
    inputs = [ids, rng.integers(0, 2, [batch, length]).astype(np.int32) if with_segments else None,
              reals(rng, [words, width], kind), reals(rng, [rows, width], kind),
              reals(rng, [2, width], kind) if with_segments else None, reals(rng, [width], kind), reals(rng, [width], kind)]
    inputs.append((rng.random([batch, length]) < 0.7).astype(np.int32) if rng.random() < 0.6 else None)
    shape = [choice(rng, [1, batch]), length]
    inputs.append(rng.integers(0, rows, shape).astype(np.int32) if with_positions else None)
    while inputs[-1] is None:
        inputs.pop()
    return {"inputs": inputs, "attrs": {"epsilon": float(rng.uniform(1e-8, 1e-3))}, "outputs": choice(rng, [1, 2, 3]),
            "constant_inputs": [2, 3, 4, 5, 6] if rng.random() < 0.5 else [], **tolerance(kind)}


@contrib("EmbedLayerNormalization", embed_cases)
def embed_layer_normalization(inputs, attrs, outputs, **_):
    ids, segment_ids, words, positions, segments, gamma, beta, mask, position_ids = (*inputs, None, None)[:9]
    total = values_of(words)[ids]
    total = total + values_of(positions)[np.arange(ids.shape[1])[None] if position_ids is None else position_ids]
    total = total + (0 if segments is None else values_of(segments)[segment_ids])
    y = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + np.float32(attrs["epsilon"]))
    index = np.zeros(ids.shape[0], np.int32) if mask is None else (mask == 1).sum(1).astype(np.int32)
    return [y * values_of(gamma) + values_of(beta), (index, "int32"), total][:outputs]


# ---- products ----------------------------------------------------------------------------------------


def fused_matmul_cases(rng):
    kind = any_float(rng)
    m, k, n = some(rng, 9), some(rng, 20), some(rng, 20)
    batch = random_shape(rng, most=3, zeros=False)
    attrs = {"alpha": float(rng.uniform(-2, 2))}
    shapes = {"A": [*batch, m, k], "B": choice(rng, [[*batch, k, n], [k, n]])}
    for name, shape in shapes.items():
        if rng.random() < 0.5:
            attrs[f"trans{name}"] = 1
            shape[-1], shape[-2] = shape[-2], shape[-1]
        if len(shape) > 2 and rng.random() < 0.4:  # the operand as it is before its first dimension is moved
            attrs[f"transBatch{name}"] = 1
            shape[:-1] = [shape[-2], *shape[:-2]]
    if rng.random() < 0.3:
        attrs.pop("alpha")
    return {"inputs": [reals(rng, shapes["A"], kind), reals(rng, shapes["B"], kind)], "attrs": attrs,
            "rtol": tolerance(kind)["rtol"] * 2, "atol": tolerance(kind)["atol"] * 20}


def seen(x, attrs, name):
    if attrs.get(f"transBatch{name}") and x.ndim > 2:
        x = np.moveaxis(x, 0, -2)
    return np.swapaxes(x, -1, -2) if attrs.get(f"trans{name}") and x.ndim > 1 else x


def fused_matmul(inputs, attrs, **_):
    a, b = map(values_of, inputs)
    return [np.float32(attrs.get("alpha", 1)) * np.matmul(seen(a, attrs, "A"), seen(b, attrs, "B"))]


contrib("FusedMatMul", fused_matmul_cases)(fused_matmul)


def transpose_matmul_cases(rng):
    while True:
        case = fused_matmul_cases(rng)
        if not {"transBatchA", "transBatchB"} & set(case["attrs"]):
            return case


contrib("TransposeMatMul", transpose_matmul_cases)(fused_matmul)

ACTIVATIONS = {"Relu": (0, lambda x: np.maximum(x, 0)), "Tanh": (0, np.tanh), "Sigmoid": (0, lambda x: 1 / (1 + np.exp(-x))),
               "LeakyRelu": (1, lambda x, a: np.where(x < 0, a * x, x)), "": (0, lambda x: x),
               "HardSigmoid": (2, lambda x, a, b: np.clip(a * x + b, 0, 1)), "Clip": (2, lambda x, a, b: np.clip(x, a, b)),
               "HardSwish": (0, lambda x: x * np.clip(x / 6 + 0.5, 0, 1))}


def fused_gemm_cases(rng):
    kind = any_float(rng, ["float", "double"])
    m, k, n = some(rng, 9), some(rng, 20), some(rng, 20)
    attrs = {"alpha": float(rng.uniform(0.5, 2)), "beta": float(rng.uniform(-1, 1)), "transA": some(rng, 1, 0),
             "transB": some(rng, 1, 0), "activation": choice(rng, ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"])}
    for name in ["activation_alpha", "activation_beta"][:ACTIVATIONS[attrs["activation"]][0]]:
        attrs[name] = float(rng.uniform(0.05, 0.6))
    inputs = [reals(rng, [k, m] if attrs["transA"] else [m, k], kind), reals(rng, [n, k] if attrs["transB"] else [k, n], kind)]
    if rng.random() < 0.7:
        inputs.append(reals(rng, choice(rng, [[n], [1, n], [m, n], [m, 1], [1]]), kind))
    return {"inputs": inputs, "attrs": attrs, "rtol": tolerance(kind)["rtol"], "atol": tolerance(kind)["atol"] * 20}


@contrib("FusedGemm", fused_gemm_cases)
def fused_gemm(inputs, attrs, **_):
    a, b, c = (values_of(t) for t in (*inputs, None)[:3])
    y = np.float32(attrs["alpha"]) * np.matmul(a.T if attrs["transA"] else a, b.T if attrs["transB"] else b)
    y = y + np.float32(attrs["beta"]) * c if c is not None else y
    count, f = ACTIVATIONS[attrs["activation"]]
    return [f(y, *[np.float32(attrs[name]) for name in ["activation_alpha", "activation_beta"][:count]])]


def conv_cases(last):
    def cases(rng):
        kind = any_float(rng, ["float", "double"])
        groups, spatial = some(rng, 2), some(rng, 2)
        cin, cout = groups * some(rng, 3), groups * some(rng, 3)
        kernel = [some(rng, 3) for _ in range(spatial)]
        x = [some(rng, 2), cin, *[some(rng, 9, 5) for _ in range(spatial)]]
        attrs = {"group": groups, "kernel_shape": kernel, "strides": [some(rng, 2) for _ in kernel],
                 "dilations": [some(rng, 2) for _ in kernel], "pads": [some(rng, 2, 0) for _ in range(2 * spatial)]}
        name = choice(rng, sorted(ACTIVATIONS))
        if name and last != "plain":
            attrs["activation"] = name
            count = ACTIVATIONS[name][0]
            if count:
                attrs["activation_params"] = sorted(float(v) for v in rng.uniform(0.05, 0.6, count))
        data = reals(rng, x, kind)
        inputs = [np.moveaxis(data, 1, -1) if last else data, reals(rng, [cout, cin // groups, *kernel], kind)]
        inputs.append(reals(rng, [cout], kind) if rng.random() < 0.6 else None)
        if last != "plain" and rng.random() < 0.4:
            shape = convolve(values_of(data), values_of(inputs[1]), None, attrs).shape
            addend = reals(rng, shape, kind)
            inputs.append(np.moveaxis(addend, 1, -1) if last else addend)
        inputs = [None if t is None else np.ascontiguousarray(t) for t in inputs]
        while inputs[-1] is None:
            inputs.pop()
        return {"inputs": inputs, "attrs": attrs, "rtol": tolerance(kind)["rtol"], "atol": tolerance(kind)["atol"] * 20}
    return cases


def convolve(x, w, bias, attrs):
    spatial, groups = w.ndim - 2, attrs["group"]
    pads, strides, dilations = attrs["pads"], attrs["strides"], attrs["dilations"]
    x = np.pad(x, [(0, 0), (0, 0), *[(pads[i], pads[i + spatial]) for i in range(spatial)]])
    out = [(x.shape[i + 2] - dilations[i] * (w.shape[i + 2] - 1) - 1) // strides[i] + 1 for i in range(spatial)]
    y = np.zeros([x.shape[0], w.shape[0], *out])
    per_out, per_in = w.shape[0] // groups, w.shape[1]
    for at in np.ndindex(*w.shape[2:]):
        part = x[(slice(None), slice(None), *[slice(at[i] * dilations[i], at[i] * dilations[i] + (out[i] - 1) * strides[i] + 1,
                                                    strides[i]) for i in range(spatial)])]
        for g in range(groups):
            y[:, g * per_out:(g + 1) * per_out] += np.einsum(
                "nc...,oc->no...", part[:, g * per_in:(g + 1) * per_in],
                w[(slice(g * per_out, (g + 1) * per_out), slice(None), *at)])
    return y if bias is None else y + bias.reshape(-1, *[1] * spatial)


def fused_conv(inputs, attrs, **_):
    x, w, bias, addend = (values_of(t) for t in (*inputs, None, None)[:4])
    y = convolve(x, w, bias, attrs)
    count, f = ACTIVATIONS[attrs.get("activation", "")]
    return [f(y if addend is None else y + addend, *[np.float32(p) for p in attrs.get("activation_params", [])[:count]])]


contrib("FusedConv", conv_cases(""))(fused_conv)


def nhwc_conv(inputs, attrs, **_):
    inputs = [np.moveaxis(t, -1, 1) if t is not None and i in (0, 3) else t for i, t in enumerate(inputs)]
    return [np.moveaxis(fused_conv(inputs, attrs)[0], 1, -1)]


contrib("NhwcConv", conv_cases("plain"))(nhwc_conv)
contrib("NhwcFusedConv", conv_cases("fused"))(nhwc_conv)


def nhwc_max_pool_cases(rng):
    spatial = some(rng, 2)
    attrs = {"kernel_shape": [some(rng, 3) for _ in range(spatial)], "strides": [some(rng, 2) for _ in range(spatial)]}
    attrs["pads"] = [int(rng.integers(0, k)) for k in attrs["kernel_shape"] * 2]
    dtype = choice(rng, [np.int8, np.uint8])
    shape = [some(rng, 2), *[some(rng, 9, 4) for _ in range(spatial)], some(rng, 5)]
    limits = np.iinfo(dtype)
    return {"inputs": [rng.integers(limits.min, limits.max + 1, shape).astype(dtype)], "attrs": attrs}


@contrib("NhwcMaxPool", nhwc_max_pool_cases)
def nhwc_max_pool(inputs, attrs, **_):
    x, spatial = inputs[0], len(attrs["kernel_shape"])
    pads, kernel, strides = attrs["pads"], attrs["kernel_shape"], attrs["strides"]
    x = np.pad(x, [(0, 0), *[(pads[i], pads[i + spatial]) for i in range(spatial)], (0, 0)],
               constant_values=np.iinfo(x.dtype).min)
    out = [(x.shape[i + 1] - kernel[i]) // strides[i] + 1 for i in range(spatial)]
    y = np.zeros([x.shape[0], *out, x.shape[-1]], x.dtype)
    for at in np.ndindex(*out):
        window = x[(slice(None), *[slice(at[i] * strides[i], at[i] * strides[i] + kernel[i]) for i in range(spatial)])]
        y[(slice(None), *at)] = window.max(axis=tuple(range(1, 1 + spatial)))
    return [y]


def bias_softmax_cases(rng):
    kind = any_float(rng, ["float", "double", "float16"])
    shape = random_shape(rng, most=4, least=2, zeros=False)
    axis = int(rng.integers(1, len(shape)))
    inner = rng.random() < 0.5
    at = int(rng.integers(0, axis + 1))
    bias = [1 if at <= i < axis else size for i, size in enumerate(shape)] if inner else [1] * at + shape[at:]
    return {"inputs": [reals(rng, shape, kind), reals(rng, bias, kind)],
            "attrs": {"axis": axis, "is_inner_broadcast": int(inner)}, **tolerance(kind)}


@contrib("BiasSoftmax", bias_softmax_cases)
def bias_softmax(inputs, attrs, **_):
    x = values_of(inputs[0]) + values_of(inputs[1])
    flat = x.reshape(*x.shape[:attrs["axis"]], -1)
    e = np.exp(flat - flat.max(-1, keepdims=True))
    return [(e / e.sum(-1, keepdims=True)).reshape(x.shape)]


# ---- others ------------------------------------------------------------------------------------------


def inverse_cases(rng):
    kind = any_float(rng)
    n = some(rng, 8)
    shape = [*random_shape(rng, most=2), n, n]
    x = rng.uniform(-1, 1, shape) + 4 * np.eye(n)
    wide = {"float": {"rtol": 1e-4, "atol": 1e-5}, "double": {"rtol": 1e-9, "atol": 1e-11}}.get(kind, tolerance(kind))
    return {"inputs": [as_type(x, kind)[0]], **wide}


@contrib("Inverse", inverse_cases)
def inverse(inputs, **_):
    return [np.linalg.inv(values_of(inputs[0]))]


def cdist_cases(rng):
    kind = any_float(rng, ["float", "double"])
    width = some(rng, 40)
    attrs = {"metric": choice(rng, ["euclidean", "sqeuclidean"])} if rng.random() < 0.8 else {}
    return {"inputs": [reals(rng, [some(rng, 9, 0), width], kind), reals(rng, [some(rng, 9), width], kind)], "attrs": attrs,
            **tolerance(kind)}


@contrib("CDist", cdist_cases)
def cdist(inputs, attrs, **_):
    a, b = map(values_of, inputs)
    squares = ((a[:, None] - b[None]) ** 2).sum(-1)
    return [np.sqrt(squares) if attrs.get("metric") == "euclidean" else squares]


def trilu_cases(rng):
    x = rng.integers(-9, 9, random_shape(rng, least=2)).astype(choice(rng, [np.float32, np.int64, np.float16, np.uint8]))
    inputs = [x] + ([np.array(int(rng.integers(-4, 5)))] if rng.random() < 0.6 else [])
    return {"inputs": inputs, "attrs": {"upper": some(rng, 1, 0)} if rng.random() < 0.7 else {}}


@contrib("Trilu", trilu_cases)
def trilu(inputs, attrs, **_):
    k = int(inputs[1]) if len(inputs) > 1 else 0
    f = np.triu if attrs.get("upper", 1) else np.tril
    return [f(inputs[0], k) if inputs[0].size else inputs[0]]


def unique_cases(rng):
    return {"inputs": [rng.integers(0, 6, some(rng, 20, 0)).astype(choice(rng, [np.int64, np.float32, np.int8]))], "outputs": 3}


@contrib("Unique", unique_cases)
def unique(inputs, **_):
    values, idx = [], []
    for x in inputs[0]:
        if x not in values:
            values.append(x)
        idx.append(values.index(x))
    return [np.array(values, inputs[0].dtype), np.array(idx, np.int64),
            np.array([idx.count(i) for i in range(len(values))], np.int64)]


def gather_nd_cases(rng):
    data = rng.integers(-99, 99, random_shape(rng, least=1, zeros=False)).astype(choice(rng, [np.float32, np.int64, np.uint8]))
    depth = some(rng, data.ndim)
    shape = random_shape(rng, most=2, zeros=False)
    indices = np.stack([rng.integers(0, data.shape[d], shape) for d in range(depth)], -1)
    return {"inputs": [data, indices.astype(choice(rng, [np.int32, np.int64]))]}


@contrib("GatherND", gather_nd_cases)
def gather_nd(inputs, **_):
    data, indices = inputs
    return [data[tuple(np.moveaxis(indices, -1, 0))]]


def pad_cases(rng):
    kind = any_float(rng, ["float", "double", "float16"])
    shape = random_shape(rng, most=4, least=1, zeros=False)
    mode = choice(rng, ["constant", "reflect", "edge"])
    pads = np.array([int(rng.integers(0, size if mode == "reflect" else 4)) for size in shape * 2], np.int64)
    inputs = [reals(rng, shape, kind), pads.reshape(1, -1) if rng.random() < 0.4 else pads]
    if mode == "constant" and rng.random() < 0.6:
        inputs.append(reals(rng, choice(rng, [[], [1]]), kind))
    return {"inputs": inputs, "attrs": {"mode": mode}}


@contrib("Pad", pad_cases)
def pad(inputs, attrs, **_):
    x, pads = inputs[0], inputs[1].reshape(2, -1).T
    if attrs["mode"] != "constant":
        return [np.pad(x, pads, attrs["mode"])]
    return [np.pad(x, pads, constant_values=inputs[2].reshape(()) if len(inputs) > 2 else 0)]


def range_cases(rng):
    dtype = choice(rng, [np.float32, np.float64, np.int16, np.int32, np.int64])
    shape = choice(rng, [[], [1]])
    inputs = [np.full(shape, rng.integers(-9, 9), dtype), np.full(shape, rng.integers(-9, 20), dtype)]
    if rng.random() < 0.5:
        inputs.append(np.full(shape, choice(rng, [-3, -1, 1, 2, 5]), dtype))
    return {"inputs": inputs}


@contrib("Range", range_cases)
def range_(inputs, **_):
    start, limit, delta = (*[t.reshape(()) for t in inputs], inputs[0].dtype.type(1))[:3]
    return [np.arange(start, limit, delta, dtype=inputs[0].dtype)]


def grid_sample_cases(rng):
    kind = any_float(rng, ["float"])
    n = some(rng, 2)
    attrs = {"mode": choice(rng, ["bilinear", "nearest"]), "padding_mode": choice(rng, ["zeros", "border"]),
             "align_corners": some(rng, 1, 0)}
    return {"inputs": [reals(rng, [n, some(rng, 3), some(rng, 6), some(rng, 6)], kind),
                       reals(rng, [n, some(rng, 4), some(rng, 4), 2], kind, -1.3, 1.3)], "attrs": attrs, **tolerance(kind)}


@contrib("GridSample", grid_sample_cases)
def grid_sample(inputs, attrs, **_):
    x, grid = map(values_of, inputs)
    sizes = np.array(x.shape[:1:-1])
    at = (grid + 1) / 2 * (sizes - 1) if attrs["align_corners"] else ((grid + 1) * sizes - 1) / 2

    def pixel(n, row, column):
        if attrs["padding_mode"] == "border":
            row, column = np.clip(row, 0, x.shape[2] - 1), np.clip(column, 0, x.shape[3] - 1)
        inside = 0 <= row < x.shape[2] and 0 <= column < x.shape[3]
        return x[n, :, int(row), int(column)] if inside else np.zeros(x.shape[1])
    y = np.zeros([x.shape[0], x.shape[1], *grid.shape[1:3]])
    for n, i, j in np.ndindex(*y.shape[:1], *y.shape[2:]):
        column, row = at[n, i, j]
        if attrs["padding_mode"] == "border":
            row, column = np.clip(row, 0, x.shape[2] - 1), np.clip(column, 0, x.shape[3] - 1)
        if attrs["mode"] == "nearest":
            y[n, :, i, j] = pixel(n, np.rint(row), np.rint(column))
            continue
        top, left = np.floor(row), np.floor(column)
        for dr, dc in np.ndindex(2, 2):
            weight = (1 - abs(row - top - dr)) * (1 - abs(column - left - dc))
            y[n, :, i, j] += weight * pixel(n, top + dr, left + dc)
    return [y]


def expand_dims_cases(rng):
    x = rng.integers(-9, 9, random_shape(rng, most=5)).astype(choice(rng, [np.float32, np.int64, bool]))
    return {"inputs": [x, np.array(int(rng.integers(-x.ndim - 1, x.ndim + 1)), np.int32)]}


@contrib("ExpandDims", expand_dims_cases)
def expand_dims(inputs, **_):
    return [np.expand_dims(inputs[0], int(inputs[1]))]


def ngram_cases(rng):
    batch, length, words = some(rng, 3), some(rng, 12, 0), some(rng, 4)
    return {"inputs": [rng.integers(0, words, [batch, length]), reals(rng, [batch, words], "float")],
            "attrs": {"ngram_size": some(rng, 4)}}


@contrib("NGramRepeatBlock", ngram_cases)
def ngram_repeat_block(inputs, attrs, **_):
    ids, scores, n = inputs[0], inputs[1].copy(), attrs["ngram_size"]
    for b, row in enumerate(ids):
        tail = list(row[len(row) - n + 1:]) if n > 1 else []
        for i in range(len(row) - n + 1):
            if list(row[i:i + n - 1]) == tail:
                scores[b, row[i + n - 1]] = -np.inf
    return [scores]


def rotary_cases(rng):
    kind = any_float(rng, ["float", "float16", "bfloat16"])
    batch, heads, steps, head = some(rng, 3), some(rng, 3), some(rng, 7), 2 * some(rng, 40)
    most = steps + some(rng, 9)
    attrs = {"interleaved": some(rng, 1, 0)}
    flat = rng.random() < 0.5
    rotary = head
    if rng.random() < 0.4:
        rotary = 2 * some(rng, head // 2)
        attrs["rotary_embedding_dim"], attrs["num_heads"] = rotary, heads
    elif rng.random() < 0.5:
        attrs["num_heads"] = heads
    positions = rng.integers(0, most, [batch, steps]) if rng.random() < 0.5 else rng.integers(0, most - steps + 1, [1])
    constants = {"symbolic": False} if flat and "num_heads" not in attrs else {}
    return {"inputs": [reals(rng, [batch, steps, heads * head] if flat else [batch, heads, steps, head], kind), positions,
                       reals(rng, [most, rotary // 2], kind, -1, 1), reals(rng, [most, rotary // 2], kind, -1, 1)],
            "attrs": attrs, "heads": heads, **constants, **tolerance(kind)}


@contrib("RotaryEmbedding", rotary_cases)
def rotary_embedding(inputs, attrs, heads, **_):
    x, cosine, sine = values_of(inputs[0]), values_of(inputs[2]), values_of(inputs[3])
    flat = x.ndim == 3
    y = x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) if flat else x
    positions = inputs[1]
    if positions.size == 1 and positions.ndim == 1:
        positions = positions + np.arange(y.shape[2])[None]
    y = rotate(y, cosine[positions][:, None], sine[positions][:, None], attrs["interleaved"])
    return [y.transpose(0, 2, 1, 3).reshape(x.shape) if flat else y]


def rotate(x, cosine, sine, interleaved):
    pairs = cosine.shape[-1]
    turned = x.copy()
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved else (slice(0, pairs), slice(pairs, 2 * pairs))
    turned[..., first] = x[..., first] * cosine - x[..., second] * sine
    turned[..., second] = x[..., first] * sine + x[..., second] * cosine
    return turned


F = np.float32
X = np.zeros([2, 3, 4], F)
refuses("BiasGelu", [X, np.zeros(3, F)], says="expected 4 elements")
refuses("BiasGelu", [X], says="2 to 2 inputs")
refuses("BiasGelu", [X, np.zeros(4, np.float64)], says="type")
refuses("FastGelu", [X, np.zeros([1, 4], F)], says="rank")
refuses("QuickGelu", [X.astype(np.int32)], says="type")
refuses("QuickGelu", [X], {"beta": 1.0}, says="beta")
refuses("SkipLayerNormalization", [X, X[:, :2], np.zeros(4, F)], says="skip of shape")
refuses("SkipLayerNormalization", [X, X, np.zeros(3, F)], says="expected 4 elements")
refuses("SkipSimplifiedLayerNormalization", [X, X, np.zeros(4, F)], outputs=2, says="mean")
refuses("SkipSimplifiedLayerNormalization", [X[0, 0], X[0, 0], np.zeros(4, F)], says="rank")
refuses("SimplifiedLayerNormalization", [X, np.zeros(4, F)], {"axis": 3}, says="axis")
refuses("SimplifiedLayerNormalization", [X, np.zeros(5, F)], says="expected 4 elements")
IDS, TABLE = np.zeros([2, 3], np.int32), np.zeros([5, 4], F)
refuses("EmbedLayerNormalization", [IDS, None, TABLE, TABLE[:2], None, TABLE[0], TABLE[0]], says="too few")
refuses("EmbedLayerNormalization", [IDS + 5, None, TABLE, TABLE, None, TABLE[0], TABLE[0]], says="5")
refuses("EmbedLayerNormalization", [IDS, IDS, TABLE, TABLE, None, TABLE[0], TABLE[0]], says="segment_embedding")
refuses("EmbedLayerNormalization", [IDS, None, TABLE, TABLE, None, TABLE[0, :3], TABLE[0]], says="3")
refuses("FusedMatMul", [X, X], says="4")
refuses("FusedMatMul", [X, X.astype(np.float64)], says="type")
refuses("FusedGemm", [X[0], X[0]], {"transB": 1, "activation": "Nothing"}, says="Nothing")
refuses("FusedConv", [X, X], {"activation": "LeakyRelu"}, says="activation_params")
refuses("BiasSoftmax", [X, X], {"axis": 5, "is_inner_broadcast": 0}, says="axis")
refuses("BiasSoftmax", [X, X], {"axis": 1}, says="is_inner_broadcast")
refuses("BiasSoftmax", [X[:1], X], {"axis": 1, "is_inner_broadcast": 1}, says="larger")
refuses("NhwcMaxPool", [np.zeros([1, 4, 4, 1], np.int8)], says="kernel_shape")
refuses("Inverse", [X], says="differ")
refuses("Inverse", [np.zeros([2, 2], F)], says="no inverse")
refuses("CDist", [X[0], X[0, :, :3]], says="differ")
refuses("CDist", [X[0], X[0]], {"metric": "cosine"}, says="cosine")
refuses("Trilu", [X[0, 0]], says="rank")
refuses("Unique", [X], outputs=3, says="rank")
refuses("GatherND", [X, np.full([1, 1], 2, np.int32)], says="2")
refuses("Pad", [X, np.zeros([2, 6], np.int64)], says="one row")
refuses("Pad", [X, np.zeros([4], np.int64)], says="pads")
refuses("Range", [np.array(1), np.array(5), np.array(0)], says="delta is 0")
refuses("ExpandDims", [X, np.array(5, np.int32)], constant_inputs=[1], says="5")
refuses("NGramRepeatBlock", [np.full([1, 4], 9), np.zeros([1, 3], F)], {"ngram_size": 1}, says="token 9")
refuses("NGramRepeatBlock", [np.zeros([1, 4], np.int64), np.zeros([1, 3], F)], {"ngram_size": 0}, says="ngram_size")
ANGLES = np.zeros([5, 2], F)
refuses("RotaryEmbedding", [X, np.array([[4, 5, 6]] * 2), ANGLES, ANGLES], says="outside")
refuses("RotaryEmbedding", [X, np.array([3]), ANGLES, ANGLES], says="outside")
refuses("RotaryEmbedding", [X, np.array([0]), ANGLES, ANGLES], {"rotary_embedding_dim": 4}, says="num_heads")
refuses("RotaryEmbedding", [X, np.array([0]), ANGLES, ANGLES[:4]], says="differ")
refuses("RotaryEmbedding", [X[0], np.array([0]), ANGLES, ANGLES], says="rank")
