// A GraphQL service that parses and checks each document once and keeps it by its text: the last 80, or all. Its clients write
// the order's number into the text, so that each text is new.
const http = require("http");
const { buildSchema, execute, parse, validate } = require("graphql");
const { LRUCache } = require("lru-cache");
const [form, , port] = process.argv.slice(2);
const schema = buildSchema(`
  type Line { article: String, count: Int, price: Float, note: String }
  type Customer { name: String, city: String, orders(first: Int): [Order] }
  type Order { number: Int, customer: Customer, lines(first: Int): [Line], sum: Float }
  type Query { order(number: Int): Order }`);
const line = (i) => ({ article: "article " + i, count: i, price: i * 1.5, note: "note " + i });
const order = ({ number }) => ({ number, sum: number / 7, customer: { name: "customer " + (number % 99), city: "here", orders: [] },
                                 lines: ({ first }) => Array.from({ length: Math.min(first, 5) }, (_, i) => line(i)) });
const documents = form === "leaks" ? new Map() : new LRUCache({ max: 80 });
http.createServer((request, response) => {
  const text = new URL(request.url, "http://localhost").searchParams.get("query");
  let document = documents.get(text);
  if (!document) {
    document = parse(text);
    if (validate(schema, document).length) return response.writeHead(400).end();
    documents.set(text, document);
  }
  response.end(JSON.stringify(execute({ schema, document, rootValue: { order } })));
}).listen(Number(port), "127.0.0.1");
