"""MatMulNBitsQuantizer: weights of MatMul in blocks of 2, 4 or 8 bits."""
import os
import shutil
import tempfile
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from ._work import Model, work
from .quant_utils import QuantFormat
from .quantize import MixedPrecision, QuantizationReport

OpTypes = Optional[Sequence[str]]
Axes = Optional[Sequence[Tuple[str, int]]]


class WeightOnlyQuantConfig:
    """What all algorithms have in common."""

    def __init__(self, algorithm: str, quant_format: QuantFormat, op_types_to_quantize: OpTypes = None, quant_axes: Axes = None,
                 customized_weight_config: Optional[Dict[str, Any]] = None) -> None:
        if customized_weight_config:
            raise NotImplementedError("customized_weight_config: not implemented")
        self.algorithm, self.quant_format = algorithm, quant_format
        self.op_types_to_quantize = set(op_types_to_quantize or ["MatMul"])
        self.quant_axes = dict(quant_axes or [("MatMul", 0), ("Gather", 1)])


class DefaultWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Each block by its least and its largest weight."""

    def __init__(self, block_size: int = 128, is_symmetric: bool = False, accuracy_level: Optional[int] = None,
                 quant_format: QuantFormat = QuantFormat.QOperator, op_types_to_quantize: OpTypes = None, quant_axes: Axes = None,
                 bits: int = 4, channel_wised_quantize: bool = False) -> None:
        if channel_wised_quantize:
            raise NotImplementedError("channel_wised_quantize: not implemented")
        super().__init__("DEFAULT", quant_format, op_types_to_quantize, quant_axes)
        self.block_size, self.is_symmetric, self.accuracy_level, self.bits = block_size, is_symmetric, accuracy_level, bits


class RTNWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Round to nearest: the same as the default here."""

    def __init__(self, ratios: Optional[Dict[str, float]] = None, quant_format: QuantFormat = QuantFormat.QOperator,
                 op_types_to_quantize: OpTypes = None, customized_weight_config: Optional[Dict[str, Any]] = None) -> None:
        if ratios:
            raise NotImplementedError("ratios: not implemented")
        super().__init__("RTN", quant_format, op_types_to_quantize, None, customized_weight_config)


class HQQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Half-quadratic quantization: zero points that are floats, found without samples."""

    def __init__(self, block_size: int = 128, bits: int = 4, axis: int = 1, quant_format: QuantFormat = QuantFormat.QOperator,
                 op_types_to_quantize: OpTypes = None, quant_axes: Axes = None) -> None:
        super().__init__("HQQ", quant_format, op_types_to_quantize, quant_axes)
        self.block_size, self.bits, self.axis = block_size, bits, axis


class GPTQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Rounding that makes up for itself on samples: what a row of a weight loses, the rows behind it take over. The sums that
    this takes are of the square of the weight's rows; under `memory_limit` they are made for few weights at a time, with a
    pass over the samples each.

        >>> MatMulNBitsQuantizer("model.onnx", algo_config=GPTQWeightOnlyQuantConfig(reader), memory_limit="1GiB").process()
    """

    def __init__(self, calibration_data_reader: Any = None, percdamp: float = 0.01, block_size: int = 128, actorder: bool = False,
                 mse: bool = False, perchannel: bool = True, quant_format: QuantFormat = QuantFormat.QOperator,
                 op_types_to_quantize: OpTypes = None) -> None:
        if calibration_data_reader is None:
            raise ValueError("GPTQ: expected a calibration_data_reader, found none")
        if actorder or mse or not perchannel:
            raise NotImplementedError("actorder, mse and perchannel=False: not implemented")
        if quant_format is QuantFormat.QDQ:
            raise NotImplementedError("GPTQ with QuantFormat.QDQ: not implemented")
        super().__init__("GPTQ", quant_format, op_types_to_quantize)
        self.calibration_data_reader, self.percdamp, self.block_size = calibration_data_reader, percdamp, block_size


class QuantizedModel:
    """A model that was made, in a file that goes with it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="plimsoll-nbits-")
        self.path = os.path.join(self._folder.name, "model.onnx")

    def save_model_to_file(self, output_path: Union[str, "os.PathLike[str]"], use_external_data_format: bool = False) -> None:
        """Copies it there: beside first, then by a rename."""
        target = os.fspath(output_path)
        partial = f"{target}.partial-{os.getpid()}"
        try:
            shutil.copyfile(self.path, partial)
            os.replace(partial, target)
        finally:
            if os.path.exists(partial):
                os.unlink(partial)

    @property
    def model(self) -> Any:
        """As a ModelProto; needs the package onnx."""
        import onnx
        return onnx.load(self.path)


class MatMulNBitsQuantizer:
    """ONNX Runtime's class.

        >>> quantizer = MatMulNBitsQuantizer("model.onnx", bits=4, block_size=32, op_types_to_quantize=("MatMul", "Gather"))
        >>> quantizer.process()
        >>> quantizer.model.save_model_to_file("small.onnx")
    """

    def __init__(self, model: Model, block_size: int = 128, is_symmetric: bool = False, accuracy_level: Optional[int] = None,
                 nodes_to_exclude: Optional[Sequence[str]] = None, nodes_to_include: Optional[Sequence[str]] = None,
                 quant_format: QuantFormat = QuantFormat.QOperator, op_types_to_quantize: OpTypes = None, quant_axes: Axes = None,
                 channel_wised_quantize: bool = False, algo_config: Optional[WeightOnlyQuantConfig] = None, bits: int = 4, *,
                 memory_limit: Union[None, int, str] = None, mixed: Optional[MixedPrecision] = None) -> None:
        self._source, self._limit, self._mixed = model, memory_limit, mixed
        self.nodes_to_exclude, self.nodes_to_include = list(nodes_to_exclude or []), list(nodes_to_include or [])
        self.algo_config = algo_config or DefaultWeightOnlyQuantConfig(
            block_size, is_symmetric, accuracy_level, quant_format, op_types_to_quantize, quant_axes, bits, channel_wised_quantize)
        self.block_size = getattr(self.algo_config, "block_size", block_size)
        self.bits = getattr(self.algo_config, "bits", bits)
        self.is_symmetric = getattr(self.algo_config, "is_symmetric", is_symmetric)
        self.accuracy_level = getattr(self.algo_config, "accuracy_level", accuracy_level)
        self.model = QuantizedModel()
        self.report: Optional[QuantizationReport] = None

    def process(self) -> None:
        """Does the work; `model` is the result, `report` tells what became of it."""
        config = self.algo_config
        options: Dict[str, Any] = {"mode": 2, "op_types": sorted(config.op_types_to_quantize), "nodes": self.nodes_to_include,
                   "excluded_nodes": self.nodes_to_exclude, "bits": self.bits, "block_size": self.block_size,
                   "symmetric": self.is_symmetric, "accuracy_level": int(self.accuracy_level or 0),
                   "hqq": config.algorithm == "HQQ", "format": 0 if config.quant_format is QuantFormat.QDQ else 1}
        reader = None if self._mixed is None else self._mixed.calibration_data_reader
        if isinstance(config, GPTQWeightOnlyQuantConfig):
            options.update(gptq=True, gptq_damping=config.percdamp)
            reader = config.calibration_data_reader
        options.update({} if self._mixed is None else self._mixed.options())
        self.report = QuantizationReport(**work(self._source, self.model.path, options, reader, self._limit))
