"""Writes ONNX models and tensors as protobuf, from numpy arrays, without the onnx package.

A tensor is a numpy array (strings: dtype object), or (bits, type) for element types that numpy does not know:
unsigned integers that hold one element's bits each, and the number or name of the ONNX type.
"""
import struct

import numpy as np

TYPES = {name: number for number, name in enumerate(
    ["undefined", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "double",
     "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
     "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2"])}
TYPE_NAMES = list(TYPES)
NUMPY_NAMES = {"float32": "float", "float64": "double", "object": "string"}
ELEMENT_BITS = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2, "bfloat16": 16}  # of what numpy lacks
VARINT, BYTES, FIXED32 = 0, 2, 5  # wire types


class Graph:
    """The body of a control flow operator, or a model's graph. Inputs: (name, type, dims or None); dims may be names."""

    def __init__(self, nodes, inputs, outputs, initializers=None, name="graph"):
        self.nodes, self.inputs, self.outputs = nodes, inputs, outputs
        self.initializers, self.name = initializers or {}, name


class Node:
    """Inputs and outputs are names; "" is an absent one."""

    def __init__(self, op, inputs, outputs, attrs=None, domain="", name=""):
        self.op, self.inputs, self.outputs = op, inputs, outputs
        self.attrs, self.domain, self.name = attrs or {}, domain, name


class Attr:
    """An attribute whose kind its Python value does not tell, such as an empty list: Attr("ints", [])."""

    def __init__(self, kind, value):
        self.kind, self.value = kind, value


class SparseTensor:
    """values: a tensor of rank 1, indices: int64, dims: the dense shape."""

    def __init__(self, values, indices, dims):
        self.values, self.indices, self.dims = values, indices, dims


class Sequence:
    """A sequence of tensors as a value; `element` is their type, needed where there are none."""

    def __init__(self, tensors, element=None):
        self.tensors, self.element = list(tensors), element

    def element_type(self):
        return type_number(self.element) if self.element is not None else tensor_type(self.tensors[0])


class Optional:
    """A tensor or Sequence as an optional value; None: it holds nothing, of type `element` (as encode_type takes it)."""

    def __init__(self, value, element=None):
        self.value, self.element = value, element

    def held_type(self):
        return self.element if self.value is None else value_type(self.value)


class Map:
    """Keys (int64 or strings) and values, tensors of one dimension."""

    def __init__(self, keys, values):
        self.keys, self.values = keys, values


def value_type(value):
    """What encode_type takes as `element` for a tensor, Sequence, Optional or Map whose shapes are not told."""
    if isinstance(value, Map):
        return ("map", tensor_type(value.keys), tensor_type(value.values))
    if isinstance(value, Sequence):
        return ("sequence", value.element_type(), None)
    if isinstance(value, Optional):
        return ("optional", value.held_type(), None)
    return tensor_type(value)


def type_number(value):
    return value if isinstance(value, int) else TYPES[value]


def tensor_type(tensor):
    """The number of a tensor's ONNX type."""
    if isinstance(tensor, tuple):
        return type_number(tensor[1])
    name = tensor.dtype.name
    return TYPES["string" if name.startswith("str") else NUMPY_NAMES.get(name, name)]


def tensor_shape(tensor):
    return tensor[0].shape if isinstance(tensor, tuple) else tensor.shape


def varint(value):
    value &= (1 << 64) - 1  # negative numbers are written in two's complement
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def integer_field(number, value):
    return varint(number << 3 | VARINT) + varint(int(value))


def bytes_field(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def float_field(number, value):
    return varint(number << 3 | FIXED32) + struct.pack("<f", value)


def pack_bits(bits, width):
    """Elements of 2 or 4 bits, the first one in the lowest bits of a byte."""
    per_byte = 8 // width
    flat = np.ravel(bits).astype(np.uint8) & ((1 << width) - 1)
    flat = np.concatenate([flat, np.zeros(-flat.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    return np.bitwise_or.reduce(flat << (np.arange(per_byte, dtype=np.uint8) * width), axis=1).astype(np.uint8).tobytes()


def raw_bytes(tensor):
    if isinstance(tensor, tuple):
        width = ELEMENT_BITS.get(TYPE_NAMES[tensor_type(tensor)], 8)
        if width < 8:
            return pack_bits(tensor[0], width)
        return np.asarray(tensor[0]).astype(f"<u{width // 8}").tobytes()
    return np.asarray(tensor, tensor.dtype.newbyteorder("<")).tobytes()


def encode_tensor(name, tensor):
    """TensorProto."""
    if not isinstance(tensor, tuple):
        tensor = np.asarray(tensor)
    parts = [*(integer_field(1, dim) for dim in tensor_shape(tensor)), integer_field(2, tensor_type(tensor)),
             bytes_field(8, name)]
    if tensor_type(tensor) == TYPES["string"]:
        parts += [bytes_field(6, text) for text in np.ravel(tensor)]
    else:
        parts.append(bytes_field(9, raw_bytes(tensor)))
    return b"".join(parts)


def encode_value(name, value):
    """TensorProto, SequenceProto, OptionalProto or MapProto."""
    if isinstance(value, Map):
        is_text = tensor_type(value.keys) == TYPES["string"]
        return b"".join([bytes_field(1, name), integer_field(2, tensor_type(value.keys)),
                         *(bytes_field(4, key) if is_text else integer_field(3, key) for key in value.keys),
                         bytes_field(5, encode_value("", Sequence([value.values])))])
    if isinstance(value, Sequence):
        return b"".join([bytes_field(1, name), integer_field(2, 1),
                         *(bytes_field(3, encode_tensor("", tensor)) for tensor in value.tensors)])
    if isinstance(value, Optional):
        if value.value is None:
            return bytes_field(1, name)
        is_sequence = isinstance(value.value, Sequence)
        return b"".join([bytes_field(1, name), integer_field(2, 3 if is_sequence else 1),
                         bytes_field(5 if is_sequence else 3, encode_value("", value.value))])
    return encode_tensor(name, value)


def encode_attribute(name, value):
    """AttributeProto."""
    kind = value.kind if isinstance(value, Attr) else attribute_kind(name, value)
    value = value.value if isinstance(value, Attr) else value
    number, field, encode, many = {
        "float": (1, 2, float_field, False), "int": (2, 3, integer_field, False), "string": (3, 4, bytes_field, False),
        "tensor": (4, 5, lambda f, v: bytes_field(f, encode_tensor("", v)), False),
        "graph": (5, 6, lambda f, v: bytes_field(f, encode_graph(v)), False),
        "floats": (6, 7, float_field, True), "ints": (7, 8, integer_field, True), "strings": (8, 9, bytes_field, True),
        "sparse_tensor": (11, 22, lambda f, v: bytes_field(f, encode_sparse(v)), False),
        "type": (13, 14, lambda f, v: bytes_field(f, encode_type(*v)), False),
    }[kind]
    values = value if many else [value]
    return b"".join([bytes_field(1, name), integer_field(20, number), *(encode(field, v) for v in values)])


def attribute_kind(name, value):
    if isinstance(value, list):
        if not value:
            raise ValueError(f"{name}: an empty list needs Attr(kind, [])")
        return attribute_kind(name, value[0]) + "s"
    kinds = [((bool, int, np.integer), "int"), ((float, np.floating), "float"), ((str, bytes), "string"),
             ((np.ndarray, tuple), "tensor"), (Graph, "graph"), (SparseTensor, "sparse_tensor")]
    return next(kind for types, kind in kinds if isinstance(value, types))


def encode_sparse(sparse):
    return b"".join([bytes_field(1, encode_tensor("", sparse.values)), bytes_field(2, encode_tensor("", sparse.indices)),
                     *(integer_field(3, dim) for dim in sparse.dims)])


def encode_type(element, dims):
    """TypeProto: of a tensor, or ("sequence", type) and ("optional", type) with `element` as (kind, element, dims)."""
    if isinstance(element, tuple):
        kind, *inner = element
        if kind == "map":
            return bytes_field(5, integer_field(1, inner[0]) + bytes_field(2, encode_type(inner[1], None)))
        return bytes_field({"sequence": 4, "optional": 9}[kind], bytes_field(1, encode_type(*inner)))
    tensor = integer_field(1, type_number(element))
    if dims is not None:
        encoded = [bytes_field(1, bytes_field(2, d) if isinstance(d, str) else integer_field(1, d)) for d in dims]
        tensor += bytes_field(2, b"".join(encoded))
    return bytes_field(1, tensor)


def encode_value_info(name, element=None, dims=None):
    return bytes_field(1, name) + (b"" if element is None else bytes_field(2, encode_type(element, dims)))


def encode_node(node):
    return b"".join([*(bytes_field(1, name) for name in node.inputs), *(bytes_field(2, name) for name in node.outputs),
                     bytes_field(3, node.name), bytes_field(4, node.op), bytes_field(7, node.domain),
                     *(bytes_field(5, encode_attribute(name, value)) for name, value in node.attrs.items())])


def encode_graph(graph):
    """Outputs are names, or (name, type, dims) like inputs."""
    outputs = [output if isinstance(output, tuple) else (output,) for output in graph.outputs]
    return b"".join([*(bytes_field(1, encode_node(node)) for node in graph.nodes), bytes_field(2, graph.name),
                     *(bytes_field(5, encode_tensor(name, tensor)) for name, tensor in graph.initializers.items()),
                     *(bytes_field(11, encode_value_info(*value)) for value in graph.inputs),
                     *(bytes_field(12, encode_value_info(*value)) for value in outputs)])


def encode_model(graph, opsets, ir_version=10):
    """ModelProto. opsets: {domain: version}."""
    imports = [bytes_field(8, bytes_field(1, domain) + integer_field(2, version)) for domain, version in opsets.items()]
    return b"".join([integer_field(1, ir_version), bytes_field(7, encode_graph(graph)), *imports])
