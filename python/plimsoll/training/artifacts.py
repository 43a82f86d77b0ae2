"""generate_artifacts: from an ONNX model, what training.api needs. Needs python3-onnx."""
import os
import pathlib
from enum import Enum
from typing import Any, List, Optional, Union

import onnx

from . import onnxblock


class LossType(Enum):
    """Losses that generate_artifacts adds."""
    MSELoss = 1
    CrossEntropyLoss = 2
    BCEWithLogitsLoss = 3
    L1Loss = 4


class OptimType(Enum):
    """Optimizers whose model generate_artifacts writes."""
    AdamW = 1
    SGD = 2


class _WithLoss(onnxblock.TrainingBlock):
    def __init__(self, loss: onnxblock.Block, names: Optional[List[str]]) -> None:
        super().__init__()
        self._loss, self._names = loss, names

    def build(self, *outputs: str) -> Any:
        """The loss, then the outputs that were asked for beside it."""
        wanted = self._names if self._names is not None else outputs
        missing = [name for name in wanted if name not in outputs]
        if missing:
            raise RuntimeError(f"loss_input_names: expected outputs of the model ({', '.join(outputs)}), found '{missing[0]}'")
        return self._loss(*wanted)


def _loss_block(loss: Any) -> onnxblock.Block:
    if loss is None:
        return onnxblock.blocks.PassThrough()
    if isinstance(loss, LossType):
        return getattr(onnxblock.loss, loss.name)()  # type: ignore[no-any-return]
    if isinstance(loss, onnxblock.Block):
        return loss
    raise RuntimeError(f"loss: expected LossType or onnxblock.Block, found {type(loss).__name__}")


def generate_artifacts(model: Union[Any, str], requires_grad: Optional[List[str]] = None, frozen_params: Optional[List[str]] = None,
                       loss: Optional[Union[LossType, "onnxblock.Block"]] = None,
                       optimizer: Optional[Union[OptimType, "onnxblock.Block"]] = None,
                       artifact_directory: Optional[Union[str, "os.PathLike[str]"]] = None, prefix: str = "",
                       ort_format: bool = False, loss_input_names: Optional[List[str]] = None, **extra_options: Any) -> None:
    """Writes training_model.onnx, eval_model.onnx, checkpoint and, where an optimizer is asked for, optimizer_model.onnx.

        >>> artifacts.generate_artifacts(onnx.load("net.onnx"), requires_grad=["fc.weight", "fc.bias"],
        ...                              loss=artifacts.LossType.CrossEntropyLoss, optimizer=artifacts.OptimType.AdamW)

    Inputs and outputs of the graphs are those that ONNX Runtime's have. The gradient is a node of ONNX's own
    (ai.onnx.preview.training.Gradient), which Plimsoll takes apart when it opens the file.
    """
    proto = onnx.load(model) if isinstance(model, str) else model
    if not isinstance(proto, onnx.ModelProto):
        raise TypeError(f"model: expected an onnx.ModelProto or a path, found {type(model).__name__}")
    if ort_format:
        raise NotImplementedError("ort_format: ONNX Runtime's own format of models is not written here")
    both = set(requires_grad or ()) & set(frozen_params or ())
    if both:
        raise RuntimeError(f"a parameter cannot be trained and frozen at the same time, found '{sorted(both)[0]}' in both lists")
    for name in extra_options:
        if name not in ("custom_op_library", "additional_output_names", "nominal_checkpoint"):
            raise TypeError(f"generate_artifacts: there is no option '{name}'")
        if extra_options[name]:
            raise NotImplementedError(f"{name} is not supported here")
    if optimizer is not None and not isinstance(optimizer, (OptimType, onnxblock.Block)):
        raise RuntimeError(f"optimizer: expected OptimType or onnxblock.Block, found {type(optimizer).__name__}")
    block = _WithLoss(_loss_block(loss), loss_input_names)
    for name in requires_grad or ():
        block.requires_grad(name)
    for name in frozen_params or ():
        block.requires_grad(name, False)
    with onnxblock.base(proto):
        block(*[output.name for output in proto.graph.output])
    folder = pathlib.Path(artifact_directory or os.getcwd())
    trained, evaluated = block.to_model_proto()
    onnx.save(trained, str(folder / f"{prefix}training_model.onnx"))
    onnx.save(evaluated, str(folder / f"{prefix}eval_model.onnx"))
    onnxblock.save_checkpoint(block.parameters(), folder / f"{prefix}checkpoint")
    if optimizer is None:
        return
    made = getattr(onnxblock.optim, optimizer.name)() if isinstance(optimizer, OptimType) else optimizer
    with onnxblock.empty_base():
        made(block.parameters())
        onnx.save(made.to_model_proto(), str(folder / f"{prefix}optimizer_model.onnx"))
