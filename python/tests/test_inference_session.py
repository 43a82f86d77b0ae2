"""InferenceSession: what a run gives, what it refuses, and what it tells of the model."""
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import threading

import models
import numpy as np
import onnx
import pytest
from models import helper, tensor
from onnx import TensorProto

import plimsoll as ort
from plimsoll.capi import onnxruntime_pybind11_state as state


@pytest.fixture
def session():
    return ort.InferenceSession(models.double())


X = np.arange(8, dtype=np.float32).reshape(2, 4)


def test_run_gives_a_list_of_arrays(session):
    results = session.run(None, {"x": X})
    assert isinstance(results, list) and len(results) == 1
    np.testing.assert_array_equal(results[0], 2 * X)
    assert results[0].dtype == np.float32


def test_outputs_are_those_asked_for_in_that_order():
    session = ort.InferenceSession(models.two_in_two_out())
    feed = {"a": X, "b": X + 1}
    product, total = session.run(["product", "sum"], feed)
    np.testing.assert_array_equal(product, X * (X + 1))
    np.testing.assert_array_equal(total, X + X + 1)
    assert len(session.run([], feed)) == len(session.run(None, feed)) == 2
    np.testing.assert_array_equal(session.run(["sum"], feed)[0], total)
    with pytest.raises(state.InvalidArgument, match="nothing"):
        session.run(["nothing"], feed)
    with pytest.raises(TypeError, match="list of names"):
        session.run("sum", feed)


def test_a_path_or_a_path_object(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(models.double())
    for path in (str(file), file):
        np.testing.assert_array_equal(ort.InferenceSession(path).run(None, {"x": X})[0], 2 * X)
    with pytest.raises(TypeError, match="Unable to load from type"):
        ort.InferenceSession(42)


@pytest.mark.parametrize("name,feed", {
    "list": [[0, 1, 2, 3], [4, 5, 6, 7]],
    "tuple": tuple(map(tuple, X)),
    "list of arrays": list(X),
    "not contiguous": np.repeat(X, 2, axis=1)[:, ::2],
    "fortran order": np.asfortranarray(X),
    "backwards": X[::-1].copy()[::-1],
    "big endian": X.astype(">f4"),
    "read only": np.frombuffer(X.tobytes(), np.float32).reshape(2, 4),
    "dlpack": type("Tensor", (), {"__dlpack__": lambda self: X.__dlpack__()})(),
    "array interface": type("Tensor", (), {"__array_interface__": X.__array_interface__, "keep": X})(),
    "__array__": type("Tensor", (), {"__array__": lambda self, dtype=None: X})(),
    "OrtValue": ort.OrtValue.ortvalue_from_numpy(X),
}.items())
def test_feeds_in_many_forms(session, name, feed):
    np.testing.assert_array_equal(session.run(None, {"x": feed})[0], 2 * X)


def test_misaligned_memory_is_copied(session):
    raw = np.zeros(X.nbytes + 1, np.uint8)
    raw[1:] = X.view(np.uint8).ravel()
    odd = raw[1:].view(np.float32).reshape(2, 4)
    assert not odd.flags.aligned
    np.testing.assert_array_equal(session.run(None, {"x": odd})[0], 2 * X)


@pytest.mark.parametrize("scalar", [3.0, 3, np.float32(3), np.array(3, np.float32)])
def test_scalars_for_rank_zero(scalar):
    session = ort.InferenceSession(models.one_node("Neg", shape=()))
    result, = session.run(None, {"x": scalar})
    assert result.shape == () and result == -3


def test_any_mapping_is_a_feed(session):
    import collections
    feed = collections.ChainMap({"x": X})
    np.testing.assert_array_equal(session.run(None, feed)[0], 2 * X)
    with pytest.raises(TypeError, match="input_feed"):
        session.run(None, [X])


@pytest.mark.parametrize("feed,words", [
    ({}, r"Required inputs \(\['x'\]\) are missing from input feed \(\[\]\)"),
    ({"x": None}, "Required inputs"),
    ({"x": X, "z": X}, "Invalid input name: 'z'"),
    ({"x": X.astype(np.float64)}, "expected float, found double"),
    ({"x": X[0]}, r"\[4\]"),
    ({"x": X[:, :3]}, "dimension 1 is 4 in the model, found 3"),
    ({"x": np.array(["a"])}, "expected float, found string"),
    ({"x": np.array([None, 1.0], object)}, "expected float, found string"),
    ({"x": b"bytes"}, "could not convert"),
    ({"x": [[1, 2], [3]]}, "expected float"),
    ({"x": object()}, "found an object of type object"),
    ({"x": {"a": 1.0}}, "map"),
    ({"x": np.array([0], "datetime64[s]")}, "no counterpart in ONNX"),
])
def test_what_a_feed_cannot_be(session, feed, words):
    with pytest.raises(state.InvalidArgument, match=words) as caught:
        session.run(None, feed)
    assert isinstance(caught.value, ValueError)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X)  # nothing is broken


def test_names_must_be_text(session):
    with pytest.raises(TypeError, match="expected str, found int"):
        session.run(None, {1: X})
    with pytest.raises(TypeError, match="run_options"):
        session.run(None, {"x": X}, {"terminate": True})


@pytest.mark.parametrize("dtype,onnx_type", [
    (np.float32, 1), (np.uint8, 2), (np.int8, 3), (np.uint16, 4), (np.int16, 5), (np.int32, 6), (np.int64, 7),
    (np.bool_, 9), (np.float16, 10), (np.float64, 11), (np.uint32, 12), (np.uint64, 13), (np.longlong, 7)])
def test_every_type_of_numpy_crosses(dtype, onnx_type):
    session = ort.InferenceSession(models.one_node("Identity", onnx_type))
    array = np.array([[0, 1, 1, 0]]).astype(dtype)
    result, = session.run(None, {"x": array})
    np.testing.assert_array_equal(result, array)
    assert result.dtype == array.dtype


@pytest.mark.parametrize("array", [
    np.array([["one", "zwei", "drei", "четыре"]]), np.array([["one", "zwei", "drei", "четыре"]], object),
    [["one", "zwei", "drei", "четыре"]]])
def test_text_crosses(array):
    session = ort.InferenceSession(models.one_node("Identity", TensorProto.STRING))
    result, = session.run(None, {"x": array})
    assert result.dtype == object and result.tolist() == [["one", "zwei", "drei", "четыре"]]


def test_bytes_and_other_objects_as_text():
    session = ort.InferenceSession(models.one_node("Identity", TensorProto.STRING, (None,)))
    assert session.run(None, {"x": np.array([b"a", b"bc"])})[0].tolist() == ["a", "bc"]
    assert session.run(None, {"x": np.array([1, None, "", 2.5], object)})[0].tolist() == ["1", "None", "", "2.5"]
    assert session.run(None, {"x": np.array([b"\xff\x00x"], object)})[0].tolist() == ["\udcff\x00x"]


def test_empty_tensors():
    session = ort.InferenceSession(models.double())
    assert session.run(None, {"x": np.zeros((0, 4), np.float32)})[0].shape == (0, 4)


def test_sequences_in_and_out():
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    out = helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    session = ort.InferenceSession(models.build(
        [helper.make_node("SequenceInsert", ["s", "x"], ["t"])], [sequence, tensor("x", shape=None)], [out]))
    assert session.get_inputs()[0].type == "seq(tensor(float))"
    result, = session.run(None, {"s": [X, X[0]], "x": X[1]})
    assert [array.shape for array in result] == [(2, 4), (4,), (4,)]
    np.testing.assert_array_equal(result[2], X[1])
    assert len(session.run(None, {"s": [], "x": X})[0]) == 1


def test_maps_come_out_as_dicts():
    classes = [10, 20, 30]
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=classes)
    value_type = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    out = helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_map_type_proto(
        TensorProto.INT64, value_type))) if hasattr(helper, "make_map_type_proto") else None
    if out is None:  # the python3-onnx of Debian 12
        out = onnx.ValueInfoProto(name="y")
        out.type.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
        out.type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph([node], "g", [tensor("x", shape=("n", 3))], [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])
    session = ort.InferenceSession(model.SerializeToString())
    assert session.get_outputs()[0].type == "seq(map(int64,tensor(float)))"
    assert session.run(None, {"x": np.array([[1, 2, 3]], np.float32)})[0] == [{10: 1.0, 20: 2.0, 30: 3.0}]


def test_optional_inputs_may_be_none():
    inner = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    optional = helper.make_value_info("x", helper.make_optional_type_proto(inner))
    session = ort.InferenceSession(models.build(
        [helper.make_node("OptionalHasElement", ["x"], ["y"])], [optional], [tensor("y", TensorProto.BOOL, ())], opset=18))
    assert session.run(None, {"x": None})[0] == False  # noqa: E712
    assert session.run(None, {})[0] == False  # noqa: E712
    assert session.run(None, {"x": X[0]})[0] == True  # noqa: E712


def test_what_the_session_tells_of_its_model():
    session = ort.InferenceSession(models.two_in_two_out())
    a, b = session.get_inputs()
    assert (a.name, a.type, a.shape) == ("a", "tensor(float)", ["batch", 4])
    assert str(b) == "NodeArg(name='b', type='tensor(float)', shape=['batch', 4])"
    assert [arg.name for arg in session.get_outputs()] == ["sum", "product"]
    assert session.get_overridable_initializers() == []
    odd = ort.InferenceSession(models.build([helper.make_node("NonZero", ["x"], ["y"])], [tensor("x", shape=(None, 4))],
                                            [tensor("y", TensorProto.INT64, (2, None))]))
    assert odd.get_inputs()[0].shape == [None, 4] and odd.get_outputs()[0].shape == [2, None]
    assert [info.name for info in session.get_input_memory_infos()] == ["Cpu", "Cpu"]


def test_initializers_can_be_overridden():
    session = ort.InferenceSession(models.build(
        [helper.make_node("Add", ["x", "b"], ["y"])], [tensor("x"), tensor("b", shape=(4,))], [tensor("y")],
        {"b": np.ones(4, np.float32)}))
    assert [arg.name for arg in session.get_overridable_initializers()] == ["b"]
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X + 1)
    np.testing.assert_array_equal(session.run(None, {"x": X, "b": np.full(4, 5, np.float32)})[0], X + 5)


def test_providers():
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available provider names"):
        session = ort.InferenceSession(models.double(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    assert ort.InferenceSession(models.double(), providers=[("CPUExecutionProvider", {"use_arena": 1})]
                                ).get_provider_options() == {"CPUExecutionProvider": {"use_arena": "1"}}
    with pytest.raises(ValueError, match="Unknown Provider Type: Abacus"):
        ort.InferenceSession(models.double(), providers=["Abacus"])
    for providers, options in (("CPUExecutionProvider", None), ([1], None), (["CPUExecutionProvider"], []),
                               (["CPUExecutionProvider"], [1]), ([("CPUExecutionProvider", {})], [{}])):
        with pytest.raises(ValueError):
            ort.InferenceSession(models.double(), providers=providers, provider_options=options)
    session.set_providers(["CPUExecutionProvider"], [{"a": 1}])
    assert session.get_provider_options() == {"CPUExecutionProvider": {"a": "1"}}
    session.enable_fallback()
    session.disable_fallback()
    assert session.get_tuning_results() == []
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X)


def test_inputs_are_read_where_they_are():
    session = ort.InferenceSession(models.double())
    results = session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(X)})
    assert ort.OrtValue.ortvalue_from_numpy(X).data_ptr() == X.ctypes.data
    np.testing.assert_array_equal(results[0].numpy(), 2 * X)


def test_outputs_keep_their_memory_and_nothing_else(session):
    result = session.run(None, {"x": X})[0]
    assert not result.flags.owndata and result.flags.writeable
    session.close()
    del session
    np.testing.assert_array_equal(result, 2 * X)
    part = result[1:]
    del result
    np.testing.assert_array_equal(part, 2 * X[1:])


def test_nothing_of_a_run_is_kept(session):
    array = X.copy()
    before = sys.getrefcount(array)
    for _ in range(3):
        session.run(None, {"x": array})
        session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(array)})
    with pytest.raises(ValueError):
        session.run(None, {"x": array, "z": array})
    assert sys.getrefcount(array) == before


def test_a_session_goes_without_the_cyclic_collector():
    gc.disable()
    try:
        dead = []
        for _ in range(3):
            session = ort.InferenceSession(models.double())
            session.run(None, {"x": X})
            session.get_inputs(), session.get_session_options(), session.io_binding()
            done = threading.Event()
            session.run_async(None, {"x": X}, lambda results, data, error: done.set(), None)
            assert done.wait(20)

            class Watched(ort.InferenceSession):
                def __del__(self):
                    dead.append(1)

            watched = Watched(models.double())
            watched.run(None, {"x": X})
            watched.get_inputs(), watched.plan({"x": [2, 4]}), watched.memory_stats()
            del session, watched
        assert len(dead) == 3
    finally:
        gc.enable()


def test_a_closed_session_says_so(session):
    binding = session.io_binding()
    session.close()
    session.close()
    for use in (lambda: session.run(None, {"x": X}), lambda: session.run_with_iobinding(binding), session.memory_stats,
                session.io_binding, lambda: session.plan({"x": [1, 4]}), session.release_memory):
        with pytest.raises(ort.NoModel, match="closed"):
            use()
    with ort.InferenceSession(models.double()) as other:
        other.run(None, {"x": X})
    with pytest.raises(ort.NoModel):
        other.run(None, {"x": X})


def test_sessions_do_not_pickle(session):
    import copy
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled: open the model again"):
            attempt(session)


def test_warnings_of_the_model_are_logged(caplog):
    odd = models.build([helper.make_node("Relu", ["x"], ["y"], unheard_of=1)], [tensor("x")], [tensor("y")])
    ort.InferenceSession(odd)
    assert "unheard_of" in caplog.text and caplog.records[0].name == "plimsoll"
    caplog.clear()
    options = ort.SessionOptions()
    options.log_severity_level = 3
    ort.InferenceSession(odd, options)
    assert not caplog.records
    options.strict = True
    with pytest.raises(state.InvalidGraph, match="unheard_of"):
        ort.InferenceSession(odd, options)


def test_import_as_onnxruntime_names_things():
    assert state.InvalidArgument is ort.InvalidArgument
    assert ort.capi.onnxruntime_pybind11_state.NoSuchFile is ort.NoSuchFile
    assert issubclass(state.NotImplemented, NotImplementedError) and issubclass(state.Fail, RuntimeError)
    assert issubclass(ort.BudgetExceeded, MemoryError) and issubclass(ort.BudgetExceeded, state.RuntimeException)
    from plimsoll.capi.onnxruntime_inference_collection import InferenceSession
    assert InferenceSession is ort.InferenceSession
    for name in ("NoModel", "EngineError", "ModelLoaded", "EPFail"):
        assert issubclass(getattr(state, name), RuntimeError)


def test_every_public_name_is_there_with_words_and_an_example():
    for name in ort.__all__:
        thing = getattr(ort, name)
        if isinstance(thing, type) and thing.__module__.startswith("plimsoll") and not issubclass(thing, Exception):
            assert thing.__doc__, name
