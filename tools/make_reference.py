#!/usr/bin/python3
"""make_reference.py FOLDER: the interfaces as Markdown, python.md from the docstrings of build/python, cpp.md from the headers."""
import importlib
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def signature(thing):
    try:
        return str(inspect.signature(thing))
    except (TypeError, ValueError):  # native functions tell it in their docstring
        return ""


def block(thing):
    """Its docstring, with its examples as code."""
    lines, example = [], False
    for line in [*(inspect.getdoc(thing) or "").splitlines(), ""]:
        begins, ends = not example and line.strip().startswith(">>>"), example and not line.strip()
        if begins or ends:
            lines.append("```python" if begins else "```")
            example = begins
        lines.append(line.strip() if example else line)
    return "\n".join(lines)


def members(cls):
    for name, member in sorted(vars(cls).items()):
        if not name.startswith("_") and (callable(member) or isinstance(member, (property, staticmethod, classmethod))
                                         or hasattr(member, "__get__")):
            yield name, getattr(cls, name, member)


def python_page():
    sys.path.insert(0, str(ROOT / "build/python"))
    package = importlib.import_module("plimsoll")
    text = ["# Python", "", "`import plimsoll`, or `import plimsoll as ort`. Every public name, from its docstring.", ""]
    for name in package.__all__:
        thing = getattr(package, name)
        if inspect.ismodule(thing):
            text += [f"## `plimsoll.{name}`", "", block(thing), ""]
        elif inspect.isclass(thing):
            text += [f"## `{name}`", "", block(thing), ""]
            for member, value in members(thing):
                text += [f"### `{name}.{member}{signature(value) if callable(value) else ''}`", "", block(value), ""]
        elif callable(thing):
            text += [f"## `{name}{signature(thing)}`", "", block(thing), ""]
    return "\n".join(text)


def cpp_page():
    text = ["# C++", "", "`include/plimsoll/` is the whole interface. `find_package(plimsoll)`, or `pkg-config plimsoll`.", ""]
    for header in sorted((ROOT / "include/plimsoll").glob("*.h")):
        source = header.read_text()
        comment = re.match(r"(?://.*\n)+", source)
        lead = "\n".join(line[2:].strip() for line in comment.group().splitlines()) if comment else ""
        body = source[comment.end():] if comment else source
        text += [f"## `plimsoll/{header.name}`", "", lead, "", "```cpp", body.strip(), "```", ""]
    return "\n".join(text)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "python.md").write_text(python_page())
    (folder / "cpp.md").write_text(cpp_page())


if __name__ == "__main__":
    main()
