"""Smaller models, with ONNX Runtime's entry points and option names: what `onnxruntime.quantization` is.

    >>> from plimsoll.quantization import quantize_dynamic
    >>> quantize_dynamic("model.onnx", "small.onnx")

The work is done in C++ inside a memory limit (`memory_limit`, as in "512MiB"); weights pass through little memory, and
calibration keeps a few numbers per tensor, however many samples there are.
"""
from .calibrate import CalibrationDataReader, CalibrationMethod, TensorData, TensorsData, create_calibrator
from .qdq_loss_debug import compare
from .quant_utils import QuantFormat, QuantType
from .quantize import (DynamicQuantConfig, MixedPrecision, QuantConfig, QuantizationReport, StaticQuantConfig,
                       convert_float_to_bfloat16, convert_float_to_float16, get_qdq_config, quantize, quantize_dynamic,
                       quantize_static)
from .shape_inference import quant_pre_process

__all__ = ["CalibrationDataReader", "CalibrationMethod", "DynamicQuantConfig", "MixedPrecision", "QuantConfig", "QuantFormat",
           "QuantType", "QuantizationReport", "StaticQuantConfig", "TensorData", "TensorsData", "compare",
           "convert_float_to_bfloat16", "convert_float_to_float16", "create_calibrator", "get_qdq_config", "quant_pre_process",
           "quantize", "quantize_dynamic", "quantize_static"]
