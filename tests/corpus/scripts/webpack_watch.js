// webpack as its development servers use it: it watches the sources and keeps what it makes in memory. The files have always the
// same name, or the hash of their content in it, and those of before stay.
const path = require("path");
const { Volume, createFsFromVolume } = require("memfs");
const webpack = require("webpack");
const [form] = process.argv.slice(2);
const output = createFsFromVolume(new Volume());
output.join = path.join;
const compiler = webpack({
  mode: "development",
  devtool: "source-map",
  context: path.join(process.cwd(), "src"),
  entry: "./0.js",
  output: { path: "/out", filename: form === "leaks" ? "[name].[contenthash].js" : "[name].js" },
});
compiler.outputFileSystem = output;
compiler.watch({ aggregateTimeout: 50 }, (error, stats) => {
  if (error || stats.hasErrors()) console.log(error || stats.toString("errors-only"));
});
