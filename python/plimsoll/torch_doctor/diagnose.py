"""From what was seen to findings. Runs after the loop; reads the caller's source, never the caller's objects."""
import gc

from . import causes, tensors
from .report import size
from .series import theil_sen

LEAST_ITERATIONS = 8


def fill(report, watch):
    report.finished = True
    report.iterations = watch.iteration
    report.iteration_is = _what_an_iteration_is(watch)
    torch = tensors.torch()
    report.torch_version = torch.__version__ if torch else None
    report.growth = _growth(watch)
    report.baseline = _baseline(watch)
    report.allocator = _allocator(watch)
    report.measured = _measured(watch)
    report.findings = causes.all_findings(report, watch)
    report.verdict = _verdict(report, watch)
    report.overhead = {"seconds": watch.overhead_seconds, "wall_seconds": watch.wall_seconds,
                       "bytes": max(watch.own.anonymous_bytes, 0)}
    if watch.hooks_used:
        report.notes.append("saved-tensor hooks are in use: saved tensors were not unpacked, their bytes not counted")
    frozen = gc.get_freeze_count()
    if frozen:
        report.notes.append(f"gc.freeze() hides {frozen} objects: containers among them that grow are not named")
    if watch.last is not None and watch.last.truncated:
        report.notes.append("the graph has more nodes than are walked: its bytes are a lower bound")


def _verdict(report, watch):
    if report.growing:
        return "leak"
    if watch.iteration < LEAST_ITERATIONS:
        report.notes.append(f"{watch.iteration} iterations seen, {LEAST_ITERATIONS} needed to tell growth from warm-up")
        return "undecided"
    bounded = [finding for finding in report.findings if finding.severity == "warning" and finding.bytes_per_iteration]
    return "warming up" if bounded and report.growth.get("low", 0) > 0 else "flat"


def _what_an_iteration_is(watch):
    if watch.steps_given:
        return watch.step_name
    root = max(watch.roots.values(), key=lambda root: root.calls, default=None)
    return f"a call of {root.type_name} at {root.place}" if root else ""


def _growth(watch):
    slope = _slope_in_use(watch)
    if slope is None or watch.last_reading is None or watch.last is watch.reference:
        return {}
    first, last = watch.reference, watch.last
    window = last.iteration - first.iteration
    total = round(slope.value * window)
    untracked = sum(growth.per_iteration * growth.contents.python_bytes / max(growth.contents.items, 1) * window
                    for growth in watch.growths)
    explained = {"tensors": last.all_tensor_bytes - first.all_tensor_bytes,
                 "python_objects": int(last.python_bytes - first.python_bytes + untracked)}
    explained["structures"] = _structures(first, last, total - sum(explained.values()))
    anonymous = theil_sen(watch.readings.points("anonymous", first=2))
    return {**slope.to_dict(), "window": [first.iteration, last.iteration], "total_bytes": total,
            "explained": explained, "unexplained_bytes": total - sum(explained.values()),
            "heap_live_bytes_per_iteration": theil_sen(watch.readings.points("heap_live", first=2)).value,
            "beside_malloc_bytes": watch.last_reading.beside_malloc_bytes - watch.reference_reading.beside_malloc_bytes,
            "anonymous_bytes_per_iteration": anonymous.value,
            "anonymous_bytes": watch.last_reading.anonymous_bytes - watch.reference_reading.anonymous_bytes,
            "free_in_malloc_bytes": watch.last_reading.heap_free_bytes - watch.reference_reading.heap_free_bytes}


def _structures(first, last, rest):
    """What tensors and autograd's nodes take besides their data, estimated: torch 1.13 takes 390 bytes for a tensor and
    800 to 1,100 for a node with the variables that it saves. Never more than is left to explain."""
    estimate = 400 * (last.tensor_count - first.tensor_count) + 1000 * (last.graph_nodes - first.graph_nodes)
    return max(min(estimate, rest), 0)


def _slope_in_use(watch):
    """The lesser of two upper bounds; see Reading."""
    pages, mapped = (theil_sen(watch.readings.points(name, first=2)) for name in ("in_use", "mapped_in_use"))
    return mapped if mapped is None or pages.value < 0 or mapped.value < pages.value else pages


def _baseline(watch):
    if watch.reference_reading is None:
        return {}
    before, after = watch.first_reading, watch.reference_reading
    kept = watch.reference.all_tensor_bytes - watch.first_tensor_bytes
    return {"bytes": max(after.anonymous_bytes - before.anonymous_bytes - kept, 0),
            "generated_code_bytes": watch.baseline_code_bytes,
            "heap_live_bytes": after.heap_live_bytes - before.heap_live_bytes,
            "heap_free_bytes": after.heap_free_bytes - before.heap_free_bytes,
            "resident_bytes": after.resident_bytes - before.resident_bytes,
            "threads_before": before.threads, "threads_after": after.threads}


def _allocator(watch):
    done = watch.experiments
    if not done or done["trimmed"] is None:
        return {}
    return {"free_bytes": done["collected"].heap_free_bytes, "live_bytes": done["collected"].heap_live_bytes,
            "free_after_trim_bytes": done["trimmed"].heap_free_bytes,
            "returned_bytes": done["collected"].anonymous_bytes - done["trimmed"].anonymous_bytes,
            "collected_bytes": done["before"].anonymous_bytes - done["collected"].anonymous_bytes}


def _measured(watch):
    if watch.last is None or watch.last_reading is None:
        return {}
    last, reading = watch.last, watch.last_reading
    return {"resident_bytes": reading.resident_bytes, "anonymous_bytes": reading.anonymous_bytes,
            "live_tensors": last.tensor_count, "tensor_bytes": last.tensor_bytes,
            "graph_only_bytes": last.graph_bytes, "graph_nodes": last.graph_nodes}


def without_torch(report, seconds, before, after):
    """A script that never imported torch: the process's own figures are all there is."""
    report.finished, report.verdict = True, "undecided"
    report.notes.append("torch was never imported: nothing of torch to examine "
                        f"(anonymous memory {size(before.anonymous_bytes)} before, {size(after.anonymous_bytes)} "
                        "after)")
    report.overhead = {"seconds": 0.0, "wall_seconds": seconds, "bytes": 0}

