"""Where ONNX Runtime's package keeps its native half: the names that programs import from there."""
_MODULES = ["_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state"]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        import importlib
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
