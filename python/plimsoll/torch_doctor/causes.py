"""One function per cause. Each returns findings: what, how many bytes, the evidence, the line to change."""
import gc

from . import modules, source
from .retention import retained, steady
from .report import Finding, size
from .series import theil_sen

_HOOK_BYTES = 200             # an entry of its table and a function, where nothing else of a hook was seen to grow
_NOTICE_BYTES = 1 << 20       # smaller one-off amounts are measured, not reported as findings
_REGISTER = ("register_hook", "register_forward_hook", "register_forward_pre_hook", "register_backward_hook",
             "register_full_backward_hook", "register_module_forward_hook", "register_module_forward_pre_hook")


def all_findings(report, watch):
    found = retained(watch) + hooks(watch) + graph_recorded(watch) + training_mode(watch) + running_statistics(watch)
    found += loader_copies(watch) + loader_workers(watch) + cycles(watch)
    found += allocator(report, watch) + kernels_per_shape(report, watch)
    found += unexplained(report, watch, found)
    found += baseline(report)
    order = {"growing": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda finding: (order[finding.severity], -finding.bytes_per_iteration, -finding.bytes))


# --- modules ------------------------------------------------------------------------------------------------------

def graph_recorded(watch):
    found = []
    for root in watch.roots.values():
        if not root.recorded or root.saved is None:
            continue
        saved = root.saved
        total = sum(saved[f"{kind}_bytes"] for kind in ("intermediate", "input", "output"))
        trained = _is_trained(root)
        evidence = [f"{root.recorded} of {root.calls} calls returned a tensor with a graph ({saved['root']}, "
                    f"{saved['nodes']} nodes)",
                    f"saved for backward each call: intermediates {size(saved['intermediate_bytes'])}, inputs "
                    f"{size(saved['input_bytes'])}, outputs {size(saved['output_bytes'])}"]
        if not saved["unpacked"]:
            evidence[1] = "bytes not counted: saved-tensor hooks are in use"
        evidence.append("parameters change or have gradients: if this loop trains, the graph is meant" if trained else
                        "it lives as long as the output does; by itself it does not grow from iteration to iteration")
        found.append(Finding("graph_recorded", "note" if trained else "warning",
                             f"autograd records the calls of {root.type_name}: {size(total)} saved per call",
                             total_bytes=total, evidence=evidence, places=_places_for_no_grad(root)))
    return found


def _is_trained(root):
    return root.first_state is not None and modules.is_trained(root.first_state, root.last_state)


def _places_for_no_grad(root):
    place = root.place
    loop = source.enclosing_loop(place.file, place.line)
    if loop is not None:
        return [place, loop.writing("with torch.inference_mode():  # before the loop, the loop inside it")]
    return [place.writing(f"with torch.inference_mode(): {place.code}")]


def _distinct_modules(watch):
    """One RootCall for each module, though several lines may call it."""
    roots = {}
    for root in sorted(watch.roots.values(), key=lambda root: -root.calls):
        module = root.module() if root.module is not None else None
        roots.setdefault(id(module) if module is not None else id(root), root)
    return roots.values()


def training_mode(watch):
    found = []
    for root in _distinct_modules(watch):
        if root.last_state is None or not root.last_state.training:
            continue
        names = [f"{name or root.variable} ({kind})" for name, kind in root.last_state.training]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        trained = _is_trained(root)
        found.append(Finding("training_mode", "note" if trained else "warning",
                             f"eval() forgotten: {len(names)} modules of {root.type_name} behave as in training",
                             evidence=[f"in training mode: {shown}"],
                             places=[root.place.writing(f"{root.variable}.eval()  # once, before this line")]))
    return found


def running_statistics(watch):
    found = []
    for root in _distinct_modules(watch):
        first, last = root.first_state, root.last_state
        if first is None or first is last:
            continue
        changed = modules.changed_buffers(first, last)
        if not changed:
            continue
        trained = modules.is_trained(first, last)
        found.append(Finding(
            "running_statistics_change", "note" if trained else "warning",
            f"{len(changed)} buffers of {root.type_name} change from call to call",
            evidence=[f"between call {first_call(root)} and call {root.last_state_call + 1}: "
                      f"{', '.join(changed[:4])}{' ...' if len(changed) > 4 else ''}",
                      f"buffers take {size(last.buffer_bytes)}, {size(last.buffer_bytes - first.buffer_bytes)} more "
                      "than then: results depend on what came before, memory does not"],
            places=[root.place.writing(f"{root.variable}.eval()  # once, before this line")]))
    return found


def first_call(root):
    return root.first_state_call + 1


def hooks(watch):
    found = []
    for root in _distinct_modules(watch):
        first, last = root.first_state, root.last_state
        if first is None or first is last:
            continue
        calls = max(root.last_state_call - root.first_state_call, 1)
        rows = [(key, more) for key, more in modules.grown_hooks(first, last) if more >= max(2, calls / 4)]
        if not rows:
            continue
        held = [growth for growth in watch.growths if growth.holder.owner_kind == "hook"]
        total = sum(more for _, more in rows)
        rate = sum(growth.bytes_per_iteration for growth in held) or total / calls * _HOOK_BYTES
        evidence = [f"{name or root.variable}{_as_attribute(kind)}: {more} more after {calls} more calls, "
                    f"now {last.hooks[name, kind]}" for (name, kind), more in rows[:4]]
        kept = [growth.contents.tensor_bytes + growth.contents.graph_bytes for growth in held if growth.contents.tensors]
        if any(kept):
            evidence.append("the hooks keep tensors: " + ", ".join(size(count) for count in kept[:3] if count))
        found.append(Finding("hooks_accumulate", "growing",
                             f"hooks of {root.type_name} pile up: {total / calls:.2g} more per call, and all run",
                             total_bytes=rate * calls, bytes_per_iteration=rate, evidence=evidence,
                             places=_hook_places(last, rows)))
    return found


def _as_attribute(kind):
    return f".{kind}" if kind.startswith("_") else f" ({kind})"


def _hook_places(state, rows):
    places = []
    for key, _ in rows[:2]:
        defined = state.newest_hooks.get(key)
        if defined is None:
            continue
        calls = source.places_that_call(defined.file, _REGISTER)
        for place in calls or [defined]:
            if (place.file, place.line) not in {(other.file, other.line) for other in places}:
                places.append(place.writing(f"handle = {place.code.split('= ', 1)[-1]}  # once; or handle.remove() "
                                            "after the call"))
    return places[:3]


# --- data ---------------------------------------------------------------------------------------------------------

def loader_copies(watch):
    found = []
    for notes in watch.loaders.values():
        if not notes.looked_at or not notes.copied_bytes:
            continue
        copied, batch = (value // notes.looked_at for value in (notes.copied_bytes, notes.batch_bytes))
        evidence = [f"{notes.looked_at} of {notes.batches_seen} batches looked at: items {size(copied)} are no views "
                    f"of what the dataset holds, the batch made of them {size(batch)}",
                    "both are freed with the batch: this costs time and peak, not growth"]
        evidence += [f"held as {old}, returned as {new}" for old, new in sorted(notes.converted)]
        places = [place.writing("# convert once, in __init__; return views here") for place in notes.places[:3]]
        found.append(Finding("loader_copies", "note", f"{notes.dataset} copies every item: {size(copied)} per batch",
                             total_bytes=copied, evidence=evidence, places=places))
    return found


def loader_workers(watch):
    if not watch.workers:
        return []
    points = [(iteration, sum(private.values())) for iteration, private in watch.workers]
    same = [(iteration, sum(private.values())) for iteration, private in watch.workers
            if set(private) == set(watch.workers[-1][1]) and iteration >= 2]
    rate = steady(same) if same and same[-1][1] - same[0][1] > 4 * _NOTICE_BYTES else 0.0
    total, count = points[-1][1], len(watch.workers[-1][1])
    evidence = [f"{count} worker processes, private memory {size(points[0][1])} at iteration {points[0][0]}, "
                f"{size(total)} at iteration {points[-1][0]}"]
    if rate:
        evidence.append("the dataset's state grows in each worker, where this process cannot see its objects")
        return [Finding("loader_workers_grow", "growing", f"the loader's workers grow by {size(rate)} per iteration",
                        total_bytes=total, bytes_per_iteration=rate, evidence=evidence)]
    return [Finding("loader_workers", "note", f"the loader's {count} workers hold {size(total)} of their own",
                    total_bytes=total, evidence=evidence)]


# --- the process --------------------------------------------------------------------------------------------------

def cycles(watch):
    done = watch.experiments
    if not done or done["cycle_bytes"] < _NOTICE_BYTES and done["cycle_tensors"] < 8:
        return []
    enabled = gc.isenabled()
    return [Finding("reference_cycles", "warning" if enabled else "growing",
                    f"{done['cycle_tensors']} tensors, {size(done['cycle_bytes'])}, waited for the collector",
                    total_bytes=done["cycle_bytes"], bytes_per_iteration=done["cycle_bytes"] / max(watch.iteration, 1),
                    evidence=["gc.collect() at the end freed them: objects that refer to each other keep tensors until "
                              "the collector happens to run" if enabled else
                              "gc.collect() at the end freed them: they form cycles, and the collector is disabled"])]


def allocator(report, watch):
    figures = report.allocator
    if not figures or figures["returned_bytes"] < 4 * _NOTICE_BYTES:
        return []
    return [Finding("allocator_retention", "note",
                    f"malloc kept {size(figures['returned_bytes'])} that nothing used",
                    total_bytes=figures["returned_bytes"],
                    evidence=[f"malloc_trim(0) gave them back, of {size(figures['free_bytes'])} that malloc calls free",
                              "it is used again by later calls; it is no leak"])]


def baseline(report):
    taken = report.baseline.get("bytes", 0)
    if taken < _NOTICE_BYTES:
        return []
    figures = report.baseline
    return [Finding("baseline", "note", f"the first two iterations took {size(taken)} once",
                    total_bytes=taken,
                    evidence=["anonymous memory, without tensors that live on; later iterations did not take it again",
                              f"generated code (oneDNN's kernels) {size(figures['generated_code_bytes'])}, threads "
                              f"{figures['threads_before']} -> {figures['threads_after']}, live in malloc "
                              f"{size(figures['heap_live_bytes'])}, free {size(figures['heap_free_bytes'])}"])]


def kernels_per_shape(report, watch):
    """oneDNN and torch's wrapper of it keep a kernel for every shape they have seen, up to 1,024 each."""
    rate = steady([(row[0], row[5]) for row in watch.summaries])
    growth = report.growth
    if not rate or not growth or growth["low"] <= 0:
        return []
    window = growth["window"][1] - growth["window"][0]
    taken = max(growth["bytes_per_iteration"] - sum(growth["explained"].values()) / window, 0)
    root = max(watch.roots.values(), key=lambda root: root.calls)
    return [Finding("kernels_per_shape", "warning",
                    f"oneDNN makes kernels in iteration after iteration: {size(taken)} each, until its caches are full",
                    total_bytes=taken * window, bytes_per_iteration=taken,
                    evidence=[f"executable mappings that belong to no file rise by {size(rate)} (reserved) per "
                              "iteration: the inputs' shapes keep changing",
                              "the caches are bounded, 1,024 kernels by default; ONEDNN_PRIMITIVE_CACHE_CAPACITY and "
                              "LRU_CACHE_CAPACITY (environment, before import torch) make them smaller"],
                    places=[root.place.writing("# pad the inputs to a few shapes")])]


def unexplained(report, watch, found):
    """Resident growth, or live heap growth, that no finding accounts for: native code, most likely."""
    growth = report.growth
    if not growth or watch.iteration < 8:
        return []
    # Findings that grow account for their bytes even where the census could not see them.
    window = growth["window"][1] - growth["window"][0]
    structures = growth["explained"]["structures"]
    claimed = sum(finding.bytes_per_iteration for finding in found) * window + structures
    rest = growth["total_bytes"] - max(sum(growth["explained"].values()), claimed)
    # Free parts of the heap that are touched again look like growth to the kernel; new mappings are.
    rest = min(rest, growth["beside_malloc_bytes"])
    by_pages = growth["low"] > 0 and rest > max(2 * _NOTICE_BYTES, 0.3 * growth["total_bytes"])
    slope = theil_sen(watch.readings.points("heap_live", first=2))
    live_total = (slope.value if slope else 0) * window
    live_rest = live_total - max(growth["explained"]["tensors"] + structures, claimed)
    by_heap = slope is not None and slope.low > 0 and live_rest > max(_NOTICE_BYTES / 4, 0.3 * live_total)
    if not by_pages and not by_heap:
        return []
    rate = max(rest / window if by_pages else 0, live_rest / window if by_heap else 0)
    evidence = [f"memory in use rose by {size(growth['total_bytes'])} in {window} iterations; tensors and Python "
                f"objects account for {size(growth['explained']['tensors'] + growth['explained']['python_objects'])}"]
    if slope is not None:
        evidence.append(f"malloc's live bytes rise by {size(slope.value)} per iteration "
                        f"[{size(slope.low)}, {size(slope.high)}]")
    return [Finding("unexplained_growth", "growing", f"{size(rate)} per iteration that no Python object accounts for",
                    total_bytes=rate * window, bytes_per_iteration=rate, evidence=evidence)]
