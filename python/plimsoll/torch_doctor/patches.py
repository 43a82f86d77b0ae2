"""The three methods of torch that are replaced while somebody watches, and put back afterwards.

All watches share one set of replacements. Without a watch, in a forked child, under torch.jit's tracer, or inside a
call that is being watched already, the replacements only call the originals.
"""
import functools
import os
import threading

_lock = threading.Lock()
_observers = ()           # replaced as a whole, read without the lock
_originals = []           # (owner, name, original, replacement)
_process = None
_inside = threading.local()


def attach(observer):
    """From now on observer.before_call(module, arguments), after_call(module, arguments, result), fetcher(fetcher)
    and saved_tensor_hooks_used() are called. They must not raise."""
    global _observers, _process
    with _lock:
        if not _originals:
            _install()
        _process = os.getpid()
        _observers += (observer,)


def detach(observer):
    """Puts the originals back with the last observer. What somebody else has put over ours in the meantime stays."""
    global _observers
    with _lock:
        _observers = tuple(other for other in _observers if other is not observer)
        if not _observers:
            while _originals:
                owner, name, original, replacement = _originals.pop()
                if owner.__dict__.get(name) is replacement:
                    setattr(owner, name, original)


def _replace(owner, name, make):
    original = owner.__dict__[name]
    replacement = functools.wraps(original)(make(original))
    setattr(owner, name, replacement)
    _originals.append((owner, name, original, replacement))


def _install():
    import torch.fx  # keeps Module.__call__ as it finds it when imported: let that be the original
    from torch.autograd.graph import saved_tensors_hooks
    from torch.utils.data._utils import fetch
    try:
        _replace(torch.nn.Module, "__call__", _watched_call)
        _replace(saved_tensors_hooks, "__enter__", _watched_enter)
        for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            _replace(fetcher, "fetch", _watched_fetch)
    except BaseException:
        while _originals:
            owner, name, original, _ = _originals.pop()
            setattr(owner, name, original)
        raise


def _active():
    return _observers if os.getpid() == _process else ()


def _watched_call(original):
    from torch._C import _get_tracing_state

    def __call__(self, *args, **kwargs):
        observers = _active() if not getattr(_inside, "call", False) else ()
        if not observers or _get_tracing_state() is not None:
            return original(self, *args, **kwargs)
        _inside.call = True
        try:
            for observer in observers:
                observer.before_call(self, (args, kwargs))
            result = original(self, *args, **kwargs)
            for observer in observers:
                observer.after_call(self, (args, kwargs), result)
            return result
        finally:
            _inside.call = False
    return __call__


def _watched_enter(original):
    def __enter__(self):
        for observer in _active():
            observer.saved_tensor_hooks_used()
        return original(self)
    return __enter__


def _watched_fetch(original):
    def fetch(self, possibly_batched_index):
        notes = [notes for notes in (observer.fetcher(self) for observer in _active()) if notes is not None]
        if not notes:
            return original(self, possibly_batched_index)
        collate = own = self.collate_fn
        for one in notes:
            collate = functools.partial(one.look, self.dataset, collate=collate)
        self.collate_fn = collate
        try:
            return original(self, possibly_batched_index)
        finally:
            self.collate_fn = own
    return fetch
