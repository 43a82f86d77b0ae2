"""As plimsoll.capi.onnxruntime_pybind11_state: ONNX Runtime has both names."""
from .onnxruntime_pybind11_state import *  # noqa: F401,F403
