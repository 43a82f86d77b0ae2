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
    residue_bytes: int  # on the caller's own cgroup; see residue_known
    residue_known: bool
    processes_killed: int
    kill_to_report_ms: float
    mechanism: str
    cannot_promise: List[str]
    sandbox: List[str]

    def as_dict(self) -> Dict[str, Any]:
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        limit = f" of {self.limit_bytes:,}" if self.limit_bytes else ""
        residue = f", {self.residue_bytes:+,} bytes left on the caller's cgroup" if self.residue_known else ""
        return (f"{self.ending}, code {self.exit_code}; peak {self.peak_bytes:,}{limit} bytes; {self.wall_ms:.0f} ms, "
                f"CPU {self.cpu_ms:.0f} ms{residue}; {self.mechanism}")
