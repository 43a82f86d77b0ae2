"""profile_memory: what a session's runs do to the process's memory, judged as `plimsoll watch` judges."""
import dataclasses
import html
import json
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import observe
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .inference import InferenceSession

Feed = Union[Mapping[str, Any], Callable[[int], Mapping[str, Any]]]

_MOST_SAMPLES = 240  # however many runs
_PARTS = {  # of the process, as observe names them, and what they are
    "heap_bytes": "the heap (malloc)", "malloc_map_bytes": "large blocks of malloc", "anonymous_bytes": "anonymous mappings",
    "stack_bytes": "threads' stacks", "private_file_bytes": "written pages of files", "shared_file_bytes": "pages of mapped files",
    "shared_memory_bytes": "shared memory"}


@dataclasses.dataclass(frozen=True)
class MemorySample:
    """After `run` runs: the process as the kernel counts it, and the session's own ledger."""

    run: int
    milliseconds: float
    rss_bytes: int
    session_bytes: int
    parts: Dict[str, int]
    accounts: Dict[str, int]


@dataclasses.dataclass(frozen=True)
class MemoryProfile:
    """What `profile_memory` found. `print` shows the table and the verdict; a notebook shows the picture too."""

    samples: List[MemorySample]
    verdict: str  # flat, plateau, warming up, leak, undecided: docs/verdicts.md
    cause: str
    bytes_per_run: float
    evidence: List[str]
    holders: List[Tuple[str, int]]  # what rose between the first run and the last, largest first

    @property
    def grows(self) -> bool:
        """Whether memory grows with the number of runs."""
        return self.verdict == "leak"

    @property
    def rise_bytes(self) -> int:
        """From the first run, which sets up, to the last."""
        return self.samples[-1].rss_bytes - self.samples[1].rss_bytes

    @property
    def peak_bytes(self) -> int:
        return max(sample.rss_bytes for sample in self.samples)

    def conclusion(self) -> str:
        """The verdict in a sentence, with what holds the memory."""
        rise = f"{self.rise_bytes / 1024:+,.0f} KiB from run 1 to run {self.samples[-1].run}"
        if not self.grows:
            return f"{self.verdict}: {rise}; nothing grows with the runs" if self.verdict != "undecided" else \
                f"undecided: {rise}; {' '.join(self.evidence)}"
        held = "; ".join(f"{name} {size / 1024:+,.0f} KiB" for name, size in self.holders[:3])
        return f"leak: {self.bytes_per_run:,.0f} bytes per run, {rise}; what rose: {held}"

    def table(self, rows: int = 12) -> str:
        """Some of the samples, the first and the last among them."""
        shown = sorted({round(index * (len(self.samples) - 1) / max(1, rows - 1)) for index in range(rows)})
        lines = [f"{'run':>8} {'ms':>9} {'RSS KiB':>12} {'change':>9} {'session KiB':>12}  largest accounts"]
        before = self.samples[0].rss_bytes
        for sample in (self.samples[index] for index in shown):
            largest = sorted(sample.accounts.items(), key=lambda item: -item[1])[:3]
            accounts = ", ".join(f"{name} {size // 1024:,}" for name, size in largest if size)
            lines.append(f"{sample.run:>8} {sample.milliseconds:>9.2f} {sample.rss_bytes // 1024:>12,} "
                         f"{(sample.rss_bytes - before) // 1024:>+9,} {sample.session_bytes // 1024:>12,}  {accounts}")
            before = sample.rss_bytes
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.table()}\n{self.conclusion()}"

    def svg(self) -> str:
        """The process and the session's ledger over the runs, as a picture."""
        return _picture(self)

    _repr_svg_ = svg

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>{self.svg()}"


def profile_memory(session: "InferenceSession", feed: Feed, runs: int = 100, *,
                   output_names: Optional[Sequence[str]] = None) -> MemoryProfile:
    """Runs the session and tells whether anything grows, and what holds it. Outputs are dropped after each run.

        >>> profile = plimsoll.profile_memory(session, {"x": x}, runs=200)
        >>> print(profile)
        >>> profile.grows
        False

    `feed` is what session.run takes, or a function of the run's number that makes it: shapes that change, say. The figures
    are the whole process's: what other threads do meanwhile is in them.
    """
    if runs < 1:
        raise InvalidArgument(f"profile_memory: expected at least one run, found {runs}")
    make = feed if callable(feed) else lambda number: feed
    watcher = observe.Observer(tree=False, cost_limit=1.0)
    wanted = {round(index * runs / _MOST_SAMPLES) for index in range(_MOST_SAMPLES + 1)} | {0, 1, runs}
    records = _Records(len(wanted))
    for number in range(runs + 1):
        elapsed = 0.0
        if number:
            started = time.perf_counter()
            session.run(output_names, make(number))
            elapsed = 1e3 * (time.perf_counter() - started)
        if number in wanted:
            reading = watcher.read(number)
            reading.pop("container", None)  # others are in it
            records.add([number, elapsed, reading, session.memory_stats()])
    read = records.read()
    samples = [_sample(*record) for record in read]
    # The first run sets up what the others use.
    verdict = observe.judge([record[2] for record in read[1:]], minimum_seconds=0)
    return MemoryProfile(samples, verdict.verdict, verdict.cause, float(verdict.bytes_per_iteration or 0),
                         list(verdict.evidence), _risen(samples[1], samples[-1]))


class _Records:
    """Samples as text in memory that is taken before the first of them: what is kept of them must not look like growth."""

    def __init__(self, count: int):
        self._text = bytearray(b"\n" * (count * 4096))
        self._used = 0

    def add(self, record: List[Any]) -> None:
        line = json.dumps(record).encode() + b"\n"
        self._text[self._used:self._used + len(line)] = line
        self._used += len(line)

    def read(self) -> List[List[Any]]:
        return [json.loads(line) for line in self._text[:self._used].splitlines()]


def _sample(number: int, elapsed: float, reading: Mapping[str, Any], stats: Mapping[str, Any]) -> MemorySample:
    return MemorySample(number, elapsed, reading["process"]["rss_bytes"], stats["now_bytes"],
                        {name: reading["process"][name] for name in _PARTS},
                        {name: account["now_bytes"] for name, account in stats["accounts"].items()})


def _risen(first: MemorySample, last: MemorySample) -> List[Tuple[str, int]]:
    """The session's accounts first: what they hold is in the process's parts too."""
    own = [(f"the session's account '{name}'", size - first.accounts[name]) for name, size in last.accounts.items()]
    parts = [(_PARTS[name], size - first.parts[name]) for name, size in last.parts.items()]
    return [*sorted((item for item in own if item[1] > 0), key=lambda item: -item[1]),
            *sorted((item for item in parts if item[1] > 0), key=lambda item: -item[1])]


_WIDTH, _HEIGHT, _LEFT, _TOP = 640, 240, 70, 30


def _picture(profile: MemoryProfile) -> str:
    right, bottom = _WIDTH - 15, _HEIGHT - 30
    lines = {"process (RSS)": ("#1f77b4", [sample.rss_bytes for sample in profile.samples]),
             "session (ledger)": ("#d62728", [sample.session_bytes for sample in profile.samples])}
    top = 1.05 * max(max(values) for _, values in lines.values()) or 1
    runs = [sample.run for sample in profile.samples]

    def x(run: float) -> float:
        return _LEFT + (right - _LEFT) * run / max(1, runs[-1])

    def y(size: float) -> float:
        return bottom - (bottom - _TOP) * size / top

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
             'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>']
    for share in (0, 0.25, 0.5, 0.75, 1):
        height = y(top * share)
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{height:.1f}" y2="{height:.1f}" stroke="#ddd"/>'
                     f'<text x="{_LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{top * share / 2**20:.1f} MiB</text>')
    for index, (name, (color, values)) in enumerate(lines.items()):
        points = " ".join(f"{x(run):.1f},{y(size):.1f}" for run, size in zip(runs, values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>'
                     f'<text x="{_LEFT + 10 + 150 * index}" y="18" fill="{color}">{name}</text>')
    parts.append(f'<text x="{right}" y="{_HEIGHT - 8}" text-anchor="end">{runs[-1]} runs</text>'
                 f'<text x="{right}" y="18" text-anchor="end" font-weight="bold">{html.escape(profile.verdict)}</text></svg>')
    return "".join(parts)
