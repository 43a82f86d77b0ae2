#!/usr/bin/python3
"""check_includes.py [ROOT]

Holds the code to the include rule:
  src/FOLDER        includes itself, the FOLDERS that src/CMakeLists.txt gives it, and include/plimsoll
  include/plimsoll  includes itself and the standard library
  apps, python      include <plimsoll/...>, its own files, and no folder of src
and the lists themselves to the order of src/CMakeLists.txt: a folder sees only folders above it.
"""
import pathlib
import re
import sys

FOLDER = re.compile(r"^plimsoll_folder\((\w+)([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def read_folders(root):
    """{folder: the folders it may include}, in the order of the file."""
    text = (root / "src" / "CMakeLists.txt").read_text()
    folders = {}
    for name, arguments in FOLDER.findall(text):
        _, _, allowed = arguments.partition("FOLDERS")
        folders[name] = allowed.partition("ALONE")[0].split()
    return folders


def check_order(folders):
    seen = set()
    for name, allowed in folders.items():
        for other in allowed:
            if other not in seen:
                yield f"src/CMakeLists.txt: {name} lists {other}, which is not above it"
        seen.add(name)


def includes(root, directory):
    """(path, line number, opening character, included path) of every #include below a directory."""
    for path in sorted((root / directory).rglob("*")):
        if path.suffix not in (".h", ".cpp", ".inc"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := INCLUDE.match(line):
                yield path.relative_to(root), number, match[1], match[2]


def check_src(root, folders):
    for path, number, quote, target in includes(root, "src"):
        here, there = path.parts[1], pathlib.PurePath(target).parts[0]
        if here not in folders:
            yield f"{path}:{number}: folder {here} is not in src/CMakeLists.txt"
        elif there == "..":
            yield f"{path}:{number}: includes {target}: write the path from src/"
        elif "/" in target and there in folders and there != here and there not in folders[here]:
            yield f"{path}:{number}: {here} may not include {there} ({target})"


def check_public(root):
    for path, number, quote, target in includes(root, "include/plimsoll"):
        # custom_op.h is C: libraries of operators need not be C++.
        standard = quote == "<" and "/" not in target and (
            not target.endswith((".h", ".hpp")) or target in ("stddef.h", "stdint.h"))
        if not (standard or target.startswith("plimsoll/")):
            yield f"{path}:{number}: a public header may include only plimsoll/ and the standard library, not {target}"


def check_apps(root, folders):
    for path, number, quote, target in [*includes(root, "apps"), *includes(root, "python")]:
        beside = quote == '"' and (root / path.parent / target).exists()
        if target.startswith("src/") or (not beside and "/" in target and pathlib.PurePath(target).parts[0] in {*folders, ".."}):
            yield f"{path}:{number}: apps and bindings see only <plimsoll/...>, not {target}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
    folders = read_folders(root)
    problems = [*check_order(folders), *check_src(root, folders), *check_public(root), *check_apps(root, folders)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
