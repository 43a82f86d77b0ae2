#!/usr/bin/python3
"""`plimsoll watch` as its users see it.

PLIMSOLL names the command (build/plimsoll). The last line: N passed, M failed, K skipped.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import counted
from pseudo_terminal import PseudoTerminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLIMSOLL = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
PYTHON = "/usr/bin/python3"
LEAK, USAGE, INVALID_ARGUMENT, NOT_IMPLEMENTED, IO = 1, 2, 3, 5, 8
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m@DATA@"
# Whoever runs us in the background of a script has SIGINT ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

LEAKING = """
import time
kept = []
for i in range(100000):
    kept.append(bytearray(1_000_000))
    print("iteration", i)
    time.sleep(0.05)
"""
# Frees what it took, but glibc keeps it: the last block is above all the others.
RETAINING = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
blocks = [libc.malloc(4000) for _ in range(10000)]
for block in blocks: ctypes.memset(block, 1, 4000)
for block in blocks[:-1]: libc.free(block)
for i in range(100000):
    print(i, flush=True)
    time.sleep(0.05)
"""


def sample(seconds, heap, iteration=-1):
    process = {"heap_bytes": heap, "shared_file_bytes": 5 << 20, "sum_bytes": heap + (5 << 20),
               "kernel_bytes": heap + (5 << 20), "rss_bytes": heap + (5 << 20), "processes": 1, "threads": 1}
    container = {"version": 2, "path": "/x", "anonymous_bytes": heap, "page_cache_bytes": 40 << 20,
                 "sum_bytes": heap + (40 << 20), "kernel_bytes": heap + (40 << 20), "limit_bytes": 200 << 20}
    return {"seconds": seconds, "iteration": iteration, "gap": False, "exact": True, "process": process,
            "container": container}


def recording(path, name="service", verdict=None, gap=True):
    """Sixty seconds with a gap, written by hand."""
    lines = [{"plimsoll_recording": 1, "command": [name, "--port", "80"], "pid": 42, "name": name,
              "started": "2026-11-16T00:30:00Z", "interval_seconds": 1, "facts": {"kernel": "Linux 6"}}]
    for i in range(60):
        if gap and 30 <= i < 36:
            lines.append({"seconds": i, "gap": True, "gap_reason": "the process is stopped"})
        else:
            lines.append(sample(i, (20 + i) << 20, 10 * i))
    part = {"name": "heap", "bytes": 79 << 20, "returnable_bytes": 1 << 20, "returns_by": "malloc_trim"}
    named = {"name": f"/lib/{name}", "bytes": 5 << 20, "returnable_bytes": 0, "returns_by": ""}
    lines.append({"account": {"process": [part], "libraries": [named], "container": [], "cached_files": [named],
                              "process_unexplained_bytes": 0, "container_unexplained_bytes": 0, "notes": [name],
                              "sample": sample(59, 79 << 20)}})
    if verdict:
        lines.append({"verdict": verdict, "cause": "live heap", "bytes_per_second": 1 << 20,
                      "bytes_per_iteration": 104857.6, "low": 1e5, "high": 1.1e5, "confidence": 0.97,
                      "evidence": [f"the heap grew: {name}"]})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-watch-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def watch(self, *arguments, code=0, **options):
        done = subprocess.run([PLIMSOLL, "watch", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                              **{"stdin": subprocess.DEVNULL, **options})
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def json_of(self, done):
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertIn("verdict", lines[-1])
        return lines[:-1], lines[-1]

    def start(self, *command, **options):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def notes(self, *arguments, code=0):
        return self.json_of(self.watch("--json", *arguments, code=code))[1]["notes"]


class Leak(Case):
    """One watch of a leak, seen in every way."""

    @classmethod
    def setUpClass(cls):
        cls.room = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-watch-"))
        cls.addClassCleanup(shutil.rmtree, cls.room)
        cls.done = subprocess.run(
            [PLIMSOLL, "watch", "--json", "--duration", "8s", "--interval", "250ms", "--record", cls.room / "r.jsonl",
             "--html", cls.room / "w.html", "--iterations-from-stdout", r"^iteration \d+$", "--", PYTHON, "-c", LEAKING],
            capture_output=True, text=True, timeout=120)

    def test_verdict_and_contract(self):
        self.assertEqual(self.done.returncode, LEAK, self.done.stderr)
        samples, last = self.json_of(self.done)
        self.assertGreater(len(samples), 10)
        for key in ("verdict", "cause", "bytes_per_second", "bytes_per_iteration", "confidence", "process",
                    "container", "unexplained_bytes"):
            self.assertIn(key, last)
        self.assertEqual((last["verdict"], last["cause"]), ("leak", "live heap"))
        # How exact it is, tests/scenarios measures; here a busy machine may count late.
        self.assertAlmostEqual(last["bytes_per_iteration"], 1e6, delta=2.5e5)
        self.assertGreater(samples[-1]["process"]["kernel_bytes"], samples[1]["process"]["kernel_bytes"])
        self.assertGreaterEqual(samples[-1]["iteration"], 20)
        # What the command prints is not lost, and does not stand between our lines.
        self.assertIn("iteration 3\n", self.done.stderr)

    def test_recording_replays_to_the_same(self):
        _, last = self.json_of(self.done)
        replayed = self.watch("--replay", self.room / "r.jsonl", "--json", code=LEAK)
        samples, again = self.json_of(replayed)
        self.assertEqual(len(samples), len(self.json_of(self.done)[0]))
        for key in ("verdict", "cause", "bytes_per_iteration", "process", "account", "evidence"):
            self.assertEqual(again[key], last[key], key)

    def test_cut_recording_is_judged_up_to_the_cut(self):
        whole = (self.room / "r.jsonl").read_bytes()
        cut = self.directory / "cut.jsonl"
        cut.write_bytes(whole[:len(whole) // 2])
        samples, last = self.json_of(self.watch("--replay", cut, "--json", code=None))
        self.assertGreater(len(samples), 5)
        self.assertTrue(any("cut short" in note for note in last["notes"]), last["notes"])

    def test_page_is_whole_and_fetches_nothing(self):
        page = (self.room / "w.html").read_text()
        self.assertIn("default-src 'none'", page)
        self.assertTrue(page.rstrip().endswith("</html>"))
        self.assertNotRegex(page, r"(src|href)\s*=\s*[\"']")
        data = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', page, re.S)[1])
        self.assertEqual(data["verdict"], "leak")
        self.assertEqual(len(data["seconds"]), len(data["process"]["parts"][0]["bytes"]))
        self.assertFalse([p for p in self.room.iterdir() if p.name.endswith(".part")])


class Commands(Case):
    def test_arguments_arrive_as_they_are(self):
        arguments = ["[ a ]", "[a,b]", "", "{}", "--json", "--", "%%", "a b"]
        script = "import sys; sys.stderr.write(repr(sys.argv[1:]))"
        done = self.watch("--", PYTHON, "-c", script, *arguments)
        self.assertIn(repr(arguments), done.stderr)

    def test_eight_seconds_at_the_default_interval_are_enough(self):
        keep = "import time\nkept = []\nfor i in range(400):\n    kept.append(b'x' * 20000)\n    print('turn', i, flush=True)\n    time.sleep(0.02)"
        done = self.watch("--json", "--iterations-from-stdout", "^turn", "--", PYTHON, "-c", keep, code=LEAK)
        _, last = self.json_of(done)
        self.assertEqual(last["verdict"], "leak", last["evidence"])
        self.assertIn(last["part"], ("heap", "private"))  # cheap samples may divide a rise among kinds
        self.assertGreater(len(last["curve"]), 2)
        self.assertGreaterEqual(last["confidence"], 0.8)

    def test_a_process_of_a_tree_is_named(self):
        worker = "import sys, time\nkept = []\nwhile True:\n    kept.append(b'x' * int(sys.argv[1]))\n    time.sleep(0.02)"
        tree = f"import subprocess, sys\nfor size in ('0', '9000', '0'): subprocess.Popen([sys.executable, '-c', {worker!r}, size])\nsys.stdin.read()"
        done = subprocess.run([PLIMSOLL, "watch", "--json", "--duration", "12s", "--", PYTHON, "-c", tree], capture_output=True, text=True,
                              stdin=self.start("sleep", "60", stdout=subprocess.PIPE).stdout, timeout=60)
        samples, last = self.json_of(done)
        self.assertEqual(last["verdict"], "leak", last["evidence"])
        largest = max(samples[-1]["members"], key=lambda member: member["bytes"])
        self.assertEqual(last["grower"]["pid"], largest["pid"])
        self.assertGreater(last["grower"]["last_bytes"], last["grower"]["first_bytes"])

    def test_iterations_on_a_descriptor(self):
        script = "for i in 1 2 3 4 5; do echo >&$PLIMSOLL_ITERATIONS_FD; sleep 0.1; done; sleep 9"
        done = self.watch("--json", "--duration", "2s", "--interval", "200ms", "--iterations-fd", "7", "--", "bash",
                          "-c", script)
        samples, last = self.json_of(done)
        counted = [s["iteration"] for s in samples if s["iteration"] >= 0]
        self.assertEqual(counted, sorted(counted))
        self.assertEqual(last["iteration"], 5)

    def test_no_iterations_matched(self):
        notes = self.notes("--duration", "500ms", "--interval", "100ms", "--iterations-from-stdout", "nothing", "--",
                           "sh", "-c", "echo something; sleep 9")
        self.assertTrue(any("no line" in note and "'nothing'" in note and "by time" in note for note in notes), notes)

    def test_not_found_not_executable(self):
        self.assertIn("not found", self.watch("--", "/no/such/command", code=127).stderr)
        self.watch("--", "/etc/passwd", code=126)

    def test_exits_at_once(self):
        done = self.watch("--json", "--", "sh", "-c", "exit 3")
        _, last = self.json_of(done)
        self.assertEqual(last["verdict"], "undecided")
        self.assertTrue(any("exited with 3" in note for note in last["notes"]), last["notes"])

    def test_killed_command_is_told(self):
        notes = self.notes("--interval", "100ms", "--", "sh", "-c", "sleep 0.5; kill -9 $$")
        self.assertTrue(any("signal 9" in note for note in notes), notes)

    def test_command_dies_with_us(self):
        process = self.start(PLIMSOLL, "watch", "--interval", "100ms", "--", "sh", "-c", "echo $$; sleep 300",
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        child = int(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0)
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists())


class Processes(Case):
    def test_wrong_pids(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.watch("--pid", ended.pid, code=INVALID_ARGUMENT)
        self.watch("--pid", "0", code=USAGE)
        self.watch("--pid", "-4", code=USAGE)
        self.watch("--pid", "abc", code=USAGE)

    def test_kernel_thread(self):
        if pathlib.Path("/proc/2/comm").exists() and pathlib.Path("/proc/2/comm").read_text() == "kthreadd\n":
            self.assertIn("kernel", self.watch("--pid", 2, code=INVALID_ARGUMENT).stderr)
        else:
            self.skipTest("no kernel thread in this pid namespace")

    def test_zombie(self):
        zombie = subprocess.Popen(["true"])
        self.addCleanup(zombie.wait)
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        self.assertIn("zombie", self.watch("--pid", zombie.pid, code=INVALID_ARGUMENT).stderr)

    def test_another_users(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become somebody else")
        target = self.start("sleep", "300")
        command = self.directory / "plimsoll"
        shutil.copy(PLIMSOLL, command)
        self.directory.chmod(0o755)
        done = subprocess.run([command, "watch", "--pid", str(target.pid), "--duration", "1s", "--interval", "200ms"],
                              capture_output=True, text=True, user="nobody", timeout=60)
        # What the kernel hides from others is said, in an error or beneath figures that lack it.
        self.assertIn(done.returncode, (0, IO, INVALID_ARGUMENT), done.stdout)
        self.assertRegex(" ".join((done.stdout + done.stderr).split()), "as (their|its) owner or as root")

    def test_end_of_the_process(self):
        target = subprocess.Popen(["sleep", "0.7"])
        reaper = self.start(PLIMSOLL, "watch", "--json", "--interval", "100ms", "--pid", str(target.pid),
                            stdout=subprocess.PIPE, text=True)
        target.wait()
        output = reaper.communicate(timeout=60)[0]
        last = json.loads(output.splitlines()[-1])
        self.assertTrue(any("ended" in note for note in last["notes"]), last["notes"])
        self.assertEqual(reaper.returncode, 0)

    def test_stopped_is_a_gap(self):
        target = self.start("sleep", "300")
        os.kill(target.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, target.pid, signal.SIGCONT)
        page = self.directory / "w.html"
        done = self.watch("--json", "--duration", "500ms", "--interval", "100ms", "--html", page, "--pid", target.pid)
        samples, _ = self.json_of(done)
        self.assertTrue(all(s["gap"] and "stopped" in s["gap_reason"] for s in samples), samples)
        self.assertTrue(page.exists())

    def test_container_init(self):
        # Process 1 is watched as any other; the watch may lack permission.
        done = self.watch("--pid", 1, "--only-process", "--duration", "300ms", "--interval", "100ms", code=None)
        self.assertIn(done.returncode, (0, IO), done.stderr)


# Keeps a MiB a second, and says what it sees of whoever watches it.
KEEPING = """
console.log('options', process.env.NODE_OPTIONS || 'none');
console.log('seen', typeof gc, Object.keys(require.cache).length, module.children.length, process.execArgv.length);
const kept = [];
setInterval(() => kept.push(new Array(13000).fill(0).map((_, i) => ({i}))), 400);
"""


class AskedNode(Case):
    """A program on Node, which tells what its heap holds after full collections."""

    def setUp(self):
        super().setUp()
        self.node = shutil.which("node")
        if not self.node:
            self.skipTest("no node")
        self.program = self.directory / "program.js"
        self.program.write_text(KEEPING)

    def told(self, path):
        """What each sample has of the first process, where it tells anything."""
        samples = [json.loads(line) for line in path.read_text().splitlines()]
        return [sample["members"][0] for sample in samples
                if sample.get("members") and "process" in sample and "heap_bytes" in sample["members"][0]]

    def test_tells_what_lives_and_is_left_as_it_was(self):
        record = self.directory / "r.jsonl"
        done = self.watch("--json", "--duration", "12s", "--record", record, "--", self.node, self.program, code=None)
        told = self.told(record)
        self.assertGreater(len(told), 3, done.stderr)
        self.assertGreaterEqual(told[-1]["collections"], 1)  # a busy machine has no time for a second one
        self.assertEqual(told[-1]["asked_collections"], told[-1]["collections"])
        self.assertGreater(told[-1]["live_bytes"], 1 << 20)
        self.assertGreater(told[-1]["asked_seconds"], 0)
        self.assertGreater(told[-1]["heap_bytes"], told[-1]["live_bytes"] // 2)
        self.assertIn("seen undefined 1 0 0\n", done.stderr)
        notes = self.json_of(done)[1]["notes"]
        self.assertTrue(any("Node told what its heap holds" in note and "--no-ask" in note for note in notes), notes)
        room = pathlib.Path(re.search(r"options --require (\S+)", done.stderr)[1]).parent
        self.assertTrue(room.name.startswith("plimsoll-asked-"))
        self.assertFalse(room.exists())
        replayed = self.json_of(self.watch("--replay", record, "--json", code=None))[1]
        for key in ("verdict", "confidence", "evidence"):
            self.assertEqual(replayed[key], self.json_of(done)[1][key], key)

    def test_what_a_killed_watch_left_goes_with_the_next(self):
        for survives in (False, True):
            command = 'echo "$NODE_OPTIONS"; ' + ("setsid sleep 60 & echo $!; " if survives else "echo 0; ") + "exec sleep 60"
            watch = subprocess.Popen([PLIMSOLL, "watch", "--json", "--", "sh", "-c", command], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True)
            lines = [watch.stderr.readline(), watch.stderr.readline()]
            room = pathlib.Path(lines[0].split()[-1]).parent
            self.assertTrue(room.name.startswith("plimsoll-asked-"), lines)
            next_one = ["--json", "--duration", "500ms", "--", "sleep", "9"]
            self.watch(*next_one)
            self.assertTrue(room.exists(), "of a watch that lives")
            watch.kill()
            watch.wait()
            watch.stderr.close()
            if survives:
                self.watch(*next_one)
                self.assertTrue(room.exists(), "a process that knows it lives")
                os.kill(int(lines[1]), signal.SIGKILL)
            deadline = time.monotonic() + 20
            while self.users_of(room) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.watch(*next_one)
            self.assertFalse(room.exists())

    def users_of(self, room):
        found = []
        for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if str(room).encode() in environment.read_bytes():
                    found.append(environment)
            except OSError:
                pass
        return found

    def test_no_ask(self):
        record = self.directory / "r.jsonl"
        done = self.watch("--json", "--no-ask", "--duration", "4s", "--record", record, "--", self.node, self.program,
                          code=None, env={key: value for key, value in os.environ.items() if key != "NODE_OPTIONS"})
        self.assertEqual(self.told(record), [])
        self.assertIn("options none\n", done.stderr)
        self.assertFalse(any("Node" in note for note in self.json_of(done)[1]["notes"]))

    def test_options_that_are_there_stay(self):
        done = self.watch("--json", "--duration", "2s", "--", self.node, self.program, code=None,
                          env=dict(os.environ, NODE_OPTIONS="--max-old-space-size=300"))
        self.assertRegex(done.stderr, r"options --max-old-space-size=300 --require \S+/node.js\n")

    def test_what_may_load_nothing_is_left_alone(self):
        done = self.watch("--json", "--duration", "2s", "--", "sh", "-c", 'echo "options [$NODE_OPTIONS]"', "--permission")
        self.assertIn("options []\n", done.stderr)

    def test_threads_modules_and_short_ones_end_as_alone(self):
        module = self.directory / "m.mjs"
        module.write_text("import {Worker} from 'worker_threads';\n"
                          "const worker = new Worker('console.log(typeof gc, 6 * 7)', {eval: true});\n"
                          "worker.on('exit', () => { process.exitCode = 4; });\n")
        for arguments, ending, output in (((module,), "exited with 4", "undefined 42\n"),
                                          (("-e", "setTimeout(() => { throw new Error('mine') }, 2600)"), "exited with 1", "Error: mine"),
                                          (("--expose-gc", "-p", "typeof gc"), "exited with 0", "function\n")):
            done = self.watch("--json", "--duration", "20s", "--", self.node, *arguments, code=None)
            self.assertIn(output, done.stderr)
            notes = self.json_of(done)[1]["notes"]
            self.assertTrue(any(ending in note for note in notes), (arguments, notes))


class Files(Case):
    def test_unwritable(self):
        for option in ("--record", "--html"):
            marker = self.directory / "started"
            done = self.watch(option, "/no/such/directory/x", "--", "touch", marker, code=IO)
            self.assertIn("/no/such/directory/x", done.stderr)
            self.assertFalse(marker.exists(), "the command was started all the same")

    def test_full_disk_costs_the_file_not_the_report(self):
        for option in ("--record", "--html"):
            done = self.watch("--duration", "500ms", "--interval", "100ms", option, "/dev/full", "--", "sleep", "9",
                              code=IO)
            self.assertIn("verdict: ", done.stdout)
            self.assertIn("No space left", done.stderr)

    def test_what_is_no_recording(self):
        wrong = self.directory / "wrong"
        for text, told in (("", "empty"), ("hello\n", "line 1"), ("{}\n", "recording"),
                           ('{"plimsoll_recording":1}\n{"seconds":-3,"process":{}}\n', "line 2")):
            wrong.write_text(text)
            self.assertIn(told, self.watch("--replay", wrong, code=INVALID_ARGUMENT).stderr)
        self.watch("--replay", self.directory / "none", code=IO)

    def test_closed_stdout_is_told(self):
        command = f"{PLIMSOLL} watch --interval 50ms -- sleep 300 | head -n 2"
        done = subprocess.run(["bash", "-c", command + '; exit "${PIPESTATUS[0]}"'], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, IO, done.stderr)

    def test_interrupted_at_any_moment_leaves_whole_files(self):
        record, page = self.directory / "r.jsonl", self.directory / "w.html"
        for delay in (0.0, 0.05, 0.3, 0.9):
            process = self.start(PLIMSOLL, "watch", "--interval", "50ms", "--record", record, "--html", page, "--",
                                 "sleep", "300", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            code = process.wait(60)
            if code in (-signal.SIGINT, 130):
                continue  # before it had begun
            self.assertEqual(code, 0)
            self.assertIn('"verdict"', record.read_text().splitlines()[-1])
            self.assertTrue(page.read_text().rstrip().endswith("</html>"))
            self.watch("--replay", record)
            self.assertEqual(sorted(p.name for p in self.directory.iterdir()), ["r.jsonl", "w.html"])

    def test_hostile_names_stay_text(self):
        record, page = self.directory / "r.jsonl", self.directory / "w.html"
        recording(record, HOSTILE, "leak")
        done = self.watch("--replay", record, "--html", page, code=LEAK)
        self.assertNotIn("\x1b", done.stdout)
        text = page.read_text()
        self.assertEqual(len(re.findall("<script", text)), 3)
        self.assertNotIn("<img", text)
        nonce = re.search("script-src 'nonce-([0-9a-f]{32})'", text)[1]
        self.assertEqual(text.count(f'nonce="{nonce}"'), 4)
        data = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', text, re.S)[1])
        self.assertEqual(data["account"]["notes"], [HOSTILE])
        self.assertEqual(data["gaps"], [{"from": 29, "to": 36, "reason": "the process is stopped"}])


class Usage(Case):
    def test_wrong_usage(self):
        for arguments in ([], ["--pid", "1", "--", "true"], ["--interval", "0s", "--", "true"],
                          ["--interval", "1 parsec", "--", "true"], ["--duration", "-1s", "--", "true"],
                          ["--iterations-from-stdout", "(", "--", "true"], ["--iterations-from-stdout", "x", "--pid", "1"],
                          ["--trim", "--", "true"], ["--reclaim", "--duration", "1s", "--pid", "1"],
                          ["--restart", "--duration", "1s", "--pid", "1"], ["--replay", "x", "--record", "y"],
                          ["--iterations-fd", "1", "--", "true"],
                          ["--iterations-fd", "64", "--", "true"], ["--html", "x", "--replay", "x"],
                          ["--html", "x", "--record", "x", "--", "true"]):
            with self.subTest(arguments):
                self.assertTrue(self.watch(*arguments, code=USAGE).stderr.startswith("plimsoll: "))

    def test_durations(self):
        for text in ("300ms", "0.3", "0.3s", "0.005m", "0.005min", "1e-4h", "0.000004d"):
            self.watch("--interval", "100ms", "--duration", text, "--", "sleep", "60")
            done = subprocess.run([PLIMSOLL, "exec", "--quiet", "--timeout", text, "--", "sleep", "60"], timeout=60)
            self.assertEqual(done.returncode, 124, text)  # the same words mean the same to both

    def test_help(self):
        text = self.watch("--help").stdout
        for option in ("--pid", "--iterations-from-stdout", "--html", "--reclaim", "Example"):
            self.assertIn(option, text)


class Experiments(Case):
    def findings(self, *arguments):
        done = self.watch("--json", "--duration", "1s", "--interval", "200ms", *arguments, code=None)
        return {e["name"]: e for e in self.json_of(done)[1]["experiments"]}

    def test_trim_gives_back_and_does_no_harm(self):
        target = self.start(PYTHON, "-c", RETAINING, stdout=subprocess.PIPE, text=True)
        target.stdout.readline()
        trim = self.findings("--trim", "--pid", target.pid)["trim"]
        if "cannot stop" in trim["finding"] or "x86-64" in trim["finding"]:
            self.skipTest(trim["finding"])
        returned = trim["before"]["process"]["kernel_bytes"] - trim["after"]["process"]["kernel_bytes"]
        self.assertGreater(returned, 30 << 20, trim["finding"])
        self.assertIn("came back", trim["finding"])
        before = int(target.stdout.readline())
        time.sleep(0.5)
        lines = [int(target.stdout.readline()) for _ in range(5)]
        self.assertEqual(lines, list(range(before + 1, before + 6)))
        self.assertIsNone(target.poll())

    def test_trim_among_threads(self):
        """All but one thread wait on a lock or compute: the one that sleeps is found, and all go on."""
        script = RETAINING.replace(
            "for i in range(100000):",
            "import threading\nlock = threading.Lock()\nlock.acquire()\n"
            "for _ in range(8): threading.Thread(target=lock.acquire, daemon=True).start()\n"
            "threading.Thread(target=lambda: all(True for _ in iter(int, 1)), daemon=True).start()\n"
            "for i in range(100000):")
        target = self.start(PYTHON, "-c", script, stdout=subprocess.PIPE, text=True)
        target.stdout.readline()
        trim = self.findings("--trim", "--pid", target.pid)["trim"]
        if "not done" in trim["finding"] and "rested" not in trim["finding"]:
            self.skipTest(trim["finding"])
        self.assertIn("came back", trim["finding"])
        seen = [int(target.stdout.readline()) for _ in range(40)]
        self.assertEqual(seen, list(range(seen[0], seen[0] + 40)))
        self.assertIsNone(target.poll())

    def test_reclaim_and_restart(self):
        cached = self.directory / "cached"
        script = f"f = open({str(cached)!r}, 'wb'); f.write(b'x' * 30_000_000); f.flush(); import os, time; " \
                 "os.fsync(f.fileno()); time.sleep(300)"
        done = self.watch("--json", "--duration", "2s", "--interval", "200ms", "--reclaim", "--restart", "--", PYTHON,
                          "-c", script, code=None)
        if "no memory cgroup" in done.stderr:
            self.skipTest(done.stderr)
        samples, last = self.json_of(done)
        findings = {e["name"]: e for e in last["experiments"]}
        reclaim = findings["reclaim"]
        returned = reclaim["before"]["container"]["kernel_bytes"] - reclaim["after"]["container"]["kernel_bytes"]
        self.assertGreater(returned, 10_000_000, reclaim["finding"])
        self.assertIn("after a restart", findings["restart"]["finding"])
        self.assertEqual([s["gap_reason"] for s in samples if s["gap"]], ["restarted"])


class Terminal(Case):
    def live(self, *arguments, columns=80, rows=24, **environment):
        terminal = PseudoTerminal([PLIMSOLL, "watch", *map(str, arguments)], columns, rows, environment)
        self.addCleanup(terminal.close)
        return terminal

    def test_view_fits_and_the_terminal_stays_sane(self):
        terminal = self.live("--interval", "100ms", "--", "sh", "-c",
                             "while :; do echo a line of the command; sleep 0.2; done")
        terminal.read_until("verdict")
        terminal.resize(60, 20)
        terminal.read_for(0.6)
        terminal.write(b"\x03")
        self.assertEqual(terminal.wait(), 0)
        text = terminal.text
        self.assertIn("a line of the command", text)
        self.assertIn("\x1b[48;5;", text.replace("38;5;16;", ""))
        for change in ("?25l", "?1049h", "\x1bc"):
            self.assertNotIn(change, text)
        self.assertIn("verdict: undecided", text)
        self.assertIn("stopped by a signal", text)

    def test_what_others_wrote_meanwhile_stays(self):
        terminal = self.live("--interval", "200ms", "--", "sleep", "300", rows=40)
        terminal.read_until("\x1b[J")
        os.kill(terminal.pid, signal.SIGSTOP)
        terminal.read_for(0.3)
        before = len(terminal.text)
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.read_for(1)
        after = terminal.text[before:]
        self.assertGreater(after.count("verdict"), 1)
        self.assertLess(after.index("verdict"), after.index("\x1b[J"))  # only what was drawn since is drawn over
        terminal.write(b"\x03")
        self.assertEqual(terminal.wait(), 0)

    def widths(self, text):
        plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
        return [len(line) for line in plain.replace("\r", "").split("\n")]

    def test_columns(self):
        record = self.directory / "r.jsonl"
        recording(record, "a" * 300, "leak")
        for columns in (20, 40, 80, 200):
            terminal = self.live("--replay", record, columns=columns, rows=30)
            self.assertEqual(terminal.wait(), LEAK)
            view = terminal.text.split("verdict: ")[0]
            self.assertLess(max(self.widths(view)), columns)
            self.assertIn("▁", view)
            self.assertIn("leak: live heap", view)

    def test_no_colour(self):
        record = self.directory / "r.jsonl"
        recording(record, verdict="leak")
        terminal = self.live("--replay", record, NO_COLOR="1")
        terminal.wait()
        self.assertNotRegex(terminal.text, r"\x1b\[[0-9;]*m")
        self.assertIn("hhhh", terminal.text)

    def test_ascii_and_dumb(self):
        record = self.directory / "r.jsonl"
        recording(record, verdict="leak")
        terminal = self.live("--replay", record, LC_ALL="C")
        terminal.wait()
        self.assertTrue(terminal.text.isascii())
        terminal = self.live("--replay", record, TERM="dumb")
        terminal.wait()
        self.assertNotIn("\x1b", terminal.text)
        self.assertIn("gap: the process is stopped", terminal.text)


if __name__ == "__main__":
    sys.exit(counted.main())
