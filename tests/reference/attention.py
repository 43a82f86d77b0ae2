"""Attention of opsets 23 to 25, from the text of Operators.md."""
import numpy as np

from float_types import any_float, reals, tolerance, values_of
from harness import choice, reference, rejects


def attention_cases(rng):
    opset = choice(rng, [23, 24, 25])
    kind = any_float(rng)
    value_kind = kind if rng.random() < 0.9 else any_float(rng)
    batch, kv_heads, group = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    q_heads = kv_heads * group
    queries, keys = int(rng.integers(1, 7)), int(rng.integers(1, 9))
    if rng.random() < 0.3:
        queries, keys = int(rng.integers(8, 80)), int(rng.integers(1, 90))
    head, value_head = int(rng.integers(1, 20)), int(rng.integers(1, 20))
    past = int(rng.integers(0, 5)) if rng.random() < 0.4 else None
    flat = rng.random() < 0.5
    total = keys + (past or 0)

    def tensor(heads, length, size, of):
        return reals(rng, [batch, length, heads * size] if flat else [batch, heads, length, size], of)
    attrs = {"q_num_heads": q_heads, "kv_num_heads": kv_heads} if flat else {}
    if rng.random() < 0.5:
        attrs["is_causal"] = 1
    if rng.random() < 0.3:
        attrs["scale"] = float(rng.uniform(0.05, 1))
    if rng.random() < 0.3:
        attrs["softcap"] = float(rng.uniform(0.5, 3))
    if rng.random() < 0.2:
        attrs["softmax_precision"] = choice(rng, [1, 11])
    if opset == 25 and rng.random() < 0.5:
        attrs["left_window_size"], attrs["right_window_size"] = int(rng.integers(-1, 6)), int(rng.integers(-1, 6))
    attrs["qk_matmul_output_mode"] = int(rng.integers(0, 4))
    inputs = [tensor(q_heads, queries, head, kind), tensor(kv_heads, keys, head, kind), tensor(kv_heads, keys, value_head, value_kind)]
    inputs += [None] * 4
    if rng.random() < 0.5:
        inputs[3] = random_mask(rng, [batch, q_heads, queries, total], kind, opset)
    if past is not None:
        inputs[4] = reals(rng, [batch, kv_heads, past, head], kind)
        inputs[5] = reals(rng, [batch, kv_heads, past, value_head], value_kind)
    elif opset >= 24 and rng.random() < 0.5:
        inputs[6] = rng.integers(0, keys + 1, batch).astype(np.int64)
    while inputs[-1] is None:
        inputs.pop()
    outputs = choice(rng, [1, 3, 4, [True, False, False, True]])
    worst = max((kind, value_kind), key=lambda k: tolerance(k)["rtol"])
    return {"inputs": inputs, "attrs": attrs, "opset": opset, "outputs": outputs, **tolerance(worst)}


def random_mask(rng, full, kind, opset):
    shape = list(full[int(rng.integers(0, 4)):])
    shape[:-1] = [1 if rng.random() < 0.3 else size for size in shape[:-1]]
    if opset >= 24 and shape[-1] > 3 and rng.random() < 0.4:
        shape[-1] -= 1
    if rng.random() < 0.5:
        return rng.random(shape) < 0.7
    mask = reals(rng, shape, kind)
    if isinstance(mask, np.ndarray) and rng.random() < 0.5:
        mask[rng.random(shape) < 0.3] = -np.inf
    return mask


def heads_first(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) if x.ndim == 3 else x


@reference("Attention", attention_cases)
def attention(inputs, attrs, outputs, **_):
    inputs = list(inputs) + [None] * (7 - len(inputs))
    flat = len(values_of(inputs[0]).shape) == 3
    q = heads_first(values_of(inputs[0]), attrs.get("q_num_heads"))
    k, v = (heads_first(values_of(t), attrs.get("kv_num_heads")) for t in inputs[1:3])
    mask, valid, past = inputs[3], inputs[6], 0
    if inputs[4] is not None:
        past = values_of(inputs[4]).shape[2]
        k, v = np.concatenate([values_of(inputs[4]), k], 2), np.concatenate([values_of(inputs[5]), v], 2)
    batch, heads, queries, total = *q.shape[:3], k.shape[2]
    group = heads // k.shape[1]
    scale = np.float32(attrs["scale"]) if "scale" in attrs else 1 / np.sqrt(q.shape[3])
    raw = np.einsum("bhqd,bhkd->bhqk", q, np.repeat(k, group, 1)) * scale
    cap = np.float32(attrs.get("softcap", 0))
    capped = cap * np.tanh(raw / cap) if cap > 0 else raw
    bias = np.zeros([batch, heads, queries, total])
    if mask is not None:
        values = np.where(mask, 0, -np.inf) if isinstance(mask, np.ndarray) and mask.dtype == bool else values_of(mask)
        if values.shape[-1] not in (1, total):
            values = np.concatenate([values, np.full([*values.shape[:-1], total - values.shape[-1]], -np.inf)], -1)
        bias = bias + values
    for b, i, j in np.ndindex(batch, queries, total):
        place = i + (int(valid[b]) - queries if valid is not None else past)
        left, right = attrs.get("left_window_size", -1), attrs.get("right_window_size", -1)
        hidden = valid is not None and j >= valid[b]
        hidden = hidden or (attrs.get("is_causal") and j > place)
        hidden = hidden or (left >= 0 and j < place - left) or (right >= 0 and j > place + right)
        if hidden:
            bias[b, :, i, j] = -np.inf
    scores = np.where(np.isneginf(bias), -np.inf, capped + bias)
    largest = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
    p = e / np.where(e.sum(-1, keepdims=True) == 0, 1, e.sum(-1, keepdims=True))
    y = np.einsum("bhqk,bhkd->bhqd", p, np.repeat(v, group, 1))
    if flat:
        y = y.transpose(0, 2, 1, 3).reshape(batch, queries, -1)
    results = [y, k, v, [raw, capped, scores, p][attrs["qk_matmul_output_mode"]]]
    wanted = [True] * outputs if isinstance(outputs, int) else outputs
    return [result for result, present in zip(results, wanted) if present]


Q, K = np.zeros([1, 4, 3, 8], np.float32), np.zeros([1, 2, 5, 8], np.float32)
rejects("Attention", [Q, K, K[..., :4, :]], opset=23, says="differ")
rejects("Attention", [Q, K[..., :7], K], opset=23, says="differ")
rejects("Attention", [Q[:, :3], K, K], opset=23, says="no multiple")
rejects("Attention", [Q[0], K[0], K[0]], opset=23, says="q_num_heads")
rejects("Attention", [Q[0], K[0], K[0]], {"q_num_heads": 3, "kv_num_heads": 1}, opset=23, says="divided")
rejects("Attention", [Q, K, K, np.zeros([3, 4], bool)], opset=23, says="broadcast")
rejects("Attention", [Q, K, K, np.zeros([3, 6], bool)], opset=24, says="broadcast")
rejects("Attention", [Q, K, K, None, K], opset=23, says="together")
rejects("Attention", [Q, K, K, None, K, K, np.array([1])], opset=24, says="nonpad_kv_seqlen")
rejects("Attention", [Q, K, K, None, None, None, np.array([6])], opset=24, says="nonpad_kv_seqlen[0] is 6")
rejects("Attention", [Q, K, K, None, None, None, np.array([-1])], opset=24, says="nonpad_kv_seqlen[0] is -1")
rejects("Attention", [Q, K, K, None, None, None, np.array([1])], opset=23, says="6 inputs")
rejects("Attention", [Q, K, K], {"qk_matmul_output_mode": 4}, opset=23, says="qk_matmul_output_mode")
rejects("Attention", [Q, K, K], {"softmax_precision": 7}, opset=23, says="softmax_precision")
rejects("Attention", [Q, K, K], {"left_window_size": 1}, opset=24, says="left_window_size")
rejects("Attention", [Q, K, K], {"left_window_size": -2}, opset=25, says="left_window_size")
