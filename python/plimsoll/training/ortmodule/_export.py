"""A module as ONNX: parameters and buffers are inputs, so that the file holds none of their bytes."""
import contextlib
import functools
import io
import os
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch

from ._fallback import ORTModuleIOError, ORTModuleONNXModelException, ORTModuleTorchModelException
from ._options import LogLevel, Report, opset_version
from ._structure import put_together, take_apart

PREFIX = "module."  # of the names of parameters and buffers in the file


# What makes a number of Python out of a tensor, sizes among them: what is decided by it is not in the graph.
_LOOKS = ("__bool__", "__float__", "__index__", "__int__", "__iter__", "__len__", "item", "tolist")
_PATCHING = threading.RLock()


@contextlib.contextmanager
def _watched() -> Iterator[List[str]]:
    """The names of what Python looks at in tensors while they are traced. Functions with a derivative of their own are not
    taken apart, so that the exporter refuses them."""
    looks: List[str] = []

    def watched(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def look(tensor: Any, *arguments: Any) -> Any:
            if torch._C._get_tracing_state() is not None:
                looks.append(name)
            return original(tensor, *arguments)
        return look

    with _PATCHING:
        own = {name: torch.Tensor.__dict__[name] for name in _LOOKS if name in torch.Tensor.__dict__}
        inline = torch._C._jit_pass_onnx_autograd_function_process
        try:
            for name in _LOOKS:
                setattr(torch.Tensor, name, watched(name, getattr(torch.Tensor, name)))
            torch._C._jit_pass_onnx_autograd_function_process = lambda graph: None
            yield looks
        finally:
            torch._C._jit_pass_onnx_autograd_function_process = inline
            for name in _LOOKS:
                if name in own:
                    setattr(torch.Tensor, name, own[name])
                else:
                    delattr(torch.Tensor, name)


class _Flat(torch.nn.Module):
    """The module as a function of tensors alone."""

    def __init__(self, module: torch.nn.Module, structure: Any) -> None:
        super().__init__()
        self.module, self._structure, self.answer = module, structure, None

    def forward(self, *tensors: torch.Tensor) -> Any:
        arguments, keywords = put_together(self._structure, tensors)
        leaves: List[Tuple[str, torch.Tensor]] = []
        _, self.answer = take_apart(self.module(*arguments, **keywords), "output", leaves)
        return tuple(tensor for _, tensor in leaves)


class Export:
    """One export of a module, and what its run showed."""

    def __init__(self, module: torch.nn.Module, structure: Any, leaves: List[Tuple[str, torch.Tensor]], report: Report) -> None:
        self.inputs = [name for name, _ in leaves]
        flat = _Flat(module, structure)
        flat.training = module.training
        before = {name: tensor.detach().clone() for name, tensor in module.named_buffers()}
        try:
            with warnings.catch_warnings(record=True) as caught, torch.random.fork_rng(devices=[]), torch.enable_grad():
                warnings.simplefilter("always")
                with _watched() as looks:
                    self.model = self._export(flat, leaves)
            self._look_at_buffers(module, before)
        finally:
            with torch.no_grad():
                for name, tensor in module.named_buffers():
                    if not torch.equal(tensor, before[name]):
                        tensor.copy_(before[name])
        self.answer = flat.answer
        self.is_for_sizes = bool(looks)
        for item in caught:
            report.tell(LogLevel.DEVINFO, f"export: {item.message}")
        self._save(module, report)

    def _export(self, flat: _Flat, leaves: List[Tuple[str, torch.Tensor]]) -> bytes:
        file = io.BytesIO()
        axes = {name: {i: f"{name}_dim{i}" for i in range(tensor.dim())} for name, tensor in leaves if tensor.dim() > 0}
        examples = tuple(tensor.detach().requires_grad_(tensor.requires_grad) for _, tensor in leaves)
        try:
            torch.onnx.export(flat, examples, file, input_names=self.inputs, dynamic_axes=axes, export_params=False,
                              keep_initializers_as_inputs=True, training=torch.onnx.TrainingMode.PRESERVE,
                              do_constant_folding=False, opset_version=opset_version())
        except (ORTModuleIOError, ORTModuleTorchModelException):
            raise
        except Exception as error:
            raise _own_error(flat, examples, error) from error
        return file.getvalue()

    def _look_at_buffers(self, module: torch.nn.Module, before: Dict[str, torch.Tensor]) -> None:
        """What a call changes: counts are kept here, running statistics are outputs of the graph."""
        self.counts: Dict[str, int] = {}
        self.changed: List[str] = []
        for name, tensor in module.named_buffers():
            if torch.equal(tensor, before[name]):
                continue
            if name.endswith("num_batches_tracked") and tensor.dim() == 0:
                self.counts[name] = int(tensor - before[name])
            else:
                self.changed.append(name)
        for name, part in module.named_modules():
            if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.training and part.momentum is None and part.track_running_stats:
                raise ORTModuleTorchModelException(f"{name}: momentum=None (a cumulative average) is not in the export")

    def check_statistics(self, updated: List[str]) -> None:
        """The graph must show every buffer that a call changes."""
        hidden = [name for name in self.changed if name not in updated]
        if hidden:
            raise ORTModuleTorchModelException(f"forward() changes the buffer '{hidden[0]}', which its export does not show")

    def _save(self, module: torch.nn.Module, report: Report) -> None:
        options = report.options
        if options.save_onnx:
            mode = "training" if module.training else "inference"
            path = os.path.join(options.save_path, f"{options.onnx_prefix}_torch_exported_{mode}.onnx")
            with open(path, "wb") as file:
                file.write(self.model)


def _own_error(flat: _Flat, examples: Tuple[torch.Tensor, ...], error: Exception) -> Exception:
    """What the module itself raises of these arguments is the caller's; the rest is the exporter's."""
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            flat(*examples)
    except Exception as own:
        return own
    return ORTModuleONNXModelException(f"PyTorch could not export the module: {type(error).__name__}: {error}")


def hidden_state(module: torch.nn.Module) -> Tuple[Any, ...]:
    """Buffers that are not in the state_dict are constants of an export: which ones, and how often changed."""
    found = []
    for part in module.modules():
        for name in part._non_persistent_buffers_set:
            buffer = part._buffers.get(name)
            if buffer is not None:
                found.append((buffer.data_ptr(), buffer._version, tuple(buffer.shape)))
    return tuple(found)


