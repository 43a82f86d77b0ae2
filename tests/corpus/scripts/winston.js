// A log for each request: a child of the application's logger, or a logger of its own on the same transport, which
// then has listeners for each of them.
const http = require("http");
const fs = require("fs");
const winston = require("winston");
const [form, , port] = process.argv.slice(2);
const transport = new winston.transports.Stream({ stream: fs.createWriteStream("/dev/null") });
transport.setMaxListeners(0);
const format = winston.format.combine(winston.format.timestamp(), winston.format.json());
const application = winston.createLogger({ format, transports: [transport] });
http.createServer((request, response) => {
  const about = { path: request.url, trail: Array.from({ length: 200 }, (_, i) => `step ${i} of ${request.url}`) };
  const logger = form === "steady" ? application.child(about) : winston.createLogger({ format, defaultMeta: about, transports: [transport] });
  logger.info("request", { headers: request.headers });
  response.end("logged");
}).listen(Number(port), "127.0.0.1");
