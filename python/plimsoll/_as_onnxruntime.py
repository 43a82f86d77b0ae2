"""`import onnxruntime` means Plimsoll: what `python -m plimsoll.run` and `install_as_onnxruntime` put in place."""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from typing import Optional, Sequence

REFUSED = {  # parts of ONNX Runtime that Plimsoll does not have, and what to do instead
    "onnxruntime.transformers": "Plimsoll fuses by itself when a session is made: the model needs no tool before",
    "onnxruntime.tools": "these are ONNX Runtime's own tools; `plimsoll --help` lists ours",
    "onnxruntime.datasets": "Plimsoll ships no models",
}


class _Alias(importlib.abc.Loader):
    """Loads plimsoll.X under the name onnxruntime.X: the same module, not a second copy of it."""

    def __init__(self, target: str):
        self.target = target

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[types.ModuleType]:
        return None  # an empty one, which exec_module puts the real one in place of

    def exec_module(self, module: types.ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self.target)

    def get_code(self, name: str) -> Optional[types.CodeType]:
        """Of a module that is a command: python -m plimsoll.run -m onnxruntime.quantization.preprocess."""
        spec = importlib.util.find_spec(self.target)
        loader = spec.loader if spec is not None else None
        return loader.get_code(self.target) if isinstance(loader, importlib.abc.InspectLoader) else None


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Optional[Sequence[str]] = None,
                  target: Optional[types.ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name != "onnxruntime" and not name.startswith("onnxruntime."):
            return None
        for refused, instead in REFUSED.items():
            if name == refused or name.startswith(refused + "."):
                raise ImportError(f"{refused} is not part of Plimsoll, which this script runs on: {instead}", name=name)
        ours = "plimsoll" + name.removeprefix("onnxruntime")
        if importlib.util.find_spec(ours) is None:
            raise ModuleNotFoundError(f"{name} is not part of Plimsoll, which this script runs on", name=name)
        return importlib.machinery.ModuleSpec(name, _Alias(ours))


def install_as_onnxruntime() -> None:
    """From now on `import onnxruntime` in this process is `import plimsoll`, submodules included.

        import plimsoll
        plimsoll.install_as_onnxruntime()
        import onnxruntime as ort
        session = ort.InferenceSession("model.onnx")    # a plimsoll.InferenceSession

    What Plimsoll does not have (`onnxruntime.transformers`) is an ImportError that says so. Raises
    ImportError if another onnxruntime has been imported before: objects of both in one process would not fit each other.
    """
    import plimsoll
    present = sys.modules.get("onnxruntime")
    if present is not None and present is not plimsoll:
        raise ImportError(f"onnxruntime is already imported from {getattr(present, '__file__', None) or 'elsewhere'}: "
                          "call plimsoll.install_as_onnxruntime() before the first import of it", name="onnxruntime")
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
