#!/usr/bin/env python3
"""What each setting of an arena costs: bench/arenas.py [--repeat 30] [--elements 400000] [--binary build/plimsoll]

Writes a model whose sizes depend on the data (the places of what is not zero, through eight operators), runs it under each
setting through `plimsoll run --arena ... --arena-stats --json` and prints the table of docs/arenas.md: what the arena
holds at the end, what of it was in use at once, how often it grew, the ledger's peak, and milliseconds per run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "reference"))
from model_file import Graph, Node, encode_model  # noqa: E402

SETTINGS = [
    ("none (the default)", []),
    ("default settings", ["--arena", "default"]),
    ("arena_extend_strategy=kSameAsRequested", ["--arena", "arena_extend_strategy=kSameAsRequested"]),
    ("initial_chunk_size_bytes=64KiB", ["--arena", "initial_chunk_size_bytes=64KiB"]),
    ("initial_chunk_size_bytes=64MiB", ["--arena", "initial_chunk_size_bytes=64MiB"]),
    ("max_dead_bytes_per_chunk=64KiB", ["--arena", "max_dead_bytes_per_chunk=64KiB"]),
    ("max_power_of_two_extend_bytes=2MiB", ["--arena", "max_power_of_two_extend_bytes=2MiB"]),
    ("default, shrunk after each run", ["--arena", "default", "--shrink"]),
    ("default, shrunk, initial_growth_chunk_size_bytes=16MiB",
     ["--arena", "initial_growth_chunk_size_bytes=16MiB", "--shrink"]),
    ("kSameAsRequested, shrunk after each run", ["--arena", "arena_extend_strategy=kSameAsRequested", "--shrink"]),
    ("max_mem=1MiB", ["--arena", "max_mem=1MiB"]),
]


def write_model(path, elements):
    nodes = [Node("NonZero", ["x"], ["places"]), Node("Cast", ["places"], ["v0"], {"to": 1})]
    for i in range(6):
        nodes.append(Node(["Neg", "Exp", "Tanh"][i % 3], [f"v{i}"], [f"v{i + 1}"]))
    path.write_bytes(encode_model(Graph(nodes, [("x", "float", [elements])], ["v6"]), {"": 17}, 8))


def run(binary, model, flags, repeat):
    done = subprocess.run([binary, "run", model, "--threads", "1", "--repeat", str(repeat), "--arena-stats", "--json", *flags],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--elements", type=int, default=400_000)
    parser.add_argument("--binary", default=str(ROOT / "build" / "plimsoll"))
    arguments = parser.parse_args()
    print("| setting | TotalAllocated | MaxInUse | NumAllocs | NumArenaExtensions | NumArenaShrinkages | ledger's peak "
          "| ms per run |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as room:
        model = pathlib.Path(room) / "nonzero.onnx"
        write_model(model, arguments.elements)
        for name, flags in SETTINGS:
            report, refused = run(arguments.binary, model, flags, arguments.repeat)
            if refused:
                print(f"| {name} | refused: {refused} | | | | | | |")
                continue
            arena = report["arena"]
            figures = [arena[key] for key in
                       ("TotalAllocated", "MaxInUse", "NumAllocs", "NumArenaExtensions", "NumArenaShrinkages")]
            figures.append(report["measured_bytes"])
            print(f"| {name} | " + " | ".join(f"{figure:,}" for figure in figures) + f" | {report['median_ms']:.2f} |")


if __name__ == "__main__":
    main()
