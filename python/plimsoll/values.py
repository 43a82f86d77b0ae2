"""OrtValue and its kin: data that goes into runs and comes out, shared with numpy and others without copies."""
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence, Tuple, Union

from ._engine import OrtValue as _Value
from .enums import OrtDeviceVendorId
from .errors import InvalidArgument, RuntimeException

if TYPE_CHECKING:
    import numpy as np

    from .memory import OrtMemoryInfo
    from .sparse import SparseTensor

_DEVICES = {"cpu": 0, "gpu": 1, "cuda": 1, "webgpu": 1, "dml": 4, "npu": 2, "cann": 2, "fpga": 3}


class OrtDevice:
    """A device as ONNX Runtime names them. Memory can only be had on "cpu".

        >>> plimsoll.OrtDevice.make("cpu", 0).device_id()
        0
    """

    __slots__ = ("_type", "_memory", "_vendor", "_id")

    def __init__(self, device_type: int, memory_type: int = 0, device_id: int = 0, vendor_id: int = 0) -> None:
        self._type, self._memory, self._vendor, self._id = device_type, memory_type, int(vendor_id), device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: Union[int, OrtDeviceVendorId] = -1) -> "OrtDevice":
        if ort_device_name not in _DEVICES:
            raise InvalidArgument(f"Unsupported device type: {ort_device_name!r}; known are {', '.join(_DEVICES)}")
        return OrtDevice(_DEVICES[ort_device_name], 0, device_id, max(0, int(vendor_id)))

    def device_id(self) -> int:
        return self._id

    def device_type(self) -> int:
        return self._type

    def device_vendor_id(self) -> int:
        return self._vendor

    def device_mem_type(self) -> int:
        return self._memory

    def _get_c_device(self) -> "OrtDevice":
        return self

    @staticmethod
    def cpu() -> int:
        return 0

    @staticmethod
    def cuda() -> int:
        return 1

    @staticmethod
    def default_memory() -> int:
        return 0


def require_cpu(device_type: str) -> None:
    """Raises what a machine without the device raises."""
    if OrtDevice.make(device_type.lower(), 0).device_type() != 0:
        raise RuntimeException(f"Can't allocate memory on the device {device_type!r}: Plimsoll runs on the CPU; "
                               "use device_type='cpu'")


class OrtValue:
    """A tensor, a sequence, a map or a sparse tensor.

        >>> value = plimsoll.OrtValue.ortvalue_from_numpy(numpy.ones((2, 3), numpy.float32))
        >>> value.shape(), value.data_type(), value.numpy().sum()
        ([2, 3], 'tensor(float)', 6.0)
    """

    __slots__ = ("_ortvalue", "_sparse", "__weakref__")

    def __init__(self, ortvalue: Optional[_Value], numpy_obj: Any = None, sparse: "Optional[SparseTensor]" = None) -> None:
        if ortvalue is not None and not isinstance(ortvalue, _Value):
            raise ValueError("OrtValue: use OrtValue.ortvalue_from_numpy and its like")
        self._ortvalue = ortvalue
        self._sparse = sparse

    def _get_c_value(self) -> _Value:
        return self._native()

    def _native(self) -> _Value:
        if self._ortvalue is None:
            raise InvalidArgument("expected a tensor or a sequence, found a sparse tensor")
        return self._ortvalue

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: "np.ndarray[Any, Any]", /, device_type: str = "cpu", device_id: int = 0,
                            vendor_id: Union[int, OrtDeviceVendorId] = -1) -> "OrtValue":
        """The array itself where it is contiguous, which the OrtValue keeps; else a copy."""
        require_cpu(device_type)
        return cls(_Value.from_numpy(numpy_obj))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: "np.ndarray[Any, Any]", /, onnx_element_type: int) -> "OrtValue":
        """The array's bytes, seen as a type that numpy has not: uint16 as bfloat16 (16), uint8 as float8 (17 to 20).
        Types of less than a byte take one element from each, and are copied."""
        return cls(_Value.from_numpy_as(data, onnx_element_type))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0, vendor_id: Union[int, OrtDeviceVendorId] = -1,
                                     memory_info: "Optional[OrtMemoryInfo]" = None) -> "OrtValue":
        """Zeros. `element_type` is numpy's, or a number of onnx.TensorProto.DataType."""
        require_cpu(device_type)
        return cls(_Value.from_shape(list(shape), element_type))

    @classmethod
    def ortvalue_from_sequence(cls, values: Iterable[Any], element_type: Any = None) -> "OrtValue":
        """A sequence of arrays or OrtValues; of an empty one the type must be told."""
        items = [value._native() if isinstance(value, OrtValue) else _Value.from_numpy(value) for value in values]
        number = _Value.from_shape([0], element_type).element_type() if element_type is not None else 0
        return cls(_Value.from_sequence(items, number))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: "SparseTensor") -> "OrtValue":
        return cls(None, sparse=sparse_tensor)

    def as_sparse_tensor(self) -> "SparseTensor":
        if self._sparse is None:
            raise InvalidArgument(f"expected a sparse tensor, found {self.data_type()}")
        return self._sparse

    def data_ptr(self) -> int:
        """The address of the first element; 0 of an empty tensor."""
        return self._native().data_ptr()

    def device_name(self) -> str:
        return "cpu"

    def shape(self) -> List[int]:
        return self._native().shape() if self._sparse is None else list(self._sparse.dense_shape())

    def data_type(self) -> str:
        """Such as 'tensor(float)' or 'seq(tensor(int64))'."""
        return self._native().data_type() if self._sparse is None else self._sparse.data_type()

    def element_type(self) -> int:
        """The number of onnx.TensorProto.DataType."""
        return self._native().element_type()

    def tensor_size_in_bytes(self) -> int:
        return self._native().tensor_size_in_bytes()

    def has_value(self) -> bool:
        """False of an optional that holds nothing."""
        return self._sparse is not None or self._native().has_value()

    def is_tensor(self) -> bool:
        return self._sparse is None and self._native().is_tensor()

    def is_sparse_tensor(self) -> bool:
        return self._sparse is not None

    def is_tensor_sequence(self) -> bool:
        return self._sparse is None and self._native().is_tensor_sequence()

    def elements(self) -> "List[OrtValue]":
        """Of a sequence."""
        return [OrtValue(value) for value in self._native().elements()]

    def to_python(self) -> Any:
        """As session.run gives it: an array, a list, a dict or None."""
        return self._native().to_python()

    def numpy(self) -> "np.ndarray[Any, Any]":
        """Of a tensor: an array of the same memory, which keeps it."""
        return self._native().numpy()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "np.ndarray[Any, Any]":
        array = self.numpy()
        if copy:
            return array.astype(dtype or array.dtype, copy=True)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self._native().to_dlpack()

    to_dlpack = __dlpack__

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)

    @classmethod
    def from_dlpack(cls, data: Any, /) -> "OrtValue":
        """Of anything with __dlpack__, such as a torch tensor, or a capsule of it: the same memory."""
        is_bool = str(getattr(data, "dtype", "")) in ("bool", "torch.bool")
        if isinstance(data, OrtValue):
            is_bool = data.data_type() == "tensor(bool)"
        capsule = data.__dlpack__() if hasattr(data, "__dlpack__") else data
        return cls(_Value.from_dlpack(capsule, is_bool))

    def update_inplace(self, data: Any) -> None:
        """Copies an array or another OrtValue of the same type and number of elements into this one's memory."""
        if not isinstance(data, OrtValue):
            import numpy
            if not isinstance(data, numpy.ndarray):
                raise TypeError("data must be a numpy.ndarray or an OrtValue.")
            data = OrtValue.ortvalue_from_numpy(data)
        self._native().update_inplace(data._native())

    def __repr__(self) -> str:
        return f"OrtValue({self.data_type()}{self.shape() if self.is_tensor() or self._sparse else ''})"


class OrtValueVector(List[OrtValue]):
    """OrtValues for run_with_ortvaluevector.

        >>> vector = plimsoll.OrtValueVector()
        >>> vector.push_back(plimsoll.OrtValue.ortvalue_from_numpy(numpy.zeros(3)))
        >>> len(vector), vector.element_type_at(0)
        (1, 11)
    """

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        if isinstance(value, _Value):
            value = OrtValue(value)
        elif not isinstance(value, OrtValue):
            capsule = value.__dlpack__() if hasattr(value, "__dlpack__") else value
            value = OrtValue(_Value.from_dlpack(capsule, is_bool_tensor))
        self.append(value)

    def reserve(self, size: int) -> None:
        """Accepted; lists grow by themselves."""

    def shrink_to_fit(self) -> None:
        """Accepted; lists shrink by themselves."""

    def element_type_at(self, idx: int) -> int:
        return self[idx].element_type()

    def bool_tensor_indices(self) -> List[int]:
        return [index for index, value in enumerate(self) if value.element_type() == 9]

    def dlpack_at(self, idx: int) -> Any:
        return self[idx].__dlpack__()

    def to_dlpacks(self, to_tensor: Any = None) -> List[Any]:
        return [value.__dlpack__() if to_tensor is None else to_tensor(value.__dlpack__()) for value in self]


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copies each tensor of `src` into the memory of its neighbour in `dst`.

        >>> a, b = (plimsoll.OrtValue.ortvalue_from_numpy(numpy.full(2, x)) for x in (1.0, 2.0))
        >>> plimsoll.copy_tensors([a], [b]); b.numpy().tolist()
        [1.0, 1.0]
    """
    if len(src) != len(dst):
        raise InvalidArgument(f"copy_tensors: {len(src)} sources for {len(dst)} destinations")
    for source, destination in zip(src, dst):
        destination.update_inplace(source)
