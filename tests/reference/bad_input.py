#!/usr/bin/python3
"""Every operator given what it cannot do with: bad_input.py [--count N] [--seed S] [NAME...]

A case of the references beside this file is spoiled in one way: an input too few or too many, of another type, rank or size; an
attribute that is missing, of another kind, or out of all bounds; a NaN or the largest number where an index may belong. It runs, or
it ends in an Error that names the node or the value; it never ends by a signal, never takes more than a limit of memory or time.
"""
import argparse
import os
import resource
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import numpy as np  # noqa: E402

import harness  # noqa: E402
import run as families  # noqa: E402

MOST_MEMORY = 4 << 30
TYPES = [np.float32, np.int64, np.int32, np.uint8, np.bool_, np.float64, np.float16]


def arrays(arguments):
    """Positions of inputs that are plain arrays of numbers."""
    return [i for i, t in enumerate(arguments["inputs"]) if isinstance(t, np.ndarray) and t.dtype != object]


def pick(rng, values):
    return values[int(rng.integers(len(values)))] if len(values) else None


def fewer(rng, a):
    a["inputs"] = a["inputs"][:-1]


def more(rng, a):
    a["inputs"] = [*a["inputs"], *[t for t in a["inputs"] if t is not None][:1] * int(rng.integers(1, 4))]


def absent(rng, a):
    a["inputs"][int(rng.integers(len(a["inputs"])))] = None


def other_type(rng, a):
    i = pick(rng, arrays(a))
    if i is not None:
        a["inputs"][i] = a["inputs"][i].astype(pick(rng, TYPES))


def words(rng, a):
    i = pick(rng, arrays(a))
    if i is not None:
        a["inputs"][i] = np.full(a["inputs"][i].shape, "word", object)


def other_rank(rng, a):
    i = pick(rng, arrays(a))
    if i is not None:
        x = a["inputs"][i]
        a["inputs"][i] = pick(rng, [x[None], x.reshape(-1), x[..., None], x.ravel()[0].reshape(()) if x.size else x[None], x[None, None, None]])


def other_size(rng, a):
    i = pick(rng, [j for j in arrays(a) if a["inputs"][j].ndim])
    if i is not None:
        x = a["inputs"][i]
        axis = int(rng.integers(x.ndim))
        a["inputs"][i] = pick(rng, [np.concatenate([x, x], axis), np.take(x, range(max(x.shape[axis] - 1, 0)), axis), np.take(x, [], axis)])


def extreme_values(rng, a):
    i = pick(rng, arrays(a))
    if i is None or a["inputs"][i].size == 0:
        return
    x = a["inputs"][i] = a["inputs"][i].copy()
    if x.dtype.kind == "f":
        values = [np.nan, np.inf, -np.inf, np.finfo(x.dtype).max]
    elif x.dtype.kind in "iu":
        values = [np.iinfo(x.dtype).max, np.iinfo(x.dtype).min, x.flat[0] + 1, 0]
    else:
        return
    x.flat[int(rng.integers(x.size))] = pick(rng, values)


def without_attribute(rng, a):
    name = pick(rng, list(a["attrs"]))
    if name is not None:
        del a["attrs"][name]


def other_attribute(rng, a):
    name = pick(rng, list(a["attrs"]))
    if name is None:
        return
    value = a["attrs"][name]
    others = [1 << 62, -1 << 62, -1, 0, 3, 0.5, float("nan"), "nonsense", [1, 2, 3], [1 << 62, -5], [0.5], [float("nan")]]
    if isinstance(value, int):
        others = [1 << 62, -(1 << 62), value + 1, -value - 1, 0.5, "nonsense", [value]]
    elif isinstance(value, list) and value and isinstance(value[0], int):
        others = [value[:-1] or [7], value + value, [-1] * len(value), [1 << 62] * len(value), [0] * len(value), value[0]]
    a["attrs"][name] = pick(rng, others)


def more_outputs(rng, a):
    wanted = a.get("outputs", 1)
    a["outputs"] = (wanted if isinstance(wanted, int) else len(wanted)) + int(rng.integers(1, 4))


SPOILS = [fewer, more, absent, other_type, words, other_rank, other_size, extreme_values, without_attribute, other_attribute, more_outputs]


def spoiled(rng, generator):
    arguments = dict(generator(rng))
    arguments["inputs"], arguments["attrs"] = list(arguments["inputs"]), dict(arguments.get("attrs") or {})
    names = []
    for spoil in [pick(rng, SPOILS) for _ in range(1 + (rng.random() < 0.2))]:
        if arguments["inputs"]:
            spoil(rng, arguments)
            names.append(spoil.__name__)
    if rng.random() < 0.4:
        arguments["constant_inputs"] = arrays(arguments)[1:]
    arguments["symbolic"] = bool(rng.integers(2))
    return arguments, " and ".join(names)


def outcome(op, arguments):
    """None, or what is wrong with how it ended."""
    try:
        harness.case(op, **arguments)
    except harness.Refused as error:
        text = str(error)
        if not text.startswith("plimsoll:") or not any(part in text for part in (op, "node '", "'x", "'y")):
            return f"an Error that names neither node nor value: {text}"
    except AssertionError as error:
        return str(error)
    except subprocess.TimeoutExpired:
        return "it did not end"
    except (KeyError, TypeError, OverflowError, ValueError, AttributeError):
        return None  # no such model can be written, or its answer read here
    return None


def limit_memory():
    if harness.is_sanitized():  # its shadow is larger than any limit of the kernel's kind
        os.environ["ASAN_OPTIONS"] = f"{os.environ.get('ASAN_OPTIONS', '')}:hard_rss_limit_mb={MOST_MEMORY >> 20}"
    else:
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    limit_memory()
    families.load_families()
    passed = failed = 0
    for name, op, _, generator, family in harness.REFERENCES:
        if not families.wanted(options.names, name, op, family):
            continue
        for index in range(options.count):
            with np.errstate(all="ignore"):
                arguments, how = spoiled(np.random.default_rng([options.seed, index]), generator)
            problem = outcome(op, arguments)
            passed, failed = passed + (problem is None), failed + (problem is not None)
            if problem:
                print(f"{name} case {index} seed {options.seed}, {how} ({harness.describe(arguments)}): {problem}", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
