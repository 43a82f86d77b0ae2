"""ORTModule itself."""
import os
import threading
from collections import OrderedDict
from typing import Any, Dict, Generic, List, Optional, Tuple, TypeVar

import torch
from torch.autograd.function import once_differentiable

from ._export import PREFIX, Export, hidden_state
from ._fallback import Fallback, ORTModuleFallbackException, ORTModuleTorchModelException
from ._options import DebugOptions, LogLevel, Report
from ._program import Program, memory_table
from ._structure import check_tensor, named_tensors, put_together, take_apart

_MOST_PROGRAMS = 32  # of one module, for as many sets of sizes
_MOST_EXPORTS = 16


_T = TypeVar("_T")


class _Latest(Generic[_T]):
    """The last so many that were used, by their keys; several threads may ask."""

    def __init__(self, most: int) -> None:
        self._most, self._items, self._lock = most, OrderedDict(), threading.Lock()  # type: ignore[var-annotated]

    def get(self, key: Any) -> Optional[_T]:
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def add(self, key: Any, item: _T) -> None:
        with self._lock:
            self._items[key] = item
            if len(self._items) > self._most:
                self._items.popitem(last=False)

    def __len__(self) -> int:
        return len(self._items)


class _Step(torch.autograd.Function):
    """A call of the module, as PyTorch's autograd sees it."""

    @staticmethod
    def forward(ctx: Any, program: Program, given: Dict[str, torch.Tensor], *_: torch.Tensor) -> Any:
        outputs, stashed, options = program.forward(given)
        ctx.program, ctx.options, ctx.kept = program, options, len(program.kept)
        ctx.save_for_backward(*(given[name] for name in program.kept), *stashed)
        ctx.mark_non_differentiable(*(tensor for tensor, name in zip(outputs, program.cotangents) if not name))
        return tuple(outputs)

    @staticmethod
    @once_differentiable  # type: ignore[misc]
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        saved = ctx.saved_tensors
        given = [tensor.contiguous() for tensor in cotangents]
        gradients = ctx.program.backward([tensor.contiguous() for tensor in saved[:ctx.kept]], saved[ctx.kept:], given, ctx.options)
        return (None, None, *gradients)


class ORTModule(torch.nn.Module):
    """A PyTorch module whose forward and backward passes run in Plimsoll; everything else of it stays as it is.

        >>> model = ORTModule(model)
        >>> loss = criterion(model(x), y)
        >>> loss.backward()
        >>> optimizer.step()

    Parameters, buffers and state_dict are the module's own, under the same names: nothing is copied. The module is exported
    when it is first called, and again when ranks, types, flags or `requires_grad` change; for every new set of sizes its graph
    is prepared anew. What cannot be exported, or has no gradient here, is run by PyTorch, with a warning
    (ORTMODULE_FALLBACK_POLICY). With `precision="bf16"` what the backward pass needs is kept in bfloat16; everything is computed
    in float. docs/training-python.md tells more.
    """

    def __init__(self, module: torch.nn.Module, debug_options: Optional[DebugOptions] = None, precision: str = "f32") -> None:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"ORTModule: expected a torch.nn.Module, found {type(module).__name__}")
        if debug_options is not None and not isinstance(debug_options, DebugOptions):
            raise TypeError(f"ORTModule: expected DebugOptions, found {type(debug_options).__name__}")
        if precision not in ("f32", "bf16"):
            raise ValueError(f"ORTModule: precision: expected f32 or bf16, found '{precision}'")
        super().__init__()
        mine = self.__dict__
        mine["_module"], mine["_options"] = module, debug_options or DebugOptions()
        mine["_report"], mine["_fallback"] = Report(self._options), Fallback()
        mine["_exports"], mine["_programs"] = _Latest(_MOST_EXPORTS), _Latest(_MOST_PROGRAMS)
        mine["_making"] = threading.RLock()  # one thread at a time exports and plans
        mine["_told"], mine["_precision"] = False, precision
        # Seen from outside, this is the module.
        for name in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            mine[name] = getattr(module, name)
        mine["training"] = module.training
        self._report.tell_environment()
        self._check_configuration()
        if isinstance(module, (torch.nn.DataParallel, torch.jit.ScriptModule)):
            try:
                raise ORTModuleTorchModelException(f"expected a plain module, found {type(module).__name__}")
            except ORTModuleFallbackException as error:
                self._fallback.answer(error)

    @property
    def module(self) -> torch.nn.Module:
        """The module inside."""
        return self.__dict__["_module"]  # type: ignore[no-any-return]

    def forward(self, *arguments: Any, **keywords: Any) -> Any:
        """As the module's own."""
        if self._fallback.pending is None:
            try:
                return self._call(arguments, keywords)
            except ORTModuleFallbackException as error:
                self._fallback.answer(error)
        return self._fallback.run(self.module, arguments, keywords)

    def _call(self, arguments: Tuple[Any, ...], keywords: Dict[str, Any]) -> Any:
        leaves: List[Tuple[str, torch.Tensor]] = []
        (positional, named), structure = zip(take_apart(arguments, "input", leaves), take_apart(keywords, "input", leaves))
        tensors = dict(named_tensors(self.module))
        for name, tensor in tensors.items():
            check_tensor(tensor, name)
        flags = tuple(part.training for part in self.module.modules())
        differentiated = torch.is_grad_enabled()
        trained = tuple(tensor.requires_grad for tensor in tensors.values())
        narrowed = torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
        key = (positional, named, flags, trained, differentiated, narrowed, hidden_state(self.module))
        sizes = tuple(tensor.shape for _, tensor in leaves)
        export = self._export(key, sizes, structure, leaves)
        given = {name: tensor.contiguous() for name, tensor in leaves}
        for name, tensor in tensors.items():
            given[PREFIX + name] = tensor if tensor.is_contiguous() else tensor.contiguous()
        wanted = [name for name, tensor in given.items() if differentiated and tensor.requires_grad]
        # Counted before: what fails has changed nothing.
        program = self._program(key, sizes, export, wanted, leaves)
        if program.has_backward:
            outputs = _Step.apply(program, given, *(given[name] for name in program.wanted))
        else:
            with torch.no_grad():
                outputs, _, _ = program.forward(given)
        with torch.no_grad():
            for name, count in export.counts.items():
                tensors[name] += count
        return put_together(export.answer, outputs)

    def _export(self, key: Any, sizes: Any, structure: Any, leaves: List[Tuple[str, torch.Tensor]]) -> Export:
        exports: "_Latest[Export]" = self._exports
        export = exports.get(key) or exports.get((key, sizes))
        if export is None:
            with self._making:
                export = exports.get(key) or exports.get((key, sizes))  # by another thread, meanwhile
                if export is None:
                    export = Export(self.module, structure, leaves, self._report)
                    exports.add((key, sizes) if export.is_for_sizes else key, export)
        return export

    def _program(self, key: Any, sizes: Any, export: Export, wanted: List[str], leaves: List[Tuple[str, torch.Tensor]]) -> Program:
        programs: "_Latest[Program]" = self._programs
        program = programs.get((key, sizes))
        if program is None:
            with self._making:
                program = programs.get((key, sizes))
                if program is None:
                    shapes = {name: list(tensor.shape) for name, tensor in leaves}
                    program = Program(export, shapes, wanted, self._precision, self._report)
                    programs.add((key, sizes), program)
                    self._tell_memory(export, program, shapes)
        return program

    def _tell_memory(self, export: Export, program: Program, shapes: Dict[str, Any]) -> None:
        if self._told or not program.has_backward or not self._report.wants(LogLevel.INFO):
            return
        self.__dict__["_told"] = True
        devinfo = self._report.wants(LogLevel.DEVINFO)
        self._report.tell(LogLevel.INFO, "\n" + memory_table(export, shapes, program.wanted, self._precision, devinfo))

    def _check_configuration(self) -> None:
        """What is wrong with the variables is said here, not in the first step."""
        level = os.environ.get("ORTMODULE_MEMORY_OPT_LEVEL", "0")
        if level not in ("0", "1", "2"):
            raise ValueError(f"ORTMODULE_MEMORY_OPT_LEVEL: expected 0, 1 or 2, found '{level}'")

    # What is not of this class is the module's.

    def __getattr__(self, name: str) -> Any:
        if name in ("_module", "_fallback"):  # before __init__
            raise AttributeError(name)
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_module"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ and name not in ("training",) or "_module" not in self.__dict__:
            super().__setattr__(name, value)
        else:
            setattr(self.__dict__["_module"], name, value)
            if name == "training":
                self.__dict__["training"] = value

    def train(self, mode: bool = True) -> "ORTModule":
        """As the module's own."""
        self.module.train(mode)
        self.__dict__["training"] = self.module.training
        return self

    def __reduce__(self) -> Any:
        return ORTModule, (self.module, self._options, self._precision)
