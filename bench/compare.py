#!/usr/bin/python3
"""compare.py [MODEL...] [--threads 1,2] [--rounds 10] [--isa avx2] [--held avx2] [--bf16]: Plimsoll against ONNX Runtime. See docs/benchmarks.md.

Keep this process small (no numpy): the peak that wait4 reports for a child is never below its parent's at the fork.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import held  # noqa: E402
import machine  # noqa: E402
import onnxruntime_npm  # noqa: E402
import report  # noqa: E402
from cache import chosen, model_path  # noqa: E402

PLIMSOLL = ROOT / "build" / "plimsoll"
ENGINES = ("plimsoll", "ort")
# Ours with products in bfloat16: other numbers, so a column of its own, in no ratio and no mean.
BF16 = "plimsoll_bf16"
BUSY = 0.5  # load average at the start above which the numbers deserve a warning
NODE = ["node", "--expose-gc"]
EMPTY_NODE = [*NODE, "-e", "console.log('{}')"]


class BenchError(Exception):
    pass


def measure(command, environment=None):
    """Runs a fresh process, in the environment that ONNX Runtime needs if none is given.

    Returns (its JSON, ms from start to its first line, peak RSS by wait4)."""
    with tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors,
                                   env=environment or onnxruntime_npm.environment())
        try:
            line = process.stdout.readline()
            first_line_ms = 1000 * (time.perf_counter() - start)
            text = line + process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.kill()
            raise
        errors.seek(0)
        if process.returncode != 0:
            message = (errors.read().strip() or "no message").splitlines()[-1]
            raise BenchError(f"{pathlib.Path(command[0]).name}: status {process.returncode}: {message}")
    return json.loads(text), first_line_ms, usage.ru_maxrss * 1024


class Case:
    """One model with its inputs, at one number of threads: the commands that measure it."""

    def __init__(self, name, threads, inputs, options, directory):
        self.threads = threads
        self._model = str(model_path(name))
        self._inputs = inputs
        self._seconds = options.seconds
        self._isa = ["--isa", options.held or options.isa] if options.held or options.isa else []
        self._environment = options.environment
        self._directory = pathlib.Path(directory)

    def measure(self, command):
        return measure(command, self._environment)

    def bench(self, engine):
        return self._ort(self._seconds) if engine == "ort" else self._plimsoll("bench", [
            f"--seconds={self._seconds}", *(["--bf16"] if engine == BF16 else []),
            *(f"--shape={i['name']}={','.join(map(str, i['dims']))}" for i in self._inputs)])

    def once(self, engine):
        return self._ort(0) if engine == "ort" else self._plimsoll(
            "run", [*self._files(), *(["--bf16"] if engine == BF16 else [])])

    def once_compiled(self):
        """The same from a compiled file, which is made at the first call."""
        compiled = self._directory / f"model_{self.threads}.plim"
        if not compiled.exists():
            shapes = [f"--shape={i['name']}={','.join(map(str, i['dims']))}" for i in self._inputs]
            self.measure(self._plimsoll("compile", [str(compiled), *shapes]))
        return self._plimsoll("run", self._files(), str(compiled))

    def _files(self):
        return [f"--input={i['name']}={i['npy']}" for i in self._inputs]

    def _plimsoll(self, command, options, model=None):
        return [str(PLIMSOLL), command, model or self._model, *options, *self._isa, "--threads", str(self.threads), "--json"]

    def _ort(self, seconds):
        job = self._directory / f"job_{self.threads}_{seconds}.json"
        job.write_text(json.dumps({"model": self._model, "inputs": self._inputs, "threads": self.threads,
                                   "seconds": seconds}))
        return [*NODE, str(ROOT / "bench" / "ort.js"), str(job)]


def run_round(case, engine, empty):
    """One round of one engine: its latency and peak from a longer run, its first output from a process of one run."""
    report, _, peak_rss = case.measure(case.bench(engine))
    _, first_output_ms, _ = case.measure(case.once(engine))
    sample = {key: report[key] for key in ("load_ms", "min_ms", "median_ms", "p99_ms")}
    if "instruction_set" in report:
        sample["instruction_set"] = report["instruction_set"]
    sample |= {"first_output_ms": first_output_ms, "peak_rss_bytes": peak_rss}
    if engine == "plimsoll":
        sample["compiled_first_output_ms"] = case.measure(case.once_compiled())[1]
    if engine == "ort":
        # What Node itself costs is not ONNX Runtime's fault.
        sample["raw_first_output_ms"], sample["raw_peak_rss_bytes"] = first_output_ms, peak_rss
        sample["first_output_ms"] -= empty["first_output_ms"]
        sample["peak_rss_bytes"] -= empty["peak_rss_bytes"]
    if "accounts" in report:
        sample["accounts"] = report["accounts"]
    return sample


def smallest(samples):
    """The minimum of every number over the rounds: noise only adds. Cold start is what the first output takes beyond a warm run."""
    best = {key: min(s[key] for s in samples) for key in samples[0] if key != "accounts"}
    if "accounts" in samples[-1]:
        best["accounts"] = samples[-1]["accounts"]
    best["cold_start_ms"] = best["first_output_ms"] - best["min_ms"]
    # ONNX Runtime's own is what a compiled file is compared with.
    best["compiled_cold_start_ms"] = best.get("compiled_first_output_ms", best["first_output_ms"]) - best["min_ms"]
    return best


def measure_empty_node(rounds, environment=None):
    samples = [measure(EMPTY_NODE, environment) for _ in range(rounds)]
    return {"first_output_ms": min(s[1] for s in samples), "peak_rss_bytes": min(s[2] for s in samples)}


def compare(name, threads, options, empty):
    """All rounds of one model at one number of threads, engines in alternation; who goes first alternates too."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as directory:
        made = subprocess.run(["/usr/bin/python3", str(ROOT / "tools" / "cases.py"), name, directory],
                              stdout=subprocess.PIPE, check=True)
        case = Case(name, threads, json.loads(made.stdout), options, directory)
        row = {"model": name, "threads": threads}
        samples = {engine: [] for engine in options.engines}
        for number in range(options.rounds):
            progress(f"{name}, {threads} thread(s), round {number + 1} of {options.rounds}")
            for engine in options.engines if number % 2 == 0 else reversed(options.engines):
                if f"{engine}_error" in row:
                    continue
                try:
                    samples[engine].append(run_round(case, engine, empty))
                except BenchError as error:
                    row[f"{engine}_error"] = str(error)
        row |= {engine: smallest(s) for engine, s in samples.items() if s and f"{engine}_error" not in row}
        return row


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


# Columns of the table: heading, key, divisor, format.
COLUMNS = [("latency ms", "min_ms", 1, "{:.2f}"), ("first output ms", "first_output_ms", 1, "{:.0f}"),
           ("cold start ms", "cold_start_ms", 1, "{:.0f}"), ("compiled ms", "compiled_cold_start_ms", 1, "{:.1f}"),
           ("peak RSS MB", "peak_rss_bytes", 1e6, "{:.1f}")]



# Of bfloat16, beside the others: key, divisor, format.
BF16_COLUMNS = [("min_ms", 1, "{:.2f}"), ("peak_rss_bytes", 1e6, "{:.1f}")]


def cells(row, with_bf16):
    out = [row["model"], str(row["threads"])]
    for _, key, divisor, form in COLUMNS:
        for engine in ENGINES:
            out.append(form.format(row[engine][key] / divisor) if engine in row else "-")
        value = report.ratio(row, key)
        out.append(f"{value:.2f}" if value else "-")
    out.append(f"{row['ort']['raw_peak_rss_bytes'] / 1e6:.1f}" if "ort" in row else "-")
    if with_bf16:
        out += [form.format(row[BF16][key] / divisor) if BF16 in row else "-" for key, divisor, form in BF16_COLUMNS]
    return out


def mean_cells(rows, threads, with_bf16):
    out = ["geometric mean", str(threads)]
    for _, key, _, _ in COLUMNS:
        mean = report.geometric_mean(report.ratio(row, key) for row in rows if row["threads"] == threads)
        out += ["", "", f"{mean:.2f}" if mean else "-"]
    return [*out, "", *([""] * len(BF16_COLUMNS) if with_bf16 else [])]


def print_table(rows, threads, with_bf16=False):
    heading = ["model", "threads"]
    for title, *_ in COLUMNS:
        heading += [title, "ORT", "ratio"]
    heading.append("ORT with Node")
    if with_bf16:
        heading += ["bf16 (opt-in) latency ms", "bf16 (opt-in) peak RSS MB"]
    table = [heading, *(cells(row, with_bf16) for row in rows),
             *(mean_cells(rows, count, with_bf16) for count in threads)]
    widths = [max(map(len, column)) for column in zip(*table)]
    for line in table:
        print("  ".join(text.ljust(w) if k == 0 else text.rjust(w) for k, (text, w) in enumerate(zip(line, widths))))
    print("ratio: Plimsoll / ONNX Runtime, below 1 is better; first output and peak RSS of ONNX Runtime without Node's")
    for row in rows:
        for engine in (*ENGINES, BF16):
            if f"{engine}_error" in row:
                print(f"{row['model']}, {row['threads']} thread(s): {row[f'{engine}_error']}")


def instruction_set(rows):
    """What our kernels used; all rows agree, because they are of one machine."""
    return next((row["plimsoll"]["instruction_set"] for row in rows if "plimsoll" in row), "")


def save(path, result):
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(result, indent=1) + "\n")
    temporary.replace(path)
    print(f"wrote {path}")


def parse(benchmarks):
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(benchmarks))
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(t) for t in text.split(",")])
    parser.add_argument("--rounds", default=10, type=int, help="fresh processes of each engine per model (10)")
    parser.add_argument("--seconds", default=1.0, type=float, help="how long a process repeats its run (1)")
    parser.add_argument("--only", choices=ENGINES, help="measure one engine alone")
    parser.add_argument("--isa", choices=["sse4", "avx2", "avx_vnni", "avx512f", "avx512", "amx"], help="hold Plimsoll to these instructions")
    parser.add_argument("--held", choices=["avx2"], help="hold both engines to these instructions: what a machine without others would do")
    parser.add_argument("--bf16", action="store_true",
                        help="measure Plimsoll with products in bfloat16 too, in columns of its own")
    parser.add_argument("--output", type=pathlib.Path,
                        help="JSON file (bench/results/CPU-INSTRUCTIONS.json if both engines run the whole set)")
    options = parser.parse_args()
    if options.rounds < 1 or min(options.threads) < 1:
        parser.error("--rounds and --threads start at 1")
    if options.held and (options.isa or options.bf16):
        parser.error("--held says all about instructions")
    options.whole = not options.models and not options.only
    options.models = chosen(options.models, benchmarks)
    options.engines = [options.only] if options.only else list(ENGINES)
    if options.bf16:
        options.engines.append(BF16)
    return options


def main():
    listed = subprocess.run([str(ROOT / "tools" / "cases.py")], stdout=subprocess.PIPE, text=True, check=True)
    options = parse(listed.stdout.split())
    missing = [name for name in options.models if not model_path(name).exists()]
    if missing:
        sys.exit(f"error: not in the cache: {' '.join(missing)}; run ./dev models")
    if "plimsoll" in options.engines and not PLIMSOLL.exists():
        sys.exit(f"error: {PLIMSOLL} is not there; run ./dev build, or measure with --only ort")
    described = machine.describe(ROOT, options.held)
    if described["load_average"] > BUSY:
        print(f"warning: load average {described['load_average']:.1f}: others are using this machine", file=sys.stderr)
    empty = None
    options.environment = held.environment() if options.held else None
    if "ort" in options.engines:
        try:
            (held if options.held else onnxruntime_npm).ensure()
        except onnxruntime_npm.Unavailable as problem:
            sys.exit(f"error: {problem}")
        empty = measure_empty_node(max(options.rounds, 5), options.environment)

    rows = [compare(name, threads, options, empty) for threads in options.threads for name in options.models]
    progress("")
    print_table(rows, options.threads, options.bf16)
    today = datetime.date.today().isoformat()
    result = {"date": today, "machine": described, "onnxruntime": onnxruntime_npm.INFERENCE.version,
              "instruction_set": instruction_set(rows), "rounds": options.rounds, "empty_node": empty,
              # No child can be reported below this: the peak of the process that started it.
              "rss_floor_bytes": measure(["echo", "{}"])[2], "rows": rows}
    print(f"on {described['cpu']}, {described['cores']} cores, ours with {result['instruction_set'] or 'nothing measured'}")
    if options.output or options.whole:
        kind = described["cpu"] if options.held else f"{described['cpu']} {result['instruction_set']}"
        save(options.output or report.RESULTS / f"{machine.slug(kind)}.json", result)
    if options.whole and not options.output:
        report.write()
    return 1 if any(f"{engine}_error" in row for row in rows for engine in (*ENGINES, BF16)) else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
