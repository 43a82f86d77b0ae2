"""LinearAttention, its gate, and the causal convolution of com.microsoft, from the text of ContribOperators.md."""
import numpy as np

from contrib import contrib, refuses, some
from float_types import any_float, reals, values_of
from harness import choice

KINDS = ["float", "float", "float16", "bfloat16"]
LOOSE = {"float": 2e-5, "float16": 1e-2, "bfloat16": 6e-2}


def loose(kind):
    return {"rtol": LOOSE[kind], "atol": LOOSE[kind]}


def attention_cases(rng):
    kind, rule = any_float(rng, KINDS), choice(rng, ["linear", "gated", "delta", "gated_delta"])
    batch, steps, key, value = some(rng, 3), some(rng, 6), some(rng, 8), some(rng, 9)
    heads = [some(rng, 3), 0]
    heads[1] = heads[0] * some(rng, 3)
    kv_heads, q_heads = heads if rng.random() < 0.7 else heads[::-1]
    attrs = {"q_num_heads": q_heads, "kv_num_heads": kv_heads}
    if rule != "gated_delta" or rng.random() < 0.5:
        attrs["update_rule"] = rule
    if rng.random() < 0.4:
        attrs["scale"] = float(rng.uniform(0.2, 1))
    keys = rng.normal(0, 1, [batch, steps, kv_heads, key])
    keys = (keys / np.maximum(np.linalg.norm(keys, axis=3, keepdims=True), 1e-3)).reshape(batch, steps, -1)
    typed = keys.astype(np.float32) if kind == "float" else keys.astype(np.float16) if kind == "float16" else None
    inputs = [reals(rng, [batch, steps, q_heads * key], kind, -1, 1),
              typed if typed is not None else reals(rng, [batch, steps, kv_heads * key], kind, -0.3, 0.3),
              reals(rng, [batch, steps, kv_heads * value], kind, -1, 1),
              reals(rng, [batch, kv_heads, key, value], kind, -1, 1) if rng.random() < 0.5 else None, None, None]
    if "gated" in rule:
        inputs[4] = reals(rng, [batch, steps, kv_heads * choice(rng, [1, key])], kind, -1, 0)
    if "delta" in rule:
        inputs[5] = reals(rng, [batch, steps, choice(rng, [1, kv_heads])], kind, 0, 1)
    while inputs[-1] is None:
        inputs.pop()
    return {"inputs": inputs, "attrs": attrs, "outputs": choice(rng, [1, 2]), **loose(kind)}


@contrib("LinearAttention", attention_cases)
def linear_attention(inputs, attrs, outputs, **_):
    q, k, v, past, decay, beta = (None if t is None else values_of(t) for t in (*inputs, *[None] * 3)[:6])
    q_heads, kv_heads, rule = attrs["q_num_heads"], attrs["kv_num_heads"], attrs.get("update_rule", "gated_delta")
    batch, steps, _ = q.shape
    q, k, v = (t.reshape(batch, steps, n, -1) for t, n in ((q, q_heads), (k, kv_heads), (v, kv_heads)))
    state = np.zeros([batch, kv_heads, k.shape[3], v.shape[3]]) if past is None else past.astype(np.float64)
    scale = np.float32(attrs["scale"]) if "scale" in attrs else 1 / np.sqrt(q.shape[3])
    out = max(q_heads, kv_heads)
    y = np.zeros([batch, steps, out, v.shape[3]])
    for t in range(steps):
        if "gated" in rule:
            state = state * np.exp(decay[:, t].reshape(batch, kv_heads, -1))[..., None]
        add = v[:, t]
        if "delta" in rule:
            add = beta[:, t][..., None] * (add - np.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + np.einsum("bhk,bhv->bhkv", k[:, t], add)
        for h in range(out):
            y[:, t, h] = scale * np.einsum("bkv,bk->bv", state[:, h * kv_heads // out], q[:, t, h * q_heads // out])
    return [y.reshape(batch, steps, -1), state][:outputs]


def gate_cases(rng):
    kind = any_float(rng, KINDS)
    shape = [some(rng), some(rng), some(rng)]
    inputs = [reals(rng, shape, kind), reals(rng, shape[2:], "float"), reals(rng, shape[2:], "float", -2, 0)]
    if rng.random() < 0.6:
        inputs.append(reals(rng, shape, kind))
    return {"inputs": inputs, "outputs": choice(rng, [1, 2]) if len(inputs) > 3 else 1, **loose(kind)}


@contrib("LinearAttentionGate", gate_cases)
def linear_attention_gate(inputs, outputs, **_):
    a, bias, scale, *b = (values_of(t).astype(np.float64) for t in inputs)
    return [scale * np.log1p(np.exp(a + bias)), *(1 / (1 + np.exp(-t)) for t in b)][:outputs]


def convolution_cases(rng):
    kind = any_float(rng, KINDS)
    batch, channels, length, size = some(rng, 3), some(rng, 5), some(rng, 7), some(rng, 5)
    inputs = [reals(rng, [batch, channels, length], kind, -1, 1), reals(rng, [channels, 1, size], kind, -1, 1),
              reals(rng, [channels], kind) if rng.random() < 0.5 else None,
              reals(rng, [batch, channels, size - 1], kind, -1, 1) if rng.random() < 0.6 else None]
    while inputs[-1] is None:
        inputs.pop()
    attrs = {"activation": choice(rng, ["none", "silu", "swish"])} if rng.random() < 0.7 else {}
    return {"inputs": inputs, "attrs": attrs, "outputs": choice(rng, [1, 2]), **loose(kind)}


@contrib("CausalConvWithState", convolution_cases)
def causal_convolution(inputs, attrs, outputs, **_):
    x, w, bias, past = (None if t is None else values_of(t).astype(np.float64) for t in (*inputs, None, None)[:4])
    size, length = w.shape[2], x.shape[2]
    past = np.zeros([*x.shape[:2], size - 1]) if past is None else past
    whole = np.concatenate([past, x], 2)
    y = sum(whole[:, :, i:i + length] * w[:, 0, i][None, :, None] for i in range(size)) + (0 if bias is None else bias[None, :, None])
    if attrs.get("activation", "none") != "none":
        y = y / (1 + np.exp(-y))
    return [y, whole[:, :, length:]][:outputs]


F = np.float32
Q, HEADS = np.ones([1, 2, 4], F), {"q_num_heads": 2, "kv_num_heads": 2}
refuses("LinearAttention", [Q, Q, Q], {**HEADS, "update_rule": "other"}, says="expected linear")
refuses("LinearAttention", [Q, Q, Q], HEADS, says="needs decay")
refuses("LinearAttention", [Q, Q[..., :2], Q], {**HEADS, "update_rule": "linear"}, says="input 1")
refuses("LinearAttention", [Q, Q, Q], {"q_num_heads": 2, "kv_num_heads": 3, "update_rule": "linear"}, says="multiple of the other")
refuses("LinearAttentionGate", [Q, np.ones([3], F), np.ones([4], F)], says="input 1")
refuses("CausalConvWithState", [Q, np.ones([2, 1, 3], F), None, np.ones([1, 2, 1], F)], says="input 3")
refuses("CausalConvWithState", [Q, np.ones([2, 1, 3], F)], {"activation": "relu"}, says="silu or swish")
