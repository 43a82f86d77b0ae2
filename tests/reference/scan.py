"""Scan, from the pseudo-code of Operators.md and of opset 8 in Changelog.md."""
import numpy as np

from harness import choice, random_shape, reference, rejects
from model_file import TYPES, Graph, Node
from small_types import SMALL_INTEGERS, numbers

F32 = np.float32


def body(scans, kind, dims):
    """(s, a, b?) -> (s + a, (s + a) * b?, a)"""
    nodes = [Node("Add", ["s", "a"], ["next"]), Node("Mul", ["next", "b" if scans == 2 else "a"], ["product"]),
             Node("Identity", ["a"], ["copy"])]
    inputs = [(name, TYPES[kind], dims) for name in ["s", "a", "b"][:1 + scans]]
    return Graph(nodes, inputs, ["next", "product", "copy"])


def scan_cases(rng):
    opset = choice(rng, [9, 11, 16, 21, 25])
    kind, dtype = choice(rng, [("float", np.float32), ("double", np.float64), ("int64", np.int64)])
    element = random_shape(rng, most=4, largest=3)
    scans, steps = int(rng.integers(1, 3)), int(rng.integers(0, 6))
    rank = len(element) + 1

    def values(shape):
        return rng.integers(-3, 4, shape).astype(dtype)
    axes = [int(rng.integers(-rank if opset >= 11 else 0, rank)) for _ in range(scans)]
    out_axes = [int(rng.integers(-rank if opset >= 11 else 0, rank)) for _ in range(2)]
    directions, out_directions = ([int(rng.integers(2)) for _ in range(n)] for n in (scans, 2))
    inputs = [values(element)]
    for axis in axes:
        shape = list(element)
        shape.insert(axis % rank, steps)
        inputs.append(values(shape))
    attrs = {"body": body(scans, kind, choice(rng, [None, element])), "num_scan_inputs": scans}
    for name, value in (("scan_input_axes", axes), ("scan_output_axes", out_axes), ("scan_input_directions", directions),
                        ("scan_output_directions", out_directions)):
        if rng.random() < 0.7 or (name == "scan_input_axes"):
            attrs[name] = value
    return {"inputs": inputs, "attrs": attrs, "opset": opset, "outputs": 3, "steps": steps, "constant_inputs": []}


@reference("Scan", scan_cases)
def scan(inputs, attrs, steps, **_):
    scans = attrs["num_scan_inputs"]
    state = inputs[0].copy()
    products, copies = [], []
    for t in range(steps):
        elements = []
        for i in range(scans):
            at = steps - 1 - t if attrs.get("scan_input_directions", [0] * scans)[i] else t
            elements.append(np.take(inputs[1 + i], at, attrs["scan_input_axes"][i]))
        state = state + elements[0]
        products.append(state * elements[-1])
        copies.append(elements[0])
    results = [state]
    for i, list_of in enumerate((products, copies)):
        if attrs.get("scan_output_directions", [0, 0])[i]:
            list_of = list_of[::-1]
        axis = attrs.get("scan_output_axes", [0, 0])[i]
        if steps:
            results.append(np.stack(list_of, axis))
        else:
            shape = list(state.shape)
            shape.insert(axis % (len(shape) + 1), 0)
            results.append(np.zeros(shape, state.dtype))
    return results


def batched_cases(rng):
    element = random_shape(rng, most=3, largest=3)
    batch, steps = int(rng.integers(1, 4)), int(rng.integers(1, 5))

    def values(*shape):
        return rng.integers(-3, 4, shape).astype(F32)
    lengths = rng.integers(0, steps + 1, batch).astype(np.int64) if rng.random() < 0.6 else None
    attrs = {"body": body(1, "float", element), "num_scan_inputs": 1}
    if rng.random() < 0.5:
        attrs["directions"] = [int(rng.integers(2))]
    return {"inputs": [lengths, values(batch, *element), values(batch, steps, *element)], "attrs": attrs, "opset": 8, "outputs": 3,
            "constant_inputs": []}


@reference("Scan", batched_cases, name="Scan of opset 8")
def batched_scan(inputs, attrs, **_):
    lengths, initial, sequences = inputs
    state, products, copies = initial.copy(), np.zeros_like(sequences), np.zeros_like(sequences)
    for b in range(sequences.shape[0]):
        count = sequences.shape[1] if lengths is None else int(lengths[b])
        for t in range(count):
            x = sequences[b, count - 1 - t if attrs.get("directions", [0])[0] else t]
            state[b] = state[b] + x
            products[b, t], copies[b, t] = state[b] * x, x
    return [state, products, copies]


X = np.ones((2, 3), F32)
rejects("Scan", [X[0], X], {"body": body(1, "float", None), "num_scan_inputs": 0}, outputs=3, says="num_scan_inputs", opset=11)
rejects("Scan", [X[0], X], {"body": body(1, "float", None), "num_scan_inputs": 3}, outputs=3, says="num_scan_inputs", opset=11)
rejects("Scan", [X[0], X], {"body": body(2, "float", None), "num_scan_inputs": 1}, outputs=3, says="inputs of the body", opset=11)
rejects("Scan", [X[0], X], {"body": body(1, "float", None), "num_scan_inputs": 1}, outputs=2, says="outputs of the body", opset=11)
rejects("Scan", [X[0], X], {"body": body(1, "float", None), "num_scan_inputs": 1, "scan_input_axes": [2]}, outputs=3, says="axis", opset=11)
rejects("Scan", [X[0], X], {"body": body(1, "float", None), "num_scan_inputs": 1, "scan_input_axes": [0, 1]}, outputs=3,
        says="scan_input_axes", opset=11)
rejects("Scan", [X[0], X], {"body": body(1, "float", None), "num_scan_inputs": 1, "scan_input_directions": [2]}, outputs=3,
        says="scan_input_directions", opset=11)
rejects("Scan", [X[0], X, np.ones((3, 3), F32)], {"body": body(2, "float", None), "num_scan_inputs": 2}, outputs=3, says="2", opset=11)
rejects("Scan", [X[0], np.ones((4, 2, 3), F32)], {"body": body(1, "float", None), "num_scan_inputs": 1}, outputs=3, says="state", opset=11,
        name="Scan whose state grows")
rejects("Scan", [np.array([3], np.int64), X[:1], X[None]], {"body": body(1, "float", None), "num_scan_inputs": 1}, outputs=3,
        says="sequence_lens", opset=8)


def packed_loop_cases(rng):
    """Rows of types with parts of a byte, one behind the other: they may begin within a byte."""
    name = choice(rng, ["int4", "uint4", "int2", "uint2"])
    shape = random_shape(rng, most=3, largest=5)
    bits = rng.integers(0, 1 << SMALL_INTEGERS[name][0], shape).astype(np.uint8)
    nodes = [Node("Identity", ["go"], ["on"]), Node("Identity", ["v"], ["next"]), Node("Identity", ["v"], ["row"])]
    graph = Graph(nodes, [("turn", TYPES["int64"], []), ("go", TYPES["bool"], []), ("v", TYPES[name], shape)], ["on", "next", "row"])
    known = {"constant_inputs": [0, 1]} if rng.random() < 0.5 else {"constant_inputs": []}
    return {"inputs": [np.array(int(rng.integers(0, 6))), np.array(True), (bits, name)], "attrs": {"body": graph}, "outputs": 2, "opset": 25,
            **known}


@reference("Loop", packed_loop_cases, name="Loop over packed types")
def packed_loop(inputs, **_):
    count, (bits, name) = int(inputs[0]), inputs[2]
    values = numbers(bits, name).astype(np.int8 if SMALL_INTEGERS[name][1] else np.uint8)
    return [(values, name), (np.broadcast_to(values, [count, *values.shape]), name)]


def packed_scan_cases(rng):
    """Slices of types with parts of a byte, across any axis, read and written: they may begin within a byte."""
    name = choice(rng, ["int4", "uint4", "int2", "uint2"])
    element, steps = random_shape(rng, most=3, largest=5), int(rng.integers(0, 6))

    def values(shape):
        return rng.integers(0, 1 << SMALL_INTEGERS[name][0], shape).astype(np.uint8), name
    rank = len(element) + 1
    axes = {"scan_input_axes": [int(rng.integers(-rank, rank))], "scan_output_axes": [int(rng.integers(-rank, rank))],
            "scan_input_directions": [int(rng.integers(2))], "scan_output_directions": [int(rng.integers(2))]}
    scanned = list(element)
    scanned.insert(axes["scan_input_axes"][0] % rank, steps)
    nodes = [Node("Identity", ["s"], ["next"]), Node("Identity", ["a"], ["copy"])]
    dims = choice(rng, [None, element])
    graph = Graph(nodes, [("s", TYPES[name], dims), ("a", TYPES[name], dims)], ["next", "copy"])
    return {"inputs": [values(element), values(scanned)], "attrs": {"body": graph, "num_scan_inputs": 1, **axes}, "outputs": 2, "opset": 25,
            "constant_inputs": [1] if rng.random() < 0.3 else []}


@reference("Scan", packed_scan_cases, name="Scan over packed types")
def packed_scan(inputs, attrs, **_):
    state, scanned = ((numbers(bits, name).astype(np.int8 if SMALL_INTEGERS[name][1] else np.uint8)) for bits, name in inputs)
    moved = np.moveaxis(scanned, attrs["scan_input_axes"][0], 0)
    if attrs["scan_input_directions"] != attrs["scan_output_directions"]:
        moved = moved[::-1]
    name = inputs[0][1]
    return [(state, name), (np.moveaxis(moved, 0, attrs["scan_output_axes"][0]), name)]
