"""plimsoll.quantization: ONNX Runtime's entry points."""
import pathlib
import re

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="no python3-onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import plimsoll  # noqa: E402
from plimsoll import quantization as q  # noqa: E402
from plimsoll.quantization import matmul_nbits_quantizer as nbits  # noqa: E402
from plimsoll.quantization import qdq_loss_debug as debug  # noqa: E402


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"], name="first"), helper.make_node("Relu", ["h"], ["r"], name="relu"),
         helper.make_node("MatMul", ["r", "v"], ["y"], name="second")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])],
        [numpy_helper.from_array(rng.standard_normal((64, 96)).astype(np.float32), "w"),
         numpy_helper.from_array(rng.standard_normal((96, 32)).astype(np.float32), "v")])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


class Reader(q.CalibrationDataReader):
    def __init__(self, count, change=None):
        self.count, self.at, self.change = count, 0, change

    def get_next(self):
        if self.at == self.count:
            return None
        self.at += 1
        sample = {"x": np.random.default_rng(self.at).standard_normal((4, 64)).astype(np.float32)}
        return self.change(sample) if self.change else sample


def answer(path):
    x = np.random.default_rng(99).standard_normal((8, 64)).astype(np.float32)
    return plimsoll.InferenceSession(str(path)).run(None, {"x": x})[0]


def decibels(expected, found):
    return 10 * np.log10((expected ** 2).sum() / ((expected - found) ** 2).sum())


def test_dynamic(model, tmp_path):
    report = q.quantize_dynamic(model, tmp_path / "out.onnx", per_channel=True)
    assert [became for _, _, became in report.quantized] == ["MatMulInteger"] * 2
    assert decibels(answer(model), answer(tmp_path / "out.onnx")) > 32
    q.quantize_dynamic(onnx.load(str(model)), str(tmp_path / "proto.onnx"), per_channel=True)
    assert (tmp_path / "proto.onnx").read_bytes() == (tmp_path / "out.onnx").read_bytes()


@pytest.mark.parametrize("method", list(q.CalibrationMethod))
@pytest.mark.parametrize("format", list(q.QuantFormat))
def test_static(model, tmp_path, method, format):
    report = q.quantize_static(model, tmp_path / "out.onnx", Reader(8), format, calibrate_method=method,
                               activation_type=q.QuantType.QUInt8, per_channel=True)
    assert report.samples == 8 and report.calibration_peak_bytes <= report.calibration_told_bytes
    assert set(report.ranges) == {"x", "h", "r", "y"}
    assert decibels(answer(model), answer(tmp_path / "out.onnx")) > 20


def test_the_names_of_qdq(model, tmp_path):
    q.quantize_static(model, tmp_path / "out.onnx", Reader(2))
    made = onnx.load(str(tmp_path / "out.onnx"))
    outputs = {name for node in made.graph.node for name in node.output}
    assert {"x_QuantizeLinear_Output", "x_DequantizeLinear_Output", "w_DequantizeLinear_Output", "y_QuantizeLinear_Input"} <= outputs
    assert {"w_quantized", "w_scale", "w_zero_point", "x_scale", "x_zero_point"} <= {i.name for i in made.graph.initializer}
    assert "Relu" not in {node.op_type for node in made.graph.node}  # the range of what follows stands for it


def test_memory_is_the_same_for_more_samples(model, tmp_path):
    peaks = [q.quantize_static(model, tmp_path / "out.onnx", Reader(count)).peak_bytes for count in (10, 500)]
    assert peaks[0] == peaks[1]


def test_a_cache_of_ranges(model, tmp_path):
    q.quantize_static(model, tmp_path / "a.onnx", Reader(3), calibration_cache_path=tmp_path / "ranges.json")
    q.quantize_static(model, tmp_path / "b.onnx", None, calibration_cache_path=tmp_path / "ranges.json")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    with pytest.raises(ValueError, match="MinMax"):
        q.quantize_static(model, tmp_path / "b.onnx", None, calibrate_method=q.CalibrationMethod.Entropy,
                          calibration_cache_path=tmp_path / "ranges.json")


def test_configurations(model, tmp_path):
    q.quantize(model, tmp_path / "a.onnx", q.DynamicQuantConfig(per_channel=True))
    q.quantize(model, tmp_path / "b.onnx", q.get_qdq_config(model, Reader(2), nodes_to_exclude=lambda _, node: node.name == "first"))
    nodes = [node for node in onnx.load(str(tmp_path / "b.onnx")).graph.node if node.name == "first"]
    assert list(nodes[0].input) == ["x", "w"]
    with pytest.raises(TypeError):
        q.quantize(model, tmp_path / "c.onnx", q.QuantConfig())


@pytest.mark.parametrize("config", [None, nbits.HQQWeightOnlyQuantConfig(block_size=16), nbits.RTNWeightOnlyQuantConfig()])
def test_blocks_of_bits(model, tmp_path, config):
    quantizer = nbits.MatMulNBitsQuantizer(str(model), block_size=16, bits=4, algo_config=config)
    quantizer.process()
    quantizer.model.save_model_to_file(tmp_path / "out.onnx")
    assert [became for _, _, became in quantizer.report.quantized] == ["MatMulNBits"] * 2
    assert decibels(answer(model), answer(tmp_path / "out.onnx")) > 14


def gptq_config(count):
    return nbits.GPTQWeightOnlyQuantConfig(Reader(count), block_size=16)


def test_gptq(model, tmp_path):
    quantizer = nbits.MatMulNBitsQuantizer(str(model), algo_config=gptq_config(60))
    quantizer.process()
    quantizer.model.save_model_to_file(tmp_path / "out.onnx")
    assert quantizer.report.samples == 60
    assert 0 < quantizer.report.calibration_peak_bytes <= quantizer.report.calibration_told_bytes
    assert decibels(answer(model), answer(tmp_path / "out.onnx")) > 14
    with pytest.raises(ValueError, match="calibration_data_reader"):
        nbits.GPTQWeightOnlyQuantConfig()
    with pytest.raises(ValueError, match="sample"):
        nbits.MatMulNBitsQuantizer(str(model), algo_config=gptq_config(0)).process()
    with pytest.raises(plimsoll.BudgetExceeded, match="would do is \\d+"):
        nbits.MatMulNBitsQuantizer(str(model), algo_config=gptq_config(3), memory_limit=300_000).process()
    least = nbits.MatMulNBitsQuantizer(str(model), block_size=16)
    least.process()
    with pytest.raises(plimsoll.BudgetExceeded, match="smallest that would do"):
        nbits.MatMulNBitsQuantizer(str(model), algo_config=gptq_config(3), memory_limit=least.report.peak_bytes + 40_000).process()


def test_compare(model, tmp_path):
    q.quantize_static(model, tmp_path / "small.onnx", Reader(4))
    found = q.compare(model, tmp_path / "small.onnx", Reader(5))
    assert found.samples == 5 and 0 < found.peak_bytes <= found.told_bytes
    worst_first = [value.sqnr for value in found.values]
    assert worst_first == sorted(worst_first) and worst_first[0] > 20
    output = next(value for value in found.values if value.is_output)
    assert output.name == "y" and output.elements == 5 * 4 * 32 and output.node == "second"
    alone = q.compare(model, tmp_path / "small.onnx", Reader(5), outputs_only=True)
    assert [value.name for value in alone.values] == ["y"] and alone.values[0].sqnr == pytest.approx(output.sqnr)
    with pytest.raises(KeyError, match="mine"):
        q.compare(model, tmp_path / "small.onnx", Reader(5, raising))


# What ONNX Runtime's functions find from all activations is what the comparison in lockstep finds.
def test_qdq_loss_debug(model, tmp_path):
    small = tmp_path / "small.onnx"
    q.quantize_static(model, small, Reader(4), extra_options={"QDQKeepRemovableActivations": True})
    activations = []
    for path in (model, small):
        debug.modify_model_output_intermediate_tensors(path, tmp_path / "augmented.onnx")
        activations.append(debug.collect_activations(tmp_path / "augmented.onnx", Reader(3)))
    matched = debug.create_activation_matching(activations[1], activations[0])
    errors = debug.compute_activation_error(matched)
    assert {"x", "h", "r", "y"} <= set(errors)
    lockstep = {value.name: value.sqnr for value in q.compare(model, small, Reader(3)).values}
    for name in ("h", "r", "y"):
        assert errors[name]["xmodel_err"] == pytest.approx(lockstep[name], abs=0.01)
    weights = debug.create_weight_matching(model, small)
    assert set(weights) == {"w", "v"} and min(debug.compute_weight_error(weights).values()) > 30


def test_mixed_precision(model, tmp_path):
    out = tmp_path / "out.onnx"
    losses = []

    def loss(path):
        losses.append(decibels(answer(model), answer(path)))
        return 0.0 if losses[-1] > 42 else 1.0

    mixed = q.MixedPrecision(max_loss=0.5, metric=loss, calibration_data_reader=Reader(3))
    report = q.quantize_dynamic(model, out, mixed=mixed)
    assert len(losses) == len(report.frontier) > 1
    assert sum(stays for *_, stays in report.layers) >= 1 and decibels(answer(model), answer(out)) > 42
    smallest = q.quantize_dynamic(model, out).output_bytes
    mixed = q.MixedPrecision(target_bytes=smallest, calibration_data_reader=Reader(3))
    assert q.quantize_dynamic(model, out, mixed=mixed).output_bytes <= smallest
    with pytest.raises(ValueError, match="neither"):
        q.quantize_dynamic(model, out, mixed=q.MixedPrecision())
    with pytest.raises(KeyError, match="mine"):
        q.quantize_dynamic(model, tmp_path / "never.onnx", mixed=mixed._replace(max_loss=0.1, metric=raising))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "out.onnx"]


def test_halves(model, tmp_path):
    q.convert_float_to_float16(model, tmp_path / "out.onnx", keep_io_types=True)
    assert decibels(answer(model), answer(tmp_path / "out.onnx")) > 50


def test_calibrator(model):
    calibrator = q.create_calibrator(model, ["MatMul"])
    with pytest.raises(ValueError):
        calibrator.compute_data()
    calibrator.collect_data(Reader(2))
    first = calibrator.compute_data()["x"].range_value
    calibrator.collect_data(Reader(9))
    second = calibrator.compute_data()["x"].range_value
    assert second[0] <= first[0] and second[1] >= first[1]
    with pytest.raises(ValueError, match="nonsense"):
        q.create_calibrator(model, extra_options={"nonsense": 1})


def raising(sample):
    raise KeyError("mine")


@pytest.mark.parametrize("change, error, words", [
    (raising, KeyError, "mine"),
    (lambda sample: [sample], TypeError, "dict"),
    (lambda sample: {"x": sample["x"] * np.nan}, ValueError, "NaN"),
    (lambda sample: {"x": sample["x"] + np.inf}, ValueError, "NaN"),
    (lambda sample: {"x": sample["x"][:, :3]}, ValueError, "sample 0"),
    (lambda sample: {"z": sample["x"]}, ValueError, "'z'"),
    (lambda sample: None, ValueError, "at least one sample"),
])
def test_bad_readers(model, tmp_path, change, error, words):
    with pytest.raises(error, match=words):
        q.quantize_static(model, tmp_path / "out.onnx", Reader(3, change))
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_shapes_that_stop_to_fit(model, tmp_path):
    seen = []

    def change(sample):
        seen.append(sample)
        return sample if len(seen) < 3 else {"x": sample["x"][:, :5]}

    with pytest.raises(ValueError, match="sample 2"):
        q.quantize_static(model, tmp_path / "out.onnx", Reader(4, change))
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_bad_options(model, tmp_path):
    out = tmp_path / "out.onnx"
    with pytest.raises(plimsoll.BudgetExceeded, match=r"\d"):
        q.quantize_static(model, out, Reader(2), memory_limit=20_000)
    with pytest.raises(ValueError, match="Nonsense"):
        q.quantize_dynamic(model, out, extra_options={"Nonsense": True})
    with pytest.raises(NotImplementedError, match="SmoothQuant"):
        q.quantize_static(model, out, Reader(2), extra_options={"SmoothQuant": True})
    with pytest.raises(ValueError, match="signed"):
        q.quantize_static(model, out, Reader(2), weight_type=q.QuantType.QUInt8)
    with pytest.raises(plimsoll.BudgetExceeded, match="smallest that would do"):
        q.quantize_dynamic(model, out, memory_limit=4096)
    q.quantize_dynamic(model, out)
    with pytest.raises(ValueError, match="quantized"):
        q.quantize_dynamic(out, tmp_path / "again.onnx")


def test_keys_of_extra_options(model, tmp_path):
    """Those that mean something only in one format, and those that are refused by name."""
    out = tmp_path / "out.onnx"
    with pytest.raises(NotImplementedError, match="EnableSubgraph"):
        q.quantize_static(model, out, Reader(2), q.QuantFormat.QOperator, activation_type=q.QuantType.QUInt8,
                          extra_options={"EnableSubgraph": True})
    with pytest.raises(ValueError, match="opset 21"):
        q.quantize_static(model, out, Reader(2), extra_options={"BlockSize": 16})
    assert not out.exists()
    q.quantize_static(model, out, Reader(2), extra_options={"EnableSubgraph": True, "CalibMaxIntermediateOutputs": 3})
    q.quantize_dynamic(model, out, extra_options={"EnableSubgraph": False, "SmoothQuant": False})


@pytest.mark.parametrize("inside", [False, True])
def test_bodies_in_dynamic_mode(inside, tmp_path):
    """EnableSubgraph: a product in a branch of If."""
    def branch(name):
        weight = numpy_helper.from_array(np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32), f"W_{name}")
        return helper.make_graph([helper.make_node("MatMul", ["x", f"W_{name}"], [name])], name, [],
                                 [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4])], [weight])

    graph = helper.make_graph(
        [helper.make_node("If", ["b"], ["y"], then_branch=branch("yes"), else_branch=branch("no"))], "g",
        [helper.make_tensor_value_info("b", TensorProto.BOOL, []), helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])])
    source, out = tmp_path / "if.onnx", tmp_path / "out.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(source))
    q.quantize_dynamic(source, out, extra_options={"EnableSubgraph": inside})
    kinds = [node.op_type for attribute in onnx.load(str(out)).graph.node[0].attribute for node in attribute.g.node]
    assert ("MatMulInteger" in kinds) is inside
    feeds = {"b": np.array(True), "x": np.random.default_rng(2).normal(size=(2, 8)).astype(np.float32)}
    near = [plimsoll.InferenceSession(str(path)).run(None, feeds)[0] for path in (source, out)]
    assert np.allclose(*near, atol=0.1)


def test_blocks_of_weights(model, tmp_path):
    """A scale for every 40 rows of a column; the last block has fewer."""
    made, out = onnx.load(str(model)), tmp_path / "out.onnx"
    made.opset_import[0].version = 21
    made.ir_version = 10
    q.quantize_static(made, out, Reader(2), extra_options={"BlockSize": 40})
    found = {tensor.name: tensor for tensor in onnx.load(str(out)).graph.initializer}
    weight = next(numpy_helper.to_array(tensor) for tensor in made.graph.initializer if tensor.name == "w")
    scales = np.stack([np.abs(block).max(0).astype(np.float64) * 2 / 254 for block in (weight[:40], weight[40:])]).astype(np.float32)
    np.testing.assert_array_equal(numpy_helper.to_array(found["w_scale"]), scales)
    numbers = np.clip(np.rint(weight / np.repeat(scales, 40, 0)[:64]), -128, 127)
    np.testing.assert_array_equal(numpy_helper.to_array(found["w_quantized"]), numbers)
    assert list(found["w_zero_point"].dims) == [2, 96] and not numpy_helper.to_array(found["w_zero_point"]).any()
    with pytest.raises(ValueError, match="found operators on integers"):
        q.quantize_static(made, out, Reader(2), q.QuantFormat.QOperator, activation_type=q.QuantType.QUInt8,
                          extra_options={"BlockSize": 40})


def test_strides(model, tmp_path):
    """A reader that gives ranges of its samples: all of them are seen, as often as they are gone through."""
    class Ranges(Reader):
        def __len__(self):
            return self.count

        def set_range(self, start_index, end_index):
            self.at, self.end = start_index, end_index

        def get_next(self):
            return None if self.at == self.end else super().get_next()

    for method in (q.CalibrationMethod.MinMax, q.CalibrationMethod.Percentile):
        whole, parts = (q.quantize_static(model, tmp_path / "out.onnx", reader, calibrate_method=method, extra_options=extra)
                        for reader, extra in ((Reader(6), {}), (Ranges(6), {"CalibStridedMinMax": 2})))
        assert whole.samples == parts.samples == 6 and whole.ranges == parts.ranges
    with pytest.raises(ValueError, match="divisor of 6"):
        q.quantize_static(model, tmp_path / "out.onnx", Ranges(6), extra_options={"CalibStridedMinMax": 4})


def test_overrides_of_activations(model, tmp_path):
    out = tmp_path / "out.onnx"

    def made(entry):
        q.quantize_static(model, out, Reader(2), activation_type=q.QuantType.QUInt8,
                          extra_options={"TensorQuantOverrides": {"x": [entry]}})
        numbers = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(str(out)).graph.initializer}
        return float(numbers["x_scale"]), int(numbers["x_zero_point"])

    assert made({"rmin": -1.0, "rmax": 1.55}) == (pytest.approx(0.01), 100)
    assert made({"scale": 0.02, "zero_point": 30}) == (pytest.approx(0.02), 30)
    for entry in ({"quant_type": q.QuantType.QInt16}, {"reduce_range": True}):
        with pytest.raises(NotImplementedError, match="'x'"):
            made(entry)


def wrong_with(path):
    """What ONNX's checker has against it, types of every value included (ONNX has none of what the oldest Cast makes)."""
    has_old_cast = any(i.version < 6 for i in onnx.load(str(path)).opset_import if i.domain == "") and b"Cast" in pathlib.Path(path).read_bytes()
    try:
        onnx.checker.check_model(str(path), full_check=not has_old_cast)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("keep_io_types", [False, True])
@pytest.mark.parametrize("convert", [q.convert_float_to_float16, q.convert_float_to_bfloat16])
def test_sixteen_bits_stay_onnx(tmp_path, convert, keep_io_types):
    """Of every case of ONNX's own operators what is written is ONNX again: each operator has those types in its opset."""
    cases = sorted(pathlib.Path("/usr/share/libonnx-testdata/data/node").glob("*/model.onnx"))
    if not cases:
        pytest.skip("no libonnx-testdata")
    out, converted, wrong = tmp_path / "out.onnx", 0, []
    for path in cases:
        if wrong_with(path):  # of types that came later, or with holes of its own
            continue
        try:
            convert(str(path), str(out), keep_io_types=keep_io_types)
        except plimsoll.Error as error:
            assert re.search("opset 13|is sequence|is optional", str(error)), f"{path}: {error}"
            continue
        converted += 1
        message = wrong_with(out)
        if message:
            wrong.append(f"{path.parent.name}: {message}")
        names = [node.name for node in onnx.load(str(out)).graph.node]
        if len(set(names)) < len(names):  # which ONNX Runtime refuses
            wrong.append(f"{path.parent.name}: nodes of one name")
    assert converted > 600
    assert not wrong


@pytest.fixture
def half_model(tmp_path):
    """Floats of 16 bits in opset 17, whose QuantizeLinear takes none; what stays wide is used twice."""
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["h"], name="narrow", to=TensorProto.FLOAT16),
         helper.make_node("MatMul", ["h", "w"], ["m"], name="product"),
         helper.make_node("Cast", ["m"], ["y"], name="wide", to=TensorProto.FLOAT)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])],
        [numpy_helper.from_array(np.random.default_rng(0).standard_normal((64, 32)).astype(np.float16), "w")])
    path = tmp_path / "half.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def test_static_of_halves(half_model, tmp_path):
    out = tmp_path / "out.onnx"
    q.quantize_static(half_model, out, Reader(4))
    assert {node.domain for node in onnx.load(str(out)).graph.node if node.op_type.endswith("uantizeLinear")} == {"com.microsoft"}
    assert decibels(answer(half_model), answer(out)) > 30
    q.quantize_static(half_model, out, Reader(4), quant_format=q.QuantFormat.QOperator)  # whose scales are of 32 bits
    assert [node.op_type for node in onnx.load(str(out)).graph.node] == ["Cast", "MatMul", "Cast"]


def test_updates_that_add_up_stay_wide(tmp_path):
    """ONNX Runtime has no half form of ScatterElements that adds."""
    scatter = [helper.make_node("ScatterElements", ["x", "i", "x"], [name], name=name, axis=0, reduction=reduction)
               for name, reduction in (("t", "add"), ("u", "none"))]
    graph = helper.make_graph(scatter, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2]),
                                             helper.make_tensor_value_info("i", TensorProto.INT64, [2, 2])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "tu"])
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8), str(path))
    report = q.convert_float_to_float16(path, out)
    assert [name for name, *_ in report.quantized] == ["u"]


def test_what_stays_wide_is_widened_once(tmp_path):
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("TopK", ["a", "k"], ["t", "i"]), helper.make_node("TopK", ["a", "k"], ["u", "j"], largest=0)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 2]) for name in "tu"],
                              [numpy_helper.from_array(np.array([2], np.int64), "k")])
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    q.convert_float_to_float16(path, out, keep_io_types=True)
    names = [node.name for node in onnx.load(str(out)).graph.node if node.op_type == "Cast"]
    assert names.count("a_wide_cast") == 1
    assert len(set(names)) == len(names)
    onnx.checker.check_model(str(out), full_check=True)
