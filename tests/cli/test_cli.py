#!/usr/bin/python3
"""The command as its users see it: arguments, files and exit codes in, text and JSON out.

PLIMSOLL names the command (build/plimsoll). The last line: N passed, M failed, K skipped.
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

import counted

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLIMSOLL = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
DIGITS = str(ROOT / "examples" / "digits.onnx")
DIGIT = str(ROOT / "examples" / "digit.npy")
ONNX_CASES = pathlib.Path("/usr/share/libonnx-testdata/data/node")
# Exit codes: include/plimsoll/error.h and DESIGN's table.
VERDICT, USAGE, INVALID_ARGUMENT, INVALID_MODEL, BUDGET, IO, INTERRUPTED = 1, 2, 3, 4, 6, 8, 130

sys.path.insert(0, str(ROOT / "tools"))
from tensor_proto import bytes_field, encode, integer_field  # noqa: E402


def text(number, value):
    return bytes_field(number, value.encode())


def model(nodes, inputs, outputs, initializers=None):
    """A ModelProto: nodes (operator, inputs, outputs, integer attributes), values {name: sizes, numbers or symbols}.

    initializers: {name: floats}.
    """
    def tensor(name, values):
        return text(8, name) + integer_field(1, len(values)) + integer_field(2, 1) + bytes_field(
            9, struct.pack(f"<{len(values)}f", *values))

    def value(name, sizes):
        dims = b"".join(bytes_field(1, integer_field(1, d) if isinstance(d, int) else text(2, d)) for d in sizes)
        return text(1, name) + bytes_field(2, bytes_field(1, integer_field(1, 1) + bytes_field(2, dims)))

    def node(operator, ins, outs, attributes):
        made = [text(1, i) for i in ins] + [text(2, o) for o in outs] + [text(4, operator)]
        made += [bytes_field(5, text(1, k) + integer_field(3, v) + integer_field(20, 2)) for k, v in attributes.items()]
        return b"".join(made)

    graph = b"".join([*(bytes_field(1, node(*n)) for n in nodes), text(2, "g"),
                      *(bytes_field(5, tensor(*i)) for i in (initializers or {}).items()),
                      *(bytes_field(11, value(*i)) for i in inputs.items()),
                      *(bytes_field(12, value(*o)) for o in outputs.items())])
    return integer_field(1, 8) + bytes_field(7, graph) + bytes_field(8, integer_field(2, 15))


def sequence_model():
    """s, a sequence of floats, put together."""
    kind = bytes_field(4, bytes_field(1, bytes_field(1, integer_field(1, 1))))
    node = text(1, "s") + text(2, "y") + text(4, "ConcatFromSequence")
    node += bytes_field(5, text(1, "axis") + integer_field(3, 0) + integer_field(20, 2))
    graph = bytes_field(1, node) + text(2, "g") + bytes_field(11, text(1, "s") + bytes_field(2, kind))
    graph += bytes_field(12, text(1, "y") + bytes_field(2, bytes_field(1, integer_field(1, 1))))
    return integer_field(1, 8) + bytes_field(7, graph) + bytes_field(8, integer_field(2, 15))


def is_sanitized():
    """The command was built with a sanitizer."""
    needed = pathlib.Path(PLIMSOLL).read_bytes()
    return any(runtime in needed for runtime in (b"libasan.so", b"libtsan.so"))


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-cli-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def call(self, *arguments, **options):
        return subprocess.run([PLIMSOLL, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)

    def succeed(self, *arguments):
        done = self.call(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def answer(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json"))

    def refuse(self, status, words, *arguments, **options):
        """One line on stderr that says `words`, nothing on stdout, the right exit code."""
        done = self.call(*arguments, **options)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertTrue(done.stderr.startswith("plimsoll: ") and done.stderr.count("\n") == 1, done.stderr)
        self.assertIn(words, done.stderr)

    def file(self, name, content):
        path = self.directory / name
        path.write_bytes(content)
        return path

    def npy(self, name, array):
        np.save(self.directory / name, array)
        return self.directory / name


class Help(Case):
    def test_what_is_no_command_is_told_where_they_are(self):
        self.refuse(USAGE, "'bogus'; plimsoll --help lists them", "bogus")
        self.refuse(USAGE, "plimsoll --help lists them")

    def test_every_command_has_an_example(self):
        for command in ("inspect", "plan", "run", "verify", "bench", "optimize", "place"):
            self.assertIn(f"Example: plimsoll {command} ", self.succeed(command, "--help"))
        self.assertIn("verify", self.succeed("--help"))

    def test_wrong_usage(self):
        for arguments in ([], ["walk"], ["run"], ["run", DIGITS, "--thread", "2"], ["run", DIGITS, "--threads", "many"],
                          ["run", DIGITS, "--isa", "mmx"], ["plan", DIGITS, "--solve", "batch"],
                          ["bench", DIGITS, "--seconds", "-1"]):
            self.refuse(USAGE, "", *arguments)

    def test_malformed_values(self):
        for shape in ("image", "image=1,x", "image=1,,2", "=1", "image=1,-1", "image=1,", "image=99999999999999999999"):
            self.refuse(USAGE, "--shape", "plan", DIGITS, "--shape", shape)
        for limit in ("much", "-1", "0", "1XB", "1e30", "", "nan"):
            self.refuse(USAGE, "--limit", "plan", DIGITS, f"--limit={limit}")
        # As a script has it whose variable was never set: no limit would be the worst way to take it.
        self.refuse(USAGE, "--limit: expected a value", "run", DIGITS, "--dim", "batch=1", "--limit", "")
        self.refuse(USAGE, "--svg: expected a value", "plan", DIGITS, "--dim", "batch=1", "--svg", "")
        self.refuse(USAGE, "OUT: expected a value", "optimize", DIGITS, "")
        self.refuse(USAGE, "--dim", "plan", DIGITS, "--dim", "batch=two")
        self.refuse(USAGE, "--input", "run", DIGITS, "--input", "digit.npy")
        self.refuse(USAGE, ".npy", "run", DIGITS, "--input", f"image={DIGITS}")


class BadFiles(Case):
    def test_models(self):
        for command in ("inspect", "plan", "run", "bench"):
            self.refuse(IO, "nowhere.onnx", command, self.directory / "nowhere.onnx")
            self.refuse(IO, str(self.directory), command, self.directory)
            self.refuse(INVALID_MODEL, "", command, self.file("empty.onnx", b""))
            self.refuse(INVALID_MODEL, "", command, self.file("text.onnx", b"This is no model.\n" * 10))

    def test_inputs(self):
        good = np.load(DIGIT)
        self.refuse(IO, "gone.npy", "run", DIGITS, "--input", "image=gone.npy")
        self.refuse(INVALID_ARGUMENT, "'picture'", "run", DIGITS, "--input", f"picture={DIGIT}")
        self.refuse(INVALID_ARGUMENT, "float", "run", DIGITS, "--input",
                    f"image={self.npy('double.npy', good.astype(np.float64))}")
        self.refuse(INVALID_ARGUMENT, "image", "run", DIGITS, "--input", f"image={self.npy('flat.npy', good[0])}")
        self.refuse(INVALID_ARGUMENT, "Fortran", "run", DIGITS, "--input",
                    f"image={self.npy('fortran.npy', np.asfortranarray(np.zeros((2, 1, 8, 8), np.float32)))}")
        self.refuse(INVALID_ARGUMENT, "batch", "run", DIGITS)
        self.refuse(INVALID_ARGUMENT, "'rows'", "run", DIGITS, "--dim", "rows=3")
        self.refuse(USAGE, "its file", "run", DIGITS, "--input", f"image={DIGIT}", "--shape", "image=2,1,8,8")

    def test_npy_cut_at_every_byte_of_its_header(self):
        whole = pathlib.Path(DIGIT).read_bytes()
        for size in [*range(0, 140, 3), len(whole) - 1]:
            self.refuse(INVALID_ARGUMENT, "cut.npy", "run", DIGITS, "--input",
                        f"image={self.file('cut.npy', whole[:size])}")

    def test_npy_that_lies(self):
        whole = pathlib.Path(DIGIT).read_bytes()
        for before, after in ((b"(1, 1, 8, 8)", b"(1, 1, 9, 9)"), (b"(1, 1, 8, 8)", b"(9223372036)"),
                              (b"(1, 1, 8, 8)", b"9,9,9,9,9,9)"), (b"<f4", b">f4"), (b"<f4", b"|O4"),
                              (b"shape", b"spahe"), (b"\x93NUMPY\x01", b"\x93NUMPY\x09"),
                              (b"(1, 1, 8, 8), ", b"(99999999999999999999999), ")):
            self.assertIn(before, whole)
            self.refuse(INVALID_ARGUMENT, "lies.npy", "run", DIGITS, "--input",
                        f"image={self.file('lies.npy', whole.replace(before, after))}")

    def test_strings_without_width(self):
        header = b"{'descr': '<U0', 'fortran_order': False, 'shape': (99999999999,), }\n"
        path = self.file("many.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        self.refuse(INVALID_ARGUMENT, "0 bytes for [99999999999] strings", "run", DIGITS, "--input", f"image={path}")

    def test_tensor_that_lies(self):
        whole = encode("image", np.load(DIGIT))
        for size in range(len(whole)):
            self.refuse(INVALID_ARGUMENT, "cut.pb", "run", DIGITS, "--input",
                        f"image={self.file('cut.pb', whole[:size])}") if size % 16 == 0 or size < 24 else None
        for wrong in (b"\x12\x01\x01", b"\x48\x01", b"\x40\x01", b"\x25\x00\x00\x00\x00\x50\x01"):  # other wire types
            self.refuse(INVALID_ARGUMENT, "wire.pb: TensorProto.", "run", DIGITS, "--input",
                        f"image={self.file('wire.pb', whole + wrong)}")
        huge = b"\x08" + b"\xff" * 8 + b"\x7f" + b"\x08" + b"\xff" * 8 + b"\x7f" + b"\x10\x01"
        self.refuse(INVALID_ARGUMENT, "huge.pb", "run", DIGITS, "--input", f"image={self.file('huge.pb', huge)}")


class Outputs(Case):
    def test_numpy_reads_what_run_writes(self):
        done = self.answer("run", DIGITS, "--input", f"image={DIGIT}", "--output", self.directory / "made")
        scores = np.load(self.directory / "made" / "0.npy")
        self.assertEqual(list(scores.shape), done["outputs"][0]["shape"])
        self.assertEqual(int(scores.argmax()), int((ROOT / "examples" / "digit.txt").read_text()))
        np.testing.assert_array_equal(scores.ravel()[:8], np.array(done["outputs"][0]["first"], np.float32))
        self.assertEqual([p.name for p in (self.directory / "made").iterdir()], ["0.npy"])

    def test_pb_and_npy_are_the_same_input(self):
        path = self.file("digit.pb", encode("image", np.load(DIGIT)))
        first, second = (self.answer("run", DIGITS, "--input", f"image={p}")["outputs"] for p in (path, DIGIT))
        self.assertEqual(first, second)

    def test_sizes_that_are_expressions(self):
        path = self.file("concat.onnx", model([("Concat", ["a", "b"], ["ab"], {"axis": 0}), ("Add", ["ab", "c"], ["y"], {})],
                                              {"a": ["new"], "b": ["past"], "c": ["past + new"]}, {"y": ["past + new"]}))
        for sizes in (["--dim", "new=2", "--dim", "past=3"], ["--shape", "a=2", "--shape", "b=3"],
                      ["--shape", "a=2", "--dim", "past=3"]):
            self.assertEqual(self.answer("run", path, *sizes)["outputs"][0]["shape"], [5])
        self.refuse(INVALID_ARGUMENT, "--dim past=1", "run", path, "--dim", "new=2")
        self.refuse(INVALID_ARGUMENT, "there are: new, past", "run", path, "--dim", "old=2")

    def test_random_data_is_reproducible(self):
        run = ["run", DIGITS, "--dim", "batch=3"]
        first, second, other = (self.answer(*run, *more)["outputs"] for more in ([], [], ["--seed", "1"]))
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)

    def test_random_data_that_does_not_suit_says_so(self):
        node = text(1, "table") + text(1, "rows") + text(2, "y") + text(4, "Gather")
        rows = text(1, "rows") + bytes_field(2, bytes_field(1, integer_field(1, 7) + bytes_field(2, bytes_field(1, integer_field(1, 9)))))
        y = text(1, "y") + bytes_field(2, bytes_field(1, integer_field(1, 1)))
        table = text(8, "table") + integer_field(1, 2) + integer_field(2, 1) + bytes_field(9, bytes(8))
        graph = bytes_field(1, node) + text(2, "g") + bytes_field(5, table) + bytes_field(11, rows) + bytes_field(12, y)
        path = self.file("table.onnx", integer_field(1, 8) + bytes_field(7, graph) + bytes_field(8, integer_field(2, 15)))
        for command in ("run", "bench"):
            self.refuse(INVALID_ARGUMENT, "the data is random: real data comes by --input rows=FILE.npy", command, path)
        done = self.call("run", path, "--input", f"rows={self.npy('rows.npy', np.full(9, 5))}")
        self.assertNotIn("random", done.stderr)

    def test_nothing_is_left_of_what_cannot_be_written(self):
        self.refuse(IO, "deep", "run", DIGITS, "--dim", "batch=1", "--output", self.directory / "deep" / "deeper")
        occupied = self.file("file", b"")
        self.refuse(IO, "file", "run", DIGITS, "--dim", "batch=1", "--output", occupied)
        (self.directory / "taken" / "0.npy").mkdir(parents=True)
        self.refuse(IO, "0.npy", "run", DIGITS, "--dim", "batch=1", "--output", self.directory / "taken")
        self.assertEqual(os.listdir(self.directory / "taken"), ["0.npy"])
        self.refuse(BUDGET, "limit", "run", DIGITS, "--dim", "batch=1", "--limit", "1KiB", "--output", self.directory / "refused")
        self.assertFalse((self.directory / "refused").exists())

    def test_full_disk(self):
        """A limit on the size of files stands in for a full disk: the second write fails half-way."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        target = self.directory / "full"
        self.refuse(IO, "0.npy", "run", DIGITS, "--dim", "batch=10", "--output", target, preexec_fn=limit)
        self.assertFalse(target.exists())
        self.refuse(IO, "plan.svg", "plan", DIGITS, "--dim", "batch=1", "--svg", self.directory / "plan.svg",
                    preexec_fn=limit)
        self.assertFalse((self.directory / "plan.svg").exists())
        self.refuse(IO, "could not be written", "run", DIGITS, "--dim", "batch=1", "--trace", self.directory / "trace",
                    preexec_fn=limit)
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_picture_is_not_drawn_over_the_model(self):
        mine = self.file("mine.onnx", pathlib.Path(DIGITS).read_bytes())
        before = mine.read_bytes()
        os.symlink(mine, self.directory / "link.onnx")
        for option in ("--svg", "--html"):
            for target in (mine, self.directory / "link.onnx"):
                self.refuse(USAGE, f"{option}: '{target}' is the model itself", "plan", mine, "--dim", "batch=1", option, target)
        self.assertEqual(mine.read_bytes(), before)
        same = self.directory / "same"
        self.refuse(USAGE, "the same file", "plan", mine, "--dim", "batch=1", "--svg", same, "--html", same)

    def test_full_stdout(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PLIMSOLL, "inspect", DIGITS], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, IO, done.stderr)
        self.assertIn("standard output", done.stderr)

    def test_types(self):
        """Through Identity-like cases of ONNX: what goes in as .npy comes out as .npy."""
        for name, dtype in (("test_cast_FLOAT_to_DOUBLE", np.float64), ("test_cast_FLOAT_to_FLOAT16", np.float16),
                            ("test_cast_FLOAT_to_BFLOAT16", np.float32), ("test_not_2d", np.bool_),
                            ("test_shape", np.int64), ("test_cast_FLOAT_to_STRING", np.str_)):
            with self.subTest(name):
                model = ONNX_CASES / name / "model.onnx"
                if not model.exists():
                    self.skipTest("libonnx-testdata is not installed")
                self.succeed("run", model, "--output", self.directory / name)
                made = np.load(self.directory / name / "0.npy")
                self.assertTrue(np.issubdtype(made.dtype, dtype), made.dtype)


class Libraries(Case):
    """Of operators, with a runtime of C++ that is not the command's own."""
    OPERATORS = pathlib.Path(PLIMSOLL).parent / "tests" / "libtest_op_library.so"

    def failing(self, place):
        sys.path.insert(0, str(ROOT / "tests" / "reference"))
        from model_file import Graph, Node, encode_model
        graph = Graph([Node("Fails", ["x"], ["y"], {"where": place}, "test")], [("x", "float", ["n"])], ["y"])
        return self.file("fails.onnx", encode_model(graph, {"": 20, "test": 1}, 10))

    def test_what_they_throw_is_an_error(self):
        if not self.OPERATORS.exists():
            self.skipTest(f"{self.OPERATORS} is not built")
        for place, message in {1: "attrs went wrong", 2: "infer went wrong", 3: "threw something", 9: "select went wrong",
                               11: "run went wrong"}.items():
            done = self.call("run", self.failing(place), "--custom-ops", self.OPERATORS, "--shape", "x=3")
            self.assertNotIn(done.returncode, (0, 70), done.stderr)
            self.assertGreater(done.returncode, 0, f"{place}: ended by a signal")
            self.assertIn(message, done.stderr)
            self.assertIn("Fails", done.stderr)


class Images(Case):
    SAMPLES = ROOT / "tests" / "images" / "samples"

    def model(self):
        sys.path.insert(0, str(ROOT / "tests" / "reference"))
        from model_file import Graph, Node, encode_model
        graph = Graph([Node("ImageDecoder", ["x"], ["y"])], [("x", "uint8", ["n"])], ["y"])
        return self.file("decode.onnx", encode_model(graph, {"": 20}, 10))

    def decode(self, sample):
        data = self.npy("image.npy", np.frombuffer((self.SAMPLES / sample).read_bytes(), np.uint8))
        return ["run", self.model(), "--input", f"x={data}"]

    def test_each_library_is_loaded_when_it_is_needed(self):
        for sample in ("image.bmp", "baseline.jpg", "image.jp2", "color.png", "lzw.tif", "lossy.webp"):
            self.assertEqual(self.answer(*self.decode(sample))["outputs"][0]["shape"], [12, 17, 3], sample)

    def test_what_is_cut_short_is_an_error_from_a_library_that_was_loaded(self):
        for sample in ("baseline.jpg", "image.jp2", "color.png", "lzw.tif", "lossy.webp"):
            whole = (self.SAMPLES / sample).read_bytes()
            data = self.npy("cut.npy", np.frombuffer(whole[: len(whole) * 3 // 5], np.uint8))
            done = self.call("run", self.model(), "--input", f"x={data}")
            self.assertIn(done.returncode, (0, INVALID_ARGUMENT), f"{sample}: {done.stderr}")  # some decode what there is
            if done.returncode != 0:
                self.assertIn("(ImageDecoder): ", done.stderr, sample)
            if sample == "color.png":
                self.assertNotEqual(done.returncode, 0)

    def test_no_start_loads_them(self):
        if is_sanitized():
            self.skipTest("with a sanitizer the decoders are linked into the command (src/CMakeLists.txt)")
        traced = self.call("run", DIGITS, "--input", f"image={DIGIT}", env={**os.environ, "LD_DEBUG": "files"})
        self.assertEqual(traced.returncode, 0)
        self.assertIn("libc.so", traced.stderr)
        # Nor any other library but those of C and C++: what is looked for, mapped and relocated at every start is paid at every start.
        for library in ("libplimsoll", "libfmt", "libre2", "decoders", "libtiff", "libjpeg", "libpng", "libwebp", "libopenjp2"):
            self.assertNotIn(library, traced.stderr)


class Memory(Case):
    def test_told_is_measured_and_the_smallest_limit_is_enough(self):
        for batch in (1, 7):
            plan = self.answer("plan", DIGITS, "--dim", f"batch={batch}")
            smallest = plan["minimum_limit_bytes"]
            run = self.answer("run", DIGITS, "--dim", f"batch={batch}", "--limit", smallest)
            self.assertEqual(run["predicted_bytes"], plan["peak_bytes"])
            self.assertEqual(run["measured_bytes"], plan["peak_bytes"])
            self.assertGreaterEqual(plan["peak_bytes"], plan["lower_bound_bytes"])
            self.refuse(BUDGET, plan["node_at_peak"], "run", DIGITS, "--dim", f"batch={batch}", "--limit", smallest - 1)
            self.refuse(BUDGET, str(smallest), "plan", DIGITS, "--dim", f"batch={batch}", "--limit", smallest - 1)

    def test_the_ledger_bounds_the_process(self):
        """With its told peak as the limit, a process needs no more than that beyond what any run needs."""
        if is_sanitized():
            self.skipTest("a sanitizer's shadow, red zones and quarantine are in no ledger")

        def chain(count):
            values = ["x"] + [f"v{i}" for i in range(count)]
            return model([("Tanh" if i % 2 else "Sigmoid", [values[i]], [values[i + 1]], {}) for i in range(count)],
                         {"x": [16]}, {values[-1]: [16]})

        def wide(count):
            nodes = [("Tanh" if i % 2 else "Sigmoid", [f"v{i - 2}" if i > 1 else "x"], [f"v{i}"], {}) for i in range(count)]
            return model([*nodes, ("Concat", [f"v{i}" for i in range(count)], ["y"], {"axis": 1})], {"x": [4, 4]},
                         {"y": [4, 4 * count]})

        def initializers(count):
            values = ["x"] + [f"v{i}" for i in range(count)]
            return model([("Add" if i % 2 else "Mul", [values[i], f"w{i}"], [values[i + 1]], {}) for i in range(count)],
                         {"x": [4]}, {values[-1]: [4]}, {f"w{i}": [i, 1, 2, 3] for i in range(count)})

        def fits(path, limit, data_bytes):
            done = self.call("run", path, "--threads", "1", "--json", *(["--limit", limit] if limit else []),
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes)))
            return done.returncode == 0

        step = 1 << 12  # pages, so that nothing hangs on how the start is rounded
        heap_step = 1 << 17  # the break moves by this much at once: what malloc has beyond what is in use
        small = self.file("small.onnx", chain(1))
        low, high = 0, 1 << 14
        self.assertTrue(fits(small, None, high * step), "the search begins where it fits")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(small, None, middle * step) else (middle, high)
        start = high * step
        for name, content in {"chain": chain(20000), "wide": wide(4000), "initializers": initializers(4000)}.items():
            path = self.file(f"{name}.onnx", content)
            told = self.answer("plan", path, "--threads", "1")["minimum_limit_bytes"]
            self.assertTrue(fits(path, told, start + told + told // 16 + heap_step), (name, start, told))
            self.assertFalse(fits(path, told - 1, start + 4 * told), name)

    def test_units(self):
        for text in ("1MiB", "1024KiB", "1048576", "1.05MB", "1 MiB", "1M"):
            self.answer("plan", DIGITS, "--dim", "batch=1", "--limit", text)
        self.refuse(BUDGET, "1500 bytes", "plan", DIGITS, "--dim", "batch=1", "--limit", "1.5KB")

    def test_solve_finds_the_edge(self):
        limit = 2 << 20
        solved = self.answer("plan", DIGITS, "--solve", "batch", "--limit", limit)["solved"]
        fits, too_large = (self.answer("plan", DIGITS, "--dim", f"batch={solved['value'] + more}") for more in (0, 1))
        self.assertLessEqual(fits["minimum_limit_bytes"], limit)
        self.assertGreater(too_large["minimum_limit_bytes"], limit)
        self.refuse(BUDGET, "batch=1", "plan", DIGITS, "--solve", "batch", "--limit", "10KB")
        self.refuse(INVALID_ARGUMENT, "'rows'", "plan", DIGITS, "--solve", "rows", "--limit", "1MiB")

    def test_without_sizes_there_is_a_formula(self):
        plan = self.answer("plan", DIGITS)
        self.assertIsNone(plan["peak_bytes"])
        self.assertEqual(plan["symbols"], ["batch"])
        formula = eval(plan["formula"], {"batch": 5, "floor": lambda x: int(x // 1), "max": max})  # our own text
        self.assertLessEqual(formula, self.answer("plan", DIGITS, "--dim", "batch=5")["lower_bound_bytes"])


class Reports(Case):
    def test_json_has_what_is_promised(self):
        promised = {
            ("plan", DIGITS, "--dim", "batch=1"): ["peak_bytes", "lower_bound_bytes", "minimum_limit_bytes", "formula",
                                                   "node_at_peak", "threads", "instruction_set", "accounts"],
            ("run", DIGITS, "--dim", "batch=1"): ["predicted_bytes", "measured_bytes", "accounts", "peak_rss_bytes",
                                                  "median_ms", "before_rss_bytes", "after_rss_bytes", "outputs"],
            ("bench", DIGITS, "--dim", "batch=1", "--seconds", "0.1", "--profile"): [
                "load_ms", "first_ms", "min_ms", "median_ms", "p99_ms", "peak_rss_bytes", "accounts", "profile"],
            ("inspect", DIGITS): ["inputs", "outputs", "operators", "weight_bytes", "not_implemented"]}
        accounts = ["weights", "packed", "planned", "dynamic", "scratch", "bound", "code", "session",
                    "gradients", "optimizer"]
        for arguments, keys in promised.items():
            found = self.answer(*arguments)
            self.assertEqual([key for key in keys if key not in found], [], arguments)
            if "accounts" in found:
                self.assertEqual(list(found["accounts"]), accounts)

    def test_arena_statistics_have_onnx_runtime_s_names(self):
        without = self.answer("run", DIGITS, "--dim", "batch=4", "--arena-stats")["arena"]
        self.assertEqual(sorted(without), sorted(["Limit", "InUse", "TotalAllocated", "MaxInUse", "NumAllocs", "NumReserves",
                                                  "NumArenaExtensions", "NumArenaShrinkages", "MaxAllocSize"]))
        self.assertEqual(set(without.values()), {0})
        settings = "arena_extend_strategy=kSameAsRequested,max_mem=1MiB"
        report = self.answer("run", DIGITS, "--dim", "batch=4", "--repeat", "3", "--arena", settings, "--arena-stats")
        self.assertEqual(report["arena"]["Limit"], 1 << 20)
        self.assertEqual(report["arena"]["NumAllocs"], 3)
        self.assertEqual(report["arena"]["TotalAllocated"], 4096)
        shrunk = self.answer("run", DIGITS, "--dim", "batch=4", "--arena", "default", "--arena-stats", "--shrink")
        self.assertEqual(shrunk["arena"]["NumArenaShrinkages"], 1)
        self.assertIn("NumArenaExtensions", self.succeed("run", DIGITS, "--dim", "batch=4", "--arena", "default",
                                                         "--arena-stats"))
        self.refuse(BUDGET, "max_mem", "run", DIGITS, "--dim", "batch=4", "--arena", "max_mem=100B")
        self.refuse(USAGE, "max_men", "run", DIGITS, "--arena", "max_men=1MiB")

    def test_a_trace_has_the_ledger_at_each_node(self):
        trace = self.answer("run", DIGITS, "--dim", "batch=4", "--trace", self.directory / "trace")["trace"]
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)
        nodes = [event["args"] for event in events if event["cat"] == "Node"]
        self.assertTrue(nodes)
        for node in nodes:
            self.assertEqual(sum(node["memory_bytes"].values()), node["memory_total_bytes"])
        self.refuse(IO, "profile", "run", DIGITS, "--dim", "batch=4", "--trace", self.directory / "none" / "trace")

    def test_text_for_people(self):
        self.assertIn("float[batch, 1, 8, 8]", self.succeed("inspect", DIGITS))
        plan = self.succeed("plan", DIGITS, "--dim", "batch=4")
        self.assertIn("node at the peak", plan)
        self.assertIn("#", plan)  # the picture
        self.assertIn("told before", self.succeed("run", DIGITS, "--dim", "batch=4"))
        self.assertIn("GFLOP/s", self.succeed("bench", DIGITS, "--dim", "batch=4", "--seconds", "0.1", "--profile"))

    def test_times_are_in_order(self):
        for threads in ("1", "2"):
            bench = self.answer("bench", DIGITS, "--dim", "batch=1", "--seconds", "0.2", "--threads", threads)
            self.assertLessEqual(bench["min_ms"], bench["median_ms"])
            self.assertLessEqual(bench["median_ms"], bench["p99_ms"])
            self.assertEqual(bench["threads"], int(threads))
            self.assertGreaterEqual(bench["iterations"], 5)

    def test_pictures_are_well_formed(self):
        svg, page = self.directory / "plan.svg", self.directory / "plan.html"
        self.succeed("plan", DIGITS, "--dim", "batch=2", "--svg", svg, "--html", page)
        tree = xml.etree.ElementTree.parse(svg).getroot()
        self.assertGreater(len(tree.findall("{http://www.w3.org/2000/svg}rect")), 2)
        self.assertIn("<svg", page.read_text())
        self.assertNotIn("http://", page.read_text().replace("http://www.w3.org/2000/svg", ""))
        self.refuse(INVALID_ARGUMENT, "--dim", "plan", DIGITS, "--svg", svg)
        named = self.file("módèl 模型 <b>.onnx", pathlib.Path(DIGITS).read_bytes())
        self.succeed("plan", named, "--dim", "batch=2", "--html", page)
        self.assertIn("módèl 模型 &lt;b&gt;.onnx</h1>", page.read_text(encoding="utf-8"))
        os.rename(named, named := self.directory / "wrong\udcff.onnx")
        self.succeed("plan", named, "--dim", "batch=2", "--html", page)
        self.assertIn("wrong\ufffd.onnx</h1>", page.read_text(encoding="utf-8"))

    def test_a_special_file_is_not_replaced(self):
        self.succeed("plan", DIGITS, "--dim", "batch=2", "--svg", "/dev/null")
        self.assertFalse(os.path.isfile("/dev/null"))


class Leniency(Case):
    def test_what_onnx_forbids_is_a_warning_or_with_strict_an_error(self):
        path = self.file("misspelt.onnx", model([("Relu", ["x"], ["y"], {"axsi": 1})], {"x": [2]}, {"y": [2]}))
        for command in ("run", "plan", "bench"):
            arguments = [command, path] + (["--seconds", "0"] if command == "bench" else [])
            done = self.call(*arguments)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
            self.assertTrue(done.stderr.startswith("warning: node "), done.stderr)
            self.assertEqual(len(self.answer(*arguments)["warnings"]), 1)
            self.refuse(INVALID_MODEL, "unknown attribute 'axsi'", *arguments, "--strict")

    def test_an_initializer_that_is_an_input_can_be_given(self):
        path = self.file("default.onnx", model([("Mul", ["x", "w"], ["y"], {})], {"x": [2], "w": [2]}, {"y": [2]},
                                               {"w": [3, 4]}))
        x = self.npy("x.npy", np.array([1, 2], np.float32))
        w = self.npy("w.npy", np.array([10, 20], np.float32))
        self.assertEqual(self.answer("run", path, "--input", f"x={x}")["outputs"][0]["first"], [3, 8])
        given = self.answer("run", path, "--input", f"x={x}", "--input", f"w={w}")
        self.assertEqual(given["outputs"][0]["first"], [10, 40])
        self.assertEqual(given["predicted_bytes"], given["measured_bytes"])
        plan = self.answer("plan", path, "--shape", "w=2")
        self.assertEqual(plan["peak_bytes"], given["predicted_bytes"])


class Verify(Case):
    def case(self, name="abs", inputs=1, break_output=None):
        """A copy of one of ONNX's own cases."""
        if not ONNX_CASES.is_dir():
            self.skipTest("libonnx-testdata is not installed")
        copy = self.directory / "cases" / name
        shutil.copytree(ONNX_CASES / f"test_{name}", copy)
        if break_output:
            output = copy / "test_data_set_0" / "output_0.pb"
            output.write_bytes(break_output(output.read_bytes()))
        return copy

    def last_line(self, done):
        return done.stdout.splitlines()[-1]

    def test_right_and_wrong(self):
        self.case("abs")
        self.case("relu", break_output=lambda b: b[:-1] + bytes([b[-1] ^ 0x40]))
        done = self.call("verify", self.directory / "cases")
        self.assertEqual((done.returncode, self.last_line(done)), (VERDICT, "1 passed, 1 failed"))
        self.assertIn("relu: test_data_set_0: output 'y': 1 of 60 elements differ, worst at [2, 3, 4]", done.stdout)
        found = self.call("verify", self.directory / "cases", "--json")
        self.assertEqual(found.returncode, VERDICT)
        self.assertEqual(json.loads(found.stdout)["failed"], 1)

    def test_the_tolerance_is_onnx_s(self):
        def scale(factor):
            def change(data):
                value = struct.unpack("<f", data[-4:])[0]
                return data[:-4] + struct.pack("<f", value * factor)
            return change
        self.assertEqual(self.last_line(self.call("verify", self.case("abs", break_output=scale(1.0005)))),
                         "1 passed, 0 failed")
        wrong = self.case("neg", break_output=scale(1.002))
        self.assertEqual(self.last_line(self.call("verify", wrong)), "0 passed, 1 failed")
        self.assertEqual(self.last_line(self.call("verify", wrong, "--rtol", "0.01")), "1 passed, 0 failed")
        self.assertEqual(self.last_line(self.call("verify", wrong, "--rtol", "0.01", "--compiled")), "1 passed, 0 failed")
        self.assertEqual(self.last_line(self.call("verify", wrong, "--compiled")), "0 passed, 1 failed")

    def test_types_and_shapes_must_agree(self):
        value = np.zeros((3, 4, 5), np.float32)
        for name, array in (("abs", value.astype(np.float64)), ("neg", value[0])):
            done = self.call("verify", self.case(name, break_output=lambda _, a=array: encode("y", a)))
            self.assertIn("expected", done.stdout)
            self.assertEqual(self.last_line(done), "0 passed, 1 failed")

    def test_one_bad_case_does_not_stop_the_others(self):
        (self.case("abs") / "model.onnx").write_bytes(b"\xff" * 40)
        (self.case("neg") / "test_data_set_0" / "input_0.pb").write_bytes(b"\xff" * 40)
        shutil.rmtree(self.case("exp") / "test_data_set_0")
        self.case("relu")
        done = self.call("verify", self.directory / "cases")
        self.assertEqual((done.returncode, self.last_line(done)), (VERDICT, "1 passed, 3 failed"))

    def test_what_is_not_implemented_is_counted_by_operator(self):
        self.case("abs")
        unknown = model([("Frobnicate", ["x"], ["y"], {})], {"x": [3, 4, 5]}, {"y": [3, 4, 5]})
        (self.case("neg") / "model.onnx").write_bytes(unknown)
        lines = self.succeed("verify", self.directory / "cases").splitlines()
        self.assertEqual(lines, ["1 not implemented: Frobnicate 1", "1 passed, 0 failed"])

    def test_sequences_and_optionals_are_compared_element_by_element(self):
        self.case("sequence_insert_at_back")
        self.case("optional_has_element_empty")
        self.case("loop16_seq_none")
        done = self.call("verify", self.directory / "cases")
        self.assertEqual((done.returncode, self.last_line(done)), (0, "3 passed, 0 failed"), done.stdout)
        wrong = self.case("sequence_insert_at_front", break_output=lambda b: b[:-1] + bytes([b[-1] ^ 0x40]))
        self.assertIn("element", self.call("verify", wrong).stdout)

    def test_a_directory_without_cases(self):
        self.refuse(IO, str(self.directory), "verify", self.directory)


class Sequences(Case):
    def model(self):
        return self.file("parts.onnx", model([("SplitToSequence", ["x"], ["parts"], {"axis": 0}), ("Neg", ["x"], ["y"], {})],
                                             {"x": ["n", 2]}, {"parts": [], "y": ["n", 2]}))

    def test_an_output_is_a_folder_that_can_be_an_input(self):
        x = self.npy("x.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
        answer = self.answer("run", self.model(), "--input", f"x={x}", "--output", self.directory / "out")
        parts = answer["outputs"][0]
        self.assertEqual((parts["kind"], parts["type"], parts["count"]), ("sequence", "float", 3))
        self.assertEqual(parts["elements"][2]["first"], [4, 5])
        np.testing.assert_array_equal(np.load(self.directory / "out" / "0" / "1.npy"), [[2, 3]])
        np.testing.assert_array_equal(np.load(self.directory / "out" / "1.npy"), -np.load(x))
        text = self.succeed("run", self.model(), "--input", f"x={x}")
        self.assertIn("parts  sequence(float) of 3\n  0  float[1,2]  [0.0,1.0]", text)
        path = self.file("joined.onnx", sequence_model())
        found = self.answer("run", path, "--input", f"s={self.directory / 'out' / '0'}")
        self.assertEqual((found["outputs"][0]["shape"], found["outputs"][0]["first"]), ([3, 2], [0, 1, 2, 3, 4, 5]))
        self.assertEqual(self.answer("inspect", path)["inputs"][0]["type"], "sequence(float[...])")
        self.refuse(INVALID_ARGUMENT, "give --input s=FOLDER", "run", path)
        self.refuse(INVALID_ARGUMENT, "expected sequence(float[...]), found float[3, 2]", "run", path, "--input", f"s={x}")


class Optimize(Case):
    def test_the_optimized_model_gives_the_same_answer(self):
        made = self.directory / "small.onnx"
        for level in ("basic", "extended", "all"):
            self.succeed("optimize", DIGITS, made, "--level", level)
            before, after = (self.answer("run", m, "--input", f"image={DIGIT}")["outputs"][0] for m in (DIGITS, made))
            np.testing.assert_allclose(before["first"], after["first"], rtol=1e-5)

    def test_nothing_is_left_when_it_is_killed(self):
        """Nor by KILL, which nobody hears: what is being written has no name yet."""
        blob = bytes(256 << 20)
        weights = text(8, "w") + integer_field(1, len(blob) // 4) + integer_field(2, 1) + bytes_field(9, blob)
        value = bytes_field(2, bytes_field(1, integer_field(1, 1) + bytes_field(2, bytes_field(1, integer_field(1, len(blob) // 4)))))
        node = text(1, "x") + text(1, "w") + text(2, "y") + text(4, "Add")
        graph = bytes_field(1, node) + text(2, "g") + bytes_field(5, weights) + bytes_field(11, text(1, "x") + value)
        large = self.file("large.onnx", integer_field(1, 8) + bytes_field(7, graph + bytes_field(12, text(1, "y") + value)) +
                          bytes_field(8, integer_field(2, 15)))
        for number in (signal.SIGTERM, signal.SIGKILL):
            for wait in (0.02, 0.05, 0.1, 0.15):
                process = subprocess.Popen([PLIMSOLL, "optimize", large, self.directory / "out.onnx"], stdout=subprocess.DEVNULL)
                time.sleep(wait)
                process.send_signal(number)
                process.wait()
                self.assertLessEqual(set(os.listdir(self.directory)), {"large.onnx", "out.onnx"})

    def test_a_file_that_cannot_be_written(self):
        self.refuse(IO, "nowhere", "optimize", DIGITS, self.directory / "nowhere" / "out.onnx")


# In shared/data beside one of the folders above, or not at all.
MINIMALLOC = next((folder / "shared/data/minimalloc" for folder in ROOT.parents
                   if (folder / "shared/data/minimalloc").is_dir()), None)


class Place(Case):
    ROWS = b"id,lower,upper,size\na,0,2,60\nb,1,3,40\nc,2,4,60\n"

    def placed(self, path):
        header, *rows = path.read_text().splitlines()
        self.assertEqual(header, "id,lower,upper,size,offset")
        return [[int(field) for field in row.split(",")[1:]] for row in rows]

    def check(self, path, peak):
        """Nothing that is alive at the same time shares a byte, by definition."""
        rows = self.placed(path)
        self.assertEqual(max(offset + size for _, _, size, offset in rows), peak)
        for i, (lower, upper, size, offset) in enumerate(rows):
            self.assertGreaterEqual(offset, 0)
            for other_lower, other_upper, other_size, other_offset in rows[:i]:
                if lower < other_upper and other_lower < upper:
                    self.assertTrue(offset + size <= other_offset or other_offset + other_size <= offset)

    def test_offsets_and_the_least_peak(self):
        problem, out = self.file("p.csv", self.ROWS), self.directory / "placed.csv"
        answer = self.answer("place", problem, "--output", out)
        self.assertEqual((answer["peak"], answer["lower_bound"], answer["fits"], answer["proven"]),
                         (100, 100, True, True))
        self.assertGreaterEqual(answer["seconds"], 0)
        self.check(out, 100)
        self.assertIn("peak 100 bytes", self.succeed("place", problem))

    def test_a_capacity_that_is_too_small(self):
        problem = self.file("p.csv", self.ROWS)
        self.assertTrue(self.answer("place", problem, "--capacity", "100")["fits"])
        done = self.call("place", problem, "--capacity", "99", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["fits"]), (VERDICT, False))

    def test_a_wrong_file(self):
        self.refuse(INVALID_ARGUMENT, "line 2", "place", self.file("p.csv", b"id,lower,upper,size\na,0,1,many\n"))
        self.refuse(IO, "nowhere.csv", "place", self.directory / "nowhere.csv")
        self.refuse(USAGE, "--capacity: expected", "place", self.file("p.csv", self.ROWS), "--capacity", "much")

    @unittest.skipUnless(MINIMALLOC, "no ../shared/data/minimalloc")
    def test_the_problems_of_minimalloc(self):
        for problem in sorted(MINIMALLOC.glob("*.csv")):
            out = self.directory / "placed.csv"
            done = self.call("place", problem, "--capacity", "1048576", "--seconds", "0.2", "--output", out, "--json")
            answer = json.loads(done.stdout)
            self.assertEqual(done.returncode, 0 if answer["fits"] else VERDICT)
            self.assertEqual(answer["fits"], answer["peak"] <= 1048576)
            self.assertFalse(answer["proven"] and not answer["fits"], "a solution is known")
            self.assertGreaterEqual(answer["peak"], answer["lower_bound"])
            self.check(out, answer["peak"])


class Interrupt(Case):
    def test_ctrl_c_ends_with_130(self):
        for command in (["run", DIGITS, "--dim", "batch=64", "--repeat", "1000000"],
                        ["bench", DIGITS, "--dim", "batch=1", "--seconds", "600"]):
            process = subprocess.Popen([PLIMSOLL, *command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out, errors), (INTERRUPTED, "", "plimsoll: interrupted\n"))


if __name__ == "__main__":
    sys.exit(counted.main())
