"""Tests run against build/python, or what PYTHONPATH names, never against an installed package."""
import os
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(os.environ.get("PLIMSOLL_PYTHON", ROOT / "build" / "python"))

sys.path.insert(0, str(PACKAGE))
# Interpreters that tests start find the package too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
# Whoever runs us in the background of a script has SIGINT ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
