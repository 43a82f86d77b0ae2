"""ONNX's backend interface (onnx.backend.base) on Plimsoll; needs Debian's python3-onnx.

    import onnx, plimsoll.backend
    prepared = plimsoll.backend.prepare(onnx.load("model.onnx"), "CPU")
    outputs = prepared.run([array])
"""
from ._backend import (PlimsollBackend, PlimsollBackendRep, is_compatible, prepare, run_model, run_node,
                       supports_device)
from ._backend import run_model as run

__all__ = ["PlimsollBackend", "PlimsollBackendRep", "is_compatible", "prepare", "run", "run_model", "run_node",
           "supports_device"]
