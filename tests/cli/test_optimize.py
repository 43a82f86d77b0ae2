#!/usr/bin/python3
"""What `plimsoll optimize` writes is ONNX: ONNX's own checker accepts it, and ONNX Runtime opens it where it is installed.

PLIMSOLL names the command (build/plimsoll). The last line: N passed, M failed, K skipped.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import counted

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLIMSOLL = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
LEVELS = ("none", "basic", "extended", "all")
OURS = "ai.plimsoll"

sys.path.insert(0, str(ROOT / "tools"))
import onnxruntime_npm  # noqa: E402

try:
    import onnx
    from onnx import TensorProto, helper
    NO_ONNX = None if hasattr(onnx, "checker") else "no python3-onnx"
except ImportError:
    NO_ONNX = "no python3-onnx"


def some_models():
    """The examples, every model of several layers, and one of eight of ONNX's own cases."""
    nodes = sorted(DATA.glob("node/*/model.onnx"))
    whole = sorted(DATA.glob("simple/*/model.onnx")) + sorted(DATA.glob("pytorch-*/*/model.onnx"))
    return sorted((ROOT / "examples").glob("*.onnx")) + whole + nodes[::8]


def problem(model):
    """What ONNX's checker has against it."""
    try:
        onnx.checker.check_model(str(model), full_check=True)
    except Exception as error:  # its errors have no common type
        return str(error)
    return None


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from nodes_of(body)


@unittest.skipIf(NO_ONNX, NO_ONNX)
class Optimize(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-optimize-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def call(self, *arguments):
        return subprocess.run([PLIMSOLL, *map(str, arguments)], capture_output=True, text=True, timeout=120)

    def write(self, model, level, *options):
        """The written file, or None where the model has operators that we lack."""
        made = self.directory / f"{len(list(self.directory.iterdir()))}.onnx"
        done = self.call("optimize", model, made, "--level", level, "--check-passes", *options)
        if done.returncode == 5:
            return None
        self.assertEqual(done.returncode, 0, f"{model}: {done.stderr}")
        return made

    def test_what_is_written_is_onnx(self):
        written = []
        for model in some_models():
            refused = problem(model)
            for level in LEVELS:
                made = self.write(model, level)
                if made is None:
                    break
                written.append((made, model))
                if refused is None:
                    self.assertIsNone(problem(made), f"{model} at level {level}")
                for node in nodes_of(onnx.load(made, load_external_data=False).graph):
                    self.assertNotEqual(node.domain, OURS, f"{model} at level {level}: {node.op_type}")
        self.assertGreater(len(written), 100)
        self.open_with_onnx_runtime(written)

    def open_with_onnx_runtime(self, written):
        if onnxruntime_npm.installed_version() is None or shutil.which("node") is None:
            print("not opened with ONNX Runtime, which is not installed")
            return
        lines = self.directory / "list"
        lines.write_text("".join(f"{made} {model}\n" for made, model in written))
        done = subprocess.run(["node", str(ROOT / "tests" / "onnx" / "ort_opens.js"), str(lines)], capture_output=True,
                              text=True, timeout=600, env=onnxruntime_npm.environment())
        self.assertEqual(done.returncode, 0, done.stderr[-3000:] + done.stdout)

    def test_our_own_operators_stay_in_our_domain(self):
        digits = ROOT / "examples" / "digits.onnx"
        made = self.write(digits, "all", "--fused-domain", OURS)
        model = onnx.load(made)
        last = [n for n in nodes_of(model.graph) if any(a.name == "channels_last" for a in n.attribute)]
        self.assertTrue(last)
        self.assertEqual({n.domain for n in last}, {OURS})
        self.assertIn(OURS, {i.domain for i in model.opset_import})
        self.assertIsNone(problem(made))  # an unknown domain is nothing to complain of
        again = self.write(made, "all", "--fused-domain", OURS)
        self.assertEqual([n.op_type for n in onnx.load(again).graph.node], [n.op_type for n in model.graph.node])

    def test_functions_are_written_out(self):
        leaky = helper.make_node("LeakyRelu", ["x"], ["y"])
        reference = leaky.attribute.add()
        reference.name, reference.ref_attr_name, reference.type = "alpha", "slope", onnx.AttributeProto.FLOAT
        function = helper.make_function("local", "F", ["x"], ["y"], [leaky], [helper.make_opsetid("", 15)], ["slope"])
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3])  # noqa: E731
        nodes = [helper.make_node("F", ["a"], ["b"], domain="local", slope=0.5),
                 helper.make_node("F", ["b"], ["c"], domain="local", slope=0.25)]
        imports = [helper.make_opsetid("", 15), helper.make_opsetid("local", 1)]
        model = helper.make_model(helper.make_graph(nodes, "g", [value("a")], [value("c")]), opset_imports=imports,
                                  functions=[function], ir_version=8)
        path = self.directory / "functions.onnx"
        onnx.save(model, path)
        for level in LEVELS:
            made = self.write(path, level)
            self.assertEqual([n.op_type for n in onnx.load(made).graph.node], ["LeakyRelu", "LeakyRelu"])
            self.assertIsNone(problem(made))
            self.assertEqual(self.call("run", path, "--dim", "n=2", "--level", level).returncode, 0)
        listed = self.call("inspect", path).stdout
        self.assertIn("local.F", listed)
        self.assertIn("LeakyRelu", listed)
        self.assertNotIn("not implemented", listed)
        model.functions[0].node.append(helper.make_node("Nonsense", ["y"], ["z"]))
        onnx.save(model, path)
        self.assertIn("Nonsense  (not implemented)", self.call("inspect", path).stdout)


if __name__ == "__main__":
    sys.exit(counted.main())
