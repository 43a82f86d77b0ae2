"""Whether a model's answers differ from ONNX Runtime's by more than rounding: for `quantized.py --agree`.

The whole model is a poor witness: where 8 bits hardly hold the activations, one step in one element is a different answer. So
every node is also run by itself, on what ONNX Runtime gave to it, and its outputs are compared; and ONNX Runtime is compared
with itself on a model whose scales are larger by one unit in the last place: what that changes, rounding may change.
"""
import json
import math
import pathlib
import subprocess

import compare

RUN_JS = str(compare.ROOT / "tools" / "ort" / "run.js")


def decibels(found, expected):
    import numpy
    if numpy.array_equal(found, expected):
        return math.inf
    found, expected = found.astype(numpy.float64), expected.astype(numpy.float64)
    return float(10 * numpy.log10(numpy.sum(expected ** 2) / numpy.sum((found - expected) ** 2)))


class Agreement:
    """Of one model on one sample. `inputs` are as tools/cases.py describes them; files go to `directory`."""

    def __init__(self, path, inputs, directory):
        self.path, self.inputs, self.directory = path, inputs, pathlib.Path(directory)

    def theirs(self, path, level, folder):
        import numpy
        out = self.directory / folder
        out.mkdir(exist_ok=True)
        job = self.directory / "job.json"
        job.write_text(json.dumps({"model": str(path), "exact": True, "level": level,
                                   "sets": [{"inputs": self.inputs, "directory": str(out)}]}))
        answer, _, _ = compare.measure(["node", RUN_JS, str(job)])
        return {value["name"]: numpy.fromfile(value["file"], value["type"]).reshape(value["dims"]) for value in answer["sets"][0]}

    def ours(self, path, inputs, level, names):
        import numpy
        out = self.directory / "ours"
        subprocess.run([str(compare.PLIMSOLL), "run", str(path), *(f"--input={name}={file}" for name, file in inputs.items()),
                        "--level", level, "--output", str(out)], check=True, stdout=subprocess.DEVNULL)
        return {name: numpy.load(out / f"{k}.npy") for k, name in enumerate(names)}

    def whole(self):
        """The first output: decibels from here to ONNX Runtime, and of each to itself without rewrites."""
        given = {tensor["name"]: tensor["npy"] for tensor in self.inputs}
        fused = self.theirs(self.path, "all", "all")
        name = next(iter(fused))
        plain = self.theirs(self.path, "disabled", "plain")[name]
        ours = {level: self.ours(self.path, given, level, [name])[name] for level in ("all", "none")}
        return {"to_ort": decibels(ours["all"], fused[name]), "to_plain_ort": decibels(ours["none"], plain),
                "ours": decibels(ours["all"], ours["none"]), "ort": decibels(fused[name], plain)}

    def nudged(self):
        """ONNX Runtime against itself, with every scale larger by one unit in the last place."""
        import numpy
        import onnx
        import onnx.numpy_helper
        model = onnx.load(str(self.path))
        scales = [t for t in model.graph.initializer if t.data_type == 1 and t.name.endswith("_scale")]
        for tensor in scales:
            values = onnx.numpy_helper.to_array(tensor)
            tensor.CopyFrom(onnx.numpy_helper.from_array(numpy.nextafter(values, numpy.float32(numpy.inf)), tensor.name))
        if not scales:
            return None
        other = self.directory / "nudged.onnx"
        onnx.save(model, str(other))
        plain, moved = (self.theirs(path, "disabled", "nudged") for path in (self.path, other))
        name = next(iter(plain))
        return decibels(moved[name], plain[name])

    def nodes(self):
        """Every node by itself on ONNX Runtime's values: how many nodes; the integers that differ, of how many, and the most steps;
        the largest distance of floats, over the largest value of their tensor. None for a model with bodies."""
        import numpy
        import onnx
        import onnx.mapping
        model = onnx.load(str(self.path))
        if any(a.HasField("g") or a.graphs for node in model.graph.node for a in node.attribute):
            return None
        values = self.values(model)
        constants = {tensor.name for tensor in model.graph.initializer}
        flat, feeds, places = onnx.ModelProto(), {}, {}
        flat.CopyFrom(model)
        for field in ("input", "output", "value_info"):
            flat.graph.ClearField(field)
        for node in flat.graph.node:
            for k, name in enumerate(node.input):
                if not name or name in constants:
                    continue
                if name not in places:
                    places[name] = f"given_{len(places)}"
                    feeds[places[name]] = self.directory / f"{places[name]}.npy"
                    numpy.save(feeds[places[name]], values[name])
                    flat.graph.input.append(onnx.helper.make_tensor_value_info(
                        places[name], onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[values[name].dtype], values[name].shape))
                node.input[k] = places[name]
        names = [name for node in flat.graph.node for name in node.output if name]
        flat.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        path = self.directory / "nodes.onnx"
        onnx.save(flat, str(path))
        found = self.ours(path, feeds, "none", names)
        result = {"nodes": len(flat.graph.node), "integers": 0, "differ": 0, "steps": 0, "floats": 0.0}
        for name in names:
            a, b = found[name], values[name]
            if b.dtype.kind == "f":
                top = numpy.abs(b[numpy.isfinite(b)]).max(initial=0) or 1
                with numpy.errstate(invalid="ignore"):
                    apart = numpy.where(a == b, 0, numpy.abs(a.astype(float) - b))
                result["floats"] = max(result["floats"], float(apart.max(initial=0) / top))
            else:
                apart = numpy.abs(a.astype(numpy.int64) - b.astype(numpy.int64))
                result["integers"] += apart.size
                result["differ"] += int((apart > 0).sum())
                result["steps"] = max(result["steps"], int(apart.max(initial=0)))
        return result

    def values(self, model):
        """What ONNX Runtime has for every value of the model."""
        import numpy
        import onnx
        every = onnx.ModelProto()
        every.CopyFrom(model)
        there = {output.name for output in every.graph.output}
        every.graph.output.extend(onnx.ValueInfoProto(name=name) for node in model.graph.node for name in node.output
                                  if name and name not in there)
        path = self.directory / "values.onnx"
        onnx.save(every, str(path))
        values = self.theirs(path, "disabled", "values")
        values.update({tensor["name"]: numpy.load(tensor["npy"]) for tensor in self.inputs})
        return values
