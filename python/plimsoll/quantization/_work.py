"""Between the entry points and the engine: models that are no files, readers, options by name."""
import contextlib
import copy
import os
import tempfile
from typing import Any, Dict, Iterator, Mapping, Optional, Union

from .._units import parse_bytes

Model = Union[str, "os.PathLike[str]", bytes, Any]  # a path, or a ModelProto


@contextlib.contextmanager
def as_path(model: Model) -> Iterator[str]:
    """Where the model is; one in memory is written to a file of its own first."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    data = model if isinstance(model, bytes) else model.SerializeToString()
    with tempfile.TemporaryDirectory(prefix="plimsoll-quantize-") as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(data)
        yield path


class Reader:
    """A CalibrationDataReader as the engine takes it. One that cannot begin anew is copied before the first sample."""

    def __init__(self, reader: Any, again: bool) -> None:
        if not callable(getattr(reader, "get_next", None)):
            raise TypeError(f"expected a CalibrationDataReader with get_next(), found {type(reader).__name__}")
        self._reader = reader
        self._fresh: Any = None
        if again and not callable(getattr(reader, "rewind", None)):
            with contextlib.suppress(Exception):
                self._fresh = copy.deepcopy(reader)

    def next(self) -> Optional[Dict[str, Any]]:
        sample = self._reader.get_next()
        if sample is not None and not isinstance(sample, Mapping):
            raise TypeError(f"expected a dict of inputs or None from get_next(), found {type(sample).__name__}")
        return None if sample is None else dict(sample)

    def rewind(self) -> bool:
        if callable(getattr(self._reader, "rewind", None)):
            self._reader.rewind()
            return True
        if self._fresh is None:
            return False
        self._reader = copy.deepcopy(self._fresh)
        return True


def work(model_input: Model, model_output: Optional[Union[str, "os.PathLike[str]"]], options: Dict[str, Any], reader: Any = None,
         memory_limit: Union[None, int, str] = None) -> Dict[str, Any]:
    """Without an output: calibration alone."""
    from .. import _engine
    options = {name: value for name, value in options.items() if value is not None}
    if memory_limit is not None:
        options["memory_limit_bytes"] = parse_bytes(memory_limit, "memory_limit")
    again = options.get("method", 0) != 0 or any(name in options for name in ("gptq", "max_loss", "target_bytes"))
    native = None if reader is None else Reader(reader, again)
    with as_path(model_input) as path:
        return _engine.quantize(path, "" if model_output is None else os.fspath(model_output), options, native)
