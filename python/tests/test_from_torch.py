"""plimsoll.from_torch: the same call, the same answer, no graph, nothing kept, the plan told."""
import gc
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="no python3-torch")

import plimsoll


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.drop, self.out = torch.nn.Conv2d(3, 8, 3), torch.nn.Dropout(0.5), torch.nn.Linear(8, 5)

    def forward(self, image, scale=None):
        x = self.drop(torch.relu(self.conv(image)).mean((2, 3)))
        return self.out(x if scale is None else x * scale)


class Several(torch.nn.Module):
    def forward(self, pair, extra):
        a, b = pair
        return {"sum": a + b, "both": (a * extra["factor"], [b.argmax(1)])}


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_same_call_and_the_same_answer():
    module, image = Net().eval(), torch.randn(2, 3, 16, 16)
    ours = plimsoll.from_torch(module, image)
    answer = ours(image)
    close(answer, module(image))
    assert isinstance(answer, torch.Tensor) and not answer.requires_grad and answer.grad_fn is None
    close(ours(image=2 * image), module(2 * image))
    with pytest.raises(TypeError):
        ours()
    with pytest.raises(ValueError, match="image"):
        ours(torch.randn(3, 3, 16, 16))  # the shape is the example's


def test_a_training_module_is_exported_for_inference_and_stays_in_training():
    module = Net().train()
    ours = plimsoll.from_torch(module, torch.randn(1, 3, 16, 16))
    assert module.training and module.drop.training
    image = torch.randn(1, 3, 16, 16, requires_grad=True)
    close(ours(image), module.eval()(image).detach())


def test_free_dimensions_and_arguments_by_name():
    module = Net().eval()
    ours = plimsoll.from_torch(module, {"image": torch.randn(1, 3, 16, 16), "scale": torch.ones(1, 8)},
                               dynamic_axes={"image": {0: "batch"}, "scale": {0: "batch"}})
    for batch in (1, 4):
        image, scale = torch.randn(batch, 3, 16, 16), torch.randn(batch, 8)
        close(ours(image, scale=scale), module(image, scale))
    with pytest.raises(ValueError, match="exported with"):
        ours(torch.randn(1, 3, 16, 16))  # with another set of arguments
    assert ours.plan({"image": [64, 3, 16, 16], "scale": [64, 8]}).peak_bytes > ours.plan().peak_bytes > 0
    assert "peak" in repr(ours)


def test_structures_come_back_as_they_were():
    module = Several()
    arguments = ((torch.randn(2, 3), torch.randn(2, 3)), {"factor": torch.tensor(3.0)})
    ours = plimsoll.from_torch(module, arguments)
    made, expected = ours(*arguments), module(*arguments)
    assert list(made) == ["sum", "both"] and isinstance(made["both"], tuple) and isinstance(made["both"][1], list)
    close(made["sum"], expected["sum"])
    close(made["both"][0], expected["both"][0])
    assert torch.equal(made["both"][1][0], expected["both"][1][0])


def test_nothing_is_kept():
    module, image = Net(), torch.randn(1, 3, 16, 16)
    parameter = weakref.ref(module.conv)
    ours = plimsoll.from_torch(module, image)
    del module
    gc.collect()
    assert parameter() is None
    array = image.numpy()
    held = weakref.ref(array)
    ours(torch.from_numpy(array))
    del array, image
    gc.collect()
    assert held() is None
    kept = ours(torch.ones(1, 3, 16, 16))
    before = kept.clone()
    ours(torch.zeros(1, 3, 16, 16))  # what was given out is not written again
    assert torch.equal(kept, before)


def test_a_limit_holds_here_too():
    options = plimsoll.SessionOptions()
    options.memory_limit_bytes = 1000
    with pytest.raises(plimsoll.BudgetExceeded):
        plimsoll.from_torch(Net(), torch.randn(1, 3, 16, 16), sess_options=options)


@pytest.mark.parametrize("wrong", [lambda: plimsoll.from_torch(len, torch.ones(1)), lambda: plimsoll.from_torch(Net(), np.ones(3)),
                                   lambda: plimsoll.from_torch(Net(), (torch.ones(1), 3))])
def test_what_is_no_module_or_no_tensor(wrong):
    with pytest.raises(TypeError):
        wrong()
