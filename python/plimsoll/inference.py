"""InferenceSession: ONNX Runtime's class, over Plimsoll's engine.

`run` itself is native (bindings/engine/session.cpp); what stands here is what happens around runs.
"""
import os
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import environment
from ._engine import Session
from .binding import IOBinding
from .errors import BudgetExceeded, InvalidArgument
from .metadata import ModelMetadata, NodeArg
from .options import RunOptions, SessionOptions
from .plan import Plan
from .values import OrtValue, OrtValueVector

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from .memory import OrtMemoryInfo

Providers = Optional[Sequence[Union[str, Tuple[str, Dict[Any, Any]]]]]


class InferenceSession(Session):
    """A model ready to run.

        >>> session = plimsoll.InferenceSession("model.onnx")
        >>> y, = session.run(None, {"x": numpy.ones((1, 4), numpy.float32)})

    Contiguous arrays are read where they are; results are arrays whose memory goes back when they die. Any thread may
    call any method. `del session` or close() gives everything back.
    """

    def __init__(self, path_or_bytes: Union[str, bytes, "os.PathLike[str]"],
                 sess_options: Optional[SessionOptions] = None, providers: Providers = None,
                 provider_options: Optional[Sequence[Dict[Any, Any]]] = None, **kwargs: Any) -> None:
        """`kwargs` are those of ONNX Runtime (enable_fallback, read_config_from_model, disabled_optimizers): accepted."""
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options: expected SessionOptions, found {type(sess_options).__name__}")
        names, settings = normalize_providers(providers, provider_options)
        self._sess_options = sess_options.copy() if sess_options is not None else SessionOptions()
        if names and self._sess_options.has_providers():
            warnings.warn("Specified 'providers'/'provider_options' when creating InferenceSession but SessionOptions has "
                          "already been configured with providers. Those passed to InferenceSession() are used.")
        self._provider_options = {environment.CPU: settings.get(environment.CPU, {})}
        native = self._sess_options._native()
        if names:
            native["providers"] = [(name, settings[name]) for name in names if name == environment.CPU]
        self._concurrent_runs = native["max_concurrent_runs"]
        self._threads: "Optional[ThreadPoolExecutor]" = None
        super().__init__(model_of(path_or_bytes), native)
        for message in self._warnings():
            environment.warn(f"{self._sess_options.logid or path_text(path_or_bytes)}: {message}",
                             self._sess_options.log_severity_level)
        self._metas = tuple([NodeArg(info) for info in infos] for infos in self._infos())

    # run(output_names, input_feed, run_options=None) is Session's.

    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
                  callback: Callable[[List[Any], Any, str], None], user_data: Any,
                  run_options: Optional[RunOptions] = None) -> None:
        """Runs on another thread, which then calls callback(results, user_data, error): `error` is "" if all went
        well, else `results` is empty. What is wrong with the feed is raised here and now.

            >>> session.run_async(None, {"x": x}, lambda results, data, error: data.append(results), collected)
        """
        started = self._start(output_names, input_feed, run_options)
        self._executor().submit(_finish, started, callback, user_data)

    async def arun(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
                   run_options: Optional[RunOptions] = None) -> List[Any]:
        """run for asyncio: the loop goes on meanwhile. Cancelling the task stops the run.

            >>> y, = await session.arun(None, {"x": x})
        """
        import asyncio
        started = self._start(output_names, input_feed, run_options)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor(), started.finish)
        except asyncio.CancelledError:
            started.cancel()
            raise

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Optional[RunOptions] = None) -> List[OrtValue]:
        """As run, with OrtValues on both sides.

            >>> y, = session.run_with_ort_values(None, {"x": plimsoll.OrtValue.ortvalue_from_numpy(x)})
        """
        return [OrtValue(value) for value in self._start(output_names, input_dict_ort_values, run_options).finish_values()]

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs with what is bound.

            >>> session.run_with_iobinding(binding)
        """
        self._run_binding(iobinding._iobinding, run_options)

    def run_with_ortvaluevector(self, run_options: Optional[RunOptions], feed_names: Sequence[str],
                                feeds: Sequence[OrtValue], fetch_names: Sequence[str], fetches: List[OrtValue],
                                fetch_devices: Sequence[Any]) -> None:
        """Results are written into `fetches` where it has values, and are put there where it has none.

            >>> session.run_with_ortvaluevector(None, ["x"], feeds, ["y"], fetches, [plimsoll.OrtDevice.make("cpu", 0)])
        """
        if len(feed_names) != len(feeds):
            raise InvalidArgument(f"{len(feed_names)} feed_names for {len(feeds)} feeds")
        if len(fetches) not in (0, len(fetch_names)):
            raise InvalidArgument(f"{len(fetch_names)} fetch_names for {len(fetches)} fetches")
        binding = self.io_binding()
        for name, value in zip(feed_names, feeds):
            binding.bind_ortvalue_input(name, value)
        for index, name in enumerate(fetch_names):
            if index < len(fetches):
                binding.bind_ortvalue_output(name, fetches[index])
            else:
                binding.bind_output(name)
        self.run_with_iobinding(binding, run_options)
        fetches[:] = binding.get_outputs()

    def io_binding(self) -> IOBinding:
        """An IOBinding of this session.

            >>> binding = session.io_binding()
        """
        return IOBinding(self)

    def get_session_options(self) -> SessionOptions:
        """A copy of the options that the session was opened with."""
        return self._sess_options.copy()

    def get_inputs(self) -> List[NodeArg]:
        """The inputs that a run must be given.

            >>> [arg.name for arg in session.get_inputs()]
            ['x']
        """
        return self._metas[0]

    def get_outputs(self) -> List[NodeArg]:
        """What a run can give."""
        return self._metas[1]

    def get_overridable_initializers(self) -> List[NodeArg]:
        """Inputs that have a value in the model, and may be given another."""
        return self._metas[2]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return ModelMetadata(**self._metadata())

    def get_input_memory_infos(self) -> "List[OrtMemoryInfo]":
        """Where inputs are wanted: in the CPU's memory."""
        return [_cpu_memory() for _ in self.get_inputs()]

    def get_output_memory_infos(self) -> "List[OrtMemoryInfo]":
        """Where outputs are."""
        return [_cpu_memory() for _ in self.get_outputs()]

    def get_input_epdevices(self) -> List[Any]:
        """ONNX Runtime's plug-in devices: there are none here, so None for each input."""
        return [None for _ in self.get_inputs()]

    def get_providers(self) -> List[str]:
        """What runs the model: the CPU."""
        return [environment.CPU]

    def get_provider_options(self) -> Dict[str, Dict[str, str]]:
        """Their settings."""
        return {name: dict(settings) for name, settings in self._provider_options.items()}

    def set_providers(self, providers: Providers = None,
                      provider_options: Optional[Sequence[Dict[Any, Any]]] = None) -> None:
        """As in ONNX Runtime where only the CPU is there: a warning of others, and the model stays as it is."""
        _, settings = normalize_providers(providers, provider_options)
        self._provider_options = {environment.CPU: settings.get(environment.CPU, {})}

    def enable_fallback(self) -> None:
        """Accepted; the CPU has nothing to fall back to."""

    def disable_fallback(self) -> None:
        """Accepted; the CPU has nothing to fall back to."""

    def get_tuning_results(self) -> List[Dict[str, Any]]:
        """Kernels are not tuned here: none."""
        return []

    def set_tuning_results(self, results: List[Dict[str, Any]], *, error_on_invalid: bool = False) -> None:
        """Accepted if empty: kernels are not tuned here."""
        if results and error_on_invalid:
            raise InvalidArgument("set_tuning_results: there are no tunable kernels here")

    def end_profiling(self) -> str:
        """Ends the trace that SessionOptions.enable_profiling began, and gives its file's name; "" if there is none.

            >>> trace = json.load(open(session.end_profiling()))
        """
        return self._end_profiling()

    def get_profiling_start_time_ns(self) -> int:
        """When the trace began, comparable to time.monotonic_ns(); 0 if there is none."""
        return self._profiling_start_time_ns()

    # What nobody else has.

    def plan(self, shapes: Optional[Mapping[str, Any]] = None) -> Plan:
        """What runs of these shapes need, told without taking the memory. Shapes are lists, or anything that has a
        `shape`; inputs of fixed shape may be left out. With names missing there is only the formula.

            >>> session.plan({"x": [32, 4]}).peak_bytes
        """
        given = {name: shape_of(name, shape) for name, shape in (shapes or {}).items()}
        known = {arg.name for arg in self.get_inputs()} | {arg.name for arg in self.get_overridable_initializers()}
        for name in given:
            if name not in known:
                raise InvalidArgument(f"plan: there is no input {name!r}; the model has {sorted(known)}")
        return Plan(self._plan(given), self._concurrent_runs)

    def find_batch_size(self, limit: Union[int, str], dim: Optional[str] = None,
                        dims: Optional[Mapping[str, int]] = None, largest: int = 1 << 16) -> int:
        """The largest size of dimension `dim` (by default the first free one) with which everything stays within
        `limit`; 0 if none does. It is told of this session's own kernels: one that is opened under the limit may do without
        Winograd's and Strassen's ways, which spend memory on time, and then take more. `dims` gives the sizes of the other free dimensions. One that the model does not name
        is called by its input and axis, such as "x.d0".

            >>> session.find_batch_size("512MiB", "batch")
        """
        from ._units import parse_bytes
        limit_bytes = parse_bytes(limit, "limit")
        free = [symbol for *_, symbols in self._infos()[0] for symbol in symbols if symbol]
        if dim is None:
            if not free:
                raise InvalidArgument("find_batch_size: every dimension of the inputs is fixed")
            dim = free[0]
        elif dim not in free:
            raise InvalidArgument(f"find_batch_size: no input has a dimension {dim!r}; free are {sorted(set(free))}")

        def fits(size: int) -> bool:
            sizes = {**(dims or {}), dim: size}
            try:
                return 0 < self._prepare(self._shapes_with(sizes)).minimum_limit_bytes <= limit_bytes
            except BudgetExceeded:
                return False

        low, high = 0, 1
        while high <= largest and fits(high):
            low, high = high, 2 * high
        high = min(high, largest + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def memory_stats(self) -> Dict[str, Any]:
        """What the session holds and held, in all and by account, in bytes; and, by ONNX Runtime's names, the arena
        for what is not planned.

            >>> session.memory_stats()["accounts"]["planned"]["now_bytes"]
        """
        report = self._memory_report()
        return {"now_bytes": report.now_bytes, "peak_bytes": report.peak_bytes, "limit_bytes": report.limit_bytes,
                "accounts": report.accounts, "arena": self._arena_stats()}

    def release_memory(self) -> None:
        """Gives the memory of idle runs back to the operating system; the next run takes it again.

            >>> session.release_memory()
        """
        self._release_memory()

    def close(self) -> None:
        """Gives everything back, as soon as runs under way are over. Using the session afterwards raises NoModel.

            >>> session.close()
        """
        if self._threads is not None:
            self._threads.shutdown(wait=False)
        self._close()

    def __enter__(self) -> "InferenceSession":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("an InferenceSession cannot be pickled: open the model again in the other process")

    def _executor(self) -> "ThreadPoolExecutor":
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor
            self._threads = ThreadPoolExecutor(self._concurrent_runs, "plimsoll-run")
        return self._threads

    def _shapes_with(self, sizes: Mapping[str, int]) -> Dict[str, List[int]]:
        shapes = {}
        for name, _, _, fixed, symbols in self._infos()[0]:
            missing = [symbol for symbol in symbols if symbol and symbol not in sizes]
            if missing:
                raise InvalidArgument(f"input {name!r}: the size of {missing[0]!r} is free too; give it in dims")
            shapes[name] = [sizes[symbol] if symbol else size for size, symbol in zip(fixed, symbols)]
        return shapes


def _finish(started: Any, callback: Callable[[List[Any], Any, str], None], user_data: Any) -> None:
    results, error = [], ""
    try:
        results = started.finish()
    except Exception as caught:  # pylint: disable=broad-except
        error = str(caught) or type(caught).__name__
    callback(results, user_data, error)


def _cpu_memory() -> "OrtMemoryInfo":
    from .enums import OrtAllocatorType, OrtMemType
    from .memory import OrtMemoryInfo
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)


def model_of(path_or_bytes: Any) -> Union[str, bytes]:
    if isinstance(path_or_bytes, bytes):
        return path_or_bytes
    if isinstance(path_or_bytes, (str, os.PathLike)):
        path = os.fspath(path_or_bytes)
        return os.fsdecode(path)
    raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")


def path_text(path_or_bytes: Any) -> str:
    return "model" if isinstance(path_or_bytes, bytes) else os.fspath(path_or_bytes)


def shape_of(name: str, shape: Any) -> List[int]:
    sizes = getattr(shape, "shape", shape)
    sizes = sizes() if callable(sizes) else sizes  # OrtValue's
    try:
        return [int(size) for size in sizes]
    except (TypeError, ValueError):
        raise InvalidArgument(f"input {name!r}: expected a shape such as [1, 3, 224, 224], found {shape!r}") from None


def normalize_providers(providers: Providers, provider_options: Optional[Sequence[Dict[Any, Any]]]
                        ) -> Tuple[List[str], Dict[str, Dict[str, str]]]:
    """Names and settings, checked as ONNX Runtime does: what is not built in is a warning, what nobody knows an
    error."""
    if providers is None:
        if provider_options is not None:
            raise ValueError("'provider_options' given without 'providers'.")
        return [], {}
    if not isinstance(providers, Sequence) or isinstance(providers, str):
        raise ValueError("'providers' should be a sequence.")
    pairs: List[Tuple[Any, Any]]
    if provider_options is not None:
        if not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(provider, str) for provider in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        pairs = list(zip(providers, provider_options))
    else:
        pairs = [(provider, {}) if isinstance(provider, str) else provider for provider in providers]  # type: ignore[misc]
    settings: Dict[str, Dict[str, str]] = {}
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], dict)):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        name, options = pair
        if not environment.is_known_provider(name):
            raise InvalidArgument(f"Unknown Provider Type: {name}")
        if name not in environment.get_available_providers():
            warnings.warn(f"Specified provider '{name}' is not in available provider names. Available providers: "
                          f"'{', '.join(environment.get_available_providers())}'", stacklevel=3)
        if name in settings:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=3)
            continue
        settings[name] = {str(key): str(value) for key, value in options.items()}
    return list(settings), settings
