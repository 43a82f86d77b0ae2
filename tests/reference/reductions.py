"""Reduce*, from the text of Operators.md: every opset that differs, every type."""
import numpy as np

from elementwise import integers
from float_types import any_float, reals, values_of
from harness import choice, random_shape, reference, rejects


def log_sum_exp(x, **options):
    top = np.max(x, axis=options["axis"], keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    total = np.sum(np.exp(x - top), **options)
    return np.log(total) + np.reshape(top, total.shape)


# name: (function of float64 values, lowest, highest argument)
REDUCTIONS = {
    "ReduceSum": (np.sum, -2, 2), "ReduceMean": (np.mean, -2, 2), "ReduceProd": (np.prod, -2, 2),
    "ReduceMax": (lambda x, **o: np.max(x, initial=-np.inf, **o), -2, 2),
    "ReduceMin": (lambda x, **o: np.min(x, initial=np.inf, **o), -2, 2),
    "ReduceL1": (lambda x, **o: np.sum(np.abs(x), **o), -2, 2),
    "ReduceL2": (lambda x, **o: np.sqrt(np.sum(x * x, **o)), -2, 2),
    "ReduceSumSquare": (lambda x, **o: np.sum(x * x, **o), -2, 2),
    "ReduceLogSum": (lambda x, **o: np.log(np.sum(x, **o)), 0.1, 2),
    "ReduceLogSumExp": (log_sum_exp, -2, 2),
}
LIMITS = {"float": {"rtol": 1e-5, "atol": 3e-6}, "double": {"rtol": 1e-12, "atol": 1e-13},
          "float16": {"rtol": 2e-3, "atol": 3e-3}, "bfloat16": {"rtol": 1e-2, "atol": 2e-2}}


def cases(op):
    axes_input = 13 if op == "ReduceSum" else 18
    exact = op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare")
    orders = op in ("ReduceMax", "ReduceMin")

    def generate(rng):
        opset = choice(rng, [1, 11, 13, 18, 20, 26])
        shape = random_shape(rng, largest=6, zeros=op != "ReduceMean")
        rank = len(shape)
        count = int(rng.integers(0, rank + 1))
        axes = [int(a) for a in rng.permutation(rank)[:count]]
        axes = [a - rank if opset > 1 and rng.random() < 0.3 else a for a in axes]
        attrs = {"keepdims": int(rng.integers(2))} if rng.random() < 0.7 else {}
        kind = any_float(rng)
        _, low, high = REDUCTIONS[op]
        tensor, extra = reals(rng, shape, kind, low, high), LIMITS[kind]
        if exact and rng.random() < 0.3 and 0 not in shape:
            dtypes = [np.int32, np.int64, np.uint32, np.uint64] + ([np.int8, np.uint8] if orders else [])
            tensor, extra = integers(rng, shape, choice(rng, dtypes), -2, 2), {}
        elif orders and opset >= 20 and rng.random() < 0.3:
            tensor, extra = rng.random(shape) < 0.5, {}
        inputs, noop = [tensor], 0
        if opset < axes_input:
            if axes:
                attrs["axes"] = axes
        else:
            if axes or rng.random() < 0.4:
                inputs.append(np.array(axes, np.int64))
            if rng.random() < 0.5:
                noop = attrs["noop_with_empty_axes"] = int(rng.integers(2))
        reduced = tuple(sorted(a % rank for a in axes)) if axes else () if noop else tuple(range(rank))
        return {"inputs": inputs, "attrs": attrs, "opset": opset, "axes": reduced, **extra}
    return generate


def register(op):
    function = REDUCTIONS[op][0]

    @reference(op, cases(op))
    def expected(inputs, attrs, axes, **_):
        tensor, keepdims = inputs[0], bool(attrs.get("keepdims", 1))
        is_bool = not isinstance(tensor, tuple) and tensor.dtype == bool
        if is_bool:
            gather = np.any if op == "ReduceMax" else np.all
            return [(gather(tensor, axis=axes, keepdims=keepdims), "bool")]
        result = function(values_of(tensor), axis=axes, keepdims=keepdims)
        whole = not isinstance(tensor, tuple) and tensor.dtype.kind in "iu"
        return [np.asarray(result).astype(np.int64).astype(tensor.dtype) if whole else result]


for name in REDUCTIONS:
    register(name)

F32 = np.float32
rejects("ReduceSum", [np.ones((2, 3), F32), np.array([2], np.int64)], says="axis", opset=13)
rejects("ReduceSum", [np.ones((2, 3), F32), np.array([1], np.int64)], says="input", opset=12)
rejects("ReduceMax", [np.ones((2, 3), F32), np.array([1], F32)], says="float", opset=18)
rejects("ReduceMean", [np.ones((2, 3), bool)], says="bool", opset=18)
rejects("ReduceL2", [np.ones((2, 3), F32)], {"axes": [0]}, says="axes", opset=18)
