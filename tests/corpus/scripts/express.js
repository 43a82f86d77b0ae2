// express-session's default MemoryStore: it says itself that it leaks. With the store's sessions destroyed it is steady.
const express = require("express");
const session = require("express-session");
const [form, , port] = process.argv.slice(2);
const app = express();
app.use(session({ secret: "s", resave: false, saveUninitialized: true }));
app.get("/", (request, response) => {
  request.session.cart = Array.from({ length: 60 }, (_, i) => ({ sku: i * 7919, name: "item " + i + request.sessionID }));
  const text = JSON.stringify(request.session.cart);
  if (form === "steady") request.session.destroy(() => response.send(text));
  else response.send(text);
});
app.listen(Number(port), "127.0.0.1");
