"""Plimsoll: memory as a promise. See docs/python.md.

Importing this package imports neither numpy nor torch, and of itself only what is used: every worker imports it, and
a worker that starts sooner is worth it.
"""
TYPE_CHECKING = False  # typing itself takes milliseconds
if TYPE_CHECKING:
    from . import observe, torch_doctor
    from ._native import __version__
    from ._shared import shared_empty
    from .errors import (BudgetExceeded, Busy, Cancelled, DeadlineExceeded, Error, InvalidArgument, InvalidModel,
                         IoError, JobCancelled, JobError, MemoryLimitExceeded, NotImplementedYet, NotTransferable,
                         OutOfMemory, RemoteError, ResultTooLarge, ResultUnreadable, StartFailed, TimeLimitExceeded,
                         WorkerDied)
    from .isolate import Result, Sandbox, isolated, isolated_source
    from .pool import JobFuture, Pool
    from .receipt import Receipt

_HOME = {  # of each public name
    "_native": ["__version__"],
    "_shared": ["shared_empty"],
    "errors": [
        "BudgetExceeded", "Busy", "Cancelled", "DeadlineExceeded", "Error", "InvalidArgument", "InvalidModel", "IoError",
        "JobCancelled", "JobError", "MemoryLimitExceeded", "NotImplementedYet", "NotTransferable", "OutOfMemory",
        "RemoteError", "ResultTooLarge", "ResultUnreadable", "StartFailed", "TimeLimitExceeded", "WorkerDied"],
    "isolate": ["Result", "Sandbox", "isolated", "isolated_source"],
    "pool": ["JobFuture", "Pool"],
    "receipt": ["Receipt"],
}
_MODULES = ["observe", "torch_doctor"]
__all__ = sorted([*_MODULES, *(name for names in _HOME.values() for name in names)])


def __getattr__(name: str) -> object:
    import importlib
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    for home, names in _HOME.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list:  # type: ignore[type-arg]
    return sorted([*globals(), *__all__])
