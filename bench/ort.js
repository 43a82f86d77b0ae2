// node --expose-gc ort.js JOB.json: loads a model in ONNX Runtime, runs it for a while, prints one JSON object with its times.
// JOB: {model, inputs: [{name, type, dims, file}], threads, seconds}; seconds 0 means one run.
'use strict';
const fs = require('fs');
const { ort, readFeeds } = require('../tools/ort/tensors.js');

const MIN_RUNS = 5;
// Every run leaves its outputs to Node's garbage collector, which lets some 30 MB pass; that is not ONNX Runtime's memory.
const MAX_GARBAGE_BYTES = 8e6;

async function main() {
  const job = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  const feeds = readFeeds(job.inputs);

  const start = performance.now();
  const session = await ort.InferenceSession.create(job.model, {
    graphOptimizationLevel: 'all', executionMode: 'sequential',
    intraOpNumThreads: job.threads, interOpNumThreads: 1, logSeverityLevel: 3,
  });
  const loaded = performance.now();
  await session.run(feeds);
  const first = performance.now();

  const times = [];
  while (job.seconds > 0 && (times.length < MIN_RUNS || performance.now() - first < 1000 * job.seconds)) {
    const before = performance.now();
    await session.run(feeds);
    times.push(performance.now() - before);
    if (process.memoryUsage().arrayBuffers > MAX_GARBAGE_BYTES) gc();
  }
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
  console.log(JSON.stringify({
    load_ms: loaded - start, first_ms: first - loaded,
    min_ms: times[0], median_ms: at(0.5), p99_ms: at(0.99), runs: times.length,
  }));
}

main().catch((error) => {
  console.error(`error: ${error.message}`);
  process.exit(1);
});
