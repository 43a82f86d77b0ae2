#!/usr/bin/python3
"""element_types.py [NAME...] [--rounds 3] [--seconds 0.1] [--isa avx2] [--no-winograd] [--share] [--json FILE]: the float types against f32, by operator.

Each case of bench/type_cases.py is a model of one node, timed by `plimsoll bench` in f32, f16, bf16 and f64 in turn, several
rounds; the least time counts. `loop` is the worst type's time over what a straightforward vectorized loop is taken to need
(LOOP_NS of type_cases.py): an estimate, to find what is out of proportion. --share runs each once more under perf and tells
which part of the time is in src/kernels (or in memcpy and its like): where it is small, a plain loop of the operator's own
runs. Both are kept in the JSON file, from which tools/operators_table.py tells kernel from loop.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "reference"), str(ROOT / "bench")]
from float_types import as_type  # noqa: E402
from model_file import Graph, Node, encode_model, encode_tensor, tensor_shape, tensor_type  # noqa: E402
from type_cases import LOOP_NS, all_cases  # noqa: E402

TYPES = {"f32": "float", "f16": "float16", "bf16": "bfloat16", "f64": "double"}
PLIMSOLL = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
RESULTS = ROOT / "bench" / "results" / "element_types.json"
# Templates of src/kernels whose loops are the operators' own are no kernels.
KERNEL = re.compile(r"^(void |bool |int64_t )?plimsoll::kernels::(?!parallel_for|Broadcast)|mem(cpy|move|set)")


class Model:
    """A case in one type, as files: the arguments of `plimsoll` after the command."""

    def __init__(self, case, kind, folder):
        rng = np.random.default_rng(1)
        inputs, initializers, names, self.arguments = [], {}, [], []
        for index, spec in enumerate(case.inputs):
            name = f"i{index}" if spec else ""
            names.append(name)
            if not spec:
                continue
            tensor = spec.array
            if tensor is None:
                values = getattr(spec, "values", None)
                tensor = as_type(rng.uniform(spec.low, spec.high, spec.shape) if values is None else values, kind)[0]
            if spec.constant:
                initializers[name] = tensor
                continue
            inputs.append((name, tensor_type(tensor), list(tensor_shape(tensor))))
            path = folder / f"{name}.pb"
            path.write_bytes(encode_tensor(name, tensor))
            self.arguments.append(f"--input={name}={path}")
        outputs = [f"o{i}" for i in range(case.outputs)]
        attrs = {k: v for k, v in case.attrs.items() if k != "opset" or case.domain}
        graph = Graph([Node(case.op, names, outputs, attrs, case.domain)], inputs, outputs, initializers)
        path = folder / "model.onnx"
        path.write_bytes(encode_model(graph, {"": case.opset, **({case.domain: 1} if case.domain else {})}, ir_version=11))
        self.arguments.insert(0, str(path))

    def run(self, command, *options):
        return subprocess.run([*command, *self.arguments, "--threads", "1", *options], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)


def times(models, rounds, seconds, failures):
    """{type: least milliseconds}"""
    best = {}
    for _ in range(rounds):
        for short, model in models.items():
            if short in failures:
                continue
            done = model.run([PLIMSOLL, "bench"], "--json", "--seconds", str(seconds))
            if done.returncode != 0:
                failures[short] = done.stderr.strip().splitlines()[-1]
                continue
            best[short] = min(best.get(short, 1e9), json.loads(done.stdout)["min_ms"])
    return best


def run_all(jobs, seconds, into):
    """Under perf: runs each list of arguments and writes the ids of the processes."""
    pids = []
    for arguments in jobs:
        with subprocess.Popen([PLIMSOLL, "bench", *arguments, "--threads", "1", "--json", "--seconds", str(seconds)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            pids.append(process.pid)
    pathlib.Path(into).write_text(json.dumps(pids))


def kernel_shares(models, folder, seconds):
    """For each of the models the part of its samples that are in kernels, or None if it has none. perf: Debian's linux-perf. One
    recording of all processes: what takes long is that perf reads the symbols of the library."""
    profile, jobs, pids = (str(folder / name) for name in ("perf.data", "jobs.json", "pids.json"))
    pathlib.Path(jobs).write_text(json.dumps([model.arguments for model in models]))
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "5000", "-o", profile, sys.executable, __file__, "--run-all", jobs, pids,
                    "--seconds", str(seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    report = subprocess.run(["perf", "report", "-i", profile, "--stdio", "--no-children", "--no-inline", "-F", "sample,pid,dso,sym"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    counts = collections.defaultdict(lambda: [0, 0])  # of a process: samples in kernels, and all of ours
    for count, pid, library, symbol in re.findall(r"^\s*(\d+)\s+(\d+):\S+\s+(\S+)\s+\[\.\]\s+(.*)$", report, re.M):
        is_kernel = bool(KERNEL.search(symbol))
        if is_kernel or library.startswith("libm.") or "plimsoll::" in symbol:  # not what starts a process
            counts[int(pid)][0] += int(count) * is_kernel
            counts[int(pid)][1] += int(count)
    found = [counts[pid] for pid in json.loads(pathlib.Path(pids).read_text())]
    return [kernels / total if total else None for kernels, total in found]


def row(case, entry):
    ms, share = entry.get("ms", {}), entry.get("share", {})
    cells = [f"{case.name:34}", f"{1000 * ms['f32']:9.1f}" if "f32" in ms else f"{'-':>9}"]
    for short in ["f16", "bf16", "f64"]:
        cells.append(f"{ms[short] / ms['f32']:6.2f}" if short in ms and "f32" in ms else f"{'-':>6}")
    cells.append(f"{max(entry['over'].values()):7.1f}" if entry.get("over") else f"{'-':>7}")
    cells += [f"{100 * share[short]:4.0f}%" if share.get(short) is not None else f"{'-':>5}" for short in TYPES if share]
    return "  ".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="operators, or parts of cases' names")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--isa", help="the most that kernels may use, as of `plimsoll bench`")
    parser.add_argument("--no-winograd", action="store_true", help="f32's direct form of 3x3 convolutions")
    parser.add_argument("--share", action="store_true", help="also which part of the time is in kernels, by perf")
    parser.add_argument("--run-all", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=pathlib.Path, help=f"update this file ({RESULTS.relative_to(ROOT)} for docs/operators.md)")
    options = parser.parse_args()
    if options.run_all:
        return run_all(json.loads(pathlib.Path(options.run_all[0]).read_text()), options.seconds, options.run_all[1])
    flags = ([f"--isa={options.isa}"] if options.isa else []) + (["--no-winograd"] if options.no_winograd else [])
    cases = [c for c in all_cases() if not options.names or any(n == c.op or (n in c.name and n != c.name.split()[0]) for n in options.names)]
    results = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    print(f"{'case':34}  {'f32 us':>9}  {'f16':>6}  {'bf16':>6}  {'f64':>6}  {'loop':>7}" +
          ("  " + "  ".join(f"{t:>5}" for t in TYPES) + " in kernels" if options.share else ""))
    refused, running = [], []  # what to run under perf: (name of the case, type, model)
    with tempfile.TemporaryDirectory() as name:
        for number, case in enumerate(cases):
            typed = any(i and i.array is None for i in case.inputs)
            models, failures = {}, {}
            for short, kind in TYPES.items():
                if not typed and short != "f32":
                    continue  # no input is of the type under test
                folder = pathlib.Path(name) / f"{number}_{short}"
                folder.mkdir()
                models[short] = Model(case, kind, folder)
                models[short].arguments += flags
            entry = {"op": case.op, "domain": case.domain, **results.get(case.name, {})}
            if options.rounds:
                entry["ms"] = times(models, options.rounds, options.seconds, failures)
                pace = {t: case.steps * LOOP_NS[case.pace] * (2 if t == "f64" else 1) * 1e-6 for t in TYPES}
                entry["over"] = {t: round(ms / pace[t], 2) for t, ms in entry["ms"].items()}
            running += [(case, short, model) for short, model in models.items() if short not in failures]
            results[case.name] = entry
            refused += [f"{case.name}: {short}: {why}" for short, why in failures.items()]
            print(row(case, entry), flush=True)
            if options.json:
                options.json.parent.mkdir(parents=True, exist_ok=True)
                options.json.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        if options.share:
            shares = kernel_shares([model for *_, model in running], pathlib.Path(name), options.seconds)
            for (case, short, _), share in zip(running, shares):
                results[case.name].setdefault("share", {})[short] = share
            for case in cases:
                print(row(case, results[case.name]))
    if options.json and options.share:
        options.json.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    for line in refused:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
