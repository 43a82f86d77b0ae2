#!/usr/bin/env python3
"""Puts files of one folder together into translation units: half of what the compiler does for a file, it does for each.

join_files.py --lines N --root DIRECTORY... --into PREFIX FILE...

Writes PREFIX<n>.cpp, which includes its files, where that changes anything, and prints one line for each: the unit, then its
files, separated by semicolons. A unit has at most about N lines. Files are kept apart when a local name of one of them or of
its headers (in an unnamed namespace, a type, a constant) has another meaning in the other, and when they define macros.
Files that find no company are not printed.
"""
import argparse
import pathlib
import re
import sys

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
INCLUDE = re.compile(r'^#include ["<]([^">]+)', re.M)
MACRO = re.compile(r"^#(?:define|undef)", re.M)
# What a line in the first column declares.
NOTHING = re.compile(r"[^A-Za-z_]|(namespace|template|using namespace|extern)\b|(struct|class|enum)[^{(]*;$|$")
TEST = re.compile(r"[A-Z_]*TEST[A-Z_]*\((\w+)(?:, (\w+))?")
USING = re.compile(r"using [\w:]*?(\w+);")
ALIAS = re.compile(r"using (\w+) =")
TYPE = re.compile(r"(?:struct|class|union|enum(?: class| struct)?)\s+([\w:]+)")
OTHER = re.compile(r"([\w:~]+)\s*(?:[({=;\[]|$)")
CONSTANT = re.compile(r"k[A-Z]")
# Its meaning is the one of the C library, or of a class; a constant of a function would shadow one outside.
CALLED = re.compile(r"(?<![\w.:>~])([a-z]\w*)\(")
INNER_CONSTANT = re.compile(r"\b(k[A-Z]\w*) =")


def declared_name(line):
    if NOTHING.match(line):
        return None
    if found := TEST.match(line):
        return "_".join(filter(None, found.groups()))
    found = USING.match(line) or ALIAS.match(line) or TYPE.match(line)
    if not found:
        while line != (line := re.sub(r"<[^<>]*>", "", line)):
            pass
        found = OTHER.search(line)
    return found.group(1) if found and "::" not in found.group(1) else None  # that of a member is no name by itself


def names_of(text):
    """(local names, names that must not mean anything else) of a file."""
    text = text.replace("\n}  // namespace\n", "\nnamespace }\n")
    text = COMMENT_OR_TEXT.sub(lambda found: "" if found[0].startswith("/") else '""', text)
    local, every, unnamed = set(), set(CALLED.findall(text)) | set(INNER_CONSTANT.findall(text)), False
    for line in text.split("\n"):
        if line in ("namespace {", "namespace }"):
            unnamed = line == "namespace {"
        elif name := declared_name(line):
            every.add(name)
            if unnamed and not USING.match(line) or CONSTANT.match(name) or TYPE.match(line):
                local.add(name)
    return local, every


class Source:
    """A file with what it includes."""

    def __init__(self, path, roots, known):
        known[path] = self
        self.path = path
        text = path.read_text(encoding="utf-8")
        self.lines = text.count("\n")
        self.has_macros = bool(MACRO.search(text))
        self.local, self.every = names_of(text)
        self.reached = {path: self}
        for name in INCLUDE.findall(text):
            header = next((place / name for place in [path.parent, *roots] if (place / name).is_file()), None)
            if header and header not in self.reached:
                self.reached.update((known.get(header) or Source(header, roots, known)).reached)

    def local_names(self):
        return {(name, part.path) for part in self.reached.values() for name in part.local}

    def meanings(self):
        found = {}
        for part in self.reached.values():
            for name in part.every:
                found.setdefault(name, set()).add(part.path)
        return found


def has_against(a, b):
    """Whether a name that is local to `a` means something else in a file that `b` brings with it."""
    meanings = b.meanings()
    return any(meanings.get(name, set()) - a.reached.keys() for name, _ in a.local_names())


def may_meet(a, b):
    return not (a.has_macros or b.has_macros or has_against(a, b) or has_against(b, a))


def units_of(sources, most_lines):
    """Each file goes into the first unit that has room and no name against it."""
    units = []
    for source in sources:
        for unit in units:
            if sum(other.lines for other in unit) + source.lines <= most_lines and all(may_meet(source, other) for other in unit):
                unit.append(source)
                break
        else:
            units.append([source])
    return [[source.path for source in unit] for unit in units if len(unit) > 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, required=True)
    parser.add_argument("--root", action="append", default=[], type=pathlib.Path)
    parser.add_argument("--into", required=True)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    known = {}
    sources = [Source(path, arguments.root, known) for path in arguments.files]
    for number, files in enumerate(units_of(sources, arguments.lines)):
        unit = pathlib.Path(f"{arguments.into}{number}.cpp")
        text = "// If names clash: cmake puts the files apart (tools/join_files.py).\n"
        text += "".join(f'#include "{file}"\n' for file in files)
        if not unit.exists() or unit.read_text(encoding="utf-8") != text:
            unit.parent.mkdir(parents=True, exist_ok=True)
            unit.write_text(text, encoding="utf-8")
        print(";".join(map(str, [unit, *files])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
