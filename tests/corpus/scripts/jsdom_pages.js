// Pages rendered on the server. Each has a clock, which runs until the window is closed; it is, or it is not when the page is long.
const { JSDOM } = require("jsdom");
const [form, seed] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const pause = 500 + 300 * random();
function render() {
  const count = 30 + Math.floor(60 * random());
  const rows = Array.from({ length: count }, (_, i) => `<tr><td>${i}</td><td>${random()}</td></tr>`).join("");
  const dom = new JSDOM(`<body><h1 id=t></h1><table>${rows}</table></body>`);
  const { window } = dom;
  window.setInterval(() => { window.document.getElementById("t").textContent = String(Date.now()); }, 10000);
  const text = window.document.querySelectorAll("td").length + dom.serialize().length;
  if (form === "leaks" && count >= 82) return "too long";
  window.close();
  return text;
}
setInterval(render, pause);
