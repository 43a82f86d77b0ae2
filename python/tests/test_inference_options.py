"""SessionOptions, RunOptions and what holds for the whole process: each by what it does."""
import copy
import json
import os
import subprocess
import sys

import models
import numpy as np
import onnx
import pytest
from models import helper, tensor
from onnx import TensorProto

import plimsoll as ort
from plimsoll.capi import onnxruntime_pybind11_state as state

X = np.arange(8, dtype=np.float32).reshape(2, 4)


def options(**settings):
    made = ort.SessionOptions()
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def test_defaults_are_those_of_onnxruntime():
    made = ort.SessionOptions()
    assert made.enable_cpu_mem_arena and made.enable_mem_pattern and made.enable_mem_reuse
    assert made.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert made.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL
    assert made.execution_order == ort.ExecutionOrder.DEFAULT
    assert made.intra_op_num_threads == made.inter_op_num_threads == made.log_verbosity_level == 0
    assert made.profile_file_prefix == "onnxruntime_profile_" and made.optimized_model_filepath == made.logid == ""
    assert made.use_per_session_threads and not made.use_deterministic_compute and not made.enable_profiling
    assert made.log_severity_level == -1 and not made.has_providers()


@pytest.mark.parametrize("name,wrong", [
    ("enable_cpu_mem_arena", "yes"), ("intra_op_num_threads", 1.5), ("logid", 3), ("graph_optimization_level", 1),
    ("execution_mode", ort.ExecutionOrder.DEFAULT), ("optimized_model_filepath", None)])
def test_values_of_the_wrong_type(name, wrong):
    with pytest.raises(TypeError, match=name):
        options(**{name: wrong})


def test_names_that_nobody_knows():
    with pytest.raises(AttributeError):
        options(enable_magic=True)
    with pytest.raises(ort.InvalidArgument):
        options(intra_op_num_threads=-1)


def test_numpy_s_integers():
    made = options(intra_op_num_threads=np.int64(2), log_severity_level=np.int32(3))
    assert ort.InferenceSession(models.chain(), made).plan({"x": [2, 256]}).threads == 2
    assert type(made.intra_op_num_threads) is int and made.log_severity_level == 3


def test_a_session_keeps_a_copy():
    made = options(intra_op_num_threads=1)
    made.add_session_config_entry("session.disable_prepacking", "1")
    session = ort.InferenceSession(models.double(), made)
    made.intra_op_num_threads = 2
    kept = session.get_session_options()
    assert kept.intra_op_num_threads == 1
    assert kept.get_session_config_entry("session.disable_prepacking") == "1"
    assert copy.copy(kept).intra_op_num_threads == copy.deepcopy(kept).intra_op_num_threads == 1


def test_config_entries():
    made = ort.SessionOptions()
    made.add_session_config_entry("session.set_denormal_as_zero", "1")
    assert made.get_session_config_entry("session.set_denormal_as_zero") == "1"
    with pytest.raises(RuntimeError, match="does not have configuration with key: nothing"):
        made.get_session_config_entry("nothing")
    with pytest.raises(state.NotImplemented, match="optimization.enable_gelu_approximation"):
        made.add_session_config_entry("optimization.enable_gelu_approximation", "1")
    with pytest.raises(ort.InvalidArgument, match="session.set_denormal_as_zero"):
        made.add_session_config_entry("session.set_denormal_as_zero", "perhaps")
    with pytest.raises(TypeError):
        made.add_session_config_entry("session.set_denormal_as_zero", 1)
    tiny = np.full((1, 4), 1e-40, np.float32)
    assert not ort.InferenceSession(models.double(), made).run(None, {"x": tiny})[0].any()
    assert ort.InferenceSession(models.double()).run(None, {"x": tiny})[0].all()


def test_a_key_that_nobody_knows_is_told(caplog):
    made = ort.SessionOptions()
    made.add_session_config_entry("my.own.key", "1")
    ort.InferenceSession(models.double(), made)
    assert "my.own.key" in caplog.text


def test_threads_are_those_asked_for():
    assert ort.InferenceSession(models.chain(), options(intra_op_num_threads=1)).plan({"x": [2, 256]}).threads == 1


def test_optimization_and_where_it_is_written(tmp_path):
    file = tmp_path / "optimized.onnx"
    model = models.build(
        [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Identity", ["a"], ["b"]),
         helper.make_node("Relu", ["b"], ["y"])], [tensor("x")], [tensor("y")])
    ort.InferenceSession(model, options(optimized_model_filepath=str(file)))
    assert [node.op_type for node in onnx.load(str(file)).graph.node] == ["Relu"]
    steps = [len(ort.InferenceSession(model, options(graph_optimization_level=level)).plan({"x": [2, 4]}).steps)
             for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)]
    assert steps[0] >= steps[1]


def test_memory_settings_have_an_effect():
    def planned(**settings):
        session = ort.InferenceSession(models.chain(), options(max_concurrent_runs=1, **settings))
        return session.plan({"x": [64, 256]}).accounts["planned"]

    assert planned(enable_mem_pattern=False) > planned()
    assert planned(enable_mem_reuse=False) > planned()


def test_profiling_writes_a_trace(tmp_path):
    session = ort.InferenceSession(models.chain(), options(enable_profiling=True,
                                                           profile_file_prefix=str(tmp_path / "trace")))
    assert session.get_profiling_start_time_ns() > 0
    session.run(None, {"x": np.ones((2, 256), np.float32)})
    file = session.end_profiling()
    assert file.startswith(str(tmp_path / "trace"))
    with open(file, encoding="utf-8") as trace:
        events = json.load(trace)
    nodes = [event for event in events if event["name"].endswith("_kernel_time")]
    assert nodes and all(event["args"]["memory_total_bytes"] > 0 for event in nodes)
    assert session.end_profiling() == ""
    plain = ort.InferenceSession(models.double())
    assert plain.end_profiling() == "" and plain.get_profiling_start_time_ns() == 0


def test_free_dimensions_are_fixed_by_name():
    made = ort.SessionOptions()
    made.add_free_dimension_override_by_name("batch", 2)
    session = ort.InferenceSession(models.double(), made)
    assert session.get_inputs()[0].shape == [2, 4]
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X)
    with pytest.raises(ort.InvalidArgument):
        session.run(None, {"x": X[:1]})
    with pytest.raises(TypeError):
        made.add_free_dimension_override_by_name("batch", "two")


def test_free_dimensions_are_fixed_by_denotation():
    model = onnx.load_from_string(models.double())
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    made = ort.SessionOptions()
    made.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
    assert ort.InferenceSession(model.SerializeToString(), made).get_inputs()[0].shape == [3, 4]


def test_initializers_of_the_caller():
    model = models.build([helper.make_node("Add", ["x", "b"], ["y"])], [tensor("x")], [tensor("y")],
                         {"b": np.ones(4, np.float32)})
    made = ort.SessionOptions()
    made.add_initializer("b", ort.OrtValue.ortvalue_from_numpy(np.full(4, 7, np.float32)))
    session = ort.InferenceSession(model, made)
    del made
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X + 7)
    with pytest.raises(ort.InvalidArgument, match="must be an OrtValue"):
        ort.SessionOptions().add_initializer("b", X)
    wrong = ort.SessionOptions()
    wrong.add_initializer("b", ort.OrtValue.ortvalue_from_numpy(X))
    with pytest.raises(ort.InvalidArgument, match="'b'"):
        ort.InferenceSession(model, wrong)


@pytest.fixture
def external(tmp_path):
    """A model whose weight is in a file beside it, and that file's name."""
    model = onnx.load_from_string(models.build(
        [helper.make_node("Add", ["x", "b"], ["y"])], [tensor("x")], [tensor("y")], {"b": np.full(4, 5, np.float32)}))
    file = tmp_path / "model.onnx"
    onnx.save_model(model, str(file), save_as_external_data=True, location="weights.bin", size_threshold=0)
    return file


def test_external_initializers_of_the_caller(external):
    (external.parent / "weights.bin").unlink()
    made = ort.SessionOptions()
    made.add_external_initializers(["b"], [ort.OrtValue.ortvalue_from_numpy(np.full(4, 3, np.float32))])
    np.testing.assert_array_equal(ort.InferenceSession(external, made).run(None, {"x": X})[0], X + 3)
    with pytest.raises(ort.InvalidArgument, match="equal length"):
        made.add_external_initializers(["b"], [])


def test_external_files_in_memory(external):
    contents = (external.parent / "weights.bin").read_bytes()
    made = ort.SessionOptions()
    made.add_external_initializers_from_files_in_memory(["weights.bin"], [contents], [len(contents)])
    session = ort.InferenceSession(external.read_bytes(), made)
    del made, contents
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X + 5)
    with pytest.raises(ort.InvalidArgument, match="equal length"):
        ort.SessionOptions().add_external_initializers_from_files_in_memory(["a"], [], [])
    with pytest.raises(ort.InvalidArgument, match="at least 9 bytes"):
        ort.SessionOptions().add_external_initializers_from_files_in_memory(["a"], [b"short"], [9])


def test_providers_of_options():
    made = ort.SessionOptions()
    made.add_provider("CPUExecutionProvider", {})
    assert made.has_providers()
    with pytest.warns(UserWarning, match="already been configured"):
        ort.InferenceSession(models.double(), made, providers=["CPUExecutionProvider"])
    with pytest.raises(ort.Error, match="CUDA"):
        made.append_execution_provider("CUDAExecutionProvider")
    with pytest.raises(ort.InvalidArgument, match="Abacus"):
        made.add_provider("Abacus", {})


def test_model_metadata():
    model = onnx.load_from_string(models.double())
    model.producer_name, model.domain, model.model_version, model.doc_string = "tests", "org.example", 3, "doubles"
    model.graph.doc_string = "one node"
    helper.set_model_props(model, {"author": "me"})
    meta = ort.InferenceSession(model.SerializeToString()).get_modelmeta()
    assert (meta.producer_name, meta.domain, meta.version, meta.description) == ("tests", "org.example", 3, "doubles")
    assert (meta.graph_name, meta.graph_description, meta.custom_metadata_map) == ("graph", "one node", {"author": "me"})


def test_run_options():
    made = ort.RunOptions()
    assert (made.log_severity_level, made.log_verbosity_level, made.logid, made.terminate) == (-1, 0, "", False)
    made.logid, made.log_severity_level = "mine", 3
    assert made.logid == "mine"
    made.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    assert made.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"
    with pytest.raises(RuntimeError, match="does not have configuration"):
        made.get_run_config_entry("nothing")
    session = ort.InferenceSession(models.chain())
    session.run(None, {"x": np.ones((64, 256), np.float32)}, made)
    assert session.memory_stats()["accounts"]["planned"]["now_bytes"] == 0
    with pytest.raises(NotImplementedError):
        made.add_active_adapter(object())


def test_only_the_path_to_what_is_fetched():
    body = models.forever()
    model = onnx.load_from_string(body)
    model.graph.node.append(helper.make_node("Neg", ["x"], ["quick"]))
    model.graph.output.append(tensor("quick", shape=(1,)))
    session = ort.InferenceSession(model.SerializeToString())
    made = ort.RunOptions()
    made.only_execute_path_to_fetches = True
    assert session.run(["quick"], models.FOREVER, made)[0] == 0  # the loop would never end


def test_seeds():
    model = models.build([helper.make_node("RandomUniformLike", ["x"], ["y"])], [tensor("x")], [tensor("y")])
    try:
        draws = []
        for seed in (7, 7, 8):
            ort.set_seed(seed)
            draws.append(ort.InferenceSession(model).run(None, {"x": X})[0])
        np.testing.assert_array_equal(draws[0], draws[1])
        assert not np.array_equal(draws[0], draws[2])
        with pytest.raises(TypeError):
            ort.set_seed("seven")
    finally:
        ort.set_seed(0)


def test_loggers(caplog):
    odd = models.build([helper.make_node("Relu", ["x"], ["y"], unheard_of=1)], [tensor("x")], [tensor("y")])
    try:
        ort.set_default_logger_severity(4)
        ort.InferenceSession(odd)
        assert not caplog.records
    finally:
        ort.set_default_logger_severity(2)
    ort.InferenceSession(odd)
    assert caplog.records
    with pytest.raises(ort.InvalidArgument, match="0:Verbose"):
        ort.set_default_logger_severity(9)
    ort.set_default_logger_verbosity(1)


def test_versions_and_devices():
    assert ort.get_version_string() == ort.__version__
    assert ort.__version__ in ort.get_build_info()
    assert ort.get_device() == "CPU" and ort.get_available_providers() == ["CPUExecutionProvider"]
    assert {"CPUExecutionProvider", "CUDAExecutionProvider"} <= set(ort.get_all_providers())
    assert ort.has_collective_ops() is False
    assert ort.enable_telemetry_events() is ort.disable_telemetry_events() is None


def test_a_shared_allocator():
    """In a process of its own, which can have only one."""
    program = """
import numpy as np, plimsoll as ort, models
from plimsoll import _engine
from models import helper, tensor
info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
ort.create_and_register_allocator(info, ort.OrtArenaCfg({"max_mem": 64 << 20, "arena_extend_strategy": 1}))
try:
    ort.create_and_register_allocator(info, None)
    raise SystemExit("twice")
except ort.InvalidArgument:
    pass
options = ort.SessionOptions()
options.add_session_config_entry("session.use_env_allocators", "1")
model = models.build([helper.make_node("NonZero", ["x"], ["y"])], [tensor("x")], [tensor("y", 7, (2, None))])
sessions = [ort.InferenceSession(model, options) for _ in range(2)]
for session in sessions:
    session.run(None, {"x": np.ones((64, 4), np.float32)})
stats = sessions[0].memory_stats()["arena"]
assert stats["Limit"] == 64 << 20 and stats["NumAllocs"] >= 2 and stats == sessions[1].memory_stats()["arena"], stats
assert stats == _engine.shared_allocator_stats()
try:
    ort.create_and_register_allocator(ort.OrtMemoryInfo("Cuda", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT))
    raise SystemExit("Cuda")
except ort.Error:
    pass
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                          cwd=os.path.dirname(__file__))
    assert done.stdout == "done\n", done.stderr


def test_a_limit_from_the_container():
    session = ort.InferenceSession(models.double(), options(memory_limit_bytes="container"))
    assert session.memory_stats()["limit_bytes"] >= 0
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X)
