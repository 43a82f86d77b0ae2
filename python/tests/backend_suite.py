#!/usr/bin/python3
"""backend_suite.py [--every N]: ONNX's own backend tests (Debian's python3-onnx, onnx.backend.test) through plimsoll.backend.

All CPU tests that ship data, or every N-th of them. What cannot pass is named in docs/conformance.md and
apps/cli/random_case.cpp and read from there. The last line: N passed, M failed, K skipped.
"""
import argparse
import collections
import pathlib
import re
import sys
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
np.object = object  # onnx 1.12, as Debian has it, is older than numpy 1.24
import onnx.backend.test  # noqa: E402

import plimsoll.backend  # noqa: E402


def contradictory():
    """The first column of the table in docs/conformance.md; `\\_expanded` is the name before it with that ending."""
    names = []
    for cell in re.findall(r"^\| (test_.*?) \|", (ROOT / "docs/conformance.md").read_text(), re.MULTILINE):
        for word in cell.replace("\\", "").split(", "):
            names.append(names[-1] + word if word.startswith("_") else word)
    return {name: "its data contradicts the specification" for name in names}


def random_numbers():
    """Cases that expect the numbers of numpy's generator; `plimsoll verify` has tests of its own for them."""
    text = (ROOT / "apps/cli/random_case.cpp").read_text()
    lists = re.findall(r"constexpr const char\* k\w+\[\] = \{(.*?)\};", text, re.DOTALL)
    return {name: "expects the numbers of numpy's generator" for block in lists for name in re.findall(r'"(test_\w+)"', block)}


class Suite(onnx.backend.test.BackendTest):
    """ONNX's own, but for the comparison of sequences: its asks a tensor in one for its length, which a scalar has not."""

    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol):
        np.testing.assert_equal(len(outputs), len(ref_outputs))
        for expected, found in zip(ref_outputs, outputs):
            if isinstance(found, (list, tuple)):
                cls.assert_similar_outputs(expected, found, rtol, atol)
            else:
                super().assert_similar_outputs([expected], [found], rtol, atol)


def tests(every):
    """(name, test) of the CPU tests that ship data."""
    runner = Suite(plimsoll.backend.PlimsollBackend, __name__)
    found = []
    for category, case in sorted(runner.test_cases.items()):
        if category == "OnnxBackendRealModelTest":
            continue  # to be downloaded
        found += [(name.removesuffix("_cpu"), case(name)) for name in unittest.defaultTestLoader.getTestCaseNames(case)
                  if name.endswith("_cpu")]
    return found[::every]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, metavar="N")
    left_out, reasons = contradictory() | random_numbers(), collections.Counter()
    counts = collections.Counter()
    for name, test in tests(parser.parse_args().every):
        if name in left_out:
            counts["skipped"] += 1
            reasons[left_out[name]] += 1
            continue
        result = unittest.TestResult()
        test.run(result)
        for _, trace in [*result.failures, *result.errors]:
            print(f"failed {name}: {trace.strip().splitlines()[-1]}")
        for _, reason in result.skipped:
            print(f"skipped {name}: {reason}")
            reasons[reason] += 1
        counts["failed" if not result.wasSuccessful() else "skipped" if result.skipped else "passed"] += 1
    for reason, count in reasons.items():
        print(f"skipped {count}: {reason}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
