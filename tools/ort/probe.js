// node probe.js LIST DIRECTORY [exact]: loads every model that LIST names, makes inputs for it that ONNX Runtime accepts, and runs it.
// A line of JSON for each: {model, outcome: load|run|ok, error, inputs, outputs}; tensors are in files below DIRECTORY.
// Whoever reads sees by a missing line which model ended the process.
'use strict';
const fs = require('fs');
const path = require('path');
const { ort, arrays } = require('./tensors.js');

// Sizes for dimensions that are not told, by attempt: small ones first, then what networks usually want.
const SIZES = [
  [/batch|^n$|^b$/i, [1, 2, 1, 1, 1, 1]],
  [/past|cache/i, [8, 0, 4, 16, 1, 0]],
  [/total/i, [16, 8, 8, 32, 2, 8]],
  [/height|width|^h$|^w$/i, [64, 224, 128, 320, 32, 640]],
  [/seq|len|time|token/i, [8, 8, 4, 16, 1, 512]],
  [/sample|audio/i, [16000, 512, 1600, 32000, 4096, 1024]],
];
const ATTEMPTS = SIZES[0][1].length;

function sizeOf(dim, axis, rank, attempt) {
  for (const [names, sizes] of SIZES) if (typeof dim === 'string' && names.test(dim)) return sizes[attempt];
  if (rank === 4 && axis >= 2) return SIZES[3][1][attempt];
  if (rank === 4 && axis === 1) return 3;
  if (axis === 0 && rank > 1) return SIZES[0][1][attempt];
  return [8, 16, 4, 1, 64, 512][attempt];
}

function generator(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

function valuesOf({ name, type }, dims, random) {
  const count = dims.reduce((a, b) => a * b, 1);
  if (type === 'string') return Array.from({ length: count }, (_, i) => ['hello', 'world', 'a b', '1'][i % 4]);
  const normal = () => (random() + random() + random() + random() - 2) * 1.7;
  return Array.from({ length: count }, (_, i) => {
    if (type.startsWith('float')) return normal();
    if (type === 'bool') return random() < 0.5 ? 1 : 0;
    if (/mask/i.test(name)) return 1;
    if (/position/i.test(name)) return i % dims[dims.length - 1];
    return Math.floor(random() * (/int8/.test(type) ? 100 : 4));
  });
}

// The bits of a float16, cut off; for numbers of moderate size.
function halfBits(x) {
  const bits = new Uint32Array(Float32Array.of(x).buffer)[0], exponent = ((bits >>> 23) & 255) - 112;
  return ((bits >>> 16) & 0x8000) | (exponent <= 0 ? 0 : (exponent << 10) | ((bits >>> 13) & 0x3ff));
}

function tensorOf(input, sizes, attempt, random) {
  const dims = input.shape.map((dim, axis) => {
    if (typeof dim === 'number' && dim >= 0) return dim;
    const key = dim || `${input.name} ${axis}`;
    return (sizes[key] ??= sizeOf(dim, axis, input.shape.length, attempt));
  });
  const values = valuesOf(input, dims, random);
  if (input.type === 'string') return new ort.Tensor('string', values, dims);
  if (input.type === 'float16') return new ort.Tensor('float16', Uint16Array.from(values, halfBits), dims);
  if (!(input.type in arrays)) throw new Error(`no values of type ${input.type} are made here`);
  const whole = input.type.endsWith('int64');
  return new ort.Tensor(input.type, arrays[input.type].from(whole ? values.map(BigInt) : values), dims);
}

function store(name, tensor, file) {
  const { type, dims, data } = tensor;
  fs.writeFileSync(file, type === 'string' ? JSON.stringify(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return { name, type, dims, file };
}

async function probe(model, directory) {
  let session, error;
  try {
    session = await ort.InferenceSession.create(model, {
      intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
      ...(process.argv[4] === 'exact' && { extra: { session: { x64quantprecision: '1' } } }),
    });
  } catch (problem) {
    return { outcome: 'load', error: problem.message };
  }
  for (let attempt = 0; attempt < ATTEMPTS; ++attempt) {
    try {
      const sizes = {}, feeds = {}, random = generator(1 + attempt);
      for (const input of session.inputMetadata) {
        if (!input.isTensor) throw new Error(`input ${input.name} is no tensor`);
        feeds[input.name] = tensorOf(input, sizes, attempt, random);
      }
      const results = await session.run(feeds);
      const files = (names, values, role) => names.map((name, k) => store(name, values[name], path.join(directory, `${role}_${k}.raw`)));
      return { outcome: 'ok', inputs: files(Object.keys(feeds), feeds, 'input'), outputs: files(session.outputNames, results, 'output') };
    } catch (problem) {
      error = problem.message;
    }
  }
  return { outcome: 'run', error };
}

async function main() {
  const [list, directory] = process.argv.slice(2);
  for (const [k, model] of fs.readFileSync(list, 'utf8').trim().split('\n').entries()) {
    const place = path.join(directory, String(k));
    fs.mkdirSync(place);
    fs.writeSync(1, JSON.stringify({ model, ...(await probe(model, place)) }) + '\n');
  }
}

main().catch((error) => {
  console.error(`error: ${error.message}`);
  process.exit(1);
});
