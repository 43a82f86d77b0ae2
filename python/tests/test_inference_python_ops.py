"""Operators that are Python callables."""
import gc
import sys
import threading

import models
import numpy as np
import pytest
from models import helper, tensor
from onnx import TensorProto

import plimsoll as ort

X = np.arange(8, dtype=np.float32).reshape(2, 4)


def model(outputs=("y",), shape=("batch", 4), **attributes):
    """x through a node of my.domain, then Neg, so that the operator stands in the middle of a plan."""
    nodes = [helper.make_node("Mine", ["x"], [f"{name}_raw" for name in outputs], domain="my.domain", **attributes)]
    nodes += [helper.make_node("Neg", [f"{name}_raw"], [name]) for name in outputs]
    graph = helper.make_graph(nodes, "g", [tensor("x")], [tensor(name, shape=shape) for name in outputs])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)])
    made.ir_version = 8
    return made.SerializeToString()


def session(function, bytes_=None, **settings):
    options = ort.SessionOptions()
    options.register_custom_op("Mine", function, "my.domain", **settings)
    return ort.InferenceSession(bytes_ or model(), options)


def test_a_callable_is_an_operator():
    np.testing.assert_array_equal(session(lambda x: x * 3).run(None, {"x": X})[0], -3 * X)


def test_attributes_reach_it():
    seen = {}

    def mine(x, **attributes):
        seen.update(attributes)
        return x

    kinds = {"count": int, "scale": float, "label": str, "absent": int}
    session(mine, model(count=3, scale=0.5, label="n"), attributes=kinds).run(None, {"x": X})
    assert seen == {"count": 3, "scale": 0.5, "label": "n"}


def test_shapes_that_it_infers():
    half = session(lambda x: x[:, :2], model(shape=("batch", 2)), infer=lambda x: [(x[0], [x[1][0], 2])])
    np.testing.assert_array_equal(half.run(None, {"x": X})[0], -X[:, :2])
    np.testing.assert_array_equal(half.run(None, {"x": X[:1]})[0], -X[:1, :2])


def test_several_outputs():
    two = session(lambda x: (x + 1, x + 2), model(("a", "b")))
    a, b = two.run(None, {"x": X})
    np.testing.assert_array_equal(a, -X - 1)
    np.testing.assert_array_equal(b, -X - 2)


@pytest.mark.parametrize("function,words", [
    (lambda x: 1 / 0, "ZeroDivisionError"), (lambda x: x[:1], "output 0"), (lambda x: x.astype(np.float64), "float64"),
    (lambda x: None, "output 0"), (lambda: 1, "TypeError"), (lambda x: (x, x), "expected 1 results, found 2")])
def test_what_it_does_wrong_is_told_with_the_node(function, words):
    wrong = session(function)
    for _ in range(2):
        with pytest.raises(ort.Error, match=words) as caught:
            wrong.run(None, {"x": X})
        assert "Mine" in str(caught.value)


def test_infer_that_is_wrong():
    with pytest.raises(ort.Error, match="KeyError"):
        session(lambda x: x, infer=lambda x: {}["nothing"])
    with pytest.raises(ort.Error, match="expected a .type, shape. for each of 1 outputs, found 2"):
        session(lambda x: x, infer=lambda x: [x, x])


def test_without_it_the_model_is_refused():
    with pytest.raises(ort.NotImplementedYet, match="Mine"):
        ort.InferenceSession(model())
    with pytest.raises(TypeError):
        ort.SessionOptions().register_custom_op("Mine", "no callable")
    with pytest.raises(ort.InvalidArgument, match="int, float or str"):
        ort.SessionOptions().register_custom_op("Mine", print, attributes={"a": list})


def test_it_keeps_nothing_and_nothing_of_it_goes_stale():
    kept = []
    mine = session(lambda x: kept.append(x) or x)
    mine.run(None, {"x": X})
    mine.close()
    gc.collect()
    np.testing.assert_array_equal(kept[0], X)

    def function(x):
        return x
    count = sys.getrefcount(function)
    for _ in range(100):  # more than there are places
        session(function).run(None, {"x": X})
    gc.collect()
    assert sys.getrefcount(function) == count


def test_from_many_threads():
    mine = session(lambda x: x + 1)
    wrong = []

    def run(number):
        for _ in range(20):
            if not np.array_equal(mine.run(None, {"x": X + number})[0], -(X + number + 1)):
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
