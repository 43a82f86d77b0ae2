"""plimsoll.torch_doctor changes nothing: results, methods, lifetimes, somebody's hooks."""
import threading
import weakref

import pytest

from torch_examination import patients, torch, torch_doctor
from plimsoll.torch_doctor import patches, tensors


def run_noisy_model():
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Dropout(0.3),
                                torch.nn.Flatten(), torch.nn.Linear(8 * 36, 5))
    loader = torch.utils.data.DataLoader(torch.randn(24, 3, 8, 8), batch_size=2, shuffle=True)
    outputs = [model(batch) for batch in loader]
    outputs[-1].sum().backward()
    return [tensor.clone() for tensor in (*outputs, *model.buffers(), *(p.grad for p in model.parameters()),
                                          torch.get_rng_state())]


def test_results_are_bitwise_the_same():
    plain = run_noisy_model()
    with torch_doctor.watch():
        watched = run_noisy_model()
    assert len(plain) == len(watched) and all(torch.equal(a, b) for a, b in zip(plain, watched))


def replaced_methods():
    from torch.autograd.graph import saved_tensors_hooks
    from torch.utils.data._utils import fetch
    return [torch.nn.Module.__call__, saved_tensors_hooks.__enter__, fetch._MapDatasetFetcher.fetch,
            fetch._IterableDatasetFetcher.fetch]


ORIGINALS = replaced_methods()


def test_everything_is_put_back():
    with torch_doctor.watch(experiments=False):
        assert replaced_methods()[0] is not ORIGINALS[0]
        with torch_doctor.watch(experiments=False):
            pass
        assert replaced_methods()[0] is not ORIGINALS[0]
    assert replaced_methods() == ORIGINALS and not patches._observers


def test_put_back_after_an_exception_and_the_report_is_there():
    with pytest.raises(RuntimeError):
        with torch_doctor.watch(experiments=False) as report:
            for size in (64, 64, 63):
                patients.linear()(torch.randn(1, size))
    assert replaced_methods() == ORIGINALS and report.finished
    assert not getattr(patches._inside, "call", False)


def test_what_others_replaced_meanwhile_stays():
    watching = torch_doctor.watch(experiments=False)
    watching.__enter__()
    ours = torch.nn.Module.__call__

    def theirs(self, *args, **kwargs):
        return ours(self, *args, **kwargs)
    torch.nn.Module.__call__ = theirs
    try:
        watching.__exit__(None, None, None)
        assert torch.nn.Module.__call__ is theirs
        assert patients.linear()(patients.X).shape == (32, 16)  # ours is still beneath, and only calls on
    finally:
        torch.nn.Module.__call__ = ORIGINALS[0]


def test_threads_may_call_meanwhile():
    model, results = patients.linear(), []

    def work():
        with torch.no_grad():
            results.extend(model(patients.X).sum().item() for _ in range(30))
    with torch_doctor.watch(experiments=False) as report:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(results)) == 1 and len(results) == 120 and replaced_methods() == ORIGINALS
    assert not [note for note in report.notes if "failed" in note]


def test_a_failure_of_the_doctor_is_a_note_and_not_an_exception(monkeypatch):
    monkeypatch.setattr(tensors, "saved_by_call", lambda *arguments: 1 / 0)
    with torch_doctor.watch(experiments=False) as report:
        assert patients.linear()(patients.X).shape == (32, 16)
    assert "ZeroDivisionError" in report.notes[0]


def test_the_doctor_keeps_nothing_alive():
    model = patients.linear()
    alive = []

    def loop():
        mine = {"x": patients.X + 1}
        for _ in range(14):
            output = model(mine["x"] + patients.X)
            alive.append(weakref.ref(output))
    with torch_doctor.watch() as report:
        loop()
        assert not any(reference() is not None for reference in alive)
    gone = weakref.ref(model)
    del model, loop
    assert gone() is None and report.finished


def test_a_dictionary_from_locals_is_left_alone():
    model = patients.linear()

    def loop():
        mine = 1
        snapshot = locals()
        for _ in range(14):
            output = model(patients.X)
        return list(snapshot), mine, output
    with torch_doctor.watch(experiments=False):
        assert loop()[0] == ["model", "mine"] or loop()[0] == ["mine", "model"]


def test_the_tracer_is_left_alone():
    model = patients.linear()
    with torch_doctor.watch(experiments=False):
        traced = torch.jit.trace(model, patients.X)
        assert torch.equal(traced(patients.X), model(patients.X))


# --- what autograd saves ---------------------------------------------------------------------------------------------

MODELS = {
    "convolutions": lambda: (torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                                 torch.nn.MaxPool2d(2)), torch.randn(2, 3, 10, 10)),
    "lstm": lambda: (torch.nn.LSTM(8, 16), torch.randn(5, 2, 8)),
    "transformer": lambda: (torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1), torch.randn(7, 2, 16)),
    "softmax": lambda: (torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Softmax(-1)),
                        torch.randn(4, 8)),
}


@pytest.mark.parametrize("name", MODELS)
def test_saved_bytes_agree_with_torch_itself(name):
    model, x = MODELS[name]()
    seen = {}

    def pack(tensor):
        seen.update([tensors.storage_of(tensor)])
        return tensor
    torch.manual_seed(3)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = model(x)
        packed = {address: size for address, size in seen.items() if address not in tensors.storages(
            list(model.parameters()) + list(model.buffers()))}
        expected = sum(packed.values())
    del result
    torch.manual_seed(3)
    result = model(x)
    saved = tensors.saved_by_call(result, x, model)
    assert saved["intermediate_bytes"] + saved["input_bytes"] + saved["output_bytes"] == expected


def test_somebodys_own_hooks_are_not_run():
    model, unpacked = patients.linear(), []
    with torch_doctor.watch(experiments=False) as report:
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.detach(),
                                                      lambda tensor: unpacked.append(1) or tensor):
            for _ in range(9):
                output = model(patients.X)
    assert not unpacked and any("saved-tensor hooks" in note for note in report.notes)
    assert report.find("graph_recorded") and output.grad_fn is not None
