"""The names that programs import from `onnxruntime.capi.onnxruntime_pybind11_state`.

    >>> from plimsoll.capi.onnxruntime_pybind11_state import InvalidArgument, NoSuchFile
    >>> issubclass(InvalidArgument, ValueError), issubclass(NoSuchFile, FileNotFoundError)
    (True, True)
"""
from .._engine import SessionIOBinding
from ..errors import (BudgetExceeded, Cancelled, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidModel,
                      InvalidProtobuf, ModelLoaded, NoModel, NoSuchFile, OutOfMemory, RuntimeException)
from ..errors import NotImplementedYet as NotImplemented  # ONNX Runtime's name
from ..enums import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtDeviceMemoryType,
                     OrtMemoryInfoDeviceType, OrtMemType, OrtSparseFormat)
from ..environment import (create_and_register_allocator, create_and_register_allocator_v2, get_all_providers,
                           get_available_providers, get_build_info, get_device, get_version_string,
                           set_default_logger_severity, set_default_logger_verbosity, set_seed)
from ..memory import OrtArenaCfg, OrtMemoryInfo
from ..metadata import ModelMetadata, NodeArg
from ..options import RunOptions, SessionOptions
from ..sparse import SparseTensor
from ..values import OrtDevice, OrtValue, OrtValueVector
