"""Budgets, plans and memory given back."""
import re

import models
import numpy as np
import pytest

import plimsoll as ort

X = np.ones((64, 256), np.float32)


def rss():
    with open("/proc/self/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) << 10


def limited(limit, **options):
    settings = ort.SessionOptions()
    settings.memory_limit_bytes = limit
    for name, value in options.items():
        setattr(settings, name, value)
    return settings


def test_the_plan_tells_the_peak_that_the_run_has():
    session = ort.InferenceSession(models.chain(), limited(0, max_concurrent_runs=1))
    plan = session.plan({"x": [64, 256]})
    assert plan.concrete and plan.peak_bytes == sum(plan.accounts.values()) > plan.accounts["planned"] > 0
    assert plan.lower_bound_bytes <= plan.peak_bytes
    assert plan.node_at_peak and "batch" in plan.formula
    assert {buffer.node for buffer in plan.buffers} <= set(plan.steps) | {buffer.node for buffer in plan.buffers}
    session.run(None, {"x": X})
    stats = session.memory_stats()
    assert stats["accounts"]["planned"]["peak_bytes"] == plan.accounts["planned"]
    assert stats["now_bytes"] <= stats["peak_bytes"]


def test_a_plan_takes_arrays_for_shapes_and_refuses_nonsense():
    session = ort.InferenceSession(models.chain())
    assert session.plan({"x": X}).peak_bytes == session.plan({"x": (64, 256)}).peak_bytes
    for shapes in ({"z": [1]}, {"x": "64"}, {"x": 64}, {"x": [64]}, {"x": [-1, 256]}):
        with pytest.raises(ort.InvalidArgument):
            session.plan(shapes)


def test_without_shapes_there_is_a_formula(tmp_path):
    file = tmp_path / "chain.onnx"
    file.write_bytes(models.chain())
    for source in (file, models.chain()):
        plan = ort.InferenceSession(source).plan()
        assert not plan.concrete and "batch" in plan.formula and plan.symbols == ["batch"]
    assert "batch" in repr(plan) and "batch" in plan._repr_html_()


def test_a_plan_is_a_picture():
    plan = ort.InferenceSession(models.chain()).plan({"x": [64, 256]})
    picture = plan._repr_svg_()
    assert picture.startswith("<svg") and picture.count('<rect class="b"') == len(plan.buffers)
    page = plan._repr_html_()
    assert f"{plan.peak_bytes:,}" in page and "<svg" in page


def test_concurrent_runs_cost_what_the_plan_says():
    one, three = (ort.InferenceSession(models.chain(), limited(0, max_concurrent_runs=runs)).plan({"x": [64, 256]})
                  for runs in (1, 3))
    assert three.accounts["planned"] == 3 * one.accounts["planned"]
    assert "3 runs at once" in repr(three)


def test_the_limit_is_held_to_the_byte():
    least = ort.InferenceSession(models.chain(), limited("1GiB")).plan({"x": [64, 256]}).minimum_limit_bytes
    session = ort.InferenceSession(models.chain(), limited(least))
    session.run(None, {"x": X})
    assert session.memory_stats()["peak_bytes"] <= least == session.memory_stats()["limit_bytes"]
    with pytest.raises(MemoryError, match=r"smallest|needs|limit") as caught:
        ort.InferenceSession(models.chain(), limited(least - 1)).run(None, {"x": X})
    assert isinstance(caught.value, ort.BudgetExceeded)
    assert isinstance(caught.value, ort.capi.onnxruntime_pybind11_state.RuntimeException)


@pytest.mark.parametrize("limit,bytes_", [("512MiB", 512 << 20), (12345678, 12345678), ("1.5 GiB", 3 << 29), (0, 0), (None, 0)])
def test_limits_as_people_write_them(limit, bytes_):
    assert limited(limit).memory_limit_bytes == bytes_
    assert ort.InferenceSession(models.double(), limited(limit)).memory_stats()["limit_bytes"] == bytes_


def test_limits_that_make_no_sense():
    for wrong in ("much", -5, 1.5, "12 parsecs", True, ""):  # "": a variable that was never set
        with pytest.raises(ort.InvalidArgument, match="memory_limit_bytes"):
            limited(wrong)
        with pytest.raises(ort.InvalidArgument, match="memory_limit_bytes"):
            ort.RunOptions().memory_limit_bytes = wrong


def test_a_run_has_a_limit_of_its_own():
    session = ort.InferenceSession(models.chain())
    options = ort.RunOptions()
    options.memory_limit_bytes = "4KiB"
    with pytest.raises(ort.BudgetExceeded, match="run's limit"):
        session.run(None, {"x": X}, options)
    options.memory_limit_bytes = "64MiB"
    session.run(None, {"x": X}, options)


def test_the_largest_batch_that_fits():
    session = ort.InferenceSession(models.chain())
    batch = session.find_batch_size("4MiB", "batch")
    assert batch > 0
    assert session.plan({"x": [batch, 256]}).minimum_limit_bytes <= 4 << 20
    assert session.plan({"x": [batch + 1, 256]}).minimum_limit_bytes > 4 << 20
    assert session.find_batch_size("4MiB") == batch
    assert session.find_batch_size("4KiB") == 0
    assert session.find_batch_size("1GiB", largest=100) == 100
    with pytest.raises(ort.InvalidArgument, match="no input has a dimension 'height'"):
        session.find_batch_size("4MiB", "height")
    with pytest.raises(ort.InvalidArgument, match="fixed"):
        ort.InferenceSession(models.one_node("Relu", shape=(1, 4))).find_batch_size("4MiB")


def test_dimensions_that_have_no_name_or_depend_on_others():
    unnamed = ort.InferenceSession(models.one_node("Neg", shape=(None, "width")))
    assert unnamed.get_inputs()[0].shape == [None, "width"]
    with pytest.raises(ort.InvalidArgument, match="'width' is free too"):
        unnamed.find_batch_size("4MiB")
    assert unnamed.find_batch_size("64MiB", "x.d0", {"width": 1 << 16}, largest=8) > 0


def test_a_batch_that_fits_runs_under_that_limit():
    open_under, within = limited(0, max_concurrent_runs=1), limited("4MiB")
    for options in (open_under, within):  # the same kernels: a limit gives some up
        options.add_session_config_entry("plimsoll.disable_winograd", "1")
    batch = ort.InferenceSession(models.chain(), open_under).find_batch_size("4MiB")
    session = ort.InferenceSession(models.chain(), within)
    session.run(None, {"x": np.ones((batch, 256), np.float32)})
    with pytest.raises(ort.BudgetExceeded):
        session.run(None, {"x": np.ones((batch + 1, 256), np.float32)})


def test_release_memory_gives_planned_memory_back():
    session = ort.InferenceSession(models.chain())
    session.run(None, {"x": X})
    assert session.memory_stats()["accounts"]["planned"]["now_bytes"] > 0
    session.release_memory()
    assert session.memory_stats()["accounts"]["planned"]["now_bytes"] == 0
    session.run(None, {"x": X})


def test_without_an_arena_runs_give_their_memory_back():
    session = ort.InferenceSession(models.chain(), limited(0, enable_cpu_mem_arena=False))
    session.run(None, {"x": X})
    stats = session.memory_stats()["accounts"]["planned"]
    assert stats["now_bytes"] == 0 < stats["peak_bytes"]


def test_large_results_go_back_when_they_die():
    session = ort.InferenceSession(models.one_node("Neg", shape=("n",)))
    feed = {"x": np.ones(16 << 20, np.float32)}  # 64 MiB
    session.run(None, feed)
    before = rss()
    for _ in range(2):
        result, = session.run(None, feed)
        assert rss() - before > 50 << 20
        del result
        assert rss() - before < 8 << 20


def test_sessions_and_errors_leave_nothing():
    def round_():
        session = ort.InferenceSession(models.chain())
        session.run(None, {"x": X})
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        with pytest.raises(ValueError):
            session.run(None, {"x": X, "z": X})
        with pytest.raises(ValueError):
            ort.InferenceSession(b"nonsense")

    for _ in range(6):
        round_()
    before = rss()
    for _ in range(14):
        round_()
    assert rss() - before < 1 << 20
