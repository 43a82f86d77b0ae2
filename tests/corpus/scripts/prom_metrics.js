// A shop that measures how long its answers take, by route or by address: then every order is a series of its own, with all its buckets.
const http = require("http");
const { Counter, Histogram, register } = require("prom-client");
const [form, , port] = process.argv.slice(2);
const times = new Histogram({ name: "answer_seconds", help: "time to answer", labelNames: ["path", "status"] });
const count = new Counter({ name: "answers", help: "answers", labelNames: ["path", "status"] });
http.createServer((request, response) => {
  const end = times.startTimer();
  const status = Number(request.url.slice(7)) % 50 === 0 ? 404 : 200;
  const path = form === "leaks" ? request.url : "/order/:number";
  response.writeHead(status).end(JSON.stringify({ order: request.url, lines: Array.from({ length: 20 }, (_, i) => ({ article: i })) }));
  end({ path, status });
  count.inc({ path, status });
}).listen(Number(port), "127.0.0.1");
