"""Arguments and results: tensors out of lists, tuples, dicts, and back."""
from typing import Any, Dict, Iterator, List, Tuple

import torch

from ._fallback import ORTModuleDeviceException, ORTModuleIOError

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, type(Ellipsis))


class Leaf:
    """Where a tensor was."""
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def check_tensor(tensor: torch.Tensor, where: str) -> None:
    if tensor.device.type != "cpu":
        raise ORTModuleDeviceException(f"{where}: expected a tensor in the CPU's memory, found one on {tensor.device}")
    if tensor.layout is not torch.strided:
        raise ORTModuleIOError(f"{where}: expected a dense tensor, found {tensor.layout}")


def take_apart(value: Any, where: str, leaves: List[Tuple[str, torch.Tensor]]) -> Tuple[Any, Any]:
    """A key for all that is not a tensor's data, and the value with a Leaf in place of each tensor."""
    if isinstance(value, torch.Tensor):
        check_tensor(value, where)
        leaves.append((where, value))
        return (value.dtype, value.dim(), value.requires_grad), Leaf(len(leaves) - 1)
    if isinstance(value, _CONSTANTS):
        return (type(value), value), value
    if isinstance(value, (list, tuple)):
        parts = [take_apart(item, f"{where}.{i}", leaves) for i, item in enumerate(value)]
        items = [part for _, part in parts]
        made = type(value)(*items) if hasattr(value, "_fields") else type(value)(items)  # type: ignore[arg-type]
        return (type(value), *(key for key, _ in parts)), made
    if isinstance(value, dict):
        pairs = {name: take_apart(item, f"{where}.{name}", leaves) for name, item in value.items()}
        return (type(value), *((name, key) for name, (key, _) in pairs.items())), _like(value, pairs)
    raise ORTModuleIOError(f"{where}: expected tensors, numbers, text, None, and lists, tuples and dicts of them, found "
                           f"{type(value).__name__}")


def _like(value: Any, pairs: Dict[Any, Tuple[Any, Any]]) -> Any:
    items = {name: part for name, (_, part) in pairs.items()}
    if type(value) is dict:
        return items
    try:
        return type(value)(items)
    except TypeError:  # such as transformers' ModelOutput, whose fields are keywords
        return type(value)(**items)


def put_together(value: Any, tensors: Any) -> Any:
    """What take_apart took apart, with these tensors."""
    if isinstance(value, Leaf):
        return tensors[value.number]
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        items = [put_together(item, tensors) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)  # type: ignore[arg-type]
    if isinstance(value, dict):
        return _like(value, {name: (None, put_together(item, tensors)) for name, item in value.items()})
    return value


def named_tensors(module: torch.nn.Module) -> Iterator[Tuple[str, torch.Tensor]]:
    """Parameters and buffers, each once."""
    yield from module.named_parameters()
    yield from module.named_buffers()
