"""checklist: the usual advice on an inference session's memory, held against one session."""
import dataclasses
import gc
import html
from typing import TYPE_CHECKING, Any, Iterator, List, Mapping, Optional, Tuple

from .errors import Error

if TYPE_CHECKING:
    from .inference import InferenceSession

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Point:
    """One piece of advice. `holds` is None where the session cannot show it, or it does not apply; `line` is what to change,
    or what would tell."""

    advice: str
    holds: Optional[bool]
    found: str
    line: str = ""

    def __str__(self) -> str:
        mark = {True: "yes", False: "NO ", None: " - "}[self.holds]
        text = f"[{mark}] {self.advice}: {self.found}"
        return f"{text}\n      {self.line}" if self.line and self.holds is not True else text


class Checklist(List[Point]):
    """The points in order; `print` shows them."""

    @property
    def open(self) -> "List[Point]":
        """Those that do not hold."""
        return [point for point in self if point.holds is False]

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def checklist(session: "InferenceSession", shapes: Optional[Mapping[str, Any]] = None) -> Checklist:
    """Looks at a session and says which of the usual advice on memory holds for it, which does not, and the line to change.

        >>> print(plimsoll.checklist(session, {"x": [8, 4]}))
        >>> [point.advice for point in plimsoll.checklist(session).open]

    `shapes` are those of the runs to come; without them sizes are told where the model fixes them.
    """
    return Checklist(_points(_Look(session, shapes)))


class _Look:
    """What can be seen of the session."""

    def __init__(self, session: "InferenceSession", shapes: Optional[Mapping[str, Any]]):
        self.session = session
        self.options = session.get_session_options()
        self.settings = session.get_provider_options().get("CPUExecutionProvider", {})
        self.stats = session.memory_stats()
        self.free = sorted({size for argument in session.get_inputs() for size in argument.shape or []
                            if isinstance(size, str)})
        try:
            self.plan = session.plan(shapes)
        except Error:  # the shapes do not fit: the points say what is left to say
            self.plan = session.plan()

    def alive(self, name: str) -> List[Any]:
        """Objects of ours by class."""
        return [thing for thing in gc.get_objects() if type(thing).__name__ == name
                and type(thing).__module__.startswith("plimsoll")]

    def twins(self) -> int:
        """Other open sessions of what looks like the same model."""
        def face(session: "InferenceSession") -> Tuple[Any, ...]:
            return tuple((argument.name, argument.type, str(argument.shape))
                         for argument in [*session.get_inputs(), *session.get_outputs()])
        mine, count = face(self.session), 0
        for other in self.alive("InferenceSession"):
            try:
                count += other is not self.session and face(other) == mine and other.memory_stats()["now_bytes"] > 0
            except Error:  # closed
                continue
        return count


def _size(number: int) -> str:
    return f"{number / MIB:,.1f} MiB"


def _points(look: _Look) -> Iterator[Point]:
    options = look.options
    yield Point("memory patterns", bool(options.enable_mem_pattern),
                "values are placed by a plan" if options.enable_mem_pattern else "every value has a place of its own",
                "sess_options.enable_mem_pattern = True")
    yield Point("memory arena", bool(options.enable_cpu_mem_arena),
                "planned memory is kept between runs" if options.enable_cpu_mem_arena else
                "each run takes its memory and gives it back, which costs time", "sess_options.enable_cpu_mem_arena = True")
    yield _extension(look)
    yield _limit(look)
    yield _binding(look)
    yield Point("recomputation in training", None, "this session does not train")
    yield _weights(look)
    yield Point("memory profiled", None, f"the session's ledger: {_size(look.stats['now_bytes'])} now, "
                f"{_size(look.stats['peak_bytes'])} at its peak",
                "print(plimsoll.profile_memory(session, feed, runs=200))  # does anything grow")
    yield _batch(look)
    twins = look.twins()
    yield Point("sessions reused", twins == 0, "no other session of this model is open" if not twins else
                f"{twins} other sessions with the same inputs and outputs are open, each with weights of its own",
                "session = plimsoll.InferenceSession(path, sess_options)  # once, outside the loop; any thread may use it")
    yield _outputs(look)


def _extension(look: _Look) -> Point:
    advice = "arena extension strategy"
    if not look.plan.depends_on_data:
        return Point(advice, True, "every size is known before the run: the arena never grows by guessing")
    strategy = look.settings.get("arena_extend_strategy", "kNextPowerOfTwo")
    return Point(advice, strategy == "kSameAsRequested", f"some sizes depend on data, and the strategy is {strategy}",
                 'providers=[("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})]')


def _limit(look: _Look) -> Point:
    limit, plan = look.stats["limit_bytes"], look.plan
    if limit and limit < 1 << 60:
        return Point("memory limit", True, f"everything the session holds stays within {_size(limit)}")
    least = plan.minimum_limit_bytes if plan.concrete and not plan.depends_on_data else 0
    told = f"none is set; {_size(least)} would do" if least else "none is set; give shapes, and the least that would do is told"
    value = str(least) if least else '"512MiB"'
    return Point("memory limit", False, told, f'sess_options.memory_limit_bytes = {value}  # or "container"')


def _binding(look: _Look) -> Point:
    bindings = len(look.alive("IOBinding"))
    found = f"{bindings} bindings are there in this process" if bindings else "no binding is there: each run makes its outputs anew"
    return Point("I/O binding", True if bindings else None, found,
                 "binding = session.io_binding(); binding.bind_cpu_input(name, array); session.run_with_iobinding(binding)")


def _weights(look: _Look) -> Point:
    accounts = look.stats["accounts"]
    held = accounts["weights"]["now_bytes"] + accounts["packed"]["now_bytes"]
    total = max(1, look.stats["now_bytes"])
    found = f"weights are {_size(held)} of the {_size(total)} that the session holds"
    return Point("quantized model", None, found + ("" if 2 * held > total else "; there is little to gain"),
                 "# a model quantized to int8 has weights of a quarter of float32's, and runs here as it is")


def _batch(look: _Look) -> Point:
    limit = look.stats["limit_bytes"]
    if not look.free:
        return Point("batch size", None, "every dimension of the inputs is fixed")
    if not limit or limit >= 1 << 60:
        return Point("batch size", None, f"without a limit any size of {look.free[0]!r} that the machine has room for",
                     f'session.find_batch_size("512MiB", {look.free[0]!r})')
    if len(look.free) > 1:
        return Point("batch size", None, f"free dimensions: {', '.join(look.free)}",
                     f"session.find_batch_size({limit}, {look.free[0]!r}, {{...}})")
    largest = look.session.find_batch_size(limit, look.free[0])
    return Point("batch size", largest > 0, f"within the limit {look.free[0]!r} can be at most {largest}",
                 f"{look.free[0]} = {largest}" if largest else "sess_options.memory_limit_bytes = ...  # more, or a smaller model")


def _outputs(look: _Look) -> Point:
    """Results that somebody keeps are in the account of what is bound, or nowhere if they were copied."""
    held = look.stats["accounts"]["bound"]["now_bytes"] + look.stats["accounts"]["dynamic"]["now_bytes"]
    return Point("outputs released", held == 0, "nothing of a run is held" if held == 0 else
                 f"{_size(held)} of outputs and bindings are held", "del outputs; binding.clear_binding_outputs()")
