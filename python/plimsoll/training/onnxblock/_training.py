"""Blocks that make whole models: forward, and with gradients."""
import os
from typing import Any, List, Optional, Sequence, Set, Tuple, Union

import onnx

from . import blocks
from ._current import current, import_domain, value_info

TRAINING = "ai.onnx.preview.training"
LAZY_RESET = "lazy_reset_grad"


def _set_outputs(model: Any, names: Union[str, Sequence[str]]) -> List[str]:
    wanted = [names] if isinstance(names, str) else list(names)
    values = []
    for name in wanted:
        value = onnx.ValueInfoProto()
        value.CopyFrom(value_info(model, name))
        values.append(value)
    del model.graph.output[:]
    model.graph.output.extend(values)
    return wanted


class ForwardBlock(blocks.Block):
    """A block whose build() gives the outputs of a model that only runs forward."""

    def __init__(self) -> None:
        super().__init__()
        self._model: Any = None

    def to_model_proto(self) -> Any:
        """The model."""
        if self._model is None:
            raise RuntimeError("the forward model is built by calling the block first")
        return self._model

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.base = current()
        output = self.build(*args, **kwargs)
        _set_outputs(self.base, output)
        onnx.checker.check_model(self.base)
        self._model = onnx.ModelProto()
        self._model.CopyFrom(self.base)
        return output


class TrainingBlock(blocks.Block):
    """A block whose build() gives the loss, and perhaps outputs behind it: the model is differentiated from there.

    Inputs of the training model are the user's, then parameters, then a buffer for each gradient,
    `<p>_grad.accumulation.buffer`, then `lazy_reset_grad`; outputs are the user's, then a flag for each gradient.
    """

    def __init__(self) -> None:
        super().__init__()
        self._trained: Set[str] = set()
        self._frozen: Set[str] = set()
        self._parameters: Optional[Tuple[List[Any], List[Any]]] = None
        self._models: Optional[Tuple[Any, Any]] = None

    def requires_grad(self, argument_name: str, value: bool = True) -> None:
        """Whether a parameter is trained. Those of which nothing is said stay constants."""
        (self._trained if value else self._frozen).add(argument_name)
        (self._frozen if value else self._trained).discard(argument_name)

    def parameters(self) -> Tuple[List[Any], List[Any]]:
        """Those that are trained, and those that are frozen, as tensors."""
        if self._parameters is None:
            raise RuntimeError("parameters are known when the block has been called")
        return self._parameters

    def to_model_proto(self) -> Tuple[Any, Any]:
        """The model for training, and the one for evaluation."""
        if self._models is None:
            raise RuntimeError("the training model is built by calling the block first")
        return self._models

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.base = current()
        output = self.build(*args, **kwargs)
        outputs = _set_outputs(self.base, output)
        onnx.checker.check_model(self.base)
        self._frozen |= running_statistics(self.base) - self._trained
        self._parameters = self._take_parameters()
        evaluated = onnx.ModelProto()
        evaluated.CopyFrom(self.base)
        _stop_training(evaluated)
        self._add_gradients(outputs[0])
        trained = onnx.ModelProto()
        trained.CopyFrom(self.base)
        self._models = trained, evaluated
        return output

    def _take_parameters(self) -> Tuple[List[Any], List[Any]]:
        """Parameters become inputs."""
        graph, kept = self.base.graph, []
        found: Tuple[List[Any], List[Any]] = ([], [])
        inputs = {value.name for value in graph.input}
        for tensor in graph.initializer:
            copy = onnx.TensorProto()
            copy.CopyFrom(tensor)
            if tensor.name not in self._trained | self._frozen:
                kept.append(copy)
                continue
            found[tensor.name in self._frozen].append(copy)
            if tensor.name not in inputs:
                graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        missing = self._trained - {tensor.name for tensor in found[0]}
        if missing:
            raise RuntimeError(f"requires_grad: expected initializers of the model, found '{sorted(missing)[0]}'")
        del graph.initializer[:]
        graph.initializer.extend(kept)
        return found

    def _add_gradients(self, loss: str) -> None:
        assert self._parameters is not None
        graph, make = self.base.graph, onnx.helper.make_tensor_value_info
        names = [tensor.name for tensor in self._parameters[0]]
        if names:
            graph.node.append(onnx.helper.make_node("Gradient", names, [f"{name}_grad" for name in names], name="gradient",
                                                    domain=TRAINING, xs=names, y=loss))
        import_domain(self.base, TRAINING)
        import_domain(self.base, blocks.MICROSOFT)
        for number, tensor in enumerate(self._parameters[0]):
            gradient = f"{tensor.name}_grad"
            graph.node.append(onnx.helper.make_node(
                "InPlaceAccumulatorV2", [f"{gradient}.accumulation.buffer", gradient, LAZY_RESET], [f"{gradient}.accumulation.out"],
                name=f"GradientAccumulator{number}", domain=blocks.MICROSOFT))
            graph.input.append(make(f"{gradient}.accumulation.buffer", tensor.data_type, list(tensor.dims)))
            graph.output.append(make(f"{gradient}.accumulation.out", onnx.TensorProto.BOOL, [1]))
        graph.input.append(make(LAZY_RESET, onnx.TensorProto.BOOL, [1]))


def trains(node: Any) -> bool:
    """Whether it is a BatchNormalization that takes the batch's statistics."""
    return node.op_type == "BatchNormalization" and any(a.name == "training_mode" and a.i for a in node.attribute)


def running_statistics(model: Any) -> Set[str]:
    """Initializers that training changes without a gradient: they go where parameters are."""
    known = {tensor.name for tensor in model.graph.initializer}
    return {name for node in model.graph.node if trains(node) for name in node.input[3:5] if name in known}


def _stop_training(model: Any) -> None:
    """Dropout drops nothing, BatchNormalization takes the running statistics."""
    for node in model.graph.node:
        if node.op_type == "Dropout" and len(node.input) > 2:
            node.input[2] = ""
        if node.op_type == "BatchNormalization":
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0
            del node.output[1:]


def save_checkpoint(parameters: Tuple[Sequence[Any], Sequence[Any]], path: Union[str, "os.PathLike[str]"]) -> None:
    """Writes parameters, as TrainingBlock.parameters() gives them, as a checkpoint.

        >>> onnxblock.save_checkpoint(block.parameters(), "checkpoint")
    """
    from ... import _engine
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensors in parameters for tensor in tensors}
    _engine.save_checkpoint(os.fspath(path), arrays, {})


def load_checkpoint_to_model(path: Union[str, "os.PathLike[str]"], model: Any) -> None:
    """Initializers of the model get the values that a checkpoint has for them.

        >>> onnxblock.load_checkpoint_to_model("checkpoint", model)
    """
    from ... import _engine
    arrays, _ = _engine.load_checkpoint(os.fspath(path))
    for tensor in model.graph.initializer:
        if tensor.name in arrays:
            tensor.CopyFrom(onnx.numpy_helper.from_array(arrays[tensor.name], tensor.name))
