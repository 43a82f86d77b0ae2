"""LSTM, GRU and RNN, from the equations of Operators.md."""
import numpy as np

from float_types import any_float, reals, tolerance, values_of
from harness import choice, reference, rejects

ACTIVATIONS = {
    "Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)), "Tanh": lambda x, a, b: np.tanh(x), "Relu": lambda x, a, b: np.maximum(x, 0),
    "Affine": lambda x, a, b: a * x + b, "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "ThresholdedRelu": lambda x, a, b: np.where(x >= a, x, 0), "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1), "Elu": lambda x, a, b: np.where(x >= 0, x, a * np.expm1(x)),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)), "Softplus": lambda x, a, b: np.logaddexp(0, x),
}
TAKES_ALPHA = {"Affine": 1.0, "LeakyRelu": float(np.float32(0.01)), "ScaledTanh": 1.0, "HardSigmoid": float(np.float32(0.2)), "Elu": 1.0,
               "ThresholdedRelu": 1.0}
TAKES_BETA = {"Affine": 0.0, "ScaledTanh": 1.0, "HardSigmoid": 0.5}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
SMOOTH = [name for name in ACTIVATIONS if name != "ThresholdedRelu"]  # a jump is no test of accuracy


def functions(op, attrs, directions):
    """For each direction the list of functions, with alphas and betas used up in their order."""
    names = attrs.get("activations", DEFAULTS[op] * directions)
    alphas, betas = list(attrs.get("activation_alpha", [])), list(attrs.get("activation_beta", []))
    result = []
    for name in names:
        alpha = (alphas.pop(0) if alphas else TAKES_ALPHA[name]) if name in TAKES_ALPHA else 0
        beta = (betas.pop(0) if betas else TAKES_BETA[name]) if name in TAKES_BETA else 0
        result.append(lambda x, f=ACTIVATIONS[name], a=alpha, b=beta: f(x, a, b))
    each = len(DEFAULTS[op])
    return [result[d * each:(d + 1) * each] for d in range(directions)]


def recurrent_cases(op):
    def generate(rng):
        kind = any_float(rng)
        steps, batch, width, hidden = (int(rng.integers(1, 6)) for _ in range(4))
        if rng.random() < 0.2:
            width, hidden = 33, 20
        direction = choice(rng, ["forward", "reverse", "bidirectional"])
        d, n = 2 if direction == "bidirectional" else 1, GATES[op]
        layout = int(rng.integers(2))
        state = (batch, d, hidden) if layout else (d, batch, hidden)

        def floats(*shape):
            return reals(rng, shape, kind, -0.7, 0.7)
        optional = [floats(d, 2 * n * hidden), rng.integers(0, steps + 1, batch).astype(np.int32), floats(*state)]
        if op == "LSTM":
            optional += [floats(*state), floats(d, 3 * hidden)]
        inputs = [floats(batch, steps, width) if layout else floats(steps, batch, width),
                  floats(d, n * hidden, width), floats(d, n * hidden, hidden)]
        inputs += [tensor if rng.random() < 0.6 else None for tensor in optional]
        while inputs[-1] is None:
            inputs.pop()
        attrs = {"hidden_size": hidden, "direction": direction, "layout": layout}
        if rng.random() < 0.4:
            attrs["activations"] = [choice(rng, SMOOTH) for _ in DEFAULTS[op] * d]
            if rng.random() < 0.5:
                attrs["activation_alpha"] = [0.5] * 6
                attrs["activation_beta"] = [0.25] * 6
        if rng.random() < 0.3:
            attrs["clip"] = 0.5
        if op == "LSTM" and rng.random() < 0.3:
            attrs["input_forget"] = 1
        if op == "GRU" and rng.random() < 0.5:
            attrs["linear_before_reset"] = 1
        outputs = [True] * (3 if op == "LSTM" else 2)
        if rng.random() < 0.3:
            outputs[0] = False
        limits = tolerance(kind)
        constant = [] if rng.random() < 0.5 else [1, 2] + ([3] if len(inputs) > 3 and inputs[3] is not None else [])
        return {"inputs": inputs, "attrs": attrs, "opset": choice(rng, [14, 22]), "outputs": outputs, "constant_inputs": constant,
                "rtol": limits["rtol"], "atol": limits["atol"] * 4}
    return generate


def lstm_step(x, h, c, w, r, wb, rb, p, f, g, hh, attrs, clip):
    i, o, forget, cell = np.split(x @ w.T + h @ r.T + wb + rb, 4, -1)
    pi, po, pf = np.split(p, 3)
    i = f(clip(i + pi * c))
    forget = 1 - i if attrs.get("input_forget") else f(clip(forget + pf * c))
    c = forget * c + i * g(clip(cell))
    return f(clip(o + po * c)) * hh(c), c


def gru_step(x, h, w, r, wb, rb, f, g, attrs, clip):
    wz, wr, wh = np.split(w, 3)
    rz, rr, rh = np.split(r, 3)
    wbz, wbr, wbh = np.split(wb, 3)
    rbz, rbr, rbh = np.split(rb, 3)
    z = f(clip(x @ wz.T + h @ rz.T + wbz + rbz))
    reset = f(clip(x @ wr.T + h @ rr.T + wbr + rbr))
    if attrs.get("linear_before_reset"):
        candidate = g(clip(x @ wh.T + reset * (h @ rh.T + rbh) + wbh))
    else:
        candidate = g(clip(x @ wh.T + (reset * h) @ rh.T + rbh + wbh))
    return (1 - z) * candidate + z * h


def expected(op, inputs, attrs, outputs):
    inputs = inputs + [None] * (8 - len(inputs))
    x, w, r, b = (values_of(t) for t in inputs[:4])
    if attrs["layout"]:
        x = x.transpose(1, 0, 2)
    steps, batch, _ = x.shape
    d, hidden, n = w.shape[0], r.shape[2], GATES[op]
    lengths = inputs[4] if inputs[4] is not None else np.full(batch, steps)
    b = np.zeros((d, 2 * n * hidden)) if b is None else b

    def state(tensor):
        if tensor is None:
            return np.zeros((d, batch, hidden))
        return values_of(tensor).transpose(1, 0, 2) if attrs["layout"] else values_of(tensor)
    h, c = state(inputs[5]).copy(), state(inputs[6]).copy()
    p = np.zeros((d, 3 * hidden)) if inputs[7] is None else values_of(inputs[7])
    y = np.zeros((steps, d, batch, hidden))
    most = attrs.get("clip", np.inf)

    def clip(v):
        return np.clip(v, -most, most)
    each = functions(op, attrs, d)
    for k in range(d):
        wb, rb = np.split(b[k], 2)
        backward = k == 1 or attrs["direction"] == "reverse"
        for s in range(batch):
            order = range(int(lengths[s]))
            for t in (reversed(order) if backward else order):
                xt, ht = x[t, s], h[k, s]
                if op == "LSTM":
                    h[k, s], c[k, s] = lstm_step(xt, ht, c[k, s], w[k], r[k], wb, rb, p[k], *each[k], attrs, clip)
                elif op == "GRU":
                    h[k, s] = gru_step(xt, ht, w[k], r[k], wb, rb, *each[k], attrs, clip)
                else:
                    h[k, s] = each[k][0](clip(xt @ w[k].T + ht @ r[k].T + wb + rb))
                y[t, k, s] = h[k, s]
    results = [y, h, c] if op == "LSTM" else [y, h]
    if attrs["layout"]:
        results = [results[0].transpose(2, 0, 1, 3)] + [v.transpose(1, 0, 2) for v in results[1:]]
    if isinstance(inputs[0], np.ndarray) and inputs[0].dtype == np.float16:  # activations without a bound may leave the type
        results = [np.where(np.abs(v) >= 65520, np.copysign(np.inf, v), v) for v in results]
    return [result for result, wanted in zip(results, outputs) if wanted]


def register(op):
    @reference(op, recurrent_cases(op))
    def compute(inputs, attrs, outputs, **_):
        return expected(op, inputs, attrs, outputs)


for name in GATES:
    register(name)

F32 = np.float32
X, W, R = np.ones((2, 1, 3), F32), np.ones((1, 12, 3), F32), np.ones((1, 12, 4), F32)
rejects("GRU", [X, W, R], {"hidden_size": 5}, says="hidden_size")
rejects("GRU", [X, W, R], {"direction": "up"}, says="direction")
rejects("GRU", [X, W, R], {"activations": ["Sigmoid"]}, says="activations")
rejects("GRU", [X, W, R], {"activations": ["Sigmoid", "Nonsense"]}, says="nonsense")
rejects("GRU", [X, W[:, :11], R], {}, says="input 1")
rejects("GRU", [X[0], W, R], {}, says="rank")
rejects("GRU", [X, W, R, None, np.array([3], np.int32)], {}, says="sequence_lens")
rejects("GRU", [X, W, R, None, np.array([-1], np.int32)], {}, says="sequence_lens")
rejects("GRU", [X, W.astype(np.float64), R], {}, says="double")
rejects("RNN", [X, W, R], {"linear_before_reset": 1}, says="linear_before_reset")
rejects("RNN", [X, W[:, :4], R[:, :4], np.ones((1, 7), F32)], {}, says="input 3")
rejects("LSTM", [X, W, R], {"linear_before_reset": 1}, says="linear_before_reset")
