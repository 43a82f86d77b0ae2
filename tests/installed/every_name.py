"""Writes a script that uses every public name of the installed package, and every public member of its classes, for mypy."""
import inspect
import types

import plimsoll


def members(kind):
    """Those that the class has of ours."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("plimsoll")]
    return [name for name in dir(kind) if not name.startswith("_") and any(name in vars(base) for base in ours)]


print("import plimsoll")
for number, name in enumerate(plimsoll.__all__):
    value = getattr(plimsoll, name)
    print(f"plimsoll.{name}")
    if isinstance(value, types.ModuleType):
        print(f"import plimsoll.{name}")
    elif inspect.isclass(value) and value.__module__.startswith("plimsoll") and members(value):
        parameters = ", ".join(["object"] * len(getattr(value, "__parameters__", ())))
        print(f"def use_{number}(value: plimsoll.{name}{f'[{parameters}]' if parameters else ''}) -> None:")
        for member in members(value):
            print(f"    value.{member}")
