// Views that subscribe to the application's store and are gone; their subscriptions end with them, or never.
const { BehaviorSubject, Subject, map, distinctUntilChanged, takeUntil, scan } = require("rxjs");
const [form, seed] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const store = new BehaviorSubject({ page: 0 });
function view() {
  const gone = new Subject();
  const rows = Array.from({ length: 60 }, (_, i) => ({ key: random(), label: "row " + i + random() }));
  let source = store.pipe(map((s) => s.page % rows.length), distinctUntilChanged(), scan((sum, page) => sum + rows[page].key, 0));
  if (form === "steady") source = source.pipe(takeUntil(gone));
  source.subscribe(() => {});
  setTimeout(() => gone.next(), 200);
}
const pause = 40 + 30 * random();
setInterval(() => { for (let i = 0; i < 2; ++i) view(); }, pause);
setInterval(() => store.next({ page: Math.floor(random() * 1000) }), 1000);
