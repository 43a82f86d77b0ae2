#!/usr/bin/python3
"""What the article on PyTorch and memory leaks (the second seed) claims, measured on the torch that is installed.

  tools/seed_claims.py [--json] [--only NAME] [--write docs/torch-doctor.md]

Every figure comes from a process of its own (tools/seed_scenarios.py), in which nothing of torch is replaced; the
article's three examples run as they stand. Verdicts are computed from the figures, by the conditions written here.
"""
import argparse
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "python" / "tests" / "torch_scripts"
PACKAGE = os.environ.get("PLIMSOLL_PYTHON", str(ROOT / "build" / "python"))
sys.path.insert(0, PACKAGE)
ITERATIONS = 40
FLAT_BYTES = 1024  # live heap bytes per iteration: less is not called growth
BEGIN, END = "<!-- seed claims: begin (tools/seed_claims.py --write) -->", "<!-- seed claims: end -->"


def measure(scenario, **options):
    """The figures of one scenario of tools/seed_scenarios.py, from a fresh process."""
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "seed_scenarios.py"), scenario, json.dumps(options)],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PACKAGE}, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"scenario {scenario}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


@functools.lru_cache(maxsize=None)
def printed_changes(number):
    """What one of the article's examples prints by itself in three runs, in MB, and what the doctor says of it."""
    path = SCRIPTS / f"seed_{number}.py"
    runs = []
    for _ in range(3):
        alone = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True).stdout
        runs.append([float(value) for value in re.findall(r": (-?[\d.]+) MB", alone)])
    doctor = subprocess.run([sys.executable, "-m", "plimsoll.torch_doctor", "--json", str(path)], capture_output=True,
                            text=True, check=False, env={**os.environ, "PYTHONPATH": PACKAGE})
    return runs, json.loads(doctor.stdout)


def printed(runs):
    """The changes of the first call, the second, and the others together, as text: ranges over the runs."""
    def both(values):
        return f"{min(values):.2f}" if min(values) == max(values) else f"{min(values):.2f} to {max(values):.2f}"
    columns = ([run[0] for run in runs], [run[1] for run in runs], [round(sum(run[2:]), 2) for run in runs])
    return "{} MB for the first call, {} MB for the second, {} MB for all others together".format(*map(both, columns))


def size(count):
    from plimsoll.torch_doctor.report import size as text
    return text(round(count))


def rate(figures):
    return f"{size(figures['heap_live'])}/call"


def flat(*many):
    return all(abs(figures["heap_live"]) < FLAT_BYTES for figures in many)


def verdict(holds, part=False):
    return "holds" if holds else "holds in part" if part else "does not hold here"


# --- one function per claim: (claim, what was measured, verdict) ---

def example_1():
    runs, report = printed_changes(1)
    return ("Example 1, as it stands: without `no_grad` memory rises gradually with each iteration, as it prints",
            f"it prints {printed(runs)} (three runs); in use "
            f"per iteration {size(report['growth']['bytes_per_iteration'])}; saved for backward per call "
            f"{report['findings'][0]['bytes']} B, freed with the output",
            verdict(report["growth"]["bytes_per_iteration"] > FLAT_BYTES))


def example_1_bigger():
    rows = {name: measure("dropped", model=name) for name in ("mlp", "convolutions", "lstm", "transformer")}
    long = measure("long", calls=10_000)
    text = "; ".join(f"{name} {rate(row)} (saved per call {size(row['saved'])})" for name, row in rows.items())
    return ("the problem is amplified in complex models, especially recurrent networks and transformers",
            f"live heap over {ITERATIONS} calls, outputs dropped: {text}. It does not go on: calls 100 to "
            f"10,000 of a small LSTM add {size(long['heap_live'])} in all",
            verdict(not flat(*rows.values())))


def retained_for_the_graph():
    row = measure("lifetime", model="mlp")
    return ("without `no_grad` intermediate tensors are retained for the entire graph",
            f"while the output lives {size(row['held'])} are held (saved tensors {size(row['saved'])}); after `del "
            f"output` {size(row['left'])} are left",
            verdict(row["left"] > row["held"] / 2, part=row["held"] > row["saved"] * 0.9))


def example_2():
    slopes = [printed_changes(number)[1]["growth"]["bytes_per_iteration"] for number in (1, 2)]
    return ("Example 2, as it stands: with `no_grad` the increase is significantly reduced",
            f"with `no_grad` it prints {printed(printed_changes(2)[0])}; in use per iteration without and with "
            f"`no_grad` {size(slopes[0])} and {size(slopes[1])}" + (
                ": there was no increase to reduce" if slopes[0] <= FLAT_BYTES else ""),
            verdict(slopes[0] > FLAT_BYTES and slopes[1] < slopes[0] / 2))


def no_grad_lowers_the_peak():
    rows = {mode: measure("dropped", model="mlp", no_grad=mode) for mode in (False, True)}
    return ("with `no_grad` intermediate tensors are not retained, what is allocated is ephemeral",
            f"a deep network's peak above its start: {size(rows[False]['peak'])} with the graph, "
            f"{size(rows[True]['peak'])} under `no_grad`; live heap {rate(rows[False])} and {rate(rows[True])}",
            verdict(flat(rows[True]) and rows[True]["peak"] < rows[False]["peak"]))


def kept():
    rows = {mode: measure("kept", model="mlp", no_grad=mode) for mode in (False, True)}
    return ("tensors that remain referenced, even indirectly, are not reclaimed",
            f"outputs of {size(rows[True]['output'])} appended to a list: live heap {rate(rows[False])} with the "
            f"graph, {rate(rows[True])} under `no_grad`",
            verdict(rows[False]["heap_live"] > 10 * rows[True]["heap_live"] > FLAT_BYTES))


def example_3():
    runs, report = printed_changes(3)
    copies = next(finding for finding in report["findings"] if finding["cause"] == "loader_copies")
    return ("Example 3, as it stands: a loader that converts NumPy data causes memory issues even with `no_grad`",
            f"it prints {printed(runs)} (three runs); {size(copies['bytes'])} of copies per batch, freed with "
            f"it; in use per iteration {size(report['growth']['bytes_per_iteration'])}",
            verdict(report["growth"]["bytes_per_iteration"] > FLAT_BYTES))


def example_3_bigger():
    rows = {workers: measure("loader", workers=workers) for workers in (0, 2)}
    return ("the same with large arrays and repeated cycles",
            f"80 MiB of float64, three epochs of 16 batches: live heap {rate(rows[0])}; with two workers "
            f"{rate(rows[2])}; peak above the data {size(rows[0]['peak'])}, "
            f"{rows[0]['peak'] / rows[0]['batch']:.1f} batches",
            verdict(not flat(rows[0], rows[2])))


def explicit_delete():
    rows = {mode: measure("loader", delete=mode) for mode in (False, True)}
    return ("temporary CPU tensors need to be deleted or overwritten explicitly",
            f"live heap {rate(rows[False])} without, {rate(rows[True])} with `del batch, output`; peak "
            f"{size(rows[False]['peak'])} and {size(rows[True]['peak'])}: `del` lowers the peak by "
            f"{(rows[False]['peak'] - rows[True]['peak']) / rows[False]['batch']:.1f} batches, not the slope",
            verdict(not flat(rows[False]) and flat(rows[True]), part=rows[True]["peak"] < rows[False]["peak"] * 0.9))


def statistics():
    rows = {mode: measure("statistics", train=mode) for mode in (False, True)}
    return ("batch normalization's running statistics persist through inference under `eval()` and add to memory",
            f"{size(rows[False]['statistics'])} for {rows[False]['channels']} channels, there from construction; over "
            f"{ITERATIONS} calls live heap {rate(rows[False])} under `eval()`, {rate(rows[True])} in training mode; "
            f"values change under `eval()`: {_yes(rows[False]['changed'])}, in training mode: "
            f"{_yes(rows[True]['changed'])}",
            verdict(not flat(rows[False]), part=rows[False]["statistics"] > 0))


def _yes(value):
    return "yes" if value else "no"


def caching_allocator():
    row = measure("allocator")
    return ("PyTorch's own memory management keeps and reuses allocations instead of releasing them (CPU)",
            f"a tensor of {size(row['large'])}: {size(row['large_returned'])} went back to the system at `del`; "
            f"{size(row['small'])} of 60 KB tensors beneath one that lives: {size(row['small_returned'])} at `del`, "
            f"{size(row['small_trimmed'])} more by `malloc_trim`: it is the C library that keeps them, not PyTorch",
            verdict(row["large_returned"] < row["large"] / 2, part=row["small_returned"] < row["small"] / 2))


def collector():
    rows = {name: measure(name, model="mlp", collect=False) for name in ("dropped", "cycle")}
    return ("reclaiming waits for Python's garbage collector, with delays or failures",
            f"collector off, graph recorded, outputs dropped: live heap {rate(rows['dropped'])}, reference counts "
            f"suffice; outputs in an object that refers to itself: {rate(rows['cycle'])}",
            verdict(not flat(rows["dropped"]), part=not flat(rows["cycle"])))


def in_place():
    rows = {mode: measure("in_place", inplace=mode) for mode in (False, True)}
    return ("in-place operations reduce copies on the CPU",
            f"peak of a chain of ReLUs under `no_grad`: {size(rows[False]['peak'])} out of place, "
            f"{size(rows[True]['peak'])} in place; live heap {rate(rows[False])} and {rate(rows[True])}",
            verdict(rows[True]["peak"] < 0.9 * rows[False]["peak"]))


def device():
    return ("tensors should be moved to the GPU as soon as possible to avoid CPU leaks",
            "no GPU here; without growth on the CPU there is nothing for it to cure", "not tested")


CLAIMS = (example_1, example_1_bigger, retained_for_the_graph, example_2, no_grad_lowers_the_peak, kept, example_3,
          example_3_bigger, explicit_delete, statistics, caching_allocator, collector, in_place, device)


def as_table(rows, version):
    lines = [f"Measured with torch {version}; \"live heap\" is malloc's own count of the bytes in use.", "",
             "| what the article claims | what was measured | |", "|---|---|---|"]
    return lines + [f"| {claim} | {measured} | **{word}** |" for claim, measured, word in rows]


def write(path, table):
    text = path.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"error: {path}: no line '{BEGIN}'")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n" + "\n".join(table) + f"\n{END}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=[claim.__name__ for claim in CLAIMS])
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    rows = []
    for claim in CLAIMS:
        if options.only in (None, claim.__name__):
            if sys.stderr.isatty():
                print(claim.__name__, file=sys.stderr)
            rows.append(claim())
    version = measure("version")["torch"]
    if options.write:
        write(options.write, as_table(rows, version))
    elif options.json:
        print(json.dumps({"torch_version": version, "claims": [
            {"claim": claim, "measured": measured, "verdict": word} for claim, measured, word in rows]}))
    else:
        print("\n".join(as_table(rows, version)))


if __name__ == "__main__":
    main()
