#!/usr/bin/env python3
"""report.py: README's table of machines, the tables of docs/benchmarks.md and docs/benchmarks.svg from the last result of each kind of
machine in bench/results.

A kind of machine is a CPU and the instructions that ours was held to. `./dev bench` over the whole set ends with this.
"""
import json
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
BEGIN, END = "<!-- bench/report.py writes this -->", "<!-- until here -->"
COLORS = ["#2f6f9f", "#c0703a", "#5a8f4a", "#8a5a9f", "#9f8a2f", "#5f5f5f"]


def ratio(row, key):
    """Ours divided by theirs; None where one is missing, or there is nothing to divide by."""
    ours, theirs = (row.get(engine, {}).get(key) for engine in ("plimsoll", "ort"))
    return ours / theirs if ours and theirs and theirs > 0 and ours > 0 else None


def geometric_mean(values):
    known = [value for value in values if value]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def load(folder):
    """All results that compare models, the oldest first."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return sorted((r for r in found if "machine" in r and "rows" in r), key=lambda result: result["date"])


def label(result):
    """Short enough for a column: the maker, the family, the instructions."""
    cpu = re.sub(r"\((R|TM)\)|Processor|CPU|@.*|\d+-Core", "", result["machine"]["cpu"])
    if "held to" in cpu:
        return " ".join(cpu.split())
    return f"{' '.join(cpu.split())}, {result['instruction_set'].upper().replace('AVX5', 'AVX-5')}"


def rows_of(result, threads=1):
    return {row["model"]: row for row in result["rows"] if row["threads"] == threads}


KEYS = [("time", "min_ms"), ("time, 2 threads", "min_ms"), ("cold start", "cold_start_ms"),
        ("cold start, compiled", "compiled_cold_start_ms"), ("peak memory", "peak_rss_bytes")]


def ratios(result, title, key):
    return {model: ratio(row, key) for model, row in rows_of(result, 2 if "2 threads" in title else 1).items()}


def markdown(results):
    """One table per kind of machine: the columns that were measured there."""
    text = []
    for result in results:
        columns = [(title, found) for title, key in KEYS if any((found := ratios(result, title, key)).values())]
        machine = result["machine"]
        text += [f"**{label(result)}** ({result['date']}, {machine.get('plimsoll_commit', 'unknown commit')}):", "",
                 "| model | " + " | ".join(title for title, _ in columns) + " |", "|---" * (len(columns) + 1) + "|"]
        for model in rows_of(result):
            text.append(f"| {model} | " + " | ".join(cell(found.get(model)) for _, found in columns) + " |")
        means = " | ".join(f"**{cell(geometric_mean(found.values()))}**" for _, found in columns)
        text += [f"| geometric mean | {means} |", ""]
    return "\n".join(text)


def summary(results):
    """One row for each kind of machine: the mean over the models, and the best and the worst of them."""
    text = ["| | mean time | best to worst model | mean, 2 threads | cold start | compiled | peak memory | measured |", "|---" * 8 + "|"]
    for result in results:
        means = {title: cell(geometric_mean(ratios(result, title, key).values())) for title, key in KEYS}
        times = [value for value in ratios(result, *KEYS[0]).values() if value]
        text.append(f"| {label(result)} | **{means['time']}** | {cell(min(times))} to {cell(max(times))} | {means['time, 2 threads']} | "
                    f"{means['cold start']} | {means['cold start, compiled']} | **{means['peak memory']}** | "
                    f"{result['date']}, {result['machine'].get('plimsoll_commit', 'unknown commit')} |")
    return "\n".join([*text, ""])


def cell(value):
    return f"{value:.2f}" if value else "-"


def svg(results):
    """Bars of our time over theirs, one thread: a line at 1, a color per kind of machine."""
    models = list(dict.fromkeys(model for result in results for model in rows_of(result)))
    bar, gap, left, scale = 9, 8, 150, 380
    step = bar * len(results) + gap
    top = 22 + 16 * len(results)
    height = top + step * len(models) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + scale * 1.4:.0f}" height="{height}" '
           'font-family="sans-serif" font-size="12">', f'<rect width="100%" height="{height}" fill="#ffffff"/>',
           '<text x="6" y="15">time of one run over ONNX Runtime\'s, one thread: shorter is better, the line is 1</text>']
    for k, result in enumerate(results):
        out.append(f'<rect x="6" y="{21 + 16 * k}" width="10" height="10" fill="{COLORS[k % len(COLORS)]}"/>'
                   f'<text x="20" y="{30 + 16 * k}">{label(result)}</text>')
    for m, model in enumerate(models):
        y = top + step * m
        out.append(f'<text x="{left - 6}" y="{y + step / 2:.0f}" text-anchor="end">{model}</text>')
        for k, result in enumerate(results):
            value = ratio(rows_of(result).get(model, {}), "min_ms")
            if value:
                out.append(f'<rect x="{left}" y="{y + bar * k}" width="{scale * min(value, 1.3):.1f}" height="{bar - 1}" '
                           f'fill="{COLORS[k % len(COLORS)]}"/><text x="{left + scale * min(value, 1.3) + 3:.1f}" '
                           f'y="{y + bar * k + bar - 1}" font-size="9">{value:.2f}</text>')
    out += [f'<line x1="{left + scale}" x2="{left + scale}" y1="{top - 4}" y2="{height - 6}" stroke="#333" '
            'stroke-dasharray="4 3"/>', "</svg>"]
    return "\n".join(out) + "\n"


def between_marks(text, new):
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:begin]}\n{new}{text[end:]}"


def write(root=ROOT):
    results = load(root / "bench" / "results")
    for path, text in ((root / "README.md", summary(results)), (root / "docs" / "benchmarks.md", markdown(results))):
        path.write_text(between_marks(path.read_text(), text))
    (root / "docs" / "benchmarks.svg").write_text(svg(results))
    print(f"wrote README.md, docs/benchmarks.md and docs/benchmarks.svg from {len(results)} results")


if __name__ == "__main__":
    write()
