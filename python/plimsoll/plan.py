"""Plan: what runs of certain shapes will need, told before anything is allocated."""
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional

if TYPE_CHECKING:
    from ._engine import Plan as NativePlan


class Buffer(NamedTuple):
    """A piece of the planned arena, alive in the steps [first_step, end_step)."""

    name: str
    node: str
    offset: int
    size_bytes: int
    first_step: int
    end_step: int
    scratch: bool


class Plan:
    """What a session with these shapes holds at its worst moment. In a notebook it shows itself as a picture.

        >>> plan = session.plan({"x": [32, 4]})
        >>> plan.peak_bytes == sum(plan.accounts.values())
        True
        >>> plan.formula, plan.node_at_peak        # in symbols; the node that needs the most
    """

    __slots__ = ("_native", "concurrent_runs")

    def __init__(self, native: "NativePlan", concurrent_runs: int) -> None:
        self._native = native
        self.concurrent_runs = concurrent_runs  # that the figures allow for

    @property
    def concrete(self) -> bool:
        """False if shapes were missing: then there are only the formula and its symbols."""
        return self._native.concrete

    @property
    def depends_on_data(self) -> bool:
        """True if some values' shapes depend on data; they are not in the peak."""
        return self._native.depends_on_data

    @property
    def peak_bytes(self) -> int:
        """All accounts together at the worst moment."""
        return self._native.peak_bytes

    @property
    def lower_bound_bytes(self) -> int:
        """No placement can be below."""
        return self._native.lower_bound_bytes

    @property
    def minimum_limit_bytes(self) -> int:
        """The smallest memory_limit_bytes that is accepted."""
        return self._native.minimum_limit_bytes

    @property
    def formula(self) -> str:
        """The lower bound for any shape."""
        return self._native.formula

    @property
    def symbols(self) -> List[str]:
        return self._native.symbols

    @property
    def node_at_peak(self) -> str:
        return self._native.node_at_peak

    @property
    def accounts(self) -> Dict[str, int]:
        """Bytes by account at the worst moment."""
        return self._native.accounts

    @property
    def steps(self) -> List[str]:
        """The nodes in their order."""
        return self._native.steps

    @property
    def buffers(self) -> List[Buffer]:
        return [Buffer(*fields) for fields in self._native.buffers]

    @property
    def threads(self) -> int:
        return self._native.threads

    @property
    def instruction_set(self) -> str:
        return self._native.instruction_set

    @property
    def prepare_ms(self) -> float:
        return self._native.prepare_ms

    def __repr__(self) -> str:
        if not self.concrete:
            return f"Plan(at least {self.formula} bytes)"
        return (f"Plan(peak {self.peak_bytes:,} bytes at {self.node_at_peak!r}, {self.concurrent_runs} "
                f"run{'s' if self.concurrent_runs > 1 else ''} at once)")

    def _repr_svg_(self) -> Optional[str]:
        return self._native.svg() if self.buffers else None

    def _repr_html_(self) -> str:
        from html import escape
        rows = [(name, bytes_) for name, bytes_ in self.accounts.items() if bytes_] + [("peak", self.peak_bytes)]
        table = "".join(f"<tr><td>{name}</td><td style='text-align:right'>{bytes_:,}</td></tr>" for name, bytes_ in rows)
        return (f"<table>{table if self.concrete else ''}</table><p>For any shape: <code>{escape(self.formula)}</code></p>"
                f"<p>Node at the peak: <code>{escape(self.node_at_peak)}</code></p>{self._repr_svg_() or ''}")
