"""Cast and CastLike between all element types, from the rules and tables of Cast's text."""
import numpy as np

from harness import choice, random_shape, reference, rejects
from model_file import TYPES
from small_types import SMALL_FLOATS, SMALL_INTEGERS, encode, numbers, random_bits

FLOATS = ["float", "double", "float16", "bfloat16"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_,
         **{name: np.dtype(name) for name in INTEGERS}}
NEEDS = {"bfloat16": 13, "uint4": 21, "int4": 21, "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 25,
         **{name: 19 for name in SMALL_FLOATS if name.startswith("float8e4") or name.startswith("float8e5")}}


def lowest_of(name):
    if name in SMALL_INTEGERS:
        width, is_signed = SMALL_INTEGERS[name]
        return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    return np.iinfo(name).min, np.iinfo(name).max


def random_tensor(rng, name, to, shape):
    """Numbers that the cast defines: integers take no float that they cannot hold."""
    if name == "bfloat16" or name in SMALL_FLOATS or name in SMALL_INTEGERS:
        bits, _ = random_bits(rng, name, shape, nan=to in FLOATS or to in SMALL_FLOATS)
        if name in SMALL_FLOATS and to not in FLOATS and to not in SMALL_FLOATS and to != "string":
            least, most = (0, 1) if to == "bool" else lowest_of(to)
            values = numbers(bits, name)
            bits = np.where((values >= max(least, -8)) & (values <= most), bits, 0 if name != "float8e8m0" else 127)
            bits = bits.astype(np.uint8)
        if name == "bfloat16" and to not in FLOATS and to not in SMALL_FLOATS:
            least = 0 if to == "bool" else lowest_of(to)[0]
            bits = np.where(numbers(bits, name) < least, 0, bits).astype(np.uint16)
            if to in SMALL_INTEGERS:
                bits = np.where(numbers(bits, name) > lowest_of(to)[1], 0, bits).astype(np.uint16)
        return bits, name
    if name == "bool":
        return rng.random(shape) < 0.5
    if name in INTEGERS:
        least, most = lowest_of(name)
        if to == "float8e8m0":
            least = 0
        return rng.integers(max(least, -2 ** 62), min(most, 2 ** 62), shape, endpoint=True).astype(name)
    scale = choice(rng, [1, 30, 400, 70000])
    values = rng.normal(0, scale, shape)
    if to in INTEGERS or to in SMALL_INTEGERS:
        least, most = lowest_of(to)
        values = np.clip(values, max(least, -60000), min(most, 60000))
    elif to == "float8e8m0":
        values = np.abs(values)
    else:
        values = np.where(rng.random(shape) < 0.05, choice(rng, [np.nan, np.inf, -np.inf, -0.0, 0.0]), values)
    if to == "float8e4m3fn":  # also halfway between neighbours
        values = np.where(rng.random(shape) < 0.2, rng.integers(-32, 33, shape) * 17.0, values)
    return values.astype(NUMPY[name])


def cases(rng):
    names = [*FLOATS, *INTEGERS, "bool", *SMALL_FLOATS, *SMALL_INTEGERS]
    name, to = choice(rng, names), choice(rng, names)
    if rng.random() < 0.4:
        to = choice(rng, [*SMALL_FLOATS, *SMALL_INTEGERS])
    opset = int(rng.integers(max(NEEDS.get(name, 13), NEEDS.get(to, 13)), 26))
    attrs = {"to": TYPES[to]}
    if opset >= 19 and rng.random() < 0.5:
        attrs["saturate"] = int(rng.integers(2))
    if opset >= 24 and rng.random() < 0.7:
        attrs["round_mode"] = choice(rng, ["up", "down", "nearest"])
    shape = random_shape(rng, largest=8) if rng.random() < 0.8 else [int(rng.integers(500, 1600))]
    return dict(inputs=[random_tensor(rng, name, to, shape)], attrs=attrs, opset=opset, rtol=0, target=to)


def wrapped(values, name):
    width, is_signed = SMALL_INTEGERS[name] if name in SMALL_INTEGERS else (np.dtype(name).itemsize * 8, name[0] == "i")
    result = np.array([int(v) % (1 << width) for v in np.ravel(values)], object).reshape(np.shape(values))
    if is_signed:
        result = np.where(result >= 1 << (width - 1), result - (1 << width), result)
    return result.astype("int8" if name in ("int4", "int2") else "uint8" if name in SMALL_INTEGERS else name)


def cast(tensor, to, opset, saturate=1, round_mode="up"):
    values = numbers(*tensor) if isinstance(tensor, tuple) else tensor
    integral = values.dtype.kind in "iub"
    if to == "bool":
        return values != 0
    if to in SMALL_FLOATS:
        return encode(to, values, saturate=bool(saturate), saturate_infinity=opset >= 24, mode=round_mode)
    if to in INTEGERS or to in SMALL_INTEGERS:
        if not integral:
            values = np.rint(values) if to in SMALL_INTEGERS else np.trunc(values)
        return wrapped(values, to)
    if to == "bfloat16":
        narrow = np.ravel(values).astype(np.float32)
        bits = narrow.view(np.uint32).astype(np.uint64)
        bits = np.where(np.isnan(narrow), bits, bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        return bits.astype(np.uint32).view(np.float32).reshape(values.shape)
    return values.astype(NUMPY[to])


@reference("Cast", cases)
def expect_cast(inputs, attrs, opset, target, **_):
    return [(cast(inputs[0], target, opset, attrs.get("saturate", 1), attrs.get("round_mode", "up")), target)]


def like_cases(rng):
    arguments = cases(rng)
    to = arguments["target"]
    other = random_bits(rng, to, [2])if to == "bfloat16" or to in SMALL_FLOATS or to in SMALL_INTEGERS else \
        np.zeros([2], NUMPY[to])
    del arguments["attrs"]["to"]
    return dict(arguments, inputs=[*arguments["inputs"], other], opset=max(15, arguments["opset"]))


@reference("CastLike", like_cases)
def expect_cast_like(inputs, attrs, opset, target, **_):
    return [(cast(inputs[0], target, opset, attrs.get("saturate", 1), attrs.get("round_mode", "up")), target)]


def text_cases(rng):
    shape = random_shape(rng, most=3)
    to = choice(rng, ["float", "double", "int32", "uint8", "int4", "float8e5m2", "bfloat16"])
    values = rng.integers(0, 8, shape).astype(np.float64)
    texts = np.array([choice(rng, ["{}", "{}.0", "{}e0", "{}.00E+00"]).format(int(v)) for v in values.ravel()], object)
    return dict(inputs=[texts.reshape(shape)], attrs={"to": TYPES[to]}, opset=25, rtol=0, values=values, target=to)


@reference("Cast", text_cases, name="Cast from text")
def expect_cast_from_text(values, target, opset, **_):
    return [(cast(values, target, opset), target)]


def to_text_cases(rng):
    name = choice(rng, ["int8", "uint64", "int64", "int4", "uint2", "bool"])
    return dict(inputs=[random_tensor(rng, name, "string", random_shape(rng, most=3))], attrs={"to": TYPES["string"]}, opset=25)


@reference("Cast", to_text_cases, name="Cast to text")
def expect_cast_to_text(inputs, **_):
    values = numbers(*inputs[0]) if isinstance(inputs[0], tuple) else inputs[0]
    return [np.array([str(int(v)) for v in np.ravel(values)], object).reshape(np.shape(values))]


def view_cases(op):
    def generate(rng):
        name = choice(rng, [*SMALL_FLOATS, *SMALL_INTEGERS])
        shape = random_shape(rng, most=5, least=1)
        tensor = random_bits(rng, name, shape)
        arguments = dict(inputs=[tensor], attrs={}, opset=25, rtol=0)
        if op == "Transpose":
            arguments["attrs"] = {"perm": [int(p) for p in rng.permutation(len(shape))]}
        elif op == "Reshape":
            arguments["inputs"].append(np.array([-1] if np.prod(shape) else shape[:1] + [0], np.int64))
            arguments["attrs"] = {"allowzero": int(not np.prod(shape))}
            arguments["constant_inputs"] = [1]
        elif op == "Unsqueeze":
            arguments["inputs"].append(np.array([0], np.int64))
        elif op == "ConstantOfShape":
            arguments["attrs"] = {"value": (tensor[0].ravel()[:1] if tensor[0].size else np.zeros(1, np.uint8), name)}
            arguments["inputs"] = [np.array(shape, np.int64)]
        elif op == "Pad":
            arguments["inputs"] += [rng.integers(0, 3, 2 * len(shape)).astype(np.int64), (tensor[0].ravel()[:1].reshape(())
                                    if tensor[0].size else np.zeros((), np.uint8), name)]
            arguments["attrs"] = {"mode": "constant" if 0 in shape else choice(rng, ["constant", "edge", "wrap"])}
        elif op == "Constant":
            arguments.update(inputs=[], attrs={"value": tensor}, tensor=tensor)
        return arguments
    return generate


def moved(op, tensor, inputs, attrs):
    if op == "ConstantOfShape":
        return np.full(inputs[0], numbers(*attrs["value"])[0])
    values = np.asarray(numbers(*tensor))
    values = values.astype(np.float32) if values.dtype.kind == "f" else values
    if op == "Transpose":
        return values.transpose(attrs["perm"])
    if op == "Reshape":
        return values.reshape(inputs[1])
    if op == "Unsqueeze":
        return values[None]
    if op == "Pad":
        pads = inputs[1].reshape(2, -1).T
        if attrs["mode"] == "constant":
            return np.pad(values, pads, constant_values=numbers(*inputs[2]))
        return np.pad(values, pads, mode=attrs["mode"])
    return values


def register_views():
    for op in ["Identity", "Transpose", "Reshape", "Flatten", "Unsqueeze", "ConstantOfShape", "Pad", "Constant", "Shape", "Size"]:
        def expected(inputs, attrs, op=op, tensor=None, **_):
            tensor = tensor or inputs[0]
            if op in ("Shape", "Size"):
                return [np.array(tensor[0].shape if op == "Shape" else tensor[0].size, np.int64)]
            if op == "Flatten":
                shape = tensor[0].shape
                return [moved("Identity", tensor, inputs, attrs).reshape(shape[0], int(np.prod(shape[1:])))]
            type_name = attrs["value"][1] if op == "ConstantOfShape" else tensor[1]
            return [(moved(op, tensor, inputs, attrs), type_name)]
        expected.__module__ = __name__
        reference(op, view_cases(op), name=f"{op} of small types")(expected)


register_views()
X = np.zeros([2], np.float32)
rejects("Cast", [X], {"to": 99}, says="is not an element type")
rejects("Cast", [X], {"to": TYPES["complex64"]}, says="expected another type than complex64")
rejects("Cast", [X], {}, says="'to'")
rejects("Cast", [X], {"to": 1, "round_mode": "sideways"}, opset=24, says="expected up, down or nearest")
rejects("Cast", [X], {"to": 1, "round_mode": "up"}, opset=23, says="round_mode")
rejects("Cast", [np.array(["two"], object)], {"to": 1}, says="expected a number")
rejects("Cast", [X, X], {"to": 1}, says="inputs")
rejects("CastLike", [X], {}, says="inputs")
