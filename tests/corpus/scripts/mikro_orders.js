// Orders by MikroORM in a file of SQLite's, of which the last 300 stay in the database. Each turn has an EntityManager of its own,
// or all of them the global one (allowGlobalContext), whose identity map knows every order that ever was.
const { MikroORM, EntitySchema } = require("@mikro-orm/libsql");
const [form, seed] = process.argv.slice(2);
const Order = new EntitySchema({
  name: "Order",
  tableName: "orders",
  properties: { id: { type: "number", primary: true }, customer: { type: "string" }, lines: { type: "json" } },
});
let state = Number(seed);
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
(async () => {
  const orm = await MikroORM.init({ entities: [Order], dbName: "shop.db", allowGlobalContext: true, pool: { min: 1, max: 1 } });
  await orm.schema.createSchema();
  const pause = 70 + 60 * random();
  for (let id = 1; ; ++id) {
    const manager = form === "leaks" ? orm.em : orm.em.fork();
    const lines = Array.from({ length: 10 + Math.floor(30 * random()) }, (_, i) => ({ article: "article " + i, price: 100 * random(), note: "n".repeat(20) }));
    manager.create("Order", { id, customer: "customer " + Math.floor(1e9 * random()), lines });
    await manager.flush();
    await manager.find("Order", { id: { $gt: id - 5 } });
    if (id % 50 === 0) await manager.nativeDelete("Order", { id: { $lt: id - 300 } });
    await new Promise((done) => setTimeout(done, pause));
  }
})();
