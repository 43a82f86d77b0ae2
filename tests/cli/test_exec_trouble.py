#!/usr/bin/python3
"""`plimsoll exec` when things go wrong around it: nothing is left behind, whoever dies and whatever is missing.

PLIMSOLL names the command (build/plimsoll). The last line: N passed, M failed, K skipped.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import counted
from exec_case import (Case, LIMIT, MIB, NOT_EXECUTABLE, NOT_FOUND, OURS, PLIMSOLL, PYTHON, STARTED, Started,
                       TIMEOUT, USAGE, alive, cgroups, children, eventually, guards)
from pseudo_terminal import PseudoTerminal


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


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

    def test_stopped_and_continued(self):
        """What Ctrl-Z does to us it does to the job, which is in another session."""
        process = self.start("--quiet", "--", "sh", "-c", "echo up; while read line; do echo $line; done",
                             stdin=subprocess.PIPE, process_group=0)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "up\n")
        job = int(children(process.pid)[0])
        process.send_signal(signal.SIGTSTP)
        self.assertTrue(eventually(lambda: state(process.pid) == state(job) == "T"), (state(process.pid), state(job)))
        process.send_signal(signal.SIGCONT)
        out, error = process.communicate("one\n", timeout=60)
        self.assertEqual((process.returncode, out), (0, "one\n"), error)

    def test_in_the_background_of_a_terminal(self):
        """What is typed is for the shell, not for the job."""
        terminal = PseudoTerminal(["/bin/sh", "-c", f"set -m; {PLIMSOLL} exec --quiet -- cat & wait; echo over; "
                                   "read line; echo got $line"], 80, 24, {})
        self.addCleanup(terminal.close)
        terminal.read_until("over")
        terminal.write(b"something\n")
        terminal.read_until("got something")

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
        self.assertEqual((status, answer["mechanism"].split(" ", 1)[1]), (4, "and sampling"))
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
        self.assertEqual((done.returncode, answer["mechanism"]), (6, "namespaces and sampling"))
        self.assertTrue(answer["cannot_promise"])

    def test_nothing_is_left(self):
        before = set(os.listdir(tempfile.gettempdir())) | set(os.listdir("/dev/shm"))
        for _ in range(5):
            self.call("--quiet", "--", "true")
        self.assertEqual(cgroups(), set())
        after = set(os.listdir(tempfile.gettempdir())) | set(os.listdir("/dev/shm"))
        self.assertEqual([name for name in after - before if name.startswith("plimsoll-") and "exec" not in name], [])


ESCAPES = pathlib.Path(__file__).resolve().parent / "escapes.py"


class Tampering(Case):
    """--bare leaves root's job what it needs to change its own cgroups: then it is noticed, and ended all the same."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.need_cgroup()

    def escape(self, name, *options):
        return self.receipt("--limit", "64MiB", *options, "--", PYTHON, "-S", ESCAPES, name, f"85.{os.getpid()}")

    def test_raising_its_own_limit(self):
        answer = self.escape("raise_limit")
        self.assertEqual((answer["returncode"], answer["noticed"]), (3, []), "out of its reach")
        answer = self.escape("raise_limit", "--bare")
        self.assertIn(answer["returncode"], (0, LIMIT))  # a sample may see it above what was set
        self.assertIn("memory limit was changed", str(answer["noticed"]))

    def test_leaving_its_cgroup(self):
        answer = self.escape("leave")
        self.assertEqual((answer["returncode"], answer["noticed"]), (3, []), "out of its reach")
        answer = self.escape("leave", "--bare")
        self.assertIn("out of its cgroup", str(answer["noticed"]))
        self.assertEqual(cgroups(), set())

    def test_freezing_itself(self):
        started = time.monotonic()
        answer = self.escape("freeze", "--bare", "--timeout", "1s", "--grace", "100ms")
        self.assertEqual((answer["returncode"], answer["ending"], answer["alive"]), (TIMEOUT, "wall time", []), answer)
        self.assertLess(time.monotonic() - started, 50)
        for left in pathlib.Path("/sys/fs/cgroup/freezer").glob("plimsoll-escape-*"):
            left.rmdir()

    def test_a_job_of_a_job_has_cgroups_though_they_are_read_only(self):
        inner = self.directory / "inner"
        outer = self.receipt("--limit", "128MiB", "--", PLIMSOLL, "exec", "--limit", "32MiB", "--receipt", inner, "--",
                             PYTHON, "-S", "-c", "x = b'x' * (100 << 20)")
        answer = json.loads(inner.read_text())
        self.assertEqual((answer["ending"], answer["limit_hit"]), ("memory limit", True), answer)
        self.assertEqual(outer["mechanism"], answer["mechanism"])
        self.assertEqual(cgroups(), set())


class Remains(Case):
    SCRIPT = ("import ctypes, sys, os\nlibc = ctypes.CDLL(None)\n"
              "libc.shmget(0x5eed, ctypes.c_size_t(1 << 20), 0o1600)\n"
              "a = libc.shmat; a.restype = ctypes.c_void_p\n"
              "ctypes.memset(a(libc.shmget(0x5eed, ctypes.c_size_t(1 << 20), 0), None, 0), 1, 1 << 20)\n"
              "libc.semget(0x5eed, 3, 0o1600); libc.msgget(0x5eed, 0o1600)\n"
              "open('/dev/shm/' + sys.argv[1], 'wb').write(bytes(300000))\n")

    def leftovers(self, *options):
        answer = self.receipt(*options, "--", PYTHON, "-S", "-c", self.SCRIPT, self.mark)
        self.assertEqual(answer["returncode"], 0)
        ours = [left for left in answer["leftovers"] if "0x5eed" in left["name"] or self.mark in left["name"]]
        return answer, {left["kind"]: left for left in ours}

    def test_are_named_and_removed(self):
        answer, found = self.leftovers()
        if not os.access("/dev/shm", os.W_OK):
            self.skipTest("no /dev/shm")
        self.assertEqual(set(found), {"System V memory", "semaphores", "message queue", "file"}, answer)
        self.assertEqual(found["System V memory"]["bytes"], MIB)
        self.assertGreaterEqual(found["file"]["bytes"], 300000)
        self.assertEqual({left["owner"] for left in found.values()}, {os.geteuid()})
        self.assertFalse(any(left["removed"] for left in found.values()))
        if answer["residue_bytes"] is not None:
            self.assertGreater(answer["residue_bytes"], MIB, "it is charged to the job, and stays")
        for command in (["-M"], ["-S"], ["-Q"]):
            subprocess.run(["ipcrm", *command, "0x5eed"], check=False, capture_output=True)
        os.unlink(f"/dev/shm/{self.mark}")
        answer, found = self.leftovers("--clean-leftovers")
        self.assertEqual({kind: left["removed"] for kind, left in found.items()},
                         dict.fromkeys(("System V memory", "semaphores", "message queue", "file"), True), answer)
        self.assertFalse(os.path.exists(f"/dev/shm/{self.mark}"))
        if answer["residue_bytes"] is not None:
            self.assertLess(answer["residue_bytes"], MIB)

    def test_what_somebody_else_makes_meanwhile_stays(self):
        if not os.access("/dev/shm", os.W_OK):
            self.skipTest("no /dev/shm")
        other = f"/dev/shm/{self.mark}-other"
        job = subprocess.Popen([PLIMSOLL, "exec", "--json", "--limit", "64MiB", "--clean-leftovers", "--", "sh", "-c",
                                f"echo text >/dev/shm/{self.mark}; echo ready >&2; read line"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: [os.unlink(path) for path in (other, f"/dev/shm/{self.mark}") if os.path.exists(path)])
        while job.stderr.readline() not in ("ready\n", ""):
            pass
        with open(other, "w") as file:
            file.write("somebody else's, who has closed it and will want it again")
        answer = json.loads(job.communicate("go on\n")[0])
        removed = {left["name"]: left["removed"] for left in answer["leftovers"] if self.mark in left["name"]}
        self.assertTrue(os.path.exists(other), answer)
        self.assertFalse(removed[other], answer)
        if answer["mechanism"].startswith("cgroup") and os.geteuid() == 0:
            self.assertEqual((removed[f"/dev/shm/{self.mark}"], os.path.exists(f"/dev/shm/{self.mark}")), (True, False), answer)

    def test_are_named_though_somebody_else_freed_more(self):
        if not os.access("/dev/shm", os.W_OK):
            self.skipTest("no /dev/shm")
        path = f"/dev/shm/{self.mark}"
        others = [f"{path}-other-{i}" for i in range(3)]
        self.addCleanup(lambda: [os.unlink(one) for one in [path, *others] if os.path.exists(one)])
        for some in (others, others[:1]):  # more than came, or as much
            for other in some:
                pathlib.Path(other).write_text("text\n")
            answer = self.receipt("--", "sh", "-c", f"echo text >{path}; rm {' '.join(some)}")
            self.assertIn(path, [left["name"] for left in answer["leftovers"]], answer)
            os.unlink(path)

    def test_mounts(self):
        if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        done = subprocess.run(["unshare", "-m", PLIMSOLL, "exec", "--json", "--bare", "--clean-leftovers", "--", "mount", "-t",
                               "tmpfs", "tmpfs", str(self.directory)], capture_output=True, text=True)
        left = [left for left in json.loads(done.stdout)["leftovers"] if left["kind"] == "mount"]
        self.assertEqual([(row["name"], row["removed"]) for row in left], [(f"{self.directory} (tmpfs)", True)], done.stderr)


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


if __name__ == "__main__":
    sys.exit(counted.main())
