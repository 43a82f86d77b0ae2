#!/usr/bin/python3
"""`plimsoll watch` where the world around it breaks: closed descriptors, pipes that nobody reads, recordings that are
all gaps, commands that do not start again.

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
import time
import unittest

import counted
from test_watch import INVALID_ARGUMENT, IO, NOT_IMPLEMENTED, PLIMSOLL, PYTHON, USAGE, Case, recording


SLOW_TO_TRIM = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
blocks = [libc.malloc(8000) for _ in range(40000)]
for block in blocks: ctypes.memset(block, 1, 8000)
for block in blocks[::2]: libc.free(block)
print("ready", flush=True)
while True:
    time.sleep(0.5)
    print("alive", flush=True)
"""


class ShellCase(Case):
    def shell(self, text):
        return subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60, cwd=self.directory)


class Descriptors(ShellCase):
    def test_output_without_a_descriptor_goes_nowhere_else(self):
        done = self.shell(f"{PLIMSOLL} watch --interval 50ms --duration 500ms --record r -- sleep 9 <&- >&-")
        self.assertEqual(done.returncode, IO, done.stderr)
        notes = [line for line in (self.directory / "r").read_text().splitlines() if '"note"' in line]
        self.assertIn("standard output", notes[0])  # not "stopped by a signal", from its own signal pipe

    def test_closed_stdout_leaves_whole_files(self):
        done = self.shell(f"{PLIMSOLL} watch --interval 50ms --record r --html w -- sleep 300 | head -n 2; "
                          'exit "${PIPESTATUS[0]}"')
        self.assertEqual(done.returncode, IO, done.stderr)
        self.assertIn('"verdict"', (self.directory / "r").read_text().splitlines()[-1])
        self.assertTrue((self.directory / "w").read_text().rstrip().endswith("</html>"))

    def test_a_pipe_that_nobody_reads(self):
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        for option in ("--record", "--html"):
            done = self.watch(option, pipe, "--duration", "300ms", "--", "sleep", "9", code=IO)
            self.assertIn("pipe", done.stderr)

    def test_a_page_into_a_pipe(self):
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        reader = self.start("cat", pipe, stdout=subprocess.PIPE)
        self.watch("--html", pipe, "--duration", "300ms", "--interval", "100ms", "--", "sleep", "9")
        page = reader.stdout.read().decode()
        self.assertTrue(page.lower().startswith("<!doctype") and page.rstrip().endswith("</html>"), page[:100])

    def test_a_file_that_may_not_grow(self):
        done = self.shell(f"ulimit -f 8; {PLIMSOLL} watch --interval 10ms --duration 1s --record r -- sleep 9")
        self.assertEqual(done.returncode, IO, done.stdout[-500:])
        self.assertIn("the recording ends early", done.stderr)
        self.assertIn("verdict: ", done.stdout)

    def test_empty_values(self):
        for option in ("--record", "--html", "--replay", "--iterations-from-stdout", "--interval", "--duration"):
            self.assertIn(option, self.watch(option, "", "--", "true", code=USAGE).stderr)


class Readers(Case):
    """Whoever does not read does not keep the watch from its end."""

    def full_pipe(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        return reader, writer

    def run_into(self, writer, which, *arguments, stop=None, target=("yes",)):
        record, page = self.directory / "r", self.directory / "w"
        record.unlink(missing_ok=True)
        process = self.start(PLIMSOLL, "watch", "--interval", "100ms", "--record", record, "--html", page, *arguments,
                             "--", *target, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, which: writer})
        os.close(writer)
        if stop:
            while not record.exists() or record.read_text().count("seconds") < 3:
                time.sleep(0.05)
            process.send_signal(stop)
        process.wait(30)
        self.assertIn('"verdict"', record.read_text().splitlines()[-1])
        self.assertTrue(page.read_text().rstrip().endswith("</html>"))
        return process.returncode

    def test_stderr(self):
        counting = ("--iterations-from-stdout", "y")
        self.assertEqual(self.run_into(self.full_pipe()[1], "stderr", "--duration", "500ms", *counting), 0)
        for stop, arguments in ((signal.SIGTERM, counting), (signal.SIGINT, ("--json", *counting))):  # once is enough
            self.assertEqual(self.run_into(self.full_pipe()[1], "stderr", *arguments, stop=stop), 0)

    def test_stdout(self):
        for stop, arguments in ((signal.SIGTERM, ()), (signal.SIGINT, ("--json",))):
            self.assertEqual(self.run_into(self.full_pipe()[1], "stdout", *arguments, stop=stop), IO)
        self.assertEqual(self.run_into(self.full_pipe()[1], "stdout", "--duration", "500ms", target=("sleep", "60")), IO)

    def test_a_late_reader_gets_all_of_it(self):
        reader, writer = self.full_pipe()
        process = self.start(PLIMSOLL, "watch", "--json", "--interval", "20ms", "--duration", "1s", "--", "sleep", "60",
                             stdout=writer)
        os.close(writer)
        time.sleep(2)
        read = b""
        while got := os.read(reader, 65536):
            read += got
        self.assertEqual(process.wait(30), 0)
        lines = read.lstrip(b"x").decode().splitlines()
        self.assertIn("verdict", json.loads(lines[-1]))
        self.assertGreater(len(lines), 5)
        self.assertTrue(all("seconds" in json.loads(line) for line in lines[:-1]))

    def test_the_command_waits_for_its_reader(self):
        """What it prints arrives whole, as if it wrote to stderr itself."""
        process = self.start(PLIMSOLL, "watch", "--iterations-from-stdout", "^[0-9]+$", "--interval", "50ms", "--", "seq",
                             "1", "300000", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(1)
        self.assertEqual(process.stderr.read().split(), [b"%d" % i for i in range(1, 300_001)])
        self.assertEqual(process.wait(30), 0)

    def test_a_recording_that_is_not_read(self):
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        done = self.watch("--interval", "10ms", "--duration", "2s", "--record", pipe, "--", "sleep", "60", code=IO)
        self.assertIn("nobody reads", done.stderr)
        self.assertIn("verdict: ", done.stdout)


class Recordings(ShellCase):
    """What is there is not lost."""

    def test_a_page_in_place_of_the_recording_by_another_name(self):
        record, link, hard = (self.directory / name for name in ("r", "link", "hard"))
        recording(record)
        before = record.read_bytes()
        link.symlink_to("r")
        (self.directory / "to_new").symlink_to("new")
        hard.hardlink_to(record)
        (self.directory / "sub").mkdir()
        for page in ("./r", "sub/../r", "link", "hard", record):
            for arguments in (("--replay", "r"), ("--record", "r", "--duration", "100ms", "--", "sleep", "9")):
                done = self.watch("--html", page, *arguments, code=USAGE, cwd=self.directory)
                self.assertIn("replace the recording", done.stderr)
        self.assertEqual(record.read_bytes(), before)
        for page in ("./new", "sub/../new", "to_new", self.directory / "new"):  # before there is either
            self.watch("--html", page, "--record", "new", "--", "true", code=USAGE, cwd=self.directory)
        self.watch("--html", "/dev/null", "--record", "/dev/null", "--", "true")

    def test_on_stdout_into_a_file(self):
        """Beside what was there and the report, nothing over the other."""
        log, common = self.directory / "log", f"{PLIMSOLL} watch --interval 50ms --duration 300ms"
        for path in ("/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"):
            for redirect, kept in ((">>", "kept\n"), (">", "")):
                for option, whole in (("--record", r'^\{"plimsoll_recording.*^\{"verdict'), ("--html", "<!doctype.*</html>")):
                    log.write_text("kept\n")
                    done = self.shell(f"{common} {option} {path} -- sleep 9 {redirect} log")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    text = log.read_text()
                    self.assertTrue(text.startswith(kept))
                    self.assertRegex(text, re.compile(whole, re.S | re.M | re.I))
                    self.assertRegex(text, re.compile("^verdict: undecided.*^process after.*^notes", re.S | re.M))
                    if option == "--record":
                        samples = len(re.findall(r'(?m)^\{"seconds".*\}$', text))
                        self.assertEqual(samples, len(re.findall(r"(?m)^ +\d\.\d s  process .*$", text)), text)

    def test_the_old_one_stays_until_there_is_a_new_one(self):
        record = self.directory / "r"
        record.write_text("old\n")
        self.watch("--record", record, "--", "/no/such/command", code=127)
        self.assertEqual(record.read_text(), "old\n")
        self.watch("--record", self.directory / "new", "--", "/no/such/command", code=127)
        self.assertFalse((self.directory / "new").exists())
        record.write_text("old\n" * 100_000)
        self.watch("--record", record, "--", "true")
        self.watch("--replay", record)


class Patterns(Case):
    def test_what_would_take_without_end_is_refused(self):
        for pattern in (r"(a*)(a*)\1\2b", "(((x{1,200}){1,200}){1,200}){1,200}"):
            self.watch("--iterations-from-stdout", pattern, "--", "true", code=USAGE)

    def test_classes_in_brackets(self):
        done = self.watch("--json", "--iterations-from-stdout", r"^[\d.]+[[:space:]][^]\s\d]+$", "--duration", "600ms",
                          "--interval", "100ms", "--", "sh", "-c", r"printf '1.5 ms\n-5 ms\n5 5\n2 s\n'; sleep 9")
        self.assertEqual(self.json_of(done)[0][-1]["iteration"], 2)


class Experiments(Case):
    def finding(self, name, *arguments):
        done = self.watch("--json", "--duration", "600ms", "--interval", "100ms", *arguments)
        return {e["name"]: e["finding"] for e in self.json_of(done)[1]["experiments"]}[name]

    def test_a_stopped_process_is_not_trimmed(self):
        target = self.start("sleep", "300")
        os.kill(target.pid, signal.SIGSTOP)
        self.assertEqual(self.finding("trim", "--trim", "--pid", target.pid), "not done: the process is stopped")

    def test_impatience_during_a_trim_does_not_end_the_process(self):
        target = self.start(PYTHON, "-c", SLOW_TO_TRIM, stdout=subprocess.PIPE)
        target.stdout.readline()
        watch = self.start(PLIMSOLL, "watch", "--trim", "--duration", "100ms", "--interval", "100ms", "--pid",
                           str(target.pid), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while watch.poll() is None and "TracerPid:\t0\n" in pathlib.Path(f"/proc/{target.pid}/status").read_text():
            time.sleep(0.0005)
        for _ in range(4):
            watch.send_signal(signal.SIGINT)
            time.sleep(0.001)
        watch.wait(60)
        for _ in range(2):  # the first may have been there before
            self.assertEqual(target.stdout.readline(), b"alive\n")

    def test_a_program_that_was_executed_since_the_last_sample(self):
        done = self.watch("--json", "--trim", "--duration", "1500ms", "--interval", "60s", "--", "sh", "-c",
                          f"sleep 0.5; exec {PYTHON} -c 'import time; time.sleep(60)'")
        last = self.json_of(done)[1]
        self.assertGreater(last["account"]["sample"]["seconds"], 1)
        self.assertTrue(any("python" in part["name"] for part in last["account"]["libraries"]), last["account"])
        self.assertNotIn("another program", last["experiments"][0]["finding"])

    def test_a_restart_that_fails_does_not_cost_the_report(self):
        program, record = self.directory / "program", self.directory / "r"
        program.write_text('#!/bin/sh\nrm "$0"\nexec sleep 300\n')
        program.chmod(0o755)
        self.assertIn("not found", self.finding("restart", "--restart", "--record", record, "--", program))
        self.assertIn('"verdict"', record.read_text().splitlines()[-1])


@unittest.skipIf(os.geteuid() != 0, "only root can become somebody else")
class Strangers(Case):
    def test_a_process_that_may_not_be_traced(self):
        target, command = self.start("sleep", "300"), self.directory / "plimsoll"
        shutil.copy(PLIMSOLL, command)
        self.directory.chmod(0o755)
        done = subprocess.run([command, "watch", "--json", "--trim", "--duration", "200ms", "--interval", "100ms", "--pid",
                               str(target.pid)], capture_output=True, text=True, timeout=60, user="nobody")
        self.assertIn("may not be read", self.json_of(done)[1]["experiments"][0]["finding"])

    def test_reclaim_where_no_cgroup_can_be_made(self):
        command, marker = self.directory / "plimsoll", self.directory / "started"
        shutil.copy(PLIMSOLL, command)
        self.directory.chmod(0o777)
        done = subprocess.run([command, "watch", "--reclaim", "--duration", "1s", "--", "touch", marker], cwd="/",
                              capture_output=True, text=True, timeout=60, user="nobody")
        if done.returncode == 0:
            self.skipTest("anybody may make cgroups here")
        self.assertEqual(done.returncode, NOT_IMPLEMENTED, done.stderr)
        self.assertIn("no memory cgroup", done.stderr)
        self.assertFalse(marker.exists(), "the command was started all the same")

    def test_another_pid_namespace_behind_proc(self):
        done = subprocess.run(["unshare", "--pid", "--fork", PLIMSOLL, "watch", "--", "sleep", "9"], capture_output=True,
                              text=True, timeout=60)
        if "unshare" in done.stderr.split(":")[0]:
            self.skipTest(done.stderr.strip())
        self.assertIn("PID namespace", done.stderr)
        self.assertEqual(done.returncode, INVALID_ARGUMENT)


class Long(Case):
    def test_gaps_without_end_stay_few_on_the_page(self):
        record, page = self.directory / "r", self.directory / "w"
        lines = [{"plimsoll_recording": 1}]
        for i in range(60_000):
            odd = {"seconds": i, "gap": True, "gap_reason": "the process is stopped"}
            lines.append(odd if i % 2 else {"seconds": i, "process": {"kernel_bytes": 1 << 20}})
        record.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.watch("--replay", record, "--html", page)
        data = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', page.read_text(), re.S)[1])
        self.assertLess(len(data["seconds"]), 5002)
        self.assertLess(len(data["gaps"]), 5002)
        self.assertIn("stopped", data["gaps"][0]["reason"])


if __name__ == "__main__":
    sys.exit(counted.main())
