"""com.microsoft's attention, from the text of ContribOperators.md."""
import numpy as np

from contrib import contrib, refuses, rotate, some
from float_types import any_float, reals, tolerance, values_of
from harness import choice, reference

FILTER = np.float32(-10000)
LOWEST = {"float": float(np.finfo(np.float32).min), "float16": -65504.0, "bfloat16": -3.3895313892515355e38}
KINDS = ["float", "float", "float16", "bfloat16"]


def softmax(x, sink=None):
    largest = x.max(-1, keepdims=True)
    e = np.exp(x - largest)
    total = e.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink[None, :, None, None] - largest)
    return e / total


def split(x, heads):
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def join(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


def padding_bias(mask, batch, queries, total, past, filter_value):
    """What a mask of integers adds, [batch, 1, queries, total]."""
    bias = np.zeros([batch, 1, queries, total])
    if mask is None or (mask.ndim == 2 and mask.shape[1] == 1 and total != 1):
        return bias
    if mask.ndim == 1:
        keys = np.arange(total)
        hidden = keys >= mask[:batch, None]
        if mask.size == 2 * batch:
            hidden = (hidden * 1.0) + (keys < mask[batch:, None])
        return bias + (hidden * filter_value)[:, None, None]
    if mask.ndim == 2:
        return bias + ((mask <= 0) * filter_value)[:, None, None]
    if mask.ndim == 3:
        return bias + ((mask <= 0) * filter_value)[:, None]
    return bias + (mask[:, :, past:past + queries, :total] <= 0) * filter_value


def kind_of(tensor):
    return tensor[1] if isinstance(tensor, tuple) else {"float32": "float"}.get(tensor.dtype.name, tensor.dtype.name)


def hide_future(scores, past, kind):
    queries, total = scores.shape[2:]
    future = np.arange(total)[None] > past + np.arange(queries)[:, None]
    return np.where(future, LOWEST[kind], scores)


def random_padding(rng, batch, queries, total, starts=False, dummy=False):
    """At least the first key is shown: -10000 and a score together would have few digits left."""
    form = int(rng.integers(0, 4 + starts + 2 * dummy))
    if form == 0:
        return None

    def flags(*shape):
        mask = (rng.random(shape) < 0.7).astype(np.int32)
        mask[..., 0] = 1
        return mask
    if form == 1:
        return rng.integers(1, total + 1, batch).astype(np.int32)
    if form == 2:
        return flags(batch, total)
    if form == 3:
        return flags(batch, queries, total)
    if form == 4:
        ends = rng.integers(1, total + 1, batch)
        return np.concatenate([ends, rng.integers(0, ends)]).astype(np.int32)
    if form == 5:
        return np.ones([choice(rng, [1, batch]), 1], np.int32)
    most = total + some(rng, 3, 0)
    return flags(batch, 1, most, most)


def random_bias(rng, batch, heads, queries, total, kind):
    if rng.random() < 0.6:
        return None
    return reals(rng, [choice(rng, [1, batch]), choice(rng, [1, heads]), queries, total], kind)


def sizes(rng):
    queries = some(rng, 60, 9) if rng.random() < 0.3 else some(rng, 6)
    return some(rng, 3, int(rng.random() > 0.1)), some(rng, 3), queries, some(rng, 20)


def trimmed(inputs):
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def loose(kind, factor=5):
    t = tolerance(kind)
    return {"rtol": t["rtol"] * 2, "atol": t["atol"] * factor}


# ---- Attention ----------------------------------------------------------------------------------------


def attention_cases(rng):
    kind = any_float(rng, KINDS)
    batch, heads, queries, head = sizes(rng)
    width, value_width, hidden = heads * head, heads * head, some(rng, 30)
    attrs = {"num_heads": heads}
    past = some(rng, 5, 0) if rng.random() < 0.4 else None
    if past is None and rng.random() < 0.3:
        value_width = heads * some(rng, 20)
        attrs["qkv_hidden_sizes"] = [width, width, value_width]
    if rng.random() < 0.4:
        attrs["unidirectional"] = 1
    if rng.random() < 0.3:
        attrs["scale"] = float(rng.uniform(0.05, 1))
    if rng.random() < 0.3:
        attrs["mask_filter_value"] = -1000.0
    total = queries + (past or 0)
    columns = 2 * width + value_width
    mask = random_padding(rng, batch, queries, total, True, True)
    if mask is not None and "unidirectional" in attrs and (mask.ndim == 4 or mask.shape == (2 * batch,)):
        mask = None
    inputs = [reals(rng, [batch, queries, hidden], kind, -1, 1), reals(rng, [hidden, columns], kind, -0.5, 0.5),
              reals(rng, [columns], kind, -1, 1) if rng.random() < 0.7 else None, mask,
              None if past is None else reals(rng, [2, batch, heads, past, head], kind),
              random_bias(rng, batch, heads, queries, total, kind), None]
    outputs = 1 if past is None and rng.random() < 0.7 or value_width != width else 2
    if past is not None and rng.random() < 0.5:  # one buffer that is longer than what is in it
        attrs["past_present_share_buffer"] = 1
        most = total + some(rng, 4, 0)
        inputs[4] = reals(rng, [2, batch, heads, most, head], kind)
        inputs[6] = np.array([past], np.int32)
    if rng.random() < 0.3 and head > 1:
        rotated = 2 * int(rng.integers(1, head // 2 + 1))
        if rotated != head or rng.random() < 0.5:
            attrs["rotary_embedding_dim"] = rotated
        if rotated == head or "rotary_embedding_dim" in attrs:
            attrs["do_rotary"] = 1
    return {"inputs": trimmed(inputs), "attrs": attrs, "outputs": outputs, **loose(kind, 12 if kind != "float" else 5)}


def past_length(past, length):
    return values_of(past).shape[3] if length is None else int(length[0])


def turned(heads, first, rotated):
    """Each pair (i, i + rotated / 2) of a head by the angle position / 10000^(2 i / rotated): ONNX Runtime's CUDA kernels."""
    half = rotated // 2
    angles = (first + np.arange(heads.shape[2]))[:, None] / 10000.0 ** (2 * np.arange(half) / rotated)
    a, b = heads[..., :half], heads[..., half:rotated]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles), heads[..., rotated:]], -1)


@contrib("Attention", attention_cases)
def attention(inputs, attrs, outputs, **_):
    x, w, bias, mask, past, addend, length = (*inputs, *[None] * 5)[:7]
    heads = attrs["num_heads"]
    qkv = values_of(x) @ values_of(w) + (0 if bias is None else values_of(bias))
    widths = attrs.get("qkv_hidden_sizes", [qkv.shape[2] // 3] * 3)
    q, k, v = (split(part, heads) for part in np.split(qkv, np.cumsum(widths)[:2], -1))
    batch, _, queries, head = q.shape
    before, present = 0, None
    if attrs.get("do_rotary"):
        at = 0 if past is None else past_length(past, length)
        rotated = attrs.get("rotary_embedding_dim", head)
        q, k = turned(q, at, rotated), turned(k, at, rotated)
    if past is not None:
        cache = values_of(past)
        before = cache.shape[3] if length is None else int(length[0])
        new = np.stack([k, v])
        present = cache.copy() if length is not None else np.zeros([*cache.shape[:3], before + queries, head])
        present[:, :, :, :before] = cache[:, :, :, :before]
        present[:, :, :, before:before + queries] = new
        k, v = present[:, :, :, :before + queries]
    elif outputs == 2:
        present = np.stack([k, v])
    total = before + queries
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * (np.float32(attrs["scale"]) if "scale" in attrs else 1 / np.sqrt(head))
    scores = scores + padding_bias(mask, batch, queries, total, before, np.float32(attrs.get("mask_filter_value", FILTER)))
    scores = scores + (0 if addend is None else values_of(addend))
    if attrs.get("unidirectional"):
        scores = hide_future(scores, before, kind_of(x))
    return [join(softmax(scores) @ v), present][:outputs]


def projected_cases(rng):
    """Attention whose projection is done."""
    while True:
        case = attention_cases(rng)
        x, w, bias, *rest = (*case["inputs"], None)[:len(case["inputs"]) + (len(case["inputs"]) == 2)]
        if not isinstance(x, np.ndarray) or x.dtype != np.float32:
            continue
        qkv = (values_of(x) @ values_of(w) + (0 if bias is None else values_of(bias))).astype(np.float32)
        attrs = {name: value for name, value in case["attrs"].items() if name not in ("do_rotary", "rotary_embedding_dim")}
        return {**case, "inputs": trimmed([qkv, *rest]), "attrs": attrs, "domain": "ai.plimsoll"}


@reference("ProjectedAttention", projected_cases)
def projected_attention(inputs, attrs, outputs, **_):
    width = inputs[0].shape[2]
    return attention([inputs[0], np.eye(width, dtype=np.float32), None, *inputs[1:]], attrs, outputs)


# ---- MultiHeadAttention ----------------------------------------------------------------------------


def multi_head_cases(rng):
    kind = any_float(rng, KINDS)
    batch, heads, queries, head = sizes(rng)
    value_head, keys = head, queries
    form = choice(rng, ["apart", "apart", "apart", "heads", "kv", "qkv"])
    if form in ("apart", "heads", "kv") and rng.random() < 0.5:
        keys = some(rng, 60) if rng.random() < 0.3 else some(rng, 8)
    if form == "apart" and rng.random() < 0.3:
        value_head = some(rng, 20)
    past = some(rng, 5, 0) if form == "apart" and rng.random() < 0.5 else None
    shares = past is not None and rng.random() < 0.5
    attrs = {"num_heads": heads}
    if rng.random() < 0.3 and keys == queries:
        attrs["unidirectional"] = 1
    if rng.random() < 0.3:
        attrs["scale"] = float(rng.uniform(0.05, 1))
    if rng.random() < 0.3:
        attrs["mask_filter_value"] = -1000.0
    q = reals(rng, [batch, queries, heads * head], kind)
    k = v = None
    if form == "apart":
        k, v = reals(rng, [batch, keys, heads * head], kind), reals(rng, [batch, keys, heads * value_head], kind)
    elif form == "heads":
        k, v = (reals(rng, [batch, heads, keys, head], kind) for _ in range(2))
    elif form == "kv":
        k = reals(rng, [batch, keys, heads, 2, head], kind)
    else:
        q = reals(rng, [batch, queries, heads, 3, head], kind)
    total = keys + (past or 0)
    most = total + some(rng, 4, 0) if shares else past
    bias = reals(rng, [heads * (2 * head + value_head)], kind) if form != "kv" and rng.random() < 0.5 else None
    inputs = [q, k, v, bias, random_padding(rng, batch, queries, total), random_bias(rng, batch, heads, queries, total, kind),
              None if past is None else reals(rng, [batch, heads, most, head], kind),
              None if past is None else reals(rng, [batch, heads, most, value_head], kind),
              np.array([past], np.int32) if shares else None]
    outputs = choice(rng, [1, 3, 4]) if past is None or not shares else choice(rng, [1, 3, 3])
    return {"inputs": trimmed(inputs), "attrs": attrs, "outputs": outputs, **loose(kind)}


def heads_of(x, heads):
    return split(x, heads) if x.ndim == 3 else x


@contrib("MultiHeadAttention", multi_head_cases)
def multi_head_attention(inputs, attrs, outputs, **_):
    q, k, v, bias, mask, addend, past_k, past_v, length, beams = (*inputs, *[None] * 9)[:10]
    return multi_head(q, k, v, bias, mask, addend, past_k, past_v, length, beams, attrs, outputs)


def multi_head(q, k, v, bias, mask, addend, past_k, past_v, length, beams, attrs, outputs):
    heads, kind = attrs["num_heads"], kind_of(q)
    q, k, v, bias, addend = map(values_of, (q, k, v, bias, addend))
    is_ready = k is not None and k.ndim == 4
    if q.ndim == 5:
        q, k, v = (np.moveaxis(q[:, :, :, i], 2, 1) for i in range(3))
    elif k is None:
        q, k, v = (split(part, heads) for part in np.split(q, 3, -1))
    elif v is None:
        k, v = (np.moveaxis(k[:, :, :, i], 2, 1) for i in range(2))
    q, k, v = (heads_of(t, heads) for t in (q, k, v))
    if bias is not None:
        width = heads * q.shape[3]
        q = q + bias[:width].reshape(heads, 1, -1)
        if not is_ready:
            k, v = k + bias[width:2 * width].reshape(heads, 1, -1), v + bias[2 * width:].reshape(heads, 1, -1)
    batch, _, queries, head = q.shape
    before, present = 0, [k, v]
    if past_k is not None:
        caches = values_of(past_k), values_of(past_v)
        before = caches[0].shape[2] if length is None else int(length.reshape(-1)[0])
        present = [c.copy() if length is not None else np.zeros([*c.shape[:2], before + k.shape[2], c.shape[3]]) for c in caches]
        for cache, whole, new in zip(caches, present, (k, v)):
            whole[:, :, :before] = cache[:, :, :before]
            whole[:, :, before:before + new.shape[2]] = new
        total = before + k.shape[2]
        k, v = (whole[:, :, :total].copy() for whole in present)
        if beams is not None:
            width = beams.shape[1]
            for b, j in np.ndindex(batch, before):
                source = b // width * width + beams.reshape(batch, -1)[b, j]
                k[b, :, j], v[b, :, j] = caches[0][source, :, j], caches[1][source, :, j]
    total = k.shape[2]
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * (np.float32(attrs["scale"]) if "scale" in attrs else 1 / np.sqrt(head))
    scores = scores + padding_bias(mask, batch, queries, total, before, np.float32(attrs.get("mask_filter_value", FILTER)))
    scores = scores + (0 if addend is None else addend)
    if attrs.get("unidirectional"):
        scores = hide_future(scores, before, kind)
    return [join(softmax(scores) @ v), *present, scores][:outputs]


def decoder_masked_cases(rng):
    kind = any_float(rng, ["float", "float16"])
    beams = some(rng, 3)
    batch, heads, head = beams * some(rng, 2), some(rng, 3), some(rng, 20)
    attrs = {"num_heads": heads}
    if rng.random() < 0.3:
        attrs["scale"] = float(rng.uniform(0.05, 1))
    q = reals(rng, [batch, 1, heads * head], kind)
    bias = reals(rng, [3 * heads * head], kind) if rng.random() < 0.5 else None
    if rng.random() < 0.3:  # cross attention
        keys = some(rng, 9)
        k, v = (reals(rng, [batch, heads, keys, head], kind) for _ in range(2))
        mask = (rng.random([batch, keys]) < 0.7).astype(np.int32) if rng.random() < 0.5 else None
        if mask is not None:
            mask[:, 0] = 1
        return {"inputs": trimmed([q, k, v, mask, None, None, None, None, None, None, bias]), "attrs": attrs, "outputs": 1,
                **loose(kind)}
    attrs["past_present_share_buffer"] = 1
    past = some(rng, 8, 0)
    most = past + 1 + some(rng, 4, 0)
    k = v = None
    if rng.random() < 0.7:
        k, v = (reals(rng, [batch, 1, heads * head], kind) for _ in range(2))
    else:
        q = reals(rng, [batch, 1, 3 * heads * head], kind)
    mask = (rng.random([batch, past + 1]) < 0.7).astype(np.int32) if rng.random() < 0.5 else None
    if mask is not None:
        mask[:, -1] = 1
    inputs = [q, k, v, mask, random_bias(rng, batch, heads, 1, past + 1, kind), reals(rng, [batch, heads, most, head], kind),
              reals(rng, [batch, heads, most, head], kind), np.array([past], np.int32), None, None, bias]
    if rng.random() < 0.5:
        inputs[8] = np.array([beams], np.int32)
        inputs[9] = rng.integers(0, beams, [batch // beams, beams, most]).astype(np.int32)
    return {"inputs": trimmed(inputs), "attrs": attrs, "outputs": 3, **loose(kind)}


@contrib("DecoderMaskedMultiHeadAttention", decoder_masked_cases)
def decoder_masked_multi_head_attention(inputs, attrs, outputs, **_):
    q, k, v, mask, addend, past_k, past_v, length, _, beams, bias = (*inputs, *[None] * 10)[:11]
    return multi_head(q, k, v, bias, mask, addend, past_k, past_v, length, beams, attrs, outputs)


# ---- GroupQueryAttention ---------------------------------------------------------------------------


def group_query_cases(rng):
    kind = any_float(rng, KINDS)
    batch, kv_heads, group = some(rng, 3), some(rng, 2), some(rng, 3)
    heads, head = kv_heads * group, 16 * some(rng, 2)
    stage = choice(rng, ["prompt", "prompt", "token", "token", "more"])
    queries = 1 if stage == "token" else some(rng, 40, 9) if rng.random() < 0.3 else some(rng, 6)
    batch = 1 if stage == "more" else batch
    past = np.zeros(batch, int) if stage == "prompt" else rng.integers(0 if stage == "token" else 1, 9, batch)
    if stage == "prompt":
        lengths = rng.integers(1, queries + 1, batch)
        lengths[0] = queries
    else:
        lengths = past + queries
    total = int(lengths.max())
    has_past = stage != "prompt" or rng.random() < 0.4
    most = total + some(rng, 5, 0) if rng.random() < 0.5 else int(past.max())
    attrs = {"num_heads": heads, "kv_num_heads": kv_heads}
    for name, values in (("do_rotary", [0, 1]), ("rotary_interleaved", [0, 1]), ("smooth_softmax", [0, 0, 0, 1]),
                         ("local_window_size", [-1, -1, 1, 3])):
        if rng.random() < 0.6:
            attrs[name] = choice(rng, values)
    if rng.random() < 0.2:
        attrs["softcap"] = float(rng.uniform(0.5, 3))
    if rng.random() < 0.3:
        attrs["scale"] = float(rng.uniform(0.05, 1))
    if rng.random() < 0.1 and attrs.get("local_window_size", -1) == -1:
        attrs["causal"] = 0
    if rng.random() < 0.3:
        qkv = [reals(rng, [batch, queries, (heads + 2 * kv_heads) * head], kind), None, None]
    else:
        qkv = [reals(rng, [batch, queries, n * head], kind) for n in (heads, kv_heads, kv_heads)]
    cache = [reals(rng, [batch, kv_heads, most, head], kind) if has_past else None for _ in range(2)]
    inputs = [*qkv, *cache, (lengths - 1).astype(np.int32), np.array(total, np.int32)] + [None] * 9
    if attrs.get("do_rotary"):
        pairs = choice(rng, [8, head // 2])
        inputs[7], inputs[8] = (reals(rng, [total + 3, pairs], kind, -1, 1) for _ in range(2))
        if rng.random() < 0.4:
            inputs[9] = (np.arange(queries)[None] + (1 if stage == "prompt" else past[:, None])) * np.ones([batch, 1], np.int64)
    if rng.random() < 0.3:
        inputs[10] = reals(rng, [choice(rng, [1, batch]), choice(rng, [1, heads]), queries, total], kind)
    if rng.random() < 0.2:
        inputs[11] = reals(rng, [heads], kind)
    if rng.random() < 0.15:
        inputs[14], inputs[15] = (reals(rng, [head], kind) for _ in range(2))
    outputs = choice(rng, [1, 3, 3, 4])
    if outputs == 4:
        attrs["qk_output"] = choice(rng, [1, 2])
    constants = {"constant_inputs": choice(rng, [[], [6], [6, 7, 8]])}
    return {"inputs": trimmed(inputs), "attrs": attrs, "outputs": outputs, **constants, **loose(kind)}


def per_head_norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6)) * weight


@contrib("GroupQueryAttention", group_query_cases)
def group_query_attention(inputs, attrs, outputs, cached=lambda new, _: new, **_):
    """cached: what a cache makes of new rows; its number is 0 for keys, 1 for values."""
    (q, k, v, past_k, past_v, lengths, total, cosine, sine, positions, addend, sink, _, _, q_norm,
     k_norm) = (*inputs, *[None] * 9)[:16]
    heads, kv_heads, total = attrs["num_heads"], attrs["kv_num_heads"], int(total)
    q = values_of(q)
    if k is None:
        head = q.shape[2] // (heads + 2 * kv_heads)
        q, k, v = np.split(q, [heads * head, (heads + kv_heads) * head], -1)
    else:
        k, v = values_of(k), values_of(v)
    q, k, v = split(q, heads), split(k, kv_heads), split(v, kv_heads)
    batch, _, queries, head = q.shape
    prompt = queries == total
    lengths = lengths.astype(int) + 1
    before = np.zeros(batch, int) if prompt or past_k is None else lengths - queries
    if q_norm is not None:
        q, k = per_head_norm(q, values_of(q_norm)), per_head_norm(k, values_of(k_norm))
    if attrs.get("do_rotary"):
        places = before[:, None] + np.arange(queries)[None]
        if positions is not None:
            places = positions[0, 0] + np.arange(queries)[None] + np.zeros([batch, 1], int) if prompt else positions
        angles = values_of(cosine)[places][:, None], values_of(sine)[places][:, None]
        q, k = (rotate(t, *angles, attrs.get("rotary_interleaved", 0)) for t in (q, k))
    rows = max(total, 0 if past_k is None else values_of(past_k).shape[2])
    present = [np.zeros([batch, kv_heads, rows, head]) for _ in range(2)]
    for number, (whole, cache, new) in enumerate(zip(present, (past_k, past_v), (k, v))):
        for b in range(batch):
            if before[b]:
                whole[b, :, :before[b]] = values_of(cache)[b, :, :before[b]]
            whole[b, :, before[b]:before[b] + queries] = cached(new[b], number)
    y, shown = np.zeros([batch, heads, queries, head]), np.zeros([batch, heads, queries, total])
    for b, h, i in np.ndindex(batch, heads, queries):
        keys, values = (whole[b, h // (heads // kv_heads)] for whole in present)
        last = min(before[b] + i + 1, lengths[b]) if attrs.get("causal", 1) else lengths[b]
        window = attrs.get("local_window_size", -1)
        first = max(0, last - window) if window >= 0 else 0
        scale = np.float32(attrs["scale"]) if "scale" in attrs else 1 / np.sqrt(head)
        scores = keys[first:last] @ q[b, h, i] * scale
        if attrs.get("softcap", 0) > 0:
            scores = np.float32(attrs["softcap"]) * np.tanh(scores / np.float32(attrs["softcap"]))
        if addend is not None:
            bias = np.broadcast_to(values_of(addend), [batch, heads, queries, total])
            scores = scores + bias[b, h, i, first:last]
        e = np.exp(scores)
        rest = 0 if not attrs.get("smooth_softmax") else 1
        rest = np.exp(values_of(sink)[h]) if sink is not None else rest
        p = e / (e.sum() + rest)
        y[b, h, i] = p @ values[first:last]
        shown[b, h, i, first:last] = scores if attrs.get("qk_output") == 1 else p
    return [join(y), *present, shown][:outputs]


def quantized_rows(x, scale, bits):
    """[..., heads, rows, head] as integers; scale: [1], or [1, heads, 1, head]."""
    scale = scale.reshape(scale.shape[1:] if scale.ndim == 4 else scale.shape)
    return np.clip(np.rint(x.astype(np.float32) * (np.float32(1) / scale)), -(1 << bits - 1), (1 << bits - 1) - 1).astype(np.int8)


def stored(integers, bits):
    if bits == 8:
        return integers
    halves = (integers + 8).astype(np.uint8)
    return halves[..., ::2] | halves[..., 1::2] << 4


def numbers_of(cache, scale, bits):
    if bits == 4:
        cache = np.stack([cache & 15, cache >> 4], -1).reshape(*cache.shape[:-1], 2 * cache.shape[-1]).astype(np.int8) - 8
    return cache * scale.astype(np.float64)


def quantized_cache_cases(rng):
    """New rows are cached as they come, so that all sides round the same numbers."""
    case = group_query_cases(rng)
    inputs, attrs = (case["inputs"] + [None] * 9)[:16], case["attrs"]
    attrs.pop("do_rotary", None)
    inputs[7:10], inputs[14:] = [None] * 3, [None] * 2
    kv_heads, q = attrs["kv_num_heads"], values_of(inputs[0])
    head = q.shape[2] // (attrs["num_heads"] + (2 * kv_heads if inputs[1] is None else 0))
    bits, kind = choice(rng, [4, 8]), choice(rng, ["PER_TENSOR", "PER_CHANNEL"])
    attrs |= {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits}
    for at in (3, 4):
        inputs[at + 9] = rng.uniform(0.5, 1, [1] if kind == "PER_TENSOR" else [1, kv_heads, 1, head]).astype(np.float32) * np.float32(4 / (1 << bits))
        if inputs[at] is not None:
            inputs[at] = stored(quantized_rows(values_of(inputs[at]), inputs[at + 9], bits), bits)
    case.update(inputs=trimmed(inputs), outputs=choice(rng, [3, 3, 4]), constant_inputs=[6])
    if case["outputs"] == 4:
        attrs["qk_output"] = 1
    return case


@contrib("GroupQueryAttention", quantized_cache_cases, name="GroupQueryAttention, quantized cache")
def quantized_group_query_attention(inputs, attrs, outputs, **_):
    given, bits = (list(inputs) + [None] * 9)[:16], attrs["kv_cache_bit_width"]
    scales = given[12:14]
    for at in (3, 4):
        if given[at] is not None:
            given[at] = numbers_of(given[at], scales[at - 3], bits)
    answers = group_query_attention(given, attrs, outputs, cached=lambda new, number: quantized_rows(
        new, scales[number], bits) * scales[number].reshape(scales[number].shape[1:] if scales[number].ndim == 4 else [1]).astype(np.float64))
    batch, before = len(answers[0]), given[5].astype(int) + 1
    for number in (0, 1):
        rows = stored(np.rint(answers[1 + number] / scales[number]).astype(np.int8), bits)
        for b in range(batch):  # behind what is cached, bytes are 0
            new = answers[0].shape[1]
            first = 0 if new == int(given[6]) or given[3] is None else before[b] - new
            rows[b, :, first + new:] = 0
        answers[1 + number] = rows
    return answers


F = np.float32
Q, W = np.zeros([2, 3, 8], F), np.zeros([8, 24], F)
refuses("Attention", [Q, W], {"num_heads": 5}, says="5 heads")
refuses("Attention", [Q, W], says="num_heads")
refuses("Attention", [Q, W[:7]], {"num_heads": 2}, says="differ")
refuses("Attention", [Q, W, W[0, :23]], {"num_heads": 2}, says="differ")
refuses("Attention", [Q, W, None, np.zeros([5], np.int32)], {"num_heads": 2}, says="5 lengths")
refuses("Attention", [Q, W, None, np.zeros([2, 4], np.int32)], {"num_heads": 2}, says="expected 3")
refuses("Attention", [Q, W, None, np.zeros([2, 3], np.int64)], {"num_heads": 2}, says="type")
refuses("Attention", [Q, W], {"num_heads": 2, "qkv_hidden_sizes": [8, 8]}, says="3 numbers")
refuses("Attention", [Q, W], {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 10]}, says="expected 26")
refuses("Attention", [Q, W, None, None, np.zeros([2, 2, 2, 1, 5], F)], {"num_heads": 2}, outputs=2, says="expected 4")
refuses("Attention", [Q, W, None, None, np.zeros([2, 2, 2, 3, 4], F), None, np.array([1], np.int32)],
        {"num_heads": 2, "past_present_share_buffer": 1}, outputs=2, says="expected 0 to 0")
refuses("Attention", [Q, W], {"num_heads": 2, "do_rotary": 1, "rotary_embedding_dim": 6}, says="larger than a head of 4")
refuses("Attention", [Q, W], {"num_heads": 8, "do_rotary": 1}, says="halves")
refuses("Attention", [Q, W], {"num_heads": 2, "do_rotary": 1, "rotary_embedding_dim": 3}, says="even")
refuses("MultiHeadAttention", [Q, Q, Q], {"num_heads": 3}, says="3 heads")
refuses("MultiHeadAttention", [Q, Q, Q[:, :2]], {"num_heads": 2}, says="differ")
refuses("MultiHeadAttention", [Q, None, Q], {"num_heads": 2}, says="without a key")
refuses("MultiHeadAttention", [Q], {"num_heads": 2}, says="rank")
refuses("MultiHeadAttention", [Q, Q, Q, W[0, :23]], {"num_heads": 2}, says="expected 24")
refuses("MultiHeadAttention", [Q, Q, Q, None, np.zeros([2, 4], np.int32)], {"num_heads": 2}, says="expected 3")
refuses("MultiHeadAttention", [Q, Q, Q, None, None, np.zeros([3, 1, 3, 3], F)], {"num_heads": 2}, says="expected 2")
CACHE = np.zeros([2, 2, 3, 4], F)
refuses("MultiHeadAttention", [Q, Q, Q, None, None, None, CACHE], {"num_heads": 2}, says="together")
refuses("MultiHeadAttention", [Q, Q, Q, None, None, None, CACHE, CACHE, np.array([1], np.int32)], {"num_heads": 2},
        says="past_sequence_length is 1")
refuses("DecoderMaskedMultiHeadAttention", [Q, Q, Q], {"num_heads": 2}, says="one query")
T = Q[:, :1]
refuses("DecoderMaskedMultiHeadAttention", [T, T, T, None, None, CACHE, CACHE], {"num_heads": 2, "past_present_share_buffer": 1},
        outputs=3, says="past_sequence_length")
refuses("DecoderMaskedMultiHeadAttention",
        [T, T, T, None, None, CACHE, CACHE, np.array([2], np.int32), None, np.full([1, 2, 3], 2, np.int32)],
        {"num_heads": 2, "past_present_share_buffer": 1}, outputs=3, says="beam 2")
ONE, THREE = np.array([2, 2], np.int32), np.array(3, np.int32)
GROUP = {"num_heads": 2, "kv_num_heads": 1}
refuses("GroupQueryAttention", [Q, Q[..., :4], Q[..., :4], None, None, ONE, THREE], {"num_heads": 3, "kv_num_heads": 2},
        says="no multiple")
refuses("GroupQueryAttention", [Q, Q[..., :5], Q[..., :4], None, None, ONE, THREE], GROUP, says="expected 4")
refuses("GroupQueryAttention", [Q, Q[..., :4], None, None, None, ONE, THREE], GROUP, says="together")
refuses("GroupQueryAttention", [Q, Q[..., :4], Q[..., :4], None, None, ONE + 1, THREE], GROUP, says="seqlens_k[0] is 3")
refuses("GroupQueryAttention", [Q, Q[..., :4], Q[..., :4], None, None, ONE - 3, THREE], GROUP, says="seqlens_k[0] is -1")
refuses("GroupQueryAttention", [Q, Q[..., :4], Q[..., :4], None, None, ONE[:1], THREE], GROUP, says="2 elements")
refuses("GroupQueryAttention", [Q, Q[..., :4], Q[..., :4], None, None, ONE, np.array(0, np.int32)], GROUP, says="total_sequence_length")
refuses("GroupQueryAttention", [Q, Q[..., :4], Q[..., :4], None, None, ONE, THREE], {**GROUP, "do_rotary": 1}, says="cos_cache")
ANGLES = np.zeros([2, 2], F)
refuses("GroupQueryAttention", [Q, Q[..., :4], Q[..., :4], None, None, ONE, THREE, ANGLES, ANGLES], {**GROUP, "do_rotary": 1},
        says="outside")
refuses("GroupQueryAttention", [Q, Q[..., :4], Q[..., :4], None, None, ONE, THREE], {**GROUP, "k_quant_type": "PER_TENSOR"},
        says="k_quant_type")
