"""plimsoll.torch_doctor: every cause has a loop that has it and a twin that does not."""
import gc
import json
import pathlib
import re
import subprocess
import sys

import pytest

from torch_examination import examine, found, line_of, patients, torch, torch_doctor
from plimsoll.torch_doctor import causes, process, retention, series

ROOT = pathlib.Path(__file__).resolve().parents[2]

GROWING = [
    # patient, its cause, how the doctor names what holds it, the line to change, bytes per iteration
    (patients.graph_in_list, "graph_retained", "outputs", "outputs.append(model(X))",
     32 * 16 * 4 + patients.HIDDEN_BYTES),
    (patients.graph_in_attribute, "graph_retained", "service.history", "self.history[request] = output",
     32 * 16 * 4 + patients.HIDDEN_BYTES),
    (patients.graph_in_global, "graph_retained", "KEPT", "KEPT.append(y)", 32 * 16 * 4 + patients.HIDDEN_BYTES),
    (patients.graph_in_sum, "graph_retained", "total", "total = total + model(X).sum()", patients.HIDDEN_BYTES),
    (patients.tracebacks_kept, "traceback_retained", "errors", "errors.append(error)", 32 * 64 * 4 + 32 * 16 * 4),
    (patients.outputs_kept, "tensors_retained", "results", "results.append(model(X))", 32 * 16 * 4),
    (patients.module_remembers, "module_state_grows", "net.body.seen", "self.seen.append(y)", 32 * 16 * 4),
    (patients.loader_grows, "loader_grows", "dataset.cache",
     'self.cache[index] = item + 1, b"x" * self.ballast_bytes', 4 * 64 * 4),
    (patients.objects_pile_up, "python_objects_grow", "log", None, 4000),
]


@pytest.mark.parametrize("patient, cause, holder, line, least_bytes", GROWING, ids=[row[0].__name__ for row in GROWING])
def test_growth_is_found_with_its_holder_and_its_line(patient, cause, holder, line, least_bytes):
    report = examine(patient)
    assert report.verdict == "leak" and [finding.cause for finding in report.growing] == [cause], str(report)
    finding = report.growing[0]
    assert finding.title.startswith((holder, f"the graph behind {holder}")), finding.title
    assert line is None or line_of(finding) == line
    assert least_bytes * 0.9 < finding.bytes_per_iteration < least_bytes * 1.5 + 2000
    # The process as measured from outside agrees with what was counted inside.
    assert report.growth["low"] <= report.growth["bytes_per_iteration"] <= report.growth["high"]
    assert abs(report.growth["bytes_per_iteration"] - finding.bytes_per_iteration) < 0.3 * least_bytes + 2500


TWINS = [patients.no_graph, patients.frozen, patients.detached_in_bounded, patients.number_in_sum, patients.texts_kept,
         patients.cache_reaches_bound, patients.eval_mode, patients.mode_without_effect, patients.statistics_stand,
         patients.module_forgets, patients.hooks_removed, patients.loader_views, patients.native_balanced,
         patients.latencies, patients.no_cycles, patients.trained]
ALLOWED = {patients.detached_in_bounded: {"graph_recorded"}, patients.number_in_sum: {"graph_recorded"}}


@pytest.mark.parametrize("patient", TWINS, ids=[twin.__name__ for twin in TWINS])
def test_no_false_alarm(patient):
    report = examine(patient, n=20)
    assert report.verdict == "flat" and not report.growing, str(report)
    warnings = {finding.cause for finding in report.findings if finding.severity != "note"}
    assert warnings <= ALLOWED.get(patient, set()), str(report)
    assert abs(report.growth["heap_live_bytes_per_iteration"]) < 2000
    assert abs(report.growth["bytes_per_iteration"]) < 40_000  # free pages of the heap that are touched again


def test_a_recorded_graph_that_nobody_keeps_is_a_cost_and_not_growth():
    report = examine(patients.graph_dropped)
    finding = report.find("graph_recorded")
    assert finding.severity == "warning" and not report.growing and report.verdict == "flat"
    # The first Linear saves its input, ReLU its result, which the second Linear saves too.
    assert finding.bytes == 32 * 64 * 4 + patients.HIDDEN_BYTES
    assert line_of(finding) == "output = model(X)"
    assert "inference_mode" in finding.places[1].write and finding.places[1].code.startswith("for ")
    assert abs(report.growth["bytes_per_iteration"]) < 1000


@pytest.mark.parametrize("patient", [patients.views_of_weights_in_list, patients.graph_in_list, patients.hooks_pile_up])
def test_what_grows_is_never_0_bytes(patient):
    report = examine(patient)
    assert report.growing, str(report)
    for finding in report.growing:
        assert finding.bytes_per_iteration > 0 and " 0 B" not in finding.to_text(), finding.to_text()


def test_lists_of_outputs_with_graphs_are_told_of_detach():
    finding = examine(patients.graph_in_list).find("graph_retained")
    assert any("detach()" in line for line in finding.evidence), finding.to_text()


def test_what_a_graph_takes_besides_its_data_is_no_riddle():
    outputs, model = [], torch.nn.Linear(16, 16)
    with torch_doctor.watch(experiments=False) as report:
        for _ in range(400):
            outputs.append(model(torch.zeros(1, 16)))
    assert report.verdict == "leak" and report.findings[0].cause == "graph_retained"
    assert "unexplained_growth" not in found(report), str(report)


def test_larger_inputs_are_no_leak():
    report = examine(patients.bigger_and_bigger, n=20)
    assert report.verdict == "flat" and report.growth["heap_live_bytes_per_iteration"] > 4000, str(report)


def test_training_mode():
    finding = examine(patients.training_mode).find("training_mode")
    assert "Dropout" in finding.evidence[0] and "Dropping" in finding.evidence[0]
    assert line_of(finding) == "model(X)" and finding.places[0].write.startswith("model.eval()")


def test_running_statistics():
    finding = examine(patients.statistics_change).find("running_statistics_change")
    assert "1.running_mean" in finding.evidence[0] and not finding.growing
    assert "0 B more" in finding.evidence[1]


def test_hooks():
    report = examine(patients.hooks_pile_up)
    finding = report.find("hooks_accumulate")
    assert finding.growing and "0._forward_hooks" in finding.evidence[0]
    assert line_of(finding) == "handle = model[0].register_forward_hook(note)"
    assert finding.bytes_per_iteration > 32 * 64 * 4  # each keeps a tensor of this size as a default


def test_global_and_tensor_hooks():
    model, handles = patients.linear(), []
    with torch_doctor.watch() as report:
        for _ in range(12):
            handles.append(torch.nn.modules.module.register_module_forward_hook(lambda *arguments: None))
            handles.append(model[0].weight.register_hook(lambda gradient: None))
            model(patients.X)
    for handle in handles:
        handle.remove()
    text = "\n".join(report.find("hooks_accumulate").evidence)
    assert "_global_forward_hooks" in text and "0.weight (tensor hook)" in text


def test_loader_copies():
    finding = examine(patients.loader_converts).find("loader_copies")
    assert finding.severity == "note" and finding.bytes == 4 * 64 * 4
    assert line_of(finding).endswith("item.float()") and "held as float64, returned as float32" in finding.evidence


def test_workers():
    report = examine(patients.workers_grow, n=16)
    finding = report.find("loader_workers_grow")
    assert finding.growing and finding.bytes_per_iteration > 4 * 300_000 * 0.6, str(report)
    report = examine(patients.workers_stand, n=16)
    assert not report.growing and report.find("loader_workers").bytes > 0


def test_native_memory_is_told_from_python():
    finding = examine(patients.native_leak).find("unexplained_growth")
    assert finding.growing and 45_000 < finding.bytes_per_iteration < 56_000


def test_mappings_beside_malloc_are_seen():
    report = examine(patients.mapping_leak)
    finding = report.find("unexplained_growth")
    assert finding.growing and 0.9 < finding.bytes_per_iteration / (1 << 20) < 1.1, str(report)


def test_what_the_first_call_took_is_no_growth():
    report = examine(patients.native_once)
    assert report.verdict == "flat"
    assert 24 << 20 <= report.find("baseline").bytes < 27 << 20
    assert examine(patients.native_balanced).find("baseline") is None


def test_kernels_that_onednn_makes_are_baseline():
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch without oneDNN")
    model, x = torch.nn.Conv2d(16, 48, 5).eval(), torch.randn(1, 16, 23, 29)  # a shape that no other test has
    with torch.inference_mode():
        first, again = (torch_doctor.check(model, x, 8, experiments=False) for _ in range(2))
    assert first.baseline["generated_code_bytes"] > 0 and first.verdict == "flat"
    assert again.baseline["generated_code_bytes"] == 0


def test_a_new_shape_in_every_call_fills_onednns_caches():
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch without oneDNN")
    report = examine(patients.new_shapes, n=24)
    finding = report.find("kernels_per_shape")
    assert report.verdict == "warming up" and not report.growing, str(report)
    assert 10_000 < finding.bytes_per_iteration < 200_000 and line_of(finding) == "model(x)"
    assert examine(patients.same_shapes, n=24).verdict == "flat"


def test_what_the_allocator_holds():
    report = examine(patients.heap_kept)
    assert 20 << 20 < report.find("allocator_retention").bytes < 40 << 20
    assert not report.growing
    process.trim()
    assert examine(patients.native_balanced).find("allocator_retention") is None


def test_cycles():
    gc.collect()
    gc.disable()  # or it may come before the doctor looks
    try:
        report = examine(patients.cycles)
    finally:
        gc.enable()
    assert [finding.cause for finding in report.growing] == ["reference_cycles"], str(report)
    assert report.growing[0].bytes == 14 * 400_000
    gc.collect()
    report = examine(patients.cycles)  # the collector is on, and may have come in time
    assert report.verdict != "leak" and found(report) <= {"reference_cycles", "baseline", "allocator_retention"}


def test_too_few_iterations_are_no_verdict():
    report = examine(patients.no_graph, n=3)
    assert report.verdict == "undecided" and "8 needed" in report.notes[0]
    assert examine(lambda n: None).iterations == 0


# --- check() and steps -----------------------------------------------------------------------------------------------

def test_check_takes_inputs_as_callers_have_them():
    model = patients.linear()
    for inputs in (patients.X, (patients.X,), {"input": patients.X}, lambda: patients.X):
        report = torch_doctor.check(model, inputs, iterations=3, experiments=False)
        assert report.iterations == 3 and report.find("graph_recorded")


def test_a_healthy_model_has_no_finding():
    """In a fresh interpreter: what malloc holds of earlier tests would be a finding of its own."""
    code = ("import torch\n"
            "from plimsoll import torch_doctor\n"
            "from plimsoll.torch_doctor import process\n"
            "model, x = torch.nn.Linear(10, 5).eval(), torch.randn(4, 10)\n"
            "process.trim()  # what importing torch left in malloc\n"
            "with torch.no_grad():\n"
            "    report = torch_doctor.check(model, x, iterations=12)\n"
            "assert report.verdict == 'flat' and not report.findings and 'No finding.' in str(report), str(report)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_list_is_one_argument():
    seen = []
    torch_doctor.check(seen.append, [patients.X, patients.X], iterations=1, experiments=False)
    assert len(seen) == 1 and len(seen[0]) == 2


def test_check_refuses_what_it_cannot_call():
    with pytest.raises(TypeError, match="model: a Module or a callable expected, int found"):
        torch_doctor.check(3, patients.X)
    with pytest.raises(ValueError, match="iterations: at least 1 expected, 0 found"):
        torch_doctor.check(patients.linear(), patients.X, iterations=0)


def test_steps_count_instead_of_calls():
    model = patients.linear()
    with torch.no_grad(), torch_doctor.watch(experiments=False) as report:
        for _ in range(9):
            report.step()
            for _ in range(3):
                model(patients.X)
    assert report.iterations == 9 and report.iteration_is == "one step() of yours"


def test_growth_beyond_a_function_call():
    kept = []
    with torch.no_grad():
        report = torch_doctor.check(lambda x: kept.append(x + 1), patients.X, iterations=12)
    assert report.growing[0].cause == "tensors_retained" and "kept" in report.growing[0].title


# --- figures ---------------------------------------------------------------------------------------------------------

def test_slope_is_robust():
    points = [(n, 100 * n + (1_000_000 if n % 7 == 0 else 0)) for n in range(50)]
    slope = series.theil_sen(points)
    assert 90 < slope.value < 110 and slope.low <= 100 <= slope.high
    assert series.theil_sen(points[:3]) is None
    step = series.theil_sen([(n, 0 if n < 20 else 1 << 20) for n in range(50)])
    assert step.low <= 0


def test_series_stays_small():
    kept = series.Series(("value",), limit=16)
    for n in range(1000):
        kept.add(n, value=n)
    points = kept.points("value")
    assert 8 <= len(points) <= 16 and all(n == value for n, value in points) and points[-1][0] > 900


def test_a_plateau_is_not_steady():
    assert retention.steady([(2, 0), (10, 80), (20, 180)]) == 10
    assert retention.steady([(2, 0), (10, 80), (15, 80), (20, 80)]) == 0
    assert retention.steady([(2, 5), (20, 3), (30, 4)]) == 0


def test_report_as_json():
    report = examine(patients.graph_in_list)
    data = json.loads(report.to_json())
    assert data["verdict"] == "leak" and data["cause"] == "graph_retained"
    assert data["findings"][0]["lines"][0]["code"] == "outputs.append(model(X))"
    assert data["overhead"]["seconds"] > 0 and data["iterations"] == 14


def test_every_cause_is_documented():
    text = (ROOT / "docs" / "torch-doctor.md").read_text()
    source = pathlib.Path(causes.__file__).read_text()
    named = set(re.findall(r"Finding\(\s*\"(\w+)\"", source)) | set(retention.ADVICE)
    assert len(named) == 18 and not [cause for cause in named if f"`{cause}`" not in text]
