"""One export for one set of sizes: two sessions, run on PyTorch's memory."""
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from ... import _engine
from ...errors import EngineError, Error, InvalidArgument, IoError
from ...options import RunOptions, SessionOptions
from ._export import PREFIX, Export
from ._fallback import ORTModuleIOError, ORTModuleONNXModelException
from ._options import LogLevel, Report, prints_memory, sizes

# ONNX's numbers of types.
_NUMBERS = {torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6, torch.int64: 7, torch.bool: 9,
            torch.float16: 10, torch.float64: 11, torch.bfloat16: 16}
_TYPES = {number: dtype for dtype, number in _NUMBERS.items()}


def _number(dtype: torch.dtype) -> int:
    if dtype not in _NUMBERS:
        raise ORTModuleIOError(f"expected a tensor of {', '.join(map(str, _NUMBERS))}, found {dtype}")
    return _NUMBERS[dtype]


class _Part:
    """A session and its binding. What stays where it was is bound once."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.binding = _engine.SessionIOBinding(session)
        inputs, outputs, _ = session._infos()
        self.inputs: List[str] = [info[0] for info in inputs]
        self.outputs: Dict[str, Tuple[torch.dtype, Optional[List[int]]]] = {}
        for name, number, _, dims, symbols in outputs:
            known = not any(symbols) and all(size >= 0 for size in dims)
            self.outputs[name] = (_TYPES[number], list(dims) if known else None)
        self._bound: Dict[str, Tuple[int, torch.Size]] = {}

    def run(self, given: Dict[str, torch.Tensor], options: Optional[RunOptions]) -> Dict[str, torch.Tensor]:
        for name in self.inputs:
            tensor = given[name]
            place = (tensor.data_ptr(), tensor.shape)
            if self._bound.get(name) != place or tensor.numel() == 0:
                self._bind_input(name, tensor)
                self._bound[name] = place
        made: Dict[str, torch.Tensor] = {}
        for name, (dtype, shape) in self.outputs.items():
            if shape is None:
                self.binding.bind_output(name)
                continue
            tensor = made[name] = torch.empty(shape, dtype=dtype)
            if tensor.numel() > 0:
                self.binding.bind_output_at(name, _NUMBERS[dtype], shape, tensor.data_ptr())
            else:
                self.binding.bind_output(name)
        self.session._run_binding(self.binding, options)
        if len(made) < len(self.outputs):
            results = dict(zip(self.binding.output_names(), self.binding.get_outputs()))
            made.update((name, _tensor_of(results[name], self.outputs[name][0])) for name in self.outputs if name not in made)
        return made

    def _bind_input(self, name: str, tensor: torch.Tensor) -> None:
        if tensor.numel() > 0:
            self.binding.bind_input_at(name, _number(tensor.dtype), list(tensor.shape), tensor.data_ptr())
        else:
            self.binding.bind_ortvalue_input(name, _engine.OrtValue.from_shape(list(tensor.shape), _number(tensor.dtype)))


def _tensor_of(value: Any, dtype: torch.dtype) -> torch.Tensor:
    array = torch.from_numpy(value.numpy())
    return array.view(dtype) if array.dtype != dtype else array


class Program:
    """`wanted`: names of the inputs whose gradients are wanted; `precision`: of what is kept between the passes."""

    def __init__(self, export: Export, shapes: Dict[str, Sequence[int]], wanted: List[str], precision: str, report: Report) -> None:
        self.wanted, self._lock = wanted, threading.Lock()
        options = SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.max_concurrent_runs = 1
        for name, shape in shapes.items():
            for i, size in enumerate(shape):
                options.add_free_dimension_override_by_name(f"{name}_dim{i}", size)
        try:
            made = _engine.open_gradient_sessions(export.model, options._native(), wanted, "auto", precision)
        except (InvalidArgument, IoError):
            raise  # of sizes that do not fit, or a configuration that nobody can follow
        except (Error, EngineError) as error:
            raise ORTModuleONNXModelException(str(error)) from error
        self._forward = _Part(made["forward"])
        self._backward = None if made["backward"] is None else _Part(made["backward"])
        self.outputs: List[str] = made["outputs"]
        self.cotangents: List[str] = made["cotangents"]
        self._gradients: List[str] = made["gradients"]
        self._stashed: List[str] = made["stashed"] if self._backward is not None else []
        self._statistics: List[Tuple[str, str]] = made["statistics"]
        self._draws: bool = made["draws"]
        export.check_statistics([name[len(PREFIX):] for name, _ in self._statistics])
        backward = set() if self._backward is None else set(self._backward.inputs)
        self.kept = [name for name in self._forward.inputs if name in backward]
        for name in backward - set(self._forward.inputs) - set(self._stashed) - set(self.cotangents):
            self.kept.append(name)  # only the backward part reads it
        self._tell(made, report)

    @property
    def has_backward(self) -> bool:
        return self._backward is not None

    def forward(self, given: Dict[str, torch.Tensor]) -> Tuple[List[torch.Tensor], List[torch.Tensor], Optional[RunOptions]]:
        """The outputs; what the backward pass needs of them; with which numbers it draws."""
        options = None
        if self._draws:
            options = RunOptions()
            options._random_seed = int(torch.randint(0, 2**63 - 1, (1,), dtype=torch.int64))
        with self._lock:
            made = self._forward.run(given, options)
        with torch.no_grad():
            for name, following in self._statistics:
                given[name].copy_(made[following])
        return [made[name] for name in self.outputs], [made[name] for name in self._stashed], options

    def backward(self, kept: Sequence[torch.Tensor], stashed: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor],
                 options: Optional[RunOptions]) -> List[Optional[torch.Tensor]]:
        """The gradients of what is wanted."""
        assert self._backward is not None
        given = dict(zip(self.kept, kept))
        given.update(zip(self._stashed, stashed))
        given.update((name, tensor) for name, tensor in zip(self.cotangents, cotangents) if name)
        with self._lock:
            made = self._backward.run(given, options)
        return [made[name] if name else None for name in self._gradients]

    def _tell(self, made: Dict[str, Any], report: Report) -> None:
        for cluster in made["unknown_clusters"]:
            report.tell(LogLevel.WARNING, f"memory optimizer: this module has no cluster {cluster}")
        if self._backward is None:
            return
        saved = made["all_stashed_bytes"] - made["stashed_bytes"]
        told = f"between forward and backward {made['stashed_bytes']:,} bytes are kept"
        report.tell(LogLevel.INFO, told + (f", {saved:,} fewer than without recomputation" if saved else ""))
        if prints_memory():
            for name, part in (("forward", self._forward), ("backward", self._backward)):
                peak = part.session._memory_report()
                report.tell(LogLevel.WARNING, f"{name}: {sizes({'now': peak.now_bytes, 'peak': peak.peak_bytes})} bytes; {told}")


def memory_table(export: Export, shapes: Dict[str, Sequence[int]], wanted: List[str], precision: str, devinfo: bool) -> str:
    """The memory optimizer's table: rows and bytes are those of the sizes at hand, each in the symbols of the inputs' dimensions
    where the graph with symbols has the same row."""
    def table(model: bytes, options: SessionOptions) -> str:
        return _engine.describe_gradient_memory(model, options._native(), wanted, "auto", precision, shapes, devinfo)

    known = SessionOptions()
    for name, shape in shapes.items():
        for i, size in enumerate(shape):
            known.add_free_dimension_override_by_name(f"{name}_dim{i}", size)
    told = table(export.model, known)
    symbols: Dict[Tuple[str, ...], str] = {}
    # Sizes that are equal may be one dimension, which decides what broadcasts; one that is a parameter's may be just that.
    for model in (export.model, _with_shared_symbols(export.model, shapes, False), _with_shared_symbols(export.model, shapes, True)):
        try:
            for row, text in _symbols(table(model, SessionOptions())).items():
                symbols.setdefault(row, text)
        except (Error, EngineError):
            continue
    return _with_symbols(told, symbols)


_SYMBOLIC, _BEHIND = "Saving Symbolic(Bytes)", "Planned Saving(Bytes)"


def _row(line: str) -> Tuple[str, ...]:
    """Configuration, count and bytes."""
    return tuple(line.split()[6:9])


def _column(lines: List[str]) -> Tuple[int, int]:
    header = next(line for line in lines if _SYMBOLIC in line)
    return header.index(_SYMBOLIC), header.index(_BEHIND)


def _symbols(table: str) -> Dict[Tuple[str, ...], str]:
    lines = table.splitlines()
    start, end = _column(lines)
    return {_row(line): line[start:end].strip() for line in lines if line.startswith("- Plan")}


def _with_symbols(table: str, symbols: Dict[Tuple[str, ...], str]) -> str:
    lines = table.splitlines()
    start, end = _column(lines)
    texts = {i: symbols.get(_row(line), line[start:end].strip()) for i, line in enumerate(lines) if line.startswith("- Plan")}
    texts.update((i, _SYMBOLIC) for i, line in enumerate(lines) if _SYMBOLIC in line)
    width = max(map(len, texts.values())) + 2
    return "\n".join(line[:start] + texts[i].ljust(width) + line[end:] if i in texts else line for i, line in enumerate(lines)) + "\n"


def _with_shared_symbols(model: bytes, shapes: Dict[str, Sequence[int]], fix: bool) -> bytes:
    """Dimensions that have the same size are taken for the same one; with `fix`, for a number where it is one of a parameter's."""
    try:
        import onnx
    except ImportError:
        return model
    names: Dict[int, str] = {}
    proto = onnx.load_from_string(model)
    fixed = {dim.dim_value for value in proto.graph.input if value.name not in shapes
             for dim in value.type.tensor_type.shape.dim} - {1}
    for value in proto.graph.input:
        for size, dim in zip(shapes.get(value.name, ()), value.type.tensor_type.shape.dim):
            if fix and size in fixed:
                dim.dim_value = size
            elif dim.dim_param:
                dim.dim_param = names.setdefault(size, dim.dim_param)
    return bytes(proto.SerializeToString())
