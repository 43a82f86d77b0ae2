"""What holds for the whole process: providers, seeds, loggers, versions, shared allocators."""
from typing import TYPE_CHECKING, Dict, List, Optional

from ._engine import instruction_set
from ._native import __version__
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .memory import OrtArenaCfg, OrtMemoryInfo

CPU = "CPUExecutionProvider"

# ONNX Runtime's names, in its order. Ours is the last.
_ALL = [
    "NvTensorRTRTXExecutionProvider", "TensorrtExecutionProvider", "CUDAExecutionProvider", "MIGraphXExecutionProvider",
    "OpenVINOExecutionProvider", "DnnlExecutionProvider", "VitisAIExecutionProvider", "QNNExecutionProvider",
    "NnapiExecutionProvider", "VSINPUExecutionProvider", "JsExecutionProvider", "CoreMLExecutionProvider",
    "ACLExecutionProvider", "DmlExecutionProvider", "RknpuExecutionProvider", "WebNNExecutionProvider",
    "WebGpuExecutionProvider", "XnnpackExecutionProvider", "CANNExecutionProvider", "AzureExecutionProvider", CPU
]
_PAST = ["ROCMExecutionProvider", "TvmExecutionProvider", "SNPEExecutionProvider", "ArmNNExecutionProvider"]

seed = 0  # of sessions that are opened from now on; 0: another one for each
logger_severity = 2
logger_verbosity = 0


def get_available_providers() -> List[str]:
    """The execution providers of this package: the CPU.

        >>> plimsoll.get_available_providers()
        ['CPUExecutionProvider']
    """
    return [CPU]


def get_all_providers() -> List[str]:
    """Every provider that ONNX Runtime knows by name. Those that are not available here are replaced by the CPU.

        >>> plimsoll.get_all_providers()[-1]
        'CPUExecutionProvider'
    """
    return list(_ALL)


def is_known_provider(name: str) -> bool:
    return name in _ALL or name in _PAST


def get_device() -> str:
    """Where models run.

        >>> plimsoll.get_device()
        'CPU'
    """
    return "CPU"


def get_version_string() -> str:
    """The package's version.

        >>> plimsoll.get_version_string() == plimsoll.__version__
        True
    """
    return __version__


def get_build_info() -> str:
    """Version and instruction set in one line.

        >>> plimsoll.get_build_info().startswith("Plimsoll Build Info: version=")
        True
    """
    return f"Plimsoll Build Info: version={__version__}, build type=Release, instruction set={instruction_set()}"


def set_seed(value: int) -> None:
    """Random operators without a seed of their own draw from this one, in sessions opened afterwards.

        >>> plimsoll.set_seed(42)
    """
    global seed
    if not isinstance(value, int):
        raise TypeError(f"set_seed: expected an int, found {type(value).__name__}")
    seed = value & (1 << 64) - 1


def set_default_logger_severity(severity: int) -> None:
    """Sessions tell of what is at least this severe: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.

        >>> plimsoll.set_default_logger_severity(3)
    """
    global logger_severity
    if severity not in range(5):
        raise InvalidArgument(f"logging severity {severity}: expected 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")
    logger_severity = severity


def set_default_logger_verbosity(vlog_level: int) -> None:
    """Accepted; there are no levels within the verbose one.

        >>> plimsoll.set_default_logger_verbosity(0)
    """
    global logger_verbosity
    logger_verbosity = int(vlog_level)


def enable_telemetry_events() -> None:
    """Accepted; there is no telemetry.

        >>> plimsoll.enable_telemetry_events()
    """


def disable_telemetry_events() -> None:
    """Accepted; there is no telemetry.

        >>> plimsoll.disable_telemetry_events()
    """


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: Optional[str] = None) -> None:
    """Accepted; there are no libraries of CUDA to be found.

        >>> plimsoll.preload_dlls()
    """


def print_debug_info() -> None:
    """Prints what belongs into a report of a fault.

        >>> plimsoll.print_debug_info()
    """
    import platform
    print(f"plimsoll {__version__}, {get_build_info()}")
    print(f"Python {platform.python_version()}, {platform.platform()}")
    print(f"providers: {', '.join(get_available_providers())}")


def has_collective_ops() -> bool:
    """Whether operators over several machines are there.

        >>> plimsoll.has_collective_ops()
        False
    """
    return False


def create_and_register_allocator(mem_info: "OrtMemoryInfo", arena_cfg: "Optional[OrtArenaCfg]" = None) -> None:
    """An arena for sessions with the config entry "session.use_env_allocators": what they do not plan comes from it.
    A process has one.

        >>> info = plimsoll.OrtMemoryInfo("Cpu", plimsoll.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, plimsoll.OrtMemType.DEFAULT)
        >>> plimsoll.create_and_register_allocator(info, plimsoll.OrtArenaCfg({"max_mem": 1 << 30}))
    """
    create_and_register_allocator_v2(CPU, mem_info, {}, arena_cfg)


def create_and_register_allocator_v2(provider_type: str, mem_info: "OrtMemoryInfo", options: Dict[str, str],
                                     arena_cfg: "Optional[OrtArenaCfg]" = None) -> None:
    """The same, for a provider by name: ours is the CPU.

        >>> plimsoll.create_and_register_allocator_v2("CPUExecutionProvider", info, {}, plimsoll.OrtArenaCfg(0, -1, -1, -1))
    """
    from . import _engine
    from .memory import OrtArenaCfg, OrtMemoryInfo
    if not isinstance(mem_info, OrtMemoryInfo):
        raise TypeError(f"mem_info: expected OrtMemoryInfo, found {type(mem_info).__name__}")
    if arena_cfg is not None and not isinstance(arena_cfg, OrtArenaCfg):
        raise TypeError(f"arena_cfg: expected OrtArenaCfg or None, found {type(arena_cfg).__name__}")
    settings = {} if arena_cfg is None else {name: getattr(arena_cfg, name) for name in OrtArenaCfg.__slots__}
    _engine.register_allocator(provider_type, mem_info.name, int(mem_info.allocator_type), mem_info.device_id,
                               int(mem_info.mem_type), dict(options), settings)


def warn(message: str, severity: Optional[int] = None) -> None:
    """Through Python's logger "plimsoll", if warnings are wanted."""
    if (logger_severity if severity is None or severity < 0 else severity) <= 2:
        import logging
        logging.getLogger("plimsoll").warning("%s", message)
