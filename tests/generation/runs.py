"""A model's answers by plimsoll and by ONNX Runtime, and every tensor that it computes on the way to them."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests", "reference")]
import harness  # noqa: E402
import onnxruntime_npm  # noqa: E402
from model_file import tensor_type  # noqa: E402


def ort_run(model, sets, level="all", carry=()):
    """[{output: tensor}] for each of the sets of feeds; carry: for each set, what it hands to those after it as {input: output}."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for number, feeds in enumerate(sets):
            inputs, directory = [], os.path.join(folder, str(number))
            os.mkdir(directory)
            for index, (name, tensor) in enumerate(feeds.items()):
                file = os.path.join(directory, f"input_{index}.raw")
                tensor.tofile(file)
                inputs.append({"name": name, "type": tensor.dtype.name, "dims": list(tensor.shape), "file": file})
            jobs.append({"inputs": inputs, "directory": directory, "carry": carry[number] if carry else {}})
        if not isinstance(model, (str, os.PathLike)):
            path = os.path.join(folder, "model.onnx")
            onnx.save(model, path)
            model = path
        job = os.path.join(folder, "job.json")
        with open(job, "w") as file:
            json.dump({"model": str(model), "exact": True, "level": level, "sets": jobs}, file)
        done = subprocess.run(["node", os.path.join(ROOT, "tools", "ort", "run.js"), job], capture_output=True, text=True,
                              env=onnxruntime_npm.environment())
        if done.returncode != 0:
            raise RuntimeError(f"ONNX Runtime: {done.stderr.strip()}")
        return [{o["name"]: np.fromfile(o["file"], o["type"]).reshape(o["dims"]) for o in answers}
                for answers in json.loads(done.stdout)["sets"]]


def our_run(model, feeds, flags=()):
    """{output: tensor} of a ModelProto or a file."""
    proto = onnx.load(model) if isinstance(model, (str, os.PathLike)) else model
    answers, _ = harness.run_model(proto.SerializeToString(), feeds, flags)
    return dict(zip([output.name for output in proto.graph.output], answers))


def graph_at(model, feeds):
    """The model; if it is one If, as merged decoders are, with the branch that these feeds take in its place."""
    proto = onnx.load(model)
    if [node.op_type for node in proto.graph.node] == ["If"]:
        choice = proto.graph.node[0]
        taken = "then_branch" if feeds[choice.input[0]].all() else "else_branch"
        body = next(a.g for a in choice.attribute if a.name == taken)
        del proto.graph.node[:], proto.graph.output[:]
        proto.graph.node.extend(body.node)
        proto.graph.initializer.extend(body.initializer)
        proto.graph.output.extend(body.output)
    return proto


def opened(proto, types):
    """The graph with every tensor as an output; types: of a tensor by name, or None where the reader finds out itself."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    del copy.graph.output[:]
    for node in proto.graph.node:
        for name in node.output if node.op_type != "Constant" else ():
            info = onnx.ValueInfoProto(name=name)
            if types:
                info.type.tensor_type.elem_type = types(name)
            copy.graph.output.extend([info] if name else [])
    return copy


def every_tensor(proto, feeds, for_us=None):
    """What both compute at each node of the graph as it is written: {name: tensor} of ours, and of ONNX Runtime's."""
    theirs = ort_run(opened(proto, None), [feeds], "disabled")[0]
    ours = our_run(opened(for_us or proto, lambda name: tensor_type(theirs[name])), feeds, ("--level", "none"))
    return ours, theirs


def constants(proto):
    """What is the same in every run: {name: tensor}."""
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type == "Constant":
            values[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    return values


def each_alone(proto, given):
    """What plimsoll computes at each node when that node is given these inputs, whatever the nodes before it would give."""
    apart = onnx.ModelProto()
    apart.CopyFrom(proto)
    fixed, wanted, names = constants(proto), {}, []
    for node in apart.graph.node:
        if node.op_type == "Constant":
            continue
        wanted.update((name, given[name]) for name in node.input if name and name not in fixed)
        names += [name for name in node.output if name]
        node.output[:] = [name and f"alone.{name}" for name in node.output]
    del apart.graph.input[:], apart.graph.output[:], apart.graph.value_info[:]
    info = onnx.helper.make_tensor_value_info
    apart.graph.input.extend(info(name, tensor_type(value), value.shape) for name, value in wanted.items())
    apart.graph.output.extend(info(f"alone.{name}", tensor_type(given[name]), None) for name in names)
    answers = our_run(apart, wanted, ("--level", "none"))
    return {name: answers[f"alone.{name}"] for name in names}
