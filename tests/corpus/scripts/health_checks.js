// Asks the services of a house whether they are there. What they answer is not of interest, and is read and thrown away, or is
// not read: then each connection waits for that, with what has come of the answer.
const http = require("http");
const [form, seed, port] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const seen = {};
const pause = 90 + 60 * random();
setInterval(() => {
  const asked = http.get({ host: "127.0.0.1", port: Number(port) + 1, path: "/" + Math.floor(20 * random()) }, (answer) => {
    seen[answer.statusCode] = (seen[answer.statusCode] || 0) + 1;
    if (form === "steady") answer.resume();
  });
  asked.on("error", () => {});
}, pause);
