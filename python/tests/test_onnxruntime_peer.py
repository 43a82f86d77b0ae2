"""The same feeds through ONNX Runtime (its Node package; answers kept by tools/make_goldens.py) and through plimsoll: outputs
agree, and what one refuses the other refuses."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx.numpy_helper", reason="no python3-onnx") and __import__("onnx")

import plimsoll

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits.onnx"
GOLDENS = pathlib.Path(os.environ.get("PLIMSOLL_CACHE", pathlib.Path.home() / ".cache/plimsoll")) / "goldens"
MODELS = sorted(path.name for path in GOLDENS.glob("[!.]*")) if GOLDENS.exists() else []


def tensors(folder, kind):
    """input_0.pb, input_1.pb, ... as arrays by name."""
    named = {}
    for index in range(len(list(folder.glob(f"{kind}_*.pb")))):
        tensor = onnx.TensorProto.FromString((folder / f"{kind}_{index}.pb").read_bytes())
        named[tensor.name] = onnx.numpy_helper.to_array(tensor)
    return named


def test_there_are_goldens():
    if not MODELS:
        pytest.skip(f"no goldens in {GOLDENS}")
    assert len(MODELS) >= 1


@pytest.mark.parametrize("name", MODELS)
def test_outputs_agree(name):
    """Within the tolerance of `./dev test golden_verify`."""
    session = plimsoll.InferenceSession(GOLDENS / name / "model.onnx")
    for folder in sorted((GOLDENS / name).glob("test_data_set_*")):
        expected = tensors(folder, "output")
        made = session.run(list(expected), tensors(folder, "input"))
        for (output, wanted), found in zip(expected.items(), made):
            assert found.dtype == wanted.dtype and found.shape == wanted.shape, output
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=output)


GOOD = np.zeros((1, 1, 8, 8), np.float32)
FEEDS = {  # each wrong in one way
    "missing": {}, "surplus": {"image": GOOD, "other": GOOD}, "rank": {"image": GOOD[0]},
    "fixed size": {"image": np.zeros((1, 1, 8, 9), np.float32)}, "type": {"image": GOOD.astype(np.float64)},
}


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """ONNX Runtime's error for a feed of digits.onnx, or None if it answers."""
    sys.path.insert(0, str(ROOT / "tools"))
    import cases
    import onnxruntime_npm
    try:
        onnxruntime_npm.ensure()
    except onnxruntime_npm.Unavailable as problem:
        pytest.skip(str(problem))
    folder = tmp_path_factory.mktemp("ort")

    def error(feed):
        job = {"model": str(DIGITS), "sets": [{"directory": str(folder), "inputs": cases.save_raw(folder, feed)}]}
        (folder / "job.json").write_text(json.dumps(job))
        done = subprocess.run(["node", ROOT / "tools/ort/run.js", folder / "job.json"], env=onnxruntime_npm.environment(),
                              capture_output=True, text=True, timeout=120)
        return done.stderr.strip().splitlines()[-1] if done.returncode else None
    return error


@pytest.mark.parametrize("kind", FEEDS)
def test_errors_side_by_side(ask, kind):
    theirs = ask(FEEDS[kind])
    try:
        plimsoll.InferenceSession(DIGITS).run(None, FEEDS[kind])
        ours = None
    except Exception as error:
        assert isinstance(error, (ValueError, RuntimeError)) and isinstance(error, plimsoll.Error)
        ours = str(error)
    print(f"\n{kind}\n  ONNX Runtime: {theirs}\n  Plimsoll:     {ours}")
    if kind == "surplus":  # the Node package drops what it does not know; the Python package refuses it, and so do we
        assert ours and "other" in ours
    else:
        assert theirs and ours and "image" in ours
