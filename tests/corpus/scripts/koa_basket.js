// A shop by Koa. While a basket is being answered it wants to know of new prices; where the customer had no money the handler
// returns before it stops listening. Somebody has silenced the warning about many listeners.
const Koa = require("koa");
const { EventEmitter } = require("events");
const [form, , port] = process.argv.slice(2);
const prices = new EventEmitter();
prices.setMaxListeners(0);
const app = new Koa();
app.use(async (context, next) => {
  context.set("x-shop", "one");
  await next();
});
app.use(async (context) => {
  const number = context.path.slice(1);
  const lines = Array.from({ length: 110 }, (_, i) => ({ article: number + "-" + i, price: Math.random() * 100, note: "n".repeat(30) + i }));
  const renew = (factor) => { for (const line of lines) line.price *= factor; };
  prices.on("change", renew);
  await new Promise((done) => setTimeout(done, 5));
  if (Number(number) % 3 === 0) {
    if (form === "steady") prices.off("change", renew);
    context.status = 402;
    context.body = { number, refused: true };
    return;
  }
  context.body = { number, sum: lines.reduce((sum, line) => sum + line.price, 0) };
  prices.off("change", renew);
});
setInterval(() => prices.emit("change", 0.99 + Math.random() / 50), 5000);
app.listen(Number(port), "127.0.0.1");
