// Tensors between Python and ONNX Runtime: a job names raw little-endian files, with types and dims.
'use strict';
const fs = require('fs');
const ort = require(process.env.PLIMSOLL_ORT || 'onnxruntime-node');

const arrays = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array, bool: Uint8Array,
  int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array,
  int64: BigInt64Array, uint64: BigUint64Array, float16: Uint16Array,
};

function readTensor({ type, dims, file }) {
  const bytes = fs.readFileSync(file);
  const aligned = new Uint8Array(bytes.length);
  aligned.set(bytes);
  return new ort.Tensor(type, new arrays[type](aligned.buffer), dims);
}

exports.ort = ort;
exports.arrays = arrays;

exports.readFeeds = (inputs) =>
  Object.fromEntries(inputs.map((input) => [input.name, readTensor(input)]));

// Writes a tensor's data to `file`; returns what Python needs to read it back.
exports.writeTensor = (name, tensor, file) => {
  const { buffer, byteOffset, byteLength } = tensor.data;
  fs.writeFileSync(file, new Uint8Array(buffer, byteOffset, byteLength));
  return { name, type: tensor.type, dims: tensor.dims, file };
};
