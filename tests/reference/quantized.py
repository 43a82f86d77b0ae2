"""Quantized operators of ONNX, exact: integers as Python's and numpy's, scales in float32 as the text has them."""
import numpy as np

from harness import choice, random_shape, reference, rejects
from model_file import TYPES
from small_types import SMALL_FLOATS, SMALL_INTEGERS, brain_bits, encode, numbers, random_bits

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535), "int4": (-8, 7),
          "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
FLOAT8 = ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"]
F32 = np.float32


def random_quantized(rng, name, shape):
    if name in SMALL_INTEGERS or name in SMALL_FLOATS:
        return random_bits(rng, name, shape)
    if name == "int32":
        return rng.integers(-100000, 100000, shape).astype(np.int32)
    least, most = RANGES[name]
    return rng.integers(least, most, shape, endpoint=True).astype(name)


def value(tensor):
    """Integers as int64, floats as float32."""
    if tensor is None:
        return None
    values = np.asarray(numbers(*tensor) if isinstance(tensor, tuple) else tensor)
    return values.astype(np.float32) if values.dtype.kind == "f" else values.astype(np.int64)


def as_bfloat16(values):
    bits = np.ravel(np.asarray(values, F32)).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(F32).reshape(np.shape(values))


def rounded(values, precision):
    if precision == "float16":
        return np.asarray(values, np.float16).astype(F32)
    return as_bfloat16(values) if precision == "bfloat16" else np.asarray(values, F32)


def spread(scale, shape, axis, block):
    """A scale for every element."""
    scale = np.asarray(scale)
    if scale.size == 1:
        return np.broadcast_to(scale.reshape([1] * len(shape)), shape)
    if block:
        return np.repeat(scale, block, axis).take(range(shape[axis]), axis)
    sizes = [1] * len(shape)
    sizes[axis] = shape[axis]
    return np.broadcast_to(scale.reshape(sizes), shape)


def granularity(rng, opset, blocks_from=21):
    """Shape of x, shape of the scales, axis, block."""
    kind = choice(rng, ["tensor", "axis"] if opset < blocks_from else ["tensor", "axis", "block"])
    if opset < 13:
        kind = "tensor"
    shape = random_shape(rng, most=5, least=0 if kind == "tensor" else 1, largest=9)
    if kind == "tensor":
        return shape, [], 1, 0
    axis = int(rng.integers(len(shape)))
    if kind == "axis":
        return shape, [shape[axis]], axis, 0
    block = int(rng.integers(1, 5))
    return shape, [-(-d // block) if i == axis else d for i, d in enumerate(shape)], axis, block


def random_scale(rng, name, shape):
    if name == "float8e8m0":
        return rng.integers(120, 130, shape).astype(np.uint8), name
    scale = rng.uniform(0.02, 0.6, shape).astype(F32)
    if name == "bfloat16":
        return brain_bits(scale), name
    if name == "int32":
        return rng.integers(1, 9, shape).astype(np.int32)
    return scale.astype(np.float16) if name == "float16" else scale


def random_float(rng, name, shape):
    x = rng.normal(0, choice(rng, [1, 20, 200]), shape).astype(F32)
    if name == "bfloat16":
        return brain_bits(x), name
    return (x * 10).astype(np.int32) if name == "int32" else x.astype(np.float16) if name == "float16" else x


def axis_attrs(rng, attrs, opset, rank, axis, block):
    if opset >= 13 and rank > 0 and (axis != 1 or rng.random() < 0.5) and axis < rank:
        attrs["axis"] = axis - rank if rng.random() < 0.5 else axis
    if block:
        attrs["block_size"] = block
    return attrs


def quantize_cases(rng):
    opset = choice(rng, [10, 13, 19, 21, 23, 24, 25])
    shape, scale_shape, axis, block = granularity(rng, opset)
    name = choice(rng, ["float", "int32"] if opset < 19 else ["float", "float", "float16", "bfloat16", "int32"])
    scale = "float" if opset < 19 else name
    if opset >= 23:
        scale = choice(rng, ["float", "float16", "bfloat16", "float8e8m0", name])
    to = choice(rng, ["int8", "uint8"] + (FLOAT8 if opset >= 19 else []) + (["int16", "uint16", "int4", "uint4"] if opset >= 21 else []) +
                (["float4e2m1"] if opset >= 23 else []) + (["int2", "uint2"] if opset >= 25 else []))
    attrs = axis_attrs(rng, {}, opset, len(shape), axis, block)
    zero = random_quantized(rng, to, scale_shape) if to in RANGES else (np.zeros(scale_shape, np.uint8), to)
    if opset >= 21 and rng.random() < 0.3:
        attrs["output_dtype"] = TYPES[to]
        zero = choice(rng, [zero, None])
    elif rng.random() < 0.2:
        zero, to = None, "uint8"
    if opset >= 19 and to in FLOAT8 and rng.random() < 0.5:
        attrs["saturate"] = 0
    precision = choice(rng, [None, "float", "float16", "bfloat16"]) if opset >= 23 else None
    if precision:
        attrs["precision"] = TYPES[precision]
    return dict(inputs=[random_float(rng, name, shape), random_scale(rng, scale, scale_shape), zero], attrs=attrs, opset=opset,
                rtol=0, to=to, axis=axis, block=block, precision=precision or scale)


def quantize(x, scale, zero, to, precision, saturate=1):
    if precision == "int32":
        quotient = np.asarray(x, np.float64) / scale
    else:
        quotient = rounded(rounded(x, precision) / rounded(scale, precision), precision)
    if to in RANGES:
        return np.clip(np.rint(quotient.astype(np.float64)) + zero, *RANGES[to]).astype("int8" if to in ("int4", "int2") else "uint8" if to in SMALL_INTEGERS else to)
    return encode(to, quotient.astype(np.float64) + zero, saturate=bool(saturate))


@reference("QuantizeLinear", quantize_cases)
def expect_quantize(inputs, attrs, to, axis, block, precision, **_):
    x, scale, zero = (value(t) for t in inputs)
    scale = spread(scale, x.shape, axis, block)
    zero = spread(0 if zero is None else zero, x.shape, axis, block)
    return [(quantize(x, scale, zero, to, precision, attrs.get("saturate", 1)), to)]


def dequantize_cases(rng):
    opset = choice(rng, [10, 13, 19, 21, 23, 25])
    shape, scale_shape, axis, block = granularity(rng, opset)
    name = choice(rng, ["int8", "uint8", "int32"] + (FLOAT8 if opset >= 19 else []) + (["int16", "uint16", "int4", "uint4"] if opset >= 21 else []) +
                  (["float4e2m1"] if opset >= 23 else []) + (["int2", "uint2"] if opset >= 25 else []))
    scale = "float" if opset < 19 else choice(rng, ["float", "float16", "bfloat16"])
    attrs = axis_attrs(rng, {}, opset, len(shape), axis, block)
    output = scale
    if opset >= 23 and rng.random() < 0.5:
        output = choice(rng, ["float", "float16", "bfloat16"])
        attrs["output_dtype"] = TYPES[output]
        scale = choice(rng, [scale, "float8e8m0"])
    zero = random_quantized(rng, name, scale_shape) if name in RANGES and rng.random() < 0.7 else None
    return dict(inputs=[random_quantized(rng, name, shape), random_scale(rng, scale, scale_shape), zero], attrs=attrs, opset=opset,
                output=output, axis=axis, block=block)


def dequantize(x, scale, zero, output):
    result = (x - zero).astype(F32) * np.asarray(scale, F32)
    return result.astype(np.float16) if output == "float16" else as_bfloat16(result) if output == "bfloat16" else result


@reference("DequantizeLinear", dequantize_cases)
def expect_dequantize(inputs, output, axis, block, **_):
    x, scale, zero = (value(t) for t in inputs)
    zero = spread(0 if zero is None else zero, x.shape, axis, block)
    return [(dequantize(x, spread(scale, x.shape, axis, block), zero, output), output)]


def dynamic_parameters(x):
    least, most = F32(min(0, x.min(initial=0))), F32(max(0, x.max(initial=0)))
    scale = F32(1 if most == least else most - least) / F32(255)
    return scale, np.rint(np.clip(F32(0) - least / scale, 0, 255))


@reference("DynamicQuantizeLinear", lambda rng: dict(inputs=[
    (rng.normal(choice(rng, [-3, 0, 5]), choice(rng, [0, 1, 40]), random_shape(rng, largest=40, most=4))).astype(F32)],
    outputs=3, opset=11, rtol=0))
def expect_dynamic_quantize(inputs, **_):
    scale, zero = dynamic_parameters(inputs[0])
    return [np.clip(np.rint(inputs[0] / scale) + zero, 0, 255).astype(np.uint8), np.array(scale), np.array(zero, np.uint8)]


# ---- products ----------------------------------------------------------------------------------------

def matmul_shapes(rng, most=70):
    m, k, n = (int(rng.integers(1, choice(rng, [4, 20, most]))) for _ in range(3))
    batch = random_shape(rng, most=3, largest=3)
    kind = choice(rng, ["matrix", "shared", "batched", "vector a", "vector b", "zero"])
    if kind == "vector a":
        return [k], [*batch, k, n]
    if kind == "vector b":
        return [*batch, m, k], [k]
    if kind == "zero":
        return ([m, 0], [0, n]) if rng.random() < 0.5 else ([0, k], [k, n])
    if kind == "batched":
        return [*batch, m, k], [*[d if rng.random() < 0.7 else 1 for d in batch], k, n]
    return ([*batch, m, k] if kind == "shared" else [m, k]), [k, n]


def byte_types(rng):
    return choice(rng, ["int8", "uint8"])


def per_row(rng, name, a):
    """A zero point's shape, or a scale's, for A."""
    choices = [[], [1]] + ([[a[-2]], [*a[:-1], 1]] if len(a) > 1 else [])
    return choice(rng, choices)


def per_column(rng, name, b):
    choices = [[], [1]] + ([[b[-1]], [*b[:-2], 1, b[-1]]] if len(b) > 1 else [])
    return choice(rng, choices)


def align_row(values, a):
    values = np.asarray(values)
    return values.reshape(-1, 1) if values.ndim == 1 and values.size != 1 and len(a) > 1 else values.reshape(()) if values.size == 1 else values


def align_column(values):
    values = np.asarray(values)
    return values.reshape(()) if values.size == 1 else values


def wrap32(values):
    return np.asarray(values).astype(np.int64).astype(np.int32)


def product(a, a_zero, b, b_zero):
    a, b = value(a), value(b)
    left = a - align_row(0 if a_zero is None else value(a_zero), a.shape)
    right = b - align_column(0 if b_zero is None else value(b_zero))
    return left @ right


def matmul_integer_cases(rng):
    a, b = matmul_shapes(rng)
    ta, tb = byte_types(rng), byte_types(rng)
    inputs = [random_quantized(rng, ta, a), random_quantized(rng, tb, b), random_quantized(rng, ta, per_row(rng, ta, a)),
              random_quantized(rng, tb, per_column(rng, tb, b))]
    return dict(inputs=[*inputs[:2], inputs[2] if rng.random() < 0.7 else None, inputs[3] if rng.random() < 0.7 else None], opset=10)


@reference("MatMulInteger", matmul_integer_cases)
def expect_matmul_integer(inputs, **_):
    return [wrap32(product(inputs[0], inputs[2], inputs[1], inputs[3]))]


def scales(rng, shape, precision="float"):
    return random_scale(rng, precision, shape)


def qlinear_matmul_cases(rng):
    a, b = matmul_shapes(rng)
    opset = choice(rng, [10, 21])
    ta, tb, ty = byte_types(rng), byte_types(rng), byte_types(rng)
    precision = "float" if opset == 10 else choice(rng, ["float", "float16", "bfloat16"])
    rows, columns = per_row(rng, ta, a), per_column(rng, tb, b)
    inputs = [random_quantized(rng, ta, a), scales(rng, rows, precision), random_quantized(rng, ta, rows),
              random_quantized(rng, tb, b), scales(rng, columns, precision), random_quantized(rng, tb, columns),
              scales(rng, [], precision) if precision != "float" else np.array(rng.uniform(5, 60), F32), random_quantized(rng, ty, [])]
    return dict(inputs=inputs, opset=opset, to=ty, rtol=0)


def requantize(sums, scale, zero, to):
    """sums * scale in float32, half to even."""
    return np.clip(np.rint(wrap32(sums).astype(F32) * np.asarray(scale, F32)) + value(zero), *RANGES[to]).astype(to)


@reference("QLinearMatMul", qlinear_matmul_cases)
def expect_qlinear_matmul(inputs, to, **_):
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
    scale = align_row(value(a_scale), a.shape) * align_column(value(b_scale)) / value(y_scale).reshape(())
    vectors = a.ndim == 1, b.ndim == 1  # become matrices, and leave the result again
    a, b = a[None] if vectors[0] else a, b[:, None] if vectors[1] else b
    y = requantize(product(a, a_zero, b, b_zero), scale, y_zero, to)
    y = y[..., 0] if vectors[1] else y
    return [(y[..., 0] if vectors[1] else y[..., 0, :]) if vectors[0] else y]


def qlinear_matmul_float8_cases(rng):
    a, b = matmul_shapes(rng, most=6)
    ta, tb, ty = (choice(rng, FLOAT8) for _ in range(3))
    zero = np.zeros([], np.uint8)
    inputs = [random_bits(rng, ta, a), np.array(rng.uniform(0.01, 0.1), F32), (zero, ta), random_bits(rng, tb, b),
              np.array(rng.uniform(0.01, 0.1), F32), (zero, tb), np.array(rng.uniform(0.5, 2), F32), (zero, ty)]
    return dict(inputs=inputs, opset=21, to=ty, rtol=0)


@reference("QLinearMatMul", qlinear_matmul_float8_cases, name="QLinearMatMul of float8")
def expect_qlinear_matmul_float8(inputs, to, **_):
    a, b = numbers(*inputs[0]), numbers(*inputs[3])
    scale = [float(inputs[i]) for i in (1, 4, 6)]
    return [(encode(to, (a @ b) * scale[0] * scale[1] / scale[2]), to)]


# ---- convolutions ------------------------------------------------------------------------------------

def conv_cases(rng):
    rank = int(rng.integers(1, 4))
    groups = choice(rng, [1, 1, 2, 3])
    depthwise = rng.random() < 0.25
    in_c = 1 if depthwise else int(rng.integers(1, choice(rng, [4, 40])))
    out_c = 1 if depthwise else int(rng.integers(1, choice(rng, [4, 40])))
    groups = int(rng.integers(2, 40)) if depthwise else groups
    kernel = [int(rng.integers(1, 4)) for _ in range(rank)]
    spatial = [int(rng.integers(k, k + choice(rng, [3, 9]))) for k in kernel]
    attrs = {}
    if rng.random() < 0.5:
        attrs["strides"] = [int(rng.integers(1, 3)) for _ in range(rank)]
    if rng.random() < 0.3:
        attrs["dilations"] = [int(rng.integers(1, 3)) for _ in range(rank)]
        spatial = [s * 2 for s in spatial]
    mode = choice(rng, ["none", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if mode == "pads":
        attrs["pads"] = [int(rng.integers(0, 3)) for _ in range(2 * rank)]
    elif mode != "none":
        attrs["auto_pad"] = mode
    if groups > 1:
        attrs["group"] = groups
    if rng.random() < 0.5:
        attrs["kernel_shape"] = kernel
    tx, tw = byte_types(rng), byte_types(rng)
    x = random_quantized(rng, tx, [int(rng.integers(0, 3)) or 1, in_c * groups, *spatial])
    w = random_quantized(rng, tw, [out_c * groups, in_c, *kernel])
    return x, w, tx, tw, attrs


def convolve(x, w, strides=None, dilations=None, pads=None, auto_pad="NOTSET", group=1, **_):
    """Integers, padded with zero."""
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    if auto_pad.startswith("SAME"):
        total = [max(0, (-(-s // t) - 1) * t + r - s) for s, t, r in zip(x.shape[2:], strides, reach)]
        small, large = [t // 2 for t in total], [t - t // 2 for t in total]
        pads = small + large if auto_pad == "SAME_UPPER" else large + small
    pads = pads or [0] * (2 * rank)
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    out = [(s - r) // t + 1 for s, r, t in zip(x.shape[2:], reach, strides)]
    y = np.zeros([x.shape[0], w.shape[0], *out], np.int64)
    per_in, per_out = w.shape[1], w.shape[0] // group
    for g in range(group):
        for at in np.ndindex(*w.shape[2:]):
            window = tuple(slice(a * d, a * d + (o - 1) * t + 1, t) for a, d, o, t in zip(at, dilations, out, strides))
            patch = x[(slice(None), slice(g * per_in, (g + 1) * per_in), *window)]
            taps = w[(slice(g * per_out, (g + 1) * per_out), slice(None), *at)]
            y[:, g * per_out:(g + 1) * per_out] += np.einsum("ncs,oc->nos", patch.reshape(*patch.shape[:2], -1), taps).reshape(
                patch.shape[0], per_out, *out)
    return y


def less_zero(w, zero):
    zero = np.asarray(0 if zero is None else value(zero))
    return value(w) - (zero.reshape(-1, *[1] * (w.ndim - 1)) if zero.size > 1 else zero.reshape(()))


def conv_integer_cases(rng):
    x, w, tx, tw, attrs = conv_cases(rng)
    x_zero = random_quantized(rng, tx, choice(rng, [[], [1]])) if rng.random() < 0.7 else None
    w_zero = random_quantized(rng, tw, choice(rng, [[], [w.shape[0]]])) if rng.random() < 0.7 else None
    return dict(inputs=[x, w, x_zero, w_zero], attrs=attrs, opset=10)


@reference("ConvInteger", conv_integer_cases)
def expect_conv_integer(inputs, attrs, **_):
    x, w, x_zero, w_zero = inputs
    return [wrap32(convolve(less_zero(x, x_zero), less_zero(w, w_zero), **attrs))]


def qlinear_conv_cases(rng):
    x, w, tx, tw, attrs = conv_cases(rng)
    channels = choice(rng, [[], [w.shape[0]]])
    ty = byte_types(rng)
    inputs = [x, scales(rng, []), random_quantized(rng, tx, []), w, scales(rng, channels), random_quantized(rng, tw, channels),
              np.array(rng.uniform(3, 60), F32), random_quantized(rng, ty, [])]
    if rng.random() < 0.5:
        inputs.append(rng.integers(-3000, 3000, [w.shape[0]]).astype(np.int32))
    return dict(inputs=inputs, attrs=attrs, opset=10, to=ty)


@reference("QLinearConv", qlinear_conv_cases)
def expect_qlinear_conv(inputs, attrs, to, **_):
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *bias = inputs
    y = convolve(less_zero(x, x_zero), less_zero(w, w_zero), **attrs)
    channel = [1, -1, *[1] * (x.ndim - 2)]
    if bias:
        y = y + value(bias[0]).reshape(channel)
    scale = x_scale.reshape(()) * w_scale / y_scale.reshape(())
    return [requantize(y, scale.reshape(channel) if np.ndim(scale) else scale, y_zero, to)]


# ---- bad input ---------------------------------------------------------------------------------------

X = np.zeros([2, 3], F32)
U = np.zeros([2, 3], np.uint8)
W = np.zeros([3, 4], np.int8)
S = np.array(1, F32)
Z = np.array(0, np.uint8)
rejects("QuantizeLinear", [X], says="inputs")
rejects("QuantizeLinear", [U, S], says="input 0")
rejects("QuantizeLinear", [X, np.ones([2], F32)], says="expected a scale for each place along axis 1")
rejects("QuantizeLinear", [X, np.ones([3], F32)], {"axis": 2}, says="axis 2")
rejects("QuantizeLinear", [X, S, np.zeros([2], np.uint8)], says="expected the scale's shape")
rejects("QuantizeLinear", [X, S, np.array(0, np.int16)], opset=13, says="input 2")
rejects("QuantizeLinear", [X, S, Z], {"output_dtype": TYPES["int8"]}, says="output_dtype")
rejects("QuantizeLinear", [X, S], {"output_dtype": TYPES["float"]}, says="output_dtype")
rejects("QuantizeLinear", [X, np.ones([2, 2], F32)], {"block_size": 1, "axis": 1}, says="blocks of 1")
rejects("QuantizeLinear", [X, np.ones([2, 2], F32)], {"block_size": -1}, says="block_size")
rejects("QuantizeLinear", [X, S], {"precision": TYPES["double"]}, opset=23, says="precision")
rejects("QuantizeLinear", [X, S], {"axis": 0}, opset=10, says="axis")
rejects("DequantizeLinear", [X, S], says="input 0")
rejects("DequantizeLinear", [U, S, np.array(0, np.int8)], says="inputs 0 and 2")
rejects("DequantizeLinear", [U, np.ones([2, 3], F32)], says="one scale or a vector")
rejects("DequantizeLinear", [U, (np.zeros([], np.uint8), "float8e8m0")], opset=23, says="output_dtype")
rejects("DynamicQuantizeLinear", [U], outputs=3, says="input 0")
rejects("DynamicQuantizeLinear", [X], outputs=2, says="outputs")
rejects("MatMulInteger", [U], says="inputs")
rejects("MatMulInteger", [U, U], says="inner dimensions 3 and 2")
rejects("MatMulInteger", [X, W], says="input 0")
rejects("MatMulInteger", [U, W, np.array(0, np.int8)], says="inputs 0 and 2")
rejects("MatMulInteger", [U, W, np.zeros([3], np.uint8)], says="one per row")
rejects("MatMulInteger", [U, W, Z, np.zeros([3], np.int8)], says="one per column")
rejects("MatMulInteger", [Z, W], says="found a scalar")
rejects("QLinearMatMul", [U, S, Z, W, S, np.array(0, np.int8), np.ones([2], F32), Z], says="expected one value")
rejects("QLinearMatMul", [U, S, Z, W, S, np.array(0, np.int8), S, np.array(0, np.int16)], says="input 7")
rejects("QLinearMatMul", [U, S, Z, W, np.ones([3], F32), np.array(0, np.int8), S, Z], says="one per column")
rejects("QLinearMatMul", [U, S, Z, W, S], says="inputs")
IMAGE, KERNEL = np.zeros([1, 2, 4, 4], np.uint8), np.zeros([3, 2, 2, 2], np.int8)
rejects("ConvInteger", [IMAGE, np.zeros([3, 1, 2, 2], np.int8)], says="expected 1 channels")
rejects("ConvInteger", [IMAGE, KERNEL, np.zeros([2], np.uint8)], says="expected one value")
rejects("ConvInteger", [IMAGE, KERNEL, Z, np.zeros([2], np.int8)], says="one per output channel")
rejects("ConvInteger", [IMAGE, KERNEL], {"group": 2}, says="groups")
rejects("ConvInteger", [IMAGE, KERNEL], {"kernel_shape": [3, 3]}, says="kernel_shape")
rejects("ConvInteger", [IMAGE, KERNEL], {"strides": [0, 1]}, says="strides")
rejects("ConvInteger", [IMAGE[0], KERNEL], says="input 1")
rejects("QLinearConv", [IMAGE, S, Z, KERNEL, S, np.array(0, np.int8), S, Z, np.zeros([2], np.int32)], says="expected 3 values")
rejects("QLinearConv", [IMAGE, S, Z, KERNEL, np.ones([2], F32), np.array(0, np.int8), S, Z], says="one per output channel")
