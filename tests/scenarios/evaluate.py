#!/usr/bin/python3
"""Records the labelled scenarios, judges the recordings, and prints how often the verdict is right.

  evaluate.py record FOLDER [--seeds 10] [--jobs 6] [--families a,b] [--seconds 14]
  evaluate.py judge FOLDER [--half tuned|held|fresh|blind|second|all] [--misses]
  evaluate.py delay FOLDER [--families kilobyte_per_request,py_kilobyte] [--meanwhile]
  evaluate.py check [--families a,b] [--seconds 16]  live, one seed; the last line counts passes, failures and skips
  evaluate.py prove [--seeds 10] [--jobs 6]          all of it, and whether what was not tuned on is within its bounds
  evaluate.py heaptrack [--seeds 3] [--jobs 4] [--seconds 6] >HEAPTRACK
  evaluate.py table FOLDER [HEAPTRACK]               every family in Markdown, as docs/verdicts.md has them

Needs build/tests/plimsoll_scenario, plimsoll_record and plimsoll_judge. Families, labels and halves
(tuned, held, fresh, blind, second: docs/verdicts.md) stand in families.csv.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HALVES = ["tuned", "held", "fresh", "blind", "second"]
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
    """A memory cgroup for each scenario, beneath our own, or beside it (version 2 passes no controller on from a cgroup
    that has processes)."""

    def __init__(self):
        self.parent, self.version, self.reason = None, 0, "no memory controller is mounted"
        places = dict(line.rstrip("\n").split(":", 2)[1:] for line in open("/proc/self/cgroup"))
        ours = places.get("")
        beside = os.path.dirname(ours) if ours not in (None, "/") else None
        for version, root, path in ((1, "/sys/fs/cgroup/memory", places.get("memory")),
                                    (2, "/sys/fs/cgroup", ours), (2, "/sys/fs/cgroup", beside)):
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
        deadline = time.monotonic() + 5
        while path != "-":
            try:
                return os.rmdir(path)
            except OSError as error:  # somebody is still in there, perhaps leaving
                if time.monotonic() > deadline:
                    return print(f"{path}: {error}", file=sys.stderr)
                time.sleep(0.02)

    def close(self):
        if self.parent is not None:
            self.remove(self.parent)

    def why_not(self, family):
        """Why a family cannot be recorded here; empty if it can."""
        if family["container"] == "v2" and self.version != 2:
            return "needs a memory controller of version 2: version 1 does not tell what slab can be reclaimed"
        if family["container"] == "uncharged":
            return "kernels such as 6.18 do not charge file locks to the cgroup: nothing that can be seen grows"
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


def possible(cgroups, names):
    """The families that can run here; says why the others cannot."""
    torch = has_torch()
    chosen = []
    for family in families():
        if names and family["family"] not in names.split(","):
            continue
        reason = cgroups.why_not(family)
        if family["program"] == "torch" and not torch:
            reason = "no python3-torch"
        if reason:
            print(f"skipped: {family['family']} {reason}")
        else:
            chosen.append(family)
    return chosen


def record(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    cgroups = Cgroups()
    chosen, failures = possible(cgroups, options.families), 0
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


def score_of(folder, half):
    chosen = [family for family in families() if family["half"] == half]
    verdicts = verdicts_of(folder, chosen, 0)
    score = Score(half)
    for family in chosen:
        for verdict in verdicts[family["family"]]:
            score.add(family, verdict)
        if not verdicts[family["family"]]:
            print(f"skipped: {family['family']} has no recording")
    return score


def judge(options):
    for half in HALVES if options.half == "all" else [options.half]:
        print(score_of(options.folder, half).text(options.misses))
    return 0


def too_early(family, verdict, recording):
    """Whether nothing was promised yet: a leak of 1 KB a request is found within 5,000 of them, and not always sooner."""
    if verdict["verdict"] in ("undecided", "none"):
        return True
    requests = max(json.loads(line).get("iteration", 0) for line in recording.read_text().splitlines())
    return family["kinds"] == "leak" and verdict["verdict"] != "leak" and requests < 5000


def check(options):
    """Live programs, one seed each. A machine too busy for a verdict gets a second, longer chance."""
    cgroups = Cgroups()
    wanted = options.families.split(",")
    chosen = possible(cgroups, options.families)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        for factor in (1, 2):
            with concurrent.futures.ThreadPoolExecutor(options.jobs or max(1, len(chosen))) as pool:
                errors = list(pool.map(lambda family: record_one(cgroups, room, family, 1, factor * options.seconds, 10),
                                       chosen))
            print("".join(filter(None, errors)), end="")
            verdicts = verdicts_of(room, chosen, 0)
            again = []
            for family in chosen:
                verdict = (verdicts[family["family"]] or [{"verdict": "none", "cause": "none", "evidence": []}])[0]
                right = verdict["verdict"] in family["kinds"].split("/")
                right = right and (not family["causes"] or verdict["cause"] in family["causes"].split("/"))
                recording = room / f"{family['family']}-1.jsonl"
                if factor == 1 and too_early(family, verdict, recording):
                    again.append(family)
                    recording.unlink(missing_ok=True)
                    continue
                passed += right
                failed += not right
                if not right:
                    print(f"failed: {family['family']}: {verdict}")
            chosen = again
            if not chosen:
                break
    cgroups.close()
    print(f"{passed} passed, {failed} failed, {len(wanted) - passed - failed} skipped")
    return 1 if failed else 0


def bounds_of(score):
    within = sum(error <= 0.1 for error in score.size_errors)
    return {"false alarms at most 2 %": score.alarms <= 0.02 * score.steady,
            "misses at most 5 %": score.misses <= 0.05 * score.leaks,
            "the right cause in 90 %": score.right_causes >= 0.9 * score.causes,
            "the size within 10 % in 90 %": within >= 0.9 * len(score.size_errors)}


def prove(options):
    bounds = {}
    with tempfile.TemporaryDirectory() as room:
        options.folder, options.families, options.hertz = pathlib.Path(room), "", 10
        bounds["all recorded"] = record(options) == 0
        print(score_of(options.folder, "tuned").text(False))
        for half in HALVES[1:]:
            score = score_of(options.folder, half)
            print(score.text(True))
            bounds.update((f"{half}: {name}", kept) for name, kept in bounds_of(score).items())
    for name, kept in bounds.items():
        print(("passed: " if kept else "failed: ") + name)
    print(f"{sum(bounds.values())} passed, {len(bounds) - sum(bounds.values())} failed")
    return 0 if all(bounds.values()) else 1


def delay(options):
    """Judging every half second: when leaks were found and not given up again, and what else was called one meanwhile."""
    for name in options.families.split(","):
        verdicts = verdicts_of(options.folder, [{"family": name}], 0.5)[name]
        found = sorted(verdict["found"]["iteration"] for verdict in verdicts if verdict["found"])
        if not verdicts:
            print(f"skipped: {name} has no recording")
            continue
        print(f"{name}: found in {len(found)} of {len(verdicts)}, within 5000 iterations in "
              f"{sum(one <= 5000 for one in found)}; iterations " + " ".join(map(str, found)))
    if options.meanwhile:
        steady = [family for family in families() if family["kinds"] != "leak"]
        verdicts = verdicts_of(options.folder, steady, 0.5)
        ever = {name: sum(one["ever"] for one in some) for name, some in verdicts.items()}
        print(f"not leaks: {sum(ever.values())} of {sum(map(len, verdicts.values()))} were called a leak at some time: "
              + ", ".join(f"{name} {count}" for name, count in ever.items() if count))
    return 0


UNITS = {"B": 1, "K": 1e3, "M": 1e6, "G": 1e9}


def heaptrack_one(family, seed, seconds):
    """Bytes that heaptrack calls leaked when the program returned from main; None if it did not work."""
    with tempfile.TemporaryDirectory() as room:
        environment = dict(os.environ, PLIMSOLL_SCENARIO_RETURNS="1")
        try:
            subprocess.run(["heaptrack", "-o", room + "/trace"] + command(family, seed, seconds), env=environment,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20 * seconds)
        except subprocess.TimeoutExpired:
            return None
        traces = list(pathlib.Path(room).glob("trace*"))
        if not traces:
            return None
        text = subprocess.run(["heaptrack_print", str(traces[0])], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout.decode()
    leaked = re.search(r"total memory leaked: ([0-9.]+)([BKMG])", text)
    return float(leaked[1]) * UNITS[leaked[2]] if leaked else None


def heaptrack(options):
    """heaptrack on the families in C++: its verdict is `leak` if it reports at least 256 KB leaked at the end."""
    chosen = [family for family in families() if family["program"] == "cpp"]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tasks = {(family["family"], seed): pool.submit(heaptrack_one, family, seed, options.seconds)
                 for seed in range(1, options.seeds + 1) for family in chosen}
    counts = collections.Counter()
    for family in chosen:
        leaked = [tasks[family["family"], seed].result() for seed in range(1, options.seeds + 1)]
        truth = "leak" if family["kinds"] == "leak" else "not"
        told = ["?" if one is None else ("leak" if one >= 256e3 else "not") for one in leaked]
        counts.update((truth, one) for one in told)
        print(f"{family['family']},{family['kinds']},{family['causes']}," + "/".join(told))
    print(f"leaks: {counts['leak', 'leak']} found, {counts['leak', 'not']} not; no leaks: {counts['not', 'leak']} called "
          f"leaks, {counts['not', 'not']} not; failed {counts['leak', '?'] + counts['not', '?']}")
    return 0


def table(options):
    tracked = {}
    if options.heaptrack:
        tracked = dict(line.strip().rsplit(",", 1) for line in open(options.heaptrack) if line.count(",") == 3)
        tracked = {name.split(",")[0]: told for name, told in tracked.items()}
    print("| family | in | label | half | right | otherwise | heaptrack |\n|---|---|---|---|---|---|---|")
    for family in families():
        verdicts = verdicts_of(options.folder, [family], 0)[family["family"]]
        label = family["kinds"].replace("/", " or ") + (": " + family["causes"].replace("/", " or ") if family["causes"] else "")
        wrong = collections.Counter()
        for verdict in verdicts:
            kind, cause = verdict["verdict"], verdict["cause"]
            if kind not in family["kinds"].split("/"):
                wrong[f"{kind}, {cause}"] += 1
            elif family["causes"] and kind != "flat" and cause not in family["causes"].split("/"):
                wrong[f"cause {cause}"] += 1
        right = f"{len(verdicts) - sum(wrong.values())}/{len(verdicts)}" if verdicts else "not recorded"
        others = "; ".join(f"{count} {what}" for what, count in wrong.items())
        print(f"| {family['family']} | {family['program']} | {label} | {family['half']} | {right} | {others} | "
              f"{tracked.get(family['family'], '')} |")
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
    judging.add_argument("--half", choices=HALVES + ["all"], default="all")
    judging.add_argument("--misses", action="store_true")
    judging.set_defaults(run=judge)
    checking = commands.add_parser("check")
    checking.add_argument("--families",
                          default="linear_leak,anonymous_maps,descriptors,steady,page_cache_read,py_kilobyte")
    checking.add_argument("--seconds", type=float, default=16)
    checking.add_argument("--jobs", type=int, default=0, help="at a time; 0: all")
    checking.set_defaults(run=check)
    proving = commands.add_parser("prove")
    proving.add_argument("--seeds", type=int, default=10)
    proving.add_argument("--jobs", type=int, default=6)
    proving.add_argument("--seconds", type=float, default=14)
    proving.set_defaults(run=prove)
    delaying = commands.add_parser("delay")
    delaying.add_argument("folder", type=pathlib.Path)
    delaying.add_argument("--families", default="kilobyte_per_request,py_kilobyte")
    delaying.add_argument("--meanwhile", action="store_true")
    delaying.set_defaults(run=delay)
    tracking = commands.add_parser("heaptrack")
    tracking.add_argument("--seeds", type=int, default=3)
    tracking.add_argument("--jobs", type=int, default=4)
    tracking.add_argument("--seconds", type=float, default=6)
    tracking.set_defaults(run=heaptrack)
    tabling = commands.add_parser("table")
    tabling.add_argument("folder", type=pathlib.Path)
    tabling.add_argument("heaptrack", nargs="?")
    tabling.set_defaults(run=table)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
