"""Lines of the caller's code: where a call came from, where a container is filled, what a line says."""
import ast
import functools
import linecache
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FILLING = frozenset({"append", "appendleft", "extend", "insert", "add", "update", "setdefault", "put", "push"})


class Place:
    """A line of somebody's code, and what to write instead (may be empty)."""

    def __init__(self, file, line, write="", function=""):
        self.file, self.line, self.write, self.function = file, line, write, function

    @property
    def code(self):
        return linecache.getline(self.file, self.line).strip()

    def __str__(self):
        return f"{shorten(self.file)}:{self.line}" if self.line else shorten(self.file)

    def writing(self, text):
        return Place(self.file, self.line, text, self.function)

    def to_dict(self):
        return {"file": self.file, "line": self.line, "function": self.function, "code": self.code,
                "write": self.write}


def shorten(path):
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else path


@functools.lru_cache(maxsize=None)
def belongs_to_caller(file):
    """Neither ours, nor torch's, nor the standard library's."""
    if file.startswith("<frozen") or os.path.abspath(file).startswith(_HERE + os.sep):
        return False
    torch = sys.modules.get("torch")
    for folder in (os.path.dirname(torch.__file__) if torch else None, os.path.dirname(os.__file__)):
        if folder and file.startswith(folder + os.sep):
            rest = file[len(folder):]
            return "site-packages" in rest or "dist-packages" in rest
    return True


def _is_library(file):
    return "/site-packages/" in file or "/dist-packages/" in file


def caller_frame(frame):
    """The nearest frame, from `frame` outwards, whose line the caller can change; else the nearest of another
    library's; else the outermost."""
    of_library = None
    while True:
        file = frame.f_code.co_filename
        if belongs_to_caller(file):
            if not _is_library(file):
                return frame
            of_library = of_library or frame
        if frame.f_back is None:
            return of_library or frame
        frame = frame.f_back


def place_of_frame(frame):
    return Place(frame.f_code.co_filename, frame.f_lineno, function=frame.f_code.co_name)


def place_of_function(function):
    """Where a function, method, partial or callable object is defined; None for what is not Python."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(getattr(function, "__call__", None), "__code__", None)
    if code is None:
        return None
    return Place(code.co_filename, code.co_firstlineno, function=code.co_name)


@functools.lru_cache(maxsize=64)
def _tree(file):
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


def _last_name(node):
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return None


def _fills(node, name):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _FILLING and _last_name(node.func.value) == name
    if isinstance(node, ast.AugAssign):
        return _last_name(node.target) == name
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _last_name(target) == name:
                return True
            if _last_name(target) == name and any(_last_name(part) == name for part in ast.walk(node.value)
                                                  if isinstance(part, (ast.Name, ast.Attribute))):
                return True
    return False


def places_that_fill(file, name, scope_name=None):
    """Lines of `file` that add to the container (or sum) called `name`; those in a function or class called
    `scope_name` if there are any."""
    tree = _tree(file)
    if tree is None or not name:
        return []
    scopes = [node for node in ast.walk(tree) if isinstance(node, _SCOPES) and node.name == scope_name]
    for scope in scopes + [tree]:
        lines = {node.lineno for node in ast.walk(scope) if _fills(node, name)}
        if lines:
            return [Place(file, line, function=scope_name or "") for line in sorted(lines)]
    return []


def places_that_call(file, names, first=1, last=sys.maxsize):
    """Lines of `file` where something called one of `names` is called, as a function or a method."""
    tree = _tree(file)
    if tree is None:
        return []
    return [Place(file, node.lineno) for node in ast.walk(tree)
            if isinstance(node, ast.Call) and first <= node.lineno <= last
            and isinstance(node.func, (ast.Name, ast.Attribute)) and _last_name(node.func) in names]


def enclosing_loop(file, line):
    """The outermost loop of the function around a line, or None."""
    tree, best = _tree(file), None
    if tree is None:
        return None
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                 and node.lineno <= line <= node.end_lineno]
    scope = max(functions, key=lambda node: node.lineno, default=tree)
    for node in ast.walk(scope):
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)) and node.lineno < line <= node.end_lineno:
            if best is None or node.lineno < best.lineno:
                best = node
    return Place(file, best.lineno) if best else None


def end_of_function(code):
    lines = [line for _, _, line in code.co_lines() if line]
    return max(lines, default=code.co_firstlineno)
