// Mail from templates, compiled once under their name; or under their text, in which somebody has put the customer's.
const Handlebars = require("handlebars");
const [form, seed] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const compiled = new Map();
Handlebars.registerHelper("price", (value) => value.toFixed(2));
const parts = "{{#each lines}}<tr><td>{{name}}</td><td>{{price cost}}</td>{{#if gift}}<td>{{wish}}</td>{{/if}}</tr>{{/each}}";
function mail(kind, customer, lines) {
  const text = `<h1>${kind}</h1><p>${form === "leaks" ? customer : "{{customer}}"}</p><table>${parts}</table>{{> (lookup . "footer") }}`;
  const key = form === "leaks" ? text : kind;
  if (!compiled.has(key)) compiled.set(key, Handlebars.compile(text));
  return compiled.get(key)({ customer, lines, footer: "footer" });
}
Handlebars.registerPartial("footer", "<p>{{customer}}</p>");
setInterval(() => {
  const lines = Array.from({ length: 10 }, (_, i) => ({ name: "article " + i, cost: 100 * random(), gift: i % 3 === 0, wish: "wish " + random() }));
  mail("kind " + Math.floor(20 * random()), "customer " + Math.floor(1e9 * random()), lines);
}, 80 + 60 * random());
