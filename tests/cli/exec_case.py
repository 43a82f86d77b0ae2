"""What the tests of `plimsoll exec` share: how it is called, and what it could have left behind."""
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLIMSOLL = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
PYTHON = "/usr/bin/python3"
MIB = 1 << 20
USAGE, TIMEOUT, OURS, NOT_EXECUTABLE, NOT_FOUND, LIMIT = 2, 124, 125, 126, 127, 137
TAKE = "import sys\nx = bytearray(int(sys.argv[1]))\nfor i in range(0, len(x), 4096): x[i] = 1\n"

# Whoever runs us in the background of a script has SIGINT ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def own_memory_cgroup():
    """Our memory cgroup's directory, or None."""
    for line in open("/proc/self/cgroup"):
        _, controllers, path = line.rstrip("\n").split(":", 2)
        directory = {"memory": "/sys/fs/cgroup/memory", "": "/sys/fs/cgroup"}.get(controllers)
        if directory and glob.glob(directory + path + "/memory.stat"):
            return directory + path
    return None


STARTED = set()  # the pids of every `plimsoll` of this run: other people's cgroups are not our business


class Started(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        STARTED.add(str(self.pid))


def cgroups():
    """Every cgroup that exists of those we started, in any hierarchy."""
    found = set()
    places = [line.rstrip("\n").split(":", 2) for line in open("/proc/self/cgroup")]
    for _, controllers, path in places:
        for mount in glob.glob("/sys/fs/cgroup/*") + ["/sys/fs/cgroup"]:
            found.update(glob.glob(f"{mount}{path}/plimsoll-*"))
    return {path for path in found if path.rsplit("/", 1)[1].split("-")[1] in STARTED}


def alive(mark):
    """Processes whose command line contains `mark`; zombies have none."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if mark.encode() in pathlib.Path(path).read_bytes() and int(path.split("/")[2]) != os.getpid():
                found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def guards(pid):
    return [guard for guard in alive("plimsoll-guard") if f"\0{pid}-" in open(f"/proc/{guard}/cmdline").read()]


def eventually(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def children(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-exec-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.mark = f"mark-{os.getpid()}-{self.id().rsplit('.', 1)[1]}"

    def call(self, *arguments, **options):
        text = options.pop("input", None)
        with Started([PLIMSOLL, "exec", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     stdin=subprocess.DEVNULL if text is None else subprocess.PIPE, text=True, **options) as process:
            out, error = process.communicate(text, timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    def receipt(self, *arguments, **options):
        done = self.call("--json", *arguments, **options)
        self.assertTrue(done.stdout, done.stderr)
        answer = json.loads(done.stdout)
        answer["returncode"] = done.returncode
        return answer

    def need_cgroup(self):
        directory = own_memory_cgroup()
        if directory is None or not os.access(directory, os.W_OK):
            self.skipTest("no memory cgroup can be made here")
        return directory
