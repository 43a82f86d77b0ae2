#!/usr/bin/python3
"""`plimsoll exec` in an ordinary cgroup of version 2, which is not the root and has processes of its own.

Run in the guest by the stage `version2`. PLIMSOLL names the command. The last line: N passed, M failed, K skipped.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import counted
from exec_case import LIMIT, MIB, PLIMSOLL, PYTHON, TAKE, TIMEOUT, eventually

ROOT = pathlib.Path("/sys/fs/cgroup")
ENTER = ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"']


class OrdinaryCgroup(unittest.TestCase):
    def setUp(self):
        if not (ROOT / "cgroup.controllers").exists() or "memory" not in (ROOT / "cgroup.controllers").read_text():
            self.skipTest("memory is not on version 2 here")
        (ROOT / "cgroup.subtree_control").write_text("+memory +pids")
        self.own = ROOT / f"service-{os.getpid()}"
        self.own.mkdir()

    def tearDown(self):
        eventually(lambda: not self.members())
        self.own.rmdir()  # fails if anything is left in it or below it

    def members(self):
        return (self.own / "cgroup.procs").read_text().split()

    def start(self, *arguments, **options):
        return subprocess.Popen([*ENTER, self.own, PLIMSOLL, "exec", *arguments], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def run_json(self, *arguments):
        process = self.start("--json", *arguments)
        output, error = process.communicate()
        self.assertTrue(output, error)
        return process.returncode, json.loads(output), error

    def is_as_before(self):
        return not list(self.own.glob("plimsoll-*")) and not (self.own / "cgroup.subtree_control").read_text().strip()

    def test_alone_in_it_the_kernel_holds_the_limit(self):
        status, answer, error = self.run_json("--limit", "64MiB", "--", PYTHON, "-c", TAKE, str(20 * MIB))
        self.assertEqual((status, answer["mechanism"]), (0, "cgroup v2"), error)
        self.assertIsNotNone(answer["residue_bytes"])
        self.assertTrue(eventually(self.is_as_before), list(self.own.iterdir()))
        status, answer, error = self.run_json("--limit", "32MiB", "--", PYTHON, "-c", TAKE, str(200 * MIB))
        self.assertEqual((status, answer["ending"], answer["limit_hit"]), (LIMIT, "memory limit", True), error)
        self.assertLessEqual(answer["peak_bytes"], 32 * MIB)
        self.assertTrue(eventually(self.is_as_before), list(self.own.iterdir()))

    def test_others_in_it_are_not_moved(self):
        other = subprocess.Popen([*ENTER, self.own, "/bin/sleep", "1000"])
        try:
            self.assertTrue(eventually(self.members))
            status, answer, error = self.run_json("--limit", "64MiB", "--", "/bin/true")
            self.assertEqual((status, answer["mechanism"]), (0, "rlimit and sampling"), error)
            self.assertTrue(any("systemd-run --scope" in doubt for doubt in answer["cannot_promise"]))
            self.assertTrue(eventually(lambda: self.members() == [str(other.pid)]), self.members())
            self.assertTrue(self.is_as_before())
        finally:
            other.kill()
            other.wait()

    def test_killed_it_leaves_nothing(self):
        process = self.start("--limit", "64MiB", "--", "/bin/sleep", "1000")
        self.assertTrue(eventually(lambda: list(self.own.glob("plimsoll-[0-9]*"))))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertTrue(eventually(self.is_as_before), list(self.own.iterdir()))

    def test_a_job_has_jobs_of_its_own(self):
        status, answer, error = self.run_json("--limit", "128MiB", "--", PLIMSOLL, "exec", "--json", "--limit", "64MiB",
                                              "--", "/bin/true")
        self.assertEqual((status, answer["ending"], answer["mechanism"]), (0, "exited", "cgroup v2"), error)
        inner = json.loads(error)  # a job's stdout
        self.assertEqual((inner["ending"], inner["mechanism"]), ("exited", "cgroup v2"), error)
        self.assertTrue(eventually(self.is_as_before), list(self.own.iterdir()))

    def test_the_end_of_a_job_is_the_end_of_its_jobs(self):
        begin = time.monotonic()
        status, answer, error = self.run_json("--limit", "128MiB", "--timeout", "3s", "--", PLIMSOLL, "exec", "--limit",
                                              "64MiB", "--", "/bin/sleep", "1000")
        self.assertEqual((status, answer["ending"]), (TIMEOUT, "wall time"), error)
        self.assertLess(time.monotonic() - begin, 100)
        self.assertTrue(eventually(self.is_as_before), list(self.own.iterdir()))


if __name__ == "__main__":
    sys.exit(counted.main())
