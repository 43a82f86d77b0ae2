#!/usr/bin/python3
"""`plimsoll lab fork-vs-spawn` as its users see it, with the stand-in, so that no torch is needed.

PLIMSOLL names the command (build/plimsoll). The last line: N passed, M failed, K skipped.
"""
import glob
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

import counted

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLIMSOLL = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
WAYS = ["in process", "reset and trim", "fork", "spawn", "plimsoll exec"]
MIB = 1 << 20
INVALID_ARGUMENT, IO = 3, 8
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup children would inherit that it is ignored
PLACE = tempfile.TemporaryDirectory()  # other people's labs are not our business
os.environ["TMPDIR"] = tempfile.tempdir = PLACE.name


def lab(*arguments):
    return subprocess.run([PLIMSOLL, "lab", "fork-vs-spawn", *arguments], capture_output=True, text=True)


def rooms():
    return set(glob.glob(os.path.join(tempfile.gettempdir(), "plimsoll-lab-*")))


class Lab(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.before = rooms()
        room = tempfile.TemporaryDirectory()
        cls.addClassCleanup(room.cleanup)
        cls.chart = os.path.join(room.name, "chart.svg")
        cls.outcome = lab("--stand-in", "--json", "--svg", cls.chart)

    def ways(self):
        self.assertEqual(self.outcome.returncode, 0, self.outcome.stderr)
        return {way["way"]: way for way in json.loads(self.outcome.stdout)["ways"]}

    def test_every_way_has_both_views(self):
        ways = self.ways()
        self.assertEqual(list(ways), WAYS)
        for way in ways.values():
            self.assertGreater(way["peak"]["process_bytes"], way["before"]["process_bytes"] + 50 * MIB)

    def test_what_stays_in_the_process(self):
        ways = self.ways()
        stays = {name: way["after"]["process_bytes"] - way["before"]["process_bytes"] for name, way in ways.items()}
        self.assertGreater(stays["in process"], 4 * MIB)  # modules, and arenas whose top is in use
        for name in ("fork", "plimsoll exec"):  # spawn keeps multiprocessing's resource tracker
            self.assertLess(stays[name], 4 * MIB, name)

    def test_what_stays_in_the_container(self):
        ways = self.ways()
        if "container_bytes" not in ways["plimsoll exec"]["after"]:
            self.skipTest("no memory cgroup can be made here")
        left = ways["plimsoll exec"]["after"]["container_bytes"] - ways["plimsoll exec"]["before"]["container_bytes"]
        self.assertLess(left, 3 * MIB)

    def test_findings_and_chart(self):
        self.ways()
        self.assertGreaterEqual(len(json.loads(self.outcome.stdout)["findings"]), 3)
        root = xml.etree.ElementTree.parse(self.chart).getroot()
        bars = [e for e in root.iter() if e.tag.endswith("rect") and "peak" in e.get("class", "")]
        self.assertEqual(len(bars), 2 * len(WAYS))

    def test_the_room_is_gone(self):
        self.assertEqual(rooms() - self.before, set())

    def test_wrong_python(self):
        for python in ("/nowhere/python3", "/bin/false"):
            run = lab("--python", python)
            self.assertIn(run.returncode, (INVALID_ARGUMENT, IO), run.stderr)
            self.assertIn(python, run.stderr)

    def test_wrong_snippet(self):
        self.assertEqual(lab("--snippet", "/nowhere.py").returncode, IO)
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write("raise ValueError('of its own')\n")
            file.flush()
            run = lab("--snippet", file.name)
        self.assertEqual(run.returncode, INVALID_ARGUMENT, run.stderr)
        self.assertIn("the snippet fails", run.stderr)
        self.assertIn("ValueError: of its own", run.stderr)

    def test_interrupted(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before = rooms()
            process = subprocess.Popen([PLIMSOLL, "lab", "fork-vs-spawn", "--stand-in"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            while not rooms() - before and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.3)
            process.send_signal(how)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + how, errors)
            self.assertEqual(rooms() - before, set())

    def test_a_chart_that_cannot_be_written(self):
        run = lab("--stand-in", "--svg", "/no/such/place")
        self.assertEqual((run.returncode, run.stdout), (IO, ""), run.stderr)
        self.assertIn("/no/such/place", run.stderr)


if __name__ == "__main__":
    sys.exit(counted.main())
