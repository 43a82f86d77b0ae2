#!/usr/bin/python3
"""unexplained.py [--json] [NAME...]

Starts real processes of different kinds, each in a memory cgroup of its own beneath ours where that is permitted, and
prints for both views of `plimsoll.observe` the kernel's figure, the sum of the parts, and the rest. What is not
installed is left out and said. Ends with status 1 if a rest is above 2 % and above 1 MiB.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, os.environ.get("PLIMSOLL_PYTHON", str(ROOT / "build" / "python")))

from plimsoll import observe  # noqa: E402

MIB = 1 << 20
PYTHON = "/usr/bin/python3"
HOLDER = str(ROOT / "build" / "tests" / "plimsoll_holder")

TORCH = """
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(24)])
with torch.no_grad():
    for _ in range(20): model(torch.randn(64, 1024))
print('ready', flush=True); input()
"""
FORKED = """
import multiprocessing, os, sys
data = [str(i) for i in range(1_000_000)]
def work(_):
    return sum(len(x) for x in data[:300_000])
if __name__ == '__main__':
    pool = multiprocessing.get_context('fork').Pool(4)
    pool.map(work, range(8))
    print('ready', flush=True); sys.stdin.read()
"""
THREADS = """
import threading, sys
import numpy
stop = threading.Event()
def work():
    held = [numpy.ones(50_000) for _ in range(40)]
    stop.wait()
threads = [threading.Thread(target=work, daemon=True) for _ in range(16)]
for t in threads: t.start()
shared = __import__('mmap').mmap(-1, 24 << 20); shared[:] = bytes(len(shared))
print('ready', flush=True); sys.stdin.read()
"""
NODE = ("const held = []; for (let i = 0; i < 300000; i++) held.push({i, s: 'x' + i}); "
        "const b = Buffer.alloc(32 << 20, 1); console.log('ready'); process.stdin.resume();")
JAVA = """public class Hold { public static void main(String[] a) throws Exception {
  var held = new java.util.ArrayList<int[]>(); for (int i = 0; i < 2000; i++) held.add(new int[5000]);
  System.out.println("ready"); System.in.read(); } }
"""
PERL = "$|=1; my %h; $h{$_} = 'x' x 40 for 1..300000; print \"ready\\n\"; <STDIN>;"


def torch_is_there():
    return subprocess.run([PYTHON, "-c", "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torch'))"],
                          check=False).returncode == 0


class Case:
    """What to start, what to write to it, and whether a line of its output says that it is ready."""

    def __init__(self, name, command, *, says_ready=True, feed="", settle=1.0, there=True):
        self.name, self.command, self.says_ready, self.feed, self.settle = name, command, says_ready, feed, settle
        self.there = there and shutil.which(command[0]) is not None


def cases(room):
    (room / "Hold.java").write_text(JAVA)
    database = str(room / "t.db")
    chromium = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={room}/chromium",
                "--remote-debugging-port=0", "data:text/html,<canvas width=2000 height=2000></canvas>"]
    return [
        Case("shell", ["bash", "-c", "x=$(seq 200000); echo ready; read"]),
        Case("python", [PYTHON, "-c", "d = {i: str(i) for i in range(400000)}; print('ready', flush=True); input()"]),
        Case("python, 16 threads", [PYTHON, "-c", THREADS]),
        Case("python, 4 forked", [PYTHON, "-c", FORKED]),
        Case("python with torch", [PYTHON, "-c", TORCH], there=torch_is_there()),
        Case("node", ["node", "-e", NODE]),
        Case("C++, large maps", [HOLDER], feed=f"map {700 * MIB}\nshared {64 * MIB}\nprivate_file {48 * MIB} {room}/p\n"
             f"shared_file {96 * MIB} {room}/s\narena {90 * MIB}\nhuge {64 * MIB}\nstack {6 * MIB}\nheap {30 * MIB}\n"),
        Case("C++, 20,000 maps", [HOLDER], feed="maps 10000\n"),
        Case("C++, files written", [HOLDER], feed=f"cache {200 * MIB} {room}/c\ndescriptors 200\nthreads 300\n"),
        Case("perl", ["perl", "-e", PERL]),
        Case("sqlite3", ["sqlite3", database], feed="create table t(x); with recursive c(n) as (select 1 union all select "
             "n+1 from c limit 200000) insert into t select hex(randomblob(40)) from c;\nselect 'ready';\n"),
        Case("java", ["java", "-Xmx256m", str(room / "Hold.java")]),
        Case("chromium", chromium, says_ready=False, settle=6.0),
    ]


class Cgroup:
    """A memory cgroup beneath our own, or beside it (version 2 passes no controller on from a cgroup that has
    processes), or nothing."""

    def __init__(self, name):
        self.directory = None
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for parent in ("/sys/fs/cgroup/memory" + path, "/sys/fs/cgroup" + path,
                           "/sys/fs/cgroup" + os.path.dirname(path)):
                if "memory" not in controllers.split(",") and controllers:
                    continue
                directory = pathlib.Path(parent) / name
                try:
                    directory.mkdir()
                except OSError:
                    continue
                if (directory / "memory.stat").exists():
                    self.directory = directory
                    return
                directory.rmdir()

    def join(self):
        if self.directory:
            (self.directory / "cgroup.procs").write_text("0")

    def remove(self):
        for _ in range(100):
            if not self.directory:
                return
            try:
                self.directory.rmdir()
                return
            except OSError:
                time.sleep(0.05)
        print(f"unexplained: {self.directory} could not be removed", file=sys.stderr)


def run(case):
    cgroup = Cgroup(f"unexplained_{os.getpid()}")
    log = tempfile.TemporaryFile()
    process = subprocess.Popen(case.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                               preexec_fn=cgroup.join, start_new_session=True)
    try:
        process.stdin.write(case.feed.encode())
        process.stdin.flush()
        for _ in range(max(1, case.feed.count("\n") if case.command[0] == HOLDER else 1) * case.says_ready):
            line = process.stdout.readline().strip()
            if line not in (b"ready", b"ok"):
                log.seek(0)
                raise RuntimeError(f"{case.name}: said {line!r}: {log.read()[-300:]!r}")
        time.sleep(case.settle)
        return observe.account(process.pid), cgroup.directory is not None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        cgroup.remove()


def row(case, account, own_cgroup):
    process, container = account.sample.process, account.sample.get("container")
    result = {"name": case.name, "processes": process.processes, "mappings": process.mappings, "own_cgroup": own_cgroup,
              "process": [process.kernel_bytes, process.sum_bytes, account.process_unexplained_bytes]}
    if container:
        result["container"] = [container.kernel_bytes, container.sum_bytes, account.container_unexplained_bytes]
    return result


def is_explained(figures):
    kernel, _, rest = figures
    return abs(rest) <= max(MIB, kernel // 50)


def print_row(result):
    def columns(figures):
        if not figures:
            return f"{'-':>11} {'-':>11} {'-':>9} {'':>6}"
        kernel, total, rest = figures
        return f"{kernel / MIB:11.2f} {total / MIB:11.2f} {rest / MIB:9.3f} {100 * rest / max(kernel, 1):5.2f}%"

    print(f"{result['name']:20} {result['processes']:3} {result['mappings']:6} |{columns(result['process'])} |"
          f"{columns(result.get('container'))}{'' if result['own_cgroup'] else '  (shared cgroup)'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        if not options.json:
            print(f"{'MiB':20} {'n':>3} {'maps':>6} |{'kernel':>11} {'sum':>11} {'rest':>9} {'':>6} |{'kernel':>11} "
                  f"{'sum':>11} {'rest':>9}")
        for case in cases(pathlib.Path(directory)):
            if options.names and case.name not in options.names:
                continue
            if not case.there:
                print(f"unexplained: {case.name}: not installed", file=sys.stderr)
                continue
            results.append(row(case, *run(case)))
            if not options.json:
                print_row(results[-1])
    if options.json:
        print(json.dumps(results))
    return 0 if all(is_explained(r[view]) for r in results for view in ("process", "container") if view in r) else 1


if __name__ == "__main__":
    sys.exit(main())
