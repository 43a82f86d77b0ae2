"""Module: the training and evaluation models, on the parameters of a CheckpointState."""
import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

import numpy as np
import onnx

from ...errors import InvalidArgument
from ...inference import InferenceSession
from ...options import SessionOptions
from ...values import OrtValue
from ..onnxblock._training import trains
from ._checkpoint import CheckpointState

Path = Union[str, "os.PathLike[str]"]
_MICROSOFT, _TRAINING = "com.microsoft", "ai.onnx.preview.training"
_BUFFER, _LAZY_RESET = "_grad.accumulation.buffer", "lazy_reset_grad"


def read_model(path: Path) -> Any:
    """A model without its weights' bytes in memory twice; what is no model is an Error of ours."""
    from google.protobuf.message import DecodeError
    try:
        return onnx.load(os.fspath(path))
    except DecodeError as error:
        raise InvalidArgument(f"{os.fspath(path)}: expected an ONNX model: {error}") from None


class _Runner:
    """A session whose parameters are bound once."""

    def __init__(self, model: Any, places: Dict[str, Any], outputs: Dict[str, Any], options: Optional[SessionOptions]) -> None:
        self._session = InferenceSession(model.SerializeToString(), options)
        self._binding = self._session.io_binding()
        known = {value.name for value in self._session.get_inputs()}
        self.inputs = [value.name for value in self._session.get_inputs() if value.name not in places]
        self.outputs = [value.name for value in self._session.get_outputs() if value.name not in outputs]
        self._kept = [places, outputs]  # bound by their addresses
        for name, array in places.items():
            if name in known:
                self._binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(array))
        for name, array in outputs.items():
            self._binding.bind_ortvalue_output(name, OrtValue.ortvalue_from_numpy(array))

    def run(self, given: Sequence[Any]) -> List[OrtValue]:
        if len(given) != len(self.inputs):
            raise InvalidArgument(f"expected {len(self.inputs)} inputs ({', '.join(self.inputs)}), found {len(given)}")
        for name, value in zip(self.inputs, given):
            if isinstance(value, OrtValue):
                self._binding.bind_ortvalue_input(name, value)
            else:
                self._binding.bind_cpu_input(name, np.asarray(value))
        for name in self.outputs:
            self._binding.bind_output(name)
        self._session.run_with_iobinding(self._binding)
        made = dict(zip(self._binding._iobinding.output_names(), self._binding.get_outputs()))
        return [made[name] for name in self.outputs]


def _needed(nodes: Iterable[Any], wanted: Iterable[str]) -> Tuple[List[Any], Set[str]]:
    """Those of the nodes, which are in an order in which they run, that these values need, and all values that they read."""
    needed, kept = set(wanted), []
    for node in reversed(list(nodes)):
        if needed & set(node.output):
            kept.insert(0, node)
            needed |= set(node.input)
    return kept, needed


def _differentiated(model: Any) -> Any:
    """A training model whose gradients ONNX Runtime made, of its own operators: its forward part, differentiated here."""
    sums = [node for node in model.graph.node if node.op_type == "InPlaceAccumulatorV2"]
    if not sums or not any(node.domain == _MICROSOFT and node.op_type.endswith("Grad") for node in model.graph.node):
        return model
    outputs = [output.name for output in model.graph.output if not output.name.endswith("_grad.accumulation.out")]
    forward, _ = _needed(model.graph.node, outputs)
    names = [node.input[0][:-len(_BUFFER)] for node in sums]
    gradient = onnx.helper.make_node("Gradient", names, [node.input[1] for node in sums], name="gradient", domain=_TRAINING,
                                     xs=names, y=outputs[0])
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend([*forward, gradient, *sums])
    del copy.graph.value_info[:]
    if all(item.domain != _TRAINING for item in copy.opset_import):
        copy.opset_import.append(onnx.helper.make_opsetid(_TRAINING, 1))
    return copy


def _accumulated(model: Any) -> Tuple[Any, List[str]]:
    """The model with the sums of gradients as outputs too, and the names of the parameters that they are of."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    trained = []
    kept = [output for output in copy.graph.output if not output.name.endswith("_grad.accumulation.out")]
    inputs = {value.name: value for value in copy.graph.input}
    for node in copy.graph.node:
        if node.op_type != "InPlaceAccumulatorV2":
            continue
        name = node.input[0][:-len(_BUFFER)]
        trained.append(name)
        output = onnx.ValueInfoProto()
        output.CopyFrom(inputs[node.input[0]])
        output.name = f"{name}_grad.accumulation.sum"
        del node.output[1:]
        node.output.append(output.name)
        kept.append(output)
    del copy.graph.output[:]
    copy.graph.output.extend(kept)
    return copy, trained


def _with_statistics(model: Any, places: Dict[str, Any]) -> Dict[str, Any]:
    """Gives the model the next values of running statistics as outputs: where they go, by output. One that several nodes
    change is changed by each in turn."""
    latest: Dict[str, str] = {}
    for node in model.graph.node:
        if not trains(node) or any(name not in places for name in node.input[3:5]):
            continue
        node.output.extend([""] * (3 - len(node.output)))
        for i, name in ((1, node.input[3]), (2, node.input[4])):
            node.output[i] = node.output[i] or f"{latest.get(name, name)}.next"
            node.input[i + 2] = latest.get(name, name)
            latest[name] = node.output[i]
    declared = {value.name: value for value in model.graph.input}
    for name, following in latest.items():
        output = onnx.ValueInfoProto()
        output.CopyFrom(declared[name])
        output.name = following
        model.graph.output.append(output)
    return {following: places[name] for name, following in latest.items()}


class Module:
    """A model in training: calls run a step forward and backward, or an evaluation.

        >>> module = Module("training_model.onnx", state, "eval_model.onnx")
        >>> loss = module(x, labels)

    Gradients are added up from call to call until lazy_reset_grad(). BatchNormalization that trains changes its running
    statistics, which are parameters without a gradient, with every call.
    """

    def __init__(self, train_model_uri: Path, state: CheckpointState, eval_model_uri: Optional[Path] = None, device: str = "cpu",
                 session_options: Optional[SessionOptions] = None) -> None:
        if not isinstance(state, CheckpointState):
            raise TypeError(f"state: expected CheckpointState, found {type(state).__name__}")
        if not device.startswith("cpu"):
            raise InvalidArgument(f"device: expected cpu, found '{device}'")
        self.training = True
        self._state = state
        model, self._trained = _accumulated(_differentiated(read_model(train_model_uri)))
        parameters = self._parameters(model)
        for name in self._trained:
            if name not in parameters:
                raise InvalidArgument(f"checkpoint: expected the parameter '{name}', which the model trains; found none")
        self._reset = np.ones(1, np.bool_)
        self._gradients = {name: np.zeros_like(state._arrays[name]) for name in self._trained}
        state._gradients = self._gradients
        places = {**parameters, _LAZY_RESET: self._reset, **{name + _BUFFER: array for name, array in self._gradients.items()}}
        sums = {f"{name}_grad.accumulation.sum": array for name, array in self._gradients.items()}  # in the buffers themselves
        sums.update(_with_statistics(model, parameters))  # likewise
        self._order = list(parameters)
        self._train = _Runner(model, places, sums, session_options)
        self._eval: Optional[_Runner] = None
        self._eval_model: Any = None
        if eval_model_uri is not None:
            self._eval_model = read_model(eval_model_uri)
            self._eval = _Runner(self._eval_model, self._parameters(self._eval_model), {}, session_options)

    def _parameters(self, model: Any) -> Dict[str, Any]:
        found = {}
        for value in model.graph.input:
            array = self._state._arrays.get(value.name)
            if array is None:
                continue
            shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            if list(array.shape) != shape:
                raise InvalidArgument(f"parameter '{value.name}': expected the model's shape {shape}, found {list(array.shape)} in the checkpoint")
            found[value.name] = array
        return found

    def __call__(self, *user_inputs: Any) -> Any:
        """The loss, and what else the model gives: arrays, or OrtValues where those were given."""
        runner = self._train if self.training else self._eval
        if runner is None:
            raise InvalidArgument("evaluation: expected an eval model, found none: give Module its eval_model_uri")
        results: List[Any] = runner.run(user_inputs)
        if self.training:
            self._reset[0] = False
        if not any(isinstance(value, OrtValue) for value in user_inputs):
            results = [value.numpy() for value in results]
        return results[0] if len(results) == 1 else tuple(results)

    def train(self, mode: bool = True) -> "Module":
        """Calls train from now on, or evaluate."""
        self.training = mode
        return self

    def eval(self) -> "Module":
        """Calls evaluate from now on."""
        return self.train(False)

    def lazy_reset_grad(self) -> None:
        """The next step's gradients take the place of those before."""
        self._reset[0] = True

    def input_names(self) -> List[str]:
        """What a call takes, in its order."""
        return list(self._runner().inputs)

    def output_names(self) -> List[str]:
        """What a call gives, in its order."""
        return list(self._runner().outputs)

    def _runner(self) -> _Runner:
        if self.training:
            return self._train
        if self._eval is None:
            raise InvalidArgument("evaluation: expected an eval model, found none: give Module its eval_model_uri")
        return self._eval

    def _arrays(self, trainable_only: bool) -> List[Any]:
        return [self._state._arrays[name] for name in self._order if not trainable_only or name in self._gradients]

    def get_parameters_size(self, trainable_only: bool = True) -> int:
        """Elements of all parameters together."""
        return sum(array.size for array in self._arrays(trainable_only))

    def get_contiguous_parameters(self, trainable_only: bool = False) -> OrtValue:
        """A copy of all parameters, one behind the other, in the order of the training model's inputs."""
        arrays = [array.ravel() for array in self._arrays(trainable_only)]
        return OrtValue.ortvalue_from_numpy(np.concatenate(arrays) if arrays else np.zeros(0, np.float32))

    def copy_buffer_to_parameters(self, buffer: OrtValue, trainable_only: bool = True) -> None:
        """The other way round."""
        flat, arrays = buffer.numpy().ravel(), self._arrays(trainable_only)
        wanted = sum(array.size for array in arrays)
        if flat.size != wanted:
            raise InvalidArgument(f"buffer: expected {wanted} elements, found {flat.size}")
        at = 0
        for array in arrays:
            array[...] = flat[at:at + array.size].reshape(array.shape)
            at += array.size

    def export_model_for_inferencing(self, inference_model_uri: Path, graph_output_names: Sequence[str]) -> None:
        """Writes the evaluation model up to these outputs, with the parameters as they are now.

            >>> module.export_model_for_inferencing("trained.onnx", ["scores"])
        """
        if self._eval_model is None:
            raise InvalidArgument("export_model_for_inferencing: expected an eval model, found none")
        onnx.save(_cut(self._eval_model, list(graph_output_names), self._state._arrays), os.fspath(inference_model_uri))


def _cut(model: Any, outputs: List[str], arrays: Dict[str, Any]) -> Any:
    """The part of the model that makes these outputs."""
    made = {name for node in model.graph.node for name in node.output}
    for name in outputs:
        if name not in made:
            raise InvalidArgument(f"export_model_for_inferencing: there is no value '{name}' in the model")
    nodes, needed = _needed(model.graph.node, outputs)
    typed = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
    typed.update((value.name, value) for value in model.graph.output)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for field in ("node", "input", "output", "initializer", "value_info"):
        del getattr(copy.graph, field)[:]
    copy.graph.node.extend(nodes)
    copy.graph.input.extend(value for value in model.graph.input if value.name in needed and value.name not in arrays)
    copy.graph.output.extend(typed.get(name) or onnx.ValueInfoProto(name=name) for name in outputs)
    copy.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in needed)
    copy.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items() if name in needed)
    return copy
