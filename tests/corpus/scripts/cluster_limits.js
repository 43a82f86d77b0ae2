// A service of two processes by Node's cluster that counts the requests of each address. Addresses that were silent for a second are
// forgotten each second; or they are kept, with the headers of their last request.
const cluster = require("cluster");
const http = require("http");
const [form, , port] = process.argv.slice(2);
if (cluster.isPrimary) {
  for (let i = 0; i < 2; ++i) cluster.fork();
} else {
  const seen = new Map();
  http.createServer((request, response) => {
    const address = request.headers["x-forwarded-for"];
    const known = seen.get(address) || { count: 0 };
    seen.set(address, { count: known.count + 1, last: Date.now(), headers: form === "leaks" ? request.headers : null });
    response.writeHead(known.count > 100 ? 429 : 200).end("hello " + address);
  }).listen(Number(port), "127.0.0.1");
  if (form === "steady")
    setInterval(() => {
      for (const [address, one] of seen)
        if (one.last < Date.now() - 1000) seen.delete(address);
    }, 1000);
}
