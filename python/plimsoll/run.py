"""python -m plimsoll.run script.py [arguments]: the script's `import onnxruntime` gets Plimsoll; nothing in it changes.

    python -m plimsoll.run serve.py --port 8080
    python -m plimsoll.run -m package.module arguments

Exit code, output and tracebacks are the script's own; 2 if it cannot be run. Python processes that it starts in their turn
are not touched: multiprocessing's spawned children import what is installed.
"""
import runpy
import sys
from typing import List, Optional

from . import _script
from ._as_onnxruntime import install_as_onnxruntime


def main(arguments: Optional[List[str]] = None) -> int:
    """What `python -m plimsoll.run` does with these arguments (sys.argv's without)."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given or given[0] in ("-h", "--help"):
        print(__doc__, file=sys.stdout if given else sys.stderr)
        return 0 if given else 2
    install_as_onnxruntime()
    if given[0] == "-m":
        return _module(given[1:])
    if given[0].startswith("-"):
        print(f"error: no option '{given[0]}' here: python -m plimsoll.run script.py [arguments]", file=sys.stderr)
        return 2
    return _file(given[0], given[1:])


def _module(given: List[str]) -> int:
    if not given:
        print("error: -m needs the name of a module", file=sys.stderr)
        return 2
    sys.argv = given
    runpy.run_module(given[0], run_name="__main__", alter_sys=True)
    return 0


def _file(path: str, arguments: List[str]) -> int:
    try:
        code = _script.compile_file(path)
    except (OSError, SyntaxError, ValueError) as error:
        print(f"error: {path}: cannot be run: {error}", file=sys.stderr)
        return 2
    with _script.as_main(path, arguments) as script:
        try:
            exec(code, vars(script))
        except Exception as error:
            _script.show(error, __file__)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
