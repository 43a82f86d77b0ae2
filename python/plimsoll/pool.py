"""Workers that are spawned ahead and warmed, and answer jobs one after the other. docs/python.md."""
import atexit
import concurrent.futures
import itertools
import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from . import _calls, _native, _worker
from ._units import Seconds, Size, parse_bytes, parse_count, parse_milliseconds, parse_most
from .errors import Busy, InvalidArgument, JobError, StartFailed
from .isolate import Result, Sandboxed
from .receipt import Receipt

if TYPE_CHECKING:
    import asyncio

_READY_LOOK_MS = 50


class _Event:
    """As threading.Event, but a signal cannot tear it."""

    def __init__(self) -> None:
        self._changed = _native.Condition()
        self._is_set = False

    def set(self) -> None:
        with self._changed:
            self._is_set = True
            self._changed.notify_all()

    def clear(self) -> None:
        with self._changed:
            self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: Optional[float] = None) -> bool:
        with self._changed:
            if not self._is_set:
                self._changed.wait(timeout)
            return self._is_set


class _Waiters(List[Any]):
    """Those of concurrent.futures.wait and as_completed. We set their events while we hold the future's condition, so
    they must not be torn either."""

    def append(self, waiter: Any) -> None:
        if isinstance(waiter.event, threading.Event):
            waiter.event = _Event()
        super().append(waiter)


class JobFuture(concurrent.futures.Future):  # type: ignore[type-arg]
    """A Future whose job can be cancelled even while it runs: its worker is killed then. `receipt` is there when it
    is done, unless it never ran."""

    receipt: Optional[Receipt] = None
    _cancel_job: Optional[Callable[[], None]] = None

    def __init__(self) -> None:
        super().__init__()
        # The inner life of CPython 3.11's Future: threading's conditions do not survive Ctrl-C at every moment.
        self._condition: Any = _native.Condition()
        self._waiters: Any = _Waiters()

    def cancel(self) -> bool:
        cancelled = super().cancel()
        if cancelled and self._cancel_job is not None:
            self._cancel_job()
        return cancelled


class _Pending(NamedTuple):
    future: JobFuture
    nonce: bytes
    source: bool
    for_asyncio: bool
    shared_bytes: int


class _State:
    """What the delivering thread needs; it must not keep the Pool itself alive."""

    def __init__(self, native: Any, terms: _calls.Terms) -> None:
        self.native, self.terms = native, terms
        self.owner = os.getpid()
        self.changed = _native.Condition()
        self.closed = False
        self.deliverer = 0
        self.pending: Dict[int, _Pending] = {}
        self.waiters: List[Tuple[Any, Any]] = []  # asyncio's loops and futures that wait for room

    def start(self) -> None:
        self.native.start_delivery(self.deliver)

    def deliver(self) -> None:
        self.deliverer = threading.get_ident()
        try:
            while (item := self.native.next()) is not None:
                self.deliver_one(*item)
                del item
        finally:
            self.native.delivered()

    def deliver_one(self, number: int, outcome: Any) -> None:
        with self.changed:
            pending = self.pending.pop(number, None)  # None: Ctrl-C came while it was submitted
            waiters, self.waiters = self.waiters, []
        if pending is not None:
            try:
                self.settle(pending, outcome)
            except BaseException:  # pylint: disable=broad-except
                # A callback's SystemExit, say: it ends nobody here, as in any other thread.
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), None)))
                if not pending.future.done():
                    pending.future.set_exception(JobError("the job's outcome could not be told"))
            pending.future._cancel_job = None  # a future that is kept must not keep the pool
        with self.changed:
            self.changed.notify_all()
        for loop, waiter in waiters:
            try:
                loop.call_soon_threadsafe(_wake, waiter)
            except RuntimeError:  # its loop is closed
                pass

    def settle(self, pending: _Pending, outcome: Any) -> None:
        future = pending.future
        answer = _calls.read_outcome(outcome, pending.nonce, self.terms, pending.shared_bytes)
        future.receipt = answer.receipt
        if not future.set_running_or_notify_cancel():
            return
        if answer.error is not None:
            error = answer.error
            # With the one an asyncio.Future would never be done, with the other it would count as cancelled.
            if pending.for_asyncio and isinstance(error, (StopIteration, concurrent.futures.CancelledError)):
                error = RuntimeError(f"the job raised {type(error).__name__}")
                error.__cause__ = answer.error
            future.set_exception(error)
        elif pending.source:
            future.set_result(Result(answer.value, answer.receipt, answer.stdout, answer.stderr, answer.truncated))
        else:
            future.set_result(answer.value)

    def wait(self) -> None:
        """Until every job has its outcome."""
        if threading.get_ident() == self.deliverer:
            raise InvalidArgument("a callback of a job cannot wait for the pool's other jobs: they are delivered after it")
        with self.changed:
            while self.pending and not self.closed:
                self.changed.wait(0.2)

    def close(self, and_wait: bool = True) -> None:
        if os.getpid() == self.owner:
            self.native.close(and_wait)
            self.closed = True


_open_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()


@atexit.register
def _close_open_pools() -> None:
    """After the main thread's last line, while threads still run."""
    while _open_pools:
        _open_pools.pop().close()


def _wake(waiter: Any) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Pool:
    """`workers` fresh interpreters that import `preload` and then answer jobs, one at a time each.

    limit: memory of each worker, bytes or "256MiB". timeout, cpu_time: seconds for one job, unless the job says
    otherwise. A worker is replaced after recycle_after_jobs jobs, when it holds more than recycle_above_bytes after a
    job (by the kernel's figure), and ended after idle_timeout seconds without one. queue_capacity jobs may wait; then
    `submit` blocks. Every job ends in one result or one exception; none runs twice unless it is `repeatable`.

    Use it in a `with` block: leaving it waits for the jobs, an exception cancels them. What is still open at the
    interpreter's exit is closed then. Thread-safe; useless after os.fork() in the child."""

    def __init__(self, workers: int = 2, *, limit: Size = None, preload: Iterable[str] = (),
                 recycle_after_jobs: Optional[int] = None, recycle_above_bytes: Size = None,
                 idle_timeout: Seconds = None, timeout: Seconds = None, cpu_time: Seconds = None,
                 processes: Optional[int] = None, sandbox: Sandboxed = None, plain: bool = False,
                 queue_capacity: Optional[int] = None, start_timeout: Seconds = 60, output_limit: Size = "1MiB",
                 result_limit: Size = "1GiB") -> None:
        if isinstance(preload, str) or preload is None:
            raise InvalidArgument(f"preload={preload!r}: expected a list of module names")
        if not isinstance(workers, int) or isinstance(workers, bool):
            raise InvalidArgument(f"workers={workers!r}: expected a positive whole number")
        if _worker.importing_main():
            _calls.call_request(int, (), {})  # raises, and says what to do
        box = _calls.sandbox_of(sandbox)
        terms = _calls.Terms(
            memory_bytes=parse_bytes(limit, "limit"), wall_ms=parse_milliseconds(timeout, "timeout"),
            cpu_ms=parse_milliseconds(cpu_time, "cpu_time"), processes=parse_count(processes, "processes"),
            sandbox=box, plain=plain or box is not None, result_bytes=parse_most(result_limit, "result_limit"),
            output_bytes=parse_most(output_limit, "output_limit"), preload=tuple(preload))
        options = {"queue_capacity": parse_count(queue_capacity, "queue_capacity"),
                   "recycle_after_jobs": parse_count(recycle_after_jobs, "recycle_after_jobs"),
                   "recycle_above_bytes": parse_bytes(recycle_above_bytes, "recycle_above_bytes"),
                   "idle_ms": parse_milliseconds(idle_timeout, "idle_timeout"),
                   "start_ms": parse_milliseconds(start_timeout, "start_timeout"),
                   "result_bytes": terms.frame_bytes()}
        self._numbers = itertools.count(1)
        self._state = _State(_native.Pool(_calls.worker_spec(terms), workers, options), terms)
        # The collector runs it anywhere, within whatever locks of the thread that delivers: it must not wait.
        self._finalizer = weakref.finalize(self, self._state.close, False)
        _open_pools.add(self)
        self._state.start()  # last: an interrupted constructor leaves nobody to end the thread

    def wait_ready(self, timeout: Seconds = None) -> None:
        """Waits until a worker is warm. Raises StartFailed, with the reason, if workers cannot start."""
        left = parse_milliseconds(timeout, "timeout")
        limited = left > 0
        try:
            while not self._state.native.wait_ready(_READY_LOOK_MS):
                left -= _READY_LOOK_MS
                if limited and left <= 0:
                    raise StartFailed(f"no worker was ready within {timeout} s")
        except OSError as error:
            raise StartFailed(str(error)) from None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "JobFuture":
        """As concurrent.futures: a Future of fn(*args, **kwargs). Blocks while queue_capacity jobs wait."""
        return self._submit(_calls.call_request(fn, args, kwargs))

    def submit_job(self, fn: Callable[..., Any], args: Iterable[Any] = (), kwargs: Optional[Mapping[str, Any]] = None, *,
                   timeout: Seconds = None, repeatable: bool = False, block: bool = True) -> "JobFuture":
        """As submit, with a job's own terms. `repeatable`: may run a second time if its worker dies under it.
        block=False raises Busy instead of waiting for room."""
        return self._submit(_calls.call_request(fn, tuple(args), kwargs or {}), timeout, repeatable, block)

    def submit_source(self, code: str, inputs: Optional[Mapping[str, Any]] = None, result: Optional[str] = None, *,
                      timeout: Seconds = None, repeatable: bool = False, block: bool = True) -> "JobFuture":
        """Source text, as isolated_source, in a worker: a Future of its Result, output included. For strangers' source
        use a pool with a sandbox and recycle_after_jobs=1: what source changes in its interpreter stays there."""
        terms = self._state.terms
        request = _calls.source_request(code, inputs, result, True, terms.path())
        return self._submit(request, timeout, repeatable, block, source=True)

    def _submit(self, request: _calls.Request, timeout: Seconds = None, repeatable: bool = False, block: bool = True,
                source: bool = False, for_asyncio: bool = False) -> "JobFuture":
        state, number, future = self._state, next(self._numbers), JobFuture()
        wall_ms = parse_milliseconds(timeout, "timeout")
        if os.getpid() != state.owner:  # its lock may be held by a thread that is not in this process
            raise InvalidArgument(f"the pool belongs to process {state.owner}; make another one after fork()")
        identity = None
        try:
            with state.changed:
                state.pending[number] = _Pending(future, request.nonce, source, for_asyncio, request.shared_bytes)
            identity = state.native.submit(number, request.data, repeatable, wall_ms, -1 if block else 0, request.files)
        finally:
            if identity is not None or not for_asyncio:  # there it is tried again
                request.close()
            if identity is None:
                with state.changed:
                    state.pending.pop(number, None)
        if identity is None:
            raise Busy("the pool's queue is full")
        future._cancel_job = lambda: state.native.cancel(identity)
        if future.cancelled():
            state.native.cancel(identity)
        if future.done():
            future._cancel_job = None
        return future

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: Seconds = None) -> Iterator[Any]:
        """As concurrent.futures' map, but lazy: items are taken as there is room for their jobs."""
        items = zip(*iterables)
        ahead: List[JobFuture] = []
        depth = max(2, 2 * self.statistics()["workers_now"])
        try:
            for item in items:
                ahead.append(self.submit_job(fn, item, timeout=timeout))
                while len(ahead) > depth:
                    yield ahead.pop(0).result()
            while ahead:
                yield ahead.pop(0).result()
        finally:
            for future in ahead:
                future.cancel()

    async def run(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """From asyncio: the value of fn(*args, **kwargs). Waits for room without blocking the loop; cancelling the
        task cancels the job."""
        import asyncio
        request = _calls.call_request(fn, args, kwargs)
        return await asyncio.wrap_future(await self._submit_async(request, False))

    async def run_source(self, code: str, inputs: Optional[Mapping[str, Any]] = None,
                         result: Optional[str] = None) -> Result[Any]:
        """From asyncio: as submit_source."""
        import asyncio
        request = _calls.source_request(code, inputs, result, True, self._state.terms.path())
        return await asyncio.wrap_future(await self._submit_async(request, True))

    async def _submit_async(self, request: _calls.Request, source: bool) -> "JobFuture":
        import asyncio
        loop = asyncio.get_running_loop()
        while True:
            waiter: "asyncio.Future[None]" = loop.create_future()
            with self._state.changed:
                self._state.waiters.append((loop, waiter))  # before the attempt: no outcome may slip between
            try:
                return self._submit(request, block=False, source=source, for_asyncio=True)
            except Busy:
                await asyncio.wait([waiter], timeout=0.5)
            finally:
                with self._state.changed:
                    if (loop, waiter) in self._state.waiters:
                        self._state.waiters.remove((loop, waiter))

    def statistics(self) -> Dict[str, int]:
        """Counts: submitted, answered, failed, repeated, workers_started, workers_died, recycled_by_*, workers_now,
        waiting_now."""
        return dict(self._state.native.statistics())

    def worker_pids(self) -> List[int]:
        return list(self._state.native.pids())

    def close(self, wait: bool = False) -> None:
        """Ends the workers. wait=True lets the jobs that were submitted end first; otherwise they are cancelled."""
        if wait and os.getpid() == self._state.owner:
            self._state.wait()
        self._state.close()
        self._finalizer.detach()
        _open_pools.discard(self)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, kind: Any, *unused: Any) -> None:
        try:
            self.close(wait=kind is None)
        finally:
            self.close()
