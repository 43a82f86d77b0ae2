"""Small models for the tests of the inference API, as bytes."""
import functools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def tensor(name, dtype=TensorProto.FLOAT, shape=("batch", 4)):
    return helper.make_tensor_value_info(name, dtype, None if shape is None else list(shape))


def build(nodes, inputs, outputs, initializers=(), opset=17, **model):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, [
        numpy_helper.from_array(array, name) for name, array in dict(initializers).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **model)
    made.ir_version = 8
    return made.SerializeToString()


def one_node(op, dtype=TensorProto.FLOAT, shape=("batch", 4), out=None, **attributes):
    """x through one operator to y."""
    return build([helper.make_node(op, ["x"], ["y"], **attributes)], [tensor("x", dtype, shape)],
                 [tensor("y", out or dtype, shape)])


@functools.lru_cache(None)
def double():
    """y = x + x."""
    return build([helper.make_node("Add", ["x", "x"], ["y"])], [tensor("x")], [tensor("y")])


@functools.lru_cache(None)
def two_in_two_out():
    """sum = a + b, product = a * b."""
    return build([helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Mul", ["a", "b"], ["product"])],
                 [tensor("a"), tensor("b")], [tensor("sum"), tensor("product")])


@functools.lru_cache(None)
def chain(layers=4, width=256):
    """MatMuls with weights, one after the other, with Relu between: has planned memory."""
    nodes, weights, name = [], {}, "x"
    for i in range(layers):
        weights[f"w{i}"] = np.full((width, width), 1 / width, np.float32)
        nodes += [helper.make_node("MatMul", [name, f"w{i}"], [f"m{i}"], name=f"matmul{i}"),
                  helper.make_node("Relu", [f"m{i}"], [f"r{i}"], name=f"relu{i}")]
        name = f"r{i}"
    nodes.append(helper.make_node("Identity", [name], ["y"]))
    return build(nodes, [tensor("x", shape=("batch", width))], [tensor("y", shape=("batch", width))], weights)


@functools.lru_cache(None)
def forever():
    """A loop of `n` turns: y = x + n."""
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "one"], ["v_out"]), helper.make_node("Identity", ["c"], ["c_out"])], "body",
        [tensor("i", TensorProto.INT64, ()), tensor("c", TensorProto.BOOL, ()), tensor("v", shape=(1,))],
        [tensor("c_out", TensorProto.BOOL, ()), tensor("v_out", shape=(1,))])
    return build([helper.make_node("Loop", ["n", "go", "x"], ["y"], body=body)],
                 [tensor("n", TensorProto.INT64, ()), tensor("x", shape=(1,))], [tensor("y", shape=(1,))],
                 {"one": np.ones(1, np.float32), "go": np.array(True)})


FOREVER = {"n": np.array(1 << 60), "x": np.zeros(1, np.float32)}
