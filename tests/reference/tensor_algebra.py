"""Einsum, Det, and operators that pick or move slices, from the text of Operators.md."""
import numpy as np

from float_types import any_float, as_type, reals, tolerance, values_of
from harness import choice, random_shape, reference, rejects

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
MOVABLE = [*INTEGERS, np.float16, np.float32, np.float64, bool, object, np.complex64, np.complex128]

EQUATIONS = ["ij,jk->ik", "ij,jk", "ij,kj->ki", "bij,bjk->bik", "...ij,...jk->...ik", "i...j,j...->i...", "ii->i", "ii", "ij->ji",
             "ij->", "ij->j", "ij->i", "i,i->", "i,j->ij", "ij,ij->ij", "ij,ij->", "bhid,bhjd->bhij", "bhij,bhjd->bihd",
             "ab,bc,cd->ad", "ab,bc,cd,da->", "abc,cd,be->ade", "aab,bcc->ac", "...->...", "...i->...", "i,ij,j->", "ij,k->k",
             "ijk,l->li", "bij,kj->bki", " i j , j k -> i k ", "Ab,bA->bA", "ABa,aB->A", "bqhd,bkhd->bhqk", "ij,jk,kl", "a,b,c->cab",
             "abcd,cdef->abef", "abcd,dbef->acfe", "iij,jk->ik", "...,...->...", "ab,ab,ab->b"]


def einsum_cases(rng):
    equation = choice(rng, EQUATIONS)
    largest = choice(rng, [4, 4, 40]) if "a,b" not in equation and equation.count(",") < 2 else 5
    sizes = {label: int(rng.integers(1, largest + 1)) for label in equation if label.isalpha()}
    if rng.random() < 0.05 and sizes:
        sizes[choice(rng, sorted(sizes))] = 0
    hidden = random_shape(rng, most=2, largest=3, zeros=False)
    repeated = [label for label in sizes if any(term.count(label) > 1 for term in equation.split("->")[0].split(","))]
    shapes = []
    for term in equation.split("->")[0].replace(" ", "").split(","):
        shape = [sizes[label] for label in term.replace(".", "")]
        if rng.random() < 0.1:  # a size of one stands for any
            shape = [1 if rng.random() < 0.5 and label not in repeated else size for label, size in zip(term.replace(".", ""), shape)]
        if "..." in term:
            at = term.index(".")
            shape[at:at] = [1 if rng.random() < 0.2 else size for size in hidden]
        shapes.append(shape)
    if rng.random() < 0.7:
        kind = any_float(rng)
        inputs = [reals(rng, shape, kind) for shape in shapes]
        depth = 1 + np.prod([max(s, 1) for s in sizes.values()]) ** 0.5
        limits = tolerance(kind)
        limits = {"rtol": limits["rtol"], "atol": limits["atol"] * depth * 4}
    else:
        dtype = choice(rng, INTEGERS)
        inputs = [rng.integers(0, 100, shape).astype(dtype) for shape in shapes]
        limits = {}
    return {"inputs": inputs, "attrs": {"equation": equation}, "opset": 12, **limits}


@reference("Einsum", einsum_cases)
def einsum(inputs, attrs, **_):
    if isinstance(inputs[0], np.ndarray) and inputs[0].dtype.kind in "iu":
        return [np.einsum(attrs["equation"], *inputs, dtype=inputs[0].dtype)]
    return [np.einsum(attrs["equation"], *map(values_of, inputs))]


def det_cases(rng):
    kind = any_float(rng)
    size = int(rng.integers(0, 9))
    x = rng.uniform(-2, 2, [*random_shape(rng, most=4, largest=3), size, size])
    if size > 1 and rng.random() < 0.3:
        x[..., 0, :] = x[..., 1, :]
    limits = tolerance(kind)
    return {"inputs": [as_type(x, kind)[0]], "attrs": {}, "opset": choice(rng, [11, 22]), **limits}


@reference("Det", det_cases)
def det(inputs, **_):
    return [np.linalg.det(values_of(inputs[0]))]


def elements(rng, shape, dtype, largest=6):
    """Few different values, so that some are equal."""
    numbers = rng.integers(0, largest, shape)
    if dtype is object:
        return np.array([f"s{n}" * int(n) for n in np.asarray(numbers).ravel()], object).reshape(shape)
    if np.dtype(dtype).kind == "c":
        return (numbers + 1j * rng.integers(0, 2, shape)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        return (np.asarray(numbers) - 2.5).astype(dtype)
    return np.asarray(numbers).astype(dtype)


def unique_cases(rng):
    shape = random_shape(rng, least=0)
    if rng.random() < 0.2:
        shape = [int(rng.integers(0, 500))]
    attrs = {"sorted": choice(rng, [0, 1])}
    if shape and rng.random() < 0.5:
        attrs["axis"] = int(rng.integers(-len(shape), len(shape)))
    x = elements(rng, shape, choice(rng, MOVABLE), choice(rng, [3, 6, 100]))
    return {"inputs": [x], "attrs": attrs, "opset": 11, "outputs": choice(rng, [1, 4, [True, False, True], [True, True, False, True]])}


@reference("Unique", unique_cases)
def unique(inputs, attrs, outputs, **_):
    x, axis = inputs[0], attrs.get("axis")
    slices = [np.asarray(v, x.dtype) for v in x.ravel()] if axis is None else list(np.moveaxis(x, axis, 0))
    keys = [tuple((v.real, v.imag) if x.dtype.kind == "c" else (v,) for v in np.asarray(s, x.dtype).ravel()) for s in slices]
    order = sorted(set(keys)) if attrs["sorted"] else list(dict.fromkeys(keys))
    first = [keys.index(key) for key in order]
    if axis is None:
        y = x.ravel()[first] if first else x.ravel()[:0]
    else:
        y = np.take(x, np.array(first, np.int64), axis)
    results = [y, np.array(first, np.int64), np.array([order.index(key) for key in keys], np.int64),
               np.array([keys.count(key) for key in order], np.int64)]
    wanted = [True] * outputs if isinstance(outputs, int) else outputs
    return [result for result, present in zip(results, wanted) if present]


def compress_cases(rng):
    shape = random_shape(rng, least=1)
    attrs, length = {}, int(np.prod(shape))
    if rng.random() < 0.7:
        attrs["axis"] = int(rng.integers(-len(shape), len(shape)))
        length = shape[attrs["axis"]]
    condition = rng.random(int(rng.integers(0, length + 1))) < 0.5
    return {"inputs": [elements(rng, shape, choice(rng, MOVABLE)), condition], "attrs": attrs, "opset": choice(rng, [9, 11])}


@reference("Compress", compress_cases)
def compress(inputs, attrs, **_):
    x, condition = inputs
    kept = np.flatnonzero(condition)
    return [np.take(x.ravel() if "axis" not in attrs else x, kept, attrs.get("axis", 0))]


def reverse_cases(rng):
    shape = random_shape(rng, least=2)
    batch = choice(rng, [0, 1])
    lengths = rng.integers(0, shape[1 - batch] + 1, shape[batch]).astype(np.int64)
    return {"inputs": [elements(rng, shape, choice(rng, MOVABLE), 100), lengths],
            "attrs": {"batch_axis": batch, "time_axis": 1 - batch}, "opset": 10}


@reference("ReverseSequence", reverse_cases)
def reverse_sequence(inputs, attrs, **_):
    x, lengths = inputs
    y = x.copy()
    for b, length in enumerate(lengths):
        source, target = (x[b], y[b]) if attrs["batch_axis"] == 0 else (x[:, b], y[:, b])
        target[:length] = source[:length][::-1]
    return [y]


def scatter_cases(rng):
    shape = random_shape(rng, least=2, largest=6, zeros=False)
    axis = int(rng.integers(1, len(shape)))
    update = list(shape)
    update[axis] = int(rng.integers(0, shape[axis] + 1))
    mode = choice(rng, ["linear", "circular"])
    four_bits = rng.random() < 0.3
    dtype = choice(rng, MOVABLE)

    def make(dims):
        return (rng.integers(0, 16, dims).astype(np.uint8), "uint4") if four_bits else elements(rng, dims, dtype, 100)
    room = shape[axis] - update[axis]
    indices = rng.integers(0, room + 1, shape[0]) if mode == "linear" else rng.integers(-9, 20, shape[0])
    inputs = [make(shape), make(update)] + ([indices.astype(np.int64)] if rng.random() < 0.8 else [])
    return {"inputs": inputs, "attrs": {"axis": choice(rng, [axis, axis - len(shape)]), "mode": mode}, "opset": 24}


@reference("TensorScatter", scatter_cases)
def tensor_scatter(inputs, attrs, **_):
    cache, update = (t[0] if isinstance(t, tuple) else t for t in inputs[:2])
    indices = inputs[2] if len(inputs) > 2 else np.zeros(cache.shape[0], np.int64)
    axis = attrs["axis"] % cache.ndim
    y = cache.copy()
    for prefix in np.ndindex(cache.shape[:axis]):
        for i in range(update.shape[axis]):
            at = int(indices[prefix[0]]) + i
            y[(*prefix, at % cache.shape[axis] if attrs["mode"] == "circular" else at)] = update[(*prefix, i)]
    return [y]


def rotary_cases(rng):
    kind = any_float(rng, ["float", "float16", "bfloat16"])
    batch, heads, steps, half = (int(rng.integers(1, 5)) for _ in range(4))
    half = choice(rng, [half, 70])
    rotary = 2 * half
    head = rotary + (choice(rng, [0, 3, 4]) if rng.random() < 0.5 else 0)
    attrs = {"interleaved": choice(rng, [0, 1])}
    if head != rotary or rng.random() < 0.3:
        attrs["rotary_embedding_dim"] = rotary
    shape = [batch, heads, steps, head]
    if rng.random() < 0.5:
        shape = [batch, steps, heads * head]
        attrs["num_heads"] = heads
    if rng.random() < 0.5:
        places = int(rng.integers(1, 9))
        caches = [reals(rng, [places, half], kind) for _ in range(2)]
        positions = [rng.integers(0, places, [batch, steps]).astype(np.int64)]
    else:
        caches, positions = [reals(rng, [batch, steps, half], kind) for _ in range(2)], []
    return {"inputs": [reals(rng, shape, kind), *caches, *positions], "attrs": attrs, "opset": 23, **tolerance(kind)}


@reference("RotaryEmbedding", rotary_cases)
def rotary_embedding(inputs, attrs, **_):
    x, cos, sin = map(values_of, inputs[:3])
    flat = x.ndim == 3
    if flat:
        x = x.reshape(*x.shape[:2], attrs["num_heads"], -1).transpose(0, 2, 1, 3)
    if len(inputs) > 3:
        cos, sin = cos[inputs[3]], sin[inputs[3]]
    cos, sin = cos[:, None], sin[:, None]
    rotary = attrs.get("rotary_embedding_dim", 0) or x.shape[-1]
    even, odd = (slice(0, rotary, 2), slice(1, rotary, 2)) if attrs["interleaved"] else \
        (slice(0, rotary // 2), slice(rotary // 2, rotary))
    y = x.copy()
    y[..., even] = cos * x[..., even] - sin * x[..., odd]
    y[..., odd] = sin * x[..., even] + cos * x[..., odd]
    return [y.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1) if flat else y]


M = np.ones([2, 3], np.float32)
for text, says in [("ij,jk", "a term for each"), ("ij->ik", "no operand"), ("ij->ii", "twice"), ("i", "1 labels"), ("i.j", "character"),
                   ("ij->i...", "only the output"), ("......", "two ellipses"), ("ij->i->j", "character"), ("i1", "character")]:
    rejects("Einsum", [M], {"equation": text}, says=says)
rejects("Einsum", [M, M], {"equation": "ij,jk"}, says="size 2 here and 3 before")
rejects("Einsum", [M], says="'equation' is missing")
rejects("Det", [M], says="differ")
rejects("Det", [M[0]], says="rank")
rejects("Unique", [M], {"axis": 2}, says="axis 2")
rejects("Compress", [M, np.array([False, False, True])], {"axis": 0}, says="slice 2 of 2")
rejects("Compress", [M, np.ones(2, np.int32)], says="int32")
rejects("ReverseSequence", [M, np.array([1, 2, 3])], says="sequence_lens[2] is 3")
rejects("ReverseSequence", [M, np.array([1, 2, -1])], says="sequence_lens[2] is -1")
rejects("ReverseSequence", [M, np.array([1, 2])], says="differ")
rejects("ReverseSequence", [M, np.array([1, 2, 2])], {"time_axis": 1}, says="batch_axis and time_axis")
CACHE, UPDATE = np.zeros([1, 4, 2], np.float32), np.zeros([1, 2, 2], np.float32)
rejects("TensorScatter", [CACHE, UPDATE, np.array([3])], opset=24, says="write_indices[0] is 3")
rejects("TensorScatter", [CACHE, UPDATE, np.array([-1])], opset=24, says="write_indices[0] is -1")
rejects("TensorScatter", [CACHE, UPDATE], {"axis": 0}, opset=24, says="batch")
rejects("TensorScatter", [CACHE, UPDATE], {"mode": "square"}, opset=24, says="square")
rejects("TensorScatter", [UPDATE, CACHE], opset=24, says="does not fit")
ROW, TABLE = np.zeros([1, 2, 3, 4], np.float32), np.zeros([5, 2], np.float32)
rejects("RotaryEmbedding", [ROW, TABLE, TABLE, np.array([[0, 1, 5]])], opset=23, says="position 5 is outside [0, 5)")
rejects("RotaryEmbedding", [ROW, TABLE, TABLE, np.array([[0, 1, -1]])], opset=23, says="position -1")
rejects("RotaryEmbedding", [ROW[0], TABLE, TABLE, np.array([[0, 1, 2]])], opset=23, says="num_heads")
rejects("RotaryEmbedding", [ROW, TABLE, TABLE], opset=23, says="rank")
rejects("RotaryEmbedding", [ROW, TABLE, TABLE, np.array([[0, 1, 2]])], {"rotary_embedding_dim": 6}, opset=23, says="larger")
