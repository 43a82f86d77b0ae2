"""What older opsets did differently, one generator per operator, from the text of Changelog.md."""
import numpy as np

from harness import choice, random_shape, reference, rejects

F32 = np.float32


def floats(rng, *shape):
    return rng.uniform(-2, 2, shape).astype(F32)


# ---- broadcasting by attributes (before opset 7) ---------------------------------------------------------

BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": lambda a, b: np.power(np.abs(a), b),
          "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor, "Greater": np.greater, "Less": np.less, "Equal": np.equal}


def old_binary_cases(op):
    def generate(rng):
        shape = random_shape(rng, most=5, least=1)
        a, b = floats(rng, *shape), floats(rng, *shape)
        attrs, placed = {}, list(shape)
        if rng.random() < 0.7:
            first = int(rng.integers(0, len(shape)))
            last = int(rng.integers(first, len(shape))) + 1
            attrs = {"broadcast": 1}
            if last < len(shape) or rng.random() < 0.5:
                attrs["axis"] = first
            b = floats(rng, *shape[first:last])
            placed = [1] * first + shape[first:last] + [1] * (len(shape) - last)
        opset = choice(rng, [1, 6])
        if opset == 1 and op in ("Add", "Sub", "Mul", "Div") and rng.random() < 0.5:
            attrs["consumed_inputs"] = [0, 0]
        if op in ("And", "Or", "Xor"):
            a, b = a > 0, b > 0
        elif op == "Equal":
            a, b = np.round(a).astype(np.int32), np.round(b).astype(np.int32)
        elif op == "Pow":
            a = np.abs(a)
        return {"inputs": [a, b], "attrs": attrs, "opset": opset, "placed": placed}
    return generate


def register_binary(op):
    @reference(op, old_binary_cases(op), name=f"{op} before opset 7")
    def expected(inputs, placed, **_):
        a, b = inputs[0], inputs[1].reshape(placed)
        if a.dtype == F32:
            a, b = a.astype(np.float64), b.astype(np.float64)
        return [BINARY[op](a, b)]


for name in BINARY:
    register_binary(name)


# ---- attributes that became inputs -----------------------------------------------------------------------

def clip_cases(rng):
    attrs = {name: float(F32(value)) for name, value in (("min", -0.5), ("max", 0.7)) if rng.random() < 0.6}
    opset = choice(rng, [1, 6])
    if opset == 1:
        attrs["consumed_inputs"] = [0]
    return {"inputs": [floats(rng, *random_shape(rng))], "attrs": attrs, "opset": opset}


@reference("Clip", clip_cases, name="Clip before opset 11")
def clip(inputs, attrs, **_):
    return [np.clip(inputs[0], attrs.get("min", -np.inf), attrs.get("max", np.inf))]


def pad_cases(rng):
    shape = random_shape(rng, least=1, most=4, zeros=False)
    pads = [int(p) for p in rng.integers(0, 3, 2 * len(shape))]
    opset = choice(rng, [1, 2])
    attrs = {"paddings" if opset == 1 else "pads": pads, "value": 1.5}
    if rng.random() < 0.4:
        attrs["mode"] = "edge"
    return {"inputs": [floats(rng, *shape)], "attrs": attrs, "opset": opset, "pads": pads}


@reference("Pad", pad_cases, name="Pad before opset 11")
def pad(inputs, attrs, pads, **_):
    rank = inputs[0].ndim
    widths = [(pads[i], pads[i + rank]) for i in range(rank)]
    if attrs.get("mode") == "edge":
        return [np.pad(inputs[0], widths, "edge")]
    return [np.pad(inputs[0], widths, constant_values=1.5)]


def slice_cases(rng):
    shape = random_shape(rng, least=1, most=4)
    axes = sorted(int(a) for a in rng.permutation(len(shape))[:int(rng.integers(1, len(shape) + 1))])
    starts = [int(rng.integers(-shape[a] - 1, shape[a] + 2)) for a in axes]
    ends = [int(rng.integers(-shape[a] - 1, shape[a] + 3)) for a in axes]
    attrs = {"starts": starts, "ends": ends}
    if axes != list(range(len(axes))) or rng.random() < 0.5:
        attrs["axes"] = axes
    return {"inputs": [floats(rng, *shape)], "attrs": attrs, "opset": 1, "axes": axes}


@reference("Slice", slice_cases, name="Slice before opset 10")
def slice_of(inputs, attrs, axes, **_):
    index = [slice(None)] * inputs[0].ndim
    for axis, start, end in zip(axes, attrs["starts"], attrs["ends"]):
        index[axis] = slice(start, end)
    return [inputs[0][tuple(index)]]


def split_cases(rng):
    opset = choice(rng, [1, 2, 11])
    shape = random_shape(rng, least=1, most=4, zeros=False)
    axis = int(rng.integers(len(shape)))
    sizes = [int(s) for s in rng.integers(1, 4, int(rng.integers(1, 4)))]
    shape[axis] = sum(sizes)
    inputs, attrs = [floats(rng, *shape)], {"axis": axis}
    if opset == 1 and rng.random() < 0.5:
        inputs.append(np.array(sizes, F32))
    else:
        attrs["split"] = sizes
    return {"inputs": inputs, "attrs": attrs, "opset": opset, "outputs": len(sizes), "sizes": sizes, "constant_inputs": [1][:len(inputs) - 1]}


@reference("Split", split_cases, name="Split before opset 13")
def split(inputs, attrs, sizes, **_):
    return np.split(inputs[0], np.cumsum(sizes)[:-1], attrs["axis"])


def top_k_cases(rng):
    opset = choice(rng, [1, 10])
    shape = random_shape(rng, least=1, most=4, zeros=False)
    axis = int(rng.integers(-len(shape), len(shape)))
    k = int(rng.integers(1, shape[axis] + 1))
    values = rng.permutation(int(np.prod(shape))).reshape(shape).astype(F32)
    attrs, inputs = {"axis": axis}, [values]
    if opset == 1:
        attrs["k"] = k
    else:
        inputs.append(np.array([k], np.int64))
    return {"inputs": inputs, "attrs": attrs, "opset": opset, "outputs": 2, "k": k}


@reference("TopK", top_k_cases, name="TopK before opset 11")
def top_k(inputs, attrs, k, **_):
    order = np.take(np.argsort(-inputs[0], attrs["axis"], kind="stable"), np.arange(k), attrs["axis"])
    return [np.take_along_axis(inputs[0], order, attrs["axis"]), order]


@reference("Reshape", lambda rng: {"inputs": [floats(rng, 2, 3, 4)], "attrs": {"shape": choice(rng, [[-1], [4, 6], [0, -1], [2, 0, 2, 2]])},
                                   "opset": 1}, name="Reshape before opset 5")
def reshape(inputs, attrs, **_):
    shape = [inputs[0].shape[i] if size == 0 else size for i, size in enumerate(attrs["shape"])]
    return [inputs[0].reshape(shape)]


@reference("Cast", lambda rng: {"inputs": [floats(rng, *random_shape(rng))], "attrs": {"to": choice(rng, ["INT32", "DOUBLE", "BOOL", "FLOAT16"])},
                                "opset": 1}, name="Cast before opset 6")
def cast(inputs, attrs, **_):
    kinds = {"INT32": np.int32, "DOUBLE": np.float64, "BOOL": bool, "FLOAT16": np.float16}
    return [inputs[0].astype(kinds[attrs["to"]])]


@reference("Concat", lambda rng: {"inputs": [floats(rng, 2, 3, 2), floats(rng, 2, 1, 2)], "attrs": choice(rng, [{}, {"axis": 1}]), "opset": 1},
           name="Concat before opset 4")
def concat(inputs, **_):
    return [np.concatenate(inputs, 1)]


@reference("Tile", lambda rng: {"inputs": [floats(rng, 2, 3), np.array([2], np.int64), np.array([1], np.int64)],
                                "opset": 1}, name="Tile before opset 6")
def tile(inputs, **_):
    return [np.concatenate([inputs[0], inputs[0]], 1)]


def gemm_cases(rng):
    attrs = {"alpha": 0.5, "beta": 2.0, "transA": int(rng.integers(2)), "transB": int(rng.integers(2)), "broadcast": 1}
    a, b = floats(rng, 3, 4), floats(rng, 4, 5)
    c = floats(rng, *choice(rng, [(3, 5), (1, 5), (5,), (1,)]))
    return {"inputs": [a.T.copy() if attrs["transA"] else a, b.T.copy() if attrs["transB"] else b, c], "attrs": attrs,
            "opset": choice(rng, [1, 6]), "atol": 1e-5}


@reference("Gemm", gemm_cases, name="Gemm before opset 7")
def gemm(inputs, attrs, **_):
    a, b, c = (t.astype(np.float64) for t in inputs)
    return [0.5 * (a.T if attrs["transA"] else a) @ (b.T if attrs["transB"] else b) + 2 * c]


def upsample_cases(rng):
    opset = choice(rng, [1, 7, 9])
    x = floats(rng, 1, 2, 3, 4)
    inputs, attrs = [x], {"mode": "nearest"}
    if opset == 1:
        attrs.update(height_scale=2.0, width_scale=3.0)
    elif opset == 7:
        attrs["scales"] = [1.0, 1.0, 2.0, 3.0]
    else:
        inputs.append(np.array([1, 1, 2, 3], F32))
    return {"inputs": inputs, "attrs": attrs, "opset": opset, "constant_inputs": [1][:len(inputs) - 1]}


@reference("Upsample", upsample_cases)
def upsample(inputs, **_):
    return [inputs[0].repeat(2, 2).repeat(3, 3)]


# ---- softmax over the flattened rest ----------------------------------------------------------------------

def softmax_cases(rng):
    shape = random_shape(rng, least=2, zeros=False)
    attrs = {"axis": int(rng.integers(0, len(shape)))} if rng.random() < 0.7 else {}
    return {"inputs": [floats(rng, *shape)], "attrs": attrs, "opset": choice(rng, [1, 11]), "atol": 1e-6}


def softmax_rows(inputs, attrs):
    axis = attrs.get("axis", 1)
    rows = inputs[0].astype(np.float64).reshape(int(np.prod(inputs[0].shape[:axis])), -1)
    e = np.exp(rows - rows.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).reshape(inputs[0].shape)


@reference("Softmax", softmax_cases, name="Softmax before opset 13")
def softmax(inputs, attrs, **_):
    return [softmax_rows(inputs, attrs)]


def mvn_cases(rng):
    attrs = {name: int(rng.integers(2)) for name in ("across_channels", "normalize_variance") if rng.random() < 0.7}
    return {"inputs": [floats(rng, *(int(n) for n in rng.integers(2, 6, 4)))], "attrs": attrs, "opset": choice(rng, [1, 8]), "rtol": 1e-4, "atol": 1e-5}


@reference("MeanVarianceNormalization", mvn_cases, name="MeanVarianceNormalization before opset 9")
def mean_variance_normalization(inputs, attrs, **_):
    x, axes = inputs[0], (0, 1, 2, 3) if attrs.get("across_channels", 0) else (0, 2, 3)
    centered = x - x.mean(axes, keepdims=True)
    return [centered / x.std(axes, keepdims=True) if attrs.get("normalize_variance", 1) else centered]


@reference("LogSoftmax", softmax_cases, name="LogSoftmax before opset 13")
def log_softmax(inputs, attrs, **_):
    return [np.log(softmax_rows(inputs, attrs))]


# ---- BatchNormalization --------------------------------------------------------------------------------------

def batch_norm_cases(rng):
    opset = choice(rng, [1, 6, 7, 9, 14, 15])
    dtype = choice(rng, [F32, np.float64])
    shape = [int(rng.integers(1, 4)), int(rng.integers(1, 5)), *[int(s) for s in rng.integers(1, 4, int(rng.integers(0, 3)))]]
    attrs, train = {"epsilon": 1e-3, "momentum": 0.75}, bool(rng.random() < 0.5)
    per_channel = not (opset < 9 and rng.random() < 0.4 and not train)
    if not per_channel:
        attrs["spatial"] = 0
    if opset == 1:
        attrs["consumed_inputs"] = [0, 0, 0, 1, 1]
    if opset < 7:
        attrs["is_test"] = 0 if train else 1
    if opset >= 14 and train:
        attrs["training_mode"] = 1
    parameters = [shape[1]] if per_channel else shape[1:]
    inputs = [rng.uniform(-2, 2, shape).astype(dtype)] + [rng.uniform(0.5, 2, parameters).astype(dtype) for _ in range(4)]
    outputs = 1 if not train else 5 if opset < 14 else 3
    tight = {"rtol": 1e-10, "atol": 1e-11} if dtype is np.float64 else {"rtol": 2e-5, "atol": 2e-5}
    return {"inputs": inputs, "attrs": attrs, "opset": opset, "outputs": outputs, "train": train, **tight}


@reference("BatchNormalization", batch_norm_cases)
def batch_normalization(inputs, attrs, outputs, train, **_):
    x, scale, bias, mean, variance = (t.astype(np.float64) for t in inputs)
    if attrs.get("spatial", 1):
        scale, bias, mean, variance = (v.reshape([1, -1] + [1] * (x.ndim - 2)) for v in (scale, bias, mean, variance))
    results = []
    if train:
        axes = (0, *range(2, x.ndim))
        now, spread = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        results = [mean * 0.75 + now * 0.25, variance * 0.75 + spread * 0.25, now, spread][:outputs - 1]
        mean, variance = now, spread
    y = (x - mean) / np.sqrt(variance + np.float64(F32(1e-3))) * scale + bias
    return [y] + [r.reshape(-1) for r in results]


@reference("Erf", lambda rng: {"inputs": [rng.integers(-3, 4, random_shape(rng)).astype(choice(rng, [np.int8, np.int32, np.int64]))], "opset": 9},
           name="Erf of integers")
def erf(inputs, **_):
    return [np.zeros_like(inputs[0]) if inputs[0].size == 0 else np.trunc(np.sign(inputs[0]) * (np.abs(inputs[0]) > 30)).astype(inputs[0].dtype)]


@reference("NonZero", lambda rng: {"inputs": [choice(rng, [np.array([["", "a"], ["b", ""]], object), floats(rng, 2, 3).astype(np.complex64)])],
                                   "opset": 13}, name="NonZero of strings and complex numbers")
def non_zero(inputs, **_):
    x = inputs[0]
    return [np.array(np.nonzero(x != "" if x.dtype == object else x), np.int64)]


# ---- others ---------------------------------------------------------------------------------------------------

def pool_cases(op):
    def generate(rng):
        kernel = [int(k) for k in rng.integers(1, 4, 2)]
        attrs = {"kernel_shape": kernel, "strides": [int(s) for s in rng.integers(1, 3, 2)]}
        opset = choice(rng, [1, 7] if op == "AveragePool" else [1, 8])
        if opset == 7:
            attrs["count_include_pad"] = 1
        return {"inputs": [floats(rng, 2, 3, 7, 6)], "attrs": attrs, "opset": opset, "atol": 1e-6}
    return generate


def pooled(inputs, attrs, function):
    (kh, kw), (sh, sw) = attrs["kernel_shape"], attrs["strides"]
    x = inputs[0].astype(np.float64)
    rows, cols = (x.shape[2] - kh) // sh + 1, (x.shape[3] - kw) // sw + 1
    return [np.array([[function(x[:, :, r * sh:r * sh + kh, c * sw:c * sw + kw], (2, 3)) for c in range(cols)] for r in range(rows)])
            .transpose(2, 3, 0, 1)]


@reference("MaxPool", pool_cases("MaxPool"), name="MaxPool before opset 10")
def max_pool(inputs, attrs, **_):
    return pooled(inputs, attrs, np.max)


@reference("AveragePool", pool_cases("AveragePool"), name="AveragePool before opset 10")
def average_pool(inputs, attrs, **_):
    return pooled(inputs, attrs, np.mean)


@reference("Squeeze", lambda rng: {"inputs": [floats(rng, 1, 3, 1, 2)], "attrs": choice(rng, [{}, {"axes": [0]}, {"axes": [0, 2]}]), "opset": 1},
           name="Squeeze before opset 13")
def squeeze(inputs, attrs, **_):
    return [np.squeeze(inputs[0], tuple(attrs.get("axes", (0, 2))))]


@reference("Unsqueeze", lambda rng: {"inputs": [floats(rng, 2, 3)], "attrs": {"axes": choice(rng, [[0], [1, 3], [0, 1, 2]])}, "opset": 1},
           name="Unsqueeze before opset 13")
def unsqueeze(inputs, attrs, **_):
    return [np.expand_dims(inputs[0], tuple(attrs["axes"]))]


@reference("Resize", lambda rng: {"inputs": [floats(rng, 1, 2, 3, 4), np.array([1, 1, 2, 2], F32)], "attrs": {"mode": "nearest"}, "opset": 10,
                                  "constant_inputs": [1]}, name="Resize of opset 10")
def resize(inputs, **_):
    return [inputs[0].repeat(2, 2).repeat(2, 3)]


@reference("PRelu", lambda rng: {"inputs": [floats(rng, 2, 3, 4), floats(rng, *choice(rng, [(3,), (1,)]))], "opset": choice(rng, [1, 6])},
           name="PRelu before opset 7")
def prelu(inputs, **_):
    x, slope = inputs[0], inputs[1].reshape(1, -1, 1)
    return [np.where(x < 0, x * slope, x)]


@reference("Selu", lambda rng: {"inputs": [floats(rng, *random_shape(rng))], "opset": choice(rng, [1, 6])}, name="Selu by its defaults")
def selu(inputs, opset, **_):
    alpha, gamma = (1.6732, 1.0507) if opset == 1 else (1.67326319217681884765625, 1.05070102214813232421875)
    x = inputs[0].astype(np.float64)
    return [gamma * np.where(x < 0, float(F32(alpha)) * np.expm1(x), x)]


def scatter_cases(rng):
    data = floats(rng, 3, 4)
    axis = choice(rng, [0, 1])
    indices = np.stack([rng.permutation(data.shape[axis])[:2] for _ in range(data.shape[1 - axis])], 1 - axis).astype(np.int64)
    return {"inputs": [data, indices, floats(rng, *indices.shape)], "attrs": {"axis": axis}, "opset": choice(rng, [9, 10])}


@reference("Scatter", scatter_cases)
def scatter(inputs, attrs, **_):
    result = inputs[0].copy()
    np.put_along_axis(result, inputs[1], inputs[2], attrs["axis"])
    return [result]


@reference("Dropout", lambda rng: {"inputs": [floats(rng, *random_shape(rng))], "outputs": int(rng.integers(1, 3)),
                                   "opset": (opset := choice(rng, [1, 6, 7, 10])), "attrs": {"is_test": 1} if opset < 7 else {"ratio": 0.3}},
           name="Dropout before opset 12")
def old_dropout(inputs, opset, outputs, **_):
    mask = np.ones(inputs[0].shape, F32 if opset < 10 else bool)
    return [inputs[0], (mask, "float" if opset < 10 else "bool")][:outputs]


rejects("Upsample", [np.ones((1, 1, 2, 2), F32)], {}, says="height_scale", opset=1)
rejects("Clip", [np.ones(2, F32)], {"min": 0.0}, says="min", opset=11)
rejects("Add", [np.ones((2, 3), F32), np.ones(3, F32)], {"axis": -3, "broadcast": 1}, says="axis", opset=6)
rejects("BatchNormalization", [np.ones((1, 2), F32)] + [np.ones(2, F32)] * 4, {}, outputs=3, says="output", opset=15)
