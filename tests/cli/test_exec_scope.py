#!/usr/bin/python3
"""`plimsoll exec` of an ordinary user whose session is not his own cgroup, with systemd's user manager beside it.

Run in the guest by the stage `version2`, as root: it starts the manager as user 1000, in a cgroup that it delegates as
logind and systemd do for user@1000.service. PLIMSOLL names the command. The last line: N passed, M failed, K skipped.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import counted
from exec_case import LIMIT, MIB, PLIMSOLL, PYTHON, TAKE, eventually

ROOT = pathlib.Path("/sys/fs/cgroup")
MANAGER = "/usr/lib/systemd/systemd"
USER = 1000
ENTER = ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"']
UNITS = ("default.target", "basic.target", "shutdown.target", "exit.target", "app.slice")
WHERE = "import sys\nsys.stderr.write(open('/proc/self/cgroup').read())"


class UserScope(unittest.TestCase):
    def setUp(self):
        if not (ROOT / "cgroup.controllers").exists() or "memory" not in (ROOT / "cgroup.controllers").read_text():
            self.skipTest("memory is not on version 2 here")
        if os.geteuid() != 0 or not os.access(MANAGER, os.X_OK) or not shutil.which("systemd-run"):
            self.skipTest("needs root and systemd")
        if not os.path.isdir("/run/systemd/system"):
            self.skipTest("systemd's programs refuse to run without /run/systemd/system, which is not a test's to make")
        (ROOT / "cgroup.subtree_control").write_text("+memory +pids")
        self.room = pathlib.Path(tempfile.mkdtemp())
        units, runtime = self.room / "units", self.room / "runtime"
        for folder in (units, runtime):
            folder.mkdir()
        for unit in UNITS:
            (units / unit).write_text("[Unit]\nDefaultDependencies=no\n")
        for path in (self.room, runtime):
            os.chown(path, USER, USER)
        runtime.chmod(0o700)
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.room), "XDG_RUNTIME_DIR": str(runtime),
                            "SYSTEMD_UNIT_PATH": str(units)}
        self.own = self.delegated(ROOT / f"user-{os.getpid()}")
        self.session = self.delegated(self.own / "session")
        self.addCleanup(self.clean)
        self.said = self.room / "manager.log"
        with open(self.said, "w") as log:
            self.manager = self.start(self.own, MANAGER, "--user", "--log-target=console", stdout=log, stderr=log)
        self.stranger = self.start(self.session, "/bin/sleep", "1000")  # as in a login session: it is not to be moved
        self.assertTrue(eventually((runtime / "systemd/private").exists, 90), self.said.read_text())

    def clean(self):
        for process in (self.stranger, self.manager):
            process.kill()
            process.wait()
        for folder, _, _ in os.walk(self.own, topdown=False):
            self.assertTrue(eventually(lambda: not (pathlib.Path(folder) / "cgroup.procs").read_text()), folder)
            os.rmdir(folder)
        shutil.rmtree(self.room)

    def delegated(self, folder):
        folder.mkdir()
        for path in (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control", folder / "cgroup.threads"):
            os.chown(path, USER, USER)
        return folder

    def start(self, cgroup, *command, **options):
        """As the user, in the cgroup."""
        return subprocess.Popen([*ENTER, cgroup, PYTHON, "-c", f"import os, sys\nos.setgroups([])\nos.setresgid({USER}, {USER}, {USER})\n"
                                 f"os.setresuid({USER}, {USER}, {USER})\nos.execvp(sys.argv[1], sys.argv[1:])", *command],
                                env=self.environment, text=True, cwd="/", **options)

    def run_json(self, *arguments):
        process = self.start(self.session, PLIMSOLL, "exec", "--json", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, error = process.communicate()
        self.assertTrue(output, error)
        return process.returncode, json.loads(output), error

    def scopes(self):
        return [name for _, folders, _ in os.walk(self.own) for name in folders if name.endswith(".scope") and name.startswith("run-")]

    def test_the_manager_gives_it_a_cgroup_in_which_the_kernel_holds_the_limit(self):
        status, answer, error = self.run_json("--limit", "64MiB", "--", PYTHON, "-c", WHERE)
        self.assertEqual((status, answer["mechanism"]), (0, "cgroup v2"), error)
        self.assertRegex(error, r"run-\w+\.scope")
        status, answer, error = self.run_json("--limit", "32MiB", "--", PYTHON, "-c", TAKE, str(200 * MIB))
        self.assertEqual((status, answer["ending"], answer["limit_hit"]), (LIMIT, "memory limit", True), error)
        self.assertLessEqual(answer["peak_bytes"], 32 * MIB)
        self.assertTrue(eventually(lambda: not self.scopes()), self.scopes())
        self.assertEqual((self.session / "cgroup.procs").read_text().split(), [str(self.stranger.pid)])

    def test_without_a_manager_it_is_sampled_and_says_so(self):
        self.manager.kill()
        self.manager.wait()
        status, answer, error = self.run_json("--limit", "64MiB", "--", "/bin/true")
        self.assertEqual(status, 0, error)
        self.assertNotEqual(answer["mechanism"], "cgroup v2")
        self.assertTrue(answer["cannot_promise"])


if __name__ == "__main__":
    sys.exit(counted.main())
