"""CheckpointState: parameters, properties and moments, as a file holds them."""
import os
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy as np

from ... import _engine
from ...errors import InvalidArgument

Property = Union[int, float, str]
_MOMENT = re.compile(r"^(.*)\.momentum([01])$")


class Parameter:
    """One parameter of a CheckpointState; `data` is its memory, which a Module trains in place."""

    def __init__(self, name: str, state: "CheckpointState") -> None:
        self._name, self._state = name, state

    @property
    def name(self) -> str:
        """Its name in the model."""
        return self._name

    @property
    def data(self) -> Any:
        """The values, as a numpy array; what is assigned is copied into it.

            >>> state.parameters["fc.weight"].data = numpy.zeros((3, 4), numpy.float32)
        """
        return self._state._arrays[self._name]

    @data.setter
    def data(self, value: Any) -> None:
        mine, given = self._state._arrays[self._name], np.asarray(value)
        if given.shape != mine.shape or given.dtype != mine.dtype:
            raise InvalidArgument(f"parameter '{self._name}': expected {mine.dtype}{list(mine.shape)}, found {given.dtype}{list(given.shape)}")
        mine[...] = given

    @property
    def requires_grad(self) -> bool:
        """Whether the Module that the state was given to trains it."""
        return self._name in self._state._gradients

    @property
    def grad(self) -> Any:
        """The sum of gradients so far, or None."""
        return self._state._gradients.get(self._name)

    def __repr__(self) -> str:
        return f"Parameter({self._name}, {self.data.dtype}{list(self.data.shape)})"


class Parameters:
    """The parameters of a CheckpointState, by name."""

    def __init__(self, state: "CheckpointState") -> None:
        self._state = state

    def __getitem__(self, name: str) -> Parameter:
        if name not in self._state._arrays:
            raise KeyError(f"there is no parameter '{name}'")
        return Parameter(name, self._state)

    def __setitem__(self, name: str, value: Any) -> None:
        self[name].data = value

    def __contains__(self, name: object) -> bool:
        return name in self._state._arrays

    def __iter__(self) -> Iterator[Tuple[str, Parameter]]:
        return ((name, Parameter(name, self._state)) for name in self._state._arrays)

    def __len__(self) -> int:
        return len(self._state._arrays)


class Properties:
    """Numbers and texts of a CheckpointState, by name."""

    def __init__(self, values: Dict[str, Property]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Property:
        return self._values[name]

    def __setitem__(self, name: str, value: Property) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise TypeError(f"property '{name}': expected int, float or str, found {type(value).__name__}")
        self._values[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[Tuple[str, Property]]:
        return iter(self._values.items())

    def __len__(self) -> int:
        return len(self._values)


class CheckpointState:
    """What training stands at. Made by load_checkpoint; a Module changes its parameters where they are."""

    def __init__(self, arrays: Dict[str, Any], properties: Dict[str, Property]) -> None:
        self._arrays: Dict[str, Any] = {}
        self._moments: Dict[str, List[Any]] = {}
        self._gradients: Dict[str, Any] = {}
        self._optimizer: Optional[Any] = None
        for name, array in arrays.items():
            moment = _MOMENT.match(name)
            if moment and moment.group(1) in arrays:
                self._moments.setdefault(moment.group(1), [None, None])[int(moment.group(2))] = array
            elif not name.endswith("_grad.accumulation.buffer"):
                self._arrays[name] = array
        self._properties = properties

    @property
    def parameters(self) -> Parameters:
        """By name.

            >>> state.parameters["fc.weight"].data.mean()
        """
        return Parameters(self)

    @property
    def properties(self) -> Properties:
        """By name.

            >>> state.properties["epoch"] = 3
        """
        return Properties(self._properties)

    @classmethod
    def load_checkpoint(cls, checkpoint_uri: Union[str, "os.PathLike[str]"]) -> "CheckpointState":
        """From a file of ours, or of ONNX Runtime.

            >>> state = CheckpointState.load_checkpoint("checkpoint")
        """
        return cls(*_engine.load_checkpoint(os.fspath(checkpoint_uri)))

    @classmethod
    def save_checkpoint(cls, state: "CheckpointState", checkpoint_uri: Union[str, "os.PathLike[str]"],
                        include_optimizer_state: bool = False) -> None:
        """Written beside, synced, renamed: there is always a complete one.

            >>> CheckpointState.save_checkpoint(state, "checkpoint", include_optimizer_state=True)
        """
        arrays, properties = dict(state._arrays), dict(state._properties)
        if include_optimizer_state:
            for name, moments in state._moments.items():
                arrays.update((f"{name}.momentum{i}", moment) for i, moment in enumerate(moments) if moment is not None)
            if state._optimizer is not None:
                properties["plimsoll.step"] = state._optimizer._step - 1
                properties["plimsoll.rate"] = float(state._optimizer.get_learning_rate())
        else:
            properties.pop("plimsoll.step", None)
        _engine.save_checkpoint(os.fspath(checkpoint_uri), arrays, properties)
