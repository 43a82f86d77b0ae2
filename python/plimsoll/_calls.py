"""Requests to workers and what they answer: the parent's half of _worker.py."""
import os
import pickle
import sys
from collections.abc import Sequence as AnySequence
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _plain, _worker
from .errors import (BY_OUTCOME, InvalidArgument, JobError, MemoryLimitExceeded, NotTransferable, RemoteError,
                     ResultTooLarge, ResultUnreadable)
from .receipt import Receipt

# -c and not -m: nothing of ours, nor the working directory, gets into sys.path by that.
_BOOT = "import sys; sys.path[:] = {path!r}; from plimsoll._worker import main; main({config!r})"
_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FRAME_SLACK = 1 << 20  # of an answer, beside the result itself


class Sandbox(NamedTuple):
    """For jobs from strangers. `strict` refuses to run where the kernel cannot give all of it."""

    strict: bool = False
    readable: Sequence[str] = ()  # paths besides the system's libraries and programs
    writable: Sequence[str] = ()  # a private temporary directory is always there
    network: bool = False
    own_modules: bool = True  # functions need sys.path readable; False, as for source: installed packages only


def sandbox_of(value: Any) -> Optional[Sandbox]:
    if value is None or value is False:
        return None
    if value is True or value in ("best effort", "best-effort"):
        return Sandbox()
    if value == "strict":
        return Sandbox(strict=True)
    if isinstance(value, Sandbox):
        for name in ("readable", "writable"):
            paths = getattr(value, name)
            if isinstance(paths, (str, bytes)) or not isinstance(paths, AnySequence) or not all(
                    isinstance(path, (str, bytes, os.PathLike)) for path in paths):
                raise InvalidArgument(f"Sandbox({name}={paths!r}): expected a list of paths")
        return value
    raise InvalidArgument(f"sandbox={value!r}: expected True, 'strict' or a plimsoll.Sandbox")


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and all(part.isidentifier() for part in text.split("."))


def search_path() -> List[str]:
    """sys.path for another process, which may be started elsewhere."""
    path = []
    for entry in filter(lambda entry: isinstance(entry, str), sys.path):
        try:
            path.append(os.path.abspath(entry))  # of "" the working directory
        except FileNotFoundError:  # which was removed: nothing can be imported from there
            pass
    return path if _PACKAGE_PARENT in path else path + [_PACKAGE_PARENT]


def _system_path() -> List[str]:
    """The part of it that a stranger's source needs: Python's own and installed packages."""
    prefixes = tuple(os.path.abspath(p) + os.sep for p in (sys.prefix, sys.base_prefix, sys.exec_prefix))
    return [entry for entry in search_path() if entry.startswith(prefixes) or entry == _PACKAGE_PARENT]


def _can_be_given(path: str) -> bool:
    """Whether a sandboxed job can see an entry of sys.path: it has a root and a /tmp of its own."""
    return os.path.exists(path) and os.path.realpath(path) not in ("/", "/tmp", "/dev/shm")


class Terms(NamedTuple):
    """Under which a worker lives."""

    memory_bytes: int = 0
    wall_ms: int = 0
    cpu_ms: int = 0
    processes: int = 0
    sandbox: Optional[Sandbox] = None
    plain: bool = False  # do not unpickle what it says
    result_bytes: int = 1 << 30
    output_bytes: int = 1 << 20
    preload: Tuple[str, ...] = ()
    capture: bool = False
    stranger: bool = False  # runs source only: sees installed packages, not the caller's modules

    def path(self) -> List[str]:
        hidden = self.sandbox is not None and (self.stranger or not self.sandbox.own_modules)
        return _system_path() if hidden else search_path()

    def frame_bytes(self) -> int:
        return self.result_bytes + 8 * self.output_bytes + _FRAME_SLACK


def worker_spec(terms: Terms) -> Dict[str, Any]:
    """What the native module starts."""
    import subprocess
    config = {"plain": terms.plain, "preload": terms.preload, "result_bytes": terms.result_bytes,
              "output_bytes": terms.output_bytes}
    for name in terms.preload:
        if not _is_name(name):
            raise InvalidArgument(f"preload: {name!r} is not the name of a module")
    flags: List[str] = getattr(subprocess, "_args_from_interpreter_flags", lambda: [])()
    sandbox = terms.sandbox or Sandbox()
    readable = [*sandbox.readable, *filter(_can_be_given, terms.path())] if terms.sandbox else []
    return {
        "argv": [os.fsencode(text) for text in (sys.executable, *flags, "-c",
                                                _BOOT.format(path=terms.path(), config=config))],
        "capture": terms.capture, "memory_bytes": terms.memory_bytes, "wall_ms": terms.wall_ms,
        "cpu_ms": terms.cpu_ms, "processes": terms.processes,
        "sandbox": {"level": 0 if not terms.sandbox else 2 if sandbox.strict else 1,
                    "readable": sorted(set(map(os.fsencode, readable))),
                    "writable": list(map(os.fsencode, sandbox.writable)),
                    "network": sandbox.network},
    }


def _main_of_this_program() -> Optional[Tuple[str, str]]:
    """How another process imports what is __main__ here. None: it cannot, this is an interactive session or -c."""
    module = sys.modules["__main__"]
    spec, path = getattr(module, "__spec__", None), getattr(module, "__file__", None)
    if spec is not None and spec.name == "__main__" and path:  # a directory or an archive that was run
        path = os.path.dirname(path)
    elif spec is not None and spec.name:
        return "module", spec.name
    return None if path is None or not os.path.exists(path) else ("path", os.path.abspath(path))


def _explain(function: Any, error: BaseException) -> NotTransferable:
    name = getattr(function, "__qualname__", None) or repr(function)
    if "<lambda>" in name:
        why = "a lambda has no name by which another process could import it; write a function at the top of a module"
    elif "<locals>" in name:
        why = "it is defined inside another function; move it to the top of its module and pass it what it needs"
    else:
        why = f"{type(error).__name__}: {_worker.text_of(error)}; arguments must be picklable, and the function importable"
    return NotTransferable(f"{name} cannot be given to another process: {why}")


class Request:
    """What is sent: bytes, and files with large arrays. Close it when it is sent."""

    def __init__(self, kind: str, path: List[str], main: Optional[Tuple[str, str]], payload: bytes,
                 buffers: _worker.Buffers) -> None:
        self._outgoing = buffers.files
        if self._outgoing is not None:
            self._outgoing.finish()
        table = self._outgoing.table if self._outgoing is not None else None
        head = pickle.dumps((kind, path, main, table), 5)
        self.nonce = os.urandom(_worker.NONCE_BYTES)
        self.data = b"".join((self.nonce, len(head).to_bytes(_worker.SIZE_BYTES, "little"), head, payload))
        self.shared_bytes = self._outgoing.total_bytes() if self._outgoing is not None else 0

    @property
    def files(self) -> List[int]:
        return self._outgoing.files if self._outgoing is not None else []

    def close(self) -> None:
        if self._outgoing is not None:
            self._outgoing.close()


def _dump(value: Any) -> Tuple[bytes, _worker.Buffers]:
    buffers = _worker.Buffers(share=True)
    return pickle.dumps(value, 5, buffer_callback=buffers.callback), buffers


def _dump_by_value(value: Any) -> Tuple[bytes, _worker.Buffers]:
    """What is of this session goes along as code: nobody could import it."""
    import io
    from ._session import SessionPickler
    buffers, out = _worker.Buffers(share=True), io.BytesIO()
    SessionPickler(out, 5, buffer_callback=buffers.callback).dump(value)
    return out.getvalue(), buffers


def call_request(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Request:
    if _worker.importing_main():
        raise NotTransferable("this script runs jobs while it is imported, and a job imports it: put what starts jobs "
                              "under `if __name__ == '__main__':`")
    if not callable(function):
        raise InvalidArgument(f"{function!r} is not callable; for source text use isolated_source")
    what = (function, tuple(arguments), dict(keywords))
    main = _main_of_this_program()
    try:
        try:
            payload, buffers = _dump(what)
            by_name = main is not None or b"__main__" not in payload
        except Exception:  # pylint: disable=broad-except
            if main is not None:
                raise
            by_name = False
        if not by_name:
            payload, buffers = _dump_by_value(what)
    except Exception as error:  # pylint: disable=broad-except
        raise _explain(function, error) from error
    if b"__main__" in payload or _worker.MAIN_NAME.encode() in payload:
        sys.modules.setdefault(_worker.MAIN_NAME, sys.modules["__main__"])  # what it sends back says so
    else:
        main = None
    return Request("call", search_path(), main, payload, buffers)


def source_request(code: str, inputs: Optional[Mapping[str, Any]], result: Optional[str], captured: bool,
                   path: List[str]) -> Request:
    if not isinstance(code, str):
        raise InvalidArgument(f"code is {type(code).__name__}; expected source text")
    if inputs is not None and not isinstance(inputs, Mapping):
        raise InvalidArgument(f"inputs is {type(inputs).__name__}; expected names and values")
    for name in (*(inputs or {}), *([] if result is None else [result])):
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidArgument(f"{name!r} is not a name that source text can use")
    try:
        payload, buffers = _dump((code, dict(inputs or {}), result, "<isolated source>"))
    except Exception as error:  # pylint: disable=broad-except
        why = f"{type(error).__name__}: {_worker.text_of(error)}"
        raise NotTransferable(f"the inputs cannot be given to another process: {why}") from error
    kind = "captured source" if captured else "source"
    return Request(kind, path, None, payload, buffers)


class _RemoteTraceback(Exception):
    """Shown as the cause of an exception that came from another process."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class Answer(NamedTuple):
    """How a job ended: `error` or else `value`."""

    value: Any = None
    error: Optional[BaseException] = None
    receipt: Optional[Receipt] = None
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    shared_bytes: int = 0  # of the value


def _exception(pickled: bytes, name: str, message: str, text: str, plain: bool) -> BaseException:
    if pickled and not plain:
        try:
            error = pickle.loads(pickled)
            if isinstance(error, Exception):
                error.__cause__ = _RemoteTraceback(text)
                return error
        except Exception:  # pylint: disable=broad-except
            pass  # it can only be told
    remote = RemoteError(f"{name}: {message}\n{text}" if text else f"{name}: {message}")
    remote.type_name, remote.message, remote.traceback = name, message, text
    return remote


def _decode(data: bytes, plain: bool) -> Any:
    return _plain.decode(data) if plain else pickle.loads(data)


def _with_buffers(data: bytes, files: List[int], plain: bool) -> Answer:
    table, encoded = _decode(data, plain)
    if not isinstance(table, list) or not isinstance(encoded, bytes) or not all(
            isinstance(row, tuple) and len(row) == 3 and all(type(number) is int for number in row) for row in table):
        raise _plain.Malformed("a table that is none")
    from ._shared import receive
    owned, files[:] = list(files), []
    buffers = receive(owned, table, trusted=not plain)
    value = _plain.decode(encoded, buffers) if plain else pickle.loads(encoded, buffers=buffers)
    return Answer(value, shared_bytes=sum(row[2] for row in table))


def _from_letter(letter: bytes, data: bytes, files: List[int], terms: Terms) -> Answer:
    if letter == b"V":
        return Answer(_decode(data, terms.plain))
    if letter == b"B":
        return _with_buffers(data, files, terms.plain)
    told = _decode(data, terms.plain)
    if letter == b"X":
        pickled, name, message, text = told
        if not (isinstance(pickled, bytes) and all(isinstance(part, str) for part in (name, message, text))):
            raise _plain.Malformed("an exception that is none")
        return Answer(error=_exception(pickled, name, message, text, terms.plain))
    if letter == b"L" and isinstance(told, int):
        return Answer(error=ResultTooLarge(f"the result has {told} bytes; result_limit allows {terms.result_bytes}"))
    if letter == b"R" and isinstance(told, str):
        return Answer(error=NotTransferable(f"the result cannot be given to another process: {told}"))
    if letter == b"U" and isinstance(told, str):
        return Answer(error=NotTransferable(
            f"a fresh interpreter cannot import the function or its arguments: {told}; they must be importable from "
            "sys.path, and a script's own need `if __name__ == '__main__':` around what starts jobs"))
    if letter == b"S":
        inner, encoded, out, err, truncated = told
        if not (isinstance(inner, bytes) and isinstance(encoded, bytes) and inner != b"S"
                and isinstance(out, str) and isinstance(err, str)):
            raise _plain.Malformed("an output that is none")
        return _from_letter(inner, encoded, files, terms)._replace(stdout=out, stderr=err, truncated=bool(truncated))
    raise _plain.Malformed(f"an answer of kind {letter!r}")


def _at_the_limit(error: BaseException, receipt: Optional[Receipt]) -> BaseException:
    """Without a cgroup the kernel refuses memory at the limit instead of ending the job."""
    out_of_memory = isinstance(error, MemoryError) or (isinstance(error, RemoteError) and error.type_name == "MemoryError")
    if not out_of_memory or receipt is None or not receipt.limit_bytes or receipt.mechanism.startswith("cgroup"):
        return error
    told = MemoryLimitExceeded(f"the job was refused memory at its limit of {receipt.limit_bytes} bytes")
    told.__cause__ = error
    return told


def read_outcome(outcome: Tuple[str, bytes, str, Dict[str, Any], int, List[int]], nonce: bytes, terms: Terms,
                 shared_bytes: int = 0) -> Answer:
    """What the native module reports, as a value or an exception that carries its receipt. Never raises.
    shared_bytes: of the request."""
    kind, data, message, figures, attempts, files = outcome
    try:
        return _read_outcome(kind, data, message, {**figures, "shared_in_bytes": shared_bytes}, attempts, files, nonce,
                             terms)
    finally:
        for file in files:  # that nobody took
            os.close(file)


def _read_outcome(kind: str, data: bytes, message: str, figures: Dict[str, Any], attempts: int, files: List[int],
                  nonce: bytes, terms: Terms) -> Answer:
    receipt = None
    if kind != "answer":
        answer = Answer(error=BY_OUTCOME.get(kind, JobError)(message))
    elif data[:_worker.NONCE_BYTES] != nonce:
        answer = Answer(error=ResultUnreadable("the worker's answer is not one to this request: did the job write to a "
                                               "descriptor that is not its own?"))
    else:
        at = _worker.NONCE_BYTES
        try:
            answer = _from_letter(data[at:at + 1], data[at + 1:], files, terms)
        except BaseException as error:  # pylint: disable=broad-except
            unreadable = ResultUnreadable(f"the result cannot be read here: {type(error).__name__}: {_worker.text_of(error)}")
            unreadable.__cause__ = error
            answer = Answer(error=unreadable)
    if attempts:
        receipt = Receipt(**{**figures, "shared_out_bytes": answer.shared_bytes})
    if answer.error is not None:
        answer = answer._replace(error=_at_the_limit(answer.error, receipt))
        for name, value in (("receipt", receipt), ("attempts", attempts), ("stdout", answer.stdout),
                            ("stderr", answer.stderr)):
            try:
                if name in ("receipt", "attempts") or isinstance(answer.error, JobError):
                    setattr(answer.error, name, value)
            except BaseException:  # pylint: disable=broad-except
                pass  # an exception type that takes no attributes
    return answer._replace(receipt=receipt)
