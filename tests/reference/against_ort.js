// node against_ort.js JOB.json: runs small models in ONNX Runtime, each on one set of inputs, and prints, as JSON, where the
// outputs were written, or why there are none. JOB: {cases: [{model, directory, inputs: [{name, type, dims, file}]}]}
'use strict';
const fs = require('fs');
const path = require('path');
const { ort, readFeeds, writeTensor } = require('../../tools/ort/tensors.js');

async function one({ model, directory, inputs }) {
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: 'disabled', logSeverityLevel: 4,
    extra: { session: { x64quantprecision: '1' } },  // without, sums of bytes saturate on AVX2
  });
  const results = await session.run(readFeeds(inputs));
  const outputs = session.outputNames.map((name, k) => writeTensor(name, results[name], path.join(directory, `output_${k}.raw`)));
  await session.release();
  return { outputs };
}

async function main() {
  const answers = [];
  for (const job of JSON.parse(fs.readFileSync(process.argv[2], 'utf8')).cases) {
    answers.push(await one(job).catch((error) => ({ error: error.message })));
  }
  console.log(JSON.stringify(answers));
}

main();
