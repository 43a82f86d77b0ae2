"""Plimsoll: memory as a promise. See docs/python.md.

Importing this package imports neither numpy nor torch.
"""
from ._native import __version__
from .errors import (BudgetExceeded, Busy, Cancelled, DeadlineExceeded, Error, InvalidArgument, InvalidModel, IoError,
                     NotImplementedYet, OutOfMemory)

__all__ = [
    "BudgetExceeded", "Busy", "Cancelled", "DeadlineExceeded", "Error", "InvalidArgument", "InvalidModel", "IoError",
    "NotImplementedYet", "OutOfMemory", "__version__",
]
