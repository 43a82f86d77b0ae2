#!/usr/bin/python3
"""quantized.py [ROW...] [--threads 1,2] [--rounds 3] [--isa avx2]: integers against floats, and against ONNX Runtime.

Rows are int8 versions that `plimsoll quantize` makes (static: QuantizeLinear and DequantizeLinear with scales from one random
sample; dynamic), versions of 4 bits (on 128 tokens, and on one), and the quantized models that others published. Columns: the latency of the row here and in ONNX Runtime on
the same file, of the float model here with and without Winograd's way, and the peak RSS of both. See docs/integers.md.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import compare
import held
from agree import Agreement
from cache import cache_dir, model_path, whole_file

STATIC = ["--mode", "static", "--per-channel"]
QOPERATOR = [*STATIC, "--format", "qoperator"]
DYNAMIC = ["--mode", "dynamic", "--per-channel"]
FOUR_BITS = ["--mode", "nbits", "--bits", "4", "--block-size", "32", "--symmetric", "--accuracy-level", "4"]
# Name of a row: the float model and how it is quantized; none for a model that is quantized already.
ROWS = {
    "resnet50_static": ("resnet50", STATIC),
    "mobilenet_v3_large_static": ("mobilenet_v3_large", STATIC),
    "minilm_l6_static": ("minilm_l6", STATIC),
    "minilm_l6_qoperator": ("minilm_l6", QOPERATOR),
    "minilm_l6_dynamic": ("minilm_l6", DYNAMIC),
    "bert_L12_static": ("bert_L12", STATIC),
    "bert_L12_dynamic": ("bert_L12", DYNAMIC),
    "minilm_l6_4bits": ("minilm_l6", FOUR_BITS),
    "minilm_l6_4bits_one": ("minilm_l6", FOUR_BITS),
    "bert_L12_4bits": ("bert_L12", FOUR_BITS),
    "bert_L12_4bits_one": ("bert_L12", FOUR_BITS),
    "minilm_l6_int8": ("minilm_l6", None),
    "moonshine_tiny_encoder": (None, None),
    "moonshine_tiny_decoder": (None, None),
    "moonshine_tiny_decoder_first": (None, None),
    "minimind2_small": (None, None),
}
# Rows that run the file of another one, and whose inputs tools/cases.py has under their own name.
SAME_FILE = {"moonshine_tiny_decoder_first": "moonshine_tiny_decoder"}


def quantized_path(row):
    _, how = ROWS[row]
    return cache_dir() / "quantized" / f"{row.removesuffix('_one')}.onnx" if how else model_path(SAME_FILE.get(row, row))


def inputs_of(case, directory):
    made = subprocess.run(["/usr/bin/python3", str(compare.ROOT / "tools" / "cases.py"), case, directory],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(made.stdout)


def row_inputs(row, directory):
    model = ROWS[row][0]
    return inputs_of(row if model is None else f"{model}_one" if row.endswith("_one") else model, directory)


def make(row):
    """Quantizes the row's model, once."""
    path, (model, how) = quantized_path(row), ROWS[row]
    if how is None or path.exists():
        return
    with tempfile.TemporaryDirectory(prefix="plimsoll-quantize-") as directory:
        sample = pathlib.Path(directory, "calibration", "0")
        sample.mkdir(parents=True)
        for tensor in inputs_of(model, directory):
            (sample / f"{tensor['name']}.npy").symlink_to(tensor["npy"])
        calibration = ["--calibration", str(sample.parent)] if "static" in how else []
        with whole_file(path) as temporary:
            temporary.unlink()
            subprocess.run([str(compare.PLIMSOLL), "quantize", str(model_path(model)), str(temporary), *how, *calibration],
                           check=True, stdout=subprocess.DEVNULL)


class FileCase(compare.Case):
    """A case of any file, with more options for our command. Both engines get the same inputs: what a model does may depend on them."""

    def __init__(self, path, name, threads, inputs, options, directory, extra=()):
        super().__init__(name, threads, inputs, options, directory)
        self._model = str(path)
        self._isa = [*self._isa, *extra]

    def bench(self, engine):
        return self._ort(self._seconds) if engine == "ort" else self._plimsoll("bench", [f"--seconds={self._seconds}", *self._files()])


def measure_row(row, threads, options, empty):
    """The smallest of every number over the rounds, fresh processes in alternation."""
    model, _ = ROWS[row]
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as directory:
        own = row_inputs(row, directory)
        cases = {"int8": (FileCase(quantized_path(row), row, threads, own, options, directory), "plimsoll"),
                 "ort": (FileCase(quantized_path(row), row, threads, own, options, directory), "ort")}
        if model is not None:
            for name, extra in (("f32", ()), ("f32_direct", ("--no-winograd",))):
                case = FileCase(model_path(model), model, threads, own, options, directory, extra)
                cases[name] = (case, "plimsoll")
        found = {}
        for number in range(options.rounds):
            compare.progress(f"{row}, {threads} thread(s), round {number + 1} of {options.rounds}")
            for name in cases if number % 2 == 0 else reversed(cases):
                case, engine = cases[name]
                try:
                    report, _, rss = case.measure(case.bench(engine))
                except compare.BenchError as error:
                    found.setdefault(f"{name}_error", str(error))
                    continue
                rss -= empty["peak_rss_bytes"] if engine == "ort" else 0
                best = found.setdefault(name, {"ms": float("inf"), "rss": float("inf")})
                best["ms"], best["rss"] = min(best["ms"], report["min_ms"]), min(best["rss"], rss)
        return found


def agreement(row):
    """How far the answers are from ONNX Runtime's on the same file, and whether that is more than rounding: see agree.py."""
    def shown(db):
        return "-" if db is None else "equal" if db == float("inf") else f"{db:.1f} dB"

    with tempfile.TemporaryDirectory(prefix="plimsoll-agree-") as directory:
        work = Agreement(quantized_path(row), row_inputs(row, directory), directory)
        whole, nudged, nodes = work.whole(), work.nudged(), work.nodes()
        text = (f"{row}: to ONNX Runtime {shown(whole['to_ort'])}, both without rewrites {shown(whole['to_plain_ort'])}; rewrites alone: "
                f"ours {shown(whole['ours'])}, its own {shown(whole['ort'])}; its own with scales moved by 1 ulp {shown(nudged)}")
        if nodes is None:
            return f"{text}; no nodes by themselves: it has bodies"
        return (f"{text}; each of {nodes['nodes']} nodes by itself: {nodes['differ']} of {nodes['integers']} integers differ, by {nodes['steps']} "
                f"at most, floats by {nodes['floats']:.1e} of their largest")


def cell(found, name, key, form, divisor=1):
    return form.format(found[name][key] / divisor) if name in found else "-"


def ratio(found, above, below, key):
    return f"{found[above][key] / found[below][key]:.2f}" if above in found and below in found else "-"


HEADING = ["row", "threads", "int8 ms", "ORT ms", "int8/ORT", "f32 direct ms", "direct/int8", "f32 ms", "f32/int8", "RSS MB",
           "ORT MB", "RSS/ORT"]


def cells(row, threads, found):
    return [row, str(threads), cell(found, "int8", "ms", "{:.2f}"), cell(found, "ort", "ms", "{:.2f}"),
            ratio(found, "int8", "ort", "ms"), cell(found, "f32_direct", "ms", "{:.2f}"),
            ratio(found, "f32_direct", "int8", "ms"), cell(found, "f32", "ms", "{:.2f}"), ratio(found, "f32", "int8", "ms"),
            cell(found, "int8", "rss", "{:.1f}", 1e6), cell(found, "ort", "rss", "{:.1f}", 1e6),
            ratio(found, "int8", "ort", "rss")]


def line(texts):
    widths = [max(map(len, ROWS)), *(len(text) for text in HEADING[1:])]
    return "  ".join(text.ljust(w) if k == 0 else text.rjust(w) for k, (text, w) in enumerate(zip(texts, widths)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(t) for t in text.split(",")])
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--seconds", default=1.0, type=float)
    parser.add_argument("--isa", choices=["sse4", "avx2", "avx_vnni", "avx512f", "avx512", "amx"], help="hold Plimsoll to these instructions")
    parser.add_argument("--held", choices=["avx2"], help="hold both engines to these instructions")
    parser.add_argument("--make", action="store_true", help="make the models and stop")
    parser.add_argument("--agree", action="store_true", help="compare answers with ONNX Runtime's instead of times")
    options = parser.parse_args()
    unknown = [row for row in options.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row '{unknown[0]}'; known: {' '.join(ROWS)}")
    rows = options.rows or list(ROWS)
    for row in rows:
        make(row)
    if options.make:
        return
    if options.agree:
        for row in rows:
            print(agreement(row), flush=True)
        return
    if options.held:
        held.ensure()
    options.environment = held.environment() if options.held else None
    empty = compare.measure_empty_node(2, options.environment)
    print(line(HEADING), flush=True)
    for threads in options.threads:
        for row in rows:
            found = measure_row(row, threads, options, empty)
            print(line(cells(row, threads, found)), flush=True)
            for key in found:
                if key.endswith("_error"):
                    print(f"{row}: {key}: {found[key]}", file=sys.stderr)


if __name__ == "__main__":
    main()
