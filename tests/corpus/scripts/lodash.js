// _.memoize has no limit; with a cache of lru-cache's it has one.
const _ = require("lodash");
const { LRUCache } = require("lru-cache");
const [form, seed] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647);
const render = _.memoize((key) => ({ key, html: ("<li>" + key).repeat(120).split("l") }));
if (form === "steady") {
  const cache = new LRUCache({ max: 300 });
  render.cache = { has: (k) => cache.has(k), get: (k) => cache.get(k), set: (k, v) => cache.set(k, v) };
}
setInterval(() => { for (let i = 0; i < 4; ++i) render(random()); }, 50);
