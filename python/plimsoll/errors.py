"""The exceptions of Plimsoll. Every one is an `Error`; each is also the built-in exception that fits it."""
import pickle
import re
from typing import TYPE_CHECKING, ClassVar, Dict, Optional, Type

if TYPE_CHECKING:
    from .receipt import Receipt


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


class InvalidProtobuf(InvalidModel):
    """The bytes are no ONNX model at all: not the file that was meant, or a part of it."""


class InvalidGraph(InvalidModel):
    """A model that can be read, but says what ONNX does not allow."""


class InvalidFeed(InvalidArgument, RuntimeError):
    """A value that cannot be what the input wants. ONNX Runtime raises RuntimeError here."""


class Fail(Error, RuntimeError):
    """Something went wrong that has no name of its own."""


class RuntimeException(Error, RuntimeError):
    """A run could not be done."""


class NoModel(Error, RuntimeError):
    """There is no model to run: the session is closed, or cannot be used in this process."""


class ModelLoaded(Error, RuntimeError):
    """ONNX Runtime's name for loading a model twice. Never raised here: a session opens its model once."""


class EngineError(Error, RuntimeError):
    """ONNX Runtime's name for a failure of its engine. Never raised here: failures have names of their own."""


class EPFail(Error, RuntimeError):
    """ONNX Runtime's name for the failure of an execution provider. Never raised here: there is one provider."""


class NotImplementedYet(Error, NotImplementedError):
    """Valid, but neither this version nor this machine can do it."""

    code = 5


class BudgetExceeded(RuntimeException, MemoryError):
    """Would cross a memory limit; raised before the memory is taken."""

    code = 6


class OutOfMemory(RuntimeException, MemoryError):
    """The operating system refused memory below the limit."""

    code = 7


class IoError(Error, OSError):
    """A file could not be opened, read or written, or a program not be started."""

    code = 8


class NoSuchFile(IoError, FileNotFoundError):
    """There is no such file."""


class Cancelled(Fail):
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
    """The exception of a code: called by the native modules."""
    if code == IoError.code and "No such file" in message:
        return NoSuchFile(message)
    if code == InvalidModel.code:
        return (InvalidProtobuf if re.search(_NOT_A_MODEL, message) else InvalidGraph)(message)
    return BY_CODE.get(code, Error)(message)


# How the reader begins to speak of bytes that are no ModelProto.
_NOT_A_MODEL = r"protobuf field|value of field|found no bytes|ModelProto\b"


class JobError(Error):
    """A job in a process of its own that has no result. `receipt` is what the job's process took, or None if
    it never ran; `attempts` is how often it ran."""

    receipt: Optional["Receipt"] = None
    attempts: int = 0
    stdout: str = ""  # of isolated_source and submit_source
    stderr: str = ""


class WorkerDied(JobError):
    """The process ended without an answer: killed by a signal, os._exit, a crash."""


class MemoryLimitExceeded(JobError, MemoryError):
    """The job reached its memory limit and was ended by the kernel."""


class TimeLimitExceeded(JobError, TimeoutError):
    """The job was not over in time and was ended."""


class JobCancelled(JobError, Cancelled):
    """The job was cancelled, or its pool closed."""

    code = Cancelled.code


class StartFailed(JobError):
    """No worker could be started: the message says why, with the end of its stderr."""


class ResultTooLarge(JobError):
    """The result has more bytes than `result_limit` allows."""


class ResultUnreadable(JobError):
    """The result, or what stood in its place, cannot be read here."""


class RemoteError(JobError):
    """An exception of the job that cannot come over itself: one of a sandboxed job, one that cannot be
    pickled, SystemExit. `type_name`, `message` and `traceback` are text."""

    type_name: str = ""
    message: str = ""
    traceback: str = ""


class NotTransferable(Error, pickle.PicklingError):
    """A function, an argument or a result that another process cannot be given; the message says what to do."""


# How a job ends without an answer, by the name that the native module has for it.
BY_OUTCOME: Dict[str, Type[JobError]] = {
    "worker died": WorkerDied,
    "memory limit": MemoryLimitExceeded,
    "timeout": TimeLimitExceeded,
    "cancelled": JobCancelled,
    "start failed": StartFailed,
    "too large": ResultTooLarge,
}
