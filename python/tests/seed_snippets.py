"""The Python snippets of the first document in ../shared/seeds, which has no marks around them: text that parses, and does
something. Nothing of it is copied into this tree."""
import ast
import pathlib
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTS = (ast.Assign, ast.Import, ast.ImportFrom, ast.Call, ast.Delete, ast.FunctionDef)


def document():
    """The first seed's text, or None on a machine without ../shared."""
    seeds = sorted((ROOT.parent / "shared/seeds").glob("000*.txt"))
    return seeds[0].read_text() if seeds else None


def _tree(text):
    """What the text is in Python, or None. C++ that happens to parse ends its lines with semicolons."""
    if any(line.rstrip().endswith(";") for line in text.splitlines()):
        return None
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _longest(lines):
    """The longest run of lines from the first on that is Python, as text; '' if there is none."""
    for end in range(min(len(lines), 60), 0, -1):
        text = textwrap.dedent("\n".join(lines[:end]))
        if lines[end - 1].strip() and _tree(text):
            return text
    return ""


def snippets(text):
    """In the order of the document. A member of a dict that stands alone is shown as that dict."""
    lines, found, at = text.splitlines(), [], 0
    while at < len(lines):
        source = _longest(lines[at:]) if lines[at].strip() else ""
        used = source.count("\n") + 1
        source = source or f"options = {{{lines[at].strip()}\n}}"
        tree = _tree(source) if lines[at].strip() else None
        # Headings of one word are Python too.
        if tree is not None and any(isinstance(node, ACTS) for node in ast.walk(tree)):
            found.append(source)
        at += used
    return found
