#!/usr/bin/python3
"""plimsoll compile: the same answers, one copy of the weights, and no file that was altered.

PLIMSOLL names the command (build/plimsoll). The last line: N passed, M failed, K skipped.
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import counted

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLIMSOLL = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
DIGITS = str(ROOT / "examples" / "digits.onnx")
DIGIT = str(ROOT / "examples" / "digit.npy")
ONE = ["--dim", "batch=1"]
INVALID_ARGUMENT, INVALID_MODEL, BUDGET = 3, 4, 6

sys.path.insert(0, str(ROOT / "tests" / "reference"))
from model_file import Graph, Node, encode_model  # noqa: E402


def wide_model(path, width):
    """A table that is read as it is, and a product whose weights are packed."""
    random = np.random.default_rng(0)
    weights = {"table": random.standard_normal((1000, width)).astype(np.float32),
               "w": random.standard_normal((width, width)).astype(np.float32)}
    nodes = [Node("Gather", ["table", "i"], ["rows"]), Node("MatMul", ["rows", "w"], ["y"])]
    path.write_bytes(encode_model(Graph(nodes, [("i", "int64", ["n"])], ["y"], weights), {"": 17}, 8))


class Case(unittest.TestCase):
    def setUp(self):
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.room = pathlib.Path(room.name)

    def command(self, *arguments, code=0):
        done = subprocess.run([PLIMSOLL, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def compiled(self, model=DIGITS, *options):
        path = self.room / "model.plim"
        self.command("compile", model, path, *options)
        return path

    def answer(self, model, *options):
        folder = self.room / f"out{len(list(self.room.iterdir()))}"
        self.command("run", model, *options, "--output", folder)
        return np.load(folder / "0.npy")


class Compiling(Case):
    def test_the_same_answer_and_told_is_measured(self):
        path = self.compiled()
        inputs = ["--input", f"{json.loads(self.command('inspect', DIGITS, '--json'))['inputs'][0]['name']}={DIGIT}"]
        self.assertTrue(np.array_equal(self.answer(DIGITS, *inputs), self.answer(path, *inputs)))
        report = json.loads(self.command("run", path, *inputs, "--json"))
        self.assertEqual(report["predicted_bytes"], report["measured_bytes"])

    def test_every_threads_and_placer(self):
        wide_model(self.room / "wide.onnx", 512)
        path = self.compiled(self.room / "wide.onnx", "--shape", "i=3", "--shape", "i=7", "--threads", "2")
        for options in (["--threads", "1"], ["--threads", "2", "--poison"], ["--placer", "naive"]):
            report = json.loads(self.command("run", path, "--shape", "i=3", *options, "--json"))
            self.assertEqual(report["predicted_bytes"], report["measured_bytes"])
            self.assertGreater(report["accounts"]["packed"], 512 * 512 * 4 - 1)
            self.assertGreater(report["accounts"]["weights"], 1000 * 512 * 4 - 1)
            for shape in ("i=3", "i=5"):
                ours = self.answer(path, "--shape", shape, *options)
                self.assertTrue(np.array_equal(ours, self.answer(self.room / "wide.onnx", "--shape", shape, *options)))

    def test_a_limit_is_kept_or_refused(self):
        peak = json.loads(self.command("compile", DIGITS, self.room / "a.plim", *ONE, "--json"))["peak_bytes"][0]
        self.command("compile", DIGITS, self.room / "b.plim", *ONE, "--limit", peak)
        self.assertIn("the limit of", self.command("compile", DIGITS, self.room / "c.plim", *ONE, "--limit", peak // 2,
                                                   code=BUDGET))
        self.assertEqual(sorted(p.name for p in self.room.iterdir()), ["a.plim", "b.plim"])
        self.command("run", self.room / "b.plim", *ONE, "--limit", peak)

    def test_what_is_compiled_is_only_run(self):
        path, data = self.compiled(), self.room / "data"
        data.mkdir()
        np.save(data / "image.npy", np.zeros((4, 1, 8, 8), np.float32))
        np.save(data / "labels.npy", np.zeros(4, np.int64))
        for command in (("compile", path, self.room / "x"), ("optimize", path, self.room / "x"),
                        ("quantize", path, self.room / "x", "--mode", "dynamic"), ("train", path, "--data", data),
                        ("train", path, "--data", data, "--plan")):
            with self.subTest(command[0]):
                self.assertIn("found a compiled one", self.command(*command, code=INVALID_ARGUMENT))


def images_of(path):
    """Where the images are in a compiled file: offset and size, after 216 bytes of its header (src/compiled/format.h)."""
    return struct.unpack_from("<QQ", path.read_bytes(), 216)


def is_sanitized():
    """Sanitizers map so much that small numbers are addresses of it: what they build writes no images."""
    return re.search(rb"__[at]san_init", pathlib.Path(PLIMSOLL).read_bytes()) is not None


@unittest.skipIf(is_sanitized(), "a sanitized command writes no images")
class Images(Case):
    def test_what_opening_makes_is_in_the_file(self):
        wide_model(self.room / "wide.onnx", 512)
        path = self.compiled(self.room / "wide.onnx", "--shape", "i=3", "--shape", "i=7", "--threads", "1")
        offset, size = images_of(path)
        self.assertGreater(size, 4096)
        self.assertEqual(offset + size, path.stat().st_size)
        for shape in ("i=3", "i=7", "i=5"):  # the last was not named
            arguments = ["--shape", shape, "--threads", "1"]
            report = json.loads(self.command("run", path, *arguments, "--json"))
            self.assertEqual(report["predicted_bytes"], report["measured_bytes"])
            self.assertTrue(np.array_equal(self.answer(path, *arguments),
                                           self.answer(self.room / "wide.onnx", *arguments)))

    def test_less_than_opening_takes_without(self):
        path = self.compiled(DIGITS, *ONE, "--threads", "1")
        self.assertGreater(images_of(path)[1], 4096)
        read = json.loads(self.command("run", path, *ONE, "--threads", "1", "--poison", "--json"))
        taken = json.loads(self.command("run", path, *ONE, "--threads", "1", "--json"))
        self.assertLessEqual(taken["accounts"]["session"], read["accounts"]["session"])
        self.assertEqual(taken["outputs"], read["outputs"])

    def test_an_input_that_there_is_not(self):
        path = self.compiled(DIGITS, *ONE)
        self.assertIn("there is no input", self.command("run", path, "--shape", "nobody=1,2", code=INVALID_ARGUMENT))


class Altered(Case):
    @unittest.skipIf(is_sanitized(), "a sanitized command writes no images")
    def test_a_byte_of_the_images(self):
        path = self.compiled(DIGITS, *ONE)
        whole, (offset, size) = path.read_bytes(), images_of(path)
        for place in range(offset, offset + size, size // 40):
            altered = bytearray(whole)
            altered[place] ^= 1
            path.write_bytes(altered)
            self.assertIn("altered images", self.command("run", path, *ONE, code=INVALID_MODEL))

    def test_a_byte_anywhere(self):
        path = self.compiled()
        whole = path.read_bytes()
        graph_end = 4096 + 64 * ((len(whole) // 200) or 1)
        places = {*range(0, len(whole), max(1, len(whole) // 60)), *range(0, 300, 7), graph_end, len(whole) - 1}
        for place in sorted(p for p in places if p < len(whole)):
            altered = bytearray(whole)
            altered[place] ^= 0x10
            path.write_bytes(altered)
            self.command("run", path, *ONE, code=INVALID_MODEL)

    def test_cut_short_or_longer(self):
        path = self.compiled()
        whole = path.read_bytes()
        for size in (8, 100, 4096, 5000, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            self.command("run", path, *ONE, code=INVALID_MODEL)
        path.write_bytes(whole + b"\0")
        self.command("run", path, *ONE, code=INVALID_MODEL)


class Mismatch(Case):
    def other_set(self):
        """A compiled file with its original beside it; None if this build has no other instruction set to run it with."""
        shutil.copy(DIGITS, self.room / "original.onnx")
        path = self.compiled(self.room / "original.onnx")
        lower = subprocess.run([PLIMSOLL, "run", DIGITS, *ONE, "--isa", "sse4"], capture_output=True)
        return path if lower.returncode == 0 else None

    def test_another_instruction_set_packs_again_or_refuses(self):
        path = self.other_set()
        if path is None:
            self.skipTest("this build has kernels for one instruction set only")
        self.assertTrue(np.array_equal(self.answer(path, *ONE, "--isa", "sse4"), self.answer(DIGITS, *ONE, "--isa", "sse4")))
        self.assertIn("packed for", self.command("run", path, *ONE, "--isa", "sse4", "--mismatch", "refuse",
                                                code=INVALID_MODEL))
        (self.room / "original.onnx").write_bytes(b"another")
        self.command("run", path, *ONE, "--isa", "sse4", code=INVALID_MODEL)
        (self.room / "original.onnx").unlink()
        self.command("run", path, *ONE, "--isa", "sse4", code=INVALID_MODEL)


def pages_of(pid, kind):
    """Bytes of the compiled file's pages in a process: those it has mapped (Rss), or its share of them (Pss)."""
    found, inside = 0, False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = line.endswith(".plim")
        elif inside and line.startswith(kind + ":"):
            found += int(line.split()[1]) * 1024
    return found


class Shared(Case):
    def test_ten_processes_hold_one_copy(self):
        wide_model(self.room / "wide.onnx", 1024)
        path = self.compiled(self.room / "wide.onnx", "--shape", "i=1")
        size = path.stat().st_size
        running = [subprocess.Popen([PLIMSOLL, "run", path, "--shape", "i=1", "--threads", "1", "--repeat", "1000000"],
                                    stdout=subprocess.DEVNULL) for _ in range(10)]
        try:
            deadline = time.monotonic() + 60
            while min(pages_of(process.pid, "Rss") for process in running) < 0.9 * size:
                self.assertLess(time.monotonic(), deadline, "not every process has mapped the file")
                time.sleep(0.1)
            shares = [pages_of(process.pid, "Pss") for process in running]  # all have all of it: nothing moves
            self.assertLess(sum(shares), 1.1 * size)
        finally:
            for process in running:
                process.kill()
                process.wait()


if __name__ == "__main__":
    sys.exit(counted.main())
