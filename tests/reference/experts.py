"""MoE and QMoE of com.microsoft, from ONNX Runtime's ContribOperators.md; what that leaves open (the softmax of the router, ties, which
weights count) is as its CPU kernels do it: contrib_against_ort.py asks them."""
import numpy as np

from harness import choice
from microsoft_quantized import microsoft, pack_rows, refuses
from quantized import F32, as_bfloat16, brain_bits, random_scale, value

ACTIVATIONS = ["relu", "gelu", "silu", "identity", "swiglu"]
TOLERANCE = {"float": dict(rtol=1e-4, atol=1e-4), "float16": dict(rtol=5e-3, atol=2e-2), "bfloat16": dict(rtol=2e-2, atol=1e-1)}


def sizes(rng, step):
    """Experts, those of a row, rows (2 or 3 dimensions with them), hidden and inner size."""
    experts = int(rng.integers(1, 7))
    lead = [int(rng.integers(0, 6))] if rng.random() < 0.5 else [int(rng.integers(1, 4)), int(rng.integers(1, 5))]
    hidden, inner = (int(rng.integers(1, 5)) * step for _ in range(2))
    return experts, int(rng.integers(1, experts + 1)), lead, hidden, inner


def random_attrs(rng, chosen):
    attrs = {"k": chosen, "activation_type": choice(rng, ACTIVATIONS)}
    if rng.random() < 0.5:
        attrs["normalize_routing_weights"] = 1
    if attrs["activation_type"] == "swiglu":
        attrs |= {"swiglu_fusion": choice(rng, [0, 1, 1, 1, 2]), "activation_alpha": 1.702, "activation_beta": 1.0}
        if rng.random() < 0.5:
            attrs["swiglu_limit"] = 0.7
    return attrs


def has_third(rng, attrs):
    if attrs["activation_type"] == "swiglu":
        return attrs["swiglu_fusion"] == 0
    return rng.random() < 0.3


def layers(attrs, third, hidden, inner):
    """(outputs, depth) of every layer."""
    first = 2 * inner if attrs.get("swiglu_fusion") else inner
    return [(first, hidden), (hidden, inner), *([(inner, hidden)] if third else [])]


def as_type(values, name):
    return (brain_bits(values.astype(F32)), name) if name == "bfloat16" else values.astype(np.float16 if name == "float16" else F32)


def random_float(rng, name, shape):
    return as_type(rng.normal(0, 1, shape), name)


def moe_cases(rng):
    name = choice(rng, ["float", "float", "float16", "bfloat16"])
    experts, chosen, lead, hidden, inner = sizes(rng, int(rng.integers(1, 12)))
    attrs = random_attrs(rng, chosen)
    shapes = layers(attrs, has_third(rng, attrs), hidden, inner)
    inputs = [random_float(rng, name, [*lead, hidden]), random_float(rng, name, [int(np.prod(lead)), experts])]
    for outputs, depth in shapes:
        inputs.append(as_type(rng.normal(0, 1, [experts, outputs, depth]) / np.sqrt(depth), name))
        inputs.append(random_float(rng, name, [experts, outputs]) if rng.random() < 0.5 else None)
    weights = [value(w).astype(np.float64) for w in inputs[2::2]]
    return dict(inputs=inputs, attrs=attrs, weights=weights, biases=inputs[3::2], name=name, **TOLERANCE[name])


def mixed(x, shares, weights, biases, attrs):
    """shares: [rows, experts], 0 for an expert that is not asked."""
    rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
    sum_ = np.zeros_like(rows)
    for expert in range(shares.shape[1]):
        out = [rows @ weights[0][expert].T, None, rows @ weights[2][expert].T if len(weights) > 2 else None]
        for layer in (0, 2):
            if out[layer] is not None and layer < len(biases) and biases[layer] is not None:
                out[layer] = out[layer] + value(biases[layer])[expert]
        y = activated(out[0], out[2], attrs) @ weights[1][expert].T
        if biases[1] is not None:
            y = y + value(biases[1])[expert]
        sum_ += shares[:, expert:expert + 1] * y
    return sum_.reshape(x.shape)


def activated(first, third, attrs):
    kind = attrs["activation_type"]
    if kind == "swiglu":
        fusion, limit = attrs["swiglu_fusion"], attrs.get("swiglu_limit", np.inf)
        half = first.shape[1] // 2
        gate, other = {0: (first, third), 1: (first[:, ::2], first[:, 1::2]), 2: (first[:, :half], first[:, half:])}[fusion]
        gate, other = np.minimum(gate, limit), np.clip(other, -limit, limit)
        return gate / (1 + np.exp(-attrs["activation_alpha"] * gate)) * (other + attrs["activation_beta"])
    y = {"relu": np.maximum(first, 0), "silu": first / (1 + np.exp(-first)), "identity": first,
         "gelu": 0.5 * first * (1 + np.tanh(np.sqrt(2 / np.pi) * (first + 0.044715 * first ** 3)))}[kind]
    return y if third is None else y * third


def shares_of(logits, attrs, of_chosen, given=None, least=0):
    logits = value(logits).astype(np.float64)
    shares = np.zeros_like(logits)
    for row, line in enumerate(logits):
        best = sorted(range(len(line)), key=lambda e: (line[e], e), reverse=True)[:attrs["k"]]
        powers = np.exp(line - line.max())
        weights = powers[best] / (powers[best] if of_chosen else powers).sum() if given is None else value(given)[row][best].astype(np.float64)
        if "normalize_routing_weights" in attrs:
            weights = weights / weights.sum() if weights.sum() else 0 * weights
        shares[row, best] = np.where(weights > least, weights, 0)
    return shares


def rounded(y, name):
    return y.astype(np.float16) if name == "float16" else as_bfloat16(y) if name == "bfloat16" else y.astype(F32)


@microsoft("MoE", moe_cases)
def expect_moe(inputs, attrs, weights, biases, name, **_):
    y = mixed(value(inputs[0]), shares_of(inputs[1], attrs, False), weights, biases, attrs)
    return [rounded(y, name)]


def qmoe_cases(rng):
    name = choice(rng, ["float", "float", "float16", "bfloat16"])
    bits, block = choice(rng, [2, 4, 8]), choice(rng, [0, 16, 32])
    pack = 8 // bits
    experts, chosen, lead, hidden, inner = sizes(rng, block or pack)
    attrs = random_attrs(rng, chosen) | {"expert_weight_bits": bits} | ({"block_size": block} if block else {})
    shapes = layers(attrs, has_third(rng, attrs), hidden, inner)
    packed, scales, biases, zeros, weights = [], [], [], [], []
    with_zeros = rng.random() < 0.5
    for outputs, depth in shapes:
        raw = rng.integers(0, 1 << bits, [experts, outputs, depth]).astype(np.uint8)
        blocks = depth // block if block else 1
        zero = np.full([experts, outputs, blocks], 1 << (bits - 1))
        if with_zeros:
            zero = rng.integers(0, 1 << bits, zero.shape)
            lines = zero.reshape(experts * outputs, blocks) if block else zero.reshape(experts, outputs)
            zeros.append(pack_rows(lines.astype(np.uint8), bits).reshape([experts, outputs, -1] if block else [experts, -1]))
        scale = (np.abs(random_scale(rng, "float", [experts, outputs, blocks])) / ((1 << bits) * depth)).astype(F32)
        if name == "float16":
            scale = scale.astype(np.float16)
        packed.append(pack_rows(raw.reshape(-1, depth), bits).reshape(experts, outputs, -1))
        scales.append(scale if block else scale[:, :, 0])
        biases.append(random_float(rng, name, [experts, outputs]) if rng.random() < 0.5 else None)
        spread = [np.repeat(t, depth // blocks, axis=2).astype(np.float64) for t in (zero, scale)]
        weights.append((raw - spread[0]) * spread[1])
    rows = int(np.prod(lead))
    absent = [None] * (3 - len(shapes))
    given = np.abs(rng.normal(0, 1, [rows, experts])).astype(F32) if name == "float" and rng.random() < 0.3 else None
    inputs = [random_float(rng, name, [*lead, hidden]), random_float(rng, name, [rows, experts])]
    for triple in zip(packed, scales, biases):
        inputs += triple
    inputs += absent * 3 + (zeros if with_zeros else [None] * len(shapes)) + absent + [given]
    return dict(inputs=inputs, attrs=attrs, weights=weights, biases=biases, given=given, name=name, **TOLERANCE[name])


@microsoft("QMoE", qmoe_cases)
def expect_qmoe(inputs, attrs, weights, biases, given, name, **_):
    shares = shares_of(inputs[1], attrs, True, given, 1e-8)
    return [rounded(mixed(value(inputs[0]), shares, weights, biases, attrs), name)]


X, ROUTER, FIRST, SECOND = (np.ones(s, F32) for s in ([2, 4], [2, 3], [3, 8, 4], [3, 4, 8]))
refuses("MoE", [X, ROUTER, FIRST, None, SECOND], {"k": 4}, says="there are 3 experts")
refuses("MoE", [X, ROUTER, FIRST, None, SECOND], {"k": 0}, says="at least 1")
refuses("MoE", [X, ROUTER, FIRST, None, SECOND], {"activation_type": "tanh"}, says="expected relu")
refuses("MoE", [X, ROUTER, FIRST, None, SECOND], {"activation_type": "swiglu"}, says="needs fc3")
refuses("MoE", [X, ROUTER, FIRST, None, SECOND[:, :, :5]], {}, says="input 2")
refuses("MoE", [X, ROUTER[:1], FIRST, None, SECOND], {}, says="input 1")
BYTES = np.ones([3, 8, 2], np.uint8), np.ones([3, 8], F32), np.ones([3, 4, 4], np.uint8), np.ones([3, 4], F32)
refuses("QMoE", [X, ROUTER, BYTES[0], BYTES[1], None, BYTES[2]], {}, says="have scales")
refuses("QMoE", [X, ROUTER, BYTES[0], BYTES[1], None, BYTES[2], BYTES[3]], {"expert_weight_bits": 3}, says="expected 2, 4 or 8")
refuses("QMoE", [X, ROUTER, BYTES[0], BYTES[1], None, BYTES[2], BYTES[3]], {"block_size": 16}, says="blocks of 16")
