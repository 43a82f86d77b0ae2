"""Optimizer and its schedule."""
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import onnx

from ...errors import InvalidArgument, NotImplementedYet
from ...options import SessionOptions
from ._module import Module, Path, _Runner, read_model

_OURS, _MICROSOFT = "ai.plimsoll", "com.microsoft"
_NO_CORRECTION = 1 << 40  # a step after which nothing is left to correct


def _attributes(node: Any) -> Dict[str, Any]:
    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def _tensor_type(array: Any) -> int:
    if hasattr(onnx.helper, "np_dtype_to_tensor_dtype"):
        return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
    return int(onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[array.dtype])


class _Unrolled:
    """The optimizer's graph with a node for every parameter instead of one on sequences: what it changes is changed in
    place, and its memory is planned."""

    def __init__(self, model: Any, names: List[str], arrays: Dict[str, Any]) -> None:
        kinds = {"AdamWOptimizer": 2, "SGDOptimizerV2": 0}
        nodes = [node for node in model.graph.node if node.op_type in kinds]
        if len(nodes) != 1:
            raise NotImplementedYet(f"optimizer model: expected one AdamWOptimizer or SGDOptimizerV2, found {len(nodes)}")
        node, self.moments = nodes[0], kinds[nodes[0].op_type]
        adam = node.op_type == "AdamWOptimizer"
        make = onnx.helper.make_tensor_value_info
        self._nodes: List[Any] = []
        self._constants: List[Any] = []
        inputs, outputs = [make("learning_rate", onnx.TensorProto.FLOAT, [1]), make("step", onnx.TensorProto.INT64, [1])], []
        step = "step"
        if adam and not _attributes(node).get("correct_bias", 1):
            step = self._constant("no_correction", np.array([_NO_CORRECTION], np.int64))
        kinds_of = {name: _tensor_type(arrays[name]) for name in names}
        inputs += [make(f"{name}_grad", kinds_of[name], list(arrays[name].shape)) for name in names]
        gradients = self._clipped(model.graph, node.input[3 if adam else 2], [f"{name}_grad" for name in names])
        for name, gradient in zip(names, gradients):
            states = [name, *(f"{name}.momentum{i}" for i in range(self.moments))]
            for state in states:
                inputs.append(make(state, kinds_of[name], list(arrays[name].shape)))
                outputs.append(make(f"{state}.next", kinds_of[name], list(arrays[name].shape)))
            self._nodes.append(onnx.helper.make_node(
                "UpdateAdam" if adam else "UpdateSgd", [name, gradient, "learning_rate", step, "", "", *states[1:]],
                [f"{state}.next" for state in states], name=f"update/{name}", domain=_OURS, **self._settings(node, adam)))
        graph = onnx.helper.make_graph(self._nodes, "updates", inputs, outputs, self._constants)
        opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(_MICROSOFT, 1), onnx.helper.make_opsetid(_OURS, 1)]
        self.model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def _constant(self, name: str, array: Any) -> str:
        self._constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def _clipped(self, graph: Any, sequence: str, gradients: List[str]) -> List[str]:
        """What the sequence that the optimizer takes is made of: the gradients, or those that are clipped together."""
        if any(value.name == sequence for value in graph.input):
            return gradients
        clip = next((node for node in graph.node if sequence in node.output), None)
        if clip is None or clip.op_type != "InplaceClipGradNorm":
            raise NotImplementedYet("optimizer model: expected gradients as they come in, or from InplaceClipGradNorm, "
                                    f"found '{clip.op_type if clip else sequence}'")
        inner = self._clipped(graph, clip.input[0], gradients)
        label = f"clip/{sequence}"
        number = lambda name, value: self._constant(f"{label}/{name}", np.array([value], np.float32))  # noqa: E731
        norm, more, share, factor = (f"{label}/{name}" for name in ("norm", "norm_and_epsilon", "share", "factor"))
        self._nodes += [
            onnx.helper.make_node("ReduceAllL2", inner, [norm], domain=_MICROSOFT),
            onnx.helper.make_node("Add", [norm, number("epsilon", 1e-6)], [more]),
            onnx.helper.make_node("Div", [number("max_norm", _attributes(clip).get("max_norm", 1.0)), more], [share]),
            onnx.helper.make_node("Min", [share, number("one", 1.0)], [factor])]
        clipped = [f"{label}/{name}" for name in inner]
        self._nodes += [onnx.helper.make_node("Mul", [name, factor], [result]) for name, result in zip(inner, clipped)]
        return clipped

    @staticmethod
    def _settings(node: Any, adam: bool) -> Dict[str, Any]:
        if not adam:
            return {}
        given = _attributes(node)
        return {"beta1": given.get("alpha", 0.9), "beta2": given.get("beta", 0.999), "epsilon": given.get("epsilon", 1e-8),
                "weight_decay": given.get("weight_decay", 0.0), "decay_mode": 2 if given.get("adam_mode", 0) == 1 else 1}


class Optimizer:
    """Updates the parameters of a Module by the gradients that it has.

        >>> optimizer = Optimizer("optimizer_model.onnx", module)
        >>> optimizer.step()
    """

    def __init__(self, optimizer_uri: Path, module: Module, session_options: Optional[SessionOptions] = None) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"module: expected Module, found {type(module).__name__}")
        state, names = module._state, module._trained
        unrolled = _Unrolled(read_model(optimizer_uri), names, state._arrays)
        places: Dict[str, Any] = {f"{name}_grad": module._gradients[name] for name in names}
        changed: Dict[str, Any] = {}
        for name in names:
            moments = state._moments.setdefault(name, [None, None])
            for i in range(unrolled.moments):
                if moments[i] is None:
                    moments[i] = np.zeros_like(state._arrays[name])
                elif moments[i].shape != state._arrays[name].shape:
                    raise InvalidArgument(f"checkpoint: moment {i} of '{name}': expected shape {list(state._arrays[name].shape)}, "
                                          f"found {list(moments[i].shape)}")
                changed[f"{name}.momentum{i}"] = moments[i]
            changed[name] = state._arrays[name]
        self._step = int(state._properties.get("plimsoll.step", 0)) + 1
        self._rate = np.array([state._properties.get("plimsoll.rate", 1e-3)], np.float32)
        self._number = np.array([self._step], np.int64)
        places.update(changed, learning_rate=self._rate, step=self._number)
        self._runner = _Runner(unrolled.model, places, {f"{name}.next": array for name, array in changed.items()}, session_options)
        state._optimizer = self

    def step(self) -> None:
        """Updates the parameters and moments in place. Gradients stay: module.lazy_reset_grad() begins anew."""
        self._number[0] = self._step
        self._runner.run([])
        self._step += 1

    def set_learning_rate(self, learning_rate: float) -> None:
        """From now on."""
        if not np.isfinite(learning_rate) or learning_rate < 0:
            raise InvalidArgument(f"learning rate: expected a finite number of at least 0, found {learning_rate}")
        self._rate[0] = learning_rate

    def get_learning_rate(self) -> float:
        """As it is now."""
        return float(self._rate[0])


class LinearLRScheduler:
    """From 0 up to the initial rate in `warmup_step_count` steps, then down to 0 at `total_step_count`.

        >>> scheduler = LinearLRScheduler(optimizer, 100, 1000, 1e-3)
        >>> scheduler.step()                       # after optimizer.step()
    """

    def __init__(self, optimizer: Optimizer, warmup_step_count: int, total_step_count: int, initial_lr: float) -> None:
        if warmup_step_count < 0 or total_step_count < warmup_step_count:
            raise InvalidArgument(f"LinearLRScheduler: expected 0 <= warmup <= total steps, found {warmup_step_count} and {total_step_count}")
        self._optimizer, self._counts, self._initial, self._step = optimizer, (warmup_step_count, total_step_count), initial_lr, 0
        self._apply()

    def step(self) -> None:
        """The rate of the next step."""
        self._step += 1
        self._apply()

    def _apply(self) -> None:
        warmup, total = self._counts
        if self._step < warmup:
            factor = self._step / warmup
        else:
            factor = max(0, total - self._step) / max(1, total - warmup)
        self._optimizer.set_learning_rate(self._initial * factor)


__all__: Tuple[str, ...] = ("LinearLRScheduler", "Optimizer")
