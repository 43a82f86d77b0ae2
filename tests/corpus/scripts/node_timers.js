// An interval per session, cleared at its end, or never.
const [form, seed] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
setInterval(() => {
  for (let i = 0; i < 8; ++i) {
    const session = Array.from({ length: 200 }, () => ({ value: random(), text: "t" + random() }));
    const timer = setInterval(() => session.length, 3600000);
    if (form === "steady") setTimeout(() => clearInterval(timer), 500);
  }
}, 60);
