#!/usr/bin/python3
"""Watches real programs, steady and leaking, and prints how often the verdict is right.

  corpus.py record FOLDER [--seeds 3] [--jobs 10] [--seconds 125] [--programs a,b] [--half HALF]
  corpus.py judge FOLDER [--half HALF|all] [--judge PROGRAM]
  corpus.py reliability FOLDER [--half HALF|all] [--moments 20,60,180]
  corpus.py check [--seconds 40]      six of them, live and shortened
  corpus.py keep FOLDER --programs N  small copies of recordings, such as redis-steady-2, for the unit tests
  corpus.py prove                     all of it, and whether what nothing was tuned on is within its bounds
  corpus.py try [--programs a,b]      without a watch: does each run, and what does the kernel say it holds?
  corpus.py labels                    writes programs.csv: labels, halves by the hash of the name, and reasons as they are there

Halves are tuned, held, fresh, second_look, third_look, fourth_look, fifth_look and sixth_look. Programs are in programs.py, second_look.py
to sixth_look_b.py, what drives them in drivers.py, second_drivers.py to sixth_drivers_b.py. docs/verdicts.md has the figures.
"""
import argparse
import collections
import concurrent.futures
import csv
import hashlib
import json
import math
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from drivers import Place
from fifth_look import FIFTH_LOOK
from fourth_look import FOURTH_LOOK
from programs import CACHE, FRESH, HERE, PROGRAMS
from second_look import SECOND_LOOK
from sixth_look_a import SIXTH_LOOK_A
from sixth_look_b import SIXTH_LOOK_B
from third_look import THIRD_LOOK

ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build"))
PORTS = iter(range(21000 + 4 * (os.getpid() % 1000), 32000, 4))  # two of these at a time rarely meet
PORTS_LOCK = threading.Lock()
HALVES = ["tuned", "held", "fresh", "second_look", "third_look", "fourth_look", "fifth_look", "sixth_look"]
UNTOUCHED = HALVES[-1]  # nothing was tuned on it
SHORTENED = "gawk,perl,sqlite3,lua,flask,gunicorn"  # of the tuned half: what forty seconds are enough for
MOMENTS = "20,30,45,60,80,100,125"  # at which reliability is asked for


def half_of(name):
    """By a rule that knows nothing of the programs; those that came later are halves of their own."""
    if name in FRESH:
        return "fresh"
    if name in SECOND_LOOK:
        return "second_look"
    if name in THIRD_LOOK:
        return "third_look"
    if name in FOURTH_LOOK:
        return "fourth_look"
    if name in FIFTH_LOOK:
        return "fifth_look"
    if name in SIXTH_LOOK_A | SIXTH_LOOK_B:
        return "sixth_look"
    return "held" if hashlib.sha256(name.encode()).digest()[0] & 1 else "tuned"


def labels():
    with open(HERE / "programs.csv") as file:
        return list(csv.DictReader(file))


def write_labels(_):
    reasons = {(row["program"], row["form"]): row["reason"] or "" for row in labels()}
    with open(HERE / "programs.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["program", "form", "label", "half", "reason"])
        for name, program in sorted(PROGRAMS.items()):
            for form in program.forms:
                writer.writerow([name, form, "leak" if form == "leaks" else "steady", half_of(name), reasons.get((name, form), "")])
    return 0


def node_modules():
    """npm's packages, in the cache; empty if they cannot be had."""
    wanted = sorted({package for program in PROGRAMS.values() for package in program.npm})
    room = CACHE / "npm"
    if not all((room / "node_modules" / package.rpartition("@")[0]).exists() for package in wanted):
        room.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--silent", "--prefix", str(room), *wanted], stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            return ""
    return str(room / "node_modules")


def free_port():
    """The first of two that nobody listens on, below those that the kernel gives to clients."""
    with PORTS_LOCK:
        for port in PORTS:
            try:
                for one in (port, port + 1):
                    with socket.create_server(("127.0.0.1", one)):
                        pass
                return port
            except OSError:
                continue
    raise OSError("no free port from 21000 to 32000")


class Run:
    """One program in one form with one seed, driven until `seconds` are over."""

    def __init__(self, name, form, seed):
        self.program, self.name = PROGRAMS[name], f"{name}-{form}-{seed}"
        self.room = pathlib.Path(tempfile.mkdtemp(prefix=f"corpus-{name}-"))
        self.place = Place(self.room, free_port(), form, seed)

    def command(self):
        prepared = self.program.prepare(self.place)
        words, environment = prepared if isinstance(prepared, tuple) else (prepared, {})
        return words, dict(os.environ, **environment, NODE_PATH=node_modules() if self.program.npm else "", HOME=str(self.room))

    def start(self, before, output):
        words, environment = self.command()
        self.process = subprocess.Popen(before + words, env=environment, cwd=self.room, stdin=subprocess.PIPE, stdout=output,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        self.place.process = self.process
        self.stop = threading.Event()
        self.driver = threading.Thread(target=self.program.drive or (lambda *_: None), args=(self.place, self.stop), daemon=True)
        self.driver.start()

    def close(self):
        self.stop.set()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.place.helper:
            self.place.helper.kill()
            self.place.helper.wait()
        self.driver.join(10)
        for left in pathlib.Path("/dev/shm").glob(f"corpus{self.place.port}-*"):  # squid, when it is killed
            left.unlink()
        shutil.rmtree(self.room, ignore_errors=True)


def watch(name, form, seed, path, seconds):
    """Records one; what went wrong, or nothing."""
    run = Run(name, form, seed)
    try:
        with open(run.room / "watch.log", "wb") as log:
            before = ["nice", "-n", "10", str(BUILD / "plimsoll"), "watch", "--record", str(path), "--duration", f"{seconds}s", "--json", "--"]
            run.start(before, log)
            run.process.wait(seconds + 60)
        end = max((json.loads(line)["seconds"] for line in open(path) if line.startswith('{"seconds"')), default=0)
        if end < 0.9 * seconds:
            shutil.copy(run.room / "watch.log", str(path) + ".log")
            path.rename(str(path) + ".failed")
            return f"ended after {end:.0f} s"
        return ""
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return str(error)
    finally:
        if hasattr(run, "process"):
            run.close()
        else:
            shutil.rmtree(run.room, ignore_errors=True)


def missing_packages():
    """Of all programs, those of Debian's packages that are not installed."""
    wanted = sorted({package for program in PROGRAMS.values() for package in program.packages})
    told = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Abbrev} ${Package}\n", *wanted], capture_output=True, text=True).stdout
    return set(wanted) - {line.split()[1] for line in told.splitlines() if line.startswith("ii")}


def wanted(options):
    names = options.programs.split(",") if options.programs else []
    half = getattr(options, "half", "all")
    return [row for row in labels() if (not names or row["program"] in names) and half in ("all", row["half"])]


def chosen(options):
    """What is wanted and can be run here."""
    missing = missing_packages()
    return [row for row in wanted(options) if not missing & set(PROGRAMS[row["program"]].packages)]


def tell_skipped(options):
    """Names what is wanted and cannot be run here; how many forms."""
    missing, rows = missing_packages(), wanted(options)
    skipped = [row for row in rows if missing & set(PROGRAMS[row["program"]].packages)]
    for name in sorted({row["program"] for row in skipped}):
        print(f"skipped: {name} ({', '.join(sorted(missing & set(PROGRAMS[name].packages)))} not installed)")
    return len(skipped)


def record(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    node_modules()
    jobs = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for seed in range(1, options.seeds + 1):
            for row in chosen(options):
                path = options.folder / f"{row['program']}-{row['form']}-{seed}.jsonl"
                if path.exists():
                    continue
                jobs.append((path.stem, pool.submit(watch, row["program"], row["form"], seed, path, options.seconds)))
                time.sleep(0.2)
        failed = 0
        for name, job in jobs:
            if job.result():
                failed += 1
                print(f"failed: {name}: {job.result()}", flush=True)
    print(f"{len(jobs) - failed} passed, {failed} failed")
    return 1 if failed else 0


def verdicts_of(folder, rows, judge_program, at=0):
    """(row, seed, verdict), judged as if it had ended after `at` seconds."""
    files = {folder / f"{row['program']}-{row['form']}-{seed}.jsonl": (row, seed) for row in rows for seed in range(1, 10)}
    there = [path for path in files if path.exists()]
    if not there:
        return []
    text = subprocess.run([judge_program] + (["--at", str(at)] if at else []) + [str(path) for path in there], stdout=subprocess.PIPE, check=True).stdout.decode()
    return [(*files[pathlib.Path(verdict["file"])], verdict) for verdict in map(json.loads, text.splitlines())]


def interval(wrong, count):
    """95 %, by Clopper and Pearson."""
    def tail(p, lower):
        terms = [math.comb(count, k) * p**k * (1 - p)**(count - k) for k in range(count + 1)]
        return sum(terms[wrong:]) if lower else sum(terms[:wrong + 1])

    def solve(lower):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            too_far = tail(middle, lower) > 0.025 if lower else tail(middle, lower) < 0.025
            low, high = (low, middle) if too_far else (middle, high)
        return low
    return (0.0 if wrong == 0 else solve(True)), (1.0 if wrong == count else solve(False))


def rate(wrong, count):
    if count == 0:
        return "0 of 0"
    low, high = interval(wrong, count)
    return f"{wrong} of {count} ({100 * low:.1f} to {100 * high:.1f} %)"


def summary(verdicts):
    alarms = [v for v in verdicts if v[0]["label"] == "steady" and v[2]["verdict"] == "leak"]
    misses = [v for v in verdicts if v[0]["label"] == "leak" and v[2]["verdict"] != "leak"]
    steady = sum(v[0]["label"] == "steady" for v in verdicts)
    return alarms, misses, steady, len(verdicts) - steady


def judge(options):
    for half in HALVES:
        if options.half not in ("all", half):
            continue
        verdicts = verdicts_of(options.folder, [row for row in labels() if row["half"] == half], options.judge)
        alarms, misses, steady, leaks = summary(verdicts)
        print(f"\n{half}: false alarms {rate(len(alarms), steady)}, misses {rate(len(misses), leaks)}")
        print("| truth \\ verdict | leak | cache | flat | plateau | warming up | undecided |\n|---|---|---|---|---|---|---|")
        for label in ("leak", "steady"):
            counts = collections.Counter(v[2]["verdict"] for v in verdicts if v[0]["label"] == label)
            print(f"| {label} | " + " | ".join(str(counts[kind]) for kind in ("leak", "cache", "flat", "plateau", "warming up", "undecided")) + " |")
        for title, wrong in (("false alarm", alarms), ("miss", misses)):
            for row, seed, verdict in wrong:
                print(f"{title}: {row['program']}-{row['form']}-{seed}: {verdict['verdict']}, {verdict['cause']}, confidence "
                      f"{verdict['confidence']:.2f}: " + "; ".join(verdict["evidence"][:2]))
    return 0


def reliability(options):
    """Of the rises that a confidence was given to, at several moments of each recording, how many were leaks."""
    rows = [row for row in labels() if options.half in ("all", row["half"])]
    given = []
    for moment in map(int, options.moments.split(",")):
        for row, _, verdict in verdicts_of(options.folder, rows, options.judge, moment):
            if verdict.get("rivals"):
                given.append((verdict["confidence"], row["label"] == "leak", verdict["verdict"] == "leak"))
    print("| confidence | rises | of them leaks | 95 % |\n|---|---|---|---|")
    bounds = [0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.01]
    for low, high in zip(bounds, bounds[1:]):
        some = [right for confidence, right, _ in given if low <= confidence < high]
        if some:
            left, most = interval(sum(some), len(some))
            print(f"| {low:.2f} to {min(high, 1):.2f} | {len(some)} | {sum(some)} ({100 * sum(some) / len(some):.0f} %) | "
                  f"{100 * left:.0f} to {100 * most:.0f} % |")
    said = [right for _, right, leak in given if leak]
    print(f"`leak` was said {len(said)} times, of which {sum(said)} were leaks")
    return 0


def check(options):
    """A few of them, live and short, all at once. The last line counts."""
    with tempfile.TemporaryDirectory() as room:
        options.folder, options.seeds = pathlib.Path(room), 1
        record(options)
        wrong = passed = 0
        for row in chosen(options):
            found = verdicts_of(options.folder, [row], options.judge)
            told = found[0][2]["verdict"] if found else "nothing: it was not recorded"
            right = bool(found) and (told == "leak") == (row["label"] == "leak")
            passed, wrong = passed + right, wrong + (not right)
            if not right:
                print(f"failed: {row['program']}-{row['form']}: {told}", *(found[0][2]["evidence"] if found else []), sep="\n  ")
    print(f"{passed} passed, {wrong} failed, {tell_skipped(options)} skipped")
    return 1 if wrong else 0


def prove(options):
    """All of it, with the bounds for the half that nothing was tuned on."""
    with tempfile.TemporaryDirectory() as room:
        options.folder = pathlib.Path(room)
        failed = record(options)
        judge(options)
        reliability(options)
        alarms, misses, _, _ = summary(verdicts_of(options.folder, [row for row in labels() if row["half"] == UNTOUCHED], options.judge))
    bounds = {"all recorded": failed == 0, f"{UNTOUCHED}: at most one program falsely alarmed": len({v[0]["program"] for v in alarms}) <= 1,
              f"{UNTOUCHED}: at most two programs missed": len({v[0]["program"] for v in misses}) <= 2}
    for name, kept in bounds.items():
        print(("passed: " if kept else "failed: ") + name)
    print(f"{sum(bounds.values())} passed, {len(bounds) - sum(bounds.values())} failed, {tell_skipped(options)} skipped")
    return 0 if all(bounds.values()) else 1


def keep(options):
    """Small copies of recordings for the unit tests: without figures that are 0, the account, and names of this machine."""
    (HERE / "recordings").mkdir(exist_ok=True)
    for name in options.programs.split(","):
        lines = []
        for line in open(options.folder / f"{name}.jsonl"):
            one = json.loads(line)
            if "plimsoll_recording" in one:
                one["facts"], one["started"] = {}, ""
            elif "process" not in one or "verdict" in one:
                continue
            for view in ("process", "container"):
                one[view] = {key: value for key, value in (one.get(view) or {}).items() if value and key not in ("path", "peak_bytes")}
            lines.append(json.dumps({key: value for key, value in one.items() if value != {}}, separators=(",", ":")))
        (HERE / "recordings" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return 0


def held_bytes(pid):
    """Anonymous memory of a process and its descendants, by smaps_rollup; not the Judge's way of counting."""
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        try:
            for line in open(f"/proc/{one}/smaps_rollup"):
                if line.startswith("Anonymous:"):
                    total += int(line.split()[1]) * 1024
            for thread in os.listdir(f"/proc/{one}/task"):
                waiting += map(int, open(f"/proc/{one}/task/{thread}/children").read().split())
        except OSError:
            pass
    return total


def try_one(name, form, seconds):
    run = Run(name, form, 1)
    levels = []
    try:
        run.start(["nice", "-n", "10"], open(run.room / "log", "wb"))
        for _ in range(4):
            time.sleep(seconds / 4)
            levels.append(held_bytes(run.process.pid) >> 10)
        ended = run.process.poll()
        tail = (run.room / "log").read_bytes()[-300:].decode(errors="replace")
        return f"{name}-{form}: {levels} KiB" + (f" ENDED {ended}: {tail}" if ended is not None else "")
    except (OSError, subprocess.SubprocessError) as error:
        return f"{name}-{form}: FAILED {error}"
    finally:
        if hasattr(run, "process"):
            run.close()


def try_all(options):
    node_modules()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for text in pool.map(lambda row: try_one(row["program"], row["form"], options.seconds), chosen(options)):
            print(text, flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("folder", type=pathlib.Path)
    recording.add_argument("--seeds", type=int, default=3)
    recording.add_argument("--seconds", type=float, default=125)
    recording.set_defaults(run=record)
    for name, run in (("judge", judge), ("reliability", reliability)):
        judging = commands.add_parser(name)
        judging.add_argument("folder", type=pathlib.Path)
        judging.add_argument("--judge", default=str(BUILD / "tests/plimsoll_judge"))
        judging.add_argument("--moments", default=MOMENTS)
        judging.set_defaults(run=run)
    checking = commands.add_parser("check")
    checking.add_argument("--judge", default=str(BUILD / "tests/plimsoll_judge"))
    checking.add_argument("--seconds", type=float, default=40)
    checking.set_defaults(run=check)
    proving = commands.add_parser("prove")
    proving.add_argument("--judge", default=str(BUILD / "tests/plimsoll_judge"))
    proving.add_argument("--seeds", type=int, default=3)
    proving.add_argument("--seconds", type=float, default=125)
    proving.set_defaults(run=prove, moments=MOMENTS)
    keeping = commands.add_parser("keep")
    keeping.add_argument("folder", type=pathlib.Path)
    keeping.set_defaults(run=keep)
    trying = commands.add_parser("try")
    trying.add_argument("--seconds", type=float, default=24)
    trying.set_defaults(run=try_all)
    commands.add_parser("labels").set_defaults(run=write_labels)
    for command in commands.choices.values():
        command.add_argument("--jobs", type=int, default=10)
        command.add_argument("--programs", default="")
        command.add_argument("--half", choices=[*HALVES, "all"], default="all")
    checking.set_defaults(programs=SHORTENED, jobs=12)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
