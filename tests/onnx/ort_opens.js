// node ort_opens.js LIST: opens the models of LIST (lines "WRITTEN ORIGINAL") with ONNX Runtime. A model that we wrote
// must open if the original does. Last line: N opened, M refused as the original is, K lost.
'use strict';
const fs = require('fs');
const ort = require(process.env.PLIMSOLL_ORT);

async function problem(file) {
  try {
    const session = await ort.InferenceSession.create(file, { graphOptimizationLevel: 'disabled', logSeverityLevel: 4 });
    await session.release();
    return null;
  } catch (error) {
    return error.message;
  }
}

async function main() {
  const counts = { opened: 0, refused: 0, lost: 0 };
  for (const line of fs.readFileSync(process.argv[2], 'utf8').trim().split('\n')) {
    const [written, original] = line.split(' ');
    const wrong = await problem(written);
    if (wrong === null) {
      counts.opened += 1;
    } else if (await problem(original) !== null) {
      counts.refused += 1;
    } else {
      counts.lost += 1;
      console.error(`${original}: ${wrong}`);
    }
  }
  console.log(`${counts.opened} opened, ${counts.refused} refused as the original is, ${counts.lost} lost`);
  process.exit(counts.lost === 0 && counts.opened > 0 ? 0 : 1);
}

main();
