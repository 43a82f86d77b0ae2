#!/usr/bin/env python3
"""op_tests.py OPERATOR: the cases of tests/ops that are about it, as GoogleTest's filter. OPERATOR is ONNX's name or the
file's in src/ops: GatherND or gather_nd."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def plain(name):
    return name.replace("_", "").lower()


def cases_of(operator, text):
    """The cases whose suite has the operator's name or that name it in quotes; all of them if only helpers do."""
    # Cases of a file, each with the text up to the next one.
    cases = [(m[1], m[2], m[3]) for m in re.finditer(r"^TEST\w*\((\w+),\s*(\w+)\)(.*?)(?=^TEST|\Z)", text, re.M | re.S)]
    names = lambda piece: any(plain(word) == operator for word in re.findall(r'"(\w+)"', piece))
    chosen = [f"{suite}.{case}" for suite, case, body in cases if plain(suite) == operator or names(body)]
    return chosen or ([f"{suite}.{case}" for suite, case, _ in cases] if names(text) else [])


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: op_tests.py OPERATOR")
    operator = plain(sys.argv[1])
    chosen = []
    for path in sorted((ROOT / "tests/ops").glob("*_test.cpp")):
        chosen += cases_of(operator, path.read_text())
    if not chosen:
        sys.exit(f"error: no case in tests/ops is about '{sys.argv[1]}'")
    print(":".join(chosen))


if __name__ == "__main__":
    main()
