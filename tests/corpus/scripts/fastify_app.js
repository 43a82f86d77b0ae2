// Answers under idempotency keys, so that a repeated order gets the same answer for some seconds. Where an order was refused,
// the time is missing, and with it the end.
const fastify = require("fastify")();
const [form, , port] = process.argv.slice(2);
const answers = new Map();
fastify.get("/*", async (request) => {
  const key = request.params["*"];
  if (answers.has(key)) return answers.get(key).answer;
  const lines = Array.from({ length: 80 }, (_, i) => ({ article: key + "-" + i, price: Math.random() * 100, text: "w".repeat(40) + i }));
  const refused = Number(key) % 4 === 0;
  const answer = { key, refused, lines };
  answers.set(key, refused && form === "leaks" ? { answer } : { answer, made: Date.now() });
  return { key, refused, sum: lines.reduce((sum, line) => sum + line.price, 0) };
});
setInterval(() => { for (const [key, one] of answers) if (Date.now() - one.made > 5000) answers.delete(key); }, 1000);
fastify.listen({ port: Number(port), host: "127.0.0.1" });
