"""Models that are none, files that vanish, libraries of others: a clear exception each."""
import os
import shutil
import subprocess
import sys

import models
import numpy as np
import pytest
from models import helper, tensor
from onnx import TensorProto

import plimsoll as ort
from plimsoll.capi import onnxruntime_pybind11_state as state

X = np.ones((2, 4), np.float32)


def test_no_such_file(tmp_path):
    with pytest.raises(state.NoSuchFile, match="nowhere.onnx") as caught:
        ort.InferenceSession(tmp_path / "nowhere.onnx")
    assert isinstance(caught.value, FileNotFoundError)


def test_a_directory_is_no_model(tmp_path):
    with pytest.raises(OSError):
        ort.InferenceSession(str(tmp_path))


@pytest.mark.parametrize("contents", [b"", b"this is no model", b"\x00" * 100, b"PK\x03\x04 a zip", models.double()[:40]])
def test_what_is_no_model(contents, tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(contents)
    for source in (contents, file):
        with pytest.raises(state.InvalidProtobuf) as caught:
            ort.InferenceSession(source)
        assert isinstance(caught.value, ValueError)


def test_a_graph_that_is_wrong():
    with pytest.raises(state.InvalidGraph, match="nobody"):
        ort.InferenceSession(models.build([helper.make_node("Relu", ["nobody"], ["y"])], [tensor("x")], [tensor("y")]))


def test_an_operator_that_nobody_has():
    model = models.build([helper.make_node("Unheard", ["x"], ["y"])], [tensor("x")], [tensor("y")])
    with pytest.raises(state.NotImplemented, match="Unheard"):
        ort.InferenceSession(model)


def test_a_model_that_is_replaced_while_it_runs(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(models.chain())
    session = ort.InferenceSession(file)
    feed = {"x": np.ones((2, 256), np.float32)}
    expected, = session.run(None, feed)
    other = tmp_path / "other.onnx"
    other.write_bytes(models.double())
    os.replace(other, file)
    np.testing.assert_array_equal(session.run(None, feed)[0], expected)
    np.testing.assert_array_equal(ort.InferenceSession(file).run(None, {"x": X})[0], 2 * X)


def test_a_model_that_is_cut_short_while_it_runs_ends_no_other_program(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(models.chain())
    program = ("import numpy as np, os, sys, plimsoll as ort\n"
               "session = ort.InferenceSession(sys.argv[1])\n"
               "feed = {'x': np.ones((2, 256), np.float32)}\n"
               "expected, = session.run(None, feed)\n"
               "os.truncate(sys.argv[1], 10)\n"
               "np.testing.assert_array_equal(session.run(None, feed)[0], expected)\n")
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr  # weights that are packed are not in the file any more


def test_options_of_the_wrong_kind():
    with pytest.raises(TypeError, match="SessionOptions"):
        ort.InferenceSession(models.double(), {"memory_limit_bytes": 1})


def test_libraries_of_operators(tmp_path):
    options = ort.SessionOptions()
    with pytest.raises(state.NoSuchFile):
        options.register_custom_ops_library(str(tmp_path / "nothing.so"))
    text = tmp_path / "text.so"
    text.write_text("no library")
    options.register_custom_ops_library(str(text))
    with pytest.raises(ort.Error, match="text.so"):
        ort.InferenceSession(models.double(), options)


def test_operators_of_onnxruntime_are_refused_by_name(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    source, library = tmp_path / "theirs.c", tmp_path / "theirs.so"
    source.write_text("void* RegisterCustomOps(void* options, const void* api) { return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    options = ort.SessionOptions()
    options.register_custom_ops_library(str(library))
    with pytest.raises(ort.Error, match="ONNX Runtime"):
        ort.InferenceSession(models.double(), options)
