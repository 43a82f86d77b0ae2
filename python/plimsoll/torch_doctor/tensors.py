"""Tensors, their storages, and the graphs that hang from them. Reads only; creates no graph, draws no random number."""
import functools
import sys


def torch():
    """torch, if somebody has imported it."""
    return sys.modules.get("torch")


def is_tensor(thing):
    # Not isinstance(): among all the objects there are some whose __class__ runs code.
    return issubclass(type(thing), torch().Tensor)


def is_array(thing):
    """A numpy array, asked without importing numpy and without touching other people's properties."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(type(thing), numpy.ndarray)


def is_torchs_own(kind):
    return kind.__module__.split(".")[0] == "torch"


def storage_of(tensor):
    """(address, bytes) of what a tensor's elements lie in; views share it. (0, 0) for none in this machine's memory."""
    try:
        if tensor.device.type != "cpu":
            return 0, 0
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()
        return storage.data_ptr(), storage.nbytes()
    except (RuntimeError, NotImplementedError, AttributeError):
        pass
    try:  # sparse, opaque: no storage to ask
        return id(tensor), tensor.numel() * tensor.element_size()
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0, 0


def nested_tensors(value, depth=6):
    """The tensors in what a model took or returned."""
    if isinstance(value, torch().Tensor):
        yield value
    elif depth and isinstance(value, dict):
        for part in list(value.values()):
            yield from nested_tensors(part, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for part in list(value):
            yield from nested_tensors(part, depth - 1)
    elif depth and hasattr(value, "__dict__") and not isinstance(value, type):
        for part in list(vars(value).values()):
            if isinstance(part, (torch().Tensor, dict, list, tuple)):
                yield from nested_tensors(part, depth - 1)


def storages(values):
    """{address: bytes} of the tensors in `values`."""
    found = dict(storage_of(tensor) for tensor in nested_tensors(values))
    found.pop(0, None)
    return found


@functools.lru_cache(maxsize=None)
def _saved_names(node_type):
    return tuple(name for name in dir(node_type) if name.startswith("_saved_") and not name.endswith(
        ("_sizes", "_strides", "_opt", "_dim", "_eps", "_alpha", "_beta")))


def _saved_by(node):
    for name in _saved_names(type(node)):
        try:
            yield getattr(node, name)
        except (RuntimeError, AttributeError):
            pass  # freed by backward, or changed in place since
    if not is_torchs_own(type(node)) and hasattr(node, "saved_tensors"):  # a custom Function
        try:
            yield node.saved_tensors
        except RuntimeError:
            pass
        yield list(getattr(node, "__dict__", {}).values())


class Graph:
    """What autograd's nodes behind some tensors hold."""

    def __init__(self, nodes, saved, truncated):
        self.nodes, self.saved, self.truncated = nodes, saved, truncated


def walk_graph(roots, unpack=True, limit=100_000):
    """All nodes reachable from the `grad_fn`s in `roots`, each once. With `unpack` false saved tensors are left alone:
    somebody's own saved-tensor hooks would run their code."""
    # The wrappers are kept: a node's Python object, and so its identity, lives only as long as somebody holds it.
    seen, saved, pending = set(), {}, [node for node in roots if node is not None]
    while pending and len(seen) < limit:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        pending.extend(following for following, _ in node.next_functions if following is not None)
        if unpack:
            for value in _saved_by(node):
                if isinstance(value, (torch().Tensor, tuple, list)):
                    saved.update(storages(value))
    return Graph(len(seen), saved, bool(pending))


def saved_by_call(result, arguments, module, unpack=True):
    """What autograd keeps for one call, by kind; None if it recorded nothing."""
    roots = [tensor.grad_fn for tensor in nested_tensors(result) if tensor.grad_fn is not None]
    if not roots:
        return None
    graph = walk_graph(roots, unpack)
    own = storages(list(module.parameters()) + list(module.buffers())) if hasattr(module, "parameters") else {}
    inputs, outputs = storages(arguments), storages(result)
    bytes_of = {"intermediate": 0, "input": 0, "output": 0}
    for address, size in graph.saved.items():
        if address not in own:
            kind = "input" if address in inputs else "output" if address in outputs else "intermediate"
            bytes_of[kind] += size
    return {"nodes": graph.nodes, "root": type(roots[0]).__name__, "truncated": graph.truncated,
            "unpacked": unpack, **{f"{kind}_bytes": size for kind, size in bytes_of.items()}}
