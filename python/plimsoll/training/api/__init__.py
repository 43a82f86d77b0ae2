"""Training with the files of artifacts.generate_artifacts: what `onnxruntime.training.api` is. Needs python3-onnx.

    >>> state = CheckpointState.load_checkpoint("checkpoint")
    >>> module = Module("training_model.onnx", state, "eval_model.onnx")
    >>> optimizer = Optimizer("optimizer_model.onnx", module)
    >>> for x, labels in batches:
    ...     loss = module(x, labels)
    ...     optimizer.step()
    ...     module.lazy_reset_grad()
    >>> CheckpointState.save_checkpoint(state, "checkpoint")
"""
from ._checkpoint import CheckpointState, Parameter, Parameters, Properties
from ._module import Module
from ._optimizer import LinearLRScheduler, Optimizer

__all__ = ["CheckpointState", "LinearLRScheduler", "Module", "Optimizer", "Parameter", "Parameters", "Properties"]
