"""What runs in a fresh interpreter: reads requests from descriptor 3, answers there (see PoolOptions in isolate.h).

A request is a nonce of 16 bytes, the size of a head, and two pickles of the parent's: the head, (kind, path, main,
table), and what to run, which may be large and is not copied. An answer is the nonce, a letter, and the value in the
encoding of the pool: pickle, or plain data where the parent does not trust us. Large arrays are in files that travel
with the frame (_shared.py); the table says where.
    V value    X exception: (pickle or b"", type name, message, traceback)    L too large: size
    B value with buffers: (table, encoded value)
    U a request that cannot be taken apart: message    S value with output: (result, stdout, stderr, truncated)
"""
from __future__ import annotations

import os
import sys

# Imported by every worker before it is ready: what is needed only later is imported later.
try:
    import _pickle as pickle
except ImportError:
    import pickle  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple

NONCE_BYTES = 16
SIZE_BYTES = 4
MAIN_NAME = "__plimsoll_main__"
_state = {"importing_main": False, "worker": False}


def importing_main() -> bool:
    """Whether this is a worker that imports its parent's script."""
    return _state["importing_main"]


def is_worker() -> bool:
    return _state["worker"]


class _Channel:
    def __init__(self, descriptor: int) -> None:
        # Out of the way of code that closes or writes to small numbers; descriptor 3 is then harmless.
        import fcntl
        try:
            self.descriptor = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 200)
        except OSError:  # fewer are allowed
            self.descriptor = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, descriptor)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, descriptor, inheritable=False)
        os.close(null)
        import _socket
        self.socket = _socket.socket(fileno=self.descriptor)
        self.files: list[int] = []  # that came with the frame

    def read(self, size: int) -> Optional[bytearray]:
        data = bytearray()
        while len(data) < size:
            piece = os.read(self.descriptor, min(size - len(data), 1 << 20))
            if not piece:
                return None
            data += piece
        return data

    def read_frame(self) -> Optional[bytearray]:
        header = b""
        self.files = []
        while len(header) < 8:
            piece, extra, _, _ = self.socket.recvmsg(8 - len(header), 1024, 0x40000000)  # MSG_CMSG_CLOEXEC
            for level, kind, data in extra:
                if (level, kind) == (1, 1):  # SOL_SOCKET, SCM_RIGHTS
                    self.files += memoryview(data)[:len(data) // 4 * 4].cast("i")
            if not piece:
                return None
            header += piece
        return self.read(int.from_bytes(header, "little"))

    def write_frame(self, *parts: bytes, files: Any = ()) -> None:
        header = memoryview(sum(map(len, parts)).to_bytes(8, "little"))
        try:
            if files:
                import struct
                rights = [(1, 1, struct.pack(f"{len(files)}i", *files))]
                header = header[self.socket.sendmsg([header], rights):]
            for data in (header, *parts):
                view = memoryview(data)
                while view:
                    view = view[os.write(self.descriptor, view[:1 << 20]):]
        except BrokenPipeError:  # nobody waits for it any more
            os._exit(1)


def _import_main(main: Optional[Tuple[str, str]]) -> None:
    """The parent's script under another name, as multiprocessing's spawn does, so that its functions are found."""
    if main is None or MAIN_NAME in sys.modules:
        return
    import runpy
    import types
    how, what = main
    _state["importing_main"] = True
    try:
        if how == "module":
            content = runpy.run_module(what, run_name=MAIN_NAME, alter_sys=True)
        else:
            content = runpy.run_path(what, run_name=MAIN_NAME)
    finally:
        _state["importing_main"] = False
    module = types.ModuleType(MAIN_NAME)
    module.__dict__.update(content)
    sys.modules["__main__"] = sys.modules[MAIN_NAME] = module


def _call(payload: memoryview, buffers: Any) -> Any:
    function, arguments, keywords = pickle.loads(payload, buffers=buffers)
    return lambda: function(*arguments, **keywords)


def _run_source(payload: memoryview, buffers: Any) -> Any:
    code, inputs, result, name = pickle.loads(payload, buffers=buffers)
    scope: Dict[str, Any] = {"__name__": "__plimsoll_source__", "__builtins__": __builtins__, **inputs}

    def run() -> Any:
        import linecache
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)  # its lines, in tracebacks
        exec(compile(code, name, "exec"), scope)  # pylint: disable=exec-used
        if result is None:
            return None
        if result not in scope:
            raise NameError(f"the source does not define {result!r}, its result")
        return scope[result]

    return run


def text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # pylint: disable=broad-except
        return "(its message cannot be made)"


def _exception(error: BaseException, plain: bool) -> Tuple[bytes, str, str, str]:
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__", MAIN_NAME):
        name = f"{kind.__module__}.{name}"
    message = text_of(error)
    import traceback
    try:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_globals.get("__name__") == __name__:
            frames = frames.tb_next  # ours
        text = "".join(traceback.format_exception(kind, error, frames))
    except BaseException:  # pylint: disable=broad-except
        text = f"{name}: {message}\n"
    pickled = b""
    if not plain and isinstance(error, Exception):
        pickled = _pickled_exception(error.with_traceback(None))
    return pickled, name[:1000], message[:50_000], text[-150_000:]  # within the slack of a frame


def rebuild_exception(kind: Any, arguments: Any, state: Any) -> Any:
    """An exception of this type without its __init__, which may want what nobody has kept."""
    try:
        error = kind.__new__(kind, *arguments)
    except Exception:  # pylint: disable=broad-except
        error = BaseException.__new__(kind)
    error.args = arguments
    error.__dict__.update(state)
    return error


def _can_travel(value: Any) -> bool:
    try:
        pickle.loads(pickle.dumps(value, 5))
    except BaseException:  # pylint: disable=broad-except
        return False
    return True


def _pickled_exception(error: Exception) -> bytes:
    """As pickle does it, if it comes out as what it was; otherwise by its type and what of it can travel. b"": only
    its text can."""
    kind = type(error)
    try:
        pickled = pickle.dumps(error, 5)
        again = pickle.loads(pickled)
        if type(again) is kind and again.args == error.args:
            return pickled
    except BaseException:  # pylint: disable=broad-except
        pass
    try:
        arguments = tuple(value if _can_travel(value) else repr(value) for value in error.args)
        state = {name: value for name, value in vars(error).items() if _can_travel(value)}
        pickled = pickle.dumps(_Rebuilt(kind, arguments, state), 5)
        return pickled if type(pickle.loads(pickled)) is kind else b""
    except BaseException:  # pylint: disable=broad-except
        return b""


class _Rebuilt:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __reduce__(self) -> Any:
        return rebuild_exception, self.parts


class Buffers:
    """A _shared.Outgoing once there is something for it: most results are small, and its imports take time."""

    def __init__(self, share: bool) -> None:
        self.share = share
        self.files: Any = None

    def add(self, view: memoryview) -> int:
        if self.files is None:
            from ._shared import Outgoing
            self.files = Outgoing(self.share)
        return self.files.add(view)

    def callback(self, buffer: Any) -> bool:
        view = buffer.raw()
        if view.nbytes < 1 << 18:
            return True
        self.add(view)
        return False


class _Worker:
    def __init__(self, config: Dict[str, Any]) -> None:
        self.plain = config["plain"]
        self.result_bytes = config["result_bytes"]
        self.output_bytes = config["output_bytes"]
        self.channel = _Channel(3)
        self.outgoing: Any = None

    def encode(self, value: Any) -> bytes:
        if not self.plain:
            return pickle.dumps(value, 5)
        from . import _plain
        return _plain.encode(value)

    def encode_result(self, value: Any) -> Tuple[bytes, bytes]:
        """(letter, bytes), with large arrays apart."""
        outgoing = Buffers(share=not self.plain)
        if self.plain:
            from . import _plain
            encoded = _plain.encode(value, outgoing)
        else:
            encoded = pickle.dumps(value, 5, buffer_callback=outgoing.callback)
        files = outgoing.files
        size = len(encoded) + (files.total_bytes() if files else 0)
        if size > self.result_bytes:
            return b"L", self.encode(size)
        if files is None:
            return b"V", encoded
        files.finish()
        self.outgoing = files
        return b"B", self.encode((files.table, encoded))

    def answer_to(self, frame: bytearray) -> Tuple[bytes, bytes]:
        try:
            with memoryview(frame) as request:
                at = NONCE_BYTES + SIZE_BYTES
                head_end = at + int.from_bytes(request[NONCE_BYTES:at], "little")
                kind, path, main, table = pickle.loads(request[at:head_end])
                sys.path[:] = path
                _import_main(main)
                buffers = None
                if table:
                    from ._shared import receive
                    buffers, self.channel.files = receive(self.channel.files, table), []
                run = (_run_source if kind in ("source", "captured source") else _call)(request[head_end:], buffers)
                del buffers
            frame.clear()  # it may be large, and what it held is in `run` now
        except BaseException as error:  # pylint: disable=broad-except
            import traceback
            return b"U", self.encode("".join(traceback.format_exception_only(type(error), error)).strip())
        if kind != "captured source":
            return self.outcome_of(run)
        from ._capture import Capture
        with Capture(self.output_bytes) as capture:
            letter, encoded = self.outcome_of(run)
        return b"S", self.encode((letter, encoded, *capture.texts()))

    def outcome_of(self, run: Any) -> Tuple[bytes, bytes]:
        try:
            value = run()
        except BaseException as error:  # pylint: disable=broad-except
            pickled, *told = _exception(error, self.plain)
            return b"X", self.encode((pickled if len(pickled) <= self.result_bytes else b"", *told))
        try:
            return self.encode_result(value)
        except BaseException as error:  # pylint: disable=broad-except
            return b"R", self.encode(text_of(error))

    def serve(self) -> None:
        worker = os.getpid()
        while True:
            frame = self.channel.read_frame()
            if frame is None:
                return
            nonce = bytes(frame[:NONCE_BYTES])
            letter, encoded = self.answer_to(frame)
            if os.getpid() != worker:  # a child that the job forked and that came back here: the answer is not its own
                os._exit(0)
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:  # pylint: disable=broad-except
                    pass
            outgoing, self.outgoing = self.outgoing, None
            self.channel.write_frame(nonce, letter, encoded, files=outgoing.files if outgoing else ())
            if outgoing:
                outgoing.close()
            del frame, encoded, outgoing


def main(config: Dict[str, Any]) -> None:
    _state["worker"] = True
    worker = _Worker(config)
    try:
        for name in config["preload"]:
            __import__(name)
    except BaseException as error:  # pylint: disable=broad-except
        import traceback
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        worker.channel.write_frame(f"preload of {name!r} failed\n{text[-8000:]}".encode("utf-8", "replace"))
        os._exit(1)
    worker.channel.write_frame(b"ready")
    worker.serve()
    os._exit(0)  # at once: whatever threads it has, the job is over
