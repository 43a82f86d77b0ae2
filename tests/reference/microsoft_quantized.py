"""Quantized operators of com.microsoft, from ONNX Runtime's ContribOperators.md."""
import numpy as np

from harness import broadcastable, choice, random_shape, reference, rejects
from quantized import (F32, RANGES, as_bfloat16, axis_attrs, brain_bits, byte_types, dequantize, dynamic_parameters, granularity, matmul_shapes,
                       product, quantize, random_float, random_quantized, random_scale, requantize, scales, spread, value, wrap32)

MICROSOFT = dict(domain="com.microsoft", opset=1)


def microsoft(op, generator, name=None):
    return reference(op, lambda rng: dict(MICROSOFT, **generator(rng)), name=name or f"microsoft {op}")


def refuses(op, inputs, attrs=None, says="", **more):
    rejects(op, inputs, attrs, says=says, name=f"microsoft {op}", **MICROSOFT, **more)


# ---- linear ------------------------------------------------------------------------------------------

def quantize_cases(rng):
    shape, scale_shape, axis, _ = granularity(rng, 13)
    name, to = choice(rng, ["float", "float16"]), choice(rng, ["int8", "uint8", "int16", "uint16", "int4", "uint4"])
    zero = random_quantized(rng, to, scale_shape)
    if rng.random() < 0.2:
        zero, to = None, "uint8"
    return dict(inputs=[random_float(rng, name, shape), random_scale(rng, name, scale_shape), zero], to=to, axis=axis, rtol=0,
                attrs=axis_attrs(rng, {}, 13, len(shape), axis, 0), precision=name)


@microsoft("QuantizeLinear", quantize_cases)
def expect_quantize(inputs, to, axis, precision, **_):
    x, scale, zero = (value(t) for t in inputs)
    return [(quantize(x, spread(scale, x.shape, axis, 0), spread(0 if zero is None else zero, x.shape, axis, 0), to, precision), to)]


def dequantize_cases(rng):
    shape, scale_shape, axis, _ = granularity(rng, 13)
    name, to = choice(rng, ["int8", "uint8", "int16", "uint16", "int32", "int4", "uint4"]), choice(rng, ["float", "float16"])
    zero = random_quantized(rng, name, scale_shape) if name != "int32" and rng.random() < 0.7 else None
    return dict(inputs=[random_quantized(rng, name, shape), random_scale(rng, to, scale_shape), zero], to=to, axis=axis,
                attrs=axis_attrs(rng, {}, 13, len(shape), axis, 0))


@microsoft("DequantizeLinear", dequantize_cases)
def expect_dequantize(inputs, to, axis, **_):
    x, scale, zero = (value(t) for t in inputs)
    zero = spread(0 if zero is None else zero, x.shape, axis, 0)
    return [(dequantize(x, spread(scale, x.shape, axis, 0), zero, to), to)]


# ---- products ----------------------------------------------------------------------------------------

def column_shape(rng, b):
    return choice(rng, [[], [1], [b[-1]]] if len(b) > 1 else [[], [1]])


def to_float_cases(rng):
    a, b = matmul_shapes(rng)
    ta, tb = byte_types(rng), byte_types(rng)
    name = choice(rng, ["float", "float", "float16"])
    columns = column_shape(rng, b)
    bias = random_float(rng, name, [b[-1]]) if len(b) > 1 and rng.random() < 0.5 else None
    small = 0.01 if name == "float16" else 1
    a_scale = (random_scale(rng, name, []) * np.dtype("f2" if name == "float16" else "f4").type(small)).astype(
        "f2" if name == "float16" else "f4")
    return dict(inputs=[random_quantized(rng, ta, a), random_quantized(rng, tb, b), np.asarray(a_scale),
                        random_scale(rng, name, columns), random_quantized(rng, ta, []) if rng.random() < 0.7 else None,
                        random_quantized(rng, tb, columns) if rng.random() < 0.7 else None, bias], atol=1e-3 if name == "float" else 1,
                rtol=1e-5 if name == "float" else 5e-3)


@microsoft("MatMulIntegerToFloat", to_float_cases)
def expect_to_float(inputs, **_):
    a, b, a_scale, b_scale, a_zero, b_zero, bias = inputs
    scale = np.asarray(a_scale, np.float64) * np.asarray(b_scale, np.float64)
    y = product(a, a_zero, b, b_zero) * (scale.reshape(()) if scale.size == 1 else scale)
    return [(y + (0 if bias is None else bias)).astype(a_scale.dtype)]


def dynamic_matmul_cases(rng):
    a, b = matmul_shapes(rng)
    tb = byte_types(rng)
    columns = column_shape(rng, b)
    bias = random_float(rng, "float", [b[-1]]) if len(b) > 1 and rng.random() < 0.5 else None
    return dict(inputs=[rng.normal(1, 3, a).astype(F32), random_quantized(rng, tb, b), random_scale(rng, "float", columns),
                        random_quantized(rng, tb, columns) if rng.random() < 0.7 else None, bias], rtol=1e-5, atol=1e-3)


def quantized_dynamically(x):
    scale, zero = dynamic_parameters(x)
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), scale, np.uint8(zero)


@microsoft("DynamicQuantizeMatMul", dynamic_matmul_cases)
def expect_dynamic_matmul(inputs, **_):
    a, b, b_scale, b_zero, bias = inputs
    quantized, scale, zero = quantized_dynamically(a)
    factor = np.float64(scale) * np.asarray(b_scale, np.float64)
    y = product(quantized, np.array(zero), b, b_zero) * (factor.reshape(()) if factor.size == 1 else factor)
    return [(y + (0 if bias is None else bias)).astype(F32)]


def qgemm_cases(rng):
    m, k, n = (int(rng.integers(1, choice(rng, [4, 20, 70]))) for _ in range(3))
    ta, tb, ty = byte_types(rng), byte_types(rng), byte_types(rng)
    attrs = {name: 1 for name in ("transA", "transB") if rng.random() < 0.5}
    if rng.random() < 0.5:
        attrs["alpha"] = float(F32(rng.uniform(0.5, 2)))
    columns = choice(rng, [[], [n]])
    bias = None
    if rng.random() < 0.6:
        bias = rng.integers(-500, 500, choice(rng, [[], [1], [n], [1, n], [m, n], [m, 1]])).astype(np.int32)
    inputs = [random_quantized(rng, ta, [k, m] if "transA" in attrs else [m, k]), scales(rng, []), random_quantized(rng, ta, []),
              random_quantized(rng, tb, [n, k] if "transB" in attrs else [k, n]), scales(rng, columns), random_quantized(rng, tb, columns), bias]
    to = "float"
    if rng.random() < 0.6:
        inputs += [np.array(rng.uniform(3, 60), F32), random_quantized(rng, ty, [])]
        to = ty
    return dict(inputs=inputs, attrs=attrs, to=to, rtol=1e-5 if to == "float" else 0, atol=1e-3 if to == "float" else 0)


@microsoft("QGemm", qgemm_cases)
def expect_qgemm(inputs, attrs, to, **_):
    a, a_scale, a_zero, b, b_scale, b_zero, bias, *output = inputs
    a, b = (a.T if "transA" in attrs else a), (b.T if "transB" in attrs else b)
    sums = product(a, a_zero, b, b_zero) + (0 if bias is None else bias)
    scale = F32(attrs.get("alpha", 1)) * a_scale * b_scale
    if to == "float":
        return [(wrap32(sums) * scale.astype(np.float64)).astype(F32)]
    return [requantize(sums, scale / output[0], output[1], to)]


def nbits_cases(rng):
    bits, block = choice(rng, [2, 4, 8]), choice(rng, [16, 32, 64])
    k, n = int(rng.integers(1, 150)), int(rng.integers(1, 80))
    blocks = -(-k // block)
    name = choice(rng, ["float", "float", "float16", "bfloat16"])
    lead = random_shape(rng, most=3, least=0, largest=4)
    weights = rng.integers(0, 1 << bits, [n, blocks * block]).astype(np.uint8)
    zeros, zero_values = None, np.full([n, blocks], 1 << (bits - 1), np.float64)
    kind = choice(rng, ["none", "packed", "float"])
    if kind == "packed":
        zero_values = rng.integers(0, 1 << bits, [n, blocks]).astype(np.float64)
        zeros = pack_rows(zero_values.astype(np.uint8), bits)
    elif kind == "float":
        zeros = random_float(rng, name, [n, blocks])
        zero_values = value(zeros).astype(np.float64)
    groups = rng.integers(0, blocks, [k]).astype(np.int32) if rng.random() < 0.2 else None
    scale = random_scale(rng, name, [n, blocks])
    bias = random_float(rng, name, [n]) if rng.random() < 0.4 else None
    attrs = {"K": k, "N": n, "block_size": block}
    if bits != 4 or rng.random() < 0.5:
        attrs["bits"] = bits
    return dict(inputs=[random_float(rng, name, [*lead, k]), pack_rows(weights, bits).reshape(n, blocks, -1), scale, zeros, groups, bias],
                attrs=attrs, weights=weights[:, :k], zero_values=zero_values, block=block, type_name=name,
                rtol=1e-4 if name == "float" else 2e-2, atol={"float": 2e-2, "float16": 40, "bfloat16": 400}[name])


def pack_rows(values, bits):
    per_byte = 8 // bits
    padded = np.pad(values, [(0, 0), (0, -values.shape[1] % per_byte)]).reshape(len(values), -1, per_byte)
    return np.bitwise_or.reduce(padded << (np.arange(per_byte) * bits).astype(np.uint8), axis=2).astype(np.uint8)


@microsoft("MatMulNBits", nbits_cases)
def expect_nbits(inputs, weights, zero_values, block, type_name, **_):
    a, _, scale, _, groups, bias = inputs
    scale = value(scale).astype(np.float64)
    at = groups if groups is not None else np.arange(weights.shape[1]) // block
    b = (weights - zero_values[:, at]) * scale[:, at]
    y = value(a).astype(np.float64) @ b.T + (0 if bias is None else value(bias))
    return [y.astype(np.float16) if type_name == "float16" else as_bfloat16(y) if type_name == "bfloat16" else y.astype(F32)]


FLOAT4 = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4])
NORMAL4 = np.array([-1, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0, 0.0795803, 0.1609302,
                    0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1])


def bnb4_cases(rng):
    name, block = choice(rng, ["float", "float", "float16", "bfloat16"]), choice(rng, [16, 32, 64])
    k, n = int(rng.integers(1, 90)), int(rng.integers(1, 80))
    codes = rng.integers(0, 16, n * k).astype(np.uint8)
    pairs = np.pad(codes, (0, len(codes) % 2)).reshape(-1, 2)
    factors = rng.uniform(0.1, 1, -(-n * k // block)).astype(F32)
    x = rng.normal(0, 1, [*random_shape(rng, most=3, least=0, largest=4), k]).astype(F32)
    attrs = {"K": k, "N": n, "block_size": block, "quant_type": int(rng.integers(0, 2))}
    if name == "float" and rng.random() < 0.3:
        attrs["transB"] = 0
        x = rng.normal(0, 1, [*x.shape[:-1], n]).astype(F32)
    def typed(t):
        return (brain_bits(t), name) if name == "bfloat16" else t.astype(np.float16) if name == "float16" else t
    return dict(inputs=[typed(x), pairs[:, 0] << 4 | pairs[:, 1], typed(factors)], attrs=attrs, codes=codes, name=name,
                **{"float": dict(rtol=1e-4, atol=1e-4), "float16": dict(rtol=5e-3, atol=1e-2), "bfloat16": dict(rtol=2e-2, atol=5e-2)}[name])


@microsoft("MatMulBnb4", bnb4_cases)
def expect_bnb4(inputs, attrs, codes, name, **_):
    x, factors = value(inputs[0]).astype(np.float64), value(inputs[2]).astype(np.float64)
    numbers = NORMAL4[codes] if attrs["quant_type"] else np.concatenate([FLOAT4, -FLOAT4])[codes]
    b = (numbers * np.repeat(factors, attrs["block_size"])[:len(codes)]).reshape(attrs["N"], attrs["K"])
    y = x @ (b.T if attrs.get("transB", 1) else b)
    return [y.astype(np.float16) if name == "float16" else as_bfloat16(y) if name == "bfloat16" else y.astype(F32)]


def gather_cases(rng):
    name, block = choice(rng, ["int4", "uint4", "uint8"]), 16
    bits = choice(rng, [2, 4, 8]) if name == "uint8" else 4
    rank = int(rng.integers(2, 4))
    shape = [int(rng.integers(1, 6)) for _ in range(rank)]
    axis = int(rng.integers(1, rank)) if name == "uint8" else int(rng.integers(rank))
    shape[axis] = int(rng.integers(1, 50))
    shape[-1] = -(-shape[-1] // 4) * 4  # whole bytes
    gather = 0 if name == "uint8" else int(rng.integers(rank))
    blocks = [-(-d // block) if i == axis else d for i, d in enumerate(shape)]
    values, zeros = rng.integers(0, 1 << bits, shape).astype(np.uint8), rng.integers(0, 1 << bits, blocks).astype(np.uint8)
    scale_type = choice(rng, ["float", "float16", "bfloat16"])
    indices = rng.integers(-shape[gather], shape[gather], random_shape(rng, most=2)).astype(choice(rng, [np.int32, np.int64]))
    attrs = {"block_size": block, "quantize_axis": axis - (rank if rng.random() < 0.5 else 0), "gather_axis": gather}
    if name == "uint8":
        attrs["bits"] = bits

    def stored(bits_of):
        if name != "uint8":
            return bits_of, name
        return pack_rows(bits_of.reshape(-1, bits_of.shape[-1]), bits).reshape(*bits_of.shape[:-1], -1)

    has_zero = rng.random() < 0.6
    return dict(inputs=[stored(values), indices, random_scale(rng, scale_type, blocks), stored(zeros) if has_zero else None],
                attrs=attrs, values=values, zeros=zeros if has_zero else None, axis=axis, gather=gather, name=name, bits=bits,
                scale_type=scale_type)


@microsoft("GatherBlockQuantized", gather_cases)
def expect_gather(inputs, values, zeros, axis, gather, name, bits, scale_type, **_):
    values = values.astype(np.int64)
    default = 1 << (bits - 1) if name == "uint8" else 0
    zeros = np.full(value(inputs[2]).shape, default) if zeros is None else zeros.astype(np.int64)
    if name == "int4":
        values, zeros = (np.where(v >= 8, v - 16, v) for v in (values, zeros))
    full = (values - spread(zeros, values.shape, axis, 16)).astype(F32) * spread(value(inputs[2]), values.shape, axis, 16)
    y = np.take(full, inputs[1], gather)
    return [y.astype(np.float16) if scale_type == "float16" else as_bfloat16(y) if scale_type == "bfloat16" else y.astype(F32)]


def lstm_cases(rng):
    steps, batch, width, hidden = (int(rng.integers(1, 7)) for _ in range(4))
    direction = choice(rng, ["forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    name = byte_types(rng)
    wide = [directions, 4 * hidden] if rng.random() < 0.5 else [directions]

    def maybe(shape, share=0.5):
        return rng.normal(0, 1, shape).astype(F32) if rng.random() < share else None

    lengths = rng.integers(0, steps + 1, [batch]).astype(np.int32) if rng.random() < 0.3 else None
    small = 0.03
    inputs = [rng.normal(0, 1, [steps, batch, width]).astype(F32), random_quantized(rng, name, [directions, width, 4 * hidden]),
              random_quantized(rng, name, [directions, hidden, 4 * hidden]), maybe([directions, 8 * hidden]), lengths,
              maybe([directions, batch, hidden], 0.4), maybe([directions, batch, hidden], 0.4), maybe([directions, 3 * hidden], 0.3),
              (random_scale(rng, "float", wide) * F32(small)), random_quantized(rng, name, wide),
              (random_scale(rng, "float", wide) * F32(small)), random_quantized(rng, name, wide)]
    return dict(inputs=inputs, attrs={"direction": direction, "hidden_size": hidden}, outputs=3, rtol=1e-3, atol=1e-3)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@microsoft("DynamicQuantizeLSTM", lstm_cases)
def expect_lstm(inputs, attrs, **_):
    x, w, r, bias, lengths, h0, c0, peephole, w_scale, w_zero, r_scale, r_zero = inputs
    steps, batch, _ = x.shape
    directions, hidden = w.shape[0], r.shape[1]
    lengths = np.full([batch], steps) if lengths is None else lengths

    def multiply(left, matrix, scale, zero):
        quantized, left_scale, left_zero = quantized_dynamically(left.astype(F32))
        return product(quantized, np.array(left_zero), matrix, np.asarray(zero)) * (np.float64(left_scale) * scale)

    y = np.zeros([steps, directions, batch, hidden])
    last_h, last_c = np.zeros([directions, batch, hidden]), np.zeros([directions, batch, hidden])
    for d in range(directions):
        h = np.zeros([batch, hidden]) if h0 is None else h0[d].astype(np.float64)
        c = np.zeros([batch, hidden]) if c0 is None else c0[d].astype(np.float64)
        b = np.zeros(8 * hidden) if bias is None else bias[d].astype(np.float64)
        p = np.zeros(3 * hidden) if peephole is None else peephole[d].astype(np.float64)
        given = multiply(x.reshape(steps * batch, -1), w[d], w_scale[d], w_zero[d]).reshape(steps, batch, -1)
        for s in range(steps):
            t = steps - 1 - s if d == 1 or attrs["direction"] == "reverse" else s
            gates = given[t] + multiply(h, r[d], r_scale[d], r_zero[d]) + b[:4 * hidden] + b[4 * hidden:]
            i, o, f, g = np.split(gates, 4, 1)
            pi, po, pf = np.split(p, 3)
            c_new = sigmoid(f + pf * c) * c + sigmoid(i + pi * c) * np.tanh(g)
            h_new = sigmoid(o + po * c_new) * np.tanh(c_new)
            active = (t < lengths)[:, None]
            y[t, d] = np.where(active, h_new, 0)
            h, c = np.where(active, h_new, h), np.where(active, c_new, c)
        last_h[d], last_c[d] = h, c
    return [y.astype(F32), last_h.astype(F32), last_c.astype(F32)]


# ---- QLinear -----------------------------------------------------------------------------------------

def parameters(rng, name):
    """A scale, and a zero point or none."""
    shape = [1] if rng.random() < 0.1 else []
    return [scales(rng, shape), random_quantized(rng, name, shape) if rng.random() < 0.8 else None]


def real(x, scale, zero):
    return F32(np.ravel(scale)[0]) * (value(x) - (0 if zero is None else value(zero).reshape(()))).astype(F32)


def back(y, scale, zero, name):
    whole = np.rint(np.asarray(y, F32) / F32(np.ravel(scale)[0])) + (0 if zero is None else value(zero).reshape(()))
    return np.clip(whole, *RANGES[name]).astype(name)


def trimmed(inputs, most):
    return inputs[:-1] if inputs[-1] is None and len(inputs) == most else inputs


def binary_cases(rng):
    name = byte_types(rng)
    shape = random_shape(rng)
    a, b = broadcastable(rng, shape), shape
    if rng.random() < 0.5:
        a, b = b, a
    inputs = [random_quantized(rng, name, a), *parameters(rng, name), random_quantized(rng, name, b), *parameters(rng, name), *parameters(rng, name)]
    return dict(inputs=trimmed(inputs, 8), name=name)


for _op, _function in (("QLinearAdd", np.add), ("QLinearMul", np.multiply)):
    def _expected(inputs, name, function=_function, **_):
        a, b = real(*inputs[:3]), real(*inputs[3:6])
        return [back(function(a, b), inputs[6], inputs[7] if len(inputs) > 7 else None, name)]
    _expected.__module__ = __name__
    microsoft(_op, binary_cases)(_expected)


def unary_cases(rng, **more):
    name = byte_types(rng)
    inputs = [random_quantized(rng, name, more.pop("shape", None) or random_shape(rng, largest=9)), *parameters(rng, name), *parameters(rng, name)]
    return dict(inputs=trimmed(inputs, 5), name=name, **more)


def output_of(inputs):
    return inputs[3], inputs[4] if len(inputs) > 4 else None


@microsoft("QLinearLeakyRelu", lambda rng: unary_cases(rng, attrs={"alpha": 0.1} if rng.random() < 0.5 else {}))
def expect_leaky_relu(inputs, attrs, name, **_):
    x = real(*inputs[:3])
    return [back(np.where(x < 0, F32(attrs.get("alpha", 0.01)) * x, x), *output_of(inputs), name)]


def sigmoid_cases(rng):
    arguments = unary_cases(rng)
    arguments["inputs"][3] = np.array(1 / 256, F32)
    return arguments


@microsoft("QLinearSigmoid", sigmoid_cases)
def expect_sigmoid(inputs, name, **_):
    x = real(*inputs[:3]).astype(np.float64)
    return [back((1 / (1 + np.exp(-x))).astype(F32), *output_of(inputs), name)]


def softmax_cases(rng):
    name, shape, opset = byte_types(rng), random_shape(rng, most=4, least=1, largest=9), choice(rng, [11, 13])
    attrs = {"opset": opset}
    if rng.random() < 0.6:
        attrs["axis"] = int(rng.integers(-len(shape), len(shape)))
    inputs = [random_quantized(rng, name, shape), *parameters(rng, name), np.array(1 / 256, F32), random_quantized(rng, name, [])]
    inputs[1] = (inputs[1] * F32(0.1)).astype(F32)
    return dict(inputs=inputs, attrs=attrs, name=name)


@microsoft("QLinearSoftmax", softmax_cases)
def expect_softmax(inputs, attrs, name, **_):
    x = real(*inputs[:3]).astype(np.float64)
    axis = attrs.get("axis", -1)
    if attrs["opset"] < 13:
        axis = tuple(range(axis % x.ndim, x.ndim))
    power = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return [back(power / power.sum(axis, keepdims=True), *output_of(inputs), name)]


def where_cases(rng):
    name, shape = byte_types(rng), random_shape(rng)
    parts = [broadcastable(rng, shape), broadcastable(rng, shape), shape]
    zero = [random_quantized(rng, name, []) for _ in range(3)]
    return dict(inputs=[rng.random(parts[0]) < 0.5, random_quantized(rng, name, parts[1]), scales(rng, []), zero[0],
                        random_quantized(rng, name, parts[2]), scales(rng, []), zero[1], scales(rng, []), zero[2]], name=name)


@microsoft("QLinearWhere", where_cases)
def expect_where(inputs, name, **_):
    return [back(np.where(inputs[0], real(*inputs[1:4]), real(*inputs[4:7])), inputs[7], inputs[8], name)]


def concat_cases(rng):
    name, shape = byte_types(rng), random_shape(rng, least=1, most=4)
    axis = int(rng.integers(len(shape)))
    inputs = [scales(rng, []), random_quantized(rng, name, [])]
    for _ in range(int(rng.integers(1, 4))):
        own = [int(rng.integers(0, 5)) if i == axis else d for i, d in enumerate(shape)]
        inputs += [random_quantized(rng, name, own), scales(rng, []), random_quantized(rng, name, [])]
    return dict(inputs=inputs, attrs={"axis": axis - (len(shape) if rng.random() < 0.5 else 0)}, name=name)


@microsoft("QLinearConcat", concat_cases)
def expect_concat(inputs, attrs, name, **_):
    parts = [real(*inputs[i:i + 3]) for i in range(2, len(inputs), 3)]
    return [back(np.concatenate(parts, attrs["axis"]), *inputs[:2], name)]


def pool_cases(rng):
    rank, last = int(rng.integers(1, 4)), int(rng.integers(2))
    kernel = [int(rng.integers(1, 4)) for _ in range(rank)]
    attrs = {"kernel_shape": kernel, "count_include_pad": int(rng.integers(2)), "channels_last": last}
    if rng.random() < 0.5:
        attrs["strides"] = [int(rng.integers(1, 3)) for _ in range(rank)]
    if rng.random() < 0.5:
        attrs["pads"] = [int(rng.integers(0, k)) for k in kernel * 2]
    spatial = [int(rng.integers(k, k + 6)) for k in kernel]
    shape = [2, *spatial, 3] if last else [2, 3, *spatial]
    return unary_cases(rng, shape=shape, attrs=attrs)


@microsoft("QLinearAveragePool", pool_cases)
def expect_average_pool(inputs, attrs, name, **_):
    x = value(inputs[0]) - (0 if inputs[2] is None else value(inputs[2]).reshape(()))
    rank = x.ndim - 2
    x = np.moveaxis(x, -1, 1) if attrs["channels_last"] else x
    kernel, strides, pads = attrs["kernel_shape"], attrs.get("strides", [1] * rank), attrs.get("pads", [0] * (2 * rank))
    around = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])]
    count = np.pad(np.ones(x.shape, np.int64), around, constant_values=attrs["count_include_pad"])
    x = np.pad(x, around)
    out = [(s - k) // t + 1 for s, k, t in zip(x.shape[2:], kernel, strides)]
    total, number = (np.zeros([*x.shape[:2], *out]) for _ in range(2))
    for at in np.ndindex(*kernel):
        window = (slice(None), slice(None), *(slice(a, a + (o - 1) * t + 1, t) for a, o, t in zip(at, out, strides)))
        total, number = total + x[window], number + count[window]
    y = (total / np.maximum(number, 1) * np.float64(np.ravel(inputs[1])[0])).astype(F32)
    return [back(np.moveaxis(y, 1, -1) if attrs["channels_last"] else y, *output_of(inputs), name)]


def global_pool_cases(rng):
    last, shape = int(rng.integers(2)), random_shape(rng, least=3, most=5, largest=9, zeros=False)
    name = byte_types(rng)
    return dict(inputs=[random_quantized(rng, name, shape), scales(rng, []), random_quantized(rng, name, []), scales(rng, []),
                        random_quantized(rng, name, [])], attrs={"channels_last": last} if last or rng.random() < 0.5 else {}, name=name)


def mean(inputs, axes, keep):
    x = value(inputs[0]) - (0 if inputs[2] is None else value(inputs[2]).reshape(()))
    return (x.mean(axes, keepdims=keep) * np.float64(np.ravel(inputs[1])[0])).astype(F32)


@microsoft("QLinearGlobalAveragePool", global_pool_cases)
def expect_global_pool(inputs, attrs, name, **_):
    rank = inputs[0].ndim
    axes = tuple(range(1, rank - 1)) if attrs.get("channels_last") else tuple(range(2, rank))
    return [back(mean(inputs, axes, True), *output_of(inputs), name)]


def reduce_cases(rng):
    shape = random_shape(rng, least=1, most=6, zeros=False)
    axes = [int(a) for a in rng.permutation(len(shape))[:int(rng.integers(1, len(shape) + 1))]]
    axes = [a - len(shape) if rng.random() < 0.3 else a for a in axes]
    return unary_cases(rng, shape=shape, attrs={"axes": axes, "keepdims": int(rng.integers(2))})


@microsoft("QLinearReduceMean", reduce_cases)
def expect_reduce_mean(inputs, attrs, name, **_):
    return [back(mean(inputs, tuple(attrs["axes"]), bool(attrs["keepdims"])), *output_of(inputs), name)]


# ---- attention ---------------------------------------------------------------------------------------

def attention_cases(rng):
    batch, queries, width, heads, head = int(rng.integers(1, 3)), int(rng.integers(1, 9)), int(rng.integers(1, 20)), int(rng.integers(1, 4)), int(rng.integers(1, 9))
    hidden, past = heads * head, int(rng.integers(0, 4)) if rng.random() < 0.4 else None
    keys = queries + (past or 0)
    tx, tw = byte_types(rng), byte_types(rng)
    columns = choice(rng, [[], [3 * hidden]])
    mask = choice(rng, ["none", "length", "range", "keys", "full"])
    masks = {"none": None, "length": rng.integers(1, keys + 1, [batch]), "keys": rng.integers(0, 2, [batch, keys]),
             "range": np.concatenate([rng.integers(1, keys + 1, [batch]), np.zeros([batch])]), "full": rng.integers(0, 2, [batch, queries, keys])}
    inputs = [random_quantized(rng, tx, [batch, queries, width]), random_quantized(rng, tw, [width, 3 * hidden]),
              rng.normal(0, 1, [3 * hidden]).astype(F32), np.array(rng.uniform(0.001, 0.01), F32), random_scale(rng, "float", columns),
              None if masks[mask] is None else masks[mask].astype(np.int32), random_quantized(rng, tx, []), random_quantized(rng, tw, columns),
              None if past is None else rng.normal(0, 1, [2, batch, heads, past, head]).astype(F32)]
    # Queries and keys of a few units: a score of thousands would have its rounding in the exponent.
    largest = np.abs(product(inputs[0], inputs[6], inputs[1], inputs[7]) * np.float64(inputs[4])).max(initial=0)
    inputs[3] = np.array(rng.uniform(1, 4) / max(largest, 1e-3), F32)
    attrs = {"num_heads": heads}
    if rng.random() < 0.4:
        attrs["unidirectional"] = 1
    if head % 2 == 0 and rng.random() < 0.3:
        attrs["do_rotary"] = 1
    return dict(inputs=inputs, attrs=attrs, outputs=2, rtol=1e-4, atol=1e-4)


def turned(x, first):
    """Each element with the one half a head further on, by its position over 10000 to the power of 2 * pair / size."""
    half = x.shape[3] // 2
    angles = (first + np.arange(x.shape[2]))[:, None] * 10000.0 ** (-np.arange(half) / half)
    low, high = x[..., :half], x[..., half:]
    return np.concatenate([low * np.cos(angles) - high * np.sin(angles), low * np.sin(angles) + high * np.cos(angles)], 3)


@microsoft("QAttention", attention_cases)
def expect_attention(inputs, attrs, **_):
    x, w, bias, x_scale, w_scale, mask, x_zero, w_zero, past = inputs
    batch, queries, _ = x.shape
    heads, hidden = attrs["num_heads"], w.shape[1] // 3
    projected = product(x, x_zero, w, w_zero) * (np.float64(x_scale) * w_scale) + bias
    q, k, v = (part.reshape(batch, queries, heads, -1).transpose(0, 2, 1, 3) for part in np.split(projected, 3, 2))
    if "do_rotary" in attrs:
        q, k = (turned(part, 0 if past is None else past.shape[3]) for part in (q, k))
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    keys = k.shape[2]
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[3])
    hide = np.zeros([batch, 1, queries, keys], bool)
    if mask is not None and mask.ndim == 1:
        hide |= (np.arange(keys) >= mask[:batch, None])[:, None, None]
        if len(mask) == 2 * batch and len(mask) != batch:
            hide |= (np.arange(keys) < mask[batch:, None])[:, None, None]
    elif mask is not None and not (mask.ndim == 2 and mask.shape[1] == 1 and keys != 1):
        hide |= (mask <= 0)[:, None, None] if mask.ndim == 2 else (mask <= 0)[:, None]
    scores = scores.astype(F32) + np.where(hide, F32(-10000), F32(0))  # where all is hidden, float32 shows
    if attrs.get("unidirectional"):
        scores = np.where(np.arange(keys) > np.arange(queries)[:, None] + keys - queries, -np.inf, scores)
    power = np.exp(scores - scores.max(3, keepdims=True))
    y = (power / power.sum(3, keepdims=True)) @ v
    return [y.transpose(0, 2, 1, 3).reshape(batch, queries, hidden).astype(F32), np.stack([k, v]).astype(F32)]


# ---- bad input ---------------------------------------------------------------------------------------

X, U, W = np.zeros([2, 3], F32), np.zeros([2, 3], np.uint8), np.zeros([3, 4], np.int8)
S, Z, I = np.array(1, F32), np.array(0, np.uint8), np.array(0, np.int8)
refuses("QuantizeLinear", [X, S, (np.zeros([], np.uint8), "int2")], says="input 2")
refuses("DequantizeLinear", [X, S], says="input 0")
refuses("MatMulIntegerToFloat", [U, W, np.ones([2], F32), S], says="expected one scale")
refuses("MatMulIntegerToFloat", [U, W, S, S, Z, I, np.zeros([3], F32)], says="expected 4 values")
refuses("MatMulIntegerToFloat", [U, W, S], says="inputs")
refuses("DynamicQuantizeMatMul", [U, W, S], says="input 0")
refuses("DynamicQuantizeMatMul", [X, U, S], says="inner dimensions")
refuses("QGemm", [U, S, Z, W, S, I, np.zeros([3], np.int32)], says="does not broadcast")
refuses("QGemm", [U, S, Z, W, S, I, None, None, Z], says="needs its scale")
refuses("QGemm", [U[0], S, Z, W, S, I], says="input 0")
refuses("QLinearAdd", [U, S, Z, W, S, I, S], says="inputs 0 and 3")
refuses("QLinearAdd", [U, S, Z, np.zeros([4], np.uint8), S, Z, S], says="3 and 4")
refuses("QLinearMul", [U, np.ones([3], F32), Z, U, S, Z, S], says="expected one value")
refuses("QLinearConcat", [S, Z, U, S], {"axis": 0}, says="threes of tensor")
refuses("QLinearConcat", [S, Z, U, S, Z, np.zeros([3, 3], np.uint8), S, Z], {"axis": 1}, says="differ")
refuses("QLinearConcat", [S, Z, U, S, Z], {"axis": 2}, says="axis 2")
refuses("QLinearAveragePool", [np.zeros([1, 1, 3], np.uint8), S, Z, S, Z], says="kernel_shape")
refuses("QLinearGlobalAveragePool", [U, S, Z, S, Z], says="rank")
refuses("QLinearLeakyRelu", [X, S, Z, S], says="input 0")
refuses("QLinearSigmoid", [U, S, I, S], says="inputs 0 and 2")
refuses("QLinearSoftmax", [U, S, Z, S, Z], {"axis": 3, "opset": 13}, says="axis 3")
refuses("QLinearSoftmax", [U, S, Z, S, Z], {}, says="opset")
refuses("QLinearWhere", [U, U, S, Z, U, S, Z, S, Z], says="input 0")
refuses("QLinearReduceMean", [U, S, Z, S], {"axes": [5], "keepdims": 1}, says="axis 5")
NBITS = {"K": 16, "N": 2, "block_size": 16}
A, B, SCALES = np.zeros([3, 16], F32), np.zeros([2, 1, 8], np.uint8), np.ones([2, 1], F32)
refuses("MatMulNBits", [A, B, SCALES], dict(NBITS, bits=3), says="expected 2, 4 or 8")
refuses("MatMulNBits", [A, B, SCALES], dict(NBITS, block_size=24), says="power of two")
refuses("MatMulNBits", [A, B, SCALES], dict(NBITS, K=0), says="positive")
refuses("MatMulNBits", [A, B[:, :, :4], SCALES], NBITS, says="expected 16 elements")
refuses("MatMulNBits", [A[:, :8], B, SCALES], NBITS, says="expected 16 columns")
refuses("MatMulNBits", [A, B, SCALES, None, np.full([16], 7, np.int32)], NBITS, says="g_idx[0] is 7")
LSTM = [np.zeros([2, 1, 3], F32), np.zeros([1, 3, 8], np.int8), np.zeros([1, 2, 8], np.int8), *[None] * 5, np.ones([1], F32),
        np.zeros([1], np.int8), np.ones([1], F32), np.zeros([1], np.int8)]
refuses("DynamicQuantizeLSTM", LSTM, {"direction": "sideways", "hidden_size": 2}, outputs=3, says="direction")
refuses("DynamicQuantizeLSTM", LSTM, {"hidden_size": 3}, outputs=3, says="hidden_size is 3")
refuses("DynamicQuantizeLSTM", LSTM[:11], {"hidden_size": 2}, outputs=3, says="inputs")
refuses("DynamicQuantizeLSTM", [*LSTM[:8], np.ones([2], F32), *LSTM[9:]], {"hidden_size": 2}, outputs=3, says="input 8")
refuses("DynamicQuantizeLSTM", [*LSTM[:4], np.array([3], np.int32), *LSTM[5:]], {"hidden_size": 2}, outputs=3, says="sequence_lens")
TABLE = (np.zeros([4, 16], np.uint8), "int4")
refuses("GatherBlockQuantized", [TABLE, np.array([4]), np.ones([4, 1], F32)], {"block_size": 16}, says="index 4 is outside")
refuses("GatherBlockQuantized", [TABLE, np.array([0]), np.ones([4, 2], F32)], {"block_size": 16}, says="expected shape")
refuses("GatherBlockQuantized", [TABLE, np.array([0]), np.ones([4, 1], F32)], {"block_size": 15}, says="power of two")
refuses("GatherBlockQuantized", [TABLE, np.array([0]), np.ones([4, 1], F32)], {"block_size": 16, "gather_axis": 2}, says="axis 2")
ATTENTION = [np.zeros([1, 2, 3], np.uint8), np.zeros([3, 12], np.int8), np.zeros([12], F32), S, S]
BNB4 = {"K": 4, "N": 3, "block_size": 16, "quant_type": 1}
refuses("MatMulBnb4", [A[:, :4], np.zeros([6], np.uint8), np.ones([1], F32)], dict(BNB4, quant_type=2), says="0 (FP4) or 1 (NF4)")
refuses("MatMulBnb4", [A[:, :4], np.zeros([5], np.uint8), np.ones([1], F32)], BNB4, says="expected 6 elements")
refuses("MatMulBnb4", [A[:, :5], np.zeros([6], np.uint8), np.ones([1], F32)], BNB4, says="expected 4 columns")
refuses("QAttention", ATTENTION, {"num_heads": 3}, says="do not divide")
refuses("QAttention", ATTENTION, {"num_heads": 0}, says="num_heads")
refuses("QAttention", ATTENTION, {"num_heads": 4, "do_rotary": 1}, says="two halves")
refuses("QAttention", [*ATTENTION, np.zeros([3], np.int32)], {"num_heads": 2}, says="twice as many")
refuses("QAttention", [*ATTENTION[:2], np.zeros([9], F32), S, S], {"num_heads": 2}, says="expected shape")
