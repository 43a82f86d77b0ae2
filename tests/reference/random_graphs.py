#!/usr/bin/python3
"""Random graphs over all operators: random_graphs.py [--count N] [--seed S] [NAME...]

A graph is made of several cases of the references beside this file. Before each input stand nodes that together change
nothing (Transpose and back, cut and joined, cast and back, either branch of an If, ...), behind some outputs nodes that only
move, and some values have further readers. So every answer is known from the references, while passes, aliases and placers
see graphs that nobody wrote. Each graph runs under the truths below and must give that answer under every one.
"""
import argparse
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import numpy as np  # noqa: E402

import harness  # noqa: E402
import run as families  # noqa: E402
from model_file import Graph, Node, Optional, Sequence, encode_model, tensor_shape, tensor_type, value_type  # noqa: E402

TRUTHS = [["--level", "none", "--placer", "naive"], ["--level", "none", "--poison"], ["--level", "all", "--placer", "naive", "--threads", "1"],
          ["--level", "all", "--poison", "--check-passes"]]
LEAST_OPSET = 13  # what the nodes around the cases are written in
WIDER = {"float32": "double", "float16": "float", "int8": "int32", "uint8": "int32", "int16": "int32", "int32": "int64", "bool": "int32"}
NARROWER = {"float32": "float", "float16": "float16", "int8": "int8", "uint8": "uint8", "int16": "int16", "int32": "int32", "bool": "bool"}


class GraphOfCases:
    """What is built: nodes, inputs that the caller gives, outputs with their expected arrays."""

    def __init__(self, rng):
        self.rng, self.count = rng, 0
        self.nodes, self.given, self.infos, self.initializers = [], {}, [], {}
        self.outputs = []  # (name, expected, rtol, atol)
        self.story = []

    def name(self, hint="v"):
        self.count += 1
        return f"{hint}{self.count}"

    def node(self, op, inputs, attrs=None, outputs=1, domain=""):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(Node(op, inputs, names, attrs, domain, self.name("n")))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        name = self.name("c")
        self.initializers[name] = array
        return name

    def integers(self, values):
        return self.constant(np.array(values, np.int64))

    def input(self, tensor, symbolic):
        name = self.name("x")
        self.given[name] = tensor
        if isinstance(tensor, (Sequence, Optional)):
            self.infos.append((name, value_type(tensor), None))
            return name
        dims = [f"{name}_{d}" for d in range(len(tensor_shape(tensor)))] if symbolic else list(tensor_shape(tensor))
        self.infos.append((name, tensor_type(tensor), dims))
        return name


# Each takes (graph, name, tensor) and gives the name of an equal value.

def same(graph, name, _):
    return graph.node("Identity", [name])


def transposed_and_back(graph, name, tensor):
    perm = [int(p) for p in graph.rng.permutation(len(tensor_shape(tensor)))]
    if not perm:
        return name
    turned = graph.node("Transpose", [name], {"perm": perm})
    return graph.node("Transpose", [turned], {"perm": [int(p) for p in np.argsort(perm)]})


def reshaped_and_back(graph, name, tensor):
    shape = list(tensor_shape(tensor))
    if 0 in shape:
        return name
    flat = graph.node("Reshape", [name, graph.integers([-1])])
    return graph.node("Reshape", [flat, graph.integers(shape)])


def deeper_and_back(graph, name, tensor):
    axes = graph.integers([int(graph.rng.integers(0, len(tensor_shape(tensor)) + 1))])
    return graph.node("Squeeze", [graph.node("Unsqueeze", [name, axes]), axes])


def cut_and_joined(graph, name, tensor):
    shape = tensor_shape(tensor)
    if not shape or tensor_is_packed(tensor):
        return name
    axis = int(graph.rng.integers(len(shape)))
    cut = int(graph.rng.integers(0, shape[axis] + 1))
    axes = graph.integers([axis])
    front = graph.node("Slice", [name, graph.integers([0]), graph.integers([cut]), axes])
    back = graph.node("Slice", [name, graph.integers([cut]), graph.integers([1 << 40]), axes])
    return graph.node("Concat", [front, back], {"axis": axis})


def cast_and_back(graph, name, tensor):
    kind = None if isinstance(tensor, tuple) else tensor.dtype.name
    if kind not in WIDER:
        return name
    types = {"float": 1, "uint8": 2, "int8": 3, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "double": 11}
    wide = graph.node("Cast", [name], {"to": types[WIDER[kind]]})
    return graph.node("Cast", [wide], {"to": types[NARROWER[kind]]})


def either_branch(graph, name, tensor):
    condition = graph.input(np.array(bool(graph.rng.integers(2))), False)
    branches = {}
    for branch in ("then_branch", "else_branch"):
        inner = graph.name("b")
        nodes = [Node("Identity", [name], [inner], {}, "", graph.name("n"))]
        branches[branch] = Graph(nodes, [], [(inner, tensor_type(tensor), None)], name=branch)
    return graph.node("If", [condition], branches)


def in_a_sequence(graph, name, _):
    """The position is part of the model or not: then it needs no list at run time, or does."""
    at = int(graph.rng.integers(-2, 2))
    position = graph.integers([at]) if graph.rng.random() < 0.5 else graph.input(np.array(at), False)
    return graph.node("SequenceAt", [graph.node("SequenceConstruct", [name, name]), position])


def in_parts_and_joined(graph, name, tensor):
    shape = tensor_shape(tensor)
    if not shape or 0 in shape or tensor_is_packed(tensor):
        return name
    axis, keep = int(graph.rng.integers(len(shape))), int(graph.rng.integers(2))
    parts = graph.node("SplitToSequence", [name], {"axis": axis, "keepdims": keep})
    return graph.node("ConcatFromSequence", [parts], {"axis": axis, "new_axis": 1 - keep})


def in_an_optional(graph, name, _):
    return graph.node("OptionalGetElement", [graph.node("Optional", [name])])


def tensor_is_packed(tensor):
    return isinstance(tensor, tuple) and tensor_type(tensor) in (21, 22, 23, 25, 26)


DRESSES = [same, transposed_and_back, reshaped_and_back, deeper_and_back, cut_and_joined, cast_and_back, either_branch, in_a_sequence,
           in_parts_and_joined, in_an_optional]


def dress(graph, name, tensor):
    for _ in range(int(graph.rng.integers(0, 3))):
        wanted = graph.rng.integers(len(DRESSES))
        if not isinstance(tensor, tuple) and tensor.dtype == object and DRESSES[wanted] is either_branch:
            continue
        if DRESSES[wanted] is in_an_optional and graph.opset < 15:
            continue
        name = DRESSES[wanted](graph, name, tensor)
    return name


def another_reader(graph, name, tensor):
    """A value that is read elsewhere too may not be overwritten."""
    if isinstance(tensor, tuple) or tensor.dtype not in (np.float32, np.int64, np.int32):
        return
    graph.outputs.append((graph.node("Neg", [name]), -tensor, 0.0, 0.0))


def behind(graph, name, expected):
    """A node that only moves, behind an output whose reference gives a plain array."""
    rank = expected.ndim
    kind = int(graph.rng.integers(4))
    if kind == 0 and rank:
        perm = [int(p) for p in graph.rng.permutation(rank)]
        return graph.node("Transpose", [name], {"perm": perm}), np.transpose(expected, perm)
    if kind == 1 and rank:
        axis = int(graph.rng.integers(rank))
        return graph.node("Concat", [name, name], {"axis": axis}), np.concatenate([expected, expected], axis)
    if kind == 2 and expected.size:
        return graph.node("Reshape", [name, graph.integers([-1])]), expected.reshape(-1)
    return name, expected


def constructed(graph, sequence, symbolic):
    parts = [dress(graph, graph.input(tensor, symbolic), tensor) for tensor in sequence.tensors]
    return graph.node("SequenceConstruct", parts)


def add_case(graph, op, expected_fn, arguments):
    symbolic = bool(graph.rng.integers(2))
    names = []
    for i, tensor in enumerate(arguments["inputs"]):
        if tensor is None:
            names.append("")
        elif isinstance(tensor, Sequence) and tensor.tensors and graph.rng.random() < 0.5:
            names.append(constructed(graph, tensor, symbolic))
        elif isinstance(tensor, (Sequence, Optional)):
            names.append(graph.input(tensor, symbolic))
        elif i and (i in arguments.get("constant_inputs", ()) or graph.rng.random() < 0.3):
            names.append(graph.constant(tensor))
        else:
            outer = graph.input(tensor, symbolic)
            names.append(dress(graph, outer, tensor))
            if graph.rng.random() < 0.3:
                another_reader(graph, names[-1], tensor)
    wanted = arguments.get("outputs", 1)
    present = [True] * wanted if isinstance(wanted, int) else wanted
    outputs = [graph.name("y") if there else "" for there in present]
    graph.nodes.append(Node(op, names, outputs, arguments.get("attrs") or {}, arguments.get("domain", ""), graph.name("n")))
    graph.story.append(f"{op}({harness.describe(arguments)})")
    for name, expected in zip([o for o in outputs if o], expected_fn(**arguments)):
        # Of an optional, or of a type with parts of a byte, ONNX moves less.
        plain = op != "Optional" and all(t is None or isinstance(t, np.ndarray) for t in arguments["inputs"])
        is_tensor = plain and expected is not None and not isinstance(expected, (tuple, list, dict))
        if is_tensor and np.asarray(expected).dtype != object and graph.rng.random() < 0.5:
            name, expected = behind(graph, name, np.asarray(expected))
        graph.outputs.append((name, expected, arguments.get("rtol"), arguments.get("atol", 0.0)))


def usable(arguments):
    """A case in an opset that the nodes around it know."""
    if arguments.get("input_types") or arguments.get("opset", harness.DEFAULT_OPSET) < LEAST_OPSET and not arguments.get("domain"):
        return False
    return all(t is None or isinstance(t, (np.ndarray, tuple, Sequence, Optional)) for t in arguments["inputs"])


def make_graph(rng, references):
    graph, opsets = GraphOfCases(rng), {}
    for _ in range(int(rng.integers(2, 6))):
        _, op, expected_fn, generator, _ = references[int(rng.integers(len(references)))]
        for _ in range(8):
            arguments = generator(rng)
            domain, opset = arguments.get("domain", ""), arguments.get("opset", harness.DEFAULT_OPSET)
            if usable(arguments) and opsets.get(domain, opset) == opset:
                opsets[domain] = opset
                graph.opset = opsets.get("", harness.DEFAULT_OPSET)
                add_case(graph, op, expected_fn, arguments)
                break
    opsets.setdefault("", harness.DEFAULT_OPSET)
    return graph, opsets


def check_graph(graph, opsets):
    """None, or what is wrong under which truth."""
    order = graph.rng.permutation(len(graph.outputs))
    outputs = [graph.outputs[int(i)] for i in order]
    model = encode_model(Graph(graph.nodes, graph.infos, [o[0] for o in outputs], graph.initializers), opsets)
    for truth in TRUTHS:
        try:
            arrays, types = harness.run_model(model, graph.given, truth)
        except harness.Refused as error:
            return f"{' '.join(truth)}: refused: {error}"
        for array, kind, (name, expected, rtol, atol) in zip(arrays, types, outputs):
            difference = harness.compare(array, kind, expected, rtol, atol)
            if difference:
                return f"{' '.join(truth)}: output {name}: {difference}"
    return None


def try_graph(seed, index, references):
    """What is wrong with that graph of the seed, or None, and its operators."""
    rng, graph = np.random.default_rng([seed, index]), None
    try:
        with np.errstate(all="ignore"):
            graph, opsets = make_graph(rng, references)
            problem = check_graph(graph, opsets) if graph.outputs else None
    except Exception:
        problem = traceback.format_exc()
    if problem:
        problem = f"graph {index} seed {seed}: {problem}\n  {'; '.join(graph.story) if graph else ''}"
    return problem, {node.op for node in graph.nodes} if graph else set()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="begin at this graph of the seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    families.load_families()
    references = [r for r in harness.REFERENCES if families.wanted(options.names, r[0], r[1], r[4])]
    failed, seen = 0, set()

    def problem_of(number):
        return try_graph(options.seed, options.first + number, references)

    for problem, operators in harness.in_parallel(problem_of, options.count, options.jobs, 16):
        seen |= operators
        if problem:
            failed += 1
            print(problem, file=sys.stderr, flush=True)
    print(f"{len(seen)} operators in {options.count} graphs, each under {len(TRUTHS)} truths")
    print(f"{options.count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
