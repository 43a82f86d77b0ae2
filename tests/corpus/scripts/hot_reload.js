// A development server that transpiles TypeScript and loads it anew. A module taken out of require.cache is still
// a child of the one that required it, unless it is taken out there too.
const fs = require("fs");
const path = require("path");
const { transform } = require("sucrase");
const [form, seed] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const file = path.resolve("page.js");
function reload() {
  const rows = Array.from({ length: 40 }, (_, i) => `{ id: ${i}, price: ${random()} as number }`).join(", ");
  const source = `interface Row { id: number; price: number }
export const rows: Row[] = [${rows}];
export const index = new Map<string, Row[]>(rows.map((r): [string, Row[]] => ["key " + r.price, rows.map((x) => ({ ...x }))]));
export function total(): number { return rows.reduce((sum, r) => sum + r.price, 0); }`;
  fs.writeFileSync(file, transform(source, { transforms: ["typescript", "imports"] }).code);
  const old = require.cache[file];
  delete require.cache[file];
  if (form === "steady") module.children = module.children.filter((child) => child !== old);
  require(file).total();
}
setInterval(reload, 350 + 250 * random());
