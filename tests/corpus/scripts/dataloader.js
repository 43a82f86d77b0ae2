// GraphQL with a DataLoader, whose cache is meant to live as long as one request: made for each, or once for all.
const http = require("http");
const DataLoader = require("dataloader");
const { graphql, buildSchema } = require("graphql");
const [form, , port] = process.argv.slice(2);
const schema = buildSchema(`type Item { id: Int!, name: String!, tags: [String!]! } type Query { items(from: Int!): [Item!]! }`);
const load = async (ids) => ids.map((id) => ({ id, name: "item " + id, tags: Array.from({ length: 12 }, (_, i) => `tag ${i} of ${id}`) }));
const shared = new DataLoader(load);
http.createServer(async (request, response) => {
  const items = form === "leaks" ? shared : new DataLoader(load);
  const from = Number(request.url.slice(1)) % 1e9;
  const rootValue = { items: ({ from }) => items.loadMany(Array.from({ length: 8 }, (_, i) => from + i)) };
  const answer = await graphql({ schema, source: `{ items(from: ${from}) { id name tags } }`, rootValue });
  response.end(JSON.stringify(answer));
}).listen(Number(port), "127.0.0.1");
