"""Training with ONNX Runtime's names: ORTModule around a PyTorch module; artifacts, api and onnxblock for ONNX models.
docs/training-python.md

Nothing here is imported before it is used: torch is a second of every process's life.
"""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import api as api
    from . import artifacts as artifacts
    from . import onnxblock as onnxblock
    from . import ortmodule as ortmodule
    from .ortmodule import ORTModule as ORTModule

_MODULES = ["api", "artifacts", "onnxblock", "ortmodule"]
_HOME = {"ORTModule": "ortmodule"}
__all__ = sorted([*_MODULES, *_HOME])


def __getattr__(name: str) -> object:
    import importlib
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list:  # type: ignore[type-arg]
    return sorted([*globals(), *__all__])
