"""Plimsoll: memory as a promise. See docs/python.md.

Importing this package imports neither numpy nor torch, and of itself only what is used: every worker imports it, and
a worker that starts sooner is worth it.
"""
TYPE_CHECKING = False  # typing itself takes milliseconds
if TYPE_CHECKING:
    from . import backend, capi, observe, quantization, torch_doctor, training
    from ._as_onnxruntime import install_as_onnxruntime
    from ._engine import SessionIOBinding
    from ._native import __version__
    from ._shared import shared_empty
    from .advice import Checklist, Point, checklist
    from .binding import IOBinding
    from .enums import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtDeviceMemoryType,
                        OrtDeviceVendorId, OrtMemoryInfoDeviceType, OrtMemType, OrtSparseFormat)
    from .environment import (create_and_register_allocator, create_and_register_allocator_v2, disable_telemetry_events,
                              enable_telemetry_events, get_all_providers, get_available_providers, get_build_info,
                              get_device, get_version_string, has_collective_ops, preload_dlls, print_debug_info,
                              set_default_logger_severity, set_default_logger_verbosity, set_seed)
    from .errors import (BudgetExceeded, Busy, Cancelled, DeadlineExceeded, EngineError, EPFail, Error, Fail,
                         InvalidArgument, InvalidFeed, InvalidGraph, InvalidModel, InvalidProtobuf, IoError,
                         JobCancelled, JobError, MemoryLimitExceeded, ModelLoaded, NoModel, NoSuchFile,
                         NotImplementedYet, NotTransferable, OutOfMemory, RemoteError, ResultTooLarge,
                         ResultUnreadable, RuntimeException, StartFailed, TimeLimitExceeded, WorkerDied)
    from .inference import InferenceSession
    from .isolate import Result, Sandbox, isolated, isolated_source
    from .memory import OrtArenaCfg, OrtMemoryInfo
    from .memory_profile import MemoryProfile, MemorySample, profile_memory
    from .metadata import ModelMetadata, NodeArg
    from .options import RunOptions, SessionOptions
    from .plan import Plan
    from .pool import JobFuture, Pool
    from .receipt import Receipt
    from .sparse import SparseTensor
    from .torch_export import TorchSession, from_torch
    from .values import OrtDevice, OrtValue, OrtValueVector, copy_tensors

_HOME = {  # of each public name
    "_as_onnxruntime": ["install_as_onnxruntime"],
    "_engine": ["SessionIOBinding"],
    "_native": ["__version__"],
    "_shared": ["shared_empty"],
    "advice": ["Checklist", "Point", "checklist"],
    "binding": ["IOBinding"],
    "enums": [
        "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "OrtAllocatorType", "OrtDeviceMemoryType",
        "OrtDeviceVendorId", "OrtMemType", "OrtMemoryInfoDeviceType", "OrtSparseFormat"],
    "environment": [
        "create_and_register_allocator", "create_and_register_allocator_v2", "disable_telemetry_events",
        "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
        "get_version_string", "has_collective_ops", "preload_dlls", "print_debug_info", "set_default_logger_severity",
        "set_default_logger_verbosity", "set_seed"],
    "errors": [
        "BudgetExceeded", "Busy", "Cancelled", "DeadlineExceeded", "EPFail", "EngineError", "Error", "Fail",
        "InvalidArgument", "InvalidFeed", "InvalidGraph", "InvalidModel", "InvalidProtobuf", "IoError", "JobCancelled",
        "JobError", "MemoryLimitExceeded", "ModelLoaded", "NoModel", "NoSuchFile", "NotImplementedYet",
        "NotTransferable", "OutOfMemory", "RemoteError", "ResultTooLarge", "ResultUnreadable", "RuntimeException",
        "StartFailed", "TimeLimitExceeded", "WorkerDied"],
    "inference": ["InferenceSession"],
    "isolate": ["Result", "Sandbox", "isolated", "isolated_source"],
    "memory": ["OrtArenaCfg", "OrtMemoryInfo"],
    "memory_profile": ["MemoryProfile", "MemorySample", "profile_memory"],
    "metadata": ["ModelMetadata", "NodeArg"],
    "options": ["RunOptions", "SessionOptions"],
    "plan": ["Plan"],
    "pool": ["JobFuture", "Pool"],
    "receipt": ["Receipt"],
    "sparse": ["SparseTensor"],
    "torch_export": ["TorchSession", "from_torch"],
    "values": ["OrtDevice", "OrtValue", "OrtValueVector", "copy_tensors"],
}
_MODULES = ["backend", "capi", "observe", "quantization", "torch_doctor", "training"]
__all__ = sorted([*_MODULES, *(name for names in _HOME.values() for name in names)])


def __getattr__(name: str) -> object:
    import importlib
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    for home, names in _HOME.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list:  # type: ignore[type-arg]
    return sorted([*globals(), *__all__])
