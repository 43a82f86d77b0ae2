// Previews of branches, each built by esbuild, which is a process of its own. A preview's context is disposed of when it has been
// shown, or forgotten. Node's collector is called after every 25th, as it else waits for minutes.
const esbuild = require("esbuild");
const [form, seed] = process.argv.slice(2);
const source = (branch, i) => `export const table${i} = ${JSON.stringify(Array.from({ length: 40 }, (_, j) => ({
  branch, key: "key " + i * j, text: "words ".repeat(1 + Math.random() * 9) })))};
export function part${i}(value) { return table${i}.filter((one) => one.key > value).map((one) => one.text.length * ${Math.random()}); }\n`;
async function preview(branch) {
  const files = Array.from({ length: 8 }, (_, i) => source(branch, i));
  const context = await esbuild.context({
    stdin: { contents: files.map((_, i) => `export * from "part:${i}";`).join("\n") }, bundle: true, write: false, minify: true, logLevel: "silent",
    plugins: [{ name: "parts", setup(build) {
      build.onResolve({ filter: /^part:/ }, (one) => ({ path: one.path.slice(5), namespace: "part" }));
      build.onLoad({ filter: /.*/, namespace: "part" }, (one) => ({ contents: files[one.path], loader: "ts" }));
    } }],
  });
  const built = await context.rebuild();
  if (!built.outputFiles[0].text.length) throw new Error("nothing built");
  if (form === "steady") await context.dispose();
}
let branch = 0;
(async () => {
  for (;;) {
    await preview(++branch);
    if (branch % 25 === 0) global.gc();
    await new Promise((done) => setTimeout(done, 700 + 150 * Number(seed) + 200 * Math.random()));
  }
})();
