"""quantize_dynamic, quantize_static, quantize and their configurations."""
import json
import os
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._work import Model, work
from .calibrate import CalibrationDataReader, CalibrationMethod, calibration_options
from .quant_utils import QuantFormat, QuantType

Limit = Union[None, int, str]
Path = Union[str, "os.PathLike[str]"]

_DYNAMIC, _STATIC, _NBITS, _FLOAT16, _BFLOAT16 = range(5)
_QDQ, _QOPERATOR = 0, 1


class QuantizationReport(NamedTuple):
    """What became of a model."""

    quantized: List[Tuple[str, str, str]]  # (node, operator, what it became)
    left: List[Tuple[str, str, str]]  # likewise, with the reason
    input_bytes: int
    output_bytes: int
    peak_bytes: int  # of memory
    samples: int
    calibration_told_bytes: int
    calibration_peak_bytes: int
    ranges: Dict[str, Tuple[float, float]]
    warnings: List[str]
    layers: List[Tuple[str, str, float, float, bool]] = []  # (node, operator, SQNR, cosine, stays float), the worst first
    frontier: List[Tuple[int, int, float, bool]] = []  # candidates: (layers in floats, bytes, loss, was it written)
    told_bytes: int = 0  # of memory, before it began


class MixedPrecision(NamedTuple):
    """The layers that suffer the most stay floats until no more than `max_loss` is lost, or while the file has no more than
    `target_bytes`. The loss is what `metric` says: "sqnr", the size of the noise over that of the output; "top1", the part of
    the rows whose largest element is elsewhere; or a function of the path of a candidate, 0 where nothing is lost.

        >>> quantize_dynamic("model.onnx", "small.onnx", mixed=MixedPrecision(max_loss=0.005, calibration_data_reader=reader))
    """

    max_loss: Optional[float] = None
    target_bytes: Optional[int] = None
    metric: Union[str, Callable[[str], float]] = "sqnr"
    calibration_data_reader: Optional[CalibrationDataReader] = None

    def options(self) -> Dict[str, Any]:
        """As the engine has them."""
        if self.max_loss is None and self.target_bytes is None:
            raise ValueError("mixed precision: expected max_loss or target_bytes, found neither")
        options: Dict[str, Any] = {"max_loss": self.max_loss, "target_bytes": self.target_bytes}
        if callable(self.metric):
            options["loss"] = self.metric
        elif self.metric in ("sqnr", "top1"):
            options["metric"] = ["sqnr", "top1"].index(self.metric)
        else:
            raise ValueError(f"metric: expected 'sqnr', 'top1' or a function, found {self.metric!r}")
        return options


# ONNX Runtime's extra_options -> ours: plain ones, and what must not be asked for.
_PLAIN = {"ActivationSymmetric": "activation_symmetric", "WeightSymmetric": "weight_symmetric",
          "ActivationRestrictedAsymmetric": "activation_restricted", "ForceQuantizeNoInputCheck": "force_all",
          "MatMulConstBOnly": "constant_weights_only", "AddQDQPairToWeight": "qdq_pair_for_weights",
          "OpTypesToExcludeOutputQuantization": "output_excluded_op_types", "DedicatedQDQPair": "dedicated_qdq_pairs",
          "QDQOpTypePerChannelSupportToAxis": "per_channel_axes", "QuantizeBias": "quantize_bias",
          "UseQDQContribOps": "microsoft_qdq", "QDQKeepRemovableActivations": "keep_removable_activations",
          "BlockSize": "weight_block_size"}
_REFUSED = {"SmoothQuant": "ONNX Runtime leaves it to the package neural-compressor, and it is not here; 16-bit activations, or "
                           "mixed=MixedPrecision(...), help where activations have outliers",
            "extra.Sigmoid.nnapi": "made for NNAPI alone"}
# Without effect: memory is bounded anyway, and types are known.
_IDLE = {"CalibMaxIntermediateOutputs", "DefaultTensorType", "SmoothQuantAlpha", "SmoothQuantFolding"}
_CALIBRATION = {"CalibTensorRangeSymmetric": "symmetric", "CalibMovingAverage": "moving_average",
                "CalibMovingAverageConstant": "averaging_constant", "CalibPercentile": "percentile"}


def _extra(extra_options: Optional[Mapping[str, Any]]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Options of the engine, and those of calibration."""
    options: Dict[str, Any] = {}
    calibration: Dict[str, Any] = {}
    for key, value in (extra_options or {}).items():
        if key in _PLAIN:
            options[_PLAIN[key]] = value
        elif key in _CALIBRATION:
            calibration[_CALIBRATION[key]] = value
        elif key in ("EnableSubgraph", "CalibStridedMinMax"):
            options[key] = value
        elif key == "TensorQuantOverrides":
            options["overrides"] = dict(value or {})
        elif key == "MinimumRealRange":
            options["minimum_real_range"] = float(value or 0)
        elif key == "QDQDisableWeightAdjustForInt32Bias":
            options["adjust_weights_for_bias"] = not value
        elif key in _REFUSED:
            if value:
                raise NotImplementedError(f"extra_options[{key!r}]: {_REFUSED[key]}")
        elif key not in _IDLE:
            raise ValueError(f"extra_options: nobody knows {key!r}")
    return options, calibration


def _refuse_bodies(options: Dict[str, Any]) -> None:
    if options.pop("EnableSubgraph", False):
        raise NotImplementedError("extra_options['EnableSubgraph']: bodies of If, Loop and Scan stay floats")


class _Strides:
    """A reader that gives its samples in ranges, as CalibStridedMinMax has it: all of them, one range after the other."""

    def __init__(self, reader: Any, stride: int) -> None:
        self._reader, self._stride, self._all = reader, stride, len(reader)
        if stride < 1 or self._all % stride != 0:
            raise ValueError(f"CalibStridedMinMax: expected a divisor of {self._all} samples, found {stride}")
        self.rewind()

    def rewind(self) -> None:
        self._next = 0
        self._begin()

    def _begin(self) -> None:
        self._reader.set_range(start_index=self._next, end_index=self._next + self._stride)
        self._next += self._stride

    def get_next(self) -> Any:
        sample = self._reader.get_next()
        while sample is None and self._next < self._all:
            self._begin()
            sample = self._reader.get_next()
        return sample


def _override_range(name: str, entries: Sequence[Mapping[str, Any]], activation_type: QuantType) -> Tuple[float, float]:
    """The range that an entry of TensorQuantOverrides means. Of activations; nothing else can be overridden."""
    entry = dict(entries[0]) if len(entries) == 1 else {}
    if entry.pop("quant_type", activation_type) is not activation_type or len(entries) != 1:
        raise NotImplementedError(f"TensorQuantOverrides[{name!r}]: another type, and channels of weights, are not implemented")
    if set(entry) == {"rmin", "rmax"}:
        return float(entry["rmin"]), float(entry["rmax"])
    if set(entry) == {"scale", "zero_point"}:
        bits, is_signed = _INTEGERS[activation_type]
        least = -(1 << (bits - 1)) if is_signed else 0
        scale, zero = float(entry["scale"]), int(entry["zero_point"])
        return (least - zero) * scale, (least + (1 << bits) - 1 - zero) * scale
    raise NotImplementedError(f"TensorQuantOverrides[{name!r}]: expected rmin and rmax, or scale and zero_point, "
                              f"found {', '.join(sorted(entry)) or 'neither'}")


_INTEGERS = {QuantType.QInt8: (8, True), QuantType.QUInt8: (8, False), QuantType.QInt16: (16, True), QuantType.QUInt16: (16, False)}


def _selection(op_types: Optional[Sequence[str]], nodes: Optional[Sequence[str]], excluded: Optional[Sequence[str]],
               per_channel: bool, reduce_range: bool) -> Dict[str, Any]:
    return {"op_types": list(op_types or []), "nodes": list(nodes or []), "excluded_nodes": list(excluded or []),
            "per_channel": per_channel, "reduce_range": reduce_range}


def quantize_dynamic(model_input: Model, model_output: Path, op_types_to_quantize: Optional[Sequence[str]] = None,
                     per_channel: bool = False, reduce_range: bool = False, weight_type: QuantType = QuantType.QInt8,
                     nodes_to_quantize: Optional[Sequence[str]] = None, nodes_to_exclude: Optional[Sequence[str]] = None,
                     use_external_data_format: bool = False, extra_options: Optional[Mapping[str, Any]] = None, *,
                     memory_limit: Limit = None, mixed: Optional[MixedPrecision] = None) -> QuantizationReport:
    """Weights become integers; activations do in every run, with scales found on the way.

        >>> quantize_dynamic("model.onnx", "small.onnx", per_channel=True)

    `model_input` is a path or a ModelProto. A file above 2 GiB gets its weights beside it, whatever
    `use_external_data_format` says.
    """
    options, _ = _extra(extra_options)
    options["bodies"] = bool(options.pop("EnableSubgraph", False))
    options.pop("CalibStridedMinMax", None)
    if options.pop("overrides", None):
        raise ValueError("TensorQuantOverrides: expected static quantization")
    options.update(_selection(op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, per_channel, reduce_range),
                   mode=_DYNAMIC, weight_type=weight_type.tensor_type)
    options.update({} if mixed is None else mixed.options())
    reader = None if mixed is None else mixed.calibration_data_reader
    return QuantizationReport(**work(model_input, model_output, options, reader, memory_limit))


def quantize_static(model_input: Model, model_output: Path, calibration_data_reader: Optional[CalibrationDataReader] = None,
                    quant_format: QuantFormat = QuantFormat.QDQ, op_types_to_quantize: Optional[Sequence[str]] = None,
                    per_channel: bool = False, reduce_range: bool = False, activation_type: QuantType = QuantType.QInt8,
                    weight_type: QuantType = QuantType.QInt8, nodes_to_quantize: Optional[Sequence[str]] = None,
                    nodes_to_exclude: Optional[Sequence[str]] = None, use_external_data_format: bool = False,
                    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
                    calibration_providers: Optional[Sequence[str]] = None, extra_options: Optional[Mapping[str, Any]] = None,
                    calibration_cache_path: Optional[Path] = None, *, memory_limit: Limit = None,
                    mixed: Optional[MixedPrecision] = None) -> QuantizationReport:
    """Weights and activations become integers, with scales from samples.

        >>> quantize_static("model.onnx", "small.onnx", reader, per_channel=True, memory_limit="512MiB")

    `calibration_cache_path` is a JSON file of ranges: read if it is there, written if not.
    """
    if QuantType.QFLOAT8E4M3FN in (activation_type, weight_type) and calibrate_method is not CalibrationMethod.Distribution:
        raise ValueError("float8: expected CalibrationMethod.Distribution")
    options, calibration = _extra(extra_options)
    if quant_format is QuantFormat.QOperator:
        _refuse_bodies(options)
    options.pop("EnableSubgraph", None)  # QDQ leaves bodies alone there too
    stride = options.pop("CalibStridedMinMax", None)
    if stride and calibration_data_reader is not None:
        calibration_data_reader = _Strides(calibration_data_reader, int(stride))
    options.update(calibration_options(calibrate_method, calibration, None))
    options.update(_selection(op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, per_channel, reduce_range),
                   weight_type=weight_type.tensor_type, activation_type=activation_type.tensor_type,
                   format=_QDQ if quant_format is QuantFormat.QDQ else _QOPERATOR)
    overrides = {name: _override_range(name, entries, activation_type)
                 for name, entries in options.pop("overrides", {}).items()}
    cache = None if calibration_cache_path is None else os.fspath(calibration_cache_path)
    if cache is not None and os.path.exists(cache):
        with open(cache, encoding="utf-8") as file:
            known = json.load(file)
        if known.get("calibration_method") != calibrate_method.name:
            raise ValueError(f"{cache}: expected ranges of {calibrate_method.name}, found {known.get('calibration_method')}")
        options["ranges"] = {name: tuple(pair) for name, pair in known["ranges"].items()}
    elif calibration_data_reader is None:
        raise ValueError("expected a calibration_data_reader, or a calibration_cache_path that exists")
    from_cache = "ranges" in options
    if overrides:
        options["ranges"] = {**options.get("ranges", {}), **overrides}
    if mixed is not None:
        options.update(mixed.options())
        calibration_data_reader = calibration_data_reader or mixed.calibration_data_reader
    report = QuantizationReport(**work(model_input, model_output, options, calibration_data_reader, memory_limit))
    if cache is not None and not from_cache:
        partial = f"{cache}.partial-{os.getpid()}"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump({"calibration_method": calibrate_method.name, "ranges": report.ranges}, file)
        os.replace(partial, cache)
    return report


class QuantConfig:
    """What dynamic and static quantization have in common."""

    def __init__(self, activation_type: QuantType = QuantType.QUInt8, weight_type: QuantType = QuantType.QInt8,
                 op_types_to_quantize: Optional[Sequence[str]] = None, nodes_to_quantize: Optional[Sequence[str]] = None,
                 nodes_to_exclude: Optional[Sequence[str]] = None, per_channel: bool = False, reduce_range: bool = False,
                 use_external_data_format: bool = False) -> None:
        self.activation_type, self.weight_type = activation_type, weight_type
        self.op_types_to_quantize = list(op_types_to_quantize or [])
        self.nodes_to_quantize, self.nodes_to_exclude = list(nodes_to_quantize or []), list(nodes_to_exclude or [])
        self.per_channel, self.reduce_range = per_channel, reduce_range
        self.use_external_data_format = use_external_data_format


class StaticQuantConfig(QuantConfig):
    """For `quantize`: see quantize_static."""

    def __init__(self, calibration_data_reader: CalibrationDataReader,
                 calibrate_method: CalibrationMethod = CalibrationMethod.MinMax, quant_format: QuantFormat = QuantFormat.QDQ,
                 activation_type: QuantType = QuantType.QInt8, weight_type: QuantType = QuantType.QInt8,
                 op_types_to_quantize: Optional[Sequence[str]] = None, nodes_to_quantize: Optional[Sequence[str]] = None,
                 nodes_to_exclude: Optional[Sequence[str]] = None, per_channel: bool = False, reduce_range: bool = False,
                 use_external_data_format: bool = False, calibration_providers: Optional[Sequence[str]] = None,
                 extra_options: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(activation_type, weight_type, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, per_channel,
                         reduce_range, use_external_data_format)
        self.calibration_data_reader, self.calibrate_method = calibration_data_reader, calibrate_method
        self.quant_format, self.calibration_providers = quant_format, calibration_providers
        self.extra_options = dict(extra_options or {})


class DynamicQuantConfig(QuantConfig):
    """For `quantize`: see quantize_dynamic."""

    def __init__(self, weight_type: QuantType = QuantType.QInt8, op_types_to_quantize: Optional[Sequence[str]] = None,
                 nodes_to_quantize: Optional[Sequence[str]] = None, nodes_to_exclude: Optional[Sequence[str]] = None,
                 per_channel: bool = False, reduce_range: bool = False, use_external_data_format: bool = False,
                 extra_options: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(QuantType.QUInt8, weight_type, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, per_channel,
                         reduce_range, use_external_data_format)
        self.extra_options = dict(extra_options or {})


def quantize(model_input: Model, model_output: Path, quant_config: QuantConfig, *, memory_limit: Limit = None) -> QuantizationReport:
    """As the configuration says: a StaticQuantConfig or a DynamicQuantConfig.

        >>> quantize("model.onnx", "small.onnx", DynamicQuantConfig(per_channel=True))
    """
    if isinstance(quant_config, StaticQuantConfig):
        return quantize_static(
            model_input, model_output, quant_config.calibration_data_reader, quant_config.quant_format,
            quant_config.op_types_to_quantize, quant_config.per_channel, quant_config.reduce_range, quant_config.activation_type,
            quant_config.weight_type, quant_config.nodes_to_quantize, quant_config.nodes_to_exclude,
            quant_config.use_external_data_format, quant_config.calibrate_method, quant_config.calibration_providers,
            quant_config.extra_options, memory_limit=memory_limit)
    if isinstance(quant_config, DynamicQuantConfig):
        return quantize_dynamic(
            model_input, model_output, quant_config.op_types_to_quantize, quant_config.per_channel, quant_config.reduce_range,
            quant_config.weight_type, quant_config.nodes_to_quantize, quant_config.nodes_to_exclude,
            quant_config.use_external_data_format, quant_config.extra_options, memory_limit=memory_limit)
    raise TypeError(f"expected a StaticQuantConfig or a DynamicQuantConfig, found {type(quant_config).__name__}")


def get_qdq_config(model_input: Model, calibration_data_reader: CalibrationDataReader,
                   calibrate_method: CalibrationMethod = CalibrationMethod.MinMax, calibrate_args: Optional[Mapping[str, Any]] = None,
                   activation_type: QuantType = QuantType.QUInt8, weight_type: QuantType = QuantType.QInt8,
                   activation_symmetric: bool = False, weight_symmetric: Optional[bool] = None, per_channel: bool = False,
                   reduce_range: bool = False, keep_removable_activations: bool = False, min_real_range: Optional[float] = None,
                   tensor_quant_overrides: Optional[Mapping[str, Any]] = None, calibration_providers: Optional[Sequence[str]] = None,
                   op_types_to_quantize: Optional[Sequence[str]] = None,
                   nodes_to_exclude: Union[None, Sequence[str], Callable[[Any, Any], bool]] = None,
                   extra_options: Optional[Mapping[str, Any]] = None) -> StaticQuantConfig:
    """A configuration that quantizes all of a model with QuantizeLinear and DequantizeLinear.

        >>> quantize("model.onnx", "small.onnx", get_qdq_config("model.onnx", reader, per_channel=True))

    A `nodes_to_exclude` that is a function of (model, node) needs the package onnx.
    """
    if callable(nodes_to_exclude):
        import onnx
        model = onnx.load(os.fspath(model_input)) if isinstance(model_input, (str, os.PathLike)) else model_input
        excluded = [node.name for node in model.graph.node if nodes_to_exclude(model, node)]
    else:
        excluded = list(nodes_to_exclude or [])
    extra: Dict[str, Any] = {"MinimumRealRange": min_real_range, "QDQKeepRemovableActivations": keep_removable_activations,
                             "ActivationSymmetric": activation_symmetric, "WeightSymmetric": weight_symmetric,
                             "ForceQuantizeNoInputCheck": True, "TensorQuantOverrides": tensor_quant_overrides or {}}
    names = {"symmetric": "CalibTensorRangeSymmetric", "moving_average": "CalibMovingAverage",
             "averaging_constant": "CalibMovingAverageConstant", "percentile": "CalibPercentile"}
    for key, value in (calibrate_args or {}).items():
        extra[names.get(key, key)] = value
    extra.update(extra_options or {})
    return StaticQuantConfig(calibration_data_reader, calibrate_method, QuantFormat.QDQ, activation_type, weight_type,
                             op_types_to_quantize, None, excluded, per_channel, reduce_range, False, calibration_providers, extra)


def convert_float_to_float16(model_input: Model, model_output: Path, keep_io_types: bool = False,
                             node_block_list: Optional[Sequence[str]] = None, *, memory_limit: Limit = None) -> QuantizationReport:
    """Floats of 16 bits.

        >>> convert_float_to_float16("model.onnx", "half.onnx", keep_io_types=True)
    """
    options = {"mode": _FLOAT16, "keep_io_types": keep_io_types, "excluded_nodes": list(node_block_list or [])}
    return QuantizationReport(**work(model_input, model_output, options, None, memory_limit))


def convert_float_to_bfloat16(model_input: Model, model_output: Path, keep_io_types: bool = False,
                              node_block_list: Optional[Sequence[str]] = None, *, memory_limit: Limit = None) -> QuantizationReport:
    """Floats of 16 bits with the range of 32: for models of opset 13 and newer."""
    options = {"mode": _BFLOAT16, "keep_io_types": keep_io_types, "excluded_nodes": list(node_block_list or [])}
    return QuantizationReport(**work(model_input, model_output, options, None, memory_limit))
