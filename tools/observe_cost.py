#!/usr/bin/python3
"""observe_cost.py [--seconds N] [--limit SHARE]

What watching costs: starts processes that are hard to watch, reads each once a second with `plimsoll.observe`, and
prints the processor time per second of each watch as a share of a core, with how many samples were full ones.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, os.environ.get("PLIMSOLL_PYTHON", str(ROOT / "build" / "python")))

from plimsoll import observe  # noqa: E402

HOLDER = str(ROOT / "build" / "tests" / "plimsoll_holder")
CASES = {
    "small": "heap 1000000",
    "2 GB in pages": f"map {2 << 30}",
    "50,000 mappings": "maps 25000",
    "10,000 threads": "threads 10000",
    "20 processes": "fork 19",
}


def start(command):
    process = subprocess.Popen([HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(command + "\n")
    process.stdin.flush()
    answer = process.stdout.readline().strip()
    if answer != "ok":
        process.kill()
        sys.exit(f"observe_cost: {command}: {answer}")
    return process


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--limit", type=float, default=0.004)
    options = parser.parse_args()
    processes = {name: start(command) for name, command in CASES.items()}
    watches = {name: observe.Observer(process.pid, cost_limit=options.limit) for name, process in processes.items()}
    full = dict.fromkeys(watches, 0)
    first = {}
    began = time.monotonic()
    for second in range(options.seconds):
        time.sleep(max(0.0, began + second - time.monotonic()))
        for name, watch in watches.items():
            full[name] += watch.read().exact
            first.setdefault(name, watch.own_cpu_seconds)
    elapsed = time.monotonic() - began
    print(f"{'':20} {'share of a core':>16} {'without the first':>18} {'first, ms':>10} {'full samples':>13}")
    for name, watch in watches.items():
        share, rest = watch.own_cpu_seconds / elapsed, (watch.own_cpu_seconds - first[name]) / elapsed
        print(f"{name:20} {100 * share:15.3f}% {100 * rest:17.3f}% {1000 * first[name]:10.2f} {full[name]:6} of {second + 1}")
    for process in processes.values():
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
