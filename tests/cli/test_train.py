#!/usr/bin/python3
"""`plimsoll train` as its users see it: told and kept, resumed to the bit, and what goes wrong.

PLIMSOLL names the command (build/plimsoll). The last line: N passed, M failed, K skipped.
"""
import csv
import fcntl
import json
import os
import pathlib
import random
import resource
import shutil
import signal
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
USAGE, INVALID_ARGUMENT, BUDGET, IO = 2, 3, 6, 8


class Train(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="plimsoll-train-")
        self.addCleanup(self.directory.cleanup)
        self.folder = pathlib.Path(self.directory.name)
        self.data = self.write_data("data", 64, 1)

    def write_data(self, name, count, seed, labels=None, shape=(1, 8, 8)):
        numbers = np.random.default_rng(seed)
        folder = self.folder / name
        folder.mkdir()
        np.save(folder / "image.npy", numbers.random((count, *shape), dtype=np.float32))
        np.save(folder / "labels.npy", numbers.integers(0, 10, count) if labels is None else labels)
        return str(folder)

    def train(self, *arguments, data=None, preparation=None):
        batch = [] if "--batch" in arguments else ["--batch", "8"]
        return subprocess.run([PLIMSOLL, "train", DIGITS, "--data", data or self.data, *batch, "--threads", "1", "--json",
                               *map(str, arguments)], capture_output=True, text=True, preexec_fn=preparation)

    def answer(self, *arguments, **more):
        result = self.train(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def refused(self, status, words, *arguments, **more):
        result = self.train(*arguments, **more)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(words, result.stderr)

    def test_told_is_measured_under_every_limit(self):
        self.meets_every_limit()

    def test_told_is_measured_in_bfloat16(self):
        plan = self.answer("--plan", "--precision", "bf16")
        self.assertEqual(plan["float_peak_bytes"], self.answer("--plan")["peak_bytes"])
        self.assertLess(plan["accounts"]["planned"], self.answer("--plan")["accounts"]["planned"])
        self.assertTrue(all(value["saved_bytes"] > 0 for value in plan["rounded"]) and plan["rounded"])
        weights = self.meets_every_limit("--precision", "bf16")
        self.answer("--output", self.folder / "float.onnx")
        self.assertNotEqual((self.folder / "float.onnx").read_bytes(), weights)
        self.refused(USAGE, "--precision: expected one of bf16, f32, found 'f16'", "--precision", "f16")

    def meets_every_limit(self, *more):
        plan = self.answer("--plan", *more)
        self.assertLess(plan["minimum_limit_bytes"], plan["peak_bytes"])
        least, most = plan["minimum_limit_bytes"], plan["peak_bytes"]
        weights = []
        for limit in (0, most, (least + most) // 2, least):
            output = self.folder / f"{limit}.onnx"
            found = self.answer(*(["--limit", limit] if limit else []), "--output", output, *more)
            self.assertEqual(found["predicted_bytes"], found["measured_bytes"], limit)
            self.assertTrue(limit == 0 or found["measured_bytes"] <= limit)
            weights.append(output.read_bytes())
        self.assertEqual(len(set(weights)), 1, "the plan changes what is learned")
        smallest = f"the smallest limit that would do is {least}"
        self.refused(BUDGET, smallest, "--limit", least - 1, "--plan", *more)
        # Where looking for it takes the most, there is no room for that.
        refusal = self.train("--limit", least - 1, *more)
        self.assertEqual(refusal.returncode, BUDGET)
        self.assertRegex(refusal.stderr, f"{smallest}|a limit of {most} would do, and perhaps a smaller one")
        return weights[0]

    def test_examples_are_not_held(self):
        data = self.write_data("large", 200_000, 3)  # 51 MB
        found = self.answer("--batch", "1000", data=data)
        size = (pathlib.Path(data) / "image.npy").stat().st_size
        self.assertLess(found["peak_rss_bytes"], found["measured_bytes"] + size // 2)

    def test_a_file_that_is_cut_meanwhile(self):
        log = self.folder / "log.csv"
        with subprocess.Popen([PLIMSOLL, "train", DIGITS, "--data", self.data, "--batch", "8", "--epochs", "1000000", "--log", log],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
            self.addCleanup(running.kill)
            while not log.exists() or log.stat().st_size < 100:
                self.assertIsNone(running.poll())
                time.sleep(0.02)
            os.truncate(pathlib.Path(self.data) / "image.npy", 1000)
            words = running.communicate(timeout=60)[1]
        self.assertEqual(running.returncode, IO, words)
        self.assertIn("it was cut after training began", words)

    def test_the_largest_batch(self):
        table, nodes = (self.answer("--plan", *more)["memory_optimizer"] for more in ((), ("--devinfo",)))
        self.assertIn("bytes stashed", nodes)
        self.assertEqual(table, "".join(line for line in nodes.splitlines(True) if not line.startswith("    O")))
        limit = self.answer("--plan")["minimum_limit_bytes"] * 2
        self.assertGreater(self.answer("--plan", "--solve", "batch", "--limit", limit)["batch"], 8)
        without = self.answer("--plan", "--solve", "batch", "--limit", limit, "--recompute", "none")["batch"]
        self.assertLessEqual(without, self.answer("--plan", "--solve", "batch", "--limit", limit)["batch"])

    def test_going_on_gives_the_same_bits(self):
        for more in ([], ["--accumulate", "2"], ["--precision", "bf16", "--accumulate", "2"]):
            output, half, whole = (self.folder / f"{n}{len(more)}" for n in ("a.onnx", "b.onnx", "checkpoint"))
            common = ["--epochs", "3", "--optimizer", "adamw", "--schedule", "cosine", "--schedule-steps", "24", *more]
            self.answer(*common, "--output", output)
            self.answer(*common, "--max-steps", "5", "--checkpoint", whole, "--checkpoint-every", "5")
            went_on = self.answer(*common, "--checkpoint", whole, "--resume", "--output", half)
            self.assertEqual(went_on["resumed_at"], 5)
            self.assertEqual(output.read_bytes(), half.read_bytes())

    def test_killed_at_any_moment_it_goes_on(self):
        checkpoint, expected, found = (self.folder / n for n in ("checkpoint", "expected.onnx", "found.onnx"))
        common = ["--epochs", "40", "--optimizer", "adam"]
        self.answer(*common, "--output", expected)
        chance = random.Random(3)

        def written():
            return checkpoint.stat().st_ino if checkpoint.exists() else None

        kills = 0
        for _ in range(12):
            process = subprocess.Popen([PLIMSOLL, "train", DIGITS, "--data", self.data, "--batch", "8", "--threads", "1",
                                        *common, "--checkpoint", checkpoint, "--checkpoint-every", "1", "--resume"],
                                       stdout=subprocess.DEVNULL)
            for _ in range(chance.randint(1, 5)):  # checkpoints that it gets to write, and a moment more
                before = written()
                while process.poll() is None and written() == before:
                    time.sleep(0.0005)
            time.sleep(chance.uniform(0, 0.003))
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
        self.answer(*common, "--checkpoint", checkpoint, "--checkpoint-every", "1", "--resume", "--output", found)
        self.assertEqual(expected.read_bytes(), found.read_bytes())
        self.assertGreater(kills, 0)
        self.assertEqual(list(self.folder.glob("checkpoint.partial-*")), [])

    def test_what_the_dead_left_behind_is_removed(self):
        checkpoint, nobody = self.folder / "checkpoint", 2 ** 22 + 1  # more than the kernel's largest process number
        dead = self.folder / f"checkpoint.partial-{nobody}-0"
        others = [self.folder / name for name in (f"checkpoint.partial-{os.getpid()}-3", f"checkpoint2.partial-{nobody}-0",
                                                  f"checkpoint.partial-{nobody}", f"checkpoint.partial-{nobody}-0x")]
        for path in (dead, *others):
            path.write_bytes(b"half")
        self.answer("--checkpoint", checkpoint)
        self.assertFalse(dead.exists())
        self.assertTrue(all(path.exists() for path in others))
        # Held by somebody whose number we cannot see: another container's.
        with open(dead, "wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.answer("--checkpoint", checkpoint)
            self.assertTrue(dead.exists())

    def test_a_full_disk_leaves_the_last_checkpoint(self):
        checkpoint = self.folder / "checkpoint"
        self.answer("--checkpoint", checkpoint)
        before = checkpoint.read_bytes()

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, len(before) // 2))

        self.refused(IO, "cannot be written", "--epochs", "2", "--checkpoint", checkpoint, "--resume", preparation=small_files)
        self.assertEqual(checkpoint.read_bytes(), before)
        self.assertEqual([p.name for p in self.folder.iterdir() if "partial" in p.name], [])
        self.assertEqual(self.answer("--epochs", "2", "--checkpoint", checkpoint, "--resume")["steps"], 8)

    def test_a_damaged_checkpoint_is_refused(self):
        checkpoint = self.folder / "checkpoint"
        self.answer("--checkpoint", checkpoint)
        bytes_ = bytearray(checkpoint.read_bytes())
        bytes_[-100] ^= 1
        checkpoint.write_bytes(bytes_)
        self.refused(4, "damaged", "--epochs", "2", "--checkpoint", checkpoint, "--resume")

    def test_what_goes_wrong_says_so(self):
        checkpoint = self.folder / "checkpoint"
        self.answer("--checkpoint", checkpoint)
        kept = checkpoint.read_bytes()
        resumed = ["--checkpoint", checkpoint, "--resume", "--epochs", "2"]
        labels = np.full(64, 3)
        labels[20] = 10
        self.refused(INVALID_ARGUMENT, "10", *resumed, data=self.write_data("labels", 64, 1, labels))
        self.refused(INVALID_ARGUMENT, "image", data=self.write_data("shape", 64, 1, shape=(1, 9, 9)))
        self.refused(INVALID_ARGUMENT, "examples", "--batch", "65")
        self.refused(USAGE, "--batch", "--batch", "0")
        self.refused(INVALID_ARGUMENT, "learning rate", "--lr", "inf")
        self.refused(INVALID_ARGUMENT, "learning rate", "--lr", "nan")
        self.refused(INVALID_ARGUMENT, "optimizer adamw, found sgd", *resumed, "--optimizer", "sgd")
        self.refused(IO, "nowhere", data=str(self.folder / "nowhere"))
        self.refused(USAGE, "--loss", "--loss", "unknown")
        broken = self.write_data("broken", 64, 1)
        images = np.load(f"{broken}/image.npy")
        images[11] = np.nan
        np.save(f"{broken}/image.npy", images)
        self.refused(INVALID_ARGUMENT, "finite loss", *resumed, data=broken)
        self.assertEqual(checkpoint.read_bytes(), kept)

    @unittest.skipUnless(os.environ.get("PLIMSOLL_LONG"), "a minute and a half: PLIMSOLL_LONG=1, stage train_watch of --full")
    def test_ten_thousand_steps_are_flat(self):
        data, record = self.write_data("many", 800, 5), self.folder / "record"
        done = subprocess.run([PLIMSOLL, "watch", "--interval", "500ms", "--json", "--record", record, "--", PLIMSOLL, "train", DIGITS,
                               "--data", data, "--batch", "64", "--threads", "1", "--epochs", "1000", "--max-steps", "10000",
                               "--checkpoint", self.folder / "checkpoint"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        verdict = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"verdict"')][-1]
        self.assertEqual(verdict["verdict"], "flat", verdict["evidence"])

    def test_validation_and_early_stop(self):
        found = self.answer("--validation", self.write_data("more", 32, 2), "--epochs", "30", "--patience", "2", "--lr", "0.01")
        self.assertIn("accuracy", found)
        self.assertTrue(found["stopped_early"] or found["epochs"] == 30)

    def test_the_log_and_the_schedule(self):
        log = self.folder / "log.csv"
        self.answer("--log", log, "--schedule", "linear", "--warmup", "4", "--lr", "0.1", "--epochs", "2")
        with open(log) as rows:
            rates = [float(row["rate"]) for row in csv.DictReader(rows)]
        expected = [0.1 * min(i / 4, 1 - (i - 4) / 12 if i > 4 else 1) for i in range(16)]
        np.testing.assert_allclose(rates, expected, rtol=1e-6, atol=1e-9)

    def test_a_log_that_cannot_be_written_is_told(self):
        self.refused(IO, "/dev/full: cannot write", "--log", "/dev/full")

    def test_what_it_writes_is_not_the_model(self):
        mine = self.folder / "mine.onnx"
        shutil.copy(DIGITS, mine)
        for option in ("--log", "--checkpoint", "--svg", "--html"):
            done = subprocess.run([PLIMSOLL, "train", mine, "--data", self.data, option, mine], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{option}: '{mine}' is the model itself", done.stderr)
        self.assertEqual(mine.read_bytes(), pathlib.Path(DIGITS).read_bytes())

    def test_every_loss_and_optimizer_starts(self):
        for optimizer in ("sgd", "adam", "adamw", "adamw-hf", "adagrad", "rmsprop", "lamb"):
            found = self.answer("--optimizer", optimizer, "--momentum", "0.9", "--clip-norm", "1", "--epochs", "3")
            self.assertLess(found["epoch_losses"][-1], found["epoch_losses"][0], optimizer)
            self.assertTrue(0 < found["fastest_step_ms"] * found["steps"] <= 1000 * found["seconds"])


if __name__ == "__main__":
    sys.exit(counted.main())
