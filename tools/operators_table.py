#!/usr/bin/python3
"""operators_table.py [--check]: writes docs/operators.md from the registry and from what tests it.

The operators are those of `plimsoll operators --json`. For each the table shows the opsets and element types in which cases
from outside run it: ONNX's conformance data (node, pytorch-*), and the numpy references of tests/reference. A type that no
case covers is not claimed. --check: exit 1 if the file is not what would be written.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "reference"))
import harness  # noqa: E402
import run as families  # noqa: E402
from model_file import TYPE_NAMES, tensor_type  # noqa: E402

TABLE = ROOT / "docs" / "operators.md"
CONFORMANCE = pathlib.Path("/usr/share/libonnx-testdata/data")
CASES = 60  # of each reference are looked at
MEASURED = ROOT / "bench" / "results" / "element_types.json"
SHORT = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16"}
HEAD = """# Operators

Made by `tools/operators_table.py` from the registry (`plimsoll operators`) and from the cases that run each operator and know the
answer from elsewhere: ONNX's conformance data, and the references in `tests/reference`. Opsets and types are those of such cases;
types of the first input come first, then those that only other inputs have. `ai.plimsoll` holds the fused forms that passes make.

What runs each float type was measured (`bench/element_types.py --share`, one node by itself): `kernel` where most of the time is
spent in src/kernels, `loop` where most of it is spent in a loop of the operator's own, with the time over what a straightforward
vectorized loop is estimated to need, if that is 2 or more. Operators without a case there are not timed.

Gradients (`tests/train`, each against central differences): `yes`; `zeros` where nothing flows through it; `decomposed` where others
take its place before anything is differentiated; `none` where differentiating through it is an Error that names the node.

"""

TAIL = """
## Refused by name, and why

| what | why |
|---|---|
| QAttention with past_present_share_buffer | no input says how much of the shared buffer is filled |
| com.microsoft GroupQueryAttention with a sliding cache, or with one of float8; QMoE whose quant_type is not int | not written; ONNX Runtime has float8 for CUDA only |
| com.microsoft RotaryEmbedding and MRotaryEmbedding of an input without a declared rank and without num_heads, position_ids without a declared rank; UnfoldTensor, QLinearConv with channels last and FusedMatMul with transBatch of an input without a declared rank | others stand for them, and which ones depends on the rank |
| BeamSearch whose decoder takes cache_indirection, WhisperBeamSearch's cross_qk and non_speech_probs | ONNX Runtime has the first two for CUDA only; the third is not written |
| com.microsoft MatMulFpQ4, SparseAttention, state_window of LinearAttention and CausalConvWithState, Tokenizer, AttnLSTM, WordConvEmbedding, MaxpoolWithMask, BifurcationDetector, SampleOp | ONNX Runtime's CPU has them; not written |
| sparse tensors as inputs of a model | ONNX Runtime's CPU has one kernel that takes them, SparseToDenseMatMul |
| with `--strict`, of a compiled file, or in training: a run whose input, declared as a scalar, has another rank; one whose symbol has two sizes | an Error that names input and dimension. Otherwise the model is prepared a second time for such shapes, with a warning, as ONNX Runtime runs them |
| opaque types, tensors in segments | ONNX Runtime's CPU has neither |
"""


class Evidence:
    def __init__(self):
        self.opsets, self.first, self.others, self.sources = set(), set(), set(), set()

    def add(self, opset, types, source):
        self.opsets.add(opset)
        self.first |= {TYPE_NAMES[t] for t in types[:1]}
        self.others |= {TYPE_NAMES[t] for t in types[1:]}
        self.sources.add(source)


def from_references(evidence):
    families.load_families()
    for _, op, _, generator, _ in harness.REFERENCES:
        for index in range(CASES):
            with np.errstate(all="ignore"):
                arguments = generator(np.random.default_rng([0, index]))
            tensors = [t for t in arguments["inputs"] if isinstance(t, (np.ndarray, tuple))]
            evidence[arguments.get("domain", ""), op].add(
                arguments.get("opset", harness.DEFAULT_OPSET), [tensor_type(t) for t in tensors], "reference")


def from_conformance(evidence):
    import onnx
    for path in sorted(CONFORMANCE.glob("*/*/model.onnx")):
        model = onnx.load(path)
        opsets = {i.domain: i.version for i in model.opset_import}
        types = {v.name: v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.value_info]}
        types.update({t.name: t.data_type for t in model.graph.initializer})
        for node in model.graph.node:
            known = [types[name] for name in node.input if types.get(name)]
            evidence[node.domain, node.op_type].add(opsets.get(node.domain, 1), known, "conformance")


def ranges(numbers):
    """1, 3 to 5, 9"""
    parts, numbers = [], sorted(numbers)
    while numbers:
        end = 1
        while end < len(numbers) and numbers[end] == numbers[0] + end:
            end += 1
        parts.append(str(numbers[0]) if end == 1 else f"{numbers[0]} to {numbers[end - 1]}")
        numbers = numbers[end:]
    return ", ".join(parts)


def types_text(types):
    return " ".join(SHORT.get(t, t) for t in sorted(types, key=TYPE_NAMES.index))


def measured_runs():
    """{(domain, operator): {"kernel" or "loop": {type: worst time over a vectorized loop's}}}"""
    runs = collections.defaultdict(lambda: collections.defaultdict(dict))
    for case in json.loads(MEASURED.read_text()).values() if MEASURED.exists() else []:
        for kind, share in case.get("share", {}).items():
            if share is not None:
                found = runs[case["domain"], case["op"]]["kernel" if share >= 0.5 else "loop"]
                found[kind] = max(found.get(kind, 0), case.get("over", {}).get(kind, 0))
    return runs


def runs_text(found):
    """A type that has both, by its cases, is named under both."""
    parts = []
    for what in ["kernel", "loop"]:
        types = [kind + (f" ({over:.0f})" if what == "loop" and over >= 2 else "") for kind, over in found.get(what, {}).items()]
        parts += [f"{what} {' '.join(types)}"] if types else []
    return "; ".join(parts)


def count_text(pair):
    least, most = pair
    if most is None:
        return f"{least}+"
    return str(least) if least == most else f"{least}-{most}"


def table():
    command = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
    operators = json.loads(subprocess.run([command, "operators", "--json"], stdout=subprocess.PIPE, check=True).stdout)["operators"]
    evidence = collections.defaultdict(Evidence)
    from_references(evidence)
    from_conformance(evidence)
    runs = measured_runs()
    text = HEAD
    for domain in sorted({op["domain"] for op in operators}):
        rows = [op for op in operators if op["domain"] == domain]
        text += f"## {domain or 'ai.onnx'}: {len(rows)} operators\n\n| operator | inputs | outputs | opsets | types | runs | gradient | seen by |\n|---|---|---|---|---|---|---|---|\n"
        for op in rows:
            seen = evidence[domain, op["name"]]
            others = types_text(seen.others - seen.first)
            text += (f"| {op['name']} | {count_text(op['inputs'])} | {count_text(op['outputs'])} | {ranges(seen.opsets)} | "
                     f"{types_text(seen.first)}{f' ({others})' if others else ''} | {runs_text(runs[domain, op['name']])} | {op['gradient']} | "
                     f"{' '.join(sorted(seen.sources)) or 'unit tests'} |\n")
        text += "\n"
    return text + TAIL.lstrip()


def main():
    text = table()
    if "--check" not in sys.argv[1:]:
        TABLE.write_text(text)
        return 0
    if TABLE.exists() and TABLE.read_text() == text:
        return 0
    print(f"{TABLE.relative_to(ROOT)} is not what tools/operators_table.py writes", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
