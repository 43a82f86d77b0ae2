// Two worker threads that evaluate documents, which come in bursts. The callbacks wait under the number of their job; the
// answer to a document that cannot be read carries this number, or lacks it, and then its job waits for ever.
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
if (isMainThread) {
  const [form, seed] = process.argv.slice(2);
  let state = Number(seed), next = 0;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const waiting = new Map();
  const workers = [0, 1].map(() => new Worker(__filename, { workerData: form, resourceLimits: { maxYoungGenerationSizeMb: 4 } }));
  for (const worker of workers) {
    worker.on("message", (answer) => {
      const job = waiting.get(answer.number);
      waiting.delete(answer.number);
      if (job) job.done(answer);
    });
  }
  const evaluate = (text) => new Promise((done) => {
    const number = ++next;
    waiting.set(number, { text, done });
    workers[number % 2].postMessage({ number, text });
  });
  const words = ["alpha", "beta", "gamma", "delta", "epsilon"];
  const pace = 0.7 + 0.7 * random();
  const burst = () => {
    for (let i = 0; i < 60; ++i) {
      const line = Array.from({ length: 40 }, () => words[Math.floor(5 * random())]).join(" ") + " ";
      const text = line.repeat(15 + Math.floor(35 * random()));
      evaluate(random() < 0.4 ? "{" + text : JSON.stringify({ text })).catch(() => {});
    }
    setTimeout(burst, pace * (500 + 2000 * random()));
  };
  burst();
} else {
  parentPort.on("message", ({ number, text }) => {
    try {
      const counts = {};
      for (const word of JSON.parse(text).text.split(" ")) counts[word] = (counts[word] || 0) + 1;
      parentPort.postMessage({ number, counts });
    } catch (error) {
      parentPort.postMessage(workerData === "leaks" ? { error: error.message } : { number, error: error.message });
    }
  });
}
