"""Somebody's script, run as `python script.py` would run it."""
import contextlib
import io
import os
import sys
import types
from typing import Iterator, Sequence


def compile_file(path: str) -> types.CodeType:
    """Raises OSError, SyntaxError or ValueError (null bytes) if it cannot be read or compiled."""
    with io.open_code(path) as file:
        code: types.CodeType = compile(file.read(), path, "exec", dont_inherit=True)
        return code


@contextlib.contextmanager
def as_main(path: str, arguments: Sequence[str]) -> Iterator[types.ModuleType]:
    """A fresh `__main__` for it to be executed in, with its arguments, and its own folder first on the path."""
    saved = sys.argv, sys.path[0], sys.modules["__main__"]
    main = types.ModuleType("__main__")
    vars(main).update(__file__=path, __builtins__=__builtins__)
    sys.argv, sys.path[0], sys.modules["__main__"] = [path, *arguments], os.path.dirname(os.path.abspath(path)), main
    try:
        yield main
    finally:
        sys.argv, sys.path[0], sys.modules["__main__"] = saved


def show(error: BaseException, ours: str) -> None:
    """The traceback as the script would have shown it: without the frames of the file that executed it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == ours:
        trace = trace.tb_next
    sys.stdout.flush()
    sys.excepthook(type(error), error.with_traceback(trace), trace)
