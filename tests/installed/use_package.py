"""use_package.py EXAMPLES: the installed Python package, used as its readers do."""
import pathlib
import sys

import plimsoll

examples = pathlib.Path(sys.argv[1])
here = pathlib.Path(plimsoll.__file__)
assert sys.prefix in str(here) or here.is_relative_to("/usr/lib/python3"), here
assert plimsoll.__version__
assert (here.parent / "py.typed").exists() and (here.parent / "_native.pyi").exists()
assert plimsoll.observe.read().process.rss_bytes > 0
print(f"plimsoll {plimsoll.__version__} at {here.parent}")
