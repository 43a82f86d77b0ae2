"""Plain data as bytes: what may cross from a process that is not trusted.

A pickle executes code when it is read; this cannot. None, bool, int, float, complex, str, bytes, list, tuple, set,
dict, numpy arrays and numbers (by their bytes, never objects), and torch tensors, which arrive as numpy arrays.
"""
from __future__ import annotations

import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Tuple

MAX_DEPTH = 200
MOST_OF_A_HASH = 100


class NotPlain(TypeError):
    """A value that plain data cannot hold."""


class Malformed(ValueError):
    """Bytes that no encoder of ours wrote."""


class _Parts(list):  # type: ignore[type-arg]
    """What is joined in the end; `outgoing` takes large arrays out of it."""

    outgoing: Any = None


def encode(value: Any, outgoing: Any = None) -> bytes:
    """`outgoing`: a _shared.Outgoing for large arrays, which decode then needs the buffers of."""
    parts = _Parts()
    parts.outgoing = outgoing
    _encode(value, parts, 0)
    return b"".join(parts)


def _sized(tag: bytes, data: bytes, parts: List[bytes]) -> None:
    parts.append(tag + struct.pack("<Q", len(data)))
    parts.append(data)


def _encode(value: Any, parts: List[bytes], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise NotPlain(f"nested deeper than {MAX_DEPTH} levels")
    kind = type(value)
    if value is None:
        parts.append(b"N")
    elif kind is bool:
        parts.append(b"T" if value else b"F")
    elif kind is int:
        _sized(b"i", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True), parts)
    elif kind is float:
        parts.append(b"f" + struct.pack("<d", value))
    elif kind is complex:
        parts.append(b"c" + struct.pack("<dd", value.real, value.imag))
    elif kind is str:
        _sized(b"s", value.encode("utf-8", "surrogatepass"), parts)
    elif kind in (bytes, bytearray):
        _sized(b"b", bytes(value), parts)
    elif kind in (list, tuple, set):
        tag = {list: b"l", tuple: b"t", set: b"e"}[kind]
        parts.append(tag + struct.pack("<Q", len(value)))
        for item in value:
            _encode(item, parts, depth + 1)
    elif kind is dict:
        parts.append(b"d" + struct.pack("<Q", len(value)))
        for key, item in value.items():
            _encode(key, parts, depth + 1)
            _encode(item, parts, depth + 1)
    else:
        _encode_array(value, parts)


def _encode_array(value: Any, parts: List[bytes]) -> None:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)) or value.dtype.kind not in "biufc":
        raise NotPlain(
            f"a value of type {type(value).__module__}.{type(value).__qualname__}; plain data is None, bool, int, "
            "float, complex, str, bytes, list, tuple, set, dict, and arrays of numbers")
    array = numpy.asarray(value)
    shape = array.shape
    parts.append(b"a")
    _sized(b"s", array.dtype.str.encode(), parts)
    parts.append(struct.pack("<Q", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape))
    outgoing = getattr(parts, "outgoing", None)
    if outgoing is not None and array.nbytes >= 1 << 18:
        view = memoryview(numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8))
        parts.append(b"o" + struct.pack("<Q", outgoing.add(view)))
    else:
        _sized(b"b", numpy.ascontiguousarray(array).tobytes(), parts)


class _Reader:
    def __init__(self, data: bytes, buffers: Any = ()) -> None:
        self.data = memoryview(data)
        self.buffers = buffers
        self.at = 0

    def take(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise Malformed("ends too early")
        piece = self.data[self.at:self.at + size]
        self.at += size
        return piece

    def number(self) -> int:
        return int(struct.unpack("<Q", self.take(8))[0])

    def sized(self) -> bytes:
        return bytes(self.take(self.number()))

    def count(self) -> int:
        count = self.number()
        if count > len(self.data) - self.at:  # every item takes a byte at least
            raise Malformed("announces more items than there are bytes")
        return count


def decode(data: bytes, buffers: Any = ()) -> Any:
    """The value; raises Malformed, and nothing else, for anything that encode cannot have written."""
    reader = _Reader(data, buffers)
    try:
        value = _decode(reader, 0)
    except (struct.error, UnicodeError, TypeError, OverflowError, ValueError, RecursionError) as error:
        raise Malformed(str(error)) from None
    if reader.at != len(reader.data):
        raise Malformed(f"{len(reader.data) - reader.at} bytes too many")
    return value


def _items(reader: _Reader, depth: int) -> List[Any]:
    return [_decode(reader, depth + 1) for _ in range(reader.count())]


def _checked(keys: List[Any]) -> List[Any]:
    """Whoever chooses keys that all have the same hash makes a set or dictionary of them take for ever."""
    times: Dict[int, int] = {}
    for value in map(hash, keys):
        times[value] = times.get(value, 0) + 1
        if times[value] > MOST_OF_A_HASH:
            raise Malformed(f"more than {MOST_OF_A_HASH} keys with the same hash")
    return keys


def _dict(reader: _Reader, depth: int) -> Dict[Any, Any]:
    pairs = [(_decode(reader, depth + 1), _decode(reader, depth + 1)) for _ in range(reader.count())]
    _checked([key for key, _ in pairs])
    return dict(pairs)


def _array(reader: _Reader, depth: int) -> Any:
    import numpy
    if bytes(reader.take(1)) != b"s":
        raise Malformed("an array without a type")
    dtype = numpy.dtype(reader.sized().decode("ascii"))
    if dtype.kind not in "biufc" or dtype.itemsize == 0:
        raise Malformed(f"an array of {dtype}")
    dimensions = reader.count()
    if dimensions > 32:
        raise Malformed(f"an array of {dimensions} dimensions")
    shape: Tuple[int, ...] = struct.unpack(f"<{dimensions}Q", reader.take(8 * dimensions))
    tag = bytes(reader.take(1))
    if tag == b"o":
        number = reader.number()
        if number >= len(reader.buffers):
            raise Malformed("an array in no buffer")
        return numpy.frombuffer(reader.buffers[number], dtype).reshape(shape)
    if tag != b"b":
        raise Malformed("an array without data")
    return numpy.frombuffer(reader.sized(), dtype).reshape(shape).copy()


_DECODERS: Dict[bytes, Callable[[_Reader, int], Any]] = {
    b"N": lambda reader, depth: None,
    b"T": lambda reader, depth: True,
    b"F": lambda reader, depth: False,
    b"i": lambda reader, depth: int.from_bytes(reader.sized(), "little", signed=True),
    b"f": lambda reader, depth: struct.unpack("<d", reader.take(8))[0],
    b"c": lambda reader, depth: complex(*struct.unpack("<dd", reader.take(16))),
    b"s": lambda reader, depth: reader.sized().decode("utf-8", "surrogatepass"),
    b"b": lambda reader, depth: reader.sized(),
    b"l": _items,
    b"t": lambda reader, depth: tuple(_items(reader, depth)),
    b"e": lambda reader, depth: set(_checked(_items(reader, depth))),
    b"d": _dict,
    b"a": _array,
}


def _decode(reader: _Reader, depth: int) -> Any:
    tag = bytes(reader.take(1))
    if depth > MAX_DEPTH or tag not in _DECODERS:
        raise Malformed(f"unknown tag {tag!r}" if depth <= MAX_DEPTH else "nested too deep")
    return _DECODERS[tag](reader, depth)
