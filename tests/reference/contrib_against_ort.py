#!/usr/bin/python3
"""The random cases of contrib*.py, run by plimsoll and by ONNX Runtime: contrib_against_ort.py [--count N] [NAME...]

What ONNX Runtime does not run (other types, forms that its CPU kernels lack) is counted, with its reason.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import harness  # noqa: E402

NODE_TYPES = {"uint32": "uint32", "uint64": "uint64", "float": "float32", "double": "float64", "int8": "int8", "uint8": "uint8", "bool": "bool", "int16": "int16",
              "int32": "int32", "int64": "int64"}

GENERATION = ("GreedySearch", "Sampling", "BeamSearch", "WhisperBeamSearch")


def plain_types(arguments):
    return all(t is None or (isinstance(t, np.ndarray) and t.dtype.kind in "fiub" and t.dtype not in (np.float16, np.float64))
               for t in arguments["inputs"])


def beyond_ort(op, arguments):
    """What ONNX Runtime's CPU kernels (1.30) do otherwise than their text says, or leave undefined."""
    inputs, outputs = (*arguments["inputs"], *[None] * 16), arguments.get("outputs", 1)
    if op == "Attention" and inputs[2] is None:
        return "reads a bias that is absent"
    if op == "QAttention" and "do_rotary" in arguments["attrs"]:
        return "does not look at do_rotary"
    if op == "MatMulBnb4" and "transB" in arguments["attrs"]:
        return "does not look at transB"
    if op == "MultiHeadAttention" and inputs[6] is not None:
        if outputs == 1:
            return "past without present is left out"
        return "a shared buffer must really be one" if inputs[8] is not None else None
    if op == "DecoderMaskedMultiHeadAttention" and inputs[5] is not None:
        if inputs[7][0] == 0:
            return "a past of 0 is read as the whole buffer"
        return "attention_bias of the first beam" if inputs[4] is not None and inputs[9] is not None else None
    if op == "BeamSearch" and inputs[5] is None:
        return "length_penalty is required"
    if "network" in arguments and getattr(arguments["network"], "hears", False) and arguments["network"].hidden:
        return "of encoder_hidden_states whisper's decoder is given only the shape"
    if op == "GroupQueryAttention":
        if inputs[3] is not None and outputs == 1:
            return "past without present is left out"
        return "scores beyond a batch's length" if outputs == 4 and len(set(inputs[5].tolist())) > 1 else None
    return None


def cases_of(op, generator, count, seed):
    """Cases whose tensors Node has types for, and whose answer is defined."""
    index = found = 0
    while found < count and index < 40 * count:
        rng = np.random.default_rng([seed, index])
        arguments = generator(rng)
        index += 1
        if plain_types(arguments) and not beyond_ort(op, arguments):
            found += 1
            yield index - 1, arguments


def write_job(folder, op, arguments):
    model, given = harness.one_node_model(
        op, arguments["inputs"], arguments.get("attrs") or {}, arguments.get("outputs", 1), arguments["opset"],
        arguments.get("domain", ""), () if op in GENERATION else arguments.get("constant_inputs", ()), False, None)
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(model)
    inputs = []
    for name, tensor in given.items():
        raw = os.path.join(folder, f"{name}.raw")
        tensor.tofile(raw)
        kind = harness.TYPE_NAMES[harness.tensor_type(tensor)]
        inputs.append({"name": name, "type": NODE_TYPES[kind], "dims": list(tensor.shape), "file": raw})
    return {"model": path, "inputs": inputs, "directory": folder}


def run_ort(jobs):
    """An answer for each job. One that ends ONNX Runtime's process gets an error, and the rest go on."""
    import onnxruntime_npm
    onnxruntime_npm.ensure()
    answers = []
    while len(answers) < len(jobs):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(jobs[len(answers):], file)
            file.flush()
            done = subprocess.run(["node", os.path.join(HERE, "..", "..", "tools", "ort", "cases.js"), file.name],
                                  capture_output=True, text=True, env=onnxruntime_npm.environment())
        answers += [json.loads(line) for line in done.stdout.splitlines()]
        if len(answers) < len(jobs):
            answers.append({"error": f"its process ended: {done.returncode}"})
    return answers


def read_output(output):
    kind = {v: k for k, v in NODE_TYPES.items()}[output["type"]]
    dtype = {"float": np.float32, "double": np.float64, "bool": np.bool_}.get(kind, kind)
    return np.fromfile(output["file"], dtype).reshape(output["dims"]), kind


def compare(op, arguments, answer):
    found, types = harness.case(op, with_types=True, **arguments)
    for i, output in enumerate(answer["outputs"]):
        expected, _ = read_output(output)
        if op in ("GreedySearch", "Sampling"):  # behind the last token it writes nothing, and we padding
            length = 1 + max(np.flatnonzero((found[i] != arguments["attrs"]["pad_token_id"]).any(0)), default=-1)
            found[i], expected = found[i][:, :length], expected[:, :length]
        difference = harness.compare(found[i], types[i], expected, arguments.get("rtol"), arguments.get("atol", 0.0))
        if difference:
            return f"output {i}: {difference}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    import contrib  # noqa: F401
    import contrib_attention  # noqa: F401
    import contrib_generation  # noqa: F401
    import contrib_more  # noqa: F401
    import experts  # noqa: F401
    import linear_attention  # noqa: F401
    agreed = differed = 0
    for name, op, _, generator, _ in harness.REFERENCES:
        if options.names and op not in options.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            cases = list(cases_of(op, generator, options.count, options.seed))
            folders = [os.path.join(folder, str(index)) for index, _ in cases]
            for place in folders:
                os.mkdir(place)
            answers = run_ort([write_job(place, op, arguments) for place, (_, arguments) in zip(folders, cases)])
            same, reasons = 0, {}
            for (index, arguments), answer in zip(cases, answers):
                if "error" in answer:
                    reason = answer["error"].splitlines()[0][:150]
                    reasons[reason] = reasons.get(reason, 0) + 1
                    continue
                try:
                    difference = compare(op, arguments, answer)
                except harness.Refused as error:
                    difference = f"refused: {error}"
                if difference:
                    differed += 1
                    print(f"{name} case {index} seed {options.seed} ({harness.describe(arguments)}): {difference}", file=sys.stderr)
                same += difference is None
            agreed += same
            print(f"{name}: {same} agree, {sum(reasons.values())} not run by ONNX Runtime")
            for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:3]:
                print(f"    {count} x {reason}")
            sys.stdout.flush()
    print(f"{agreed} agree, {differed} differ")
    return 1 if differed or not agreed else 0


if __name__ == "__main__":
    sys.exit(main())
