// node run.js JOB.json: runs a model on each data set of the job and prints, as JSON, where the outputs were written.
// JOB: {model, exact, level, sets: [{inputs: [{name, type, dims, file}], carry, directory}]}; exact: sums of bytes that do not
// saturate; level: of optimization, 'all' unless told; carry: {input: output}, what later sets are given of this one's answers.
'use strict';
const fs = require('fs');
const path = require('path');
const { ort, readFeeds, writeTensor } = require('./tensors.js');

async function main() {
  const job = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  // One thread, so that sums are taken in one order.
  const session = await ort.InferenceSession.create(job.model, {
    intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: job.level || 'all', logSeverityLevel: 3,
    ...(job.exact ? { extra: { session: { x64quantprecision: '1' } } } : {}),
  });
  const answers = [], carried = {};
  for (const set of job.sets) {
    const results = await session.run({ ...carried, ...readFeeds(set.inputs) });
    for (const [input, output] of Object.entries(set.carry || {})) carried[input] = results[output];
    answers.push(session.outputNames.map(
      (name, k) => writeTensor(name, results[name], path.join(set.directory, `output_${k}.raw`))));
  }
  console.log(JSON.stringify({ version: ort.env.versions.node, inputs: session.inputNames, sets: answers }));
}

main().catch((error) => {
  console.error(`error: ${error.message}`);
  process.exit(1);
});
