"""Optimizers as graphs of their own: inputs are the rate, the number of the step, and sequences of parameters, gradients and
moments; the one output tells that it was done. Parameters and moments are changed where they are."""
from typing import Any, Optional, Sequence, Tuple

import onnx

from . import blocks
from ._current import import_domain


class ClipGradNorm(blocks.Block):
    """All gradients times what brings their norm to at most `max_norm`."""

    def __init__(self, max_norm: float) -> None:
        super().__init__()
        self._max_norm = max_norm

    def build(self, gradients_name: str) -> Any:
        """The name of the sequence of clipped gradients."""
        import_domain(self.base, blocks.MICROSOFT)
        clipped = self.node("InplaceClipGradNorm", [gradients_name], domain=blocks.MICROSOFT, max_norm=float(self._max_norm))
        self.base.graph.value_info.append(onnx.helper.make_tensor_sequence_value_info(clipped, onnx.TensorProto.FLOAT, None))
        return clipped


class AdamWOptimizer(blocks.Block):
    """The node of AdamW: decay after the step, as Hugging Face has it."""

    def __init__(self, bias_correction: bool = True, betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-6,
                 weight_decay: float = 0.0) -> None:
        super().__init__()
        self._attributes = {"alpha": betas[0], "beta": betas[1], "epsilon": eps, "weight_decay": weight_decay,
                            "correct_bias": int(bias_correction), "adam_mode": 1}

    def build(self, learning_rate_name: str, step_name: str, parameter_sequence_name: str, gradient_sequence_name: str,
              first_order_moment_sequence_name: str, second_order_moment_sequence_name: str) -> Any:
        """The name of the flag."""
        import_domain(self.base, blocks.MICROSOFT)
        return self.node("AdamWOptimizer", [learning_rate_name, step_name, parameter_sequence_name, gradient_sequence_name,
                                            first_order_moment_sequence_name, second_order_moment_sequence_name],
                         domain=blocks.MICROSOFT, **self._attributes)


class SGDOptimizer(blocks.Block):
    """The node of plain gradient descent."""

    def build(self, learning_rate_name: str, parameter_sequence_name: str, gradient_sequence_name: str) -> Any:
        """The name of the flag."""
        import_domain(self.base, blocks.MICROSOFT)
        return self.node("SGDOptimizerV2", [learning_rate_name, parameter_sequence_name, gradient_sequence_name],
                         domain=blocks.MICROSOFT)


class _OptimizerModel(blocks.Block):
    """A model with nothing else in it; `parameters` are what TrainingBlock.parameters() gives."""

    def __init__(self, clip_grad: Optional[ClipGradNorm]) -> None:
        super().__init__()
        self._clip, self._model = clip_grad, None

    def to_model_proto(self) -> Any:
        """The model."""
        if self._model is None:
            raise RuntimeError("the optimizer's model is built by calling the block with the parameters first")
        return self._model

    def _inputs(self, parameters: Tuple[Sequence[Any], Sequence[Any]], moments: Sequence[str]) -> str:
        """The inputs that ONNX Runtime asks for, in its order; the name of the gradients to use."""
        graph, trained = self.base.graph, parameters[0]
        if not trained:
            raise RuntimeError("an optimizer needs a parameter that is trained, found none")
        graph.input.append(onnx.helper.make_tensor_value_info("learning_rate", onnx.TensorProto.FLOAT, [1]))
        graph.input.append(onnx.helper.make_tensor_value_info("step", onnx.TensorProto.INT64, [1]))
        for name in ("params", "gradients", *moments):
            graph.input.append(onnx.helper.make_tensor_sequence_value_info(name, trained[0].data_type, None))
        return str(self._clip("gradients")) if self._clip is not None else "gradients"

    def _finish(self, flag: str, dims: Sequence[int]) -> str:
        self.base.graph.output.append(onnx.helper.make_tensor_value_info(flag, onnx.TensorProto.BOOL, dims))
        self._model = onnx.ModelProto()
        self._model.CopyFrom(self.base)
        return flag


class AdamW(_OptimizerModel):
    """The model of AdamW.

        >>> with onnxblock.empty_base():
        ...     optimizer = onnxblock.optim.AdamW(weight_decay=0.01)
        ...     optimizer(training_block.parameters())
        ...     model = optimizer.to_model_proto()
    """

    def __init__(self, bias_correction: bool = True, betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-6,
                 weight_decay: float = 0.0, clip_grad: Optional[ClipGradNorm] = None) -> None:
        super().__init__(clip_grad)
        self._adamw = AdamWOptimizer(bias_correction, betas, eps, weight_decay)

    def build(self, parameters: Any) -> str:
        """The name of the flag."""
        gradients = self._inputs(parameters, ["first_order_moments", "second_order_moments"])
        return self._finish(self._adamw("learning_rate", "step", "params", gradients, "first_order_moments",
                                        "second_order_moments"), [1])


class SGD(_OptimizerModel):
    """The model of plain gradient descent. Its moments are an input, as in ONNX Runtime's, that nobody reads."""

    def __init__(self, clip_grad: Optional[ClipGradNorm] = None) -> None:
        super().__init__(clip_grad)
        self._sgd = SGDOptimizer()

    def build(self, parameters: Any) -> str:
        """The name of the flag."""
        gradients = self._inputs(parameters, ["first_order_moments"])
        return self._finish(self._sgd("learning_rate", "params", gradients), [])
