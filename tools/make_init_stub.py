#!/usr/bin/python3
"""make_init_stub.py PACKAGE OUTPUT: __init__.pyi of a package whose __init__.py imports its names when they are asked for.

Type checkers take from it that the package exports what its table _HOME and its list _MODULES name.
"""
import ast
import pathlib
import sys


def literal(tree, name):
    return next(ast.literal_eval(node.value) for node in tree.body
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name)


def main():
    tree = ast.parse((pathlib.Path(sys.argv[1]) / "__init__.py").read_text())
    lines = [f"from . import {name} as {name}" for name in literal(tree, "_MODULES")]
    lines += [f"from .{home} import {name} as {name}" for home, names in literal(tree, "_HOME").items() for name in names]
    pathlib.Path(sys.argv[2]).write_text("\n".join(["# Made by tools/make_init_stub.py.", *lines, ""]))


if __name__ == "__main__":
    main()
