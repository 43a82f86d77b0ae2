"""What a job took and gave back."""
import dataclasses
from typing import Any, Dict, List


@dataclasses.dataclass(frozen=True)
class Receipt:
    """The figures of include/plimsoll/isolate.h, under the same names. In a Pool the times, the peak and the
    byte-seconds are those of one job; its worker lives on, so nothing is said about what it gave back."""

    ending: str  # "exited", "signalled", "memory limit", "wall time", ...
    exit_code: int
    signal: int
    wall_ms: float
    cpu_ms: float
    peak_bytes: int  # by the kernel's own figure for the whole group
    limit_bytes: int  # 0: none
    limit_hit: bool
    thrashing: bool  # ended at the limit because it only read its own program again and again
    byte_seconds: float
    returned_bytes: int
    residue_bytes: int  # still charged to the job's own cgroup when it was removed; see residue_known
    residue_known: bool
    processes_killed: int
    kill_to_report_ms: float
    mechanism: str
    cannot_promise: List[str]
    sandbox: List[str]
    socket_peak_bytes: int = 0
    noticed: List[str] = dataclasses.field(default_factory=list)  # what it did to its limits, who left its cgroup
    alive: List[int] = dataclasses.field(default_factory=list)  # processes that could not be ended
    leftovers: List[Dict[str, Any]] = dataclasses.field(default_factory=list)  # kind, name, owner, bytes, removed
    # Of arrays in memory that both processes have: they are in the peak of whoever made them.
    shared_in_bytes: int = 0
    shared_out_bytes: int = 0

    def as_dict(self) -> Dict[str, Any]:
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        limit = f" of {self.limit_bytes:,}" if self.limit_bytes else ""
        residue = f", {self.residue_bytes:,} bytes left" if self.residue_known else ""
        return (f"{self.ending}, code {self.exit_code}; peak {self.peak_bytes:,}{limit} bytes; {self.wall_ms:.0f} ms, "
                f"CPU {self.cpu_ms:.0f} ms{residue}; {self.mechanism}")
