#!/usr/bin/python3
"""Compares operators with the numpy references beside this file: run.py [--full] [NAME...] [-- FLAGS]

NAME is an operator or a family (a file's name); what follows -- goes to `plimsoll run`, such as --poison.
"""
import argparse
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import harness  # noqa: E402


def is_family(path):
    """A file that registers something with the harness."""
    with open(path, encoding="utf-8") as file:
        return "\nfrom harness import" in file.read()


def load_families():
    for name in sorted(os.listdir(HERE)):
        stem, extension = os.path.splitext(name)
        if extension == ".py" and is_family(os.path.join(HERE, name)):
            rejections = len(harness.REJECTIONS)
            importlib.import_module(stem)
            harness.REJECTIONS[rejections:] = [(*entry, stem) for entry in harness.REJECTIONS[rejections:]]


def wanted(names, name, op, family):
    return not names or {name.lower(), op.lower(), family.lower()} & {n.lower() for n in names}


def main():
    arguments, flags = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="200 cases per operator instead of 10")
    parser.add_argument("--count", type=int, help="cases per operator")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    harness.FLAGS[:] = flags
    load_families()
    count = options.count or (200 if options.full else 10)
    references = [r for r in harness.REFERENCES if wanted(options.names, r[0], r[1], r[4])]
    rejections = [r for r in harness.REJECTIONS if wanted(options.names, r[0], r[1], r[4])]
    passed = failed = 0

    def failures_of(index):
        _, op, expected_fn, generator, _ = references[index]
        return harness.check(op, expected_fn, generator, count, options.seed)

    def problem_of(index):
        _, op, case_arguments, says, _ = rejections[index]
        return harness.check_rejection(op, case_arguments, says)

    for (name, *_), failures in zip(references, harness.in_parallel(failures_of, len(references), options.jobs)):
        print(f"{name}: {count - failures} of {count}", flush=True)
        passed, failed = passed + count - failures, failed + failures
    for (name, _, case_arguments, *_), problem in zip(rejections, harness.in_parallel(problem_of, len(rejections), options.jobs, 16)):
        passed, failed = passed + (problem is None), failed + (problem is not None)
        if problem:
            print(f"{name}: {problem} ({harness.describe(case_arguments)})", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
