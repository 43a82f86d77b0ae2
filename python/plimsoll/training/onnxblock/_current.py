"""The model that blocks write into."""
import contextlib
import contextvars
from typing import Any, Iterator

import onnx

_MODEL: "contextvars.ContextVar[Any]" = contextvars.ContextVar("model")


def current() -> Any:
    """The model of the innermost `with onnxblock.base(model):`."""
    try:
        return _MODEL.get()
    except LookupError:
        raise RuntimeError("a block is called inside `with onnxblock.base(model):` or `with onnxblock.empty_base():`") from None


@contextlib.contextmanager
def base(model: Any) -> Iterator[Any]:
    """Blocks that are called inside add to a copy of this model; the given one stays as it is.

        >>> with onnxblock.base(onnx.load("model.onnx")) as copy:
        ...     block("scores")
    """
    if not isinstance(model, onnx.ModelProto):
        raise TypeError(f"onnxblock.base: expected an onnx.ModelProto, found {type(model).__name__}")
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    token = _MODEL.set(copy)
    try:
        yield copy
    finally:
        _MODEL.reset(token)


@contextlib.contextmanager
def empty_base(opset_version: int = 17) -> Iterator[Any]:
    """The same with a model that has nothing in it.

        >>> with onnxblock.empty_base():
        ...     optimizer(parameters)
    """
    model = onnx.ModelProto()
    model.ir_version = 8
    model.producer_name = "plimsoll"
    model.graph.name = "graph"
    model.opset_import.append(onnx.helper.make_opsetid("", opset_version))
    with base(model) as copy:
        yield copy


def import_domain(model: Any, domain: str, version: int = 1) -> None:
    if all(item.domain != domain for item in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(domain, version))


def new_name(model: Any, token: str) -> str:
    """One that nothing in the model has."""
    taken = {name for node in model.graph.node for name in (node.name, *node.output)}
    taken |= {value.name for values in (model.graph.input, model.graph.initializer, model.graph.output) for value in values}
    number = 0
    while f"{token}.{number}" in taken:
        number += 1
    return f"{token}.{number}"


def exists(model: Any, name: str) -> bool:
    return any(value.name == name for values in (model.graph.input, model.graph.initializer) for value in values) or \
        any(name in node.output for node in model.graph.node)


def value_info(model: Any, name: str) -> Any:
    """Type and shape of a value of the graph, by inference where nobody declared them."""
    for values in (model.graph.output, model.graph.input, model.graph.value_info):
        for value in values:
            if value.name == name:
                return value
    for tensor in model.graph.initializer:
        if tensor.name == name:
            return onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims))
    for value in onnx.shape_inference.infer_shapes(model).graph.value_info:
        if value.name == name:
            return value
    raise LookupError(f"there is no value '{name}' whose type is known")
