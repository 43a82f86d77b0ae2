#!/usr/bin/python3
"""bench/job_arrays.py [--mib 1024] [--rounds 5]

What it costs to give a job an array: seconds of a job without arguments, with an array of plimsoll.shared_empty, with an
ordinary one (which needs one copy), and with the job's own array as its result; best of the rounds, alternating.
"""
import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "build/python"))
import numpy
import plimsoll


def nothing():
    return None


def look_at(array):
    return array.nbytes


def make(count):
    return plimsoll.shared_empty((count,))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    count = options.mib * (1 << 20) // 8
    ordinary = numpy.random.default_rng(0).random(count)
    shared = plimsoll.shared_empty((count,))
    shared[:] = ordinary
    forms = {"no array": (nothing,), "shared_empty": (look_at, shared), "ordinary": (look_at, ordinary),
             "result": (make, count)}
    best = dict.fromkeys(forms, float("inf"))
    for _ in range(options.rounds):
        for name, call in forms.items():
            start = time.perf_counter()
            plimsoll.isolated(*call, result_limit=None)
            best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(f"{name:14} {seconds * 1e3:8.1f} ms   above the job itself {(seconds - best['no array']) * 1e3:+8.1f} ms")


if __name__ == "__main__":
    main()
