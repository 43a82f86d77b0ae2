"""Findings from what grew and who holds it: graphs, tensors, tracebacks, a module's state, a dataset's cache."""
from .report import Finding, size

_PYTHON_NOTICE_BYTES = 256    # a container of small objects that gains less an iteration is a note
ADVICE = {
    "graph_retained": "keep y.detach(), which has no graph, or y.item(), a number",
    "tensors_retained": "do not keep the tensor, or limit how many are kept",
    "module_state_grows": "limit it, or empty it before each call",
    "loader_grows": "limit it: functools.lru_cache(maxsize=...), or do not keep items",
    "python_objects_grow": "limit it: collections.deque(maxlen=...)",
    "traceback_retained": "keep the text, not the exception: traceback.format_exc()",
}


def retained(watch):
    found = []
    for growth in watch.growths:
        if growth.holder.owner_kind == "hook" or _waits_for_collector(watch, growth) or not _still_grows(watch, growth):
            continue
        cause = _cause_of(growth)
        rate = growth.bytes_per_iteration
        if growth.limit is not None or (cause == "python_objects_grow" and rate < _PYTHON_NOTICE_BYTES):
            if growth.limit is None and rate < 64:
                continue  # a number an iteration
            severity = "note"
        else:
            severity = "growing"
        found.append(Finding(cause, severity, _retained_title(growth), bytes_per_iteration=rate,
                             total_bytes=growth.added * growth.contents.bytes_each,
                             evidence=_retained_evidence(growth), places=_retained_places(growth, cause)))
    return found


def _waits_for_collector(watch, growth):
    """Nobody holds it and gc.collect() freed it: a cycle, see causes.cycles."""
    return growth.holder.root is None and watch.experiments.get("cycle_tensors", 0) >= growth.added / 2


def _still_grows(watch, growth):
    """To the last census: a cache that has reached its bound is no leak."""
    if growth.identity:
        lengths = [watch.container_lengths[iteration].get(growth.identity)
                   for iteration in sorted(watch.container_lengths)
                   if iteration >= watch.explained_at]
        return len(lengths) < 2 or None not in lengths[-2:] and lengths[-1] > lengths[-2]
    column = 3 if growth.what == "graph" else 1
    return steady([(row[0], row[column]) for row in watch.summaries]) > 0


def steady(points):
    """Growth per iteration that goes on to the end, else 0."""
    if len(points) < 3 or points[-1][1] <= points[0][1]:
        return 0.0
    rate = (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])
    middle = min(points[1:-1], key=lambda point: abs(point[0] - (points[0][0] + points[-1][0]) / 2))
    late = (points[-1][1] - middle[1]) / (points[-1][0] - middle[0])
    return rate if late >= 0.4 * rate and points[-1][1] > points[-2][1] else 0.0


def _cause_of(growth):
    holder, contents = growth.holder, growth.contents
    if (holder.traceback or contents.exceptions) and contents.tensors:
        return "traceback_retained"
    if holder.owner_kind == "module":
        return "module_state_grows"
    if holder.owner_kind == "dataset":
        return "loader_grows"
    if contents.with_graph:
        return "graph_retained"
    return "tensors_retained" if contents.tensors else "python_objects_grow"


def _retained_title(growth):
    if growth.what == "graph":
        return (f"the graph behind {growth.holder.expression} grows by {growth.per_iteration:.1f} nodes, "
                f"{size(growth.bytes_per_iteration)} per iteration")
    what = f"{growth.holder.expression} ({growth.what}) gains {growth.per_iteration:.2g} per iteration"
    if growth.limit is not None:
        return f"{what}; it is bounded at {growth.limit}"
    return f"{what}, {size(growth.bytes_per_iteration)} each iteration"


def _retained_evidence(growth):
    contents = growth.contents
    lines = [f"held by {growth.holder}"]
    if growth.identity:
        lines.append(f"it had {growth.length - growth.added} entries, now {growth.length}, after {growth.iterations} "
                     "more iterations")
    elif growth.what != "graph":
        lines.append(f"{growth.added} more {growth.what} alive after {growth.iterations} more iterations")
    if contents.with_graph:
        lines.append(f"of the newest: tensors {_data(contents.tensor_bytes)}, their graphs {_data(contents.graph_bytes)} "
                     f"in {contents.graph_nodes} nodes")
        lines.append("what is kept keeps its graph: detach() gives a tensor without it, and inference_mode() makes none")
    elif contents.tensors:
        lines.append(f"of the newest {contents.items}: {contents.tensors} tensors, {_data(contents.tensor_bytes)}")
    if contents.exceptions:
        names = ", ".join(contents.exceptions)
        lines.append(f"exceptions kept with their tracebacks: {names}; each frame keeps its local variables")
    if not contents.tensors and contents.types:
        lines.append("entries: " + ", ".join(name for name, _ in contents.types.most_common(3)))
    return lines


def _data(count):
    """Of something that grows: it is never "0 B", if only because of what describes the data."""
    return size(count) if count else "no data of their own"


def _retained_places(growth, cause):
    places = growth.holder.lines_that_fill()[:3]
    if growth.what == "graph":
        return [place.writing(_item(place.code)) for place in places]
    if cause == "graph_retained":
        return [place.writing(_detached(place.code)) for place in places]
    return [place.writing(f"# {ADVICE[cause]}") for place in places]


def _item(code):
    """`total += loss` -> `total += loss.item()`."""
    return f"{code}.item()" if "=" in code and not code.endswith((")", "]")) else f"{_detached(code)}"


def _detached(code):
    """`outs.append(y)` -> `outs.append(y.detach())`, where the line has a form that allows it."""
    if code.endswith("))"):
        return f"{code[:-1]}.detach())"
    if code.endswith(")") and "(" in code and not code.endswith("()"):
        return f"{code[:-1]}.detach())"
    if "=" in code and code[-1].isidentifier():
        return f"{code}.detach()"
    return f"# {ADVICE['graph_retained']}"
