"""The optimizers of ai.onnx.preview.training, from the text of Operators.md."""
import numpy as np

from float_types import reals, tolerance
from harness import choice, random_shape, reference, rejects

DOMAIN = "ai.onnx.preview.training"


def optimizer_cases(states, attrs):
    def generate(rng):
        kind = choice(rng, ["float", "double"])
        count = int(rng.integers(1, 4))
        shapes = [random_shape(rng, most=4) for _ in range(count)]
        if rng.random() < 0.1:
            shapes[0] = [20000]
        inputs = [reals(rng, choice(rng, [[], [1]]), choice(rng, ["float", "double"]), 0, 0.5), np.array(int(rng.integers(0, 9)), np.int64)]
        for part in range(2 + states):
            inputs += [reals(rng, shape, kind, 0.1 if part >= 2 else -2, 2) for shape in shapes]
        return {"inputs": inputs, "attrs": attrs(rng), "opset": 1, "domain": DOMAIN, "outputs": count * (1 + states), "count": count,
                **tolerance(kind)}
    return generate


def run(inputs, count, states, step):
    rate, updates = float(np.asarray(inputs[0]).ravel()[0]), int(inputs[1])
    parts = [[t.astype(np.float64) for t in inputs[2 + p * count:2 + (p + 1) * count]] for p in range(2 + states)]
    results = [step(rate, updates, *(part[i] for part in parts)) for i in range(count)]
    return [results[i][part] for part in range(1 + states) for i in range(count)]


def reals_of(attrs):
    return {key: float(np.float32(value)) for key, value in attrs.items() if not isinstance(value, str)}


@reference("Adagrad", optimizer_cases(1, lambda rng: {"decay_factor": float(rng.uniform(0, 1)), "epsilon": 1e-3, "norm_coefficient": 0.01}))
def adagrad(inputs, attrs, count, **_):
    a = reals_of(attrs)

    def step(rate, updates, x, g, h):
        g = a["norm_coefficient"] * x + g
        h = h + g * g
        return x - rate / (1 + updates * a["decay_factor"]) * g / (np.sqrt(h) + a["epsilon"]), h
    return run(inputs, count, 1, step)


@reference("Adam", optimizer_cases(2, lambda rng: {"alpha": 0.9, "beta": 0.99, "epsilon": 1e-3, "norm_coefficient": 0.01,
                                                   "norm_coefficient_post": float(rng.uniform(0, 0.1))}))
def adam(inputs, attrs, count, **_):
    a = reals_of(attrs)

    def step(rate, updates, x, g, v, h):
        g = a["norm_coefficient"] * x + g
        v = a["alpha"] * v + (1 - a["alpha"]) * g
        h = a["beta"] * h + (1 - a["beta"]) * g * g
        if updates > 0:
            rate = rate * np.sqrt(1 - a["beta"] ** updates) / (1 - a["alpha"] ** updates)
        return (1 - a["norm_coefficient_post"]) * (x - rate * v / (np.sqrt(h) + a["epsilon"])), v, h
    return run(inputs, count, 2, step)


@reference("Momentum", optimizer_cases(1, lambda rng: {"alpha": 0.9, "beta": 0.8, "norm_coefficient": 0.01,
                                                       "mode": choice(rng, ["standard", "nesterov"])}))
def momentum(inputs, attrs, count, **_):
    a = reals_of(attrs)

    def step(rate, updates, x, g, v):
        g = a["norm_coefficient"] * x + g
        v = a["alpha"] * v + (a["beta"] if updates > 0 else 1) * g
        return x - rate * (g + a["alpha"] * v if attrs["mode"] == "nesterov" else v), v
    return run(inputs, count, 1, step)


X = np.zeros(3, np.float32)
HEAD = [np.array(0.1, np.float32), np.array(1)]
rejects("Adam", [*HEAD, X, X, X], outputs=3, opset=1, domain=DOMAIN, says="4 inputs per tensor")
rejects("Adam", [*HEAD, X, X, X, X], outputs=2, opset=1, domain=DOMAIN, says="expected 3 outputs")
rejects("Adam", [*HEAD, X, X, X, X[:2]], outputs=3, opset=1, domain=DOMAIN, says="differ")
rejects("Adagrad", [*HEAD, X, X, X.astype(np.float64)], outputs=2, opset=1, domain=DOMAIN, says="one type")
rejects("Adagrad", [np.zeros(2, np.float32), HEAD[1], X, X, X], outputs=2, opset=1, domain=DOMAIN, says="one number")
rejects("Momentum", [*HEAD, X, X, X], {"alpha": 0.9, "beta": 0.8, "norm_coefficient": 0.01, "mode": "fast"}, outputs=2, opset=1,
        domain=DOMAIN, says="fast")
rejects("Momentum", [*HEAD, X, X, X], {"alpha": 0.9, "norm_coefficient": 0.01, "mode": "standard"}, outputs=2, opset=1, domain=DOMAIN,
        says="'beta' is missing")
