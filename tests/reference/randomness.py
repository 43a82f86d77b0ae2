"""Random operators with a seed: element i of the stream is what Philox 4x32-10 gives for (seed, 0, i), worked out here from the
generator's definition. Distributions are checked by `plimsoll verify` and tests/kernels/random_test.cpp."""
import numpy as np

from float_types import any_float, reals, values_of
from harness import choice, random_shape, reference, rejects
from model_file import TYPES

MASK32, MASK64 = 2 ** 32 - 1, 2 ** 64 - 1


def mix(x):
    x = (x + 0x9e3779b97f4a7c15) & MASK64
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK64
    return x ^ (x >> 31)


def philox(seed, index):
    key, counter = [seed & MASK32, seed >> 32], [index & MASK32, index >> 32, 0, 0]
    for _ in range(10):
        first, second = 0xd2511f53 * counter[0], 0xcd9e8d57 * counter[2]
        counter = [(second >> 32) ^ counter[1] ^ key[0], second & MASK32, (first >> 32) ^ counter[3] ^ key[1], first & MASK32]
        key = [(key[0] + 0x9e3779b9) & MASK32, (key[1] + 0xbb67ae85) & MASK32]
    return counter


def key_of(seed):
    return mix(int(np.float32(seed).view(np.uint32)))


def uniform(key, count, wide):
    if wide:
        blocks = [philox(key, i // 2)[2 * (i % 2):] for i in range(count)]
        return np.array([((b[0] << 32 | b[1]) >> 11) * 2.0 ** -53 for b in blocks])
    return np.array([(philox(key, i // 4)[i % 4] >> 8) * 2.0 ** -24 for i in range(count)])


def normal(key, count, wide):
    u = uniform(key, count + count % 2, wide)
    radius = np.sqrt(-2 * np.log(u[0::2] + (2.0 ** -54 if wide else 2.0 ** -25)))
    angle = 2 * np.pi * u[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()[:count]


LIMITS = {"float": {"rtol": 1e-5, "atol": 3e-6}, "double": {"rtol": 1e-11, "atol": 1e-12},
          "float16": {"rtol": 2e-3, "atol": 1e-3}, "bfloat16": {"rtol": 1e-2, "atol": 1e-2}}


def random_cases(names, like):
    def generate(rng):
        kind, shape = any_float(rng), random_shape(rng, largest=4)
        first, second = float(np.float32(rng.uniform(-2, 2))), float(np.float32(rng.uniform(2, 5)))
        attrs = {"seed": float(np.float32(rng.uniform(-9, 9))), names[0]: first, names[1]: second}
        inputs, given = [], any_float(rng)
        if like:
            inputs = [reals(rng, shape, given)]
            if rng.random() < 0.5:
                attrs["dtype"] = TYPES[kind]
            else:
                kind = given
        else:
            attrs.update(shape=shape, dtype=TYPES[kind])
            if not shape:
                attrs.pop("shape")
                attrs["shape"] = [1]
                shape = [1]
        return {"inputs": inputs, "attrs": attrs, "opset": 22, "kind": kind, "shape": shape, **LIMITS[kind]}
    return generate


def register(op, names, draw, like):
    @reference(op, random_cases(names, like))
    def expected(attrs, kind, shape, **_):
        numbers = draw(key_of(attrs["seed"]), int(np.prod(shape)), kind == "double").reshape(shape)
        first, second = attrs[names[0]], attrs[names[1]]
        return [(first + (second if draw is normal else second - first) * numbers, kind)]


register("RandomUniform", ("low", "high"), uniform, False)
register("RandomUniformLike", ("low", "high"), uniform, True)
register("RandomNormal", ("mean", "scale"), normal, False)
register("RandomNormalLike", ("mean", "scale"), normal, True)


def bernoulli_cases(rng):
    kind, target = any_float(rng), choice(rng, ["float", "double", "float16", "bool", "int32", "uint8", "int64"])
    return {"inputs": [reals(rng, random_shape(rng), kind, 0, 1)], "attrs": {"seed": float(rng.integers(100)), "dtype": TYPES[target]},
            "opset": 22, "target": target}


@reference("Bernoulli", bernoulli_cases)
def bernoulli(inputs, attrs, target, **_):
    p = values_of(inputs[0])
    return [((uniform(key_of(attrs["seed"]), p.size, True).reshape(p.shape) < p).astype(np.float64), target)]


def multinomial_cases(rng):
    kind = any_float(rng)
    batch, classes, samples = int(rng.integers(0, 4)), int(rng.integers(1, 9)), int(rng.integers(1, 30))
    wide = choice(rng, [None, "int32", "int64"])
    attrs = {"seed": 7.0, "sample_size": samples, **({"dtype": TYPES[wide]} if wide else {})}
    return {"inputs": [reals(rng, (batch, classes), kind, -3, 3)], "attrs": attrs, "opset": 22, "target": wide or "int32"}


@reference("Multinomial", multinomial_cases)
def multinomial(inputs, attrs, target, **_):
    x, samples = values_of(inputs[0]), attrs["sample_size"]
    u = uniform(key_of(attrs["seed"]), x.shape[0] * samples, True).reshape(x.shape[0], samples)
    sums = np.cumsum(np.exp(x - x.max(1, keepdims=True)), 1) if x.size else x
    return [(np.array([[np.searchsorted(sums[b, :-1], u[b, s] * sums[b, -1], "right") for s in range(samples)]
                       for b in range(x.shape[0])]).reshape(x.shape[0], samples), target)]


def dropout_cases(rng):
    kind, ratio = any_float(rng), choice(rng, [0.0, 0.25, 0.5, 0.75])
    train = bool(rng.random() < 0.7)
    inputs = [reals(rng, random_shape(rng), kind), np.array(ratio, np.float32), np.array(train)]
    if rng.random() < 0.2:
        inputs[1] = None
    outputs = int(rng.integers(1, 3))
    if rng.random() < 0.15:  # 1, -1 and 2 in float8, which grow exactly
        bits = rng.choice(np.array([0x38, 0xb8, 0x40], np.uint8), random_shape(rng))
        inputs[:2] = [(np.asarray(bits, np.uint8), "float8e4m3fn"), np.array(0.5, np.float32)]
        return {"inputs": inputs, "attrs": {"seed": 3}, "opset": 22, "outputs": outputs}
    return {"inputs": inputs, "attrs": {"seed": int(rng.integers(1000))}, "opset": choice(rng, [12, 13, 22]), "outputs": outputs,
            **LIMITS[kind]}


@reference("Dropout", dropout_cases)
def dropout(inputs, attrs, outputs, **_):
    small = isinstance(inputs[0], tuple) and inputs[0][1] == "float8e4m3fn"
    x = np.select([inputs[0][0] == 0x38, inputs[0][0] == 0xb8], [1.0, -1.0], 2.0) if small else values_of(inputs[0])
    ratio = 0.5 if inputs[1] is None else float(inputs[1])
    mask = np.ones(x.shape, bool)
    if inputs[2] and ratio > 0:
        mask = uniform(mix(attrs["seed"]), x.size, False).reshape(x.shape) >= ratio
        x = np.where(mask, x / (1 - ratio), 0)
    return [x, (mask, "bool")][:outputs]


F32 = np.float32
rejects("RandomNormal", [], {"shape": [2], "dtype": TYPES["int32"]}, says="dtype")
rejects("RandomNormal", [], {}, says="shape")
rejects("RandomNormal", [], {"shape": [-2]}, says="-2")
rejects("RandomUniform", [], {"shape": [2], "low": 1.0, "high": 0.0}, says="high")
rejects("RandomNormalLike", [np.ones(2, np.int32)], {}, says="int32")
rejects("Bernoulli", [np.ones(2, F32)], {"dtype": TYPES["string"]}, says="dtype")
rejects("Multinomial", [np.ones(2, F32)], {}, says="rank")
rejects("Multinomial", [np.ones((2, 3), F32)], {"sample_size": 0}, says="sample_size")
rejects("Multinomial", [np.full((2, 3), np.nan, F32)], {}, says="NaN")
rejects("Dropout", [np.ones(2, F32), np.array(1.0, F32), np.array(True)], {}, says="ratio")
rejects("Dropout", [np.ones(2, F32), np.ones(2, F32), np.array(True)], {}, says="input 1")
