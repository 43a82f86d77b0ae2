"""quant_pre_process: what ONNX Runtime asks to be done before quantization."""
import os
from typing import Any, Optional, Union

from ._work import Model, as_path


def quant_pre_process(input_model: Optional[Model] = None,
                      output_model_path: Union[None, str, "os.PathLike[str]"] = None, skip_optimization: bool = False,
                      skip_onnx_shape: bool = False, skip_symbolic_shape: bool = False, **kwargs: Any) -> None:
    """Writes the model with constants folded. Shapes need no help: quantization infers them itself.

        >>> quant_pre_process("model.onnx", "prepared.onnx")

    `kwargs` are those of ONNX Runtime (auto_merge, int_max, ...): accepted, without effect.
    """
    model = kwargs.get("input_model_path", input_model)
    if model is None or output_model_path is None:
        raise ValueError("expected input_model and output_model_path")
    from ..enums import GraphOptimizationLevel
    from ..inference import InferenceSession
    from ..options import SessionOptions
    with as_path(model) as path:
        options = SessionOptions()
        level = GraphOptimizationLevel.ORT_DISABLE_ALL if skip_optimization else GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.graph_optimization_level = level
        options.optimized_model_filepath = os.fspath(output_model_path)
        InferenceSession(path, options)
