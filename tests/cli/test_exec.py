#!/usr/bin/python3
"""`plimsoll exec` as its users see it: exit codes, receipts, and nothing left behind whatever goes wrong.

PLIMSOLL names the command (build/plimsoll). The last line: N passed, M failed, K skipped.
"""
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import counted

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


class Usual(Case):
    def test_the_commands_own_output_and_exit_code(self):
        done = self.call("--", "sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual((done.returncode, done.stdout), (3, "out\n"))
        self.assertTrue(done.stderr.startswith("err\nplimsoll: exited with 3 after "), done.stderr)
        self.assertIn("peak", done.stderr)
        done = self.call("--quiet", "--", "sh", "-c", "kill -SEGV $$")
        self.assertEqual((done.returncode, done.stderr), (128 + signal.SIGSEGV, ""))

    def test_what_a_job_wrote_does_not_stay_on_our_figure(self):
        """Seen by a caller that is alone in its cgroup: itself a job. Without reclaiming, the 24 MiB stay."""
        self.need_cgroup()
        with tempfile.TemporaryDirectory(dir="/var/tmp") as room:
            job = f"head -c 25165824 /dev/zero > {room}/file; sync {room}/file"
            done = self.call("--quiet", "--", PLIMSOLL, "exec", "--receipt", f"{room}/receipt", "--", "sh", "-c", job)
            self.assertEqual(done.returncode, 0, done.stderr)
            receipt = json.loads(pathlib.Path(room, "receipt").read_text())
        if receipt["residue_bytes"] is None or not receipt["mechanism"].startswith("cgroup"):
            self.skipTest("a job cannot make a memory cgroup of its own here")
        if receipt["returned_bytes"] < MIB:
            self.skipTest("/var/tmp is in memory itself: there is no cache to give back")
        self.assertGreater(receipt["returned_bytes"], 23 * MIB)
        self.assertLess(receipt["residue_bytes"], MIB)

    def test_arguments_arrive_as_they_are(self):
        done = self.call("--quiet", "--", "printf", "%s|", "[a,b]", "--json", "--", "", "x y", "$HOME")
        self.assertEqual(done.stdout, "[a,b]|--json|--||x y|$HOME|")

    def test_stdin_passes_through(self):
        self.assertEqual(self.call("--quiet", "--", "cat", input="text\n").stdout, "text\n")

    def test_json_is_all_there_is_on_stdout(self):
        done = self.call("--json", "--", "sh", "-c", "echo out; exit 3")
        self.assertEqual((done.returncode, done.stderr), (3, "out\n"))
        answer = json.loads(done.stdout)
        for field in ("exit_code", "signal", "wall_ms", "cpu_ms", "peak_bytes", "limit_bytes", "limit_hit", "thrashing", "byte_seconds",
                      "returned_bytes", "residue_bytes", "mechanism", "cannot_promise", "ending"):
            self.assertIn(field, answer)
        self.assertEqual((answer["exit_code"], answer["ending"], answer["limit_hit"]), (3, "exited", False))

    def test_receipt_file(self):
        path = self.directory / "receipt.json"
        done = self.call("--quiet", "--receipt", path, "--", "echo", "hi")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "hi\n", ""))
        self.assertEqual(json.loads(path.read_text())["exit_code"], 0)
        link = self.directory / "link"
        link.symlink_to(path)
        self.call("--quiet", "--receipt", link, "--", "sh", "-c", "exit 3")
        self.assertTrue(link.is_symlink(), "what a link names is replaced, not the link")
        self.assertEqual(json.loads(path.read_text())["exit_code"], 3)
        with open(path, "w", encoding="utf-8") as file:
            subprocess.run([PLIMSOLL, "exec", "--quiet", "--receipt", "/proc/self/fd/1", "--", "echo", "hi"], stdout=file)
        self.assertTrue(path.read_text().startswith("hi\n{"), path.read_text())

    def test_closed_standard_descriptors(self):
        """No descriptor of ours takes their place in the job."""
        for closed, options in ((0, []), (2, ["--sandbox"]), (0, ["--sandbox"])):
            script = f'exec "$@" {closed}<&-'
            done = subprocess.run(["sh", "-c", script, "sh", PLIMSOLL, "exec", "--quiet", *options, "--", "readlink",
                                   f"/proc/self/fd/{closed}"], stdout=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, "/dev/null\n"), (closed, options))

    def test_a_slow_reader_loses_nothing(self):
        with Started([PLIMSOLL, "exec", "--quiet", "--output-limit", "1GB", "--", "sh", "-c",
                      f"seq 1 30000; : {self.mark}"], stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(os.read(process.stdout.fileno(), 1), b"1")
            self.assertTrue(eventually(lambda: alive(self.mark) == [process.pid]))
            time.sleep(0.5)
            out, _ = process.communicate(timeout=60)
        self.assertEqual(out.split()[-1:], ["30000"])
        self.assertEqual(process.returncode, 0)

    def test_environment_and_directory(self):
        os.environ["PLIMSOLL_SEEN"] = "seen"
        script = "echo $A-$PLIMSOLL_SEEN; pwd"
        done = self.call("--quiet", "--env", "A=1=2", "--directory", "/usr", "--", "sh", "-c", script)
        self.assertEqual(done.stdout, "1=2-seen\n/usr\n")
        done = self.call("--quiet", "--clear-env", "--env", "A=x", "--", "sh", "-c", script)
        self.assertEqual(done.stdout.splitlines()[0], "x-")


class Limits(Case):
    def test_memory(self):
        self.need_cgroup()
        answer = self.receipt("--limit", "32MiB", "--", PYTHON, "-S", "-c", TAKE, 100 * MIB)
        self.assertEqual((answer["returncode"], answer["ending"], answer["limit_hit"]), (LIMIT, "memory limit", True))
        self.assertLessEqual(answer["peak_bytes"], 32 * MIB)
        answer = self.receipt("--limit", "64MiB", "--", PYTHON, "-S", "-c", TAKE, 32 * MIB)
        self.assertEqual((answer["returncode"], answer["limit_hit"]), (0, False))
        self.assertGreater(answer["peak_bytes"], 32 * MIB)

    def test_time(self):
        answer = self.receipt("--timeout", "200ms", "--", "sleep", "100")
        self.assertEqual((answer["returncode"], answer["ending"]), (TIMEOUT, "wall time"))
        answer = self.receipt("--cpu-time", "200ms", "--", "sh", "-c", "while :; do :; done")
        self.assertEqual((answer["returncode"], answer["ending"]), (TIMEOUT, "CPU time"))

    def test_output(self):
        done = self.call("--output-limit", "1000", "--", "yes")
        self.assertEqual((done.returncode, len(done.stdout)), (OURS, 1000))

    def test_processes(self):
        if not os.access("/sys/fs/cgroup/pids", os.W_OK) and os.geteuid() != 0:
            self.skipTest("no pids controller that we may use")
        answer = self.receipt("--processes", "4", "--timeout", "20s", "--grace", "100ms", "--", "sh", "-c",
                              "for i in 1 2 3 4 5 6; do sleep 100 & done; wait")
        self.assertNotEqual(answer["returncode"], 0)
        self.assertNotEqual(answer["ending"], "wall time")

    def test_a_shell_bomb(self):
        answer = self.receipt("--processes", "30", "--timeout", "1s", "--grace", "100ms", "--", "sh", "-c",
                              f"b() {{ b | b & }}; b; sleep 100; : {self.mark}")
        self.assertIn(answer["ending"], ("wall time", "exited", "process limit"))
        self.assertEqual(alive(self.mark), [])
        self.assertEqual(cgroups(), set())

    def test_who_ignores_term(self):
        started = time.monotonic()
        answer = self.receipt("--timeout", "100ms", "--grace", "100ms", "--", "sh", "-c",
                              "trap '' TERM; while :; do sleep 0.01; done")
        self.assertEqual((answer["returncode"], answer["signal"]), (TIMEOUT, signal.SIGKILL))
        self.assertLess(time.monotonic() - started, 60)

    def test_daemons_and_hundreds_of_children_end(self):
        script = f"for i in $(seq 100); do sleep 100.{os.getpid()} & done; setsid sh -c 'sleep 100.{os.getpid()}' & sleep 0.3"
        answer = self.receipt("--", "sh", "-c", script)
        self.assertEqual(answer["returncode"], 0)
        self.assertGreaterEqual(answer["processes_killed"], 101)
        self.assertEqual(alive(f"100.{os.getpid()}"), [])
        self.assertEqual(cgroups(), set())


class Refused(Case):
    def refuse(self, status, words, *arguments):
        done = self.call(*arguments)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertTrue(done.stderr.startswith("plimsoll: ") and done.stderr.count("\n") == 1, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(cgroups(), set())

    def test_commands(self):
        self.refuse(NOT_FOUND, "not found", "--", "no-such-command")
        self.refuse(NOT_FOUND, "not found", "--", "/no/such/command")
        self.refuse(NOT_EXECUTABLE, "Permission denied", "--", "/etc/passwd")
        self.refuse(NOT_EXECUTABLE, "Permission denied", "--", "/usr")
        script = self.directory / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        self.refuse(NOT_EXECUTABLE, "interpreter", "--", script)
        script.write_text("echo without a first line\n")
        self.refuse(NOT_EXECUTABLE, "#!", "--", script)
        self.refuse(OURS, "working directory '/no/such'", "--directory", "/no/such", "--", "true")
        self.refuse(USAGE, "-- COMMAND", "true")
        self.refuse(USAGE, "no command", "--limit", "1GiB")
        self.refuse(USAGE, "no command", "--")
        self.refuse(USAGE, "no program", "--", "")

    def test_limits(self):
        for wrong in ("0", "-1", "lots", "4096", "900000GiB", "nan"):
            self.refuse(USAGE, "", f"--limit={wrong}", "--", "true")
        for option in ("--timeout", "--cpu-time", "--grace"):
            for wrong in ("0", "-1s", "soon", "1y", "inf"):
                self.refuse(USAGE, option, f"{option}={wrong}", "--", "true")
        for wrong in ("0", "-1", "x"):
            self.refuse(USAGE, "", f"--processes={wrong}", "--", "true")
        for option in ("--limit", "--timeout", "--cpu-time", "--output-limit", "--directory", "--receipt"):
            self.refuse(USAGE, option, option, "", "--", "true")
        self.assertEqual(self.call("--quiet", "--timeout", "2700000h", "--", "true").returncode, 0)
        self.refuse(USAGE, "NAME=VALUE", "--env", "novalue", "--", "true")
        self.refuse(USAGE, "sandbox", "--sandbox=loose", "--", "true")
        for option in (["--readable", "/usr"], ["--writable", "/usr"], ["--network"]):
            self.refuse(USAGE, "requires --sandbox", *option, "--", "true")  # nobody may think that it is in one

    def test_a_receipt_that_cannot_be_written(self):
        done = self.call("--receipt", "/no/such/place", "--", "true")
        self.assertEqual(done.returncode, OURS)
        self.assertIn("/no/such/place", done.stderr)


class Deaths(Case):
    def start(self, *arguments, **options):
        return Started([PLIMSOLL, "exec", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def test_interrupted_at_any_moment(self):
        for delay in (0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1):
            process = self.start("--json", "--", "sh", "-c", f"sleep 50; : {self.mark}")
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=60)
            # Before the handlers are in place the signal ends the process itself.
            self.assertIn(process.returncode, (128 + signal.SIGINT, -signal.SIGINT), error)
            if out:
                self.assertEqual(json.loads(out)["ending"], "cancelled")
            self.assertEqual(alive(self.mark), [])
            self.assertEqual(cgroups(), set())

    def test_a_second_interrupt_does_not_wait(self):
        process = self.start("--grace", "1h", "--", "sh", "-c", "trap 'echo asked' TERM; echo up; while :; do sleep 0.01; done")
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "asked\n")
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("cancelled", error)

    def test_we_are_killed(self):
        """The guard ends the job with all its descendants and removes its cgroups; nobody has to start us again."""
        for turn in range(5):
            # The second is one of us itself: its cgroup is below its own.
            nested = [PLIMSOLL, "exec", "--quiet", "--"] if turn == 1 else []
            process = self.start("--", *nested, "sh", "-c",
                                 f"sleep 77.{os.getpid()} & setsid sleep 77.{os.getpid()} & echo up; wait")
            self.assertEqual(process.stdout.readline(), "up\n")
            process.kill()
            process.communicate(timeout=60)  # the job held our pipes: nobody of it is left
            self.assertTrue(eventually(lambda: not alive(f"77.{os.getpid()}")), alive(f"77.{os.getpid()}"))
            self.assertTrue(eventually(lambda: not cgroups()), cgroups())
            self.assertTrue(eventually(lambda: not guards(process.pid)))

    def test_we_and_the_guard_are_killed(self):
        """Then the next start finds what is left."""
        process = self.start("--", "sh", "-c", f"setsid sleep 78.{os.getpid()} & echo up; wait")
        self.assertEqual(process.stdout.readline(), "up\n")
        for guard in guards(process.pid):
            os.kill(guard, signal.SIGKILL)
        process.kill()
        process.wait(timeout=60)
        process.stdout.close(), process.stderr.close()
        self.assertEqual(self.call("--quiet", "--", "true").returncode, 0)
        if os.geteuid() == 0:
            self.assertTrue(eventually(lambda: not alive(f"78.{os.getpid()}")), alive(f"78.{os.getpid()}"))
        for pid in alive(f"78.{os.getpid()}"):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(cgroups(), set())

    def test_we_are_killed_and_our_jobs_have_jobs(self):
        """The guard clears what is below to any depth, though those between are killed with us."""
        nested = ["--", PLIMSOLL, "exec"]
        process = self.start(*nested, *nested, "--", "sh", "-c",
                             f"setsid sleep 80.{os.getpid()} & echo up; sleep 80.{os.getpid()}")
        self.assertEqual(process.stdout.readline(), "up\n")
        process.kill()
        process.communicate(timeout=60)
        self.assertTrue(eventually(lambda: not alive(f"80.{os.getpid()}")), alive(f"80.{os.getpid()}"))
        self.assertTrue(eventually(lambda: not cgroups()), cgroups())

    def test_a_job_that_is_one_of_us(self):
        """Killed together with its own jobs and guard: the cgroups that it made below its own go, too."""
        process = self.start("--", PLIMSOLL, "exec", "--", "sh", "-c",
                             f"setsid sleep 79.{os.getpid()} & echo up; sleep 79.{os.getpid()}")
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertIn("cancelled", error)
        self.assertEqual(alive(f"79.{os.getpid()}"), [])
        self.assertEqual(cgroups(), set())

    def test_others_cgroups_are_left_alone(self):
        directory = self.need_cgroup()
        process = self.start("--", "sleep", "50")
        self.assertTrue(eventually(lambda: len(cgroups()) > 0))
        before = cgroups()
        strange = [f"{directory}/{name}" for name in ("plimsoll-", "plimsoll-1", "plimsoll-x-1-1", f"plimsolls-{2**22 + 1}-1-1")]
        for path in strange:
            os.mkdir(path)
            self.addCleanup(os.rmdir, path)
        gone = f"{directory}/plimsoll-{2**22 + 1}-1-1"
        os.mkdir(gone)
        self.assertEqual(self.call("--quiet", "--", "true").returncode, 0)
        self.assertFalse(os.path.exists(gone), "its owner cannot be alive")
        for path in [*before, *strange]:
            self.assertTrue(os.path.exists(path), path)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    def test_nobody_reads_the_output(self):
        process = self.start("--output-limit", "100MB", "--", "yes")
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGPIPE)


class Surroundings(Case):
    def test_without_permission_on_the_cgroup(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become somebody else")
        if not os.access(PLIMSOLL, os.X_OK):
            self.skipTest("no command")
        place = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-exec-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, place)
        place.chmod(0o755)
        copy = shutil.copy(PLIMSOLL, place)

        def become_nobody():
            os.setgid(65534)
            os.setuid(65534)

        def receipt(*arguments):
            done = subprocess.run([copy, "exec", "--json", *map(str, arguments)], capture_output=True, text=True,
                                  timeout=120, preexec_fn=become_nobody, cwd="/")
            self.assertTrue(done.stdout, done.stderr)
            return json.loads(done.stdout), done.returncode

        answer, status = receipt("--", "sh", "-c", f"setsid sleep 88.{os.getpid()} & sleep 0.2; exit 4")
        self.assertEqual((status, answer["mechanism"]), (4, "rlimit and sampling"))
        self.assertTrue(any("permission" in text for text in answer["cannot_promise"]), answer)
        self.assertEqual(alive(f"88.{os.getpid()}"), [])
        self.assertGreater(answer["peak_bytes"], 0)
        mark = f"87.{os.getpid()}"
        with subprocess.Popen([copy, "exec", "--", "sh", "-c", f"sleep {mark} & wait"], preexec_fn=become_nobody, cwd="/") as killed:
            self.assertTrue(eventually(lambda: len(alive(mark)) == 3))  # with us and the shell
            killed.kill()
        self.assertTrue(eventually(lambda: alive(mark) == []), "the guard ends the session")
        answer, status = receipt("--", "sleep", "0.1")
        self.assertTrue(0 < answer["peak_bytes"] < 4 * MIB, "the peak is the job's, not ours before exec")
        answer, status = receipt("--limit", "100MiB", "--", PYTHON, "-S", "-c", "x = bytearray(300 << 20)")
        self.assertNotEqual(status, 0)
        script = ("import mmap,time\nm=mmap.mmap(-1,300<<20)\nfor i in range(0,len(m),4096): m[i]=1\ntime.sleep(50)\n")
        answer, status = receipt("--limit", "100MiB", "--", PYTHON, "-S", "-c", script)
        self.assertEqual((status, answer["ending"], answer["limit_hit"]), (LIMIT, "memory limit", True))
        answer, status = receipt("--timeout", "100ms", "--", "sleep", "50")
        self.assertEqual(status, TIMEOUT)
        answer, status = receipt("--cpu-time", "100ms", "--", "sh", "-c", "while :; do :; done")
        self.assertEqual(status, TIMEOUT)

    def test_a_full_temporary_directory(self):
        """Nothing of ours needs room there; a sandboxed job has a temporary directory of its own."""
        if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespace can be made here")
        with tempfile.TemporaryDirectory() as full:
            script = (f"mount -t tmpfs -o size=64k tmpfs {full} && head -c 1M /dev/zero > {full}/fill 2>/dev/null\n"
                      f"TMPDIR={full} '{PLIMSOLL}' exec --quiet -- sh -c 'echo bare' &&\n"
                      f"TMPDIR={full} '{PLIMSOLL}' exec --quiet --sandbox -- sh -c 'echo x > $TMPDIR/x && cat $TMPDIR/x'")
            done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "bare\nx\n"), done.stderr)

    def test_a_working_directory_that_is_gone(self):
        script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
        for options, status, out in (([], 0, "there\n"), (["--sandbox"], 0, "there\n"),
                                     (["--sandbox", "--readable", "."], USAGE, "")):
            done = subprocess.run(["sh", "-c", script, "sh", PLIMSOLL, "exec", "--quiet", *options, "--", "echo", "there"],
                                  cwd=self.directory, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (status, out), done.stderr)

    def test_a_read_only_sys(self):
        script = "mount -o remount,ro,bind /sys/fs/cgroup 2>/dev/null; " \
                 "for m in /sys/fs/cgroup/*; do mount -o remount,ro,bind $m 2>/dev/null; done; exec \"$@\""
        command = ["unshare", "-m", "sh", "-c", script, "sh", PLIMSOLL, "exec", "--json", "--", "sh", "-c", "exit 6"]
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespace can be made here")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        answer = json.loads(done.stdout)
        self.assertEqual((done.returncode, answer["mechanism"]), (6, "rlimit and sampling"))
        self.assertTrue(answer["cannot_promise"])

    def test_nothing_is_left(self):
        before = set(os.listdir(tempfile.gettempdir())) | set(os.listdir("/dev/shm"))
        for _ in range(5):
            self.call("--quiet", "--", "true")
        self.assertEqual(cgroups(), set())
        after = set(os.listdir(tempfile.gettempdir())) | set(os.listdir("/dev/shm"))
        self.assertEqual([name for name in after - before if name.startswith("plimsoll-") and "exec" not in name], [])


class Sandboxed(Case):
    def test_what_it_shows_and_what_it_refuses(self):
        secret = self.directory / "secret"
        secret.write_text("secret\n")
        script = f"cat {secret}; echo changed > {secret}; exit 5"
        answer = self.receipt("--sandbox", "--", "sh", "-c", script)
        self.assertEqual(answer["exit_code"], 5)
        self.assertIn("no_new_privs", answer["sandbox"])
        done = self.call("--quiet", "--sandbox", "--readable", self.directory, "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stdout, secret.read_text()), (5, "secret\n", "secret\n"), done.stderr)
        done = self.call("--quiet", "--sandbox", "--writable", self.directory, "--", "sh", "-c", script)
        self.assertEqual((done.returncode, secret.read_text()), (5, "changed\n"), done.stderr)
        done = self.call("--sandbox", "--readable", "/no/such/path", "--", "true")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("/no/such/path", done.stderr)


class Faults(Case):
    """The N-th system call of each kind fails: an exit code of ours or the command's, never a crash, nothing left."""

    CALLS = {"mkdir": ("EACCES", 4), "flock": ("ENOLCK", 3), "eventfd2": ("EMFILE", 3), "clone3": ("EAGAIN", 3),
             "pipe2": ("EMFILE", 4), "ppoll": ("ENOMEM", 2), "wait4": ("ECHILD", 3), "rmdir": ("EBUSY", 4),
             "write": ("EIO", 10), "pread64": ("EIO", 14), "openat": ("EMFILE", 60)}

    def setUp(self):
        super().setUp()
        if shutil.which("strace") is None:
            self.skipTest("no strace")
        if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
            self.skipTest("nothing can be traced here")

    def test_without_clone3(self):
        """Containers refuse it in different ways, and kernels before 5.7 do not know all of it."""
        for error in ("ENOSYS", "EPERM", "EINVAL"):
            done = subprocess.run(["strace", "-o", "/dev/null", "-e", "trace=clone3", "-e", f"inject=clone3:error={error}",
                                   PLIMSOLL, "exec", "--quiet", "--limit", "64MiB", "--", "sh", "-c", "echo out; exit 3"],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (3, "out\n"), done.stderr)

    def test_every_call_fails_in_turn(self):
        command = ["--limit", "64MiB", "--processes", "8", "--output-limit", "1MB", "--timeout", "60s", "--", "sh", "-c",
                   f"sleep 66.{os.getpid()} & echo out"]
        for call, (error, times) in self.CALLS.items():
            for number in range(1, times + 1, 3 if times > 20 else 1):
                inject = f"inject={call}:error={error}:when={number}"
                with Started(["strace", "-o", "/dev/null", "-e", "trace=" + call, "-e", inject, PLIMSOLL, "exec", *command],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                    # strace's child is the command: its cgroups carry that pid
                    eventually(lambda: children(process.pid) or process.poll() is not None)
                    STARTED.update(children(process.pid))
                    _, errors = process.communicate(timeout=120)
                self.assertIn(process.returncode, (0, 2, OURS, NOT_EXECUTABLE, NOT_FOUND, 255), f"{inject}: {errors}")
                self.assertTrue(eventually(lambda: not alive(f"66.{os.getpid()}")), inject)
                self.assertTrue(eventually(lambda: not cgroups()), f"{inject}: {cgroups()}")


def children(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(counted.main())
