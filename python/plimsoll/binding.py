"""IOBinding: inputs and outputs fixed to memory ahead of runs."""
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

from ._engine import SessionIOBinding
from .values import OrtValue, OrtValueVector, require_cpu

if TYPE_CHECKING:
    import numpy as np

    from .inference import InferenceSession


class IOBinding:
    """Values bound by name; results are written where the outputs are bound.

        >>> binding = session.io_binding()
        >>> binding.bind_cpu_input("x", numpy.ones((1, 4), numpy.float32))
        >>> binding.bind_output("y")
        >>> session.run_with_iobinding(binding)
        >>> binding.copy_outputs_to_cpu()[0].shape
        (1, 4)
    """

    __slots__ = ("_iobinding",)

    def __init__(self, session: "InferenceSession") -> None:
        self._iobinding = SessionIOBinding(session)

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """An array, or what session.run takes in its place, read where it is at every run."""
        self._iobinding.bind_input(name, arr_on_cpu)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """Memory at an address, which the caller keeps."""
        require_cpu(device_type)
        self._iobinding.bind_input_at(name, element_type, list(shape), buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._iobinding.bind_ortvalue_input(name, ortvalue._native())

    def synchronize_inputs(self) -> None:
        """Accepted; on the CPU there is nothing to wait for."""

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """Without `buffer_ptr` each run makes the value; with it, it is written there."""
        require_cpu(device_type)
        if buffer_ptr is None:
            self._iobinding.bind_output(name)
        elif element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        else:
            self._iobinding.bind_output_at(name, element_type, list(shape), buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._iobinding.bind_ortvalue_output(name, ortvalue._native())

    def synchronize_outputs(self) -> None:
        """Accepted; on the CPU there is nothing to wait for."""

    def get_outputs(self) -> List[OrtValue]:
        """Of the last run, in the order in which they were bound."""
        return [OrtValue(value) for value in self._iobinding.get_outputs()]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        return OrtValueVector(self.get_outputs())

    def copy_outputs_to_cpu(self) -> "List[np.ndarray[Any, Any]]":
        """Arrays of their own memory."""
        return [array.copy() if hasattr(array, "copy") else array
                for array in (value.to_python() for value in self.get_outputs())]

    def clear_binding_inputs(self) -> None:
        self._iobinding.clear_binding_inputs()

    def clear_binding_outputs(self) -> None:
        self._iobinding.clear_binding_outputs()
