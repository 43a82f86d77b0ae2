"""What grew between two censuses, who keeps it, what an addition weighs. Runs while the caller's frames live."""
import collections
import gc
import inspect
import itertools
import sys
import types

from . import census as censuses
from . import holders, source, tensors

_MOST_CONTAINERS = 12
_SAMPLE = 8
# What a tensor and a node of autograd's take where they keep no data of their own, estimated for torch 1.13: see
# diagnose._structures. Nothing that grows takes 0 bytes.
_TENSOR_BYTES, _NODE_BYTES = 400, 1000


class Growth:
    """One thing that grew: plain figures, no reference to it."""

    def __init__(self, what, holder, added, iterations, contents, length=0, limit=None, identity=0):
        self.what = what                # "list", "tensor", "graph"
        self.identity = identity        # a container's id, to see whether it goes on growing
        self.holder = holder
        self.added = added              # how many more
        self.iterations = iterations    # in how many iterations
        self.contents = contents
        self.length = length
        self.limit = limit              # a deque's maxlen

    @property
    def per_iteration(self):
        return self.added / self.iterations

    @property
    def bytes_per_iteration(self):
        return self.per_iteration * self.contents.bytes_each


class Contents:
    """What some of the newest additions consist of."""

    def __init__(self):
        self.items = 0
        self.tensors = 0
        self.with_graph = 0
        self.tensor_bytes = 0
        self.graph_bytes = 0
        self.graph_nodes = 0
        self.python_bytes = 0
        self.structure_bytes = 0  # of tensors and nodes themselves, beside their data: see STRUCTURE
        self.exceptions = collections.Counter()
        self.types = collections.Counter()

    @property
    def bytes_each(self):
        data = self.tensor_bytes + self.graph_bytes + self.python_bytes
        return (data or self.structure_bytes) / max(self.items, 1)


def explain(first, middle, last, known_storages, unpack=True):
    """Growths from `first` to `last`, largest first. `known_storages` (weights) are not counted as graph."""
    iterations = max(last.iteration - first.iteration, 1)
    search = holders.Search()
    found, explained_tensors = [], 0
    rows = censuses.grown_containers(first, middle, last)[:60]
    objects = _objects_by_id({row[0] for row in rows})
    search.ignored.add(id(objects))
    for number, before, length in rows:
        thing = objects.pop(number, None)
        if thing is None or len(found) >= _MOST_CONTAINERS:
            continue
        growth = _explain_container(search, thing, length - before, iterations, known_storages, unpack)
        thing = None
        if growth is not None:
            found.append(growth)
            explained_tensors += growth.added * growth.contents.tensors / max(growth.contents.items, 1)
    objects.clear()
    more_tensors, loose = last.tensor_count - first.tensor_count, []
    if more_tensors >= iterations / 2 and explained_tensors < more_tensors / 2:
        loose = _explain_tensors(search, first, last, iterations, known_storages, unpack)
        names = {growth.holder.expression for growth in found}
        # In a container that is in the list already?
        found += [growth for growth in loose if growth.holder.root is not None
                  and growth.holder.expression.split("[")[0] not in names]
    more_nodes = last.graph_nodes - first.graph_nodes
    if more_nodes >= iterations and not any(growth.contents.with_graph for growth in found):
        more_bytes = last.all_tensor_bytes - first.all_tensor_bytes
        found += _explain_graph(search, more_nodes, more_bytes, iterations)
    # Tensors that only a graph's nodes hold have no name: they count with whatever holds the graph.
    found = found or [growth for growth in loose if growth.holder.root is None]
    return sorted(found, key=lambda growth: -growth.bytes_per_iteration)


def _objects_by_id(wanted):
    return {id(thing): thing for thing in gc.get_objects() if id(thing) in wanted and type(thing) in
            censuses.CONTAINERS} if wanted else {}


def _explain_container(search, thing, added, iterations, known_storages, unpack):
    search.ignored.add(id(thing.__class__))
    holder = search.find(thing)
    file = holder.file or (holder.root.place.file if holder.root is not None and holder.root.place else None)
    if holder.root is None or (file and file.startswith(source._HERE)):
        return None
    if holder.owner_kind == "stream":
        return None  # written at 8 KiB. To flush it instead would change the order of the script's output
    contents = _weigh(_newest(thing), known_storages, unpack)
    foreign = file is not None and not source.belongs_to_caller(file)
    if foreign and not contents.tensors and not holder.owner_kind:
        return None  # a table of the standard library's or of torch's
    limit = getattr(thing, "maxlen", None)
    return Growth(type(thing).__name__, holder, added, iterations, contents, len(thing), limit, id(thing))


def _newest(thing):
    try:
        if isinstance(thing, dict):
            return [thing[key] for key in itertools.islice(reversed(thing), _SAMPLE)]
        if isinstance(thing, set):
            return list(itertools.islice(thing, _SAMPLE))
        return [thing[-number] for number in range(1, min(len(thing), _SAMPLE) + 1)]
    except (RuntimeError, KeyError, IndexError):  # another thread is at it
        return []


def _weigh(items, known_storages, unpack):
    contents, storages, roots, seen = Contents(), {}, [], set()
    contents.items = len(items)
    for item in items:
        contents.types[type(item).__name__] += 1
        _collect(item, contents, storages, roots, seen, 5)
    storages.pop(0, None)
    contents.tensor_bytes = sum(size for address, size in storages.items() if address not in known_storages)
    graph = tensors.walk_graph(roots, unpack)
    contents.graph_nodes = graph.nodes
    contents.structure_bytes = _TENSOR_BYTES * contents.tensors + _NODE_BYTES * graph.nodes
    contents.graph_bytes = sum(size for address, size in graph.saved.items()
                               if address not in storages and address not in known_storages)
    return contents


def _collect(value, contents, storages, roots, seen, depth):
    if id(value) in seen or depth == 0 or isinstance(value, (type, types.ModuleType)):
        return
    seen.add(id(value))
    further = ()
    if tensors.is_tensor(value):
        address, size = tensors.storage_of(value)
        storages[address] = size
        contents.tensors += 1
        if value.requires_grad and value.grad_fn is not None:
            contents.with_graph += 1
            roots.append(value.grad_fn)
        return
    if tensors.is_array(value):  # a view weighs what it keeps
        base = value if value.base is None else value.base
        contents.python_bytes += getattr(base, "nbytes", value.nbytes) + 112
        return
    contents.python_bytes += sys.getsizeof(value, 64) if type(value).__module__ == "builtins" else 64
    if isinstance(value, BaseException):
        contents.exceptions[type(value).__name__] += 1
        further = [value.__traceback__, value.__cause__, value.__context__]
    elif isinstance(value, types.TracebackType):
        further = _tensors_in_frames(value)
    elif isinstance(value, types.FunctionType):
        further = [_cell_contents(cell) for cell in value.__closure__ or ()] + list(value.__defaults__ or ())
    elif isinstance(value, dict):
        further = list(value.values())[:64]
    elif isinstance(value, (list, tuple, set, collections.deque)):
        further = list(itertools.islice(value, 64))
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, tensors.torch().nn.Module):
        further = list(vars(value).values())[:64]
    for part in further:
        _collect(part, contents, storages, roots, seen, depth - 1)


def _tensors_in_frames(trace):
    found = []
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            holders.frame_locals(frame, lambda name, part: found.append(part) if tensors.is_tensor(part) else None)
    return found


def _cell_contents(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None  # not bound yet


def _explain_tensors(search, first, last, iterations, known_storages, unpack):
    """Tensors that pile up elsewhere than in a container that grows: tracebacks, closures, objects that link."""
    old = set(first.tensor_ids)
    grown = {kind: count for kind, count, _ in censuses.grown_kinds(first, last) if count >= max(3, iterations / 4)}
    candidates = collections.defaultdict(list)
    search.ignored.add(id(candidates))
    for thing in gc.get_objects():
        if tensors.is_tensor(thing) and id(thing) not in old:
            kind = censuses.Kind(tuple(thing.shape), str(thing.dtype)[6:],
                                 bool(thing.requires_grad and thing.grad_fn is not None))
            if kind in grown:
                candidates[kind].append(thing)
    thing, found = None, []
    for kind in sorted(grown, key=grown.get, reverse=True)[:3]:
        some = candidates[kind]
        search.ignored.update((id(candidates), id(some)))
        if some:
            contents = _weigh([some[len(some) // 2]], known_storages, unpack)
            found.append(Growth(f"tensor {kind}", _common_holder(search, some), grown[kind], iterations, contents))
        some.clear()
    return found


def _common_holder(search, some):
    """Of three among many alike: one of them may be what a variable still names."""
    three = [search.find(some[len(some) * quarter // 4]) for quarter in (1, 2, 3)]
    nameless = [holder for holder in three if holder.root is None]
    named = [holder for holder in three if holder.root is not None]
    return nameless[0] if len(nameless) >= 2 else named[0]


def _explain_graph(search, more_nodes, more_bytes, iterations):
    """A graph that gets longer behind the same number of tensors: a running sum."""
    best, best_nodes = None, 0
    live = [thing for thing in gc.get_objects() if tensors.is_tensor(thing) and thing.requires_grad
            and thing.grad_fn is not None]
    search.ignored.add(id(live))
    # The newest come last; those that a variable names are what we look for.
    for tensor in [tensor for tensor in live if id(tensor) in search.names] or live[-50:]:
        nodes = tensors.walk_graph([tensor.grad_fn], unpack=False).nodes
        if nodes > best_nodes:
            best, best_nodes = tensor, nodes
    tensor = None
    live.clear()
    if best is None:
        return []
    contents = Contents()
    contents.items = more_nodes
    contents.with_graph = contents.tensors = 1
    contents.graph_nodes, contents.graph_bytes = best_nodes, max(more_bytes, 0)
    contents.structure_bytes = _NODE_BYTES * more_nodes
    return [Growth("graph", search.find(best), more_nodes, iterations, contents)]
