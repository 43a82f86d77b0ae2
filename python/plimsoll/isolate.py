"""Jobs in fresh processes: `isolated`, `isolated_source`. docs/python.md."""
import dataclasses
from typing import Any, Callable, Generic, Mapping, Optional, TypeVar, Union

from . import _calls, _native
from ._calls import Sandbox as Sandbox
from ._units import Seconds, Size, parse_bytes, parse_count, parse_milliseconds, parse_most
from .receipt import Receipt

T = TypeVar("T")
Sandboxed = Union[bool, str, Sandbox, None]


@dataclasses.dataclass(frozen=True)
class Result(Generic[T]):
    """What a job returned, and what it took."""

    value: T
    receipt: Receipt
    stdout: str = ""  # of isolated_source
    stderr: str = ""
    truncated: bool = False  # there was more output than is kept


def _run(request: _calls.Request, terms: _calls.Terms) -> Result[Any]:
    try:
        outcome, out, err, truncated = _native.call(_calls.worker_spec(terms), request.data, terms.frame_bytes(),
                                                    terms.output_bytes, request.files)
    finally:
        request.close()
    answer = _calls.read_outcome(outcome, request.nonce, terms, request.shared_bytes)
    stdout, stderr = (data.decode("utf-8", "replace") for data in (out, err))
    if answer.error is not None:
        if isinstance(answer.error.__cause__, (KeyboardInterrupt, SystemExit)):  # a signal, while the result was read
            raise answer.error.__cause__
        if terms.capture and isinstance(answer.error, _calls.JobError):
            answer.error.stdout, answer.error.stderr = stdout, stderr
        raise answer.error
    assert answer.receipt is not None
    return Result(answer.value, answer.receipt, stdout, stderr, truncated)


def isolated(fn: Callable[..., T], /, *args: Any, limit: Size = None, timeout: Seconds = None,
             sandbox: Sandboxed = None, cpu_time: Seconds = None, processes: Optional[int] = None,
             result_limit: Size = "1GiB", **kwargs: Any) -> Result[T]:
    """Calls fn(*args, **kwargs) in a fresh interpreter and returns its Result: `.value` and `.receipt`.

    fn must be importable by name, or be of this interactive session; arguments and result are pickled, large arrays
    are shared (see shared_empty). An exception of fn is raised here, with the remote traceback as its cause and the receipt as `.receipt`; a job that has no answer raises a JobError. With a
    sandbox the result is plain data (see isolated_source) and exceptions are RemoteError: a pickle from an untrusted
    process could run code here.
    limit: bytes or "256MiB", of everything the job starts. timeout, cpu_time: seconds."""
    box = _calls.sandbox_of(sandbox)
    terms = _calls.Terms(memory_bytes=parse_bytes(limit, "limit"), wall_ms=parse_milliseconds(timeout, "timeout"),
                         cpu_ms=parse_milliseconds(cpu_time, "cpu_time"), processes=parse_count(processes, "processes"),
                         sandbox=box, plain=box is not None, result_bytes=parse_most(result_limit, "result_limit"))
    return _run(_calls.call_request(fn, args, kwargs), terms)


def isolated_source(code: str, inputs: Optional[Mapping[str, Any]] = None, result: Optional[str] = None, *,
                    limit: Size = None, timeout: Seconds = None, sandbox: Sandboxed = None, cpu_time: Seconds = None,
                    processes: Optional[int] = None, output_limit: Size = "1MiB",
                    result_limit: Size = "1GiB") -> Result[Any]:
    """Runs source text in a fresh interpreter, with `inputs` as its global names, and returns what the name `result`
    holds at its end. Stdout and stderr are captured; what is beyond output_limit is dropped.

    The result must be plain data: None, bool, int, float, complex, str, bytes, list, tuple, set, dict, numpy arrays of
    numbers, torch tensors (which arrive as numpy arrays). Nothing that the source says is ever unpickled. An exception
    of the source is raised as RemoteError."""
    box = _calls.sandbox_of(sandbox)
    terms = _calls.Terms(memory_bytes=parse_bytes(limit, "limit"), wall_ms=parse_milliseconds(timeout, "timeout"),
                         cpu_ms=parse_milliseconds(cpu_time, "cpu_time"), processes=parse_count(processes, "processes"),
                         sandbox=box, plain=True, capture=True, stranger=True,
                         output_bytes=parse_most(output_limit, "output_limit"),
                         result_bytes=parse_most(result_limit, "result_limit"))
    return _run(_calls.source_request(code, inputs, result, False, terms.path()), terms)
