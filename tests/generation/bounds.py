"""How far the outputs of one node in two right runs can be apart, element by element.

u = 2^-24 is the unit roundoff of float. The two runs give the node a1 and a2, whose difference e(a) = |a1 - a2| is known. What they answer
is apart by what the exact function makes of e, plus what each of the two runs rounds on its own (r = u |y1| + u |y2|: one correct rounding
in each):

    Add, Sub              e(a) + e(b)                                  r
    Mul                   |a1| e(b) + |b2| e(a)                        r
    Div                   (e(a) + |y2| e(b)) / |b1|                    r
    Sqrt                  e / (sqrt(a1) + sqrt(a2))                    r
    Pow 2                 e (|a1| + |a2|)                              2r (a library's pow: within one ulp)
    ReduceMean of n       mean of e                                    2 g(n) mean |x|, g(n) = n u / (1 - n u): a sum in any order
    MatMul over k         |A1| e(B) + e(A) |B2|                        2 g(k) |A| |B| (Higham, Accuracy and Stability, 3.5)
    Softmax               y (exp(d) - 1); d = a + max a + 2 g(n) + 2u with a = e + 2u |x - max| + 16u: the exponent's own change, the
                          rounding of x - max, four ulp of exp in each run, the sum of n, the quotient. What lies 150 below the largest
                          counts nothing in float (exp(-150) < 2^-149), whatever its bound
    Erf, Sin, Cos, Sigmoid, Tanh   the largest slope times e           16u: four ulp of 1 in each run, as they are made of polynomials
    DynamicQuantizeLinear's scale  what largest and smallest may move, / 255     4u s: a difference and a quotient in each run
    DequantizeLinear      |x - zero| e(scale)                          r
    Cast of an integer    0: both round the same integer
    moving of elements    e is moved likewise                          0

Every bound holds to all orders (exact identities, no derivative is cut off) and for the worst case: no constant is fitted. The bounds are of
one node, not of the way from the model's inputs: worst cases piled up over two layers of attention exceed the values themselves (tried
on minilm_l6), and would say nothing.
"""
import numpy as np
import onnx

U = 2.0 ** -24
FUNCTION = 16 * U
SLOPES = {"Erf": 2 / np.sqrt(np.pi), "Sin": 1.0, "Cos": 1.0, "Sigmoid": 0.25, "Tanh": 1.0}
NEGLIGIBLE = 150.0


class Unknown(Exception):
    """There is no bound for this operator: nothing can be proved."""


def gamma(n):
    return n * U / (1 - n * U)


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def softmax(x1, x2, y, e, axis):
    largest = x2.max(axis, keepdims=True)
    counts = x2 + e > largest - NEGLIGIBLE
    a = np.where(counts, e + 2 * U * np.where(counts, np.abs(x2 - largest), 0) + FUNCTION, 0)
    d = a + a.max(axis, keepdims=True) + 2 * gamma(x2.shape[axis]) + 2 * U
    return y * np.expm1(d) + 2.0 ** -126  # what is flushed to zero in one of them


def mean(x1, x2, e, y):
    n = x2.size // max(y.size, 1)
    axis = [d for d in range(x2.ndim) if y.shape[d] != x2.shape[d]] if y.ndim == x2.ndim else None
    if axis is None:
        raise Unknown("ReduceMean without keepdims")
    average = lambda v: v.mean(tuple(axis), keepdims=True)  # noqa: E731
    return average(e) + 2 * gamma(n) * average(np.maximum(np.abs(x1), np.abs(x2)))


def sliced(e, starts, ends, axes=None, steps=None):
    where = [slice(None)] * e.ndim
    for i, (start, end) in enumerate(zip(starts, ends)):
        step = int(steps[i]) if steps is not None else 1
        where[int(axes[i]) if axes is not None else i] = slice(int(start), int(end) if step > 0 or end >= -e.shape[0] else None, step)
    return e[tuple(where)]


def moved(node, t, e, y):
    """Of operators that only move elements: their bounds moved, or None."""
    op, attrs = node.op_type, attributes(node)
    if op in ("Reshape", "Unsqueeze", "Squeeze", "Flatten"):
        return e[0].reshape(y.shape)
    if op in ("Neg", "Identity", "Trilu"):
        return e[0]
    if op == "Cast":
        return e[0] if t[0].dtype.kind == "f" else np.zeros(y.shape)
    if op == "Transpose":
        return e[0].transpose(attrs.get("perm"))
    if op == "Concat":
        return np.concatenate(e, attrs["axis"])
    if op == "Slice":
        return sliced(e[0], *t[1:])
    if op == "Gather":
        return np.take(e[0], t[1], attrs.get("axis", 0))
    if op == "Expand":
        return np.broadcast_to(e[0], y.shape)
    if op == "Where":
        return np.where(t[0], e[1], e[2])
    return np.zeros(y.shape) if op == "ConstantOfShape" else None


def computed(node, o, t, e, z, y):
    """Of operators that compute: o and t are the two runs' inputs, e their bounds, z and y what they answered."""
    op, rounding = node.op_type, U * np.abs(z) + U * np.abs(y)
    if op in ("Add", "Sub"):
        return e[0] + e[1] + rounding
    if op == "Mul":
        return np.abs(o[0]) * e[1] + np.abs(t[1]) * e[0] + rounding
    if op == "Div":
        return (e[0] + np.abs(y) * e[1]) / np.abs(o[1]) + rounding
    if op == "Sqrt":
        return e[0] / np.maximum(np.sqrt(o[0]) + np.sqrt(t[0]), 1e-300) + rounding
    if op == "Pow" and (t[1] == 2).all():
        return e[0] * (np.abs(o[0]) + np.abs(t[0])) + 2 * rounding
    if op == "ReduceMean":
        return mean(o[0], t[0], e[0], y)
    if op == "MatMul":
        size = np.maximum(np.abs(o[0]), np.abs(t[0])) @ np.maximum(np.abs(o[1]), np.abs(t[1]))
        return np.abs(o[0]) @ e[1] + e[0] @ np.abs(t[1]) + 2 * gamma(t[0].shape[-1]) * size
    if op == "Softmax":
        return softmax(o[0], t[0], y, e[0], attributes(node).get("axis", -1))
    if op in SLOPES:
        return SLOPES[op] * e[0] + FUNCTION
    if op == "DequantizeLinear":
        zero = t[2] if len(t) > 2 else 0.0
        return np.abs(t[0] - zero) * e[1] + rounding if t[1].size == 1 else None
    return None


def scale_bound(x, e, s):
    """Of DynamicQuantizeLinear: how far its scale may move if each x may move by its e."""
    def most(sign):  # the larger of 0 and the largest of sign * x
        top, high, low = (max(0.0, float(v.max(initial=0))) for v in (sign * x, sign * x + e, sign * x - e))
        return max(high - top, top - low)
    return (most(1) + most(-1)) / 255 + 4 * U * s


def apart(a, b):
    """|a - b|; equal infinities, and two that are no numbers, are not apart."""
    with np.errstate(all="ignore"):
        return np.where((a == b) | ((a != a) & (b != b)), 0.0, np.abs(a.astype(np.float64) - b))


def bound(node, o, t, z, y):
    """The bound of the one output of a node: o and t are the inputs that the two runs gave it, z and y what they answered."""
    e = [apart(a, b) for a, b in zip(o, t)]
    with np.errstate(all="ignore"):
        found = moved(node, t, e, y)
        if found is None:
            o, t = ([v.astype(np.float64) for v in values] for values in (o, t))
            found = computed(node, o, t, e, z.astype(np.float64), y.astype(np.float64))
        if found is None:
            raise Unknown(node.op_type)
        # An infinity, and what is no number, must be the same in both.
        return np.where(np.isfinite(y), np.broadcast_to(found, y.shape), 0.0)
