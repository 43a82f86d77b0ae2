"""The classes behind plimsoll.backend."""
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy

try:
    import onnx
    from onnx.backend.base import Backend, BackendRep, namedtupledict
except ImportError as missing:
    raise ImportError("plimsoll.backend is ONNX's interface and needs its package (Debian: python3-onnx)",
                      name="onnx") from missing

from ..errors import InvalidModel, NotImplementedYet
from ..inference import InferenceSession
from ..options import SessionOptions
from ..values import OrtValue

Model = Union["onnx.ModelProto", bytes, str, "os.PathLike[str]", InferenceSession]


def _bfloat16(array: "numpy.ndarray[Any, Any]") -> OrtValue:
    """Of float32, rounded to nearest, ties to even; or of bits in uint16, as onnx's own tests have them."""
    if array.dtype != numpy.uint16:
        bits = numpy.ascontiguousarray(array, numpy.float32).view(numpy.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        array = numpy.where(numpy.isnan(array), 0x7FC0, rounded).astype(numpy.uint16)
    return OrtValue.ortvalue_from_numpy_with_onnx_type(array, onnx.TensorProto.BFLOAT16)


class PlimsollBackendRep(BackendRep):  # type: ignore[misc]
    """A prepared model. `session` is its plimsoll.InferenceSession."""

    def __init__(self, session: InferenceSession):
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> Tuple[Any, ...]:
        """A list of arrays in the order of the model's inputs, or a dict, or one array. The answer is a tuple whose members
        can also be had by output name. bfloat16, which numpy lacks, may be given as float32 or as bits in uint16, and is such
        bits in the answer."""
        wanted = self.session.get_inputs()
        if isinstance(inputs, dict):
            feed = dict(inputs)
        else:
            given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(given) > len(wanted):
                raise ValueError(f"the model has {len(wanted)} inputs, found {len(given)}")
            feed = {argument.name: value for argument, value in zip(wanted, given)}
        for argument in wanted:
            value = feed.get(argument.name)
            if argument.type == "tensor(bfloat16)" and isinstance(value, numpy.ndarray):
                feed[argument.name] = _bfloat16(value)
        names = [argument.name for argument in self.session.get_outputs()]
        return namedtupledict("Outputs", names)(*self.session.run(None, feed, **kwargs))  # type: ignore[no-any-return]


class PlimsollBackend(Backend):  # type: ignore[misc]
    """What onnx.backend.test.BackendTest and its like are given.

        >>> import onnx.backend.test
        >>> tests = onnx.backend.test.BackendTest(plimsoll.backend.PlimsollBackend, __name__)
    """

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Plimsoll runs on the CPU.

            >>> plimsoll.backend.supports_device("CPU"), plimsoll.backend.supports_device("CUDA:0")
            (True, False)
        """
        return device.partition(":")[0].upper() == "CPU"

    @classmethod
    def is_compatible(cls, model: Model, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether `prepare` would accept the model.

            >>> plimsoll.backend.is_compatible("model.onnx")
            True
        """
        try:
            return cls.supports_device(device) and cls.prepare(model, device, **kwargs) is not None
        except (InvalidModel, NotImplementedYet):
            return False

    @classmethod
    def prepare(cls, model: Model, device: str = "CPU", sess_options: Optional[SessionOptions] = None,
                **kwargs: Any) -> PlimsollBackendRep:
        """A model (ModelProto, bytes, path, or a session) that can be run. Attributes of SessionOptions may be given by name.

            >>> prepared = plimsoll.backend.prepare("model.onnx", memory_limit_bytes="64MiB")
            >>> prepared.run([numpy.ones((1, 4), numpy.float32)])[0].shape
            (1, 4)
        """
        if not cls.supports_device(device):
            raise ValueError(f"device {device!r}: Plimsoll runs on the CPU")
        if isinstance(model, PlimsollBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return PlimsollBackendRep(model)
        options = sess_options.copy() if sess_options is not None else SessionOptions()
        for name, value in kwargs.items():
            if name.startswith("_") or not hasattr(SessionOptions, name):
                raise TypeError(f"prepare: SessionOptions has no attribute {name!r}")
            setattr(options, name, value)
        source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
        return PlimsollBackendRep(InferenceSession(source, options))

    @classmethod
    def run_model(cls, model: Model, inputs: Any, device: str = "CPU", **kwargs: Any) -> Tuple[Any, ...]:
        """Prepares and runs at once.

            >>> plimsoll.backend.run_model("model.onnx", [numpy.ones((1, 4), numpy.float32)])[0].shape
            (1, 4)
        """
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: "onnx.NodeProto", inputs: Any, device: str = "CPU",
                 outputs_info: Optional[Sequence[Tuple[Any, Tuple[int, ...]]]] = None,
                 **kwargs: Any) -> Tuple[Any, ...]:
        """One operator, as a model of its own. `opset_version` tells which opset it is of (17).

            >>> node = onnx.helper.make_node("Relu", ["x"], ["y"])
            >>> plimsoll.backend.run_node(node, [numpy.array([-1.0, 1.0])])[0].tolist()
            [0.0, 1.0]
        """
        opset = int(kwargs.pop("opset_version", 17))
        arrays = [numpy.asarray(value) for value in (inputs.values() if isinstance(inputs, dict) else inputs)]
        names = [name for name in node.input if name]
        if len(names) != len(arrays):
            raise ValueError(f"node {node.op_type}: {len(names)} inputs are named, found {len(arrays)}")
        graph = onnx.helper.make_graph([node], node.op_type, _infos(names, arrays), _outputs(node, outputs_info))
        imports = [onnx.helper.make_opsetid(node.domain, opset)]
        return cls.prepare(onnx.helper.make_model(graph, opset_imports=imports), device, **kwargs).run(
            dict(zip(names, arrays)))


def _infos(names: List[str], arrays: "List[numpy.ndarray[Any, Any]]") -> List[Any]:
    types: Dict[Any, int] = onnx.mapping.NP_TYPE_TO_TENSOR_TYPE
    return [onnx.helper.make_tensor_value_info(name, types[array.dtype], array.shape) for name, array in zip(names, arrays)]


def _outputs(node: "onnx.NodeProto", info: Optional[Sequence[Tuple[Any, Tuple[int, ...]]]]) -> List[Any]:
    if info is None:  # types and shapes are inferred
        return [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
    types: Dict[Any, int] = onnx.mapping.NP_TYPE_TO_TENSOR_TYPE
    return [onnx.helper.make_tensor_value_info(name, types[numpy.dtype(type_)], shape)
            for name, (type_, shape) in zip(node.output, info)]


is_compatible = PlimsollBackend.is_compatible
prepare = PlimsollBackend.prepare
run_model = PlimsollBackend.run_model
run_node = PlimsollBackend.run_node
supports_device = PlimsollBackend.supports_device
