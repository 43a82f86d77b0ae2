"""Where a quantized model differs: `compare`, in bounded memory, and ONNX Runtime's functions, which keep every activation.

    >>> compare("model.onnx", "small.onnx", reader).values[0]  # the worst
"""
import math
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from .._units import parse_bytes
from ._work import Model, Reader, as_path

DEQUANTIZED, QUANTIZE_INPUT = "_DequantizeLinear_Output", "_QuantizeLinear_Input"
_SAVED = "_ReshapedSavedOutput"  # as ONNX Runtime calls what it saves


class Difference(NamedTuple):
    """How far a value of the first model is from its counterpart in the second, over all samples."""

    name: str
    other: str  # what it is called in the second
    node: str
    op_type: str
    is_output: bool
    elements: int
    not_finite: int  # NaN or infinite in one model alone; left out of the rest
    unlike_shapes: int  # samples whose shapes differ; likewise
    sqnr: float  # decibels; inf: no difference
    cosine: float
    largest_distance: float
    rows: int  # along the last axis
    same_top: int  # of them: the largest element is at the same place


class Comparison(NamedTuple):
    """What `compare` found, the worst ratio of signal to noise first."""

    values: List[Difference]
    samples: int
    told_bytes: int
    peak_bytes: int


def compare(first: Model, second: Model, reader: Any, *, memory_limit: Union[None, int, str] = None, outputs_only: bool = False,
            each_by_itself: bool = False, level: int = 0) -> Comparison:
    """Runs two models in lockstep on a CalibrationDataReader's samples, in no more memory than both plans.

    With `each_by_itself` the second model's nodes get the first model's values, so that each difference is what the nodes in
    between lose for themselves. `level` is that of optimization, 0 to 3: fusions remove values.
    """
    from .. import _engine
    limit = 0 if memory_limit is None else parse_bytes(memory_limit, "memory_limit")
    with as_path(first) as a, as_path(second) as b:
        found = _engine.compare(a, b, Reader(reader, False), limit, outputs_only, each_by_itself, level)
    found["values"] = [Difference(**value) for value in found["values"]]
    return Comparison(**found)


def compute_signal_to_quantization_noice_ratio(x: Union[Sequence[np.ndarray], np.ndarray],
                                               y: Union[Sequence[np.ndarray], np.ndarray]) -> float:
    """In decibels, of arrays or lists of them. The name is ONNX Runtime's."""
    if isinstance(x, np.ndarray) != isinstance(y, np.ndarray) or (not isinstance(x, np.ndarray) and len(x) != len(y)):
        raise RuntimeError("expected equally many arrays on both sides")
    left = np.concatenate([np.ravel(part) for part in ([x] if isinstance(x, np.ndarray) else x)]).astype(np.float64)
    right = np.concatenate([np.ravel(part) for part in ([y] if isinstance(y, np.ndarray) else y)]).astype(np.float64)
    tiny = np.finfo("float").eps
    signal, noise = max(float(np.linalg.norm(left)), tiny), max(float(np.linalg.norm(left - right)), tiny)
    return 20 * math.log10(signal / noise)


def modify_model_output_intermediate_tensors(input_model_path: Union[str, "os.PathLike[str]"],
                                             output_model_path: Union[str, "os.PathLike[str]"],
                                             op_types_for_saving: Optional[Sequence[str]] = None,
                                             save_as_external_data: bool = False) -> None:
    """Writes the model with every float that goes into or comes out of its nodes as an output. Needs the package onnx."""
    import onnx
    model = onnx.load(os.fspath(input_model_path))
    constants = {tensor.name for tensor in model.graph.initializer}
    names = []
    for node in model.graph.node:
        if op_types_for_saving and node.op_type not in op_types_for_saving:
            continue
        names += [name for name in [*node.input, *node.output] if name and name not in constants]
    known = {value.name: value for value in [*onnx.shape_inference.infer_shapes(model).graph.value_info, *model.graph.input,
                                             *model.graph.output]}
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
    for name in dict.fromkeys(names):
        if name in known and known[name].type.tensor_type.elem_type in floats:
            saved = name + _SAVED
            model.graph.node.append(onnx.helper.make_node("Identity", [name], [saved]))
            model.graph.output.append(onnx.helper.make_tensor_value_info(saved, known[name].type.tensor_type.elem_type, None))
    onnx.save(model, os.fspath(output_model_path), save_as_external_data=save_as_external_data)


def collect_activations(augmented_model: Model, input_reader: Any, session_options: Any = None,
                        execution_providers: Optional[Sequence[str]] = None) -> Dict[str, List[np.ndarray]]:
    """Runs a model that `modify_model_output_intermediate_tensors` made and keeps all that comes out: for small models."""
    from ..inference import InferenceSession
    with as_path(augmented_model) as path:
        session = InferenceSession(path, session_options)
        names = [output.name for output in session.get_outputs() if output.name.endswith(_SAVED)]
        found: Dict[str, List[np.ndarray]] = {name[:-len(_SAVED)]: [] for name in names}
        reader = Reader(input_reader, False)
        for sample in iter(reader.next, None):
            for name, value in zip(names, session.run(names, sample)):
                found[name[:-len(_SAVED)]].append(value)
    return found


def create_activation_matching(qdq_activations: Dict[str, Sequence[np.ndarray]],
                               float_activations: Optional[Dict[str, Sequence[np.ndarray]]] = None
                               ) -> Dict[str, Dict[str, Sequence[np.ndarray]]]:
    """By the float model's names: `pre_qdq`, `post_qdq` and, where it is given, `float`."""
    matched: Dict[str, Dict[str, Sequence[np.ndarray]]] = {}
    for name, after in qdq_activations.items():
        if name.endswith(QUANTIZE_INPUT):
            before, original = name, name[:-len(QUANTIZE_INPUT)]
            after = qdq_activations.get(original, [])
        elif name.endswith(DEQUANTIZED):
            original = before = name[:-len(DEQUANTIZED)]
        else:
            continue
        if before not in qdq_activations or not after:
            continue
        matched[original] = {"pre_qdq": qdq_activations[before], "post_qdq": after}
        if float_activations is not None and original in float_activations:
            matched[original]["float"] = float_activations[original]
    return matched


def compute_activation_error(activations_match: Dict[str, Dict[str, Sequence[np.ndarray]]],
                             err_func: Callable[[Any, Any], float] = compute_signal_to_quantization_noice_ratio
                             ) -> Dict[str, Dict[str, float]]:
    """`qdq_err`: what quantizing a value loses; `xmodel_err`: how far it is from the float model's."""
    errors = {}
    for name, match in activations_match.items():
        errors[name] = {"qdq_err": err_func(match["pre_qdq"], match["post_qdq"])}
        if match.get("float"):
            errors[name]["xmodel_err"] = err_func(match["float"], match["post_qdq"])
    return errors


def create_weight_matching(float_model_path: Union[str, "os.PathLike[str]"],
                           qdq_model_path: Union[str, "os.PathLike[str]"]) -> Dict[str, Dict[str, np.ndarray]]:
    """By the weight's name: `float` and `dequantized`. Needs the package onnx."""
    import onnx
    floats = {tensor.name: tensor for tensor in onnx.load(os.fspath(float_model_path)).graph.initializer}
    quantized = onnx.load(os.fspath(qdq_model_path))
    made = {tensor.name: tensor for tensor in quantized.graph.initializer}
    axes = {node.input[0]: next((a.i for a in node.attribute if a.name == "axis"), 1)
            for node in quantized.graph.node if node.op_type == "DequantizeLinear"}
    matched = {}
    for name, tensor in floats.items():
        parts = [made.get(name + suffix) for suffix in ("_quantized", "_scale", "_zero_point")]
        if parts[0] is None or parts[1] is None:
            continue
        numbers, scale = (onnx.numpy_helper.to_array(part).astype(np.float64) for part in parts[:2])
        zero = onnx.numpy_helper.to_array(parts[2]).astype(np.float64) if parts[2] is not None else np.zeros_like(scale)
        if scale.size > 1:
            shape = [1] * numbers.ndim
            shape[axes.get(name + "_quantized", 1)] = scale.size
            scale, zero = scale.reshape(shape), zero.reshape(shape)
        else:
            scale, zero = scale.reshape(()), zero.reshape(())
        matched[name] = {"float": onnx.numpy_helper.to_array(tensor), "dequantized": ((numbers - zero) * scale).astype(np.float32)}
    return matched


def compute_weight_error(weights_match: Dict[str, Dict[str, np.ndarray]],
                         err_func: Callable[[Any, Any], float] = compute_signal_to_quantization_noice_ratio) -> Dict[str, float]:
    """Of every weight: by default its ratio of signal to noise."""
    return {name: err_func(match["float"], match["dequantized"]) for name, match in weights_match.items()}
