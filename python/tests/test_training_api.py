"""artifacts, onnxblock and training.api: ONNX Runtime's contract, numbers against PyTorch and numpy."""
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="no python3-onnx")
torch = pytest.importorskip("torch", reason="no python3-torch")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import flat_checkpoint  # noqa: E402
import plimsoll  # noqa: E402
from plimsoll.training import artifacts, onnxblock  # noqa: E402
from plimsoll.training.api import CheckpointState, LinearLRScheduler, Module, Optimizer  # noqa: E402

NAMES = ["w1", "b1", "w2", "b2"]


def weights(seed=0):
    random = np.random.default_rng(seed)
    return {"w1": random.standard_normal((6, 8)).astype(np.float32) / 3, "b1": np.zeros(8, np.float32),
            "w2": random.standard_normal((8, 4)).astype(np.float32) / 3, "b2": np.zeros(4, np.float32)}


def net(**changes):
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]), helper.make_node("Tanh", ["h"], ["t"]),
             helper.make_node("Gemm", ["t", "w2", "b2"], ["scores"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 4])],
                              [numpy_helper.from_array(array, name) for name, array in weights().items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def made(folder, **options):
    settings = {"requires_grad": NAMES, "loss": artifacts.LossType.CrossEntropyLoss, "optimizer": artifacts.OptimType.AdamW, **options}
    artifacts.generate_artifacts(net(), artifact_directory=folder, **settings)
    state = CheckpointState.load_checkpoint(folder / "checkpoint")
    module = Module(folder / "training_model.onnx", state, folder / "eval_model.onnx")
    optimizer = Optimizer(folder / "optimizer_model.onnx", module) if settings["optimizer"] else None
    return state, module, optimizer


def batch(step):
    random = np.random.default_rng(100 + step)
    return random.standard_normal((5, 6)).astype(np.float32), random.integers(0, 4, 5)


def torch_step(parameters, x, labels):
    """The loss and gradients by PyTorch, in double."""
    tensors = {name: torch.tensor(array, dtype=torch.float64, requires_grad=True) for name, array in parameters.items()}
    scores = torch.tanh(torch.tensor(x).double() @ tensors["w1"] + tensors["b1"]) @ tensors["w2"] + tensors["b2"]
    loss = torch.nn.functional.cross_entropy(scores, torch.tensor(labels))
    loss.backward()
    return loss.item(), {name: tensor.grad.numpy() for name, tensor in tensors.items()}


def close(ours, theirs, tolerance=2e-5):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * max(1e-3, np.abs(theirs).max()))


def test_the_graphs_have_onnx_runtimes_inputs_and_outputs(tmp_path):
    made(tmp_path, requires_grad=NAMES[:3], frozen_params=["b2"])
    graph = onnx.load(tmp_path / "training_model.onnx").graph
    buffers = [f"{name}_grad.accumulation.buffer" for name in NAMES[:3]]
    assert [value.name for value in graph.input] == ["x", "labels", *NAMES, *buffers, "lazy_reset_grad"]
    assert [value.name for value in graph.output][1:] == [f"{name}_grad.accumulation.out" for name in NAMES[:3]]
    assert not graph.initializer
    assert [value.name for value in onnx.load(tmp_path / "eval_model.onnx").graph.input] == ["x", "labels", *NAMES]
    graph = onnx.load(tmp_path / "optimizer_model.onnx").graph
    assert [value.name for value in graph.input] == ["learning_rate", "step", "params", "gradients", "first_order_moments",
                                                     "second_order_moments"]
    assert [node.op_type for node in graph.node] == ["AdamWOptimizer"]


def test_steps_of_adamw(tmp_path):
    state, module, optimizer = made(tmp_path)
    optimizer.set_learning_rate(0.01)
    theirs = {name: array.astype(np.float64) for name, array in weights().items()}
    moments = {name: [np.zeros_like(array), np.zeros_like(array)] for name, array in theirs.items()}
    for step in range(1, 21):
        x, labels = batch(step)
        expected, gradients = torch_step(theirs, x, labels)
        close(module(x, labels), expected, 1e-5 * step)
        for name, gradient in gradients.items():
            close(state.parameters[name].grad, gradient, 1e-4)
            m, v = moments[name]
            m[...] = 0.9 * m + 0.1 * gradient
            v[...] = 0.999 * v + 0.001 * gradient**2
            theirs[name] -= 0.01 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step) * m / (np.sqrt(v) + 1e-6)
        optimizer.step()
        module.lazy_reset_grad()
        for name in NAMES:
            close(state.parameters[name].data, theirs[name], 1e-3)
    module.eval()
    assert module.input_names() == ["x", "labels"] and len(module.output_names()) == 1
    close(module(*batch(1)), torch_step(theirs, *batch(1))[0], 1e-3)
    module.export_model_for_inferencing(tmp_path / "trained.onnx", ["scores"])
    scores, = plimsoll.InferenceSession(tmp_path / "trained.onnx").run(None, {"x": batch(1)[0]})
    t = np.tanh(batch(1)[0] @ theirs["w1"] + theirs["b1"]) @ theirs["w2"] + theirs["b2"]
    close(scores, t, 1e-3)


def test_gradients_add_up_until_they_are_reset(tmp_path):
    state, module, _ = made(tmp_path)
    first, second = (torch_step(weights(), *batch(step))[1] for step in (1, 2))
    module(*batch(1))
    module(*batch(2))
    for name in NAMES:
        close(state.parameters[name].grad, first[name] + second[name], 1e-4)
    module.lazy_reset_grad()
    module(*batch(2))
    for name in NAMES:
        close(state.parameters[name].grad, second[name], 1e-4)


def test_gradient_descent_with_clipping_and_frozen_parameters(tmp_path):
    clipped = onnxblock.optim.SGD(onnxblock.optim.ClipGradNorm(0.1))
    state, module, optimizer = made(tmp_path, requires_grad=["w1", "w2"], frozen_params=["b1", "b2"], optimizer=clipped)
    assert state.parameters["w1"].requires_grad and not state.parameters["b1"].requires_grad
    assert state.parameters["b1"].grad is None
    optimizer.set_learning_rate(0.5)
    _, gradients = torch_step(weights(), *batch(1))
    norm = np.sqrt(sum((gradients[name]**2).sum() for name in ("w1", "w2")))
    module(*batch(1))
    optimizer.step()
    for name in ("w1", "w2"):
        close(state.parameters[name].data, weights()[name] - 0.5 * min(1, 0.1 / (norm + 1e-6)) * gradients[name], 1e-4)
    assert np.array_equal(state.parameters["b1"].data, weights()["b1"])
    assert module.get_parameters_size() == 48 + 32 and module.get_parameters_size(False) == 48 + 32 + 8 + 4


def test_training_goes_on_from_a_checkpoint_to_the_bit(tmp_path):
    def steps(module, optimizer, numbers):
        for step in numbers:
            module(*batch(step))
            optimizer.step()
            module.lazy_reset_grad()

    state, module, optimizer = made(tmp_path)
    state.properties["epoch"], state.properties["name"], state.properties["best"] = 3, "net", 0.5
    steps(module, optimizer, range(5))
    CheckpointState.save_checkpoint(state, tmp_path / "half", include_optimizer_state=True)
    steps(module, optimizer, range(5, 9))
    other = CheckpointState.load_checkpoint(tmp_path / "half")
    assert (other.properties["epoch"], other.properties["name"], other.properties["best"]) == (3, "net", 0.5)
    again = Module(tmp_path / "training_model.onnx", other)
    steps(again, Optimizer(tmp_path / "optimizer_model.onnx", again), range(5, 9))
    for name, parameter in state.parameters:
        assert np.array_equal(parameter.data, other.parameters[name].data), name
    CheckpointState.save_checkpoint(state, tmp_path / "plain")
    assert not CheckpointState.load_checkpoint(tmp_path / "plain")._moments


def test_parameters_in_one_piece(tmp_path):
    state, module, _ = made(tmp_path)
    flat = module.get_contiguous_parameters().numpy().copy()
    assert flat.size == module.get_parameters_size()
    module.copy_buffer_to_parameters(plimsoll.OrtValue.ortvalue_from_numpy(flat * 2))
    close(state.parameters["w1"].data, 2 * weights()["w1"])
    state.parameters["b1"].data = np.ones(8, np.float32)
    loss, _ = torch_step({name: parameter.data for name, parameter in state.parameters}, *batch(0))
    close(module(*batch(0)), loss)  # it is the memory that the session reads


def test_schedule(tmp_path):
    _, _, optimizer = made(tmp_path)
    scheduler = LinearLRScheduler(optimizer, 2, 6, 0.1)
    rates = []
    for _ in range(8):
        rates.append(round(optimizer.get_learning_rate(), 6))
        scheduler.step()
    assert rates == [0, 0.05, 0.1, 0.075, 0.05, 0.025, 0, 0]


@pytest.mark.parametrize("loss, ours, target", [
    (artifacts.LossType.MSELoss, lambda s, t: ((s - t)**2).mean(), 1.0), (artifacts.LossType.L1Loss, lambda s, t: np.abs(s - t).mean(), 1.0),
    (artifacts.LossType.BCEWithLogitsLoss, lambda s, t: (np.logaddexp(0, s) - s * t).mean(), 0.5)])
def test_losses(tmp_path, loss, ours, target):
    state, module, _ = made(tmp_path, loss=loss)
    x, goal = batch(3)[0], np.full((5, 4), target, np.float32)

    def value(parameters):
        return ours(np.tanh(x @ parameters["w1"].astype(np.float64) + parameters["b1"]) @ parameters["w2"] + parameters["b2"], goal)

    close(module(x, goal), value(weights()))
    direction = {name: np.random.default_rng(5).standard_normal(array.shape) for name, array in weights().items()}
    slope = sum((state.parameters[name].grad * direction[name]).sum() for name in NAMES)
    ahead, behind = ({name: array + sign * 1e-6 * direction[name] for name, array in weights().items()} for sign in (1, -1))
    assert slope == pytest.approx((value(ahead) - value(behind)) / 2e-6, rel=1e-3)


def test_blocks_of_ones_own(tmp_path):
    class Weighted(onnxblock.Block):
        def __init__(self):
            super().__init__()
            self.mse, self.l1, self.add, self.mul = onnxblock.loss.MSELoss(), onnxblock.loss.L1Loss(), onnxblock.blocks.Add(), onnxblock.blocks.Mul()

        def build(self, scores):
            half = onnxblock.blocks.Constant(0.5)()
            return self.add(self.mse(scores), self.mul(self.l1(scores), half))

    _, module, _ = made(tmp_path, loss=Weighted())
    x, goal = batch(3)[0], np.ones((5, 4), np.float32)
    w = weights()
    scores = np.tanh(x @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]
    close(np.ravel(module(x, goal)), [((scores - 1)**2).mean() + 0.5 * np.abs(scores - 1).mean()])


def test_what_is_wrong_is_told(tmp_path):
    state, module, optimizer = made(tmp_path)
    before = {name: parameter.data.copy() for name, parameter in state.parameters}
    x, labels = batch(0)
    with pytest.raises(ValueError, match="expected 2 inputs"):
        module(x)
    with pytest.raises(ValueError, match="labels|target|class"):
        module(x, labels + 9)
    with pytest.raises(ValueError):
        module(x[:, :3], labels)
    for rate in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="learning rate"):
            optimizer.set_learning_rate(rate)
    assert all(np.array_equal(before[name], parameter.data) for name, parameter in state.parameters)
    with pytest.raises(ValueError, match="eval model"):
        Module(tmp_path / "training_model.onnx", state).eval()(x, labels)
    with pytest.raises(RuntimeError, match="'w9'"):
        made(tmp_path, requires_grad=["w9"])
    with pytest.raises(RuntimeError, match="frozen"):
        made(tmp_path, frozen_params=["w1"])
    with pytest.raises(KeyError, match="w9"):
        state.parameters["w9"]
    with pytest.raises(ValueError, match="w1"):
        state.parameters["w1"].data = np.zeros(3, np.float32)
    (tmp_path / "nonsense").write_bytes(b"nonsense" * 100)
    with pytest.raises(ValueError):
        CheckpointState.load_checkpoint(tmp_path / "nonsense")
    with pytest.raises(ValueError):
        Module(tmp_path / "nonsense", state)
    with pytest.raises(FileNotFoundError):
        CheckpointState.load_checkpoint(tmp_path / "absent")


# --- ONNX Runtime's own checkpoints -----------------------------------------------------------------------------------


def test_onnx_runtimes_checkpoint(tmp_path):
    arrays, random = weights(3), np.random.default_rng(1)
    moments = {name: [random.standard_normal(arrays[name].shape).astype(np.float32) for _ in range(2)] for name in NAMES[:3]}
    file = tmp_path / "theirs"
    file.write_bytes(flat_checkpoint.checkpoint({name: arrays[name] for name in NAMES[:3]}, {"b2": arrays["b2"]}, moments, step=8,
                                                rate=0.25, ints=[("epoch", 4)], floats=[("best", 0.5)], texts=[("name", "net")]))
    state = CheckpointState.load_checkpoint(file)
    assert sorted(name for name, _ in state.parameters) == sorted(NAMES)
    for name in NAMES:
        assert np.array_equal(state.parameters[name].data, arrays[name])
    for name, pair in moments.items():
        assert all(np.array_equal(a, b) for a, b in zip(state._moments[name], pair))
    assert (state.properties["epoch"], state.properties["best"], state.properties["name"]) == (4, 0.5, "net")
    made(tmp_path, requires_grad=NAMES[:3], frozen_params=["b2"])
    module = Module(tmp_path / "training_model.onnx", state)
    optimizer = Optimizer(tmp_path / "optimizer_model.onnx", module)
    assert optimizer._step == 9 and optimizer.get_learning_rate() == 0.25
    close(module(*batch(0)), torch_step(arrays, *batch(0))[0])


def test_onnx_runtimes_checkpoint_cut_and_damaged(tmp_path):
    whole = flat_checkpoint.checkpoint({"w": np.ones((2, 3), np.float32)}, {}, {"w": [np.ones((2, 3), np.float32)]}, ints=[("n", 1)])
    file, random = tmp_path / "theirs", np.random.default_rng(0)
    refused = 0
    for size in range(8, len(whole) - 8, 3):
        file.write_bytes(whole[:size])
        with pytest.raises(plimsoll.Error):
            CheckpointState.load_checkpoint(file)
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            damaged[random.integers(8, len(whole))] = random.integers(0, 256)
        file.write_bytes(damaged)
        try:
            CheckpointState.load_checkpoint(file)
        except plimsoll.Error:
            refused += 1
    assert refused > 100
    file.write_bytes(flat_checkpoint.checkpoint({}, {}, nominal=True))
    with pytest.raises(NotImplementedError, match="tensors"):
        CheckpointState.load_checkpoint(file)


class Normalized(torch.nn.Module):
    """A module with running statistics, one of its norms called twice."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8, momentum=0.2)
        self.second, self.last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)
        self.other = torch.nn.BatchNorm1d(8)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        return self.last(self.other(torch.relu(self.norm(self.second(x)))))


def test_running_statistics_are_pytorchs(tmp_path):
    torch.manual_seed(5)
    net, rows = Normalized(), 5
    torch.onnx.export(net, torch.randn(rows, 6), str(tmp_path / "net.onnx"), input_names=["x"], output_names=["scores"],
                      opset_version=15, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      dynamic_axes={"x": {0: "batch"}, "scores": {0: "batch"}})
    names = [name for name, _ in net.named_parameters()]
    artifacts.generate_artifacts(str(tmp_path / "net.onnx"), requires_grad=names, loss=artifacts.LossType.CrossEntropyLoss,
                                 optimizer=artifacts.OptimType.AdamW, artifact_directory=tmp_path)
    state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    module = Module(tmp_path / "training_model.onnx", state, tmp_path / "eval_model.onnx")
    # ONNX takes the variance of the batch, PyTorch that of the samples: n / (n - 1) of it in every step.
    variances = {name: buffer.clone() for name, buffer in net.named_buffers() if name.endswith("var")}
    for step in range(1, 6):
        x, labels = batch(step)
        before = {name: buffer.clone() for name, buffer in net.named_buffers()}
        torch.nn.functional.cross_entropy(net(torch.tensor(x)), torch.tensor(labels))
        module(x, labels)
        for name, buffer in net.named_buffers():
            if name.endswith("mean"):
                close(state.parameters[name].data, buffer.numpy())
        keep = 0.9
        name = "other.running_var"
        taken = (net.other.running_var - keep * before[name]) / (1 - keep) * (rows - 1) / rows
        variances[name] = keep * variances[name] + (1 - keep) * taken
        close(state.parameters[name].data, variances[name].numpy())
    assert not state.parameters["norm.running_mean"].requires_grad
    # What was learned is used by the evaluation, and is in the file.
    with torch.no_grad():
        net.eval()
        for name, buffer in net.named_buffers():
            if name.endswith("var"):
                buffer.copy_(torch.tensor(state.parameters[name].data))
        module.eval()
        x, labels = batch(9)
        close(module(x, labels), torch.nn.functional.cross_entropy(net(torch.tensor(x)), torch.tensor(labels)).numpy())
    CheckpointState.save_checkpoint(state, tmp_path / "later")
    again = CheckpointState.load_checkpoint(tmp_path / "later")
    np.testing.assert_array_equal(again.parameters["norm.running_mean"].data, state.parameters["norm.running_mean"].data)
