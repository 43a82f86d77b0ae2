"""Blocks: each adds a node or a few to the current model, and returns the name of what they make."""
from abc import ABC, abstractmethod
from typing import Any, Optional, Sequence, Tuple, Union

import onnx

from ._current import current, import_domain, new_name, value_info

MICROSOFT = "com.microsoft"


class Block(ABC):
    """What has a build() that adds to `self.base`, the current model, and returns the name of its output."""

    def __init__(self) -> None:
        self.base: Any = None

    @abstractmethod
    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Adds nodes to `self.base`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.base = current()
        return self.build(*args, **kwargs)

    def node(self, op_type: str, inputs: Sequence[str], outputs: Union[int, Sequence[str]] = 1, domain: str = "", **attributes: Any) -> Any:
        """Adds a node; the name of its output, or of its outputs."""
        if not domain:
            import_domain(self.base, "", 17)
        label = new_name(self.base, op_type)
        names = [f"{label}.output{i or ''}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
        self.base.graph.node.append(onnx.helper.make_node(op_type, list(inputs), names, name=label, domain=domain, **attributes))
        return names[0] if len(names) == 1 else names

    def constant(self, array: Any, token: str = "constant") -> str:
        """Adds an initializer; its name."""
        name = new_name(self.base, token)
        self.base.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    def number(self, value: float, token: str = "constant") -> str:
        """Adds a float of one element."""
        import numpy
        return self.constant(numpy.array([value], numpy.float32), token)


class _Operator(Block):
    """One node with as many inputs as names are given."""
    inputs = 1

    def build(self, *names: str) -> Any:
        if len(names) != self.inputs:
            raise TypeError(f"{type(self).__name__}: expected {self.inputs} names, found {len(names)}")
        return self.node(type(self).__name__, names)


class Add(_Operator):
    """a + b."""
    inputs = 2


class Sub(_Operator):
    """a - b."""
    inputs = 2


class Mul(_Operator):
    """a * b."""
    inputs = 2


class Div(_Operator):
    """a / b."""
    inputs = 2


class ReduceMean(_Operator):
    """The mean of all elements."""

    def build(self, *names: str) -> Any:
        """A number without dimensions."""
        return self.node("ReduceMean", names, keepdims=0)


class ReduceSum(_Operator):
    """The sum of all elements."""

    def build(self, *names: str) -> Any:
        """A number without dimensions."""
        return self.node("ReduceSum", names, keepdims=0)


class Sigmoid(_Operator):
    """1 / (1 + exp(-x))."""


class Log(_Operator):
    """The natural logarithm."""


class Neg(_Operator):
    """-x."""


class Abs(_Operator):
    """The absolute value."""


class Exp(_Operator):
    """e to the power of x."""


class Relu(_Operator):
    """max(x, 0)."""


class Pow(Block):
    """x to a power."""

    def __init__(self, exponent: float) -> None:
        super().__init__()
        self._exponent = exponent

    def build(self, name: str) -> Any:
        """Adds it."""
        return self.node("Pow", [name, self.number(self._exponent, "exponent")])


class Constant(Block):
    """A float of one element."""

    def __init__(self, value_float: float) -> None:
        super().__init__()
        self._value = value_float

    def build(self) -> Any:
        """Adds it."""
        return self.number(self._value)


class Cast(Block):
    """Another type: a number of ONNX's."""

    def __init__(self, to: int) -> None:
        super().__init__()
        self._to = to

    def build(self, name: str) -> Any:
        """Adds it."""
        return self.node("Cast", [name], to=self._to)


class Linear(Block):
    """x @ weight + bias, with weights drawn at random by `initialize(shape)`; torch's bounds where none is given."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, alpha: float = 1.0, beta: float = 1.0) -> None:
        super().__init__()
        self._features, self._bias, self._alpha, self._beta = (in_features, out_features), bias, alpha, beta

    def build(self, name: str) -> Any:
        """Adds a Gemm and its weights."""
        import numpy
        bound = self._features[0] ** -0.5
        random = numpy.random.default_rng()
        weight = self.constant(random.uniform(-bound, bound, self._features).astype(numpy.float32), "linear.weight")
        inputs = [name, weight]
        if self._bias:
            inputs.append(self.constant(random.uniform(-bound, bound, self._features[1:]).astype(numpy.float32), "linear.bias"))
        return self.node("Gemm", inputs, alpha=self._alpha, beta=self._beta)


class Clip(Block):
    """Between two numbers."""

    def __init__(self, clip_min: Optional[float] = None, clip_max: Optional[float] = None) -> None:
        super().__init__()
        self._bounds = (clip_min, clip_max)

    def build(self, name: str) -> Any:
        """Adds it."""
        import numpy
        bounds = ["" if bound is None else self.constant(numpy.array(bound, numpy.float32), "bound") for bound in self._bounds]
        return self.node("Clip", [name, *bounds])


class SequenceConstruct(Block):
    """A sequence of tensors."""

    def build(self, *names: str) -> Any:
        """Adds it."""
        return self.node("SequenceConstruct", names)


class ReduceAllL2(Block):
    """The norm of all tensors together, of the domain com.microsoft."""

    def build(self, *names: str) -> Any:
        """Adds it."""
        import_domain(self.base, MICROSOFT)
        return self.node("ReduceAllL2", names, domain=MICROSOFT)


class PassThrough(Block):
    """Nothing: the names that it is given."""

    def build(self, *names: str) -> Union[str, Tuple[str, ...]]:
        """The names as they are."""
        return names[0] if len(names) == 1 else names


class InputLike(Block):
    """An input of the type and shape of another value."""

    def __init__(self, like: str) -> None:
        super().__init__()
        self._like = like

    def build(self, input_name: Optional[str] = None) -> str:
        """Its name."""
        value = onnx.ValueInfoProto()
        value.CopyFrom(value_info(self.base, self._like))
        value.name = input_name or new_name(self.base, "input")
        self.base.graph.input.append(value)
        return str(value.name)
