"""SessionOptions and RunOptions: ONNX Runtime's attributes and methods, and ours."""
import operator
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _engine, environment
from ._units import parse_bytes
from .enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from .errors import Fail, InvalidArgument, NoSuchFile, NotImplementedYet

if TYPE_CHECKING:
    from .values import OrtValue

Limit = Union[int, str, None]


class _Option:
    """An attribute of one type."""

    def __init__(self, type_: Callable[[Any], Any], default: Any, doc: str) -> None:
        self._type, self._default, self.__doc__ = type_, default, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, options: "Optional[SessionOptions]", owner: Any = None) -> Any:
        return self if options is None else options._values.get(self._name, self._default)

    def __set__(self, options: "SessionOptions", value: Any) -> None:
        options._values[self._name] = self._type(value, self._name)  # type: ignore[call-arg]


def _bool(value: Any, name: str) -> bool:
    if isinstance(value, (bool, int)) and value in (0, 1):
        return bool(value)
    raise TypeError(f"{name}: expected True or False, found {value!r}")


def _int(value: Any, name: str) -> int:
    if not isinstance(value, bool) and hasattr(value, "__index__"):  # numpy's integers too
        return operator.index(value)
    raise TypeError(f"{name}: expected an int, found {value!r} of type {type(value).__name__}")


def _count(value: Any, name: str) -> int:
    count = _int(value, name)
    if count < 0:
        raise InvalidArgument(f"{name}={value}: expected 0, which lets Plimsoll choose, or more")
    return count


def _text(value: Any, name: str) -> str:
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    raise TypeError(f"{name}: expected a str, found {value!r}")


def _one_of(kind: Any) -> Any:
    def check(value: Any, name: str) -> Any:
        if isinstance(value, kind):
            return value
        raise TypeError(f"{name}: expected {kind.__name__}, found {value!r}")
    return check


def _limit(value: Any, name: str) -> Limit:
    if value in (0, None):
        return 0
    if isinstance(value, str) and value.strip().lower() == "container":
        return "container"
    return parse_bytes(value, name)


def _ort_value(name: str, value: Any) -> "OrtValue":
    from .values import OrtValue
    if isinstance(value, OrtValue):
        return value
    raise InvalidArgument(f"initializer {name!r}: The provided Python object must be an OrtValue, "
                          f"found {type(value).__name__}")


class SessionOptions:
    """Settings of a session, which keeps a copy.

        >>> options = plimsoll.SessionOptions()
        >>> options.memory_limit_bytes = "512MiB"
        >>> options.enable_cpu_mem_arena = False
        >>> session = plimsoll.InferenceSession("model.onnx", options)
    """

    __slots__ = ("_values", "_entries", "_dimensions", "_initializers", "_externals", "_files", "_libraries",
                 "_ops", "_providers")

    def __init__(self) -> None:
        self._values: Dict[str, Any] = {}
        self._entries: Dict[str, str] = {}
        self._dimensions: List[Tuple[bool, str, int]] = []  # by denotation, name, size
        self._initializers: Dict[str, "OrtValue"] = {}
        self._externals: Dict[str, "OrtValue"] = {}
        self._files: Dict[str, Any] = {}
        self._libraries: List[str] = []
        self._ops: List[Any] = []
        self._providers: List[Tuple[str, Dict[str, str]]] = []

    memory_limit_bytes = _Option(_limit, 0, """A hard line over everything the session holds: bytes, text such as
        "512MiB", or "container", which is what the cgroup's limit leaves this process. 0 is none.""")
    max_concurrent_runs = _Option(_count, 0, """How many runs may be under way at once; each needs planned memory of its
        own, and others wait. 0 is one for each CPU, or, where there is a limit, one.""")
    strict = _Option(_bool, False, "Refuse what ONNX forbids and other runtimes let pass, instead of a warning.")

    enable_cpu_mem_arena = _Option(_bool, True, "Keep planned memory between runs; otherwise each run gives it back.")
    enable_mem_pattern = _Option(_bool, True, "Place values by a plan; otherwise one after the other.")
    enable_mem_reuse = _Option(_bool, True, "Let values take the memory of others that are no longer needed.")
    enable_profiling = _Option(_bool, False, "Write a trace of the nodes; end_profiling() gives its name.")
    profile_file_prefix = _Option(_text, "onnxruntime_profile_", "The trace's name; the time is added to it.")
    optimized_model_filepath = _Option(_text, "", "Where the optimized model is written, if anywhere.")
    execution_mode = _Option(_one_of(ExecutionMode), ExecutionMode.ORT_SEQUENTIAL,
                             "Accepted; nodes run one after the other.")
    execution_order = _Option(_one_of(ExecutionOrder), ExecutionOrder.DEFAULT,
                              "Accepted; the order is the one that needs the least memory.")
    graph_optimization_level = _Option(_one_of(GraphOptimizationLevel), GraphOptimizationLevel.ORT_ENABLE_ALL,
                                       "How much the graph is rewritten.")
    intra_op_num_threads = _Option(_count, 0, "Threads within an operator; 0 is one for each CPU.")
    inter_op_num_threads = _Option(_count, 0, "Accepted; nodes run one after the other.")
    use_per_session_threads = _Option(_bool, True, "Accepted; sessions share their threads.")
    bfloat16_products = _Option(_bool, False, """Multiply with constant matrices and kernels in bfloat16, summing in
        float: half the packed bytes, and faster where the processor has instructions for it.""")
    use_deterministic_compute = _Option(_bool, False, "Accepted; results never depend on the number of threads.")
    logid = _Option(_text, "", "A name for messages.")
    log_severity_level = _Option(_int, -1, "0 verbose, 1 info, 2 warning, 3 error, 4 fatal; -1 is the default logger's.")
    log_verbosity_level = _Option(_int, 0, "Accepted; there are no levels within the verbose one.")

    def add_session_config_entry(self, config_key: str, config_value: str) -> None:
        """ONNX Runtime's keys; see docs/python.md for those that have a meaning here."""
        if not isinstance(config_key, str) or not isinstance(config_value, str):
            raise TypeError(f"add_session_config_entry: expected two str, found {config_key!r} and {config_value!r}")
        if not config_key:
            raise InvalidArgument("add_session_config_entry: expected a key, found an empty one")
        _engine.check_config_entry(config_key, config_value)
        self._entries[config_key] = config_value

    def get_session_config_entry(self, config_key: str) -> str:
        if config_key not in self._entries:
            raise Fail(f"SessionOptions does not have configuration with key: {config_key}")
        return self._entries[config_key]

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Every dimension of that name in the inputs is this number."""
        self._dimensions.append((False, _text(dim_name, "dim_name"), _int(dim_value, "dim_value")))

    def add_free_dimension_override_by_denotation(self, dim_name: str, dim_value: int) -> None:
        """Every dimension of the inputs with that denotation, such as DATA_BATCH, is this number."""
        self._dimensions.append((True, _text(dim_name, "dim_name"), _int(dim_value, "dim_value")))

    def add_initializer(self, name: str, ort_value: "OrtValue") -> None:
        """The tensor stands in for the model's initializer of that name. Sessions that share it hold it once."""
        self._initializers[_text(name, "name")] = _ort_value(name, ort_value)

    def add_external_initializers(self, names: Sequence[str], ort_values: "Sequence[OrtValue]") -> None:
        """The same for initializers whose data is in another file, which is then not opened."""
        if len(names) != len(ort_values):
            raise InvalidArgument("Expecting names and ort_values lists to have equal length")
        for name, value in zip(names, ort_values):
            self._externals[_text(name, "name")] = _ort_value(name, value)

    def add_external_initializers_from_files_in_memory(self, names: Sequence[str], buffers: Sequence[Any],
                                                       lengths: Sequence[int]) -> None:
        """Contents of files that the model names for its external data, in place of those files."""
        if not len(names) == len(buffers) == len(lengths):
            raise InvalidArgument("add_external_initializers_from_files_in_memory: expecting 'names', 'buffers' and "
                                  "'lengths' to have equal length")
        for name, buffer, length in zip(names, buffers, lengths):
            view = memoryview(buffer).cast("B")
            if not 0 <= length <= len(view):
                raise InvalidArgument(f"file {name!r}: expected at least {length} bytes, found {len(view)}")
            self._files[_text(name, "name")] = view[:length]

    def register_custom_ops_library(self, library_name: Union[str, "os.PathLike[str]"]) -> None:
        """A shared library of operators by Plimsoll's contract (plimsoll/custom_op.h)."""
        path = os.fspath(library_name)
        if not os.path.exists(path):
            raise NoSuchFile(f"'{path}': No such file or directory")
        self._libraries.append(path)

    def register_custom_op(self, name: str, function: Callable[..., Any], domain: str = "custom",
                           infer: Optional[Callable[..., Any]] = None,
                           attributes: Optional[Dict[str, type]] = None) -> None:
        """A Python callable as an operator: function(*inputs, **attributes) on copies gives one array, or a list of
        them. `infer` is given (type, shape) of each input, with None for sizes not known yet, and gives the same for
        each output; without it every output is like the first input. `attributes` names those it takes, with int,
        float or str.

            >>> options.register_custom_op("Twice", lambda x, scale=2.0: x * numpy.float32(scale), "my.domain",
            ...                            attributes={"scale": float})
        """
        kinds = {int: "i", float: "f", str: "s"}
        for attribute, kind in (attributes or {}).items():
            if kind not in kinds:
                raise InvalidArgument(f"attribute {attribute!r}: expected int, float or str, found {kind!r}")
        if not callable(function) or not (infer is None or callable(infer)):
            raise TypeError(f"custom operator {name!r}: expected callables, found {function!r} and {infer!r}")
        self._ops.append((_text(domain, "domain"), _text(name, "name"), function, infer,
                          [(attribute, kinds[kind]) for attribute, kind in (attributes or {}).items()]))

    def append_execution_provider(self, provider_name: str, provider_options: Optional[Dict[str, str]] = None) -> None:
        self.add_provider(provider_name, provider_options or {})

    def add_provider(self, provider_name: str, provider_options: Optional[Dict[str, str]] = None) -> None:
        """A provider that is not built in is an error here, as ONNX Runtime has it."""
        settings = {str(key): str(value) for key, value in (provider_options or {}).items()}
        _engine.check_provider(provider_name, settings)
        self._providers.append((provider_name, settings))

    def has_providers(self) -> bool:
        return bool(self._providers)

    def copy(self) -> "SessionOptions":
        other = SessionOptions()
        for name in self.__slots__:
            setattr(other, name, getattr(self, name).copy())
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> "SessionOptions":
        return self.copy()

    def _native(self) -> Dict[str, Any]:
        """What the engine is given."""
        limit = self.memory_limit_bytes
        if isinstance(limit, str):
            limit = _engine.parse_memory_limit(limit)
        runs = self.max_concurrent_runs or (1 if limit else len(os.sched_getaffinity(0)))
        return {
            "memory_limit_bytes": limit, "max_concurrent_runs": runs, "strict": self.strict,
            "random_seed": environment.seed, "keep_arena": self.enable_cpu_mem_arena,
            "mem_pattern": self.enable_mem_pattern, "mem_reuse": self.enable_mem_reuse,
            "enable_profiling": self.enable_profiling, "profile_file_prefix": self.profile_file_prefix,
            "optimized_model_path": self.optimized_model_filepath, "execution_mode": int(self.execution_mode),
            "execution_order": int(self.execution_order), "intra_op_threads": self.intra_op_num_threads,
            "inter_op_threads": self.inter_op_num_threads, "deterministic_compute": self.use_deterministic_compute,
            "bfloat16_products": self.bfloat16_products,
            "optimization_level": min(3, int(self.graph_optimization_level)), "log_id": self.logid,
            "custom_ops_libraries": self._libraries, "providers": self._providers, "entries": self._entries,
            "dimensions": self._dimensions, "files": self._files, "python_ops": self._ops,
            "initializers": {name: value._native() for name, value in self._initializers.items()},
            "external_initializers": {name: value._native() for name, value in self._externals.items()},
        }


class RunOptions(_engine.RunOptions):
    """How a run may end early, and what it leaves out. One object may serve many runs, at once too.

        >>> options = plimsoll.RunOptions()
        >>> options.timeout = 0.5                # seconds; then DeadlineExceeded
        >>> threading.Timer(1, lambda: setattr(options, "terminate", True)).start()
        >>> session.run(None, feed, options)     # stops with Cancelled, which is a Fail
    """

    # Native: terminate, timeout, log_severity_level, log_verbosity_level, logid, only_execute_path_to_fetches.

    @property
    def memory_limit_bytes(self) -> int:
        """A line for a run's own memory, below the session's: bytes or text. 0 is none."""
        return self._memory_limit

    @memory_limit_bytes.setter
    def memory_limit_bytes(self, value: Limit) -> None:
        self._memory_limit = 0 if value in (0, None) else parse_bytes(value, "memory_limit_bytes")

    def add_run_config_entry(self, config_key: str, config_value: str) -> None:
        """ONNX Runtime's keys, such as memory.enable_memory_arena_shrinkage."""
        if not isinstance(config_key, str) or not isinstance(config_value, str):
            raise TypeError(f"add_run_config_entry: expected two str, found {config_key!r} and {config_value!r}")
        self._add_entry(config_key, config_value)

    def get_run_config_entry(self, config_key: str) -> str:
        entries = self._entries()
        if config_key not in entries:
            raise Fail(f"RunOptions does not have configuration with key: {config_key}")
        return entries[config_key]

    def add_active_adapter(self, adapter: Any) -> None:
        raise NotImplementedYet("LoRA adapters are not supported")
