#!/usr/bin/env python3
"""Several operators' files as one translation unit: half of what the compiler does for one of them, it does for each.

join_operators.py --list FILE...        the names of those that can be joined
join_operators.py --output UNIT FILE... writes the unit

In a unit every file has a namespace of its own, plimsoll::in_<name>, because their local names are the same (`run`, `infer`).
So only a file can be joined that gives the others nothing but its OpDef, which the generated table finds there, and whose OpDef
no other file names.
"""
import pathlib
import re
import sys

OPENING = "namespace plimsoll {\n"
# A definition outside of the unnamed namespace starts in the first column and opens a brace, or is a variable of ours.
OUTSIDE = re.compile(r"^(?!extern const OpDef op_|namespace|\}|//|\s|#include).*[{=]", re.M)
NAMED = re.compile(r"extern const OpDef op_(\w+);")


def stem(path):
    return pathlib.Path(path).stem


def can_be_joined(name, text):
    """Nothing in it is for other files, except `op_<name>`."""
    if not re.search(rf"^extern const OpDef op_{name}\b", text, re.M) or text.count(OPENING) != 1 or NAMED.search(text):
        return False
    if re.search(r"^#(?!include)|^using |^namespace(?! plimsoll \{$| \{$)", text, re.M):
        return False
    head, _, rest = text.partition("\nnamespace {\n")
    _, _, tail = rest.rpartition("\n}  // namespace\n")
    outside = head + tail if rest else head
    return len(re.findall("^namespace {$", text, re.M)) <= 1 and not OUTSIDE.search(outside)


def main():
    files = {stem(path): pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[2 if sys.argv[1] == "--list" else 3:]}
    named = {name for text in files.values() for name in NAMED.findall(text)}
    joined = [name for name, text in files.items() if name not in named and can_be_joined(name, text)]
    if sys.argv[1] == "--list":
        print(";".join(joined), end="")
        return 0
    for path in sys.argv[3:]:
        if stem(path) not in joined:
            print(f"{path}: it gives other files more than its OpDef now, or an #if: run cmake again", file=sys.stderr)
            return 1
    parts = []
    for path in sys.argv[3:]:
        text = files[stem(path)].replace(OPENING, f"namespace plimsoll::in_{stem(path)} {{\n")
        parts.append(f'#line 1 "{path}"\n{text}')
    pathlib.Path(sys.argv[2]).write_text("".join(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
