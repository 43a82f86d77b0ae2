// Loads come into a table of their own, are added up, and the table is dropped; or, where the load was large, stays.
const { DuckDBInstance } = require("@duckdb/node-api");
const [form, seed] = process.argv.slice(2);
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
(async () => {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  await connection.run("create table totals(load int primary key, rows int, sum double)");
  const pause = 200 + 150 * random();
  for (let load = 0; ; ++load) {
    const rows = 300 + Math.floor(1200 * random());
    await connection.run(`create table stage_${load} as select i, random() as value, md5(i::varchar || '${random()}') as key from range(${rows}) t(i)`);
    await connection.run(`insert or replace into totals select ${load % 100}, count(*), sum(value) from stage_${load}`);
    if (form === "steady" || rows < 1200) await connection.run(`drop table stage_${load}`);
    await new Promise((done) => setTimeout(done, pause));
  }
})();
