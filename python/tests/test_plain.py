"""Plain data: what goes in comes out, and nothing that a hostile process writes does more than raise Malformed."""
import itertools
import math
import random

import pytest

from plimsoll import _plain

VALUES = [None, True, False, 0, -1, 255, 256, -(1 << 200), 1 << 4000, 0.5, -0.0, float("inf"), 2 + 3j, "", "äß☃\udc80", b"",
          bytes(range(256)), [], [1, [2, [3]]], (), (1, "2"), set(), {1, 2}, {}, {"a": {"b": [None]}, 3: b"x", (1, 2): True}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_round_trip(value):
    back = _plain.decode(_plain.encode(value))
    assert back == value and type(back) is type(value)


def test_nan_and_arrays():
    assert math.isnan(_plain.decode(_plain.encode(float("nan"))))
    numpy = pytest.importorskip("numpy")
    for array in (numpy.arange(6.0).reshape(2, 3), numpy.zeros((0, 3), "i2"), numpy.array(5, "u1"),
                  numpy.arange(6)[::-2], numpy.array([1 + 2j], "c8"), numpy.array([True]), numpy.arange(3, dtype=">i4")):
        back = _plain.decode(_plain.encode(array))
        assert back.dtype == array.dtype and back.shape == array.shape and (back == array).all()
        back[...] = 0  # ours to change
    for array in (numpy.array([object()]), numpy.array(["text"]), numpy.zeros(2, [("a", "i4")])):
        with pytest.raises(_plain.NotPlain):
            _plain.encode(array)


class Text(str):
    pass


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("value", [object(), print, Text("x"), [open], {"a": lambda: 1}, deep(1000), frozenset()],
                         ids=lambda value: type(value).__name__)
def test_what_is_not_plain(value):
    with pytest.raises(_plain.NotPlain):
        _plain.encode(value)


def array_bytes(dtype, shape, data):
    import struct
    return (b"as" + struct.pack("<Q", len(dtype)) + dtype + struct.pack(f"<{len(shape) + 1}Q", len(shape), *shape)
            + b"b" + struct.pack("<Q", len(data)) + data)


@pytest.mark.parametrize("data", [
    b"", b"?", b"N" * 2, b"i", b"s" + b"\xff" * 8, b"l" + b"\xff" * 8, b"l" + (5).to_bytes(8, "little"), b"f123",
    b"l\1\0\0\0\0\0\0\0" * 100_000, b"d\1\0\0\0\0\0\0\0l\0\0\0\0\0\0\0\0N", b"s\1\0\0\0\0\0\0\0\xff",
    b"\x80\x05cos\nsystem\n.", array_bytes(b"|O", (1,), b"12345678"), array_bytes(b"<f4", (1 << 62, 4), b""),
    array_bytes(b"<f4", (2,), b"1234"), array_bytes(b"V8", (1,), b"12345678"), array_bytes(b"rubbish", (1,), b"1"),
    array_bytes(b"i4,O", (1,), b"123456789012"), array_bytes(b"", (1,), b"1"), array_bytes(b"<f4", (1,) * 60, b"1234")])
def test_malformed(data):
    with pytest.raises(_plain.Malformed):
        _plain.decode(data)


def test_mutations():
    chance = random.Random(3)
    good = [_plain.encode(value) for value in VALUES] + [array_bytes(b"<f4", (2, 2), bytes(16))]
    for _ in range(4000):
        data = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 4)):
            if data:
                data[chance.randrange(len(data))] = chance.choice([0, 1, 255, chance.randrange(256)])
        data = data[:chance.randrange(len(data) + 1)] if chance.random() < 0.3 else data
        try:
            _plain.decode(bytes(data))
        except _plain.Malformed:
            pass


@pytest.mark.parametrize("keys", [[1 + i * (2**61 - 1) for i in range(101)], list(itertools.product((-1, -2), repeat=7))])
def test_keys_that_collide_are_refused(keys):
    assert len({hash(key) for key in keys}) == 1
    for value in (dict.fromkeys(keys), set(keys)):
        with pytest.raises(_plain.Malformed):
            _plain.decode(_plain.encode(value))
