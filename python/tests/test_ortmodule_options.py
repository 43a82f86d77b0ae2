"""ORTModule's options, variables, log, and what it does about what it cannot run."""
import json
import logging
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch", reason="no python3-torch")

from torch import nn  # noqa: E402

import ortmodule_nets as nets  # noqa: E402
import plimsoll  # noqa: E402
from ortmodule_nets import close, made  # noqa: E402
from plimsoll.training import ortmodule  # noqa: E402
from plimsoll.training.ortmodule import DebugOptions, LogLevel, ORTModule  # noqa: E402


# --- fallback ---------------------------------------------------------------------------------------------------------


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class NotExported(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return Twice.apply(self.linear(x))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return self.linear(x)


@pytest.mark.parametrize("net, kind", [(NotExported, "ONNXModel"), (Counting, "TorchModel"),
                                       (lambda: nn.BatchNorm1d(3, momentum=None), "TorchModel")])
def test_pytorch_runs_what_cannot_be_run_here(net, kind, monkeypatch):
    module, x = made(net), torch.randn(4, 3, requires_grad=True)
    ours = ORTModule(module)
    with pytest.warns(UserWarning, match=f"PyTorch runs this module itself.*{kind}"):
        answer = ours(x)
    answer.sum().backward()
    assert x.grad is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours(x)  # told once
    if hasattr(module, "calls"):
        assert float(module.calls) == 2
    monkeypatch.setenv("ORTMODULE_FALLBACK_POLICY", "FALLBACK_DISABLE")
    with pytest.raises(ortmodule.ORTModuleFallbackException):
        ORTModule(module)(x)


def test_policies(monkeypatch):
    monkeypatch.setenv("ORTMODULE_FALLBACK_POLICY", "FALLBACK_UNSUPPORTED_DEVICE,FALLBACK_UNSUPPORTED_DATA")
    with pytest.raises(ortmodule.ORTModuleONNXModelException, match="export"):
        ORTModule(NotExported())(torch.randn(4, 3))
    monkeypatch.setenv("ORTMODULE_FALLBACK_POLICY", "FALLBACK_FORCE_TORCH_FORWARD")
    monkeypatch.setenv("ORTMODULE_FALLBACK_RETRY", "1")
    ours = ORTModule(NotExported())
    for _ in range(2):
        with pytest.warns(UserWarning, match="FALLBACK_FORCE_TORCH_FORWARD"):
            ours(torch.randn(4, 3))
    monkeypatch.setenv("ORTMODULE_FALLBACK_POLICY", "FALLBACK_SOMETIMES")
    with pytest.raises(ValueError, match="FALLBACK_SOMETIMES"):
        ORTModule(nn.Linear(2, 2))


def test_arguments_that_cannot_cross():
    ours = ORTModule(made(nets.Mlp))
    with pytest.warns(UserWarning, match="IOError.*object"), pytest.raises(TypeError):
        ours(object())


def test_what_the_module_refuses_it_refuses_here_too():
    ours = ORTModule(made(nets.Mlp))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        ours(torch.randn(5, 11))
    with pytest.raises(TypeError):
        ours()
    with pytest.raises(TypeError):
        ours(torch.randn(5, 12), torch.randn(5, 12))
    close(ours(torch.ones(5, 12)), ours.module(torch.ones(5, 12)))
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="shapes cannot be multiplied"):  # another export's sizes
        ours(torch.randn(5, 13))
    assert ours._fallback.pending is None
    close(ours(torch.ones(5, 12)), ours.module(torch.ones(5, 12)))
    norm = ORTModule(nn.BatchNorm1d(3))
    norm(torch.randn(4, 3))
    before = norm.running_var.clone()
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm(torch.randn(1, 3))
    assert torch.equal(norm.running_var, before) and int(norm.num_batches_tracked) == 1


def test_labels_out_of_range():
    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nets.Mlp()

        def forward(self, x, labels):
            return nn.functional.cross_entropy(self.net(x), labels)

    ours = ORTModule(WithLoss())
    x, good = torch.randn(3, 12), torch.tensor([0, 1, 2])
    loss = ours(x, good)
    with pytest.raises(ValueError, match="9"):
        ours(x, torch.tensor([0, 1, 9]))
    loss.backward()
    assert ours.net.first.weight.grad is not None


@pytest.mark.parametrize("wrong", [lambda: ORTModule(len), lambda: ORTModule(nn.Linear(2, 2), "INFO"), lambda: DebugOptions("INFO"),
                                   lambda: DebugOptions(save_onnx=True, onnx_prefix=3)])
def test_wrong_types(wrong):
    with pytest.raises(TypeError, match="expected"):
        wrong()


def test_wrong_values(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="onnx_prefix"):
        DebugOptions(save_onnx=True)
    with pytest.raises(OSError, match="nowhere"):
        DebugOptions(save_onnx=True, onnx_prefix="x", save_path=str(tmp_path / "nowhere"))
    monkeypatch.setenv("ORTMODULE_LOG_LEVEL", "LOUD")
    with pytest.raises(ValueError, match="LOUD"):
        DebugOptions()
    monkeypatch.delenv("ORTMODULE_LOG_LEVEL")
    monkeypatch.setenv("ORTMODULE_MEMORY_OPT_LEVEL", "3")
    with pytest.raises(ValueError, match="ORTMODULE_MEMORY_OPT_LEVEL"):
        ORTModule(nn.Linear(2, 2))
    monkeypatch.delenv("ORTMODULE_MEMORY_OPT_LEVEL")
    monkeypatch.setenv("ORTMODULE_MEMORY_OPT_CONFIG", str(tmp_path / "absent.json"))
    with pytest.raises((plimsoll.IoError, OSError), match="absent.json"):
        ORTModule(nn.Linear(2, 2))(torch.ones(1, 2))


# --- the memory optimizer ---------------------------------------------------------------------------------------------


def trained(net):
    ids = torch.arange(48).reshape(3, 16)
    loss = nn.functional.cross_entropy(net(ids).reshape(-1, 50), ids.reshape(-1))
    loss.backward()
    return loss.detach().clone(), [p.grad.clone() for p in net.parameters()]


def kept_bytes(caplog):
    return [int(text.split("backward ")[1].split(" ")[0].replace(",", "")) for text in caplog.messages if "bytes are kept" in text]


def test_levels_keep_fewer_bytes_and_change_no_bit(monkeypatch, caplog):
    net, found = made(nets.Gpt), {}
    for level in "012":
        monkeypatch.setenv("ORTMODULE_MEMORY_OPT_LEVEL", level)
        net.zero_grad()
        with caplog.at_level(logging.INFO):
            found[level] = trained(ORTModule(net, DebugOptions(log_level=LogLevel.INFO)))
    plain, layers, compromised = kept_bytes(caplog)
    assert compromised <= layers < 0.75 * plain
    for level in "12":
        assert torch.equal(found[level][0], found["0"][0])
        assert all(torch.equal(a, b) for a, b in zip(found[level][1], found["0"][1]))
    tables = [text for text in caplog.messages if "Memory Optimizer" in text]
    assert [table.split("Memory Optimizer     :  ")[1][:3] for table in tables] == ["OFF", "ON ", "ON "]
    assert "TRANSFORMER_LAYERWISE_RECOMPUTE]" in tables[1]
    for column in ("Configs", "Freq", "Max Saving(Bytes)", "Saving Symbolic(Bytes)"):
        assert column in tables[0]


def test_savings_in_symbols(caplog):
    pytest.importorskip("onnx", reason="no python3-onnx")
    ours = ORTModule(made(nets.Block), DebugOptions(log_level=LogLevel.INFO))
    with caplog.at_level(logging.INFO):
        ours(torch.randn(3, 8, 32), torch.zeros(8, 8, dtype=torch.bool)).sum().backward()
    table = next(text for text in caplog.messages if "Memory Optimizer" in text)
    assert "512.0*input.0_dim0*input.0_dim1 " in table  # a batch of tokens, four times as wide as the block


def test_bfloat16_between_the_passes(caplog):
    results = {}
    for precision in ("f32", "bf16"):
        net = made(nets.Block)
        ours = ORTModule(net, DebugOptions(log_level=LogLevel.INFO), precision=precision)
        torch.manual_seed(2)
        with caplog.at_level(logging.INFO):
            output = ours(torch.randn(16, 32, 32), torch.zeros(32, 32, dtype=torch.bool))
            output.square().sum().backward()
        results[precision] = output.detach(), [p.grad for p in net.parameters()], kept_bytes(caplog)[-1]
    plain, mixed = results["f32"], results["bf16"]
    assert torch.equal(plain[0], mixed[0])  # forward, nothing is rounded
    assert any(not torch.equal(a, b) for a, b in zip(plain[1], mixed[1]))
    for a, b in zip(plain[1], mixed[1]):
        assert b.dtype == torch.float32 and (a - b).norm() <= 1e-2 * a.norm()
    assert mixed[2] < 0.6 * plain[2]
    with pytest.raises(ValueError, match="expected f32 or bf16, found 'f16'"):
        ORTModule(made(nets.Block), precision="f16")


def rows(table):
    return [line.split() for line in table.splitlines() if line.startswith("- Plan")]


def test_a_rows_saving_is_what_is_really_saved(monkeypatch, caplog, tmp_path):
    net = made(nets.Gpt)
    with caplog.at_level(logging.INFO):
        trained(ORTModule(net, DebugOptions(log_level=LogLevel.INFO)))
    table = next(text for text in caplog.messages if "Memory Optimizer" in text)
    plain = kept_bytes(caplog)[-1]
    checked = 0
    for row in rows(table):
        config, saved = row[6], int(row[-1].replace(",", ""))
        file = tmp_path / "config.json"
        file.write_text(json.dumps([config]))
        monkeypatch.setenv("ORTMODULE_MEMORY_OPT_CONFIG", str(file))
        with caplog.at_level(logging.INFO):
            trained(ORTModule(net, DebugOptions(log_level=LogLevel.INFO)))
        assert plain - kept_bytes(caplog)[-1] == saved, config
        checked += saved > 0
    assert checked >= 2


def test_devinfo_tells_nodes(caplog):
    with caplog.at_level(logging.INFO):
        trained(ORTModule(made(nets.Gpt), DebugOptions(log_level=LogLevel.DEVINFO)))
    table = next(text for text in caplog.messages if "Memory Optimizer" in text)
    assert "bytes stashed" in table and "times behind" in table and "/module/" in table


def test_clusters_that_a_module_does_not_have(monkeypatch, caplog, tmp_path):
    file = tmp_path / "config.json"
    file.write_text('["BiasGelu+:1:-1"]')
    monkeypatch.setenv("ORTMODULE_MEMORY_OPT_CONFIG", str(file))
    ours = ORTModule(nn.Linear(2, 2))
    ours(torch.ones(1, 2))
    assert "no cluster BiasGelu+:1" in caplog.text and ours._fallback.pending is None
    file.write_text('["BiasGelu+:7:-1"]')
    with pytest.raises(ValueError, match="strategy"):
        ORTModule(nn.Linear(2, 2))(torch.ones(1, 2))


# --- the rest of the variables, and files -----------------------------------------------------------------------------


def test_variables(monkeypatch, caplog):
    monkeypatch.setenv("ORTMODULE_USE_TRITON", "1")
    monkeypatch.setenv("ORTMODULE_NONSENSE", "1")
    monkeypatch.setenv("ORTMODULE_LOG_LEVEL", "INFO")
    with caplog.at_level(logging.INFO):
        assert ORTModule(nn.Linear(2, 2), DebugOptions(log_level=LogLevel.ERROR))._options.log_level is LogLevel.INFO
    assert "ORTMODULE_USE_TRITON has no effect" in caplog.text and "ORTMODULE_NONSENSE has no effect: nobody" in caplog.text
    monkeypatch.setenv("ORTMODULE_ONNX_OPSET_VERSION", "14")
    net = made(nets.Gpt)
    ids = torch.arange(32).reshape(2, 16)
    ours = ORTModule(net)
    close(ours(ids), net(ids))
    assert ours._fallback.pending is None


def test_saved_files(tmp_path):
    onnx = pytest.importorskip("onnx", reason="no python3-onnx")
    ours = ORTModule(made(nets.Mlp), DebugOptions(save_onnx=True, onnx_prefix="net", save_path=str(tmp_path)))
    ours(torch.randn(5, 12))
    ours.eval()(torch.randn(5, 12))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net_torch_exported_inference.onnx", "net_torch_exported_training.onnx"]
    model = onnx.load(tmp_path / "net_torch_exported_training.onnx")
    assert [value.name for value in model.graph.input][0] == "input.0" and not model.graph.initializer


def test_the_table_is_seen_where_nobody_set_up_logging(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch\nfrom onnxruntime.training.ortmodule import DebugOptions, LogLevel, ORTModule\n"
                      "net = ORTModule(torch.nn.Linear(3, 2), DebugOptions(log_level=LogLevel.INFO))\n"
                      "net(torch.ones(4, 3)).sum().backward()\n")
    done = subprocess.run([sys.executable, "-m", "plimsoll.run", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Memory Optimizer" in done.stderr and "Max Saving(Bytes)" in done.stderr


def test_torch_is_not_imported_before_it_is_needed():
    code = "import sys, plimsoll, plimsoll.training; print('torch' in sys.modules, 'onnx' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False"]
