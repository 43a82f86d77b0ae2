"""DebugOptions, LogLevel, and the variables of the environment."""
import logging
import os
import sys
from enum import IntEnum
from typing import Any, Dict

from ...errors import InvalidArgument

LOGGER = logging.getLogger("plimsoll.training.ortmodule")


class LogLevel(IntEnum):
    """How much ORTModule tells, as ONNX Runtime numbers it."""
    VERBOSE = 0
    DEVINFO = 1
    INFO = 2
    WARNING = 3
    ERROR = 4
    FATAL = 5


_PYTHONS = {LogLevel.VERBOSE: logging.DEBUG, LogLevel.DEVINFO: logging.INFO, LogLevel.INFO: logging.INFO,
            LogLevel.WARNING: logging.WARNING, LogLevel.ERROR: logging.ERROR, LogLevel.FATAL: logging.CRITICAL}

# Variables of ONNX Runtime that change nothing here, and why.
_WITHOUT_EFFECT = {
    "ORTMODULE_CACHE_DIR": "exports are made anew in every process",
    "ORTMODULE_CONV_ALGO_SEARCH": "there is no cuDNN here",
    "ORTMODULE_DEEPCOPY_BEFORE_MODEL_EXPORT": "exporting changes nothing of the module here",
    "ORTMODULE_ENABLE_COMPUTE_OPTIMIZER": "the passes are those of inference",
    "ORTMODULE_ENABLE_CUSTOM_AUTOGRAD": "Python's autograd functions are not exported: PyTorch runs such modules",
    "ORTMODULE_ENABLE_EMBEDDING_SPARSE_OPTIMIZER": "padding is not looked for",
    "ORTMODULE_ENABLE_MEM_EFFICIENT_GRAD_MANAGEMENT": "gradients are made in PyTorch's memory anyway",
    "ORTMODULE_ENABLE_SPARSE_OPTIMIZER": "padding is not looked for",
    "ORTMODULE_ENABLE_TUNING": "kernels are not tuned here",
    "ORTMODULE_ENABLE_ZERO_STAGE3": "one process trains",
    "ORTMODULE_MAX_TUNING_DURATION_MS": "kernels are not tuned here",
    "ORTMODULE_MEMORY_OPT_PROBE_RECOMPUTE_LEVEL": "plans are looked for as far as it takes",
    "ORTMODULE_PRINT_INPUT_DENSITY": "padding is not looked for",
    "ORTMODULE_SKIPCHECK_POLICY": "nothing that is checked takes time",
    "ORTMODULE_TUNING_RESULTS_PATH": "kernels are not tuned here",
    "ORTMODULE_USE_EFFICIENT_ATTENTION": "attention is fused by the passes",
    "ORTMODULE_USE_FLASH_ATTENTION": "attention is fused by the passes",
    "ORTMODULE_USE_TRITON": "there is no GPU here",
}
_USED = {"ORTMODULE_FALLBACK_POLICY", "ORTMODULE_FALLBACK_RETRY", "ORTMODULE_LOG_LEVEL", "ORTMODULE_MEMORY_OPT_CONFIG",
         "ORTMODULE_MEMORY_OPT_LEVEL", "ORTMODULE_ONNX_OPSET_VERSION", "ORTMODULE_PRINT_MEMORY_STATS", "ORTMODULE_SAVE_ONNX_PATH"}


class DebugOptions:
    """What an ORTModule tells and keeps.

        >>> ORTModule(module, DebugOptions(log_level=LogLevel.INFO, save_onnx=True, onnx_prefix="net"))

    ORTMODULE_LOG_LEVEL, where it is set, takes the place of `log_level`; ORTMODULE_SAVE_ONNX_PATH says where files go.
    """

    def __init__(self, log_level: LogLevel = LogLevel.WARNING, save_onnx: bool = False, onnx_prefix: str = "",
                 save_path: str = "") -> None:
        if not isinstance(log_level, LogLevel):
            raise TypeError(f"log_level: expected LogLevel, found {type(log_level).__name__}")
        if save_onnx and not isinstance(onnx_prefix, str):
            raise TypeError(f"onnx_prefix: expected str, found {type(onnx_prefix).__name__}")
        if save_onnx and not onnx_prefix:
            raise ValueError("onnx_prefix: expected a prefix for the files that save_onnx writes, found none")
        name = os.environ.get("ORTMODULE_LOG_LEVEL", log_level.name)
        if name not in LogLevel.__members__:
            raise InvalidArgument(f"ORTMODULE_LOG_LEVEL: expected {', '.join(LogLevel.__members__)}, found '{name}'")
        self.log_level = LogLevel[name]
        self.save_onnx = bool(save_onnx)
        self.onnx_prefix = onnx_prefix
        self.save_path = os.environ.get("ORTMODULE_SAVE_ONNX_PATH", save_path or os.getcwd())
        if save_onnx and not os.access(self.save_path, os.W_OK):
            raise OSError(f"save_onnx: expected a folder that can be written into, found '{self.save_path}'")


class Report:
    """What one module tells, at its own level."""

    def __init__(self, options: DebugOptions) -> None:
        self.options, self.level = options, options.log_level
        if self.level < LogLevel.WARNING:
            _show()

    def tell(self, level: LogLevel, text: str) -> None:
        if level >= self.level:
            LOGGER.log(_PYTHONS[level], "%s", text)

    def tell_environment(self) -> None:
        for name in sorted(os.environ):
            if name.startswith("ORTMODULE_") and name not in _USED:
                why = _WITHOUT_EFFECT.get(name, "nobody knows this variable")
                self.tell(LogLevel.WARNING if name not in _WITHOUT_EFFECT else LogLevel.INFO, f"{name} has no effect: {why}")

    def wants(self, level: LogLevel) -> bool:
        return level >= self.level


class _ToStandardError(logging.StreamHandler):  # type: ignore[type-arg]
    """To whatever standard error is at that moment."""

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, _: Any) -> None:
        pass


def _show() -> None:
    """Who asks for a level below warnings wants to see it, also where nobody set up logging."""
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(logging.DEBUG)
    if not LOGGER.hasHandlers():
        handler = _ToStandardError()
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        LOGGER.addHandler(handler)


def opset_version() -> int:
    """ORTMODULE_ONNX_OPSET_VERSION, or 17."""
    text = os.environ.get("ORTMODULE_ONNX_OPSET_VERSION", "17")
    if not text.isdigit() or not 14 <= int(text) <= 17:
        raise InvalidArgument(f"ORTMODULE_ONNX_OPSET_VERSION: expected 14 to 17, found '{text}'")
    return int(text)


def prints_memory() -> bool:
    return os.environ.get("ORTMODULE_PRINT_MEMORY_STATS") == "1"


def sizes(statistics: Dict[str, int]) -> str:
    return ", ".join(f"{name} {size:,}" for name, size in statistics.items())
