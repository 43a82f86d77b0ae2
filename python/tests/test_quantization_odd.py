"""Graphs as strangers bring them: quantized in every way, they still answer, and ONNX Runtime (its Node package) answers the same."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="no python3-onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import plimsoll  # noqa: E402
from plimsoll import quantization as q  # noqa: E402
from plimsoll.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
node = helper.make_node


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def body(name, nodes, output, inputs=(), initializers=None):
    made = helper.make_graph(nodes, name, list(inputs), [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)])
    made.initializer.extend(numpy_helper.from_array(value, key) for key, value in (initializers or {}).items())
    return made


def model(nodes, shape, weights, opset=13, kind=TensorProto.FLOAT, weights_are_inputs=False):
    """From x to y."""
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    initializers = [numpy_helper.from_array(value, key) for key, value in weights.items()]
    if weights_are_inputs:
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in initializers]
    rank = len(shape)
    graph = helper.make_graph(nodes, "odd", inputs, [helper.make_tensor_value_info("y", kind, [None] * rank)], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10 if opset > 18 else 8)


def matmul_chain(opset=13, **options):
    return model([node("MatMul", ["x", "w"], ["h"], name="a"), node("Relu", ["h"], ["r"], name="r"),
                  node("MatMul", ["r", "v"], ["y"], name="b")], [5, 32], {"w": normal(32, 24), "v": normal(24, 16)}, opset, **options)


def conv(shape, weight, **attributes):
    weights = {"w": weight, "b": normal(weight.shape[0])}
    return model([node("Conv", ["x", "w", "b"], ["h"], name="c", **attributes), node("Relu", ["h"], ["y"], name="r")], shape, weights)


def constant_nodes():
    return model([node("Constant", [], ["w"], value=numpy_helper.from_array(normal(8, 3, 3, 3))),
                  node("Constant", [], ["v"], value=numpy_helper.from_array(normal(10, 12))),
                  node("Conv", ["x", "w"], ["h"], name="c"), node("MatMul", ["h", "v"], ["y"], name="m")], [2, 3, 12, 12], {})


def if_bodies():
    branches = {f"{key}_branch": body(key, [node("MatMul", ["g", f"w_{key}"], [f"h_{key}"], name=f"m_{key}"),
                                            node("Add", [f"h_{key}", "b"], [f"y_{key}"], name=f"a_{key}")],
                                      f"y_{key}", initializers={f"w_{key}": normal(8, 8, seed=i)})
                for i, key in enumerate(("then", "else"))}
    return model([node("Gather", ["table", "rows"], ["g"], name="g"), node("Constant", [], ["zero"], value_float=0.0),
                  node("ReduceSum", ["x"], ["s"], keepdims=0), node("Greater", ["s", "zero"], ["c"]),
                  node("If", ["c"], ["i"], name="if", **branches), node("MatMul", ["i", "v"], ["y"], name="v")], [4, 8],
                 {"table": normal(50, 8), "rows": np.array([3, 1, 7, 40]), "b": normal(8), "v": normal(8, 8, seed=9)})


def relu_and_if():
    branches = {f"{key}_branch": body(key, [node("Mul", ["h", f"s_{key}"], [f"y_{key}"], name=f"m_{key}")], f"y_{key}",
                                      initializers={f"s_{key}": np.float32([scale])})
                for key, scale in (("then", 2), ("else", 3))}
    return model([node("MatMul", ["x", "w"], ["h"], name="m"), node("Relu", ["h"], ["r"], name="r"),
                  node("If", ["c"], ["i"], name="if", **branches), node("Add", ["r", "i"], ["y"], name="a")], [5, 8],
                 {"w": normal(8, 8), "c": np.array(True)})


def loop_body():
    inputs = [helper.make_tensor_value_info("n", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
              helper.make_tensor_value_info("h", TensorProto.FLOAT, [3, 8])]
    made = helper.make_graph(
        [node("Identity", ["c"], ["again"]), node("MatMul", ["h", "w"], ["p"], name="p"), node("Tanh", ["p"], ["next"])], "body",
        inputs, [helper.make_tensor_value_info("again", TensorProto.BOOL, []),
                 helper.make_tensor_value_info("next", TensorProto.FLOAT, [3, 8])])
    return model([node("MatMul", ["x", "w"], ["first"], name="first"), node("Loop", ["three", "", "first"], ["y"], name="l", body=made)],
                 [3, 8], {"w": normal(8, 8), "three": np.array(3)})


def attention(mask_nodes, weights):
    """Of five rows, the later ones hidden from the earlier ones by what the nodes make "m" of the scores "s"."""
    return model([node("MatMul", ["x", "w"], ["q"], name="q"), node("Transpose", ["q"], ["k"], name="k", perm=[1, 0]),
                  node("MatMul", ["q", "k"], ["s"], name="s"), *mask_nodes, node("Softmax", ["m"], ["p"], name="p"),
                  node("MatMul", ["p", "q"], ["h"], name="h"), node("MatMul", ["h", "v"], ["y"], name="y")], [5, 16],
                 {"w": normal(16, 16) / 8, "v": normal(16, 12), **weights})


HIDDEN = np.triu(np.ones((5, 5), bool), 1)

CASES = {
    "chain": matmul_chain,
    "a mask of infinities": lambda: attention([node("Add", ["s", "mask"], ["m"], name="m")],
                                              {"mask": np.where(HIDDEN, np.float32(-np.inf), np.float32(0))}),
    "a mask that is made": lambda: attention([node("Where", ["hidden", "least", "s"], ["m"], name="m")],
                                             {"hidden": HIDDEN, "least": np.float32(-np.inf)}),
    "chain, opset 11": lambda: matmul_chain(11),
    "chain, opset 21": lambda: matmul_chain(21),
    "weights are inputs": lambda: matmul_chain(weights_are_inputs=True),
    "shared weights": lambda: model([node("MatMul", ["x", "w"], ["h"], name="a"), node("MatMul", ["h", "w"], ["i"], name="b"),
                                     node("Gemm", ["i", "w", "c"], ["j"], name="g", transB=1), node("Add", ["j", "h"], ["y"], name="s")],
                                    [5, 16], {"w": normal(16, 16) / 4, "c": normal(16)}),
    "Gemm": lambda: model([node("Gemm", ["x", "w", "c"], ["y"], name="g", transB=1, alpha=0.5, beta=2.0)], [4, 12],
                          {"w": normal(9, 12), "c": normal(9)}),
    "Gemm, transA": lambda: model([node("Gemm", ["x", "w"], ["y"], name="g", transA=1)], [12, 4], {"w": normal(12, 9)}),
    "constant on the left": lambda: model([node("MatMul", ["w", "x"], ["y"], name="m")], [12, 5], {"w": normal(7, 12)}),
    "no constant": lambda: model([node("MatMul", ["x", "x"], ["y"], name="m")], [6, 6], {}),
    "vector": lambda: model([node("MatMul", ["x", "w"], ["h"], name="m"), node("Unsqueeze", ["h", "one"], ["y"])], [5, 12],
                            {"w": normal(12), "one": np.array([1])}),
    "batched weights": lambda: model([node("MatMul", ["x", "w"], ["y"], name="m")], [3, 5, 12], {"w": normal(3, 12, 7)}),
    "tied": lambda: model([node("MatMul", ["x", "w"], ["h"], name="m"), node("Gather", ["w", "rows"], ["g"], name="g"),
                           node("Add", ["h", "g"], ["y"], name="a")], [3, 8],
                          {"w": normal(8, 8), "rows": np.array([2, 0, 5])}),
    "a weight is added": lambda: model([node("MatMul", ["x", "w"], ["h"], name="m"), node("Add", ["h", "w"], ["y"], name="a")],
                                       [8, 8], {"w": normal(8, 8)}),
    "shared bias": lambda: model([node("Conv", ["x", "w", "b"], ["h"], name="c", pads=[1, 1, 1, 1]),
                                  node("Conv", ["h", "v", "b"], ["y"], name="d")], [1, 4, 7, 7],
                                 {"w": normal(4, 4, 3, 3), "v": normal(4, 4, 1, 1) / 8, "b": 3 * normal(4)}),
    "Conv 1-D": lambda: conv([2, 4, 20], normal(6, 4, 3), pads=[1, 1]),
    "Conv 3-D": lambda: conv([1, 2, 6, 6, 6], normal(4, 2, 3, 3, 3), strides=[2, 1, 1]),
    "grouped Conv": lambda: conv([2, 8, 9, 9], normal(12, 2, 3, 3), group=4),
    "depthwise Conv": lambda: conv([1, 8, 9, 9], normal(8, 1, 3, 3), group=8, auto_pad="SAME_UPPER"),
    "Conv's weight is made": lambda: model([node("Transpose", ["w"], ["t"], perm=[1, 0, 2, 3]), node("Conv", ["x", "t"], ["y"], name="c")],
                                           [1, 3, 8, 8], {"w": normal(3, 5, 3, 3)}),
    "ConvTranspose": lambda: model([node("ConvTranspose", ["x", "w", "b"], ["y"], name="c", strides=[2, 2])], [1, 4, 5, 5],
                                   {"w": normal(4, 6, 3, 3), "b": normal(6)}),
    "weights in Constant nodes": constant_nodes,
    "If": if_bodies,
    "If uses what Relu takes": relu_and_if,
    "Loop": loop_body,
    "half floats": lambda: model([node("MatMul", ["x", "w"], ["h"], name="a"), node("Relu", ["h"], ["r"], name="r"),
                                  node("MatMul", ["r", "v"], ["y"], name="b")], [5, 32],
                                 {"w": normal(32, 24).astype(np.float16), "v": normal(24, 16).astype(np.float16)},
                                 kind=TensorProto.FLOAT16, opset=21),
    "no names": lambda: model([node("MatMul", ["x", "w"], ["h"]), node("MatMul", ["h", "v"], ["y"])], [5, 32],
                              {"w": normal(32, 24), "v": normal(24, 16)}),
    "zeros": lambda: model([node("MatMul", ["x", "w"], ["h"], name="a"), node("Add", ["h", "b"], ["y"], name="b")], [5, 32],
                           {"w": np.zeros((32, 24), np.float32), "b": normal(24)}),
}


class Reader(q.CalibrationDataReader):
    def __init__(self, shape, kind):
        self.samples = iter([{"x": normal(*shape, seed=seed).astype(kind)} for seed in range(1, 9)])

    def get_next(self):
        return next(self.samples, None)


def reader(made):
    x = made.graph.input[0].type.tensor_type
    return Reader([d.dim_value for d in x.shape.dim], np.float16 if x.elem_type == TensorProto.FLOAT16 else np.float32)


WAYS = {
    "dynamic": lambda a, b: q.quantize_dynamic(a, b),
    "dynamic, per channel": lambda a, b: q.quantize_dynamic(a, b, per_channel=True),
    "QDQ": lambda a, b: q.quantize_static(a, b, reader(a), activation_type=q.QuantType.QUInt8),
    "QDQ, per channel": lambda a, b: q.quantize_static(a, b, reader(a), per_channel=True),
    "QOperator": lambda a, b: q.quantize_static(a, b, reader(a), q.QuantFormat.QOperator, activation_type=q.QuantType.QUInt8),
}


BLOCKS = {  # of opset 21
    "QDQ, blocks": lambda a, b: q.quantize_static(a, b, reader(a), extra_options={"BlockSize": 16}),
    "QDQ, blocks of columns": lambda a, b: q.quantize_static(a, b, reader(a), per_channel=True, activation_type=q.QuantType.QUInt8,
                                                             extra_options={"BlockSize": 16}),
    "QDQ, blocks that end early": lambda a, b: q.quantize_static(a, b, reader(a), activation_type=q.QuantType.QUInt8,
                                                                 extra_options={"BlockSize": 20, "WeightSymmetric": False}),
}


def sequences(opset=13):
    value = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    made = helper.make_graph(
        [node("SequenceAt", ["s", "i"], ["e"]), node("MatMul", ["e", "w"], ["f"]), node("SequenceInsert", ["s", "f"], ["t"]),
         node("Identity", ["c"], ["again"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []), value],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []), helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)])
    return model([node("SequenceEmpty", [], ["none"]), node("SequenceInsert", ["none", "x"], ["one"]),
                  node("Loop", ["two", "", "one"], ["all"], name="l", body=made), node("ConcatFromSequence", ["all"], ["y"], axis=0)],
                 [3, 8], {"w": normal(8, 8) / 3, "two": np.array(2)}, opset)


def pairs():
    """Already quantized, its Gemm's weight too."""
    weights = {"w": np.random.default_rng(3).integers(-127, 127, (9, 12)).astype(np.int8), "ws": np.float32(0.01), "wz": np.int8(0),
               "xs": np.float32(0.03), "xz": np.uint8(128), "c": normal(9), "v": normal(9, 6)}
    return model([node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]), node("DequantizeLinear", ["xq", "xs", "xz"], ["xf"]),
                  node("DequantizeLinear", ["w", "ws", "wz"], ["wf"]), node("Gemm", ["xf", "wf", "c"], ["g"], name="g", transB=1),
                  node("MatMul", ["g", "v"], ["y"], name="m")], [4, 12], weights)


# What only some ways take.
MORE_CASES = {"sequences in a loop": sequences, "pairs": pairs}
MORE_WAYS = {"fp16": lambda a, b: q.convert_float_to_float16(a, b, keep_io_types=True), "8 bits": lambda a, b: eight_bits(a, b)}


def eight_bits(a, b):
    quantizer = MatMulNBitsQuantizer(a, block_size=16, bits=8)
    quantizer.process()
    quantizer.model.save_model_to_file(b)


PAIRS = [(case, way) for case in CASES for way in WAYS] + [("chain, opset 21", way) for way in BLOCKS]
PAIRS += [(case, way) for case in MORE_CASES for way in MORE_WAYS]
CASES |= MORE_CASES


def feed(made):
    return {"x": reader(made).get_next()["x"]}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """What ONNX Runtime says of every case in every way: (path, outputs or an error); all in one process."""
    sys.path.insert(0, str(ROOT / "tools"))
    import cases
    import onnxruntime_npm
    try:
        onnxruntime_npm.ensure()
    except onnxruntime_npm.Unavailable as problem:
        pytest.skip(str(problem))
    folder = tmp_path_factory.mktemp("odd")
    keys, jobs = [], []
    ways = {"float": lambda a, b: onnx.save(a, str(b)), **WAYS, **BLOCKS, **MORE_WAYS}
    for case, way in [*((case, "float") for case in CASES), *PAIRS]:
        made, place = CASES[case](), folder / str(len(keys))
        place.mkdir()
        ways[way](made, place / "model.onnx")
        keys.append((case, way))
        jobs.append({"model": str(place / "model.onnx"), "directory": str(place), "inputs": cases.save_raw(place, feed(made))})
    (folder / "jobs.json").write_text(json.dumps(jobs))
    done = subprocess.run(["node", ROOT / "tools/ort/cases.js", folder / "jobs.json"], env=onnxruntime_npm.environment(),
                          capture_output=True, text=True, timeout=600)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(jobs), done.stderr
    return {key: (job["model"], line) for key, job, line in zip(keys, jobs, lines)}


@pytest.mark.parametrize("case, way", PAIRS)
def test_both_answer_the_same(theirs, case, way):
    path, answer = theirs[case, way]
    assert "error" not in answer, answer["error"]
    kind = {"float32": np.float32, "float16": np.float16}[answer["outputs"][0]["type"]]
    expected = np.fromfile(answer["outputs"][0]["file"], kind).astype(np.float64)
    made = CASES[case]()
    found = plimsoll.InferenceSession(path).run(None, feed(made))[0].astype(np.float64).reshape(-1)
    floats = plimsoll.InferenceSession(theirs[case, "float"][0])
    answers = [floats.run(None, sample)[0].astype(np.float64).reshape(-1) for sample in reader(made)]  # feed(made) is the first
    real, everything = answers[0], np.concatenate([*answers, [0]])
    step = (everything.max() - everything.min()) / 255 + np.finfo(kind).eps * np.abs(everything).max()
    assert np.abs(found - expected).max() <= step, "more than a step from ONNX Runtime"
    assert np.linalg.norm(found - real) <= 0.1 * np.linalg.norm(real), "less than 20 dB from the floats"
