// Objects that are made and dropped; in its leaking form a Map keyed by objects (a WeakMap was meant).
const [form, seed] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const meta = form === "leaks" ? new Map() : new WeakMap();
setInterval(() => {
  for (let i = 0; i < 20; ++i) {
    const object = { id: random(), items: Array.from({ length: 30 }, () => ({ value: random() })) };
    meta.set(object, { at: Date.now(), note: "n".repeat(50) });
  }
}, 60);
