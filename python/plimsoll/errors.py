"""The exceptions of Plimsoll. Every one is an `Error`; each is also the built-in exception that fits it."""
from typing import ClassVar, Dict, Type


class Error(Exception):
    """Something an outsider can cause: a file, a shape, a budget, a dead worker. The message says what was
    expected, what was found and what to do."""

    code: ClassVar[int] = 0  # plimsoll::ErrorCode and the command's exit code; 0: the package's own


class InvalidArgument(Error, ValueError):
    """A wrong input, option or name given by the caller."""

    code = 3


class InvalidModel(Error, ValueError):
    """The bytes of a model, or what they say, are wrong."""

    code = 4


class NotImplementedYet(Error, NotImplementedError):
    """Valid, but neither this version nor this machine can do it."""

    code = 5


class BudgetExceeded(Error, MemoryError):
    """Would cross a memory limit; raised before the memory is taken."""

    code = 6


class OutOfMemory(Error, MemoryError):
    """The operating system refused memory below the limit."""

    code = 7


class IoError(Error, OSError):
    """A file could not be opened, read or written, or a program not be started."""

    code = 8


class Cancelled(Error):
    """Cancelled by its caller."""

    code = 9


class DeadlineExceeded(Error, TimeoutError):
    """Not finished by its deadline."""

    code = 10


class Busy(Error):
    """No room now, and the caller asked not to wait."""

    code = 11


# The one table of codes, as plimsoll/error.h numbers them.
BY_CODE: Dict[int, Type[Error]] = {
    type_.code: type_
    for type_ in (InvalidArgument, InvalidModel, NotImplementedYet, BudgetExceeded, OutOfMemory, IoError, Cancelled,
                  DeadlineExceeded, Busy)
}


def from_code(code: int, message: str) -> Error:
    """The exception of a code: called by the native module."""
    return BY_CODE.get(code, Error)(message)
