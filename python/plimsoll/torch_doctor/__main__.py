"""python -m plimsoll.torch_doctor [--json] script.py [arguments]"""
import argparse
import contextlib
import os
import sys

_EXAMPLE = """example:
  python -m plimsoll.torch_doctor serve.py --batch 8

Exit codes: 1 if memory grows because of something that was found, otherwise the script's own (130 after Ctrl-C);
2 for wrong usage."""


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.torch_doctor", epilog=_EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs a script that uses PyTorch and reports why its memory grows, or that it does not.")
    parser.add_argument("--json", action="store_true",
                        help="print one JSON object and nothing else; what the script prints goes to standard error")
    parser.add_argument("--report", metavar="FILE", help="write the report to FILE instead of standard output")
    parser.add_argument("script", help="the script to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args(arguments)
    from .script import run
    with _stdout_for_script(options.json) as stdout:
        try:
            report, outcome = run(options.script, options.arguments)
        except (OSError, SyntaxError, ValueError) as error:
            print(f"error: {options.script}: cannot be run: {error}", file=sys.stderr)
            return 2
        text = report.to_json() if options.json else report.to_text()
        return _write(text, options.report, stdout) or (1 if report.growing else outcome.exit_code)


@contextlib.contextmanager
def _stdout_for_script(apart):
    """With `apart`, whatever writes to descriptor 1 meanwhile writes to standard error; yields the real one."""
    if not apart:
        yield sys.stdout
        return
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(real), "w") as stdout:
            yield stdout
            sys.stdout.flush()
    finally:
        os.dup2(real, 1)
        os.close(real)


def _write(text, path, stdout):
    try:
        if path:
            with open(path, "w") as file:
                print(text, file=file)
        else:
            print(text, file=stdout, flush=True)
    except OSError as error:
        print(f"error: {path or 'standard output'}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
