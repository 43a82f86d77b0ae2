"""What a process, a tree of processes and their container hold, and a verdict on how it grows.

    from plimsoll import observe
    print(observe.read(pid).process.heap_bytes)     # one sample, both views
    print(observe.account(pid))                     # by kind, with what would come back

    watcher = observe.Observer(pid)
    samples = []
    while not watcher.ended:
        samples.append(watcher.read())
        time.sleep(1)
    print(observe.judge(samples).verdict)

Reads /proc and the memory cgroup and touches nothing. docs/observe.md says what the figures mean.
"""
import json
import os
import threading
from typing import Any, Iterable, Optional

from . import _native

__all__ = ["Figures", "Observer", "account", "judge", "read"]


class Figures(dict):
    """A JSON object whose members are attributes too: `sample.process.heap_bytes`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no figure '{name}' here, only: {', '.join(self)}") from None

    def __dir__(self):
        return [*super().__dir__(), *self]


def _parse(text: str) -> Figures:
    return json.loads(text, object_hook=Figures)


class Observer:
    """Watches one process (the caller's own without `pid`), with its descendants unless `tree` is false. Threads may
    share it: they take turns.

    Full samples walk every mapping of every process; where that would take more than `cost_limit` of a core they
    become rarer, and the samples between have `exact` false.
    """

    def __init__(self, pid: Optional[int] = None, *, tree: bool = True, cost_limit: float = 0.004,
                 proc_root: str = "/proc", cgroup_root: str = ""):
        self.pid = os.getpid() if pid is None else pid
        self._lock = threading.Lock()
        self._native = _native.Observer(self.pid, tree, cost_limit, proc_root, cgroup_root)

    def read(self, iteration: int = -1) -> Figures:
        """A sample: `seconds` since the watch began, `iteration`, `exact`, `process`, `container` (absent where no
        memory cgroup can be seen). `gap` is true, and nothing was read, where the process has ended, is stopped or
        executed another program: `gap_reason` says which."""
        with self._lock:
            return _parse(self._native.read(iteration))

    def account(self) -> Figures:
        """Everything by kind and by file, with what would come back and how, and notes on what is not known."""
        with self._lock:
            return _parse(self._native.account())["account"]

    @property
    def ended(self) -> bool:
        """The process is gone for good; known after the next `read`."""
        return self._native.ended

    @property
    def own_cpu_seconds(self) -> float:
        """What watching has cost so far."""
        return self._native.own_cpu_seconds


def read(pid: Optional[int] = None, *, tree: bool = True) -> Figures:
    """One full sample of a process."""
    return Observer(pid, tree=tree).read()


def account(pid: Optional[int] = None, *, tree: bool = True) -> Figures:
    """The account of a process."""
    return Observer(pid, tree=tree).account()


def judge(samples: Iterable[dict], *, minimum_seconds: float = 5) -> Figures:
    """A verdict on samples in the order of time: `verdict`, `cause`, `bytes_per_second`, `confidence`, `evidence`."""
    return _parse(_native.judge([json.dumps(sample) for sample in samples], minimum_seconds))
