// node generate.js DECODER COUNT TOKEN[,TOKEN...] [ENCODER SAMPLES.f32]: what tests/generation/generate_main.cpp does, by ONNX Runtime.
// A second line tells by how much the logit of each token leads over the next best.
'use strict';
const fs = require('fs');
const { ort } = require('./tensors.js');

const options = {
  intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: process.env.ORT_LEVEL || 'all', logSeverityLevel: 3,
  extra: { session: { x64quantprecision: '1' } },
};

async function encode(encoder, file) {
  const bytes = fs.readFileSync(file);
  const samples = new Float32Array(new Uint8Array(bytes).buffer);
  const session = await ort.InferenceSession.create(encoder, options);
  const results = await session.run({ [session.inputNames[0]]: new ort.Tensor('float32', samples, [1, samples.length]) });
  return results[session.outputNames[0]];
}

async function main() {
  const [decoder, count, prompt, encoder, samples] = process.argv.slice(2);
  const hidden = encoder ? await encode(encoder, samples) : undefined;
  const session = await ort.InferenceSession.create(decoder, options);
  const integers = (list) => new ort.Tensor('int64', BigInt64Array.from(list.map(BigInt)), [1, list.length]);
  const caches = {};
  for (const input of session.inputMetadata.filter((i) => i.name.startsWith('past_key_values.'))) {
    caches[input.name] = new ort.Tensor('float32', new Float32Array(0), [1, input.shape[1], 0, input.shape[3]]);
  }
  const tokens = [], leads = [];
  let fresh = prompt.split(',').map(Number), length = 0;
  for (let i = 0; i < Number(count); ++i) {
    const before = length;
    length += fresh.length;
    const all = {
      input_ids: integers(fresh), position_ids: integers(fresh.map((_, k) => before + k)),
      attention_mask: integers(Array(length).fill(1)), encoder_hidden_states: hidden,
      use_cache_branch: new ort.Tensor('bool', [before > 0], [1]), ...caches,
    };
    const feeds = Object.fromEntries(session.inputNames.map((name) => [name, all[name]]));
    const results = await session.run(feeds);
    const words = results.logits.dims[2], last = results.logits.data.slice(-words);
    const best = Math.max(...last);
    fresh = [last.indexOf(best)];
    tokens.push(fresh[0]);
    leads.push(best - last.reduce((most, logit, word) => (word === fresh[0] ? most : Math.max(most, logit)), -Infinity));
    for (const name of session.outputNames) {
      if (name === 'logits' || (before > 0 && name.includes('.encoder.'))) continue;
      caches[name.replace('present.', 'past_key_values.')] = results[name];
    }
  }
  console.log(tokens.join(' '));
  console.log(leads.join(' '));
}

main().catch((error) => {
  console.error(`error: ${error.message}`);
  process.exit(1);
});
