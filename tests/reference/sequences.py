"""Sequences and optionals, from the text of the ONNX specification."""
import numpy as np

from harness import choice, random_shape, reference, rejects
from model_file import Attr, Graph, Node, Optional, Sequence

NUMPY_TYPES = [np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16]


def random_tensor(rng, shape, dtype):
    if dtype is np.bool_:
        return rng.random(shape) < 0.5
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def random_sequence(rng, least=0, dtype=None, one_shape=False):
    dtype = dtype or choice(rng, NUMPY_TYPES)
    shape = random_shape(rng)
    count = int(rng.integers(least, 5))
    tensors = [random_tensor(rng, shape if one_shape else random_shape(rng), dtype) for _ in range(count)]
    return Sequence(tensors, np_name(dtype))


def np_name(dtype):
    return {"float32": "float", "float64": "double", "bool_": "bool"}.get(dtype.__name__, dtype.__name__)


def position(rng, least, most):
    """A position as int32 or int64, alone or as a list of one."""
    value = int(rng.integers(least, most + 1))
    return np.asarray(value if rng.random() < 0.5 else [value], choice(rng, [np.int32, np.int64]))


def index_of(tensor):
    return int(np.ravel(tensor)[0])


def maybe_construct(rng, arguments):
    """Half of the sequences are made in the model; with a position in the model too they need no run time list."""
    arguments["construct"] = bool(rng.random() < 0.5)
    if rng.random() < 0.5:
        arguments["constant_inputs"] = [i for i, value in enumerate(arguments["inputs"])
                                        if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind == "i"
                                        and value.ndim < 2 and i > 0]
    return arguments


def at_cases(rng):
    sequence = random_sequence(rng, least=1)
    n = len(sequence.tensors)
    return maybe_construct(rng, {"inputs": [sequence, position(rng, -n, n - 1)], "opset": choice(rng, [11, 18, 21])})


@reference("SequenceAt", at_cases)
def sequence_at(inputs, **_):
    return [inputs[0].tensors[index_of(inputs[1])]]


def length_cases(rng):
    return maybe_construct(rng, {"inputs": [random_sequence(rng)]})


@reference("SequenceLength", length_cases)
def sequence_length(inputs, **_):
    return [np.asarray(len(inputs[0].tensors), np.int64)]


def insert_cases(rng):
    sequence = random_sequence(rng)
    n = len(sequence.tensors)
    dtype = next(t for t in NUMPY_TYPES if np_name(t) == sequence.element)
    inputs = [sequence, random_tensor(rng, random_shape(rng), dtype)]
    if rng.random() < 0.7:
        inputs.append(position(rng, -n, n))
    return maybe_construct(rng, {"inputs": inputs, "opset": choice(rng, [11, 21])})


@reference("SequenceInsert", insert_cases)
def sequence_insert(inputs, **_):
    tensors = list(inputs[0].tensors)
    at = index_of(inputs[2]) if len(inputs) > 2 else len(tensors)
    tensors.insert(at if at >= 0 else at + len(tensors), inputs[1])
    return [tensors]


def erase_cases(rng):
    sequence = random_sequence(rng, least=1)
    n = len(sequence.tensors)
    inputs = [sequence] + ([position(rng, -n, n - 1)] if rng.random() < 0.7 else [])
    return maybe_construct(rng, {"inputs": inputs})


@reference("SequenceErase", erase_cases)
def sequence_erase(inputs, **_):
    tensors = list(inputs[0].tensors)
    del tensors[index_of(inputs[1]) if len(inputs) > 1 else -1]
    return [tensors]


def construct_cases(rng):
    return {"inputs": random_sequence(rng, least=1).tensors}


@reference("SequenceConstruct", construct_cases)
def sequence_construct(inputs, **_):
    return [list(inputs)]


def empty_cases(rng):
    return {"inputs": [], "attrs": {"dtype": int(rng.integers(1, 14))} if rng.random() < 0.7 else {}}


@reference("SequenceEmpty", empty_cases)
def sequence_empty(**_):
    return [[]]


def split_cases(rng):
    shape = random_shape(rng, least=1)
    axis = int(rng.integers(-len(shape), len(shape)))
    total = shape[axis]
    attrs = {"axis": axis} if axis or rng.random() < 0.5 else {}
    if rng.random() < 0.5:
        attrs["keepdims"] = int(rng.integers(0, 2))
    inputs = [random_tensor(rng, shape, choice(rng, NUMPY_TYPES))]
    index_type = choice(rng, [np.int32, np.int64])
    if rng.random() < 0.4:
        inputs.append(np.asarray(int(rng.integers(1, total + 2)), index_type))
    elif rng.random() < 0.6 and total > 0:
        cuts = np.sort(rng.integers(0, total + 1, int(rng.integers(0, 4))))
        inputs.append(np.diff(np.concatenate([[0], cuts, [total]])).astype(index_type))
    arguments = {"inputs": inputs, "attrs": attrs, "opset": choice(rng, [11, 13, 21])}
    arguments["constant_inputs"] = [1] if len(inputs) > 1 and rng.random() < 0.5 else []
    return arguments


@reference("SplitToSequence", split_cases)
def split_to_sequence(inputs, attrs, **_):
    data, axis = inputs[0], attrs.get("axis", 0)
    total = data.shape[axis]
    sizes = inputs[1] if len(inputs) > 1 else np.asarray(1)
    if sizes.ndim == 0:
        ends = list(range(int(sizes), total, int(sizes))) + ([total] if total else [])
    else:
        ends = list(np.cumsum(sizes))
    begins = [0] + ends[:-1]
    parts = [np.take(data, range(b, e), axis) for b, e in zip(begins, ends)]
    if len(inputs) == 1 and attrs.get("keepdims", 1) == 0:
        parts = [np.squeeze(part, axis) for part in parts]
    return [parts]


def concat_cases(rng):
    dtype, shape = choice(rng, NUMPY_TYPES), random_shape(rng, least=1, most=5)
    stack = bool(rng.random() < 0.5)
    rank = len(shape) + stack
    axis = int(rng.integers(-rank, rank))
    tensors = []
    for _ in range(int(rng.integers(1, 5))):
        own = list(shape)
        if not stack:
            own[axis] = int(rng.integers(0, 4))
        tensors.append(random_tensor(rng, own, dtype))
    attrs = {"axis": axis, **({"new_axis": int(stack)} if stack or rng.random() < 0.5 else {})}
    return maybe_construct(rng, {"inputs": [Sequence(tensors)], "attrs": attrs, "opset": choice(rng, [11, 13, 21])})


@reference("ConcatFromSequence", concat_cases)
def concat_from_sequence(inputs, attrs, **_):
    join = np.stack if attrs.get("new_axis", 0) else np.concatenate
    return [join(inputs[0].tensors, axis=attrs["axis"])]


def map_cases(rng):
    """The body adds its first two inputs, or negates the only one, and gives the shape of the first too."""
    sequence = random_sequence(rng, dtype=np.float32)
    n = len(sequence.tensors)
    others = choice(rng, ["none", "tensor", "sequence"])
    inputs = [sequence]
    if others == "tensor":
        inputs.append(np.asarray([rng.standard_normal()], np.float32))
    elif others == "sequence":
        inputs.append(Sequence([random_tensor(rng, t.shape, np.float32) for t in sequence.tensors], "float"))
    names = [f"in{i}" for i in range(len(inputs))]
    work = Node("Neg", names, ["out"]) if others == "none" else Node("Add", names, ["out"])
    body = Graph([work, Node("Shape", names[:1], ["shape"])], [(name, "float", None) for name in names], ["out", "shape"])
    return maybe_construct(rng, {"inputs": inputs, "attrs": {"body": body}, "outputs": 2, "opset": 17, "count": n})


@reference("SequenceMap", map_cases)
def sequence_map(inputs, count, **_):
    found = []
    for i in range(count):
        first = inputs[0].tensors[i]
        if len(inputs) == 1:
            found.append(-first)
        else:
            found.append(first + (inputs[1].tensors[i] if isinstance(inputs[1], Sequence) else inputs[1]))
    return [found, [np.asarray(t.shape, np.int64) for t in inputs[0].tensors]]


def random_held(rng):
    return random_sequence(rng, least=1) if rng.random() < 0.5 else random_tensor(rng, random_shape(rng), np.float32)


def optional_cases(rng):
    if rng.random() < 0.3:
        element = ("sequence", "float", None) if rng.random() < 0.5 else "float"
        return {"inputs": [], "attrs": {"type": Attr("type", (element, None))}, "opset": 15}
    return maybe_construct(rng, {"inputs": [random_held(rng)], "opset": choice(rng, [15, 18])})


def plain(value):
    return value.tensors if isinstance(value, Sequence) else value


@reference("Optional", optional_cases)
def optional(inputs, **_):
    return [plain(inputs[0]) if inputs else None]


def has_cases(rng):
    held = random_held(rng)
    kind = choice(rng, ["optional", "empty", "held", "absent"])
    value = {"optional": Optional(held), "held": held, "absent": None,
             "empty": Optional(None, choice(rng, ["float", ("sequence", "int64", None)]))}[kind]
    inputs = [] if kind == "absent" and rng.random() < 0.5 else [value]
    return maybe_construct(rng, {"inputs": inputs, "opset": 15 if kind in ("optional", "empty") and rng.random() < 0.5 else 18})


@reference("OptionalHasElement", has_cases)
def optional_has_element(inputs, **_):
    value = inputs[0] if inputs else None
    return [np.asarray(value is not None and not (isinstance(value, Optional) and value.value is None))]


def get_cases(rng):
    held = random_held(rng)
    wrapped = bool(rng.random() < 0.5)
    return maybe_construct(rng, {"inputs": [Optional(held) if wrapped else held], "opset": 15 if wrapped and rng.random() < 0.5 else 18})


@reference("OptionalGetElement", get_cases)
def optional_get_element(inputs, **_):
    value = inputs[0].value if isinstance(inputs[0], Optional) else inputs[0]
    return [plain(value)]


def identity_cases(rng):
    held = random_held(rng)
    return maybe_construct(rng, {"inputs": [choice(rng, [held, Optional(held), Optional(None, "float")])], "opset": 16})


@reference("Identity", identity_cases, name="Identity of sequences and optionals")
def identity(inputs, **_):
    value = inputs[0].value if isinstance(inputs[0], Optional) else inputs[0]
    return [plain(value)]


A, B = np.ones((2, 3), np.float32), np.ones((2, 2), np.float32)
TWO = Sequence([A, B])
POSITION = {v: np.asarray(v, np.int64) for v in (-3, 2, 3)}
for construct in (False, True):
    for constant in ((), (1,)):
        at = {"construct": construct, "constant_inputs": constant}
        rejects("SequenceAt", [TWO, POSITION[2]], says="expected a position from -2 to 1 in a sequence of 2, found 2", **at)
        rejects("SequenceAt", [TWO, POSITION[-3]], says="found -3", **at)
        rejects("SequenceErase", [TWO, POSITION[2]], says="expected a position from -2 to 1", **at)
        rejects("SequenceInsert", [TWO, A, POSITION[3]], says="expected a position from -2 to 2", construct=construct,
                constant_inputs=(2,) if constant else ())
    rejects("ConcatFromSequence", [TWO], {"axis": 0}, says="3", construct=construct)
    rejects("ConcatFromSequence", [TWO], {"axis": 2}, says="axis 2 is outside", construct=construct)
    rejects("ConcatFromSequence", [TWO], {"axis": 0, "new_axis": 2}, says="new_axis", construct=construct)
    rejects("ConcatFromSequence", [TWO], {}, says="axis", construct=construct)
    rejects("SequenceInsert", [TWO, np.ones(2, np.int64)], says="expected float", construct=construct)
    rejects("SequenceAt", [TWO, np.asarray([0, 1], np.int64)], says="position", construct=construct)
    rejects("SequenceAt", [TWO, np.asarray(0.5, np.float32)], says="type float is not allowed", construct=construct)
    rejects("Relu", [TWO], says="expected a tensor, found sequence(float", construct=construct)
rejects("SequenceErase", [Sequence([], "float")], says="empty")
rejects("ConcatFromSequence", [Sequence([], "float")], {"axis": 0}, says="empty")
rejects("SequenceAt", [A, POSITION[2]], says="expected a sequence, found float")
rejects("SequenceLength", [A], says="expected a sequence")
rejects("SequenceConstruct", [A, np.ones(2, np.int64)], says="one type")
rejects("SequenceConstruct", [], says="inputs")
rejects("SequenceEmpty", [], {"dtype": 77}, says="dtype")
rejects("SplitToSequence", [A, np.asarray([1, 2], np.int64)], says="add up to 2")
rejects("SplitToSequence", [A, np.asarray([3, -1], np.int64)], says="-1")
rejects("SplitToSequence", [A, np.asarray(0, np.int64)], says="above 0")
rejects("SplitToSequence", [A, np.asarray(0, np.int64)], says="above 0", constant_inputs=(1,))
rejects("SplitToSequence", [A, np.ones((1, 2), np.int64)], says="rank")
rejects("SplitToSequence", [A], {"axis": 2}, says="axis 2 is outside")
rejects("SplitToSequence", [A], {"keepdims": 3}, says="keepdims")
rejects("SplitToSequence", [np.float32(1.0)], says="axis 0 is outside")
rejects("Optional", [], says="neither", opset=15)
rejects("OptionalGetElement", [Optional(None, "float")], says="expected an optional with a value", opset=15)
rejects("OptionalGetElement", [A], says="expected an optional", opset=15)
rejects("OptionalHasElement", [A], says="expected an optional", opset=15)
BODY = Graph([Node("Add", ["a", "b"], ["c"])], [("a", "float", None), ("b", "float", None)], ["c"])
rejects("SequenceMap", [TWO], {"body": BODY}, says="expected 1 inputs of the body, found 2", opset=17)
rejects("SequenceMap", [TWO, Sequence([A])], {"body": BODY}, says="one length", opset=17)
rejects("SequenceMap", [A, A], {"body": BODY}, says="expected a sequence", opset=17)
