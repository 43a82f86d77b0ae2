// A shop that measures how long its answers take, by route or by address: then every request is a series of its own, with
// all its buckets.
const http = require("http");
const { Histogram, Summary } = require("prom-client");
const [form, , port] = process.argv.slice(2);
const times = new Histogram({ name: "answer_seconds", help: "time to answer", labelNames: ["path", "status"] });
const sizes = new Summary({ name: "answer_bytes", help: "bytes of answers", labelNames: ["path", "status"] });
http.createServer((request, response) => {
  const end = times.startTimer();
  const status = parseInt(request.url.slice(7)) % 50 === 0 ? 404 : 200;
  const path = form === "leaks" ? request.url : "/order/:number";
  const text = JSON.stringify({ order: request.url, lines: Array.from({ length: 20 }, (_, i) => ({ article: i })) });
  response.writeHead(status).end(text);
  end({ path, status });
  sizes.observe({ path, status }, text.length);
}).listen(Number(port), "127.0.0.1");
