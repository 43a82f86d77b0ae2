"""Functions and classes of an interactive session, a notebook or a -c program: they are in no module that another
process could import, so they travel by value, as code, with the global names that they use.

Not supported: Enum and NamedTuple classes of the session, generators and coroutines that have begun, and whatever cannot
be pickled (locks, open files) among the values that a function uses."""
from __future__ import annotations

import builtins
import dis
import importlib
import marshal
import pickle
import sys
import types
from typing import Any, Dict, Iterator, Tuple

from . import _worker

_SKIPPED = ("__dict__", "__weakref__", "__module__", "__qualname__", "_abc_impl", "__slots__")
_EMPTY = "plimsoll: an empty cell"


def main_scope() -> Dict[str, Any]:
    """The globals of those functions: of __main__ here, of a module under its name in a worker."""
    module = sys.modules["__main__"]
    if _worker.is_worker() and _worker.MAIN_NAME not in sys.modules:
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = sys.modules[_worker.MAIN_NAME] = module
    return module.__dict__


def _names(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def make_function(code: bytes, name: str, cells: int, module: str) -> types.FunctionType:
    closure = tuple(types.CellType() for _ in range(cells))
    scope = main_scope() if module == "__main__" else importlib.import_module(module).__dict__
    return types.FunctionType(marshal.loads(code), scope, name, None, closure or None)


def fill_function(function: Any, state: Dict[str, Any]) -> None:
    main_scope().update(state["globals"])
    for cell, value in zip(function.__closure__ or (), state["cells"]):
        if not isinstance(value, str) or value != _EMPTY:
            cell.cell_contents = value
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    function.__qualname__, function.__module__, function.__doc__ = state["qualname"], "__main__", state["doc"]
    function.__dict__.update(state["dict"])
    if "." not in state["qualname"]:
        main_scope().setdefault(function.__name__, function)


def make_class(meta: Any, name: str, bases: Tuple[Any, ...], slots: Any) -> Any:
    scope = {"__module__": "__main__", **({} if slots is None else {"__slots__": slots})}
    return types.new_class(name, bases, {"metaclass": meta}, lambda body: body.update(scope))


def fill_class(made: Any, state: Dict[str, Any]) -> None:
    for name, value in state["members"].items():
        setattr(made, name, value)
    made.__qualname__ = state["qualname"]
    if "." not in state["qualname"]:
        main_scope()[made.__name__] = made
    if hasattr(made, "__abstractmethods__"):
        import abc
        abc.update_abstractmethods(made)


def make_proxy(content: Dict[Any, Any]) -> Any:
    """Pickle does not find its type by name."""
    return types.MappingProxyType(content)


def _function(function: types.FunctionType) -> Tuple[Any, ...]:
    scope, cells = function.__globals__, []
    # A decorator's wrapper, which calls itself one of ours, lives in the module of the decorator.
    module = "__main__" if scope is sys.modules["__main__"].__dict__ else scope["__name__"]
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not bound yet
            cells.append(_EMPTY)
    used = {name: scope[name] for name in _names(function.__code__)
            if module == "__main__" and name in scope and scope[name] is not getattr(builtins, name, None)}
    state = {"globals": used, "cells": cells, "defaults": function.__defaults__, "kwdefaults": function.__kwdefaults__,
             "qualname": function.__qualname__, "doc": function.__doc__, "dict": dict(function.__dict__)}
    made = (marshal.dumps(function.__code__), function.__name__, len(cells), module)
    return make_function, made, state, None, None, fill_function


def _class(kind: type) -> Tuple[Any, ...]:
    import enum
    if issubclass(kind, enum.Enum):
        raise pickle.PicklingError(f"{kind.__qualname__} is an Enum of this session: put it into a module")
    slots = kind.__dict__.get("__slots__")
    members = {name: value for name, value in kind.__dict__.items()
               if name not in _SKIPPED and not isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType))}
    return make_class, (type(kind), kind.__name__, kind.__bases__, slots), \
        {"members": members, "qualname": kind.__qualname__}, None, None, fill_class


def constant_of(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _dataclass_constant(value: Any) -> Any:
    """The marks that dataclasses compare by identity."""
    import dataclasses
    for name in ("MISSING", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR", "KW_ONLY"):
        if value is getattr(dataclasses, name, None):
            return constant_of, ("dataclasses", name)
    return NotImplemented


class SessionPickler(pickle.Pickler):
    """Takes what is __main__'s by value, everything else as pickle does."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            is_ours = value.__globals__ is sys.modules["__main__"].__dict__ or value.__module__ == "__main__"
            return _function(value) if is_ours else NotImplemented
        if isinstance(value, type):
            return _class(value) if value.__module__ == "__main__" else NotImplemented
        if isinstance(value, types.ModuleType):
            if value.__name__ == "__main__":
                raise pickle.PicklingError("the session itself cannot be given to another process")
            return importlib.import_module, (value.__name__,)
        if isinstance(value, (staticmethod, classmethod)):
            return type(value), (value.__func__,)
        if type(value) is property:
            return property, (value.fget, value.fset, value.fdel, value.__doc__)
        if isinstance(value, types.MappingProxyType):
            return make_proxy, (dict(value),)
        if type(value).__module__ == "dataclasses":
            return _dataclass_constant(value)
        return NotImplemented
