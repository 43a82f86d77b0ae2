"""Plimsoll: memory as a promise. See docs/python.md.

Importing this package imports neither numpy nor torch.
"""
from ._native import __version__
from .errors import (BudgetExceeded, Busy, Cancelled, DeadlineExceeded, Error, InvalidArgument, InvalidModel, IoError,
                     JobCancelled, JobError, MemoryLimitExceeded, NotImplementedYet, NotTransferable, OutOfMemory,
                     RemoteError, ResultTooLarge, ResultUnreadable, StartFailed, TimeLimitExceeded, WorkerDied)
from .isolate import Result, Sandbox, isolated, isolated_source
from .pool import JobFuture, Pool
from .receipt import Receipt

__all__ = [
    "BudgetExceeded", "Busy", "Cancelled", "DeadlineExceeded", "Error", "InvalidArgument", "InvalidModel", "IoError",
    "JobCancelled", "JobError", "JobFuture", "MemoryLimitExceeded", "NotImplementedYet", "NotTransferable",
    "OutOfMemory", "Pool", "Receipt", "RemoteError", "Result", "ResultTooLarge", "ResultUnreadable", "Sandbox",
    "StartFailed", "TimeLimitExceeded", "WorkerDied", "__version__", "isolated", "isolated_source",
]
