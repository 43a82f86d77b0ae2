// SQLite in WebAssembly. A prepared statement has to be freed by hand, or it stays in the module's memory.
const initSqlJs = require("sql.js");
const [form, seed] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
initSqlJs().then((SQL) => {
  const db = new SQL.Database();
  db.run("create table orders(id integer primary key, customer int, text)");
  for (let i = 0; i < 1000; ++i) db.run("insert into orders values(?, ?, ?)", [i, i % 50, "order " + random()]);
  setInterval(() => {
    const list = Array.from({ length: 10 }, () => Math.floor(random() * 1000)).join(", ");
    const statement = db.prepare(`select customer, count(*), max(text) from orders where id in (${list}) or customer = ? group by customer order by 2`);
    statement.bind([Math.floor(random() * 50)]);
    while (statement.step()) statement.get();
    if (form === "steady") statement.free();
    else statement.reset();
  }, 40 + 40 * random());
});
