"""Writes a script that uses every public name of the installed package, and every public member of its classes, for mypy."""
import inspect
import types

import plimsoll

print("import plimsoll")
for name in plimsoll.__all__:
    value = getattr(plimsoll, name)
    print(f"plimsoll.{name}")
    if isinstance(value, types.ModuleType):
        print(f"import plimsoll.{name}")
    elif inspect.isclass(value) and value.__module__.startswith("plimsoll"):
        for member in dir(value):
            inherited = all(member not in vars(base) for base in value.__mro__ if base.__module__.startswith("plimsoll"))
            if not member.startswith("_") and not inherited:
                print(f"plimsoll.{name}.{member}")
