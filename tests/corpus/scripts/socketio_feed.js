// Prices by Socket.IO for whoever watches. Each connection listens to the feed, and stops when it is closed, or does not.
const { Server } = require("socket.io");
const { EventEmitter } = require("events");
const [form, , port] = process.argv.slice(2);
const feed = new EventEmitter();
feed.setMaxListeners(0);
const io = new Server({ serveClient: false, transports: ["websocket"] });
io.on("connection", (socket) => {
  const watched = new Map();
  const tell = (name, price) => { if (watched.has(name)) socket.emit("price", name, price); };
  feed.on("price", tell);
  socket.on("watch", (name) => {
    watched.set(name, Array.from({ length: 80 }, (_, day) => ({ day, price: Math.random() * 100 })));
    socket.emit("watching", name);
  });
  socket.on("disconnect", () => { if (form === "steady") feed.off("price", tell); });
});
setInterval(() => feed.emit("price", "share" + Math.floor(Math.random() * 50), Math.random()), 500);
io.listen(Number(port), { host: "127.0.0.1" });
require("http"); // Socket.IO's own server is one of these
