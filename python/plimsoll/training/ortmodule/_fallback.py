"""When PyTorch itself runs the module: ONNX Runtime's policies, by their names."""
import os
import warnings
from enum import IntFlag
from typing import Any, Dict, Optional, Tuple, Type

from ...errors import InvalidArgument


class ORTModuleFallbackException(Exception):
    """What may be answered by letting PyTorch run the module."""


class ORTModuleInitException(ORTModuleFallbackException):
    """Something that ORTModule needs is missing."""


class ORTModuleDeviceException(ORTModuleFallbackException):
    """A tensor or a parameter that is not in the CPU's memory."""


class ORTModuleIOError(ORTModuleFallbackException):
    """An argument or a result that cannot cross."""


class ORTModuleTorchModelException(ORTModuleFallbackException):
    """A module that is no plain one, or that changes itself in a way that its export does not show."""


class ORTModuleONNXModelException(ORTModuleFallbackException):
    """A module that PyTorch cannot export, or whose export has no gradient here."""


class FallbackPolicy(IntFlag):
    """Which of them are answered so; they may be combined."""
    FALLBACK_DISABLE = 1
    FALLBACK_FORCE_TORCH_FORWARD = 2
    FALLBACK_FORCE_TORCH_BACKWARD = 4
    FALLBACK_UNSUPPORTED_DEVICE = 8
    FALLBACK_UNSUPPORTED_DATA = 16
    FALLBACK_UNSUPPORTED_TORCH_MODEL = 32
    FALLBACK_UNSUPPORTED_ONNX_MODEL = 64
    FALLBACK_BAD_INITIALIZATION = 128


_ANY = (ORTModuleFallbackException,)
_ANSWERED: Dict[FallbackPolicy, Tuple[Type[Exception], ...]] = {
    FallbackPolicy.FALLBACK_FORCE_TORCH_FORWARD: _ANY,
    FallbackPolicy.FALLBACK_FORCE_TORCH_BACKWARD: _ANY,
    FallbackPolicy.FALLBACK_UNSUPPORTED_DEVICE: (ORTModuleDeviceException,),
    FallbackPolicy.FALLBACK_UNSUPPORTED_DATA: (ORTModuleIOError,),
    FallbackPolicy.FALLBACK_UNSUPPORTED_TORCH_MODEL: (ORTModuleTorchModelException,),
    FallbackPolicy.FALLBACK_UNSUPPORTED_ONNX_MODEL: (ORTModuleONNXModelException,),
    FallbackPolicy.FALLBACK_BAD_INITIALIZATION: (ORTModuleInitException, ORTModuleTorchModelException),
}
_DEFAULT = (FallbackPolicy.FALLBACK_UNSUPPORTED_DEVICE | FallbackPolicy.FALLBACK_UNSUPPORTED_DATA
            | FallbackPolicy.FALLBACK_UNSUPPORTED_TORCH_MODEL | FallbackPolicy.FALLBACK_UNSUPPORTED_ONNX_MODEL)


def _policy(text: str) -> FallbackPolicy:
    policy = FallbackPolicy(0)
    for name in text.replace("|", ",").split(","):
        if name.strip() not in FallbackPolicy.__members__:
            raise InvalidArgument(f"ORTMODULE_FALLBACK_POLICY: expected {', '.join(FallbackPolicy.__members__)}, found '{name.strip()}'")
        policy |= FallbackPolicy[name.strip()]
    return policy


class Fallback:
    """What a module does about exceptions: ORTMODULE_FALLBACK_POLICY and ORTMODULE_FALLBACK_RETRY."""

    def __init__(self) -> None:
        given = os.environ.get("ORTMODULE_FALLBACK_POLICY")
        self.policy = _policy(given) if given is not None else _DEFAULT
        self.retry = os.environ.get("ORTMODULE_FALLBACK_RETRY", "false").lower() in ("1", "true", "yes")
        self.pending: Optional[Exception] = None

    def answer(self, error: Exception) -> None:
        """Remembers it, with a warning, if the policy has an answer to it; else raises it."""
        if FallbackPolicy.FALLBACK_DISABLE in self.policy:
            raise error
        for policy, kinds in _ANSWERED.items():
            if policy in self.policy and isinstance(error, kinds):
                self.pending = error
                warnings.warn(f"PyTorch runs this module itself ({policy.name}): {type(error).__name__}: {error}", stacklevel=4)
                return
        raise error

    def run(self, module: Any, arguments: Any, keywords: Any) -> Any:
        """By PyTorch. If it cannot either, the call was wrong, and the next one has another chance."""
        pending, self.pending = self.pending, None
        answer = module(*arguments, **keywords)
        if not self.retry:
            self.pending = pending
        return answer
