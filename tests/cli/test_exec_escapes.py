#!/usr/bin/python3
"""Every way out, in every mechanism that this machine has, against the table in docs/isolate.md.

On version 1 these are root's, a user namespace's and the bare one; on version 2 (the stage `version2`) the other two as
well. Fork bombs are let off inside a pids cgroup of our own. PLIMSOLL names the command (build/plimsoll); it is copied
to where another user can run it. The last line: N passed, M failed, K skipped.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import counted
from exec_case import PLIMSOLL, PYTHON, ROOT, alive, eventually

NOBODY = 65534
GUARD_PIDS = 400
LIMIT = 64
TIMEOUT_SECONDS = 60  # nobody who gets what he wants, or is refused, takes so long
HERE = pathlib.Path(__file__).resolve().parent
V2 = not os.path.isdir("/sys/fs/cgroup/memory")
MECHANISMS = ("root v1", "root v2", "delegated v2", "user namespace", "bare")
ESCAPES = {  # as the table in docs/isolate.md names them
    "a fork bomb": "bomb",
    "a daemon, two sessions away, with an empty environment": "daemon",
    "the same, after it has killed its parent": "orphan_of_a_killed_keeper",
    "memory of its own": "anonymous",
    "memory of several processes": "several",
    "a memfd": "memfd",
    "a file in /dev/shm": "shared_memory",
    "System V memory": "system_v",
    "TCP buffers": "tcp",
    "raising its own limit": "raise_limit",
    "leaving its cgroup": "leave",
    "freezing itself": "freeze",
}


def table():
    """{way out: {mechanism: cell}} of the documentation."""
    rows, names = {}, None
    for line in (ROOT / "docs" / "isolate.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| way out |"):
            names = cells[1:]
        elif names and line.startswith("|") and cells[0] in ESCAPES:
            rows[cells[0]] = dict(zip(names, cells[1:]))
        elif names and not line.startswith("|"):
            break
    return rows


class Guard:
    """A cgroup that bounds what a bomb can do, whatever we do wrong; on version 2 the job's home."""

    made = 0

    def __init__(self, owner):
        Guard.made += 1
        name = f"escapes-{os.getpid()}-{Guard.made}"
        if V2:
            pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+memory +pids")
            self.path = pathlib.Path(f"/sys/fs/cgroup/{name}")
        else:
            self.path = pathlib.Path(f"/sys/fs/cgroup/pids/{name}")
        self.path.mkdir()
        (self.path / "pids.max").write_text(str(GUARD_PIDS))
        if owner:
            for name in (".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
                if (self.path / name).exists():
                    os.chown(self.path / name, owner, owner)

    def directories(self):
        """Itself and those below, as far as they are still there."""
        return [pathlib.Path(path) for path, _, _ in os.walk(self.path)]

    def members(self):
        found = []
        for path in self.directories():
            try:
                found += map(int, (path / "cgroup.procs").read_text().split())
            except OSError:  # removed meanwhile
                pass
        return found

    def close(self):
        for _ in range(500):
            for pid in self.members():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            try:
                for below in reversed(self.directories()):
                    below.rmdir()
                return
            except OSError:
                eventually(lambda: False, 0.01)


class Escapes(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root to become somebody else and to make a cgroup around bombs")
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-escapes-", dir="/var/tmp"))
        cls.place.chmod(0o755)
        for file in (PLIMSOLL, HERE / "escapes.py"):
            shutil.copy(file, cls.place)
        cls.expected = table()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.place)

    def attempt(self, mechanism, name):
        """What becomes of it, in the words of the table."""
        mark = f"86.{os.getpid()}{len(name)}{MECHANISMS.index(mechanism)}"
        is_root = mechanism.startswith("root")
        guard = Guard(NOBODY if mechanism == "delegated v2" else 0)

        def enter():
            (guard.path / "cgroup.procs").write_text(str(os.getpid()))
            if not is_root:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)

        seconds = 20 if name == "freeze" else TIMEOUT_SECONDS
        limits = ["--limit", f"{LIMIT}MiB", "--timeout", f"{seconds}s", "--grace", "100ms"]
        if name == "bomb":
            limits += ["--processes", "20"]
        if mechanism == "bare":
            limits.append("--bare")
        try:
            done = subprocess.run([str(self.place / pathlib.Path(PLIMSOLL).name), "exec", "--json", *limits, "--", PYTHON,
                                   "-S", str(self.place / "escapes.py"), name, mark], preexec_fn=enter, cwd="/",
                                  capture_output=True, text=True, timeout=180)
            eventually(lambda: not alive(mark), 2 if done.stdout else 10)
            left = alive(mark)  # everything that an escape starts names it
        finally:
            guard.close()
        if done.returncode == -signal.SIGKILL:  # its parent was `plimsoll exec` itself: then the guard ends it
            return "gets out" if left else "ended"
        self.assertTrue(done.stdout, done.stderr)
        receipt = json.loads(done.stdout)
        self.assertEqual(receipt["mechanism"].split()[0], {"user namespace": "namespaces", "bare": "rlimit"}.get(
            mechanism, "cgroup"), receipt)
        return self.judge(name, receipt, done, left)

    def judge(self, name, receipt, done, left):
        self.assertLess(receipt["wall_ms"], (TIMEOUT_SECONDS + 30) * 1000)
        if left:
            return "told" if receipt["alive"] else "gets out"
        self.assertEqual(receipt["alive"], [], receipt)
        if receipt["limit_hit"]:
            return "killed" if receipt["mechanism"].startswith("cgroup") else "sampled"
        if done.returncode == 3:
            return "refused"
        if receipt["noticed"]:
            return "told"
        if receipt["ending"] == "wall time":
            return "ended" if name == "freeze" else "out of time"
        if name in ("bomb", "daemon", "orphan_of_a_killed_keeper", "freeze"):
            return "ended"
        return "refused" if done.returncode != 0 else "gets it"

    def check(self, mechanism):
        found = {}
        for way, name in ESCAPES.items():
            found[way] = self.attempt(mechanism, name)
            print(f"{mechanism}: {way}: {found[way]}", flush=True)
        expected = {way: self.expected.get(way, {}).get(mechanism, "not in the table") for way in ESCAPES}
        wrong = {way: answer for way, answer in found.items() if answer not in expected[way].split(" or ")}
        self.assertEqual(wrong, {}, expected)

    def test_root(self):
        self.check("root v2" if V2 else "root v1")

    def test_delegated(self):
        if not V2:
            self.skipTest("version 1 cannot be given to a user: the stage version2 does it")
        self.check("delegated v2")

    def test_user_namespace(self):
        self.need_namespaces()
        self.check("user namespace")

    def test_bare(self):
        self.check("bare")

    def need_namespaces(self):
        def become_nobody():
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        if subprocess.run(["unshare", "-U", "true"], preexec_fn=become_nobody, capture_output=True).returncode != 0:
            self.skipTest("this kernel gives ordinary users no user namespace")

    def test_require_hold(self):
        """What cannot be held is refused before it starts, if one asks for it, and said before if not."""
        def become_nobody():
            os.setgid(NOBODY)
            os.setuid(NOBODY)

        def run(*arguments):
            return subprocess.run([str(self.place / pathlib.Path(PLIMSOLL).name), "exec", *arguments, "--", "echo", "ran"],
                                  preexec_fn=become_nobody, cwd="/", capture_output=True, text=True, timeout=60)
        for arguments in (["--limit", "64MiB"], ["--bare"]):
            done = run("--require", "hold", *arguments)
            self.assertEqual((done.returncode, done.stdout), (125, ""), done.stderr)
            self.assertIn("cannot be held here", done.stderr)
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
            self.assertTrue(done.stderr.startswith("plimsoll: cannot hold "), done.stderr)
        self.need_namespaces()
        done = run("--require", "hold", "--processes", "20")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        done = subprocess.run([PLIMSOLL, "exec", "--require", "hold", "--limit", "64MiB", "--processes", "9", "--", "true"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    sys.exit(counted.main())
