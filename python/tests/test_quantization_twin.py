"""Our int8 minilm_l6 is the one that its makers published: the same initializers and nodes.

Both models are of the benchmark set, which tools/fetch_models.py fetches; without them the test is skipped, and says so.
"""
import os
import pathlib

import pytest

onnx = pytest.importorskip("onnx", reason="no python3-onnx")

from onnx import numpy_helper  # noqa: E402

from plimsoll import quantization as q  # noqa: E402

MODELS = pathlib.Path(os.environ.get("PLIMSOLL_CACHE", pathlib.Path.home() / ".cache" / "plimsoll")) / "models"
FLOAT, TWIN = MODELS / "minilm_l6.onnx", MODELS / "minilm_l6_int8.onnx"


def described(node):
    return (node.op_type, node.domain, node.name, list(node.input), list(node.output),
            sorted((a.name, a.SerializeToString()) for a in node.attribute))


@pytest.mark.skipif(not (FLOAT.exists() and TWIN.exists()), reason=f"no {FLOAT.name} and {TWIN.name} in {MODELS}")
def test_the_published_twin_of_minilm(tmp_path):
    q.quantize_dynamic(FLOAT, tmp_path / "ours.onnx", per_channel=True, reduce_range=True,
                       extra_options={"ActivationSymmetric": True})
    ours, theirs = onnx.load(str(tmp_path / "ours.onnx")), onnx.load(str(TWIN))
    made = {tensor.name: tensor for tensor in ours.graph.initializer}
    assert len(theirs.graph.initializer) == 180 and set(made) == {tensor.name for tensor in theirs.graph.initializer}
    for tensor in theirs.graph.initializer:
        own = made[tensor.name]
        assert own.data_type == tensor.data_type and list(own.dims) == list(tensor.dims), tensor.name
        assert numpy_helper.to_array(own).tobytes() == numpy_helper.to_array(tensor).tobytes(), tensor.name
    nodes = {node.name: described(node) for node in ours.graph.node}
    assert len(theirs.graph.node) == 772 and len(nodes) == 772
    for node in theirs.graph.node:
        assert nodes[node.name] == described(node), node.name
