"""Element types of 8 bits and less, as numbers and as bits, from the tables of the specification.

Every value of a type is listed once; encoding looks for the nearest, which is slow and plain.
"""
import numpy as np

# exponent bits, mantissa bits, bias, has infinity, FNUZ (one NaN, one zero)
FORMS = {"float8e4m3fn": (4, 3, 7, False, False), "float8e4m3fnuz": (4, 3, 8, False, True),
         "float8e5m2": (5, 2, 15, True, False), "float8e5m2fnuz": (5, 2, 16, False, True),
         "float4e2m1": (2, 1, 1, False, False)}
SMALL_FLOATS = [*FORMS, "float8e8m0"]
SMALL_INTEGERS = {"int4": (4, True), "uint4": (4, False), "int2": (2, True), "uint2": (2, False)}


def decode_one(name, bits):
    if name == "float8e8m0":
        return np.nan if bits == 255 else 2.0 ** (bits - 127)
    exponent_bits, mantissa_bits, bias, infinite, fnuz = FORMS[name]
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    top = exponent == (1 << exponent_bits) - 1
    if fnuz and bits == 0x80 or name == "float8e4m3fn" and bits & 0x7F == 0x7F or infinite and top and mantissa:
        return np.nan
    if infinite and top:
        return sign * np.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def table(name):
    return np.array([decode_one(name, bits) for bits in range(16 if name == "float4e2m1" else 256)])


def signed(bits, width):
    return np.where(bits >= 1 << (width - 1), bits.astype(np.int64) - (1 << width), bits.astype(np.int64))


def numbers(tensor, name):
    """float64 or int64 behind bits of a type that numpy lacks."""
    bits = np.asarray(tensor)
    if name == "bfloat16":
        return (np.ravel(bits).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64).reshape(bits.shape)
    if name in SMALL_INTEGERS:
        width, is_signed = SMALL_INTEGERS[name]
        return signed(bits, width) if is_signed else bits.astype(np.int64)
    return table(name)[bits]


def brain_bits(values):
    """Bits of bfloat16, cut off."""
    return (np.ravel(values).astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16).reshape(np.shape(values))


def encode_e8m0(x, saturate, mode):
    if np.isnan(x):
        return np.nan
    x = abs(x)
    if x < 2.0 ** -127:
        return 2.0 ** -127 if saturate else np.nan
    if np.isinf(x):
        return 2.0 ** 127 if saturate else np.nan
    exponent = int(np.floor(np.log2(x)))
    exponent += 1 if 2.0 ** (exponent + 1) <= x else -1 if 2.0 ** exponent > x else 0
    fraction = x / 2.0 ** exponent
    exponent += mode == "up" and fraction > 1 or mode == "nearest" and fraction >= 1.5
    if exponent > 127:
        return 2.0 ** 127 if saturate else np.nan
    return 2.0 ** exponent


def nearest(name, x, saturate=True, saturate_infinity=True, mode="up"):
    """The number of the type that x becomes."""
    if name == "float8e8m0":
        return encode_e8m0(x, saturate, mode)
    values = table(name)
    finite = [(value, bits) for bits, value in enumerate(values[:len(values) // 2]) if np.isfinite(value)]
    most = finite[-1][0]
    _, _, _, infinite, fnuz = FORMS[name]
    if np.isnan(x):
        return 6.0 if name == "float4e2m1" else np.nan
    sign = -1.0 if np.signbit(x) else 1.0
    beyond = most + (most - finite[-2][0]) / 2  # halfway to what would come next
    even = finite[-1][1] % 2 == 0
    if abs(x) > beyond or abs(x) == beyond and not even:
        if name == "float4e2m1" or saturate and not (np.isinf(x) and fnuz and not saturate_infinity):
            return sign * most
        return sign * np.inf if infinite else np.nan
    distance, _, value = min((abs(value - abs(x)), bits % 2, value) for value, bits in finite)
    return sign * value


def encode(name, values, **rules):
    return np.array([nearest(name, float(x), **rules) for x in np.ravel(values)], np.float32).reshape(np.shape(values))


def bits_of(name, values):
    """Bits of numbers that the type has."""
    listed = table(name)
    flat = [int(np.argmax(np.isnan(listed))) if np.isnan(v) else int(np.argmax((listed == v) & (np.signbit(listed) == np.signbit(v))))
            for v in np.ravel(values)]
    return np.array(flat, np.uint8).reshape(np.shape(values))


def random_bits(rng, name, shape, nan=False):
    """A tensor (bits, type) of a type that numpy lacks."""
    if name == "bfloat16":
        return brain_bits(rng.normal(0, 4, shape)), name
    width = 8 if name.startswith("float8") else 4 if "4" in name else 2
    bits = rng.integers(0, 1 << width, shape).astype(np.uint8)
    if not nan and name in SMALL_FLOATS:
        bits = np.where(np.isfinite(table(name)[bits]), bits, 1).astype(np.uint8)
    return bits, name
