"""plimsoll.backend: ONNX's interface, each function by what it does. Its own tests run in backend_suite.py."""
import pathlib

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="no python3-onnx")
from onnx import TensorProto, helper

import plimsoll
from plimsoll import backend

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "digits.onnx"
IMAGE = np.zeros((2, 1, 8, 8), np.float32)


@pytest.mark.parametrize("form", [pathlib.Path, str, pathlib.Path.read_bytes, onnx.load, plimsoll.InferenceSession])
def test_prepare_takes_any_form_of_a_model(form):
    model = form(DIGITS)
    prepared = backend.prepare(model)
    expected, = plimsoll.InferenceSession(DIGITS).run(None, {"image": IMAGE})
    output, = prepared.session.get_outputs()
    for inputs in ([IMAGE], {"image": IMAGE}, IMAGE):
        answer = prepared.run(inputs)
        assert isinstance(answer, tuple) and np.array_equal(answer[0], expected)
        assert np.array_equal(answer[output.name], expected)
    assert np.array_equal(backend.run_model(model, [IMAGE])[0], expected)
    assert backend.is_compatible(model)


def test_options_by_name():
    assert backend.prepare(DIGITS, memory_limit_bytes="8MiB").session.memory_stats()["limit_bytes"] == 8 << 20
    with pytest.raises(TypeError, match="nonsense"):
        backend.prepare(DIGITS, nonsense=1)


def test_devices():
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0") and not backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="CUDA"):
        backend.prepare(DIGITS, "CUDA")
    assert not backend.is_compatible(DIGITS, "CUDA")


def test_what_is_not_implemented_is_not_compatible():
    node = helper.make_node("NoSuchOperator", ["x"], ["y"])
    infos = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])] for name in "xy"]
    assert not backend.is_compatible(helper.make_model(helper.make_graph([node], "g", *infos)))


def test_run_node():
    x = np.array([[-1.0, 2.0]], np.float32)
    assert backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])[0].tolist() == [[0.0, 2.0]]
    node = helper.make_node("Clip", ["x", "", "most"], ["y"])
    answer = backend.run_node(node, [x, np.float32(1)], outputs_info=[(np.float32, (1, 2))])
    assert answer[0].tolist() == [[-1.0, 1.0]]
    with pytest.raises(ValueError, match="2 inputs are named, found 1"):
        backend.run_node(node, [x])


def test_surplus_inputs():
    with pytest.raises(ValueError, match="1 inputs, found 2"):
        backend.prepare(DIGITS).run([IMAGE, IMAGE])


@pytest.mark.parametrize("form", [np.float32, np.uint16])
def test_bfloat16_as_float32_and_as_bits(form):
    """Cast of what numpy cannot say: rounded to nearest, ties to even."""
    infos = [[helper.make_tensor_value_info("x", TensorProto.BFLOAT16, ["n"])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])]]
    model = helper.make_model(helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], "g", *infos),
                              opset_imports=[helper.make_opsetid("", 17)])
    values = np.array([1.0, 1.00390625, 1.01171875, np.nan, np.inf, 0.0], np.float32)
    given = values if form is np.float32 else np.array([0x3F80, 0x3F80, 0x3F82, 0x7FC0, 0x7F80, 0], np.uint16)
    answer = backend.run_model(model, [given])[0]
    np.testing.assert_array_equal(answer, np.array([1.0, 1.0, 1.015625, np.nan, np.inf, 0.0], np.float32))
