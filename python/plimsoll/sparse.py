"""Sparse tensors as ONNX Runtime's Python has them: arrays of values and of indices, which are kept as they are."""
from typing import TYPE_CHECKING, Any, Optional

from .enums import OrtSparseFormat
from .errors import InvalidArgument, RuntimeException
from .values import OrtDevice

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


class _CooView:
    def __init__(self, indices: "Array") -> None:
        self._indices = indices

    def indices(self) -> "Array":
        return self._indices


class _CsrView:
    def __init__(self, inner: "Array", outer: "Array") -> None:
        self._inner, self._outer = inner, outer

    def inner(self) -> "Array":
        return self._inner

    def outer(self) -> "Array":
        return self._outer


class SparseTensor:
    """Values and where they stand in a dense shape.

        >>> sparse = plimsoll.SparseTensor.sparse_coo_from_numpy(
        ...     numpy.array([3, 3]), numpy.array([1.0, 2.0]), numpy.array([0, 4]), plimsoll.OrtDevice.make("cpu", 0))
        >>> sparse.format().name, sparse.as_coo_view().indices().tolist()
        ('ORT_SPARSE_COO', [0, 4])
    """

    __slots__ = ("_format", "_shape", "_values", "_first", "_second")

    def __init__(self, format_: OrtSparseFormat, shape: "Array", values: "Array", first: "Array",
                 second: "Optional[Array]" = None) -> None:
        self._format, self._shape, self._values, self._first, self._second = format_, shape, values, first, second

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape: Any, values: "Array", coo_indices: "Array",
                              ort_device: OrtDevice) -> "SparseTensor":
        """`coo_indices` are one-dimensional and linear, or a row of coordinates for each value."""
        shape, indices = _shape(dense_shape), _indices(coo_indices, "coo_indices")
        rank = len(shape)
        if indices.ndim == 2 and indices.shape != (len(values), rank) or indices.ndim == 1 and len(indices) not in (
                len(values), rank * len(values)) or indices.ndim > 2:
            raise InvalidArgument(f"coo_indices: expected {len(values)} linear indices or {rank} coordinates for each "
                                  f"value, found shape {indices.shape}")
        _check_range(indices, shape if indices.ndim == 2 else [int(shape.prod())], "coo_indices")
        return cls(OrtSparseFormat.ORT_SPARSE_COO, shape, _values(values), _frozen(indices))

    @classmethod
    def sparse_csr_from_numpy(cls, dense_shape: Any, values: "Array", inner_indices: "Array", outer_indices: "Array",
                              ort_device: OrtDevice) -> "SparseTensor":
        """Rows by `outer_indices`, one more than there are rows; columns by `inner_indices`, one for each value."""
        shape = _shape(dense_shape)
        inner, outer = _indices(inner_indices, "inner_indices"), _indices(outer_indices, "outer_indices")
        if len(shape) != 2 or len(inner) != len(values) or len(outer) not in (0, shape[0] + 1):
            raise InvalidArgument(f"a sparse matrix of shape {shape.tolist()}: found {len(values)} values, {len(inner)} "
                                  f"inner and {len(outer)} outer indices")
        _check_range(inner, [int(shape[1])], "inner_indices")
        _check_range(outer, [len(values) + 1], "outer_indices")
        return cls(OrtSparseFormat.ORT_SPARSE_CSRC, shape, _values(values), _frozen(inner), _frozen(outer))

    def values(self) -> "Array":
        return self._values

    def as_coo_view(self) -> _CooView:
        if self._format != OrtSparseFormat.ORT_SPARSE_COO:
            raise InvalidArgument(f"expected ORT_SPARSE_COO, found {self._format.name}")
        return _CooView(self._first)

    def as_csrc_view(self) -> _CsrView:
        if self._format != OrtSparseFormat.ORT_SPARSE_CSRC or self._second is None:
            raise InvalidArgument(f"expected ORT_SPARSE_CSRC, found {self._format.name}")
        return _CsrView(self._first, self._second)

    def as_blocksparse_view(self) -> Any:
        raise InvalidArgument(f"expected ORT_SPARSE_BLOCK_SPARSE, found {self._format.name}")

    def to_cuda(self, ort_device: OrtDevice) -> "SparseTensor":
        raise RuntimeException("Cuda is not available in this build: Plimsoll runs on the CPU")

    def to_dense(self) -> "Array":
        """The whole tensor, zeros included: what a model's input takes."""
        import numpy
        dense = numpy.zeros(self._shape, self._values.dtype)
        if self._second is not None:
            rows = numpy.repeat(numpy.arange(self._shape[0]), numpy.diff(self._second))
            dense[rows, self._first] = self._values
        elif self._first.ndim == 2 or len(self._first) != len(self._values):
            dense[tuple(self._first.reshape(len(self._values), -1).T)] = self._values
        else:
            dense.reshape(-1)[self._first] = self._values
        return dense

    def format(self) -> OrtSparseFormat:
        return self._format

    def dense_shape(self) -> "Array":
        return self._shape

    def data_type(self) -> str:
        from ._engine import OrtValue
        name = OrtValue.from_shape([0], self._values.dtype).data_type() if self._values.dtype.kind not in "OUS" else "tensor(string)"
        return f"sparse_{name}"

    def device_name(self) -> str:
        return "cpu"


def _shape(dense_shape: Any) -> "Array":
    import numpy
    shape = numpy.array(dense_shape, numpy.int64)
    if shape.ndim != 1 or (shape < 0).any():
        raise InvalidArgument(f"dense_shape: expected sizes, found {dense_shape!r}")
    return _frozen(shape)


def _values(values: "Array") -> "Array":
    if values.ndim != 1:
        raise InvalidArgument(f"values: expected one dimension, found shape {values.shape}")
    return values


def _indices(indices: "Array", name: str) -> "Array":
    import numpy
    array = numpy.asarray(indices)
    if array.dtype != numpy.int64:
        raise InvalidArgument(f"{name}: expected int64, found {array.dtype}")
    return array


def _check_range(indices: "Array", sizes: Any, name: str) -> None:
    if indices.size and ((indices < 0).any() or (indices >= sizes).any()):
        raise InvalidArgument(f"{name}: expected indices below {[int(size) for size in sizes]}, found {indices.max()}")


def _frozen(array: "Array") -> "Array":
    view = array.view()
    view.flags.writeable = False
    return view
