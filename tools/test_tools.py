#!/usr/bin/python3
"""Tests of the scripts in tools/. The last line: N passed, M failed, K skipped."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cases
import check_includes
import join_files
import join_operators
import op_tests
from cache import whole_file
from tensor_proto import encode

TOOLS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS.parent / "bench"))
sys.path.insert(0, str(TOOLS.parent / "tests" / "reference"))
import held  # noqa: E402
import report  # noqa: E402
from fork_server import ForkServer  # noqa: E402
ONNX_CASES = pathlib.Path("/usr/share/libonnx-testdata/data/node")


class CasesOfAnOperator(unittest.TestCase):
    TEXT = 'OpCase c("Sub");\nTEST(GatherND, Picks) {\n  x;\n}\n\nTEST(Arithmetic, Adds) {\n  OpCase("Add");\n}\n'

    def test_by_suite_by_name_in_quotes_and_by_file(self):
        for operator, cases in [("gathernd", ["GatherND.Picks"]), ("add", ["Arithmetic.Adds"]),
                                ("sub", ["GatherND.Picks", "Arithmetic.Adds"]), ("gather", [])]:
            self.assertEqual(op_tests.cases_of(operator, self.TEXT), cases, operator)


class HeldToAvx2(unittest.TestCase):
    """What asks the CPU by CPUID is told of AVX2 and nothing beyond it; all else stays as it is."""
    SOURCE = r"""
        #include <cpuid.h>
        #include <stdio.h>
        void tell(void) {
          unsigned a, b, c, d;
          __cpuid_count(0, 0, a, b, c, d);
          printf("%x %x %x", b, d, c);
          __cpuid_count(7, 0, a, b, c, d);
          printf(" %u %u %u", b >> 5 & 1, b >> 16 & 1, c >> 11 & 1);
          __cpuid_count(7, 1, a, b, c, d);
          printf(" %u\n", a >> 4 & 3);
        }
    """

    def test_a_library_whose_cpuid_is_answered(self):
        with tempfile.TemporaryDirectory() as directory:
            room = pathlib.Path(directory)
            (room / "tell.c").write_text(self.SOURCE)
            (room / "main.c").write_text("void tell(void); int main(void) { tell(); return 0; }")
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", room / "libtell.so", room / "tell.c"], check=True)
            subprocess.run(["cc", "-o", room / "main", room / "main.c", "-L", room, "-ltell", f"-Wl,-rpath,{room}"], check=True)
            before = subprocess.run([room / "main"], capture_output=True, text=True, check=True).stdout.split()
            self.assertEqual(held.without_cpuid(room / "libtell.so", room / "held.so"), 3)
            (room / "held.so").rename(room / "libtell.so")
            self.assertEqual(subprocess.run([room / "main"], capture_output=True).returncode, -signal.SIGILL)
            held.build_preloaded(room / "hold.so")
            after = subprocess.run([room / "main"], capture_output=True, text=True, check=True,
                                   env=os.environ | {"LD_PRELOAD": str(room / "hold.so")}).stdout.split()
        self.assertEqual(after[:4], before[:4])  # the maker's name, AVX2
        self.assertEqual(after[4:], ["0", "0", "0"])

    def test_a_library_without_it_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            room = pathlib.Path(directory)
            (room / "empty.c").write_text("int answer(void) { return 42; }")
            subprocess.run(["cc", "-nostdlib", "-shared", "-fPIC", "-o", room / "empty.so", room / "empty.c"], check=True)
            with self.assertRaises(ValueError):
                held.without_cpuid(room / "empty.so", room / "copy.so")


class JoinedOperators(unittest.TestCase):
    """Files that are compiled as one give each other nothing but their OpDefs."""
    FILE = ('#include "graph/op_def.h"\n\nnamespace plimsoll {\nnamespace {\n\nvoid run(const RunContext& c) {\n}\n\n'
            '}  // namespace\n\nextern const OpDef op_add = {\n    .name = "Add",\n    .run = run,\n};\n\n}  // namespace plimsoll\n')

    def test_which_can_be_joined(self):
        self.assertTrue(join_operators.can_be_joined("add", self.FILE))
        end = "\n}  // namespace plimsoll"
        for spoiled in [self.FILE.replace("op_add", "op_sub"),
                        self.FILE.replace(end, "\nvoid run_add(const RunContext& c) {\n}\n" + end),
                        self.FILE.replace(end, "\nconst int kMost = 3;\n" + end),
                        self.FILE.replace("namespace {\n", "extern const OpDef op_sub;\nnamespace {\n"),
                        self.FILE.replace("\nnamespace plimsoll {", "#define MOST 3\n\nnamespace plimsoll {")]:
            self.assertNotEqual(spoiled, self.FILE)
            self.assertFalse(join_operators.can_be_joined("add", spoiled), spoiled)

    def test_a_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            file, unit = pathlib.Path(folder, "add.cpp"), pathlib.Path(folder, "unit.cpp")
            file.write_text(self.FILE)
            subprocess.run([TOOLS / "join_operators.py", "--output", unit, file], check=True)
            self.assertIn(f'#line 1 "{file}"\n', unit.read_text())
            self.assertIn("namespace plimsoll::in_add {\n", unit.read_text())


class JoinedFiles(unittest.TestCase):
    """Files are compiled as one if no name of theirs has another meaning there."""
    HELPER = "namespace plimsoll {\nnamespace {\n\nint helper(int a) {\n  return a;\n}\n\n}  // namespace\n\n}  // namespace plimsoll\n"

    def units(self, lines=1000, **texts):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                pathlib.Path(folder, name.replace("_h", ".h") if name.endswith("_h") else f"{name}.cpp").write_text(text)
            known, files = {}, sorted(pathlib.Path(folder).glob("*.cpp"))
            sources = [join_files.Source(file, [pathlib.Path(folder)], known) for file in files]
            return [[file.stem for file in unit] for unit in join_files.units_of(sources, lines)]

    def test_names(self):
        local, every = join_files.names_of(self.HELPER + "namespace plimsoll {\nint given(int a);\nusing std::min;  // helps()\n}\n")
        self.assertEqual((local, every), ({"helper"}, {"helper", "given", "min"}))
        for line, name in [("constexpr std::array<int, 3> kSizes = {1, 2, 3};", "kSizes"), ("enum class Kind : uint8_t {", "Kind"),
                           ("std::vector<std::pair<int, int>> pairs_of(int a) {", "pairs_of"), ("  return helper(1);", None),
                           ("using Clock = std::chrono::steady_clock;", "Clock"), ("namespace fs = std::filesystem;", None),
                           ("struct Node;", None), ("Graph::Graph(int a) : a_(a) {", None), ("struct Node {", "Node")]:
            self.assertEqual(join_files.declared_name(line), name, line)

    def test_who_meets(self):
        other = self.HELPER.replace("helper", "other")
        self.assertEqual(self.units(a=self.HELPER, b=other), [["a", "b"]])
        self.assertEqual(self.units(a=self.HELPER, b=self.HELPER, c=other), [["a", "c"]])
        self.assertEqual(self.units(a=self.HELPER, b=other, lines=12), [])
        self.assertEqual(self.units(a=self.HELPER, b="#define MOST 3\n"), [])

    def test_headers_count(self):
        self.assertEqual(self.units(a=self.HELPER, b='#include "given.h"\n', given_h="int helper();\n"), [])
        self.assertEqual(self.units(a='#include "x.h"\n', b='#include "y.h"\n', x_h="constexpr int kMost = 1;\n",
                                    y_h="constexpr int kMost = 2;\n"), [])
        self.assertEqual(self.units(a="struct Note {\n};\n", b='#include "x.h"\n', x_h="struct Note {\n};\n"), [])
        self.assertEqual(self.units(a="struct Note {\n};\n", b='#include "x.h"\n', x_h="struct Note;\n"), [["a", "b"]])
        self.assertEqual(self.units(a='#include "x.h"\n', b='#include "x.h"\n', x_h="constexpr int kMost = 1;\n"), [["a", "b"]])


class BenchReport(unittest.TestCase):
    """README's tables and the bars come from the last result of each kind of machine."""
    ROW = {"model": "net", "threads": 1, "plimsoll": {"min_ms": 1.0, "cold_start_ms": 3.0}, "ort": {"min_ms": 2.0}}
    RESULT = {"date": "2026-01-01", "machine": {"cpu": "AMD EPYC (Zen 4)"}, "instruction_set": "avx512", "rows": [ROW]}

    def test_ratios_and_what_is_missing(self):
        self.assertEqual(report.ratio(self.ROW, "min_ms"), 0.5)
        self.assertIsNone(report.ratio(self.ROW, "cold_start_ms"))  # theirs is not known
        self.assertAlmostEqual(report.geometric_mean([0.5, None, 2.0]), 1.0)

    def test_what_held_both_engines_is_said(self):
        held_result = self.RESULT | {"machine": {"cpu": "AMD EPYC (Zen 5), both held to AVX2"}, "instruction_set": "avx2"}
        self.assertEqual(report.label(held_result), "AMD EPYC (Zen 5), both held to AVX2")
        self.assertEqual(report.label(self.RESULT), "AMD EPYC (Zen 4), AVX-512")

    def test_the_pages_between_their_marks(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            (root / "bench" / "results").mkdir(parents=True)
            (root / "docs").mkdir()
            (root / "bench" / "results" / "a.json").write_text(json.dumps(self.RESULT))
            (root / "bench" / "results" / "other.json").write_text("{}")
            pages = [root / "README.md", root / "docs" / "benchmarks.md"]
            for page in pages:
                page.write_text(f"before\n{report.BEGIN}\noutdated\n{report.END}\nafter\n")
            with contextlib.redirect_stdout(None):
                report.write(root)
                report.write(root)  # a second time changes nothing
            for page in pages:
                text = page.read_text()
                self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
                self.assertNotIn("outdated", text)
                self.assertEqual(text.count("AMD EPYC (Zen 4), AVX-512"), 1)
            self.assertIn("| AMD EPYC (Zen 4), AVX-512 | **0.50** | 0.50 to 0.50 | - |", pages[0].read_text())
            self.assertIn("| net | 0.50 |", pages[1].read_text())
            self.assertIn(">0.50</text>", (root / "docs" / "benchmarks.svg").read_text())


class IncludeRule(unittest.TestCase):
    """Each test writes a small tree with one violation and expects it, and nothing else, to be named."""

    def problems(self, path, line):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            files = {"src/CMakeLists.txt": "plimsoll_folder(base)\nplimsoll_folder(plan FOLDERS base)\n"
                                           "plimsoll_folder(runtime LINK x FOLDERS base plan)\n",
                     path: line}
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            folders = check_includes.read_folders(root)
            return [*check_includes.check_order(folders), *check_includes.check_src(root, folders),
                    *check_includes.check_public(root), *check_includes.check_apps(root, folders)]

    def test_what_is_allowed(self):
        for path, line in [("src/runtime/a.cpp", '#include "plan/plan.h"'), ("src/plan/a.h", '#include "plan/b.h"'),
                           ("src/base/a.h", "#include <plimsoll/error.h>"), ("src/base/a.h", "#include <vector>"),
                           ("apps/cli/a.cpp", "#include <CLI/CLI.hpp>"), ("include/plimsoll/a.h", "#include <span>")]:
            self.assertEqual(self.problems(path, line), [], line)

    def test_what_is_not(self):
        for path, line in [("src/plan/a.cpp", '#include "runtime/a.h"'), ("src/base/a.h", '#include "../plan/a.h"'),
                           ("src/base/a.h", '  #  include "plan/a.h"'), ("src/other/a.h", "#include <vector>"),
                           ("apps/cli/a.cpp", '#include "base/a.h"'), ("apps/cli/a.cpp", '#include "../../src/a.h"'),
                           ("python/bindings/a.cpp", '#include "base/a.h"'),
                           ("include/plimsoll/a.h", "#include <fmt/core.h>"),
                           ("include/plimsoll/a.h", '#include "base/a.h"')]:
            found = self.problems(path, line)
            self.assertEqual(len(found), 1, f"{path}: {line}")
            self.assertIn(path, found[0])

    def test_a_list_that_looks_down(self):
        self.assertEqual(list(check_includes.check_order({"base": ["plan"], "plan": []})),
                         ["src/CMakeLists.txt: base lists plan, which is not above it"])


class TensorProto(unittest.TestCase):
    @unittest.skipUnless(ONNX_CASES.is_dir(), "libonnx-testdata is not installed")
    def test_same_bytes_as_onnx(self):
        """ONNX's own file for Shape's output: name "y", two int64 values, 2 and 3."""
        theirs = (ONNX_CASES / "test_shape_example" / "test_data_set_0" / "output_0.pb").read_bytes()
        self.assertEqual(encode("y", np.array([2, 3], np.int64)), theirs)

    def test_scalar_and_long_dimension(self):
        self.assertEqual(encode("s", np.array(1, np.uint8)), b"\x10\x02\x42\x01s\x4a\x01\x01")
        self.assertTrue(encode("s", np.zeros((300, 0), np.float32)).startswith(b"\x08\xac\x02\x08\x00\x10\x01"))


class SeveralCommandsInAFork(unittest.TestCase):
    """What a sanitizer finds is told of the command, and a leak of the last one in its fork (tests/reference/fork_server.cpp)."""
    LIBRARY = TOOLS.parent / "build" / "tests" / "fork_server.so"
    PROGRAM = """
      #include <cstdlib>
      #include <string>
      int main(int argc, char** argv) {
        const std::string asked = argv[1];
        if (asked == "leak") *static_cast<volatile char*>(std::malloc(10)) = 1;
        volatile char* four = new char[4]();
        const int code = asked == "overflow" ? four[argc + 2] : asked == "three" ? 3 : 0;
        delete[] four;
        return code;
      }"""

    def answers(self, folder, per_fork, commands):
        server = ForkServer(f"{folder}/program", str(self.LIBRARY), per_fork)
        found = []
        for command in commands:
            code = server.run(["program", command], f"{folder}/stdout", f"{folder}/stderr")
            complaint = pathlib.Path(folder, "stderr").read_text()
            finder = [name for name in ("AddressSanitizer", "LeakSanitizer") if f"ERROR: {name}" in complaint]
            found.append(finder[0] if finder else code)
        server.close()
        return found

    @unittest.skipUnless(LIBRARY.exists(), "the tests are not built")
    def test_findings(self):
        overflow, leak = "AddressSanitizer", "LeakSanitizer"
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["g++", "-g", "-fsanitize=address", "-x", "c++", "-", "-o", f"{folder}/program"], input=self.PROGRAM,
                           text=True, check=True)
            self.assertEqual(self.answers(folder, 1, ["ok", "three", "leak", "overflow", "ok"]), [0, 3, leak, overflow, 0])
            self.assertEqual(self.answers(folder, 3, ["ok", "three", "leak", "leak", "three", "ok", "overflow", "ok"]),
                             [0, 3, leak, 0, 3, leak, overflow, 0])


class WholeFile(unittest.TestCase):
    def test_a_failure_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "deep" / "model"
            with self.assertRaises(RuntimeError), whole_file(path) as temporary:
                temporary.write_text("half")
                raise RuntimeError
            self.assertEqual(list(path.parent.iterdir()), [])
            with whole_file(path) as temporary:
                temporary.write_text("whole")
            self.assertEqual([path], list(path.parent.iterdir()))


class Cases(unittest.TestCase):
    def test_inputs_are_the_same_on_every_call(self):
        for name in ("ppocr4_rec", "minilm_l6", "silero_vad_v5"):
            for index in range(cases.data_set_count(name)):
                for (key, a), b in zip(cases.data_set(name, index).items(), cases.data_set(name, index).values()):
                    np.testing.assert_array_equal(a, b, f"{name}/{index}/{key}")

    def test_padding_is_masked(self):
        feed = cases.data_set("minilm_l6", 1)
        np.testing.assert_array_equal(feed["input_ids"] != 0, feed["attention_mask"] == 1)
        self.assertLess(feed["attention_mask"].sum(), feed["attention_mask"].size)


FAKE_COMMAND = """#!/bin/sh
case "$*" in
  --version) echo "plimsoll 1.2.3" ;;
  --help) printf 'Does things.\\nUsage: plimsoll [OPTIONS] SUBCOMMAND\\n\\nOptions:\\n  -h,--help                   Help\\n\\n'
    printf 'Subcommands:\\n  place                       Gives offsets\\n\\nExample: plimsoll place a.csv\\n' ;;
  "place --help") printf 'Gives offsets\\nUsage: plimsoll place [OPTIONS] FILE\\n\\nPositionals:\\n  FILE TEXT REQUIRED          .rows\\n\\n'
    printf 'Options:\\n  -h,--help                   Help\\n  --placer TEXT:{naive,greedy}\\n                              how\\n' ;;
esac
"""


class CommandPages(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        command = self.folder / "plimsoll"
        command.write_text(FAKE_COMMAND)
        command.chmod(0o755)
        subprocess.run([TOOLS / "command_pages.py", command, self.folder / "pages"], check=True)

    def test_a_page_for_each_command(self):
        pages = {page.name: page.read_text() for page in (self.folder / "pages/man1").iterdir()}
        self.assertEqual(sorted(pages), ["plimsoll-place.1", "plimsoll.1"])
        self.assertIn(".SH NAME\nplimsoll\\-place \\- Gives offsets\n", pages["plimsoll-place.1"])
        self.assertIn(".TP\n.B \\-\\-placer TEXT:{naive,greedy}\nhow\n", pages["plimsoll-place.1"])
        self.assertIn("\n\\&.rows\n", pages["plimsoll-place.1"])  # text, not a request
        self.assertIn("plimsoll place a.csv", pages["plimsoll.1"])
        self.assertIn(".BR plimsoll\\-place (1)", pages["plimsoll.1"])

    def complete(self, *words):
        script = (f"source {self.folder}/pages/plimsoll.bash; compopt() {{ echo files; }}; COMP_WORDS=({' '.join(map(repr, words))}); "
                  f"COMP_CWORD={len(words) - 1}; _plimsoll; echo ${{COMPREPLY[*]}}")
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    def test_completion(self):
        self.assertEqual(self.complete("plimsoll", "pl"), ["place"])
        self.assertEqual(self.complete("plimsoll", "place", "--p"), ["--placer"])
        self.assertEqual(self.complete("plimsoll", "place", "--placer", ""), ["naive", "greedy"])
        self.assertEqual(self.complete("plimsoll", "place", ""), ["files"])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(1 if failed else 0)
