#!/usr/bin/python3
"""What Python costs: session.run above the same run in C++, the import above numpy's, and what 16 threads on one session gain.

    PYTHONPATH=build/python /usr/bin/python3 bench/python_overhead.py

Prints microseconds per run, milliseconds and MiB per import, with the goals of issue 11 beside them. Each figure is the
best of several rounds, taken in turns, because other programs only ever add to them.
"""
import os
import pathlib
import subprocess
import sys
import threading
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


def runs_per_second(session, feed, threads, seconds=2.0):
    counts, stop = [0] * threads, threading.Event()

    def work(index):
        while not stop.is_set():
            session.run(None, feed)
            counts[index] += 1
    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - start)


def scaling():
    """A session whose runs take one thread each, some milliseconds long."""
    import models
    import numpy as np

    import plimsoll as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(models.chain(8, 512), options)
    feed = {"x": np.ones((256, 512), np.float32)}
    session.run(None, feed)
    return [max(runs_per_second(session, feed, threads) for _ in range(2)) for threads in (1, 16)]


def main():
    milliseconds, cpu, mebibytes = import_cost("import plimsoll; plimsoll.InferenceSession")
    print(f"import beyond numpy: {milliseconds:.1f} ms, {cpu:.1f} ms of them on the CPU (goal: 60), "
          f"{mebibytes:.1f} MiB (goal: 25)")
    native, python = run_cost()
    print(f"one node, run in C++: {native:.2f} us; session.run: {python:.2f} us; "
          f"above: {python - native:.2f} us (goal: 5)")
    one, sixteen = scaling()
    print(f"runs a second on one session: {one:.0f} from one thread, {sixteen:.0f} from 16; {sixteen / one:.2f} times "
          f"({len(os.sched_getaffinity(0))} cores)")


if __name__ == "__main__":
    main()
