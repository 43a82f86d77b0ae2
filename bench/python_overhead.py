#!/usr/bin/python3
"""What Python costs: session.run above the same run in C++, and the import above numpy's.

    PYTHONPATH=build/python /usr/bin/python3 bench/python_overhead.py

Prints microseconds per run, milliseconds and MiB per import, with the goals of issue 11 beside them. Each figure is the
best of several rounds, taken in turns, because other programs only ever add to them.
"""
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))

ROUNDS = 15
IMPORT = """
import time, re
def rss(): return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])
import numpy
before, start, cpu = rss(), time.perf_counter(), time.process_time()
{statement}
print(1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - cpu), (rss() - before) / 1024)
"""


def import_cost(statement):
    best = [float("inf")] * 3
    for _ in range(ROUNDS):
        done = subprocess.run([sys.executable, "-c", IMPORT.format(statement=statement)], capture_output=True, text=True,
                              check=True)
        best = [min(pair) for pair in zip(best, map(float, done.stdout.split()))]
    return best


def run_cost(count=2000):
    import models
    import numpy as np

    import plimsoll as ort
    session = ort.InferenceSession(models.double())
    feed = {"x": np.ones((1, 4), np.float32)}
    native, python = float("inf"), float("inf")
    for _ in range(ROUNDS):
        native = min(native, session._seconds_per_run(feed, count))
        start = time.perf_counter()
        for _ in range(count):
            session.run(None, feed)
        python = min(python, (time.perf_counter() - start) / count)
    return 1e6 * native, 1e6 * python


def main():
    milliseconds, cpu, mebibytes = import_cost("import plimsoll; plimsoll.InferenceSession")
    print(f"import beyond numpy: {milliseconds:.1f} ms, {cpu:.1f} ms of them on the CPU (goal: 60), "
          f"{mebibytes:.1f} MiB (goal: 25)")
    native, python = run_cost()
    print(f"one node, run in C++: {native:.2f} us; session.run: {python:.2f} us; "
          f"above: {python - native:.2f} us (goal: 5)")


if __name__ == "__main__":
    main()
