#!/usr/bin/env python3
"""Records the labelled scenarios, judges the recordings, and prints how often the verdict is right.

  evaluate.py record FOLDER [--seeds 10] [--jobs 6] [--families a,b] [--seconds 14]
  evaluate.py judge FOLDER [--half tuned|held|all] [--misses] [--json FILE]
  evaluate.py heaptrack FOLDER [--seconds 6]      FOLDER gets heaptrack.json

Needs build/tests/plimsoll_scenario, plimsoll_record and plimsoll_judge. Families, labels and the split into a tuned and
a held half stand in families.csv.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "tests"


def families():
    with open(HERE / "families.csv") as file:
        return list(csv.DictReader(file))


def command(family, seed, seconds):
    program = [str(BUILD / "plimsoll_scenario")]
    if family["program"] != "cpp":
        program = ["/usr/bin/python3", str(HERE / "scenarios.py")]
    return program + [family["family"], str(seed), str(seconds)]


class Cgroups:
    """A memory cgroup for each scenario, beneath our own (version 1, or 2 with the controller passed on)."""

    def __init__(self):
        self.parent, self.version, self.reason = None, 0, "no memory controller is mounted"
        places = dict(line.rstrip("\n").split(":", 2)[1:] for line in open("/proc/self/cgroup"))
        for version, root, path in ((1, "/sys/fs/cgroup/memory", places.get("memory")),
                                    (2, "/sys/fs/cgroup", places.get(""))):
            if path is None or not os.path.exists(root + path + "/cgroup.procs"):
                continue
            parent = pathlib.Path(root + path) / f"plimsoll-scenarios-{os.getpid()}"
            try:
                parent.mkdir()
                if version == 2:
                    (parent / "cgroup.subtree_control").write_text("+memory")
                self.parent, self.version = parent, version
                return
            except OSError as error:
                self.reason = str(error)
                if parent.exists():
                    parent.rmdir()

    def make(self, name):
        if self.parent is None:
            return "-"
        path = self.parent / name
        path.mkdir()
        return str(path)

    def remove(self, path):
        if path != "-":
            try:
                os.rmdir(path)
            except OSError as error:  # somebody is still in there
                print(f"{path}: {error}", file=sys.stderr)

    def close(self):
        if self.parent is not None:
            self.remove(self.parent)

    def why_not(self, family):
        """Why a family cannot be recorded here; empty if it can."""
        if family["container"] == "v2" and self.version != 2:
            return "needs a memory controller of version 2: version 1 does not tell what slab can be reclaimed"
        if family["container"] and self.parent is None:
            return "needs a memory cgroup of its own: " + self.reason
        return ""


def has_torch():
    return subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode == 0


def record_one(cgroups, folder, family, seed, seconds, hertz):
    name = f"{family['family']}-{seed}"
    output = folder / f"{name}.jsonl"
    if output.exists():
        return None
    cgroup = cgroups.make(name)
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    arguments = [str(BUILD / "plimsoll_record"), str(output), cgroup, str(hertz), "--"]
    result = subprocess.run(arguments + command(family, seed, seconds), env=environment, stderr=subprocess.PIPE)
    cgroups.remove(cgroup)
    return result.stderr.decode() if result.returncode else None


def record(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    cgroups = Cgroups()
    torch = has_torch()
    chosen, failures = [], 0
    for family in families():
        if options.families and family["family"] not in options.families.split(","):
            continue
        reason = cgroups.why_not(family)
        if family["program"] == "torch" and not torch:
            reason = "no python3-torch"
        if reason:
            print(f"skipped: {family['family']} {reason}")
        else:
            chosen.append(family)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tasks = [pool.submit(record_one, cgroups, options.folder, family, seed, options.seconds, options.hertz)
                 for seed in range(1, options.seeds + 1) for family in chosen]
        for task in tasks:
            error = task.result()
            if error:
                failures += 1
                print(error, end="")
    cgroups.close()
    return 1 if failures else 0


KINDS = ["leak", "cache", "flat", "plateau", "warming up", "undecided"]


def verdicts_of(folder, chosen, every):
    """{family name: [verdict, ...]} of all recordings of the families, in the order of their seeds."""
    files = [str(path) for family in chosen for path in sorted(folder.glob(family["family"] + "-*.jsonl"),
                                                              key=lambda path: int(path.stem.rsplit("-", 1)[1]))]
    arguments = [str(BUILD / "plimsoll_judge")] + (["--every", str(every)] if every else [])
    verdicts = collections.defaultdict(list)
    if files:
        output = subprocess.run(arguments + files, stdout=subprocess.PIPE, check=True).stdout.decode()
        for line in output.splitlines():
            verdict = json.loads(line)
            verdicts[pathlib.Path(verdict["file"]).stem.rsplit("-", 1)[0]].append(verdict)
    return verdicts


class Score:
    """Counts of one half. A leak that is not called one is a miss, undecided too; a false alarm is a leak where none is."""

    def __init__(self, name):
        self.name = name
        self.leaks = self.misses = self.steady = self.alarms = self.undecided = self.wrong_kind = 0
        self.causes = self.right_causes = 0
        self.size_errors, self.outside = [], 0
        self.matrix = collections.Counter()
        self.notes = []

    def add(self, family, verdict):
        kinds, causes = family["kinds"].split("/"), family["causes"].split("/")
        label, kind = kinds[0] if kinds[0] in ("leak", "cache") else "steady", verdict["verdict"]
        self.matrix[label, kind] += 1
        right = kind in kinds
        if label == "leak":
            self.leaks += 1
            self.misses += kind != "leak"
        else:
            self.steady += 1
            self.alarms += kind == "leak"
            self.undecided += kind == "undecided"
            self.wrong_kind += not right
        if not right:
            self.note(verdict, f"{kind} ({verdict['cause']}), expected {family['kinds']}")
        if right and family["causes"] and kind != "flat":
            self.causes += 1
            self.right_causes += verdict["cause"] in causes
            if verdict["cause"] not in causes:
                self.note(verdict, f"cause {verdict['cause']}, expected {family['causes']}")
        if right and family["size"] and verdict.get("truth", 0) > 0:
            error = verdict["bytes_per_iteration"] / verdict["truth"] - 1
            self.size_errors.append(abs(error))
            self.outside += not verdict["low"] <= verdict["truth"] <= verdict["high"]
            if abs(error) > 0.1:
                self.note(verdict, f"size {verdict['bytes_per_iteration']:.0f}, truth {verdict['truth']:.0f}")

    def note(self, verdict, text):
        self.notes.append(f"{pathlib.Path(verdict['file']).stem}: {text}\n      " + "\n      ".join(verdict["evidence"]))

    def text(self, misses):
        share = lambda part, whole: f"{part} of {whole} ({100 * part / max(1, whole):.1f} %)"
        lines = [f"{self.name}:",
                 "  truth \\ verdict " + "".join(f"{kind:>12}" for kind in KINDS)]
        for label in ("leak", "cache", "steady"):
            lines.append(f"  {label:<16}" + "".join(f"{self.matrix[label, kind]:>12}" for kind in KINDS))
        sizes = sorted(self.size_errors)
        lines += [f"  false alarms  {share(self.alarms, self.steady)}",
                  f"  misses        {share(self.misses, self.leaks)}",
                  f"  right cause   {share(self.right_causes, self.causes)}",
                  f"  not leaks: other kind than labelled {share(self.wrong_kind, self.steady)}, "
                  f"undecided among them {self.undecided}"]
        if sizes:
            within = sum(error <= 0.1 for error in sizes)
            lines.append(f"  size within 10 %: {share(within, len(sizes))}, median error "
                         f"{100 * sizes[len(sizes) // 2]:.1f} %, largest {100 * sizes[-1]:.1f} %; "
                         f"truth outside the 95 % interval {share(self.outside, len(sizes))}")
        return "\n".join(lines + (["    " + note for note in self.notes] if misses else []))


def judge(options):
    halves = ["tuned", "held"] if options.half == "all" else [options.half]
    for half in halves:
        chosen = [family for family in families() if family["half"] == half]
        verdicts = verdicts_of(options.folder, chosen, 0)
        score = Score(half)
        for family in chosen:
            for verdict in verdicts[family["family"]]:
                score.add(family, verdict)
            if not verdicts[family["family"]]:
                print(f"skipped: {family['family']} has no recording")
        print(score.text(options.misses))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("folder", type=pathlib.Path)
    recording.add_argument("--seeds", type=int, default=10)
    recording.add_argument("--jobs", type=int, default=6)
    recording.add_argument("--families", default="")
    recording.add_argument("--seconds", type=float, default=14)
    recording.add_argument("--hertz", type=float, default=10)
    recording.set_defaults(run=record)
    judging = commands.add_parser("judge")
    judging.add_argument("folder", type=pathlib.Path)
    judging.add_argument("--half", choices=["tuned", "held", "all"], default="all")
    judging.add_argument("--misses", action="store_true")
    judging.set_defaults(run=judge)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
