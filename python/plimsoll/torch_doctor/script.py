"""Runs somebody's script as `python script.py` would, watched."""
import importlib.abc
import importlib.util
import os
import sys
import time
import traceback

from .. import _script
from . import diagnose, process
from .watching import Watch


class Outcome:
    """How the script ended."""

    def __init__(self, path, arguments):
        self.path, self.arguments = path, list(arguments)
        self.exit_code = 0
        self.exception = None
        self.interrupted = False

    def to_dict(self):
        return {"path": self.path, "arguments": self.arguments, "exit_code": self.exit_code,
                "exception": self.exception, "interrupted": self.interrupted}


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Calls `then` once torch has been imported by whoever imports it."""

    def __init__(self, then):
        self.then = then

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return spec
        execute, loader, then = spec.loader.exec_module, spec.loader, self.then

        def exec_module(module):
            execute(module)
            then()
        loader.exec_module = exec_module  # of this loader alone; it loads nothing else
        return spec


def run(path, arguments):
    """(Report, Outcome). Raises OSError or SyntaxError if the script cannot be read or compiled."""
    code = _script.compile_file(path)
    outcome, owner = Outcome(path, arguments), os.getpid()
    watching, before, started = Watch(), process.read(), time.perf_counter()
    finder = None
    if "torch" in sys.modules:
        watching.start()
    else:
        finder = _AfterTorch(watching.start)
        sys.meta_path.insert(0, finder)
    try:
        with _script.as_main(path, arguments) as main:
            _execute(code, main, outcome, owner)
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        report = watching.report
        if "torch" in sys.modules:
            watching.stop()
        else:
            diagnose.without_torch(report, time.perf_counter() - started, before, process.read())
    report.script = outcome.to_dict()
    return report, outcome


def _execute(code, main, outcome, owner):
    try:
        exec(code, main.__dict__)
    except SystemExit as leaving:
        if os.getpid() != owner:
            raise  # a child that the script forked
        outcome.exit_code = _exit_code(leaving.code)
    except KeyboardInterrupt:
        outcome.exit_code, outcome.interrupted = 130, True
    except BaseException as error:
        if os.getpid() != owner:
            raise
        outcome.exit_code, outcome.exception = 1, "".join(traceback.format_exception_only(error)).strip()
        _script.show(error, __file__)


def _exit_code(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1
