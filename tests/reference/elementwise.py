"""Functions of single elements, and small operators of their kind, from the text of Operators.md."""
import numpy as np

from float_types import NUMPY, any_float, as_type, reals, values_of
from harness import broadcastable, choice, random_shape, reference, rejects
from model_file import TYPES

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
INTEGERS = UNSIGNED + SIGNED


def with_specials(rng, values):
    """Now and then an infinity, a zero or NaN among the values."""
    values = np.asarray(values, np.float64)
    if values.size and rng.random() < 0.3:
        values.reshape(-1)[int(rng.integers(values.size))] = choice(rng, SPECIAL)
    return values


def integers(rng, shape, dtype, low=None, high=None):
    info = np.iinfo(dtype)
    low, high = info.min if low is None else max(low, info.min), info.max if high is None else min(high, info.max)
    return np.asarray(rng.integers(low, high, shape, dtype, endpoint=True), dtype)


def limits(kind):
    """Relative, and for what rounds to or near zero."""
    return {"float": {"rtol": 2e-6, "atol": 1e-37}, "double": {"rtol": 1e-13, "atol": 1e-300},
            "float16": {"rtol": 1e-3, "atol": 6e-8}, "bfloat16": {"rtol": 8e-3, "atol": 1e-38}}[kind]


# ---- functions of one number ----------------------------------------------------------------------------

def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def celu(x, alpha):
    return np.maximum(0, x) + np.minimum(0, alpha * np.expm1(x / alpha))


def shrink(x, lambd, bias):
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))


# name: (function, lowest, highest argument, {attribute: (default, lowest, highest)}, first opset)
UNARY = {
    "Sin": (np.sin, -40, 40, {}, 7), "Cos": (np.cos, -40, 40, {}, 7), "Tan": (np.tan, -20, 20, {}, 7),
    "Asin": (np.arcsin, -1.1, 1.1, {}, 7), "Acos": (np.arccos, -1.1, 1.1, {}, 7), "Atan": (np.arctan, -50, 50, {}, 7),
    "Sinh": (np.sinh, -10, 10, {}, 9), "Cosh": (np.cosh, -10, 10, {}, 9),
    "Asinh": (np.arcsinh, -100, 100, {}, 9), "Acosh": (np.arccosh, 0.8, 50, {}, 9), "Atanh": (np.arctanh, -1.1, 1.1, {}, 9),
    "Mish": (lambda x: x * np.tanh(softplus(x)), -30, 30, {}, 18),
    "Softsign": (lambda x: x / (1 + np.abs(x)), -30, 30, {}, 1),
    "Celu": (celu, -10, 10, {"alpha": (1.0, 0.3, 3)}, 12),
    "Swish": (lambda x, alpha: x * sigmoid(alpha * x), -20, 20, {"alpha": (1.0, -2, 2)}, 24),
    "ThresholdedRelu": (lambda x, alpha: np.where(x > alpha, x, 0), -3, 3, {"alpha": (1.0, -1, 2)}, 10),
    "Shrink": (shrink, -3, 3, {"lambd": (0.5, 0, 2), "bias": (0.0, -1, 1)}, 9),
}


def unary_cases(op):
    _, low, high, attributes, first = UNARY[op]

    def generate(rng):
        kind = any_float(rng)
        attrs = {name: float(np.float32(rng.uniform(lowest, highest))) for name, (_, lowest, highest) in attributes.items()
                 if rng.random() < 0.7}
        scale = choice(rng, [1.0, 1.0, 1e-3])
        values = with_specials(rng, rng.uniform(low, high, random_shape(rng)) * scale)
        if op in ("Sin", "Cos") and values.size and rng.random() < 0.2:
            values.reshape(-1)[0] = 123456.789
        return {"inputs": [as_type(values, kind)[0]], "attrs": attrs, "opset": choice(rng, [first, 22, 24, 26] if first < 22 else [24, 26]),
                **limits(kind)}
    return generate


def register_unary(op):
    function, _, _, attributes, _ = UNARY[op]

    @reference(op, unary_cases(op))
    def expected(inputs, attrs, **_):
        settings = {name: attrs.get(name, default) for name, (default, _, _) in attributes.items()}
        return [function(values_of(inputs[0]), **settings)]


for name in UNARY:
    register_unary(name)


def shrink_integer_cases(rng):
    return {"inputs": [integers(rng, random_shape(rng), choice(rng, INTEGERS), -10, 10)], "attrs": {"lambd": 3.5, "bias": 1.0}, "opset": 9}


@reference("Shrink", shrink_integer_cases, name="Shrink of integers")
def shrink_integers(inputs, **_):
    return [shrink(inputs[0].astype(np.float64), 3.5, 1.0).astype(inputs[0].dtype)]


def is_inf_cases(rng):
    kind = any_float(rng, ["float", "double", "float16", "bfloat16", "float8e5m2", "float8e4m3fn", "float8e4m3fnuz"])
    attrs = {name: int(rng.integers(2)) for name in ("detect_negative", "detect_positive") if rng.random() < 0.6}
    shape = random_shape(rng)
    if kind.startswith("float8"):
        tensor = (integers(rng, shape, np.uint8, 0x70, 0x7f) | choice(rng, [np.uint8(0), np.uint8(0x80)]), kind)
    else:
        tensor = as_type(rng.choice([1.0, -2.0, np.inf, -np.inf, np.nan], shape), kind)[0]
    return {"inputs": [tensor], "attrs": attrs, "opset": 20}


@reference("IsInf", is_inf_cases)
def is_inf(inputs, attrs, **_):
    negative, positive = attrs.get("detect_negative", 1), attrs.get("detect_positive", 1)
    tensor = inputs[0]
    if isinstance(tensor, tuple) and tensor[1].startswith("float8"):
        infinite = tensor[1] == "float8e5m2"
        return [(((tensor[0] == 0x7c) & infinite & (positive == 1)) | ((tensor[0] == 0xfc) & infinite & (negative == 1)), "bool")]
    x = values_of(tensor)
    return [(((x == np.inf) & (positive == 1)) | ((x == -np.inf) & (negative == 1)), "bool")]


def is_nan_cases(rng):
    arguments = is_inf_cases(rng)
    arguments["attrs"] = {}
    return arguments


@reference("IsNaN", is_nan_cases)
def is_nan(inputs, **_):
    tensor = inputs[0]
    if isinstance(tensor, tuple) and tensor[1].startswith("float8"):
        low = tensor[0] & 0x7f
        nan = {"float8e5m2": low > 0x7c, "float8e4m3fn": low == 0x7f, "float8e4m3fnuz": tensor[0] == 0x80}[tensor[1]]
        return [(nan, "bool")]
    return [(np.isnan(values_of(tensor)), "bool")]


# ---- bits -----------------------------------------------------------------------------------------------

def bit_cases(dtypes, with_direction=False):
    def generate(rng):
        dtype, shape = choice(rng, dtypes), random_shape(rng)
        a, b = integers(rng, broadcastable(rng, shape), dtype), integers(rng, shape, dtype)
        attrs = {}
        if with_direction:
            b = integers(rng, shape, dtype, 0, np.iinfo(dtype).bits + 2)
            attrs = {"direction": choice(rng, ["LEFT", "RIGHT"])}
        return {"inputs": [a, b], "attrs": attrs, "opset": 11 if with_direction else 18}
    return generate


@reference("BitwiseAnd", bit_cases(INTEGERS))
def bitwise_and(inputs, **_):
    return [inputs[0] & inputs[1]]


@reference("BitwiseOr", bit_cases(INTEGERS))
def bitwise_or(inputs, **_):
    return [inputs[0] | inputs[1]]


@reference("BitwiseXor", bit_cases(INTEGERS))
def bitwise_xor(inputs, **_):
    return [inputs[0] ^ inputs[1]]


@reference("BitwiseNot", lambda rng: {"inputs": [integers(rng, random_shape(rng), choice(rng, INTEGERS))], "opset": 18})
def bitwise_not(inputs, **_):
    return [~inputs[0]]


@reference("BitShift", bit_cases(UNSIGNED, True))
def bit_shift(inputs, attrs, **_):
    bits = np.iinfo(inputs[0].dtype).bits
    a, b = np.broadcast_arrays(*inputs)
    result = np.zeros(a.shape, a.dtype)
    for at in np.ndindex(a.shape):
        value, count = int(a[at]), int(b[at])
        result[at] = ((value << count) if attrs["direction"] == "LEFT" else (value >> count)) & (2 ** bits - 1)
    return [result]


def bit_cast_cases(rng):
    groups = [["uint8", "int8", "bool"], ["uint16", "int16", "float16"], ["uint32", "int32", "float"], ["uint64", "int64", "double"]]
    names = choice(rng, groups)
    source, target = choice(rng, names), choice(rng, names)
    bits = integers(rng, random_shape(rng), np.dtype(names[0]).type)
    dtypes = {"float": "float32", "double": "float64"}
    if "bool" in (source, target):
        bits = bits & np.array(1, bits.dtype)
    return {"inputs": [bits.view(dtypes.get(source, source))], "attrs": {"to": TYPES[target]}, "opset": 26,
            "target": target, "dtype": dtypes.get(target, target)}


@reference("BitCast", bit_cast_cases)
def bit_cast(inputs, target, dtype, **_):
    return [(inputs[0].reshape(inputs[0].shape).view(dtype), target)]


# ---- many inputs ------------------------------------------------------------------------------------------

def variadic_cases(rng):
    kind, shape = any_float(rng), random_shape(rng)
    inputs = [reals(rng, broadcastable(rng, shape), kind, 0.5, 3.0) for _ in range(int(rng.integers(1, 6)))]
    return {"inputs": inputs, "opset": choice(rng, [8, 13]), **limits(kind)}


@reference("Sum", variadic_cases)
def sum_of(inputs, **_):
    total = values_of(inputs[0])
    for tensor in inputs[1:]:
        total = total + values_of(tensor)
    return [total]


@reference("Mean", variadic_cases)
def mean_of(inputs, **_):
    return [sum_of(inputs)[0] / len(inputs)]


def extreme_cases(rng):
    shape, count = random_shape(rng), int(rng.integers(1, 5))
    if rng.random() < 0.5:
        dtype = choice(rng, INTEGERS)
        return {"inputs": [integers(rng, broadcastable(rng, shape), dtype) for _ in range(count)], "opset": 13}
    kind = any_float(rng)
    return {"inputs": [as_type(with_specials(rng, rng.uniform(-2, 2, broadcastable(rng, shape))), kind)[0] for _ in range(count)],
            "opset": choice(rng, [8, 12, 13]) if kind in ("float", "double", "float16") else 13}


def fold(inputs, function):
    values = [t if not isinstance(t, tuple) and t.dtype.kind in "iu" else values_of(t) for t in inputs]
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return [result]


@reference("Max", extreme_cases)
def max_of(inputs, **_):
    return fold(inputs, np.maximum)


@reference("Min", extreme_cases)
def min_of(inputs, **_):
    return fold(inputs, np.minimum)


# ---- powers -----------------------------------------------------------------------------------------------

def pow_cases(rng):
    shape = random_shape(rng, largest=8)
    kind = any_float(rng)
    base = with_specials(rng, rng.uniform(-3, 3, broadcastable(rng, shape)) * choice(rng, [1, 1, 1e-4, 1e4]))
    if rng.random() < 0.5:
        base = np.abs(base)
    exponent = with_specials(rng, rng.uniform(-5, 5, broadcastable(rng, shape)))
    if rng.random() < 0.4:
        exponent = np.round(exponent)
    if rng.random() < 0.2:
        exponent = np.array(choice(rng, [0.5, 2.0, 3.0, -1.0, 1.0, 0.0, -0.5, 2.5]))
    exponent_kind = choice(rng, [kind, kind, any_float(rng)])
    return {"inputs": [as_type(base, kind)[0], as_type(exponent, exponent_kind)[0]], "opset": 15, **limits(kind),
            "constant_inputs": []}


@reference("Pow", pow_cases)
def power(inputs, **_):
    x, y = values_of(inputs[0]), values_of(inputs[1])
    if isinstance(inputs[0], tuple) or inputs[0].dtype != np.float64:
        y = y.astype(np.float32).astype(np.float64)
    kind = "bfloat16" if isinstance(inputs[0], tuple) else {np.dtype(t): name for name, t in NUMPY.items()}[inputs[0].dtype]
    return [np.power(x, y) if kind in ("double", "bfloat16") else np.power(x, y).astype(NUMPY[kind]).astype(np.float64)]


# ---- along an axis ------------------------------------------------------------------------------------------

def cumulative_cases(rng):
    shape = random_shape(rng, least=1)
    axis = int(rng.integers(len(shape)))
    attrs = {name: int(rng.integers(2)) for name in ("exclusive", "reverse") if rng.random() < 0.6}
    where = np.array(choice(rng, [axis, axis - len(shape)]), choice(rng, [np.int32, np.int64]))
    if rng.random() < 0.4:
        tensor = integers(rng, shape, choice(rng, [np.int32, np.int64, np.uint32, np.uint64]), -9, 9)
        return {"inputs": [tensor, where], "attrs": attrs, "opset": 26, "axis": axis}
    kind = any_float(rng)
    return {"inputs": [reals(rng, shape, kind, 0.5, 2), where], "attrs": attrs, "opset": 26, "axis": axis, **limits(kind)}


def cumulate(inputs, attrs, axis, function, start):
    tensor = inputs[0]
    x = tensor if not isinstance(tensor, tuple) and tensor.dtype.kind in "iu" else values_of(tensor)
    x = np.moveaxis(x, axis, 0)
    if attrs.get("reverse"):
        x = x[::-1]
    y = function.accumulate(x, axis=0, dtype=x.dtype)
    if attrs.get("exclusive"):
        y = np.concatenate([np.full_like(x[:1], start), y[:-1]])
    if attrs.get("reverse"):
        y = y[::-1]
    return [np.moveaxis(y, 0, axis)]


@reference("CumSum", cumulative_cases)
def cum_sum(inputs, attrs, axis, **_):
    return cumulate(inputs, attrs, axis, np.add, 0)


@reference("CumProd", cumulative_cases)
def cum_prod(inputs, attrs, axis, **_):
    return cumulate(inputs, attrs, axis, np.multiply, 1)


def few_values(rng, shape, kind):
    """Many equal elements."""
    return as_type(with_specials(rng, rng.integers(-2, 3, shape).astype(np.float64)), kind)[0]


def hardmax_cases(rng):
    opset = choice(rng, [1, 11, 13])
    shape = random_shape(rng, least=2, zeros=False)
    attrs = {"axis": int(rng.integers(0 if opset == 1 else -len(shape), len(shape)))} if rng.random() < 0.7 else {}
    return {"inputs": [few_values(rng, shape, any_float(rng))], "attrs": attrs, "opset": opset}


@reference("Hardmax", hardmax_cases)
def hardmax(inputs, attrs, opset, **_):
    x = values_of(inputs[0])
    axis = attrs.get("axis", 1 if opset < 13 else -1)
    if opset < 13:
        axis %= x.ndim
        rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
        return [(np.arange(rows.shape[1]) == np.argmax(rows, 1)[:, None]).astype(np.float64).reshape(x.shape)]
    places = np.expand_dims(np.argmax(x, axis), axis)
    result = np.zeros(x.shape)
    np.put_along_axis(result, places, 1, axis)
    return [result]


def arg_cases(rng):
    shape = random_shape(rng, least=1, largest=40 if rng.random() < 0.3 else 6, zeros=False)
    if len(shape) > 3:
        shape = [min(size, 4) for size in shape]
    opset = choice(rng, [1, 11, 12, 13])
    axis = int(rng.integers(0 if opset == 1 else -len(shape), len(shape)))
    attrs = {"axis": axis, "keepdims": int(rng.integers(2))}
    if opset >= 12:
        attrs["select_last_index"] = int(rng.integers(2))
    if rng.random() < 0.3:
        tensor = integers(rng, shape, choice(rng, INTEGERS), -3, 3)
    else:
        tensor = few_values(rng, shape, any_float(rng, ["float", "float", "double", "float16"]))
    return {"inputs": [tensor], "attrs": attrs, "opset": opset}


def arg_extreme(inputs, attrs, function):
    axis = attrs["axis"]
    x = inputs[0]
    if attrs.get("select_last_index"):
        result = x.shape[axis] - 1 - function(np.flip(x, axis), axis)
    else:
        result = function(x, axis)
    return [np.expand_dims(result, axis) if attrs["keepdims"] else result]


@reference("ArgMax", arg_cases)
def arg_max(inputs, attrs, **_):
    return arg_extreme(inputs, attrs, np.argmax)


@reference("ArgMin", arg_cases)
def arg_min(inputs, attrs, **_):
    return arg_extreme(inputs, attrs, np.argmin)


def global_lp_pool_cases(rng):
    kind = any_float(rng)
    attrs = {"p": int(rng.integers(1, 5))} if rng.random() < 0.7 else {}
    return {"inputs": [reals(rng, random_shape(rng, least=3, most=5), kind)], "attrs": attrs, "opset": choice(rng, [2, 22]), **limits(kind)}


@reference("GlobalLpPool", global_lp_pool_cases)
def global_lp_pool(inputs, attrs, **_):
    x, p = np.abs(values_of(inputs[0])), attrs.get("p", 2)
    return [np.sum(x ** p, tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)]


F32 = np.float32
rejects("Sin", [np.array([1], np.int32)], says="int32")
rejects("Celu", [np.ones(2, F32)], {"alpha": 0.0}, says="alpha")
rejects("BitShift", [np.ones(2, np.uint8), np.ones(2, np.uint8)], {"direction": "UP"}, says="direction")
rejects("BitShift", [np.ones(2, np.int8), np.ones(2, np.int8)], {"direction": "LEFT"}, says="int8")
rejects("BitwiseAnd", [np.ones(2, np.uint8), np.ones(2, np.int8)], says="int8")
rejects("BitwiseAnd", [np.ones(2, np.uint8), np.ones(3, np.uint8)], says="2")
rejects("BitwiseNot", [np.ones(2, F32)], says="float")
rejects("Sum", [np.ones(2, np.int32), np.ones(2, np.int32)], says="int32")
rejects("Sum", [np.ones(2, F32), np.ones(3, F32)], says="2")
rejects("IsInf", [np.ones(2, np.int32)], says="int32")
rejects("Hardmax", [np.ones((2, 3), F32)], {"axis": 2}, says="axis")
rejects("CumProd", [np.ones((2, 3), F32), np.array(2, np.int64)], says="axis", opset=26)
rejects("CumProd", [np.ones((2, 3), F32), np.array([0, 1], np.int64)], says="axis", opset=26)
rejects("BitCast", [np.ones(2, F32)], {"to": TYPES["int64"]}, says="bits", opset=26)
rejects("BitCast", [np.ones(2, F32)], {"to": 99}, says="to", opset=26)
rejects("GlobalLpPool", [np.ones((2, 3, 4), F32)], {"p": 0}, says="'p'")
rejects("ArgMax", [np.ones((2, 0), F32)], {"axis": 1}, says="empty")
rejects("ThresholdedRelu", [np.ones(2, F32)], {"beta": 1.0}, says="beta")
