// node run.js JOB.json: runs a model on each data set of the job and prints, as JSON, where the outputs were written.
// JOB: {model, exact, sets: [{inputs: [{name, type, dims, file}], directory}]}; exact: sums of bytes that do not saturate.
'use strict';
const fs = require('fs');
const path = require('path');
const { ort, readFeeds, writeTensor } = require('./tensors.js');

async function main() {
  const job = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  // One thread, so that sums are taken in one order.
  const session = await ort.InferenceSession.create(job.model, {
    intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: 'all', logSeverityLevel: 3,
    ...(job.exact ? { extra: { session: { x64quantprecision: '1' } } } : {}),
  });
  const answers = [];
  for (const set of job.sets) {
    const results = await session.run(readFeeds(set.inputs));
    answers.push(session.outputNames.map(
      (name, k) => writeTensor(name, results[name], path.join(set.directory, `output_${k}.raw`))));
  }
  console.log(JSON.stringify({ version: ort.env.versions.node, inputs: session.inputNames, sets: answers }));
}

main().catch((error) => {
  console.error(`error: ${error.message}`);
  process.exit(1);
});
