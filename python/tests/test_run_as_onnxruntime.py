"""Scripts that say `import onnxruntime`, unchanged; and the first seed's snippets as printed."""
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import seed_snippets

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits.onnx"


def python(*arguments, cwd=None):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=cwd)


def run(path, *arguments, cwd=None):
    return python("-m", "plimsoll.run", path, *arguments, cwd=cwd)


def script(folder, text):
    path = folder / "script.py"
    path.write_text(text)
    return path


CLASSIFY = """
import sys
import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
import onnxruntime.capi._pybind_state as C

session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
answer, = session.run(None, {name: np.zeros((2, 1, 8, 8), np.float32)})
print(answer.shape, ort.__name__, C.get_device())
try:
    session.run(None, {"no such input": answer})
except InvalidArgument as error:
    print("refused")
"""


def test_a_script_of_onnxruntimes_runs_unchanged(tmp_path):
    done = run(script(tmp_path, CLASSIFY), DIGITS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "(2, 10) plimsoll CPU\nrefused\n"


def test_as_it_would_run_alone(tmp_path):
    (tmp_path / "beside.py").write_text("import __main__; print(__main__.__file__.endswith('script.py'))")
    path = script(tmp_path, "import sys, beside\nprint(sys.argv[1:], __name__)\nsys.exit(3)\n")
    done = run(path, "--help", "-m", "a b")
    assert (done.returncode, done.stdout) == (3, "True\n['--help', '-m', 'a b'] __main__\n")
    path.write_text("def main():\n    raise LookupError('no such thing')\nmain()\n")
    assert (run(path).returncode, run(path).stderr) == (1, python(path).stderr)


def test_a_module(tmp_path):
    (tmp_path / "service.py").write_text("import onnxruntime, sys; print(onnxruntime.get_device(), sys.argv[1:])")
    assert run("-m", "service", "x", cwd=tmp_path).stdout == "CPU ['x']\n"


def test_the_command_before_quantization(tmp_path):
    command = ["-m", "onnxruntime.quantization.preprocess", "--input", DIGITS, "--output", "out.onnx", "--auto_merge", "True"]
    done = run(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and (tmp_path / "out.onnx").exists()
    done = python("-m", "plimsoll.quantization.preprocess", "--input", "absent.onnx", "--output", "out.onnx", cwd=tmp_path)
    assert done.returncode == 1 and "absent.onnx" in done.stderr and "Traceback" not in done.stderr


def test_what_scripts_call_for_cuda_and_reports(tmp_path):
    done = run(script(tmp_path, "import onnxruntime as ort\nort.preload_dlls(cuda=True, directory='')\nort.print_debug_info()"))
    assert (done.returncode, done.stderr) == (0, "") and "CPUExecutionProvider" in done.stdout


@pytest.mark.parametrize("arguments, code", [(["--help"], 0), ([], 2), (["--nonsense", "x.py"], 2), (["-m"], 2), (["absent.py"], 2)])
def test_usage(arguments, code, tmp_path):
    done = python("-m", "plimsoll.run", *arguments, cwd=tmp_path)
    assert done.returncode == code and "Traceback" not in done.stderr and done.stdout + done.stderr


def test_the_same_modules_not_copies(tmp_path):
    text = ("import plimsoll\nplimsoll.install_as_onnxruntime()\nplimsoll.install_as_onnxruntime()\n"
            "import onnxruntime, onnxruntime.capi.onnxruntime_pybind11_state as state\n"
            "import plimsoll.capi.onnxruntime_pybind11_state as ours\n"
            "from onnxruntime import InferenceSession\n"
            "print(onnxruntime is plimsoll, state is ours, InferenceSession is plimsoll.InferenceSession)\n"
            "print(plimsoll.capi.__spec__.name)\n")
    done = python(script(tmp_path, text))
    assert done.stdout == "True True True\nplimsoll.capi\n", done.stderr


@pytest.mark.parametrize("name", ["transformers", "tools.convert_onnx_models_to_ort", "nonsense"])
def test_what_is_not_here_is_refused_by_name(tmp_path, name):
    done = run(script(tmp_path, f"try:\n    import onnxruntime.{name}\nexcept ImportError as error:\n    print(error)\n"))
    assert re.match(rf"onnxruntime\.{name.partition('.')[0]} is not part of Plimsoll", done.stdout), done.stdout + done.stderr


def test_another_onnxruntime_that_is_already_there(tmp_path):
    (tmp_path / "onnxruntime.py").write_text("")
    done = python(script(tmp_path, "import onnxruntime, plimsoll\nplimsoll.install_as_onnxruntime()\n"))
    assert done.returncode == 1 and "already imported from" in done.stderr


# --- the first seed's snippets ---------------------------------------------------------------------------------------

TEXT = seed_snippets.document()
SNIPPETS = seed_snippets.snippets(TEXT) if TEXT else []


def model_bytes():
    """What the snippets open: 'input' [batch, 3, 224, 224] to 'output' [batch, 4]."""
    pytest.importorskip("onnx", reason="no python3-onnx")
    from onnx import TensorProto, helper, numpy_helper
    weights = np.random.default_rng(0).standard_normal((4, 3, 8, 8)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["input", "w"], ["features"], strides=[8, 8]), helper.make_node("GlobalAveragePool", ["features"], ["mean"]),
         helper.make_node("Flatten", ["mean"], ["output"])], "seed",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 3, 224, 224])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


@pytest.fixture(scope="module")
def seed(tmp_path_factory):
    """The namespace that the snippets share, as a reader would go through the document, in a folder with model.onnx."""
    if not SNIPPETS:
        pytest.skip("no ../shared/seeds")
    import plimsoll
    folder, before = tmp_path_factory.mktemp("seed"), os.getcwd()
    (folder / "model.onnx").write_bytes(model_bytes())
    plimsoll.install_as_onnxruntime()
    os.chdir(folder)
    image = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)
    names = {"output_shape": (1, 4), "dataset": [image] * 3, "inputs": {"input": image}}

    def build_model():
        torch = pytest.importorskip("torch", reason="no python3-torch")
        return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))

    def test_inference(batch_size):
        session = plimsoll.InferenceSession("model.onnx", names["limited"])
        session.run(None, {"input": np.zeros((batch_size, 3, 224, 224), np.float32)})

    names.update(build_model=build_model, pt_model=build_model(), test_inference=test_inference)
    names["limited"] = plimsoll.SessionOptions()
    names["limited"].max_concurrent_runs = 1
    eight = plimsoll.InferenceSession("model.onnx", names["limited"]).plan({"input": [8, 3, 224, 224]})
    names["limited"].memory_limit_bytes = eight.minimum_limit_bytes
    yield names
    os.chdir(before)
    for name in [name for name in os.environ if name.startswith("ORTMODULE_")]:
        del os.environ[name]
    for finder in [finder for finder in sys.meta_path if type(finder).__module__ == "plimsoll._as_onnxruntime"]:
        sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnxruntime"]:
        del sys.modules[name]


def test_there_are_snippets():
    if TEXT is None:
        pytest.skip("no ../shared/seeds")
    assert len(SNIPPETS) >= 20


def expectation(source):
    """What a snippet is to do here: (exceptions, pattern), or None if it is to run."""
    if "device='cuda" in source:
        return (AssertionError, RuntimeError), r"CUDA|cuda"  # torch's own, before we are asked
    if "append_execution_provider('CUDA" in source:
        return (RuntimeError, ValueError), r"CUDAExecutionProvider"
    return None


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippet(seed, number, capsys):
    source = SNIPPETS[number]
    if "quantize_dynamic" in source:  # names that it uses and does not import, as ONNX Runtime has them
        exec("from onnxruntime.quantization import QuantType, quantize_dynamic", seed)
    if "torch" in source or "ORTModule(" in source:
        pytest.importorskip("torch", reason="no python3-torch")
    expected = expectation(source)
    if expected is None:
        exec(compile(source, f"snippet {number}", "exec"), seed)
    else:
        with pytest.raises(expected[0], match=expected[1]):
            exec(compile(source, f"snippet {number}", "exec"), seed)
        if "device='cuda" in source:
            with pytest.raises(RuntimeError, match="cuda"):
                seed["io_binding"].bind_output(name="output", device_type="cuda", device_id=0, element_type=np.float32, shape=(1, 4))
    check(seed, source, capsys.readouterr().out)


def train(model, devinfo):
    """A few steps with what a snippet made: the loss falls, and PyTorch's own gradient is the same."""
    import torch
    import plimsoll
    assert isinstance(model, plimsoll.training.ORTModule) and model._fallback.pending is None
    assert (model._options.log_level is plimsoll.training.ortmodule.LogLevel.DEVINFO) == devinfo
    x, y = torch.randn(16, 2), torch.randn(16, 2)
    optimizer, losses = torch.optim.SGD(model.parameters(), 0.1), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    assert losses[-1] < losses[0] and model._fallback.pending is None
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    ours = [parameter.grad.clone() for parameter in model.parameters()]
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model.module(x), y).backward()
    for mine, theirs in zip(ours, (parameter.grad for parameter in model.parameters())):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


def check(seed, source, printed):
    """What a reader would expect of the snippets that run."""
    if "copy_outputs_to_cpu" in source:  # one of them binds no output, and is given none
        assert [output.shape for output in seed["outputs"]] == ([(1, 4)] if "bind_output" in source else [])
    if "ORTModule(" in source:
        train(seed["model"], "DebugOptions" in source)
    if "test_inference" in source:
        assert printed.splitlines() == [*(f"Batch size {size}: OK" for size in (1, 2, 4, 8)), "Batch size 16: OOM"]
    if "def profile_memory" in source:
        seed["profile_memory"](seed["session"], seed["inputs"]["input"], "input")
    if "def profile_gpu_memory" in source:
        with pytest.raises((AssertionError, AttributeError, RuntimeError), match="(?i)cuda|nvidia"):  # torch's
            seed["profile_gpu_memory"](seed["session"], seed["inputs"]["input"], "input")
    if "optimized_model_filepath" in source:
        import plimsoll
        plimsoll.InferenceSession("model.onnx", seed["session_options"])
        assert pathlib.Path("optimized.onnx").exists()
    if source.strip() == "del session":
        assert "session" not in seed
