"""Losses, with an input of their own for what a prediction is held against."""
from typing import Any, Optional

import onnx

from . import blocks
from ._current import exists, value_info


def _reduction(name: str) -> blocks.Block:
    kinds = {"mean": blocks.ReduceMean, "sum": blocks.ReduceSum, "none": blocks.PassThrough}
    if name not in kinds:
        raise RuntimeError(f"reduction: expected mean, sum or none, found '{name}'")
    return kinds[name]()


class _WithTarget(blocks.Block):
    def _target(self, prediction: str, name: str) -> str:
        return name if exists(self.base, name) else blocks.InputLike(prediction)(name)


class MSELoss(_WithTarget):
    """The mean of squared differences."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self._reduce, self._sub, self._square = _reduction(reduction), blocks.Sub(), blocks.Pow(2.0)

    def build(self, loss_input_name: str, target_name: str = "target") -> Any:
        """The name of the loss."""
        return self._reduce(self._square(self._sub(loss_input_name, self._target(loss_input_name, target_name))))


class L1Loss(_WithTarget):
    """The mean of absolute differences."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self._reduce, self._sub, self._abs = _reduction(reduction), blocks.Sub(), blocks.Abs()

    def build(self, loss_input_name: str, target_name: str = "target") -> Any:
        """The name of the loss."""
        return self._reduce(self._abs(self._sub(loss_input_name, self._target(loss_input_name, target_name))))


class CrossEntropyLoss(blocks.Block):
    """Cross entropy of scores, whose second dimension is that of the classes, and labels, int64."""

    def __init__(self, weight: Any = None, reduction: str = "mean", ignore_index: Optional[int] = None) -> None:
        super().__init__()
        _reduction(reduction)
        self._weight, self._reduction, self._ignored = weight, reduction, ignore_index

    def build(self, scores_input_name: str, labels_name: str = "labels") -> Any:
        """The name of the loss."""
        if not exists(self.base, labels_name):
            labels = onnx.ValueInfoProto()
            labels.CopyFrom(value_info(self.base, scores_input_name))
            labels.name = labels_name
            labels.type.tensor_type.elem_type = onnx.TensorProto.INT64
            del labels.type.tensor_type.shape.dim[1]
            self.base.graph.input.append(labels)
        inputs = [scores_input_name, labels_name]
        if self._weight is not None:
            inputs.append(self.constant(self._weight, "class_weights"))
        attributes = {} if self._ignored is None else {"ignore_index": self._ignored}
        return self.node("SoftmaxCrossEntropyLoss", inputs, reduction=self._reduction, **attributes)


class BCEWithLogitsLoss(_WithTarget):
    """Binary cross entropy of scores, in a form that no score makes infinite:
    (1 - t) x + (1 + (p - 1) t) (log(1 + exp(-|x|)) + max(-x, 0))."""

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__()
        self._weight, self._pos_weight, self._reduce = weight, pos_weight, _reduction(reduction)

    def build(self, loss_input_name: str, target_name: str = "target") -> Any:
        """The name of the loss."""
        x, t, one = loss_input_name, self._target(loss_input_name, target_name), self.number(1.0, "one")
        positive = self.node("Relu", [self.node("Neg", [x])])
        small = self.node("Exp", [self.node("Neg", [self.node("Abs", [x])])])
        softplus = self.node("Add", [self.node("Log", [self.node("Add", [one, small])]), positive])
        if self._pos_weight is not None:
            more = self.node("Mul", [self.constant(self._pos_weight - 1, "positive_weight"), t])
            softplus = self.node("Mul", [self.node("Add", [one, more]), softplus])
        loss = self.node("Add", [self.node("Mul", [self.node("Sub", [one, t]), x]), softplus])
        if self._weight is not None:
            loss = self.node("Mul", [self.constant(self._weight, "weight"), loss])
        return self._reduce(loss)
