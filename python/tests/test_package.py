"""The package itself: what an import costs, and that every C++ error has its Python exception."""
import importlib
import pathlib
import re
import subprocess
import sys

import pytest

import plimsoll
from plimsoll import _native, errors

ROOT = pathlib.Path(__file__).resolve().parents[2]


def codes_in_header():
    text = (ROOT / "include/plimsoll/error.h").read_text()
    return {name: int(number) for name, number in re.findall(r"k(\w+) = (\d+),", text)}


def test_import_is_light():
    code = "import sys, plimsoll; print([m for m in ('numpy', 'torch', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_error_code_has_an_exception():
    assert codes_in_header() and set(codes_in_header().values()) == set(errors.BY_CODE)


@pytest.mark.parametrize("code", sorted(errors.BY_CODE))
def test_errors_cross_from_cpp(code):
    with pytest.raises(plimsoll.Error, match="^subject: found$") as caught:
        _native.throw_error(code, "subject: found")
    assert isinstance(caught.value, errors.BY_CODE[code])
    assert caught.value.code == code


def test_unknown_code_is_an_error():
    with pytest.raises(plimsoll.Error):
        _native.throw_error(99, "from the future")


def test_errors_are_also_builtin_ones():
    with pytest.raises(ValueError):
        _native.throw_error(3, "x")
    with pytest.raises(OSError):
        _native.throw_error(8, "x")


@pytest.mark.parametrize("module", ["_native", "_engine"])
def test_stub_names_what_the_module_has(module):
    native = importlib.import_module(f"plimsoll.{module}")
    stub = (ROOT / f"python/plimsoll/{module}.pyi").read_text()
    named = set(re.findall(r"^(?:def|class) (\w+)", stub, re.MULTILINE))
    assert named == {name for name in dir(native) if not name.startswith("_")}
    for name, body in re.findall(r"^class (\w+):\n((?: .*\n|\n)*)", stub, re.MULTILINE):
        members = {member for member in re.findall(r"^    (?:def )?(\w+)[(:]", body, re.MULTILINE)} - {"__init__"}
        theirs = {member for member in vars(getattr(native, name)) if not member.startswith("__")}
        assert {member for member in members if not member.startswith("__")} == theirs, name


def test_ctrl_c_during_the_import_is_nothing_else():
    program = ("import signal, sys, time, plimsoll\n"
               "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
               "try:\n"
               "    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))\n"
               "    import plimsoll._native\n"
               "    while True: time.sleep(0.01)\n"
               "except KeyboardInterrupt:\n"
               "    sys.exit(7)\n")
    for tenths in range(1, 41):
        done = subprocess.run([sys.executable, "-c", program, str(tenths * 1e-4)], capture_output=True, text=True)
        assert done.returncode == 7, done.stderr
