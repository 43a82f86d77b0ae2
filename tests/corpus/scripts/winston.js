// A logger per request on one shared transport, which hears of its end only when the logger is closed.
const http = require("http");
const fs = require("fs");
const winston = require("winston");
const [form, , port] = process.argv.slice(2);
const transport = new winston.transports.Stream({ stream: fs.createWriteStream("/dev/null") });
transport.setMaxListeners(0);
http.createServer((request, response) => {
  const logger = winston.createLogger({
    level: "info", defaultMeta: { path: request.url, trail: Array.from({ length: 250 }, (_, i) => `step ${i} of ${request.url}`) },
    format: winston.format.combine(winston.format.timestamp(), winston.format.json()), transports: [transport],
  });
  logger.info("request", { headers: request.headers });
  if (form === "steady") {
    logger.unpipe(transport);
    logger.close();
  }
  response.end("logged " + transport.listenerCount("unpipe"));
}).listen(Number(port), "127.0.0.1");
