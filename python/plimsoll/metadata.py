"""What a model says of itself."""
import re
from typing import Dict, List, Optional, Tuple, Union

Info = Tuple[str, int, str, List[int], List[str]]


class NodeArg:
    """An input or an output: `name`, `type` such as 'tensor(float)', `shape` with None or a name where it is free.

        >>> [(arg.name, arg.type, arg.shape) for arg in session.get_inputs()]
        [('x', 'tensor(float)', ['batch', 4])]
    """

    __slots__ = ("name", "type", "shape")

    def __init__(self, info: Info) -> None:
        self.name, _, text, dims, symbols = info
        self.type = onnx_type(text)
        self.shape: List[Union[int, str, None]] = [
            size if size >= 0 else dim_name(symbol) for size, symbol in zip(dims, symbols)]

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __repr__ = __str__


def onnx_type(text: str) -> str:
    """'sequence(float[...])' as ONNX writes it: 'seq(tensor(float))'."""
    text = re.sub(r"(\w+)\[[^\]]*\]", r"tensor(\1)", text)
    return text.replace("sequence(", "seq(").replace(", ", ",")


def dim_name(symbol: str) -> Optional[str]:
    """Sizes that nobody named have names of our making, such as 'x.d0' or 'nonzero#1'; ONNX Runtime gives None."""
    return None if not symbol or re.search(r"\.d\d+\b|#\d+", symbol) else symbol


class ModelMetadata:
    """Who made the model, and what it was given along.

        >>> session.get_modelmeta().custom_metadata_map
        {}
    """

    __slots__ = ("producer_name", "graph_name", "domain", "description", "graph_description", "version",
                 "custom_metadata_map")

    def __init__(self, producer_name: str = "", graph_name: str = "", domain: str = "", description: str = "",
                 graph_description: str = "", version: int = 0,
                 custom_metadata_map: Optional[Dict[str, str]] = None) -> None:
        self.producer_name = producer_name
        self.graph_name = graph_name
        self.domain = domain
        self.description = description
        self.graph_description = graph_description
        self.version = version
        self.custom_metadata_map: Dict[str, str] = dict(custom_metadata_map or {})

    def __repr__(self) -> str:
        return "ModelMetadata(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__) + ")"
