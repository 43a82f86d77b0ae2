"""Runs one operator through the command and compares it with a plain numpy reference.

    case(op, inputs, attrs, outputs=1, opset=21, ...) -> list of arrays that plimsoll computed
    check(op, expected_fn, generator, count, seed)    -> number of failures, printed with what reproduces them

A family's file registers its operators with `@reference("Op")` (below); run.py finds and runs them.
Inputs: numpy arrays, None for an absent one, strings as object arrays, and (bits, type) where numpy has no such
type (model_file.py). Outputs of such types come back widened: float32, int8 or uint8 (see apps/cli/npy.cpp).
Sequences, optionals and maps are Sequence, Optional and Map (model_file.py); they come back as lists of arrays, maps as dicts, an
optional that holds nothing as None. With `construct`, sequences of the inputs are made in the model from tensors.
"""
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import traceback

import numpy as np

from fork_server import ForkServer
from model_file import (TYPE_NAMES, Graph, Map, Node, Optional, Sequence, encode_model, encode_value, tensor_shape,
                        tensor_type, value_type)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEFAULT_OPSET = 21
TOLERANCE = {"float": 1e-5, "double": 1e-11, "float16": 2e-3, "bfloat16": 1e-2}  # relative; others are exact
REFERENCES, REJECTIONS = [], []
FLAGS = []  # further arguments of `plimsoll run`, such as --poison; run.py sets them
FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None  # of the models and values, which live for one run
SANITIZED_COMMANDS_PER_FORK = 200  # each fork ends with a search for leaks
SERVERS = {}  # of this process, by its id: a fork of ours has its own


class Refused(Exception):
    """plimsoll answered with an Error."""


def command():
    return os.environ.get("PLIMSOLL", os.path.join(ROOT, "build", "plimsoll"))


def is_sanitized():
    """The command was built with the address sanitizer."""
    with open(command(), "rb") as file:
        return b"libasan.so" in file.read()


def died(code, complaint):
    """It ended by a signal, or by a sanitizer's finding, whose exit code an Error may have too."""
    return code < 0 or "Sanitizer" in complaint or ": runtime error: " in complaint


def run_command(arguments, folder):
    """The exit code and what was printed to stdout and stderr."""
    library = os.path.join(os.path.dirname(command()), "tests", "fork_server.so")
    if not os.path.exists(library):
        done = subprocess.run([command(), *arguments], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr
    if os.getpid() not in SERVERS:
        SERVERS[os.getpid()] = ForkServer(command(), library, SANITIZED_COMMANDS_PER_FORK if is_sanitized() else 1)
    files = [os.path.join(folder, name) for name in ("stdout", "stderr")]
    code = SERVERS[os.getpid()].run([command(), *arguments], *files)
    texts = []
    if not all(map(os.path.exists, files)):  # another program's --clean-leftovers once emptied /dev/shm
        raise AssertionError(f"ended with {code} before it began; its folder is {'there' if os.path.isdir(folder) else 'gone'}")
    for path in files:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    return code, *texts


def call_shared(index):
    return call_shared.function(index)


def in_parallel(function, count, jobs, chunk=1):
    """function(i) for i below count in that many processes, forks of this one; the results in order."""
    if jobs == 1:
        yield from map(function, range(count))
        return
    call_shared.function = function  # forks have it, so that it need not be one that can be sent
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap(call_shared, range(count), chunk)


def run_model(model, inputs, flags=()):
    """Runs the bytes of a model on {name: tensor}. Gives the outputs and the names of their ONNX types."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(model)
        arguments = ["run", path, "--json", "--output", os.path.join(folder, "out"), *FLAGS, *flags]
        for index, (name, tensor) in enumerate(inputs.items()):
            with open(os.path.join(folder, f"{index}.pb"), "wb") as file:
                file.write(encode_value(name, tensor))
            arguments += ["--input", f"{name}={folder}/{index}.pb"]
        code, printed, complaint = run_command(arguments, folder)
        if died(code, complaint):
            raise AssertionError(f"died by {f'signal {-code}' if code < 0 else 'a sanitizer'}: {complaint}")
        if code != 0:
            raise Refused(complaint.strip())
        described = json.loads(printed)["outputs"]
        arrays = [load_value(os.path.join(folder, "out", str(i)), output) for i, output in enumerate(described)]
        return arrays, [output["type"] for output in described]


def load_value(path, described):
    """What `run --output` wrote: an array, a list, a dict of keys and values, or None."""
    kind = described.get("kind", "tensor")
    if kind == "tensor":
        return np.load(path + ".npy")
    if kind == "optional":
        return None
    if kind == "map":
        keys, values = (np.load(os.path.join(path, f"{part}.npy")) for part in ("keys", "values"))
        return dict(zip(keys.tolist(), values.tolist()))
    elements = [os.path.join(path, str(i)) for i in range(described["count"])]
    return [load_value(e, {"kind": "map" if os.path.isdir(e) else "tensor"}) for e in elements]


def dims_of(name, tensor, symbolic):
    dims = tensor_shape(tensor)
    return [f"{name}_{d}" for d in range(len(dims))] if symbolic else list(dims)


def one_node_model(op, inputs, attrs, outputs, opset, domain, constant_inputs, symbolic, input_types, construct=False):
    """outputs: how many, or a list of flags (False: the optional output is absent)."""
    names = ["" if tensor is None else f"x{i}" for i, tensor in enumerate(inputs)]
    present = [True] * outputs if isinstance(outputs, int) else outputs
    output_names = [f"y{i}" if wanted else "" for i, wanted in enumerate(present)]
    given, initializers, infos, nodes = {}, {}, [], []
    for i, tensor in enumerate(inputs):
        if tensor is None:
            continue
        if i in constant_inputs:
            initializers[names[i]] = tensor
            continue
        if isinstance(tensor, Sequence) and tensor.tensors and construct:
            parts = [f"{names[i]}_part{p}" for p in range(len(tensor.tensors))]
            given.update(zip(parts, tensor.tensors))
            infos += [(p, tensor_type(t), dims_of(p, t, symbolic)) for p, t in zip(parts, tensor.tensors)]
            nodes.append(Node("SequenceConstruct", parts, [names[i]]))
            continue
        given[names[i]] = tensor
        if isinstance(tensor, (Sequence, Optional, Map)):
            infos.append((names[i], value_type(tensor), None))
            continue
        element = input_types[i] if input_types else tensor_type(tensor)
        infos.append((names[i], element, dims_of(names[i], tensor, symbolic)))
    nodes.append(Node(op, names, output_names, attrs, domain))
    graph = Graph(nodes, infos, [n for n in output_names if n], initializers)
    opsets = {"": opset} if not domain else {"": DEFAULT_OPSET, domain: opset}
    return encode_model(graph, opsets), given


def case(op, inputs, attrs=None, outputs=1, opset=DEFAULT_OPSET, domain="", constant_inputs=(), symbolic=False,
         input_types=None, flags=(), with_types=False, construct=False, **_):
    """Runs one node. symbolic: the model names its dimensions instead of stating them."""
    model, given = one_node_model(op, inputs, attrs or {}, outputs, opset, domain, constant_inputs, symbolic, input_types,
                                  construct)
    arrays, types = run_model(model, given, flags)
    return (arrays, types) if with_types else arrays


def compare(found, found_type, expected, rtol=None, atol=0.0):
    """None if equal, else what differs. expected: an array, or (array, type name) where the type matters too; a list of
    them; a dict; None for an optional that holds nothing."""
    if expected is None or isinstance(expected, (list, dict)) or found is None or isinstance(found, (list, dict)):
        return compare_others(found, found_type, expected, rtol, atol)
    if isinstance(expected, tuple):
        expected, wanted = expected
        wanted = TYPE_NAMES[wanted] if isinstance(wanted, int) else wanted
        if wanted != found_type:
            return f"type {found_type}, expected {wanted}"
    expected = np.asarray(expected)
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if found.dtype.kind in "US" or expected.dtype.kind in "OUS":
        bad = np.asarray([str(a) != str(b) for a, b in zip(found.ravel(), expected.ravel())], bool)
    else:
        rtol = TOLERANCE.get(found_type, 0.0) if rtol is None else rtol
        if rtol == 0 and atol == 0:
            bad = ~np.equal(found, expected)
        else:
            bad = ~np.isclose(found, expected, rtol, atol)
        if expected.dtype.kind in "fc":
            bad &= ~(np.isnan(found) & np.isnan(expected))
        bad = bad.ravel()
    if not bad.any():
        return None
    at = int(np.argmax(bad))
    return (f"{int(bad.sum())} of {bad.size} elements differ, the first at {np.unravel_index(at, found.shape)}: "
            f"{found.ravel()[at]!r}, expected {expected.ravel()[at]!r}")


def compare_others(found, found_type, expected, rtol, atol):
    if isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return f"{len(found)} elements, expected {len(expected)}"
        for i, (one, wanted) in enumerate(zip(found, expected)):
            difference = compare(one, found_type, wanted, rtol, atol)
            if difference:
                return f"element {i}: {difference}"
        return None
    if isinstance(expected, dict) and isinstance(found, dict):
        if list(found) != list(expected):
            return f"keys {list(found)}, expected {list(expected)}"
        return compare(np.asarray(list(found.values())), found_type, np.asarray(list(expected.values())), rtol, atol)
    return None if found is None and expected is None else f"{type(found)}, expected {type(expected)}"


def run_case(op, expected_fn, arguments):
    """One case: None if it passes, else what is wrong."""
    expected = expected_fn(**arguments)
    found, types = case(op, with_types=True, **arguments)
    if len(found) != len(expected):
        return f"{len(found)} outputs, expected {len(expected)}"
    for i, wanted in enumerate(expected):
        difference = compare(found[i], types[i], wanted, arguments.get("rtol"), arguments.get("atol", 0.0))
        if difference:
            return f"output {i}: {difference}"
    return None


def describe_value(value):
    if isinstance(value, Sequence):
        return f"sequence{[describe_value(t) for t in value.tensors]}"
    if isinstance(value, Optional):
        return f"optional({None if value.value is None else describe_value(value.value)})"
    if isinstance(value, Map):
        return f"map({describe_value(value.keys)}, {describe_value(value.values)})"
    return f"{TYPE_NAMES[tensor_type(value)]}{list(tensor_shape(value))}"


def describe(arguments):
    parts = []
    for key, value in arguments.items():
        if key == "inputs":
            value = ["-" if t is None else describe_value(t) for t in value]
        parts.append(f"{key}={value}")
    return ", ".join(parts)


def check(op, expected_fn, generator, count=10, seed=0):
    """generator(rng) -> arguments of case(), with `inputs`; expected_fn(**arguments) -> list of arrays.

    Every second case names its dimensions, every third has inputs that are part of the model, unless it says itself.
    """
    failures = 0
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        arguments = generator(rng)
        arguments.setdefault("symbolic", bool(index % 2))
        if index % 3 == 2 and "constant_inputs" not in arguments:
            arguments["constant_inputs"] = [i for i, value in enumerate(arguments["inputs"])
                                            if i and not isinstance(value, (Sequence, Optional, Map)) and rng.random() < 0.5]
        try:
            with np.errstate(all="ignore"):
                difference = run_case(op, expected_fn, arguments)
        except Refused as error:
            difference = f"refused: {error}"
        except Exception:  # a fault of the reference is a failure too, and the other cases still run
            difference = traceback.format_exc()
        if difference:
            failures += 1
            print(f"{op} case {index} seed {seed} ({describe(arguments)}): {difference}", file=sys.stderr)
    return failures


def reference(op, generator, name=None):
    """Registers the decorated function as the reference of `op` for cases of `generator`."""
    def register(expected_fn):
        REFERENCES.append((name or op, op, expected_fn, generator, expected_fn.__module__))
        return expected_fn
    return register


def rejects(op, inputs, attrs=None, says="", name=None, **arguments):
    """Registers a case that must end in an Error whose text has `says` in it."""
    REJECTIONS.append((name or op, op, dict(arguments, inputs=inputs, attrs=attrs), says))


def check_rejection(op, arguments, says):
    try:
        case(op, **dict(arguments, flags=[*arguments.get("flags", ()), "--strict"]))
    except Refused as error:
        if says in str(error):
            return None
        return f"expected an Error that says '{says}', found: {error}"
    except AssertionError as error:
        return str(error)
    return f"expected an Error that says '{says}', but it ran"


def random_shape(rng, most=6, least=0, largest=5, zeros=True):
    """Rank and sizes: mostly small, with sizes of one, and now and then of zero."""
    rank = int(rng.integers(least, most + 1))
    shape = [int(rng.integers(1, (largest if rank < 5 else 3) + 1)) for _ in range(rank)]
    if zeros and rank and rng.random() < 0.1:
        shape[int(rng.integers(rank))] = 0
    return shape


def broadcastable(rng, shape):
    """A shape that broadcasts to `shape`."""
    cut = int(rng.integers(0, len(shape) + 1)) if rng.random() < 0.5 else 0
    return [1 if rng.random() < 0.3 else size for size in shape[cut:]]


def choice(rng, values):
    return values[int(rng.integers(len(values)))]
