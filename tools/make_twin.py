#!/usr/bin/env python3
"""Writes the twin of an ONNX model in another float type: make_twin.py IN OUT --type float16|bfloat16|double

Every float32 of the file becomes that type: initializers, constants, inputs, outputs, value_info, Cast and
what makes tensors. Only for models without external data.
"""
import argparse

import numpy
import onnx
from onnx import TensorProto, numpy_helper

TYPES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "double": TensorProto.DOUBLE}


def bfloat16_bits(values):
    """Rounded to the nearest even."""
    bits = numpy.atleast_1d(values.astype(numpy.float32)).view(numpy.uint32).astype(numpy.int64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def convert_tensor(tensor, target):
    if tensor.data_type != TensorProto.FLOAT:
        return
    values = numpy_helper.to_array(tensor)
    twin = TensorProto(name=tensor.name, data_type=target, dims=tensor.dims)
    if target == TensorProto.BFLOAT16:
        twin.raw_data = bfloat16_bits(values).tobytes()
    else:
        kind = numpy.float16 if target == TensorProto.FLOAT16 else numpy.float64
        limit = numpy.finfo(kind).max
        twin.raw_data = numpy.clip(values, -limit, limit).astype(kind).tobytes()
    tensor.CopyFrom(twin)


def convert_value(value, target):
    if value.type.tensor_type.elem_type == TensorProto.FLOAT:
        value.type.tensor_type.elem_type = target


# Inputs that stay float32 whatever the others are.
KEPT = {"Resize": (1, 2), "Upsample": (1,)}


def kept_names(graph):
    return {node.input[i] for node in graph.node for i in KEPT.get(node.op_type, ()) if i < len(node.input)}


def convert_graph(graph, target):
    kept = kept_names(graph)
    for tensor in graph.initializer:
        if tensor.name not in kept:
            convert_tensor(tensor, target)
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            if value.name not in kept:
                convert_value(value, target)
    for node in graph.node:
        if node.op_type == "Constant" and node.output[0] in kept:
            continue
        for attribute in node.attribute:
            if attribute.HasField("t"):
                convert_tensor(attribute.t, target)
            if attribute.HasField("g"):
                convert_graph(attribute.g, target)
            is_type = (node.op_type, attribute.name) in (("Cast", "to"), ("RandomNormalLike", "dtype"))
            if is_type and attribute.i == TensorProto.FLOAT:
                attribute.i = target
            if node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                values = numpy.array(attribute.f if attribute.name == "value_float" else attribute.floats)
                tensor = numpy_helper.from_array(values.astype(numpy.float32))
                convert_tensor(tensor, target)
                attribute.CopyFrom(onnx.helper.make_attribute("value", tensor))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("destination")
    parser.add_argument("--type", choices=TYPES, required=True)
    arguments = parser.parse_args()
    model = onnx.load(arguments.source)
    convert_graph(model.graph, TYPES[arguments.type])
    for function in model.functions:
        for node in function.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    convert_tensor(attribute.t, TYPES[arguments.type])
    onnx.save(model, arguments.destination)


if __name__ == "__main__":
    main()
