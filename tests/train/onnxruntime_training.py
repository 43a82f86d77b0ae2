#!/usr/bin/python3
"""ONNX Runtime's own training (onnxruntime-web 1.19.2 in Node) beside ours: the same artifacts, losses, files.

It opens the checkpoints that our tests write in its format, trains from our artifacts, and writes checkpoints of its own, which
are read here. PLIMSOLL_PYTHON names the package (build/python). The last line: N passed, M failed, K skipped.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [os.environ.get("PLIMSOLL_PYTHON", str(ROOT / "build/python")), str(ROOT / "tools"), str(ROOT / "tests/cli"),
                str(ROOT / "python/tests")]
import counted  # noqa: E402
import flat_checkpoint  # noqa: E402
import onnxruntime_npm  # noqa: E402
import plimsoll  # noqa: E402
from plimsoll.training import artifacts, onnxblock  # noqa: E402
from plimsoll.training.api import CheckpointState, Module, Optimizer  # noqa: E402

TRAINED, FROZEN = ["w1", "b1", "w2"], ["b2"]
RATE = 0.01
STEPS = 20


def weights():
    random = np.random.default_rng(0)
    return {"w1": random.standard_normal((6, 8)).astype(np.float32) / 3, "b1": random.standard_normal(8).astype(np.float32) / 9,
            "w2": random.standard_normal((8, 4)).astype(np.float32) / 3, "b2": random.standard_normal(4).astype(np.float32) / 9}


def net():
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Gemm", ["r", "w2", "b2"], ["scores"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 4])],
                              [numpy_helper.from_array(array, name) for name, array in weights().items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def batch(step):
    random = np.random.default_rng(100 + step)
    x = random.standard_normal((5, 6)).astype(np.float32)
    return x, x[:, :4].argmax(axis=1)


def with_their_gradients(model):
    """Our training model with the gradient written as ONNX Runtime's artifacts have it, which cannot take Gradient apart."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    nodes = [node for node in copy.graph.node if node.op_type != "Gradient"]
    loss = next(node for node in nodes if node.op_type == "SoftmaxCrossEntropyLoss")
    if len(loss.output) == 1:
        loss.output.append("log_prob")
    sums = [node for node in nodes if node.op_type == "InPlaceAccumulatorV2"]
    backward = [
        helper.make_node("SoftmaxCrossEntropyLossGrad", ["one", loss.output[1], "labels"], ["scores_grad"], domain="com.microsoft",
                         reduction="mean"),
        helper.make_node("Gemm", ["r", "scores_grad"], ["w2_grad"], transA=1),
        helper.make_node("Gemm", ["scores_grad", "w2"], ["r_grad"], transB=1),
        helper.make_node("ReluGrad", ["r_grad", "r"], ["h_grad"], domain="com.microsoft"),
        helper.make_node("Gemm", ["x", "h_grad"], ["w1_grad"], transA=1),
        helper.make_node("ReduceSum", ["h_grad", "first_axis"], ["b1_grad"], keepdims=0)]
    del copy.graph.node[:]
    copy.graph.node.extend([node for node in nodes if node.op_type != "InPlaceAccumulatorV2"] + backward + sums)
    copy.graph.initializer.extend([numpy_helper.from_array(np.float32(1), "one"),
                                   numpy_helper.from_array(np.array([0]), "first_axis")])
    return copy


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            onnxruntime_npm.ensure(onnxruntime_npm.TRAINING)
        except onnxruntime_npm.Unavailable as problem:
            raise unittest.SkipTest(str(problem))

    def setUp(self):
        room = tempfile.TemporaryDirectory(prefix="plimsoll-ort-training-")
        self.addCleanup(room.cleanup)
        self.room = pathlib.Path(room.name)

    def make(self, optimizer=artifacts.OptimType.AdamW):
        artifacts.generate_artifacts(net(), requires_grad=TRAINED, frozen_params=FROZEN, loss=artifacts.LossType.CrossEntropyLoss,
                                     optimizer=optimizer, artifact_directory=self.room)
        model = onnx.load(self.room / "training_model.onnx")
        onnx.save(with_their_gradients(model), self.room / "theirs.onnx")
        start = weights()
        (self.room / "start.ckpt").write_bytes(flat_checkpoint.checkpoint(
            {name: start[name] for name in TRAINED}, {name: start[name] for name in FROZEN}, ints=[("epoch", 4)]))

    def theirs(self, checkpoint, steps, **more):
        """ONNX Runtime trains."""
        batches = []
        for step in steps:
            arrays = []
            for number, array in enumerate(batch(step)):
                file = self.room / f"{step}.{number}"
                file.write_bytes(array.tobytes())
                arrays.append({"type": str(array.dtype), "dims": list(array.shape), "file": str(file)})
            batches.append(arrays)
        job = {"training": str(self.room / "theirs.onnx"), "eval": str(self.room / "eval_model.onnx"),
               "optimizer": str(self.room / "optimizer_model.onnx"), "checkpoint": str(self.room / checkpoint), "rate": RATE,
               "batches": batches, **{name: str(self.room / value) for name, value in more.items()}}
        (self.room / "job.json").write_text(json.dumps(job))
        done = subprocess.run(["node", ROOT / "tools/ort/train.mjs", self.room / "job.json"], capture_output=True, text=True,
                              env=onnxruntime_npm.environment(onnxruntime_npm.TRAINING))
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return json.loads(done.stdout.splitlines()[-1])

    def ours(self, checkpoint, steps, model="training_model.onnx"):
        """The state, and the losses of the steps with that of an evaluation behind them."""
        state = CheckpointState.load_checkpoint(self.room / checkpoint)
        module = Module(self.room / model, state, self.room / "eval_model.onnx")
        optimizer = Optimizer(self.room / "optimizer_model.onnx", module)
        optimizer.set_learning_rate(RATE)
        losses = []
        for step in steps:
            losses.append(float(module(*batch(step))))
            optimizer.step()
            module.lazy_reset_grad()
        losses.append(float(module.eval()(*batch(steps[-1]))))
        return state, module, losses

    def same_training(self):
        theirs = self.theirs("start.ckpt", range(STEPS), save="theirs.ckpt", parameters="parameters")
        for model in ("training_model.onnx", "theirs.onnx"):  # whose gradients ONNX Runtime wrote: differentiated anew
            state, module, losses = self.ours("start.ckpt", range(STEPS), model)
            np.testing.assert_allclose(losses, [*theirs["losses"], theirs["evaluated"]], rtol=2e-6, err_msg=model)
        self.assertLess(np.mean(theirs["losses"][-5:]), np.mean(theirs["losses"][:5]))
        np.testing.assert_allclose(module.get_contiguous_parameters().numpy(), np.fromfile(self.room / "parameters", np.float32),
                                   rtol=1e-4, atol=1e-6)
        return state

    def test_adamw(self):
        self.make()
        mine = self.same_training()
        # Its checkpoint, read: every bit of the parameters that its API gave out, moments, the step, what was in the file before.
        state = CheckpointState.load_checkpoint(self.room / "theirs.ckpt")
        module = Module(self.room / "training_model.onnx", state)
        self.assertEqual(module.get_contiguous_parameters().numpy().tobytes(), (self.room / "parameters").read_bytes())
        for name in TRAINED:
            for ours, found in zip(mine._moments[name], state._moments[name]):
                np.testing.assert_allclose(found, ours, rtol=1e-4, atol=1e-7)
        self.assertEqual(sorted(state._moments), sorted(TRAINED))
        self.assertEqual(state.parameters["b2"].data.tobytes(), weights()["b2"].tobytes())
        self.assertEqual((state.properties["epoch"], state.properties["plimsoll.step"]), (4, STEPS))

    def test_both_go_on_from_its_checkpoint(self):
        self.make()
        self.theirs("start.ckpt", range(STEPS), save="half.ckpt")
        theirs = self.theirs("half.ckpt", range(STEPS, 2 * STEPS))
        _, _, losses = self.ours("half.ckpt", range(STEPS, 2 * STEPS))
        np.testing.assert_allclose(losses, [*theirs["losses"], theirs["evaluated"]], rtol=2e-6)
        # With the moments forgotten they would be others.
        whole = self.theirs("start.ckpt", range(2 * STEPS))
        np.testing.assert_allclose(losses[:-1], whole["losses"][STEPS:], rtol=2e-6)

    def test_gradient_descent(self):
        self.make(artifacts.OptimType.SGD)
        self.same_training()

    def test_clipping(self):
        self.make(onnxblock.optim.AdamW(weight_decay=0.1, clip_grad=onnxblock.optim.ClipGradNorm(0.05)))
        clipped = self.same_training()
        self.make()
        self.assertFalse(np.allclose(self.ours("start.ckpt", range(STEPS))[0].parameters["w1"].data, clipped.parameters["w1"].data,
                                     rtol=1e-3))

    def test_its_checkpoint_cut_and_damaged(self):
        self.make()
        self.theirs("start.ckpt", range(2), save="theirs.ckpt")
        whole, file, random = (self.room / "theirs.ckpt").read_bytes(), self.room / "damaged", np.random.default_rng(0)
        for size in range(8, len(whole) - 64, 7):
            file.write_bytes(whole[:size])
            with self.assertRaises(plimsoll.Error):
                CheckpointState.load_checkpoint(file)
        refused = 0
        for _ in range(500):
            damaged = bytearray(whole)
            damaged[random.integers(8, len(whole))] = random.integers(0, 256)
            file.write_bytes(damaged)
            try:
                CheckpointState.load_checkpoint(file)
            except plimsoll.Error:
                refused += 1
        self.assertGreater(refused, 50)


if __name__ == "__main__":
    sys.exit(counted.main())
