#!/usr/bin/python3
"""`plimsoll exec` as its users see it: exit codes, receipts, limits.

PLIMSOLL names the command (build/plimsoll). The last line: N passed, M failed, K skipped.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import counted
from exec_case import (Case, LIMIT, MIB, NOT_EXECUTABLE, NOT_FOUND, OURS, PLIMSOLL, PYTHON, Started, TAKE,
                       TIMEOUT, USAGE, alive, cgroups, eventually)


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
        path.unlink()
        self.call("--quiet", "--receipt", link, "--", "sh", "-c", "exit 4")
        self.assertTrue(link.is_symlink(), "though it named nothing")
        self.assertEqual(json.loads(path.read_text())["exit_code"], 4)
        path.chmod(0o600)
        self.call("--quiet", "--receipt", path, "--", "true")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
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

    def test_memory_and_whose_limit_was_met(self):
        """The inner job is killed at the outer one's limit: each says so of its own."""
        self.need_cgroup()
        inner = self.directory / "inner"
        outer = self.receipt("--limit", "32MiB", "--", PLIMSOLL, "exec", "--limit", "64MiB", "--receipt", inner, "--",
                             PYTHON, "-S", "-c", TAKE, 100 * MIB)
        self.assertEqual((outer["returncode"], outer["ending"], outer["limit_hit"]), (LIMIT, "memory limit", True))
        if inner.exists():  # it may have been killed before it could write
            answer = json.loads(inner.read_text())
            self.assertEqual((answer["ending"], answer["limit_hit"]), ("signalled", False))
            if answer["mechanism"].startswith("cgroup"):
                self.assertIn("a cgroup above it", str(answer["cannot_promise"]))

    def test_time(self):
        answer = self.receipt("--timeout", "200ms", "--", "sleep", "100")
        self.assertEqual((answer["returncode"], answer["ending"]), (TIMEOUT, "wall time"))
        answer = self.receipt("--cpu-time", "200ms", "--", "sh", "-c", "while :; do :; done")
        self.assertEqual((answer["returncode"], answer["ending"]), (TIMEOUT, "CPU time"))

    def test_output(self):
        done = self.call("--output-limit", "1000", "--", "yes")
        self.assertEqual((done.returncode, len(done.stdout)), (OURS, 1000))
        for _ in range(20):  # it may be over before anybody looks
            done = self.call("--quiet", "--output-limit", "10KB", "--", "head", "-c", "20000", "/dev/zero")
            self.assertEqual((done.returncode, len(done.stdout)), (OURS, 10000))
        done = self.call("--quiet", "--output-limit", "10KB", "--", "head", "-c", "10000", "/dev/zero")
        self.assertEqual((done.returncode, len(done.stdout)), (0, 10000))

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
        done = self.call("--receipt", "/no/such/place", "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (OURS, ""), "known before anything is started")
        self.assertIn("/no/such/place", done.stderr)
        done = self.call("--quiet", "--receipt", "/dev/full", "--", "sh", "-c", "exit 3")
        self.assertEqual(done.returncode, OURS)
        self.assertIn("exited with 3", done.stderr, "what cannot be written is shown")


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


if __name__ == "__main__":
    sys.exit(counted.main())
