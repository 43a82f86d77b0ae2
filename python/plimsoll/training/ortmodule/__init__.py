"""ORTModule: a PyTorch module whose forward and backward passes run here. docs/training-python.md"""
from ._fallback import (ORTModuleDeviceException, ORTModuleFallbackException, ORTModuleInitException, ORTModuleIOError,
                        ORTModuleONNXModelException, ORTModuleTorchModelException)
from ._module import ORTModule
from ._options import DebugOptions, LogLevel

__all__ = ["DebugOptions", "LogLevel", "ORTModule", "ORTModuleDeviceException", "ORTModuleFallbackException", "ORTModuleIOError",
           "ORTModuleInitException", "ORTModuleONNXModelException", "ORTModuleTorchModelException"]
