"""One pass over everything Python's collector knows: which tensors live, which containers are how long."""
import collections
import gc
import sys
from array import array

from . import tensors

CONTAINERS = (list, dict, set, collections.deque, collections.OrderedDict, collections.defaultdict)
_CONTAINER_SET = frozenset(CONTAINERS)


class Kind(collections.namedtuple("Kind", "shape dtype graph")):
    """Tensors that look alike."""
    __slots__ = ()

    def __str__(self):
        return f"{self.dtype}{list(self.shape)}" + (" with a graph" if self.graph else "")


class Census:
    """Figures of one moment; holds no object of the caller's."""

    def __init__(self, iteration):
        self.iteration = iteration
        self.tensor_bytes = 0          # storages of tensors that Python can see, each once
        self.graph_bytes = 0           # storages that only autograd's nodes hold
        self.graph_nodes = 0
        self.truncated = False
        self.kinds = {}                # Kind -> [count, bytes]
        self.python_bytes = 0          # tracked objects without what they refer to
        self.container_ids, self.container_lengths = array("Q"), array("Q")
        self.tensor_ids = array("Q")
        self.worker_pids = []

    @property
    def tensor_count(self):
        return len(self.tensor_ids)

    @property
    def all_tensor_bytes(self):
        return self.tensor_bytes + self.graph_bytes

    def lengths(self):
        return dict(zip(self.container_ids, self.container_lengths))


def take(iteration, unpack=True):
    census, torch = Census(iteration), tensors.torch()
    objects = gc.get_objects()
    kinds = list(map(type, objects))  # the passes below run in C as far as they can: there are 100,000 objects
    types = collections.Counter(kinds)
    containers = [thing for thing, kind in zip(objects, kinds) if kind in _CONTAINER_SET]
    census.container_ids = array("Q", map(id, containers))
    census.container_lengths = array("Q", map(len, containers))
    census.python_bytes = sum(map(sys.getsizeof, containers))
    census.python_bytes += sum(kind.__basicsize__ * count for kind, count in types.items()
                               if kind not in _CONTAINER_SET)
    iterator = _worker_iterator_type()
    if iterator in types:
        census.worker_pids = [worker.pid for thing, kind in zip(objects, kinds) if kind is iterator
                              for worker in getattr(thing, "_workers", ()) if worker.pid]
    tensor_types = {kind for kind in types if torch is not None and issubclass(kind, torch.Tensor)}
    live = [thing for thing, kind in zip(objects, kinds) if kind in tensor_types]
    del objects, kinds, containers
    if torch is not None:
        with torch._C.DisableTorchFunction():
            _count_tensors(census, live, unpack)
    return census


def _worker_iterator_type():
    module = sys.modules.get("torch.utils.data.dataloader")
    return getattr(module, "_MultiProcessingDataLoaderIter", None)


def _count_tensors(census, live, unpack):
    seen, roots = {}, []
    for tensor in live:
        node = tensor.grad_fn if tensor.requires_grad else None
        address, size = tensors.storage_of(tensor)
        if node is not None:
            roots.append(node)
        entry = census.kinds.setdefault(Kind(tuple(tensor.shape), str(tensor.dtype)[6:], node is not None), [0, 0])
        entry[0] += 1
        entry[1] += 0 if address in seen else size
        seen[address] = size
        census.tensor_ids.append(id(tensor))
    seen.pop(0, None)
    census.tensor_bytes = sum(seen.values())
    if roots:
        graph = tensors.walk_graph(roots, unpack)
        census.graph_nodes, census.truncated = graph.nodes, graph.truncated
        census.graph_bytes = sum(size for address, size in graph.saved.items() if address not in seen)


def grown_containers(first, middle, last, least=3):
    """[(id, length at first, length at last)] of containers that grew from each census to the next, most first."""
    before, between = first.lengths(), middle.lengths()
    grown = []
    for number, length in zip(last.container_ids, last.container_lengths):
        start = before.get(number)
        if start is not None and start < between.get(number, 0) < length and length - start >= least:
            grown.append((number, start, length))
    return sorted(grown, key=lambda row: row[1] - row[2])


def grown_kinds(first, last):
    """[(Kind, how many more, bytes more)], most bytes first."""
    rows = []
    for kind, (count, size) in last.kinds.items():
        old_count, old_size = first.kinds.get(kind, (0, 0))
        if count > old_count:
            rows.append((kind, count - old_count, size - old_size))
    return sorted(rows, key=lambda row: (-row[2], -row[1]))
