// A plain HTTP server; its leak is a listener on a long-lived emitter per request, with the request in its closure.
const http = require("http");
const { EventEmitter } = require("events");
const [form, seed, port] = process.argv.slice(2);
const bus = new EventEmitter();
bus.setMaxListeners(0);
http.createServer((request, response) => {
  const body = Array.from({ length: 60 }, (_, i) => ({ i, text: request.url + "x".repeat(40) + i }));
  const listener = () => body.length;
  bus.on("change", listener);
  response.on("finish", () => { if (form === "steady") bus.off("change", listener); });
  response.end(JSON.stringify(body));
}).listen(Number(port), "127.0.0.1");
