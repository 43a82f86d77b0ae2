"""Graphs for training, made of blocks that add nodes to a model: what `onnxruntime.training.onnxblock` is. Needs python3-onnx.

    >>> class Net(onnxblock.TrainingBlock):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.loss = onnxblock.loss.CrossEntropyLoss()
    ...     def build(self, scores):
    ...         return self.loss(scores)
    >>> with onnxblock.base(model):
    ...     net = Net()
    ...     net.requires_grad("weight")
    ...     net("scores")
    ...     training_model, eval_model = net.to_model_proto()
"""
from . import blocks, loss, optim
from ._current import base, empty_base
from ._training import ForwardBlock, TrainingBlock, load_checkpoint_to_model, save_checkpoint
from .blocks import Block

__all__ = ["Block", "ForwardBlock", "TrainingBlock", "base", "blocks", "empty_base", "load_checkpoint_to_model", "loss", "optim",
           "save_checkpoint"]
