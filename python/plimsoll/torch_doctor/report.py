"""What the doctor says: findings with evidence and the line to change, for people and as JSON."""
import json

SEVERITIES = ("growing", "warning", "note")


def size(count):
    """Bytes as people write them."""
    sign, count = ("-", -count) if count < 0 else ("", count)
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{sign}{count / factor:.1f} {unit}"
    return f"{sign}{count:.0f} B" if count == 0 or count >= 0.5 else "less than 1 B"


class Finding:
    """`cause` is stable: programs may compare it. `growing`: memory rises with every iteration because of it."""

    def __init__(self, cause, severity, title, *, total_bytes=0, bytes_per_iteration=0.0, evidence=(), places=()):
        assert severity in SEVERITIES
        self.cause, self.severity, self.title = cause, severity, title
        self.bytes, self.bytes_per_iteration = int(total_bytes), bytes_per_iteration
        self.evidence, self.places = list(evidence), list(places)

    @property
    def growing(self):
        return self.severity == "growing"

    def to_dict(self):
        return {"cause": self.cause, "severity": self.severity, "growing": self.growing, "title": self.title,
                "bytes": self.bytes, "bytes_per_iteration": round(self.bytes_per_iteration, 1),
                "evidence": self.evidence, "lines": [place.to_dict() for place in self.places]}

    def to_text(self):
        lines = [f"{self.severity.upper():8} {self.cause}: {self.title}"]
        lines += [f"         - {line}" for line in self.evidence]
        for place in self.places:
            lines.append(f"         {place}:  {place.code}")
            if place.write:
                lines.append(f"           write:  {place.write}")
        return "\n".join(lines)


class Report:
    """Filled when the watched region ends. `verdict` is "leak", "warming up", "flat" or "undecided"."""

    def __init__(self, step=None):
        self._step = step
        self.finished = False
        self.verdict = "undecided"
        self.findings = []
        self.iterations = 0
        self.iteration_is = ""
        self.growth = {}
        self.baseline = {}
        self.allocator = {}
        self.measured = {}
        self.overhead = {}
        self.notes = []
        self.script = None
        self.torch_version = None

    def step(self):
        """Marks the start of one of the caller's own iterations; from the first mark on, calls of modules no longer
        count as iterations."""
        if self._step is not None:
            self._step()

    @property
    def growing(self):
        return [finding for finding in self.findings if finding.growing]

    def find(self, cause):
        """The first finding with this cause, or None."""
        return next((finding for finding in self.findings if finding.cause == cause), None)

    def to_dict(self):
        return {"verdict": self.verdict, "cause": self.growing[0].cause if self.growing else None,
                "iterations": self.iterations, "iteration_is": self.iteration_is,
                "bytes_per_iteration": self.growth.get("bytes_per_iteration"),
                "unexplained_bytes": self.growth.get("unexplained_bytes"), "growth": self.growth,
                "baseline": self.baseline, "allocator": self.allocator, "measured": self.measured,
                "findings": [finding.to_dict() for finding in self.findings], "notes": self.notes,
                "overhead": self.overhead, "script": self.script, "torch_version": self.torch_version}

    def to_json(self):
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_text(self):
        return "\n".join(_head(self) + _findings(self) + _measured(self))

    __str__ = to_text


def _head(report):
    words = {"leak": "memory grows with every iteration", "flat": "no growth",
             "warming up": "memory rises towards a bound",
             "undecided": "undecided"}[report.verdict]
    head = [f"torch doctor: {words} ({report.iterations} iterations"
            + (f", an iteration is {report.iteration_is})" if report.iteration_is else ")")]
    return head + [f"  note: {note}" for note in report.notes]


def _findings(report):
    if not report.findings:
        return ["", "No finding."]
    return [part for finding in report.findings for part in ("", finding.to_text())]


def _measured(report):
    growth, lines = report.growth, ["", "Measured:"]
    if growth.get("bytes_per_iteration") is not None:
        first, last = growth["window"]
        lines.append(f"  memory in use per iteration: {size(growth['bytes_per_iteration'])} "
                     f"[{size(growth['low'])}, {size(growth['high'])}] over iterations {first} to {last}")
    if growth.get("explained") and growth["low"] > 0 and growth["total_bytes"] > 1 << 16:
        parts = ", ".join(f"{name.replace('_', ' ')} {size(value)}" for name, value in growth["explained"].items())
        lines.append(f"  of {size(growth['total_bytes'])} more in that window: {parts}, "
                     f"unexplained {size(growth['unexplained_bytes'])}")
    if growth:
        lines.append(f"  malloc's live bytes per iteration: {size(growth['heap_live_bytes_per_iteration'])}")
        lines.append(f"  the system's view, with the doctor: anonymous memory by {size(growth['anonymous_bytes'])}, "
                     f"free in malloc by {size(growth['free_in_malloc_bytes'])} in that window")
    if report.baseline:
        lines.append(f"  taken once by the first two iterations: {size(report.baseline['bytes'])}, "
                     f"threads {report.baseline['threads_before']} -> {report.baseline['threads_after']}")
    if report.allocator:
        lines.append(f"  malloc holds {size(report.allocator['free_bytes'])} free; malloc_trim gave "
                     f"{size(report.allocator['returned_bytes'])} back to the system")
    for name, value in report.measured.items():
        lines.append(f"  {name.replace('_', ' ')}: {size(value) if name.endswith('_bytes') else value}")
    if report.overhead:
        lines.append(f"  the doctor itself: {report.overhead['seconds']:.2f} s of {report.overhead['wall_seconds']:.2f}"
                     f" s, {size(report.overhead['bytes'])}")
    return lines
