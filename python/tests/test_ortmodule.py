"""ORTModule against PyTorch itself: losses, gradients, buffers, step by step."""
import copy
import gc
import pickle
import warnings
from collections import namedtuple

import pytest

torch = pytest.importorskip("torch", reason="no python3-torch")

from torch import nn  # noqa: E402

import ortmodule_nets as nets  # noqa: E402
from ortmodule_nets import close, made, same_training  # noqa: E402
from plimsoll.training.ortmodule import ORTModule  # noqa: E402

cross_entropy = nn.functional.cross_entropy


def rows(shape, classes=4):
    def batch(step):
        generator = torch.Generator().manual_seed(step)
        return torch.randn(shape, generator=generator), torch.randint(0, classes, shape[:1], generator=generator)
    return batch


def tokens(batch=3, length=16, vocabulary=50):
    def make(step):
        generator = torch.Generator().manual_seed(step)
        ids = torch.randint(0, vocabulary, (batch, length + 1), generator=generator)
        return ids[:, :-1], ids[:, 1:]
    return make


def token_loss(scores, targets):
    return cross_entropy(scores.reshape(-1, scores.shape[-1]), targets.reshape(-1))


# --- the same steps ---------------------------------------------------------------------------------------------------


def test_mlp():
    same_training(made(nets.Mlp), rows((5, 12)), cross_entropy)


def test_convolutions_and_batch_normalization():
    ours, theirs = same_training(made(nets.ConvNet), rows((4, 3, 12, 12)), cross_entropy)
    assert int(ours.norm1.num_batches_tracked) == int(theirs.norm1.num_batches_tracked) == 6
    ours.eval(), theirs.eval()
    x = torch.randn(2, 3, 12, 12)
    close(ours(x), theirs(x), 1e-4)


def test_a_frozen_batch_normalization_in_a_module_that_trains():
    net = made(nets.ConvNet)
    net.norm1.eval()
    net.norm1.running_mean.uniform_(-1, 1)
    before = net.norm1.running_mean.clone()
    ours, _ = same_training(net, rows((4, 3, 12, 12)), cross_entropy, steps=2)
    assert torch.equal(ours.norm1.running_mean, before) and not ours.norm1.training


def test_transformer():
    same_training(made(nets.Gpt), tokens(), token_loss)


def test_shared_parameters():
    ours, _ = same_training(made(nets.Gpt, tied=True), tokens(), token_loss, steps=3)
    assert ours.head.weight is ours.words.weight


def test_lstm():
    same_training(made(nets.Tagger), rows((3, 7, 6)), cross_entropy, steps=4)


def test_pytorchs_own_encoder_layer():
    layer = made(lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True))
    same_training(layer, lambda step: (torch.randn(2, 5, 16), torch.randn(2, 5, 16)), nn.functional.mse_loss, steps=2)
    layer.eval()
    x = torch.randn(2, 5, 16)
    ours = ORTModule(layer)
    with torch.no_grad():
        close(ours(x), layer(x))
    assert ours._fallback.pending is None


def test_frozen_parameters():
    net = made(nets.Mlp)
    net.first.weight.requires_grad_(False)
    ours, _ = same_training(net, rows((5, 12)), cross_entropy, steps=3)
    assert ours.first.weight.grad is None
    ours.first.weight.requires_grad_(True)  # and thawed again
    cross_entropy(ours(torch.randn(5, 12)), torch.zeros(5, dtype=torch.int64)).backward()
    assert ours.first.weight.grad is not None


def test_double():
    net = made(nets.Mlp).double()
    same_training(net, lambda step: (torch.randn(5, 12).double(), torch.zeros(5, dtype=torch.int64)), cross_entropy, tolerance=1e-12)


# --- dropout ----------------------------------------------------------------------------------------------------------


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.drop = nn.Parameter(torch.ones(1)), nn.Dropout(0.25)

    def forward(self, x):
        return self.drop(x * self.weight)


def test_dropout_is_seeded_by_torch_and_the_gradient_drops_the_same():
    ours, x = ORTModule(Dropped()), torch.ones(200, 50, requires_grad=True)
    torch.manual_seed(7)
    first, second = ours(x), ours(x)
    torch.manual_seed(7)
    assert torch.equal(ours(x), first) and not torch.equal(first, second)
    assert first.detach().unique().tolist() == [0.0, pytest.approx(1 / 0.75)]
    assert 0.23 < float((first == 0).float().mean()) < 0.27
    second.sum().backward()  # not the last one that was drawn
    assert torch.equal(x.grad, second.detach())


def test_a_transformer_with_dropout_learns_and_repeats_itself():
    def train(seed):
        torch.manual_seed(seed)
        net = ORTModule(nets.Gpt(dropout=0.1))
        optimizer = torch.optim.Adam(net.parameters(), 3e-3)
        losses = []
        for _ in range(30):
            ids, targets = tokens()(0)
            optimizer.zero_grad()
            loss = token_loss(net(ids), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses
    first = train(1)
    assert first == train(1) and first != train(2)
    assert first[-1] < 0.5 * first[0]


def test_dropouts_gradient_by_differences():
    torch.manual_seed(3)
    net = nets.Block(16, 2, dropout=0.3).double()
    ours, mask = ORTModule(net), torch.zeros(4, 4, dtype=torch.bool)
    x = torch.randn(2, 4, 16, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 4, 16, dtype=torch.float64)

    def value(at):
        torch.manual_seed(5)
        return (ours(at, mask) * weights).sum()

    value(x).backward()
    direction, step = torch.randn_like(x), 1e-6
    with torch.no_grad():
        slope = (value(x + step * direction) - value(x - step * direction)) / (2 * step)
    assert float((x.grad * direction).sum()) == pytest.approx(float(slope), rel=1e-6)


def test_without_dropout_torchs_generator_is_left_alone():
    ours, x = ORTModule(made(nets.Mlp)), torch.randn(2, 12)
    torch.manual_seed(1)
    ours(x), ours(x)
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), drawn)


# --- autograd ---------------------------------------------------------------------------------------------------------


def test_gradients_of_inputs_and_two_modules_in_a_chain():
    first, second = made(nets.Mlp), made(lambda: nn.Linear(4, 3), seed=1)
    ours, other = ORTModule(first), ORTModule(second)
    x, y = torch.randn(5, 12, requires_grad=True), None
    y = x.detach().clone().requires_grad_(True)
    other(torch.relu(ours(x))).pow(2).sum().backward()
    mine = [p.grad.clone() for p in [*ours.parameters(), *other.parameters()]]
    for p in [*first.parameters(), *second.parameters()]:
        p.grad = None
    second(torch.relu(first(y))).pow(2).sum().backward()
    close(x.grad, y.grad)
    for a, b in zip(mine, [*first.parameters(), *second.parameters()]):
        close(a, b.grad)


def test_gradients_are_added_up_by_repeated_backward():
    net = made(nets.Mlp)
    ours, x = ORTModule(net), torch.randn(5, 12)
    for _ in range(3):
        ours(x).sum().backward()
    three = net.first.weight.grad.clone()
    net.zero_grad()
    ours(x).sum().backward()
    close(three, 3 * net.first.weight.grad)


def test_two_forwards_before_their_backwards():
    ours = ORTModule(made(nets.Mlp))
    a, b = (torch.randn(4, 12, requires_grad=True) for _ in "ab")
    of_a, of_b = ours(a), ours(b)
    of_a.sum().backward()
    of_b.sum().backward()
    for x in (a, b):
        fresh = x.detach().requires_grad_(True)
        ours.module(fresh).sum().backward()
        close(x.grad, fresh.grad)


def test_backward_twice_and_second_derivatives_are_refused_as_by_torch():
    ours, x = ORTModule(made(nets.Mlp)), torch.randn(4, 12, requires_grad=True)
    loss = ours(x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    grad, = torch.autograd.grad(ours(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|does not require grad"):
        grad.sum().backward()


def test_a_parameter_that_was_changed_in_between_is_noticed():
    ours = ORTModule(made(nets.Mlp))
    loss = ours(torch.randn(4, 12)).sum()
    with torch.no_grad():
        ours.second.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_no_grad_and_eval():
    net = made(nets.ConvNet)
    ours, x = ORTModule(net), torch.randn(4, 3, 12, 12)
    ours.eval()
    assert not net.training and not net.norm1.training
    with torch.no_grad():
        answer = ours(x)
        close(answer, net(x))
    assert not answer.requires_grad and answer.grad_fn is None
    assert int(net.norm1.num_batches_tracked) == 0
    answer = ours(x)  # evaluated, and still differentiable
    answer.sum().backward()
    mine = net.conv1.weight.grad.clone()
    net.zero_grad()
    net(x).sum().backward()
    close(mine, net.conv1.weight.grad)
    ours.train()
    ours(x)
    assert int(net.norm1.num_batches_tracked) == 1


# --- arguments and results --------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "left right")


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, things, *more, table=None, factor=1.0, flag=False):
        a, (b, c) = things["a"], things["pair"]
        total = a * self.scale + (b if c is None else b + c)
        for one in more:
            total = total - one
        if table is not None:
            total = total * table["x"]
        if flag:
            total = -total
        return {"total": total * factor, "parts": [Pair(a + total, a.argmax()), None], "name": "nested"}


def calls():
    x = [torch.randn(3, 2) for _ in range(5)]
    return [(({"a": x[0], "pair": (x[1], x[2])},), {}), (({"a": x[0], "pair": [x[1], None]}, x[3], x[4]), {}),
            (({"a": x[0], "pair": (x[1], x[2])},), {"table": {"x": x[3]}, "factor": 0.5}),
            (({"a": x[0], "pair": (x[1], x[2])},), {"flag": True}), (({"a": x[0], "pair": (x[1], x[2])},), {"factor": 3.0})]


def test_nested_arguments_and_results():
    net = Nested()
    ours = ORTModule(net)
    for arguments, keywords in calls():
        net.zero_grad()
        mine = ours(*arguments, **keywords)
        (mine["total"].sum() + mine["parts"][0].left.sum()).backward()
        gradient = net.scale.grad.clone()
        net.zero_grad()
        theirs = net(*arguments, **keywords)
        (theirs["total"].sum() + theirs["parts"][0].left.sum()).backward()
        close(gradient, net.scale.grad)
        close(mine["total"], theirs["total"])
        assert type(mine["parts"][0]) is Pair and torch.equal(mine["parts"][0].right, theirs["parts"][0].right)
        assert mine["parts"][1] is None and mine["name"] == "nested" and list(mine) == list(theirs)
        assert not mine["parts"][0].right.requires_grad
    assert ours._fallback.pending is None


def test_exported_once_for_each_kind_of_call():
    ours = ORTModule(made(nets.Mlp))
    for shape in ((5, 12), (7, 12), (5, 12)):
        ours(torch.randn(shape))
    assert (len(ours._exports), len(ours._programs)) == (1, 2)
    close(ours(torch.randn(2, 3, 12).clone()), ours(torch.zeros(2, 3, 12)) * 0 + ours(torch.zeros(2, 3, 12)), 1e9)  # another rank
    assert len(ours._exports) == 2
    ours(torch.randn(5, 12, requires_grad=True))
    assert len(ours._exports) == 3
    with torch.no_grad():
        ours(torch.randn(5, 12))
    assert len(ours._exports) == 4
    ours.eval()(torch.randn(5, 12))
    assert len(ours._exports) == 5


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x):
        state = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return state


def test_loops_over_a_size_are_not_taken_for_another_size():
    net = made(Loop)
    ours = ORTModule(net)
    for length in (2, 5, 3):
        x = torch.randn(2, length, 3)
        close(ours(x), net(x))
    assert ours._fallback.pending is None


def test_layouts_of_memory():
    net = made(nets.Mlp)
    ours = ORTModule(net)
    x = torch.randn(12, 5, requires_grad=True)
    ours(x.t()).t().pow(2).sum().backward()
    mine, x.grad = x.grad, None
    net(x.t()).t().pow(2).sum().backward()
    close(mine, x.grad)
    with torch.no_grad():
        net.first.weight.data = torch.randn(12, 16).t()
        close(ours(x.t()), net(x.t()))


def test_nothing_in_it():
    ours = ORTModule(made(nets.Mlp))
    assert ours(torch.zeros(0, 12)).shape == (0, 4)


# --- the module that it is --------------------------------------------------------------------------------------------


def test_the_modules_own_parameters_and_names():
    net = made(nets.ConvNet)
    ours = ORTModule(net)
    assert list(ours.state_dict()) == list(net.state_dict())
    assert all(a is b for a, b in zip(ours.parameters(), net.parameters()))
    assert ours.module is net and ours.conv1 is net.conv1
    ours.note = "kept"
    assert net.note == "kept"
    other = made(nets.ConvNet, seed=9)
    ours.load_state_dict(other.state_dict())
    assert torch.equal(net.conv1.weight, other.conv1.weight)
    x = torch.randn(2, 3, 12, 12)
    close(ours.eval()(x), other.eval()(x))
    assert nn.Sequential(ours).state_dict().keys() == {f"0.{name}" for name in net.state_dict()}
    for copied in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        close(copied(x), ours(x))
        assert copied.conv1.weight is not net.conv1.weight


def test_memory_goes_back_and_stays_where_it_is():
    net = ORTModule(made(nets.Gpt))
    optimizer = torch.optim.SGD(net.parameters(), 0.01)

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def train(steps):
        for step in range(steps):
            ids, targets = tokens()(step)
            optimizer.zero_grad()
            token_loss(net(ids), targets).backward()
            optimizer.step()

    train(40)
    before = resident()
    train(300)
    assert resident() - before < 1 << 20


def test_the_graph_holds_nothing_after_its_backward():
    ours, x = ORTModule(made(nets.Mlp)), torch.randn(4, 12)
    loss = ours(x).sum()
    step = loss.grad_fn.next_functions[0][0]
    loss.backward()
    with pytest.raises(RuntimeError, match="freed"):
        step.saved_tensors
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours(x)
