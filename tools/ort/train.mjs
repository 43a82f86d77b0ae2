// node tools/ort/train.mjs JOB.json: ONNX Runtime's own training (onnxruntime-web 1.19.2, the last that has it), in WebAssembly.
// PLIMSOLL_ORT_WEB names the package. The job:
//   {"training", "eval", "optimizer", "checkpoint": files, "batches": [[{"type", "dims", "file"}, ...], ...] of raw bytes,
//    "rate": of every step,
//    "properties": {name: whole number}, "save": a file for the checkpoint, "parameters": a file for all of them}
// Prints one line of JSON: the losses of all batches, the loss of an evaluation of the last, and the rate.
//
// What JavaScript is given has no way to save a checkpoint, but the code is there: the table of the training API
// (onnxruntime_training_c_api.h) is found in the module's data by how many arguments its functions take, and called
// directly. The module has no files: its open, write and close are answered here with Node's.
import fs from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const job = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const stem = path.join(process.env.PLIMSOLL_ORT_WEB, 'dist', 'ort-training-wasm-simd-threaded');

// The imports of this very version, by their short names.
const OPEN = 'o', WRITE = 'm', CLOSE = 'h', THROW = 'b', TABLE = 'Sa';
// Functions of OrtTrainingApi, in their order, by their number of arguments.
const API = [
  ['LoadCheckpoint', 2], ['SaveCheckpoint', 3], ['CreateTrainingSession', 7], ['CreateTrainingSessionFromBuffer', 10],
  ['TrainingSessionGetTrainingModelOutputCount', 2], ['TrainingSessionGetEvalModelOutputCount', 2],
  ['TrainingSessionGetTrainingModelOutputName', 4], ['TrainingSessionGetEvalModelOutputName', 4], ['LazyResetGrad', 1],
  ['TrainStep', 6], ['EvalStep', 6], ['SetLearningRate', 2], ['GetLearningRate', 2], ['OptimizerStep', 2],
  ['RegisterLinearLRScheduler', 4], ['SchedulerStep', 1], ['GetParametersSize', 3], ['CopyParametersToBuffer', 3],
  ['CopyBufferToParameters', 3], ['ReleaseTrainingSession', 1], ['ReleaseCheckpointState', 1], ['ExportModelForInferencing', 4],
  ['SetSeed', 1], ['TrainingSessionGetTrainingModelInputCount', 2], ['TrainingSessionGetEvalModelInputCount', 2],
  ['TrainingSessionGetTrainingModelInputName', 4], ['TrainingSessionGetEvalModelInputName', 4], ['AddProperty', 4],
];
const DATA_BYTES = 2 << 20; // constants are at the beginning of the memory
const INT_PROPERTY = 0;
const ONNX_TYPES = {float32: 1, int32: 6, int64: 7};

let table;
const make = (await import(pathToFileURL(stem + '.mjs'))).default;
const wasm = await make({numThreads: 1, instantiateWasm(imports, done) {
  const functions = imports.a;
  functions[OPEN] = (folder, name, flags) => fs.openSync(wasm.UTF8ToString(name), flags & 3 ? 'w' : 'r');
  functions[CLOSE] = (file) => { fs.closeSync(file); return 0; };
  functions[THROW] = (exception) => { throw new Error(`ONNX Runtime threw: ${whatIs(exception)}`); };
  const print = functions[WRITE];
  functions[WRITE] = (file, pieces, count, written) => {
    if (file <= 2) return print(file, pieces, count, written);
    let total = 0;
    for (let i = 0; i < count; ++i) {
      const [at, size] = wasm.HEAPU32.subarray((pieces >> 2) + 2 * i, (pieces >> 2) + 2 * i + 2);
      total += fs.writeSync(file, Buffer.from(wasm.HEAPU8.slice(at, at + size)));
    }
    wasm.HEAPU32[written >> 2] = total;
    return 0;
  };
  WebAssembly.instantiate(fs.readFileSync(stem + '.wasm'), imports).then(({instance, module}) => {
    table = instance.exports[TABLE];
    done(instance, module);
  });
  return {};
}});

// The texts that an exception of its points at: the build has no catch.
function whatIs(exception) {
  const texts = [];
  for (let at = exception >> 2; at < (exception >> 2) + 24; ++at) {
    const found = wasm.UTF8ToString(wasm.HEAPU32[at]);
    if (/^[\x20-\x7e\n]{12,}$/.test(found)) texts.push(found);
  }
  return texts.join(' | ');
}

function lastError() {
  const at = wasm.stackAlloc(8);
  wasm._OrtGetLastError(at, at + 4);
  return wasm.UTF8ToString(wasm.HEAPU32[(at + 4) >> 2]);
}
function checked(good, what) {
  if (!good) throw new Error(`${what}: ${lastError()}`);
}
function copied(bytes) {
  const at = wasm._malloc(bytes.length);
  wasm.HEAPU8.set(bytes, at);
  return at;
}
const text = (value) => copied(Buffer.from(value + '\0'));

function trainingApi() {
  const argumentsOf = (index) => index > 0 && index < table.length ? table.get(index)?.length : undefined;
  const words = DATA_BYTES / 4, places = [];
  for (let at = 256; at + API.length < words; ++at) {
    if (API.every(([, count], i) => argumentsOf(wasm.HEAPU32[at + i]) === count)) places.push(at);
  }
  if (places.length !== 1) throw new Error(`expected one table of the training API in the module, found ${places.length}`);
  return Object.fromEntries(API.map(([name], i) => [name, (...given) => {
    const status = table.get(wasm.HEAPU32[places[0] + i])(...given);
    if (status !== 0) throw new Error(`${name} failed: code ${wasm.HEAPU32[status >> 2]}, ${wasm.UTF8ToString(status + 4)}`);
  }]));
}

function loadState(file) {
  const bytes = fs.readFileSync(file), at = copied(bytes);
  const state = wasm._OrtTrainingLoadCheckpoint(at, bytes.length);
  checked(state, 'LoadCheckpoint');
  wasm._free(at);
  return state;
}

function openSession(state) {
  const none = text(''), options = wasm._OrtCreateSessionOptions(99, 1, 1, 0, 0, 0, none, 2, 0, 0);
  checked(options, 'CreateSessionOptions');
  const models = [job.training, job.eval, job.optimizer].flatMap((file) => {
    const bytes = fs.readFileSync(file);
    return [copied(bytes), bytes.length];
  });
  const session = wasm._OrtTrainingCreateSession(options, state, ...models);
  checked(session, 'CreateSession');
  return session;
}

function tensor(type, data, bytes, dims) {
  const shape = wasm._malloc(4 * Math.max(1, dims.length));
  dims.forEach((size, i) => { wasm.HEAP32[(shape >> 2) + i] = size; });
  const value = wasm._OrtCreateTensor(ONNX_TYPES[type], data, bytes, shape, dims.length, 1);
  checked(value, 'CreateTensor');
  return value;
}

function run(step, session, batch) {
  const room = wasm.stackSave();
  const values = batch.map(({type, dims, file}) => {
    const bytes = fs.readFileSync(file);
    return tensor(type, copied(bytes), bytes.length, dims);
  });
  const inputs = wasm.stackAlloc(4 * values.length), output = wasm.stackAlloc(4), options = wasm._OrtCreateRunOptions(2, 0, 0, text(''));
  values.forEach((value, i) => { wasm.HEAPU32[(inputs >> 2) + i] = value; });
  wasm.HEAPU32[output >> 2] = 0;
  checked(step(session, inputs, values.length, output, 1, options) === 0, 'a step');
  const fields = wasm.stackAlloc(16);
  checked(wasm._OrtGetTensorData(wasm.HEAPU32[output >> 2], fields, fields + 4, fields + 8, fields + 12) === 0, 'GetTensorData');
  const loss = wasm.HEAPF32[wasm.HEAPU32[(fields + 4) >> 2] >> 2];
  wasm.stackRestore(room);
  return loss;
}

function parameters(session) {
  const count = wasm.stackAlloc(4);
  checked(wasm._OrtTrainingGetParametersSize(session, count, 0) === 0, 'GetParametersSize');
  const size = wasm.HEAPU32[count >> 2], buffer = wasm._malloc(4 * size);
  const value = tensor('float32', buffer, 4 * size, [size]);
  checked(wasm._OrtTrainingCopyParametersToBuffer(session, value, size, 0) === 0, 'CopyParametersToBuffer');
  return Buffer.from(wasm.HEAPU8.slice(buffer, buffer + 4 * size));
}

checked(wasm._OrtInit(1, 3) === 0, 'OrtInit');
const api = trainingApi();
const state = loadState(job.checkpoint);
for (const [name, value] of Object.entries(job.properties ?? {})) {
  const place = wasm._malloc(8);
  new BigInt64Array(wasm.HEAPU8.buffer, place, 1)[0] = BigInt(value);
  api.AddProperty(state, text(name), INT_PROPERTY, place);
}
const session = openSession(state), losses = [];
if (job.rate !== undefined) api.SetLearningRate(session, job.rate);
for (const batch of job.batches) {
  losses.push(run(wasm._OrtTrainingRunTrainStep, session, batch));
  checked(wasm._OrtTrainingOptimizerStep(session, wasm._OrtCreateRunOptions(2, 0, 0, text(''))) === 0, 'OptimizerStep');
  checked(wasm._OrtTrainingLazyResetGrad(session) === 0, 'LazyResetGrad');
}
const evaluated = run(wasm._OrtTrainingEvalStep, session, job.batches[job.batches.length - 1]);
const rate = wasm.stackAlloc(4);
api.GetLearningRate(session, rate);
if (job.parameters) fs.writeFileSync(job.parameters, parameters(session));
if (job.save) api.SaveCheckpoint(state, text(job.save), 1);
console.log(JSON.stringify({losses, evaluated, rate: wasm.HEAPF32[rate >> 2]}));
