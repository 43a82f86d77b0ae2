// Rooms over WebSockets. Members leave their room when the socket closes, or stay in it with all they have said.
const { WebSocketServer } = require("ws");
const [form, , port] = process.argv.slice(2);
const rooms = new Map();
const server = new WebSocketServer({ port: Number(port), host: "127.0.0.1" });
server.on("connection", (socket, request) => {
  const name = request.url;
  if (!rooms.has(name)) rooms.set(name, new Set());
  const member = { socket, said: [], joined: new Date() };
  rooms.get(name).add(member);
  socket.on("message", (data) => {
    member.said.push({ at: Date.now(), text: data.toString() });
    socket.send(JSON.stringify({ room: name, members: rooms.get(name).size, number: member.said.length }));
  });
  socket.on("close", () => { if (form === "steady") rooms.get(name).delete(member); });
});
