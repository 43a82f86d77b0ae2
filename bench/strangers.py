#!/usr/bin/python3
"""strangers.py [--export] [NAME...]: models that nobody tuned for, timed here and in ONNX Runtime. See docs/benchmarks.md.

--export makes what is missing (bench/zoo, seeded random weights) and needs Debian's python3-torch and python3-torchvision. Timing
goes on where the results stop, so that it can be done in pieces (--minutes); --fresh begins anew. Their answers: tools/strangers.py.
"""
import argparse
import json
import math
import pathlib
import sys
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import held  # noqa: E402
import onnxruntime_npm  # noqa: E402
from cache import cache_dir  # noqa: E402
from compare import NODE, PLIMSOLL, BenchError, measure  # noqa: E402

FOLDER = cache_dir() / "strangers"
ZOO = ["vision", "images", "transformers", "sequences", "tables", "newcomers", "visitors", "parts"]
OPSET = 17


def export_one(name, make):
    import numpy as np
    import torch

    torch.manual_seed(zlib.crc32(name.encode()))
    network, inputs = make()
    model = FOLDER / f"{name}.onnx"
    labels = [f"x{k}" for k in range(len(inputs))]
    # With gradients on: without, nn.MultiheadAttention takes a short cut that has no export.
    torch.onnx.export(network.eval(), inputs, str(model), input_names=labels, opset_version=OPSET)
    described = []
    for label, value in zip(labels, inputs):
        array = value.detach().numpy()
        raw, npy = (FOLDER / f"{name}.{label}.{end}" for end in ("raw", "npy"))
        raw.write_bytes(array.tobytes())
        np.save(npy, array)
        described.append({"name": label, "type": array.dtype.name, "dims": list(array.shape), "file": str(raw), "npy": str(npy)})
    (FOLDER / f"{name}.json").write_text(json.dumps(described))


def export(names):
    import importlib
    import warnings

    warnings.filterwarnings("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    failed = 0
    for part in ZOO:
        for name, make in importlib.import_module(f"zoo.{part}").models().items():
            if (names and name not in names) or (FOLDER / f"{name}.json").exists():
                continue
            try:
                export_one(name, make)
            except Exception as problem:  # an exporter's limits are many
                failed += 1
                (FOLDER / f"{name}.onnx").unlink(missing_ok=True)
                print(f"{name}: {str(problem).strip().splitlines()[-1][:200]}", flush=True)
    return 1 if failed else 0


def commands(name, threads, options):
    inputs = json.loads((FOLDER / f"{name}.json").read_text())
    model = str(FOLDER / f"{name}.onnx")
    job = FOLDER / "job"
    job.write_text(json.dumps({"model": model, "inputs": inputs, "threads": threads, "seconds": options.seconds}))
    ours = [str(PLIMSOLL), "bench", model, f"--seconds={options.seconds}", "--threads", str(threads), "--json",
            *(f"--input={i['name']}={i['npy']}" for i in inputs), *(["--isa", options.held] if options.held else [])]
    return {"ours": ours, "ort": [*NODE, str(ROOT / "bench" / "ort.js"), str(job)]}


def compare(name, threads, options):
    """The fastest run of each, processes in alternation."""
    environment = held.environment() if options.held else None
    row = {"name": name, "threads": threads}
    both = commands(name, threads, options)
    for number in range(options.rounds):
        for engine in list(both)[:: 1 if number % 2 == 0 else -1]:
            if "error" in row:
                continue
            try:
                row[engine] = min(measure(both[engine], environment)[0]["min_ms"], row.get(engine, math.inf))
            except BenchError as problem:
                row["error"] = str(problem)
    return row


def show(rows, threads):
    for count in threads:
        mine = [row | {"ratio": row["ours"] / row["ort"]} for row in rows if row["threads"] == count and "error" not in row]
        for row in sorted(mine, key=lambda row: -row["ratio"]):
            print(f"{row['ratio']:5.2f}  {row['name']:34} {row['ours']:10.3f} {row['ort']:10.3f}")
        for row in rows:
            if row["threads"] == count and "error" in row:
                print(f"    -  {row['name']:34} {row['error']}")
        if mine:
            ratios = [row["ratio"] for row in mine]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{count} thread(s): {len(mine)} models, {min(ratios):.2f} to {max(ratios):.2f} of ONNX Runtime's time, "
                  f"mean {mean:.2f}, {sum(r > 1 for r in ratios)} above 1\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--export", action="store_true", help="make the models, and time nothing")
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(t) for t in text.split(",")])
    parser.add_argument("--rounds", default=3, type=int, help="processes of each engine (3)")
    parser.add_argument("--seconds", default=0.3, type=float, help="how long a process repeats its run (0.3)")
    parser.add_argument("--minutes", default=math.inf, type=float, help="stop after so many, to go on another time")
    parser.add_argument("--held", choices=["avx2"], help="hold both engines to these instructions")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    options = parser.parse_args()
    if options.export:
        return export(options.names)
    (held if options.held else onnxruntime_npm).ensure()
    names = options.names or sorted(file.stem for file in FOLDER.glob("*.json"))
    results = FOLDER / f"results{options.held or ''}.jsonl"
    if options.fresh:
        results.unlink(missing_ok=True)
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {(row["name"], row["threads"]) for row in rows}
    end = time.monotonic() + 60 * options.minutes
    for threads in options.threads:
        for name in names:
            if (name, threads) in done or time.monotonic() > end:
                continue
            rows.append(compare(name, threads, options))
            with results.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    show([row for row in rows if row["name"] in names], options.threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
