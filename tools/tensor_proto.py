"""Writes an array as an ONNX TensorProto: just the four fields that test data needs."""
import numpy as np

# TensorProto.DataType of onnx.proto
DATA_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
              "float16": 10, "float64": 11, "uint32": 12, "uint64": 13}
DIMS, DATA_TYPE, NAME, RAW_DATA = 1, 2, 8, 9  # field numbers of TensorProto
VARINT, BYTES = 0, 2  # wire types


def varint(value):
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def integer_field(number, value):
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number, value):
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def encode(name, array):
    # The specification wants little-endian raw data.
    raw = np.asarray(array, array.dtype.newbyteorder("<")).tobytes()
    return b"".join([*(integer_field(DIMS, dim) for dim in array.shape),
                     integer_field(DATA_TYPE, DATA_TYPES[array.dtype.name]),
                     bytes_field(NAME, name.encode()),
                     bytes_field(RAW_DATA, raw)])
