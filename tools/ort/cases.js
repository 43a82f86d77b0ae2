// node cases.js JOBS.json: runs many small models, each once, and prints a line of JSON for each: {outputs} or {error}.
// Whoever reads sees by the number of lines which one ended the process.
// JOBS: [{model, inputs: [{name, type, dims, file}], directory}]
'use strict';
const fs = require('fs');
const path = require('path');
const { ort, readFeeds, writeTensor } = require('./tensors.js');

async function answer(job) {
  const session = await ort.InferenceSession.create(job.model, {
    intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: 'disabled', logSeverityLevel: 4,
  });
  const results = await session.run(readFeeds(job.inputs));
  const outputs = session.outputNames.map(
    (name, k) => writeTensor(name, results[name], path.join(job.directory, `output_${k}.raw`)));
  await session.release();
  return { outputs };
}

async function main() {
  for (const job of JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))) {
    let line;
    try {
      line = await answer(job);
    } catch (error) {
      line = { error: error.message };
    }
    fs.writeSync(1, JSON.stringify(line) + '\n');
  }
}

main().catch((error) => {
  console.error(`error: ${error.message}`);
  process.exit(1);
});
