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


@pytest.mark.parametrize("model", [DIGITS, str(DIGITS), DIGITS.read_bytes(), onnx.load(DIGITS), plimsoll.InferenceSession(DIGITS)],
                         ids=["path", "text", "bytes", "proto", "session"])
def test_prepare_takes_any_form_of_a_model(model):
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


def test_bfloat16_is_rounded_to_even():
    from plimsoll.backend import _backend
    values = np.array([1.0, 1.00390625, 1.01171875, np.nan, np.inf, -3.3e38, 0.0], np.float32)
    back = _backend._from_bits(_backend._to_bits(values))
    assert back[:3].tolist() == [1.0, 1.0, 1.015625] and np.isnan(back[3]) and back[4] == np.inf and back[6] == 0
