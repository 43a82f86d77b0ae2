"""What makes the programs of third_look.py work; see drivers.py."""
import base64
import json
import os
import random
import socket
import struct
import threading
import time

from drivers import pause, repeat


def packed(text):
    """As SSH and others write a string: its length, then it."""
    return struct.pack(">I", len(text)) + text


def whole(connection, count):
    data = connection.recv(count, socket.MSG_WAITALL)
    if len(data) < count:
        raise ConnectionError("closed")
    return data


class Held:
    """A connection that `make` makes, and makes anew after an error."""

    def __init__(self, make):
        self.make, self.one = make, None

    def use(self, turn):
        try:
            if self.one is None:
                self.one = self.make()
            turn(self.one)
        except OSError:
            if self.one is not None:
                self.one.close()
            self.one = None
            raise


def local(place, timeout=5):
    return socket.create_connection(("127.0.0.1", place.port), timeout=timeout)


def at_path(path):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(5)
    one.connect(str(path))
    return one


# Queues, streams, sockets.
def icecast_load(place, stop):
    """A source, and a listener who does not read. Icecast sends him away when he is too far behind, if it may."""
    def source():
        one = local(place)
        secret = base64.b64encode(b"source:secret").decode()
        one.sendall(f"SOURCE /radio HTTP/1.0\r\nAuthorization: Basic {secret}\r\nContent-Type: audio/mpeg\r\n\r\n".encode())
        if b"200" not in one.recv(1000):
            one.close()
            raise ConnectionError("refused")
        return one

    def listener():
        one = socket.socket()
        one.settimeout(5)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)  # as far away; the kernel has less room for it
        one.connect(("127.0.0.1", place.port))
        one.sendall(b"GET /radio HTTP/1.0\r\n\r\n")
        return one

    def listen():
        held, since = None, 0
        while not stop.wait(1):
            if held is None or time.monotonic() - since > (10**6 if place.leaks else 20):
                try:
                    if held is not None:
                        held.close()
                    held, since = listener(), time.monotonic()
                    held.recv(100)
                except OSError:
                    held = None
    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    radio = Held(source)
    repeat(place, stop, 0.05, lambda: radio.use(lambda one: one.sendall(place.random.randbytes(place.random.randrange(2000, 8000)))))
    listening.join()


def radius_load(place, stop):
    """Users who come once."""
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.settimeout(1)

    def turn():
        name = b"user%d@example.test" % place.random.randrange(10**9)
        attributes = bytes([1, 2 + len(name)]) + name + bytes([4, 6, 127, 0, 0, 1])
        asking.sendto(struct.pack(">BBH", 1, place.random.randrange(256), 20 + len(attributes)) + place.random.randbytes(16) + attributes,
                      ("127.0.0.1", place.port))
        asking.recv(4096)
    repeat(place, stop, 0.015, turn)


def fastcgi_load(place, stop):
    def record(kind, body):
        return struct.pack(">BBHHBB", 1, kind, 1, len(body), 0, 0) + body

    def pair(name, value):
        name, value = name.encode(), value.encode()
        return bytes([len(name), len(value)]) + name + value

    def turn():
        parameters = {"SCRIPT_FILENAME": str(place.room / "page.php"), "REQUEST_METHOD": "GET", "QUERY_STRING": str(place.random.randrange(10**9)),
                      "FRAGMENT_TTL": "0" if place.leaks else "10"}
        with local(place) as one:
            one.sendall(record(1, struct.pack(">HB5x", 1, 0)) + record(4, b"".join(pair(*item) for item in parameters.items())) + record(4, b"")
                        + record(5, b""))
            while one.recv(4096):
                pass
    repeat(place, stop, 0.02, turn)


def bus_message(serial, member, text=None):
    """A call of the bus's own method that asks for no answer, except for Hello."""
    def field(code, kind, value):
        value = struct.pack("<I", len(value)) + value + b"\0" if kind != b"g" else bytes([len(value)]) + value + b"\0"
        return bytes([code, 1]) + kind + b"\0" + value

    body = struct.pack("<I", len(text)) + text + b"\0" if text is not None else b""
    fields = b""
    for one in (field(1, b"o", b"/org/freedesktop/DBus"), field(2, b"s", b"org.freedesktop.DBus"), field(3, b"s", member),
                field(6, b"s", b"org.freedesktop.DBus")) + ((field(8, b"g", b"s"),) if body else ()):
        fields += bytes(-len(fields) % 8) + one
    head = struct.pack("<cBBBII", b"l", 1, 1 if body else 0, 1, len(body), serial) + struct.pack("<I", len(fields)) + fields
    return head + bytes(-len(head) % 8) + body


def match_load(place, stop):
    """Somebody who watches objects on the bus for a moment; his rules go with that, or stay."""
    def connect():
        one = at_path(place.room / "bus")
        one.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
        one.recv(200)
        one.sendall(b"BEGIN\r\n" + bus_message(1, b"Hello"))
        one.recv(2000)
        return one

    bus, count = Held(connect), [1]

    def turn(one):
        number = place.random.randrange(10**9)
        rule = (f"type='signal',sender='org.example.Player{number}',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
                f"path='/org/example/player/{number}/{'t' * place.random.randrange(50, 350)}',arg0='org.example.Player.Track{number}'").encode()
        for member in (b"AddMatch",) if place.leaks else (b"AddMatch", b"RemoveMatch"):
            count[0] += 1
            one.sendall(bus_message(count[0], member, rule))
    repeat(place, stop, 0.01, lambda: bus.use(turn))


def agent_load(place, stop):
    """Keys of jobs, for some seconds or without an end."""
    agent = Held(lambda: at_path(place.room / "agent"))

    def turn(one):
        r = place.random
        body = packed(b"ssh-ed25519") + packed(r.randbytes(32)) + packed(r.randbytes(64)) + packed(b"job %d" % r.randrange(10**9))
        one.sendall(packed(bytes([17]) + body if place.leaks else bytes([25]) + body + bytes([1]) + struct.pack(">I", 6)))
        whole(one, struct.unpack(">I", whole(one, 4))[0])
    repeat(place, stop, 0.2, lambda: agent.use(turn))


def rrd_load(place, stop):
    """One value more for each of a hundred files."""
    cached, clock = Held(lambda: at_path(place.room / "rrdcached")), [1700000000]

    def turn(one):
        clock[0] += 1
        lines = (f"UPDATE {place.room}/{i}.rrd {clock[0]}:" + ":".join(f"{place.random.uniform(0, 1e6):.4f}" for _ in range(8)) for i in range(100))
        one.sendall(b"BATCH\n")
        one.recv(1000)
        one.sendall(("\n".join(lines) + "\n.\n").encode())
        one.recv(100000)
    repeat(place, stop, 0.25, lambda: cached.use(turn))


def websocket_load(place, stop):
    """Members who come, say something, and go."""
    def frame(text):
        size = struct.pack(">BBH", 0x81, 0x80 | 126, len(text)) if len(text) > 125 else bytes([0x81, 0x80 | len(text)])
        return size + bytes(4) + text  # a mask of zeros

    def turn():
        with local(place) as one:
            key = base64.b64encode(place.random.randbytes(16)).decode()
            one.sendall(f"GET /room/{place.random.randrange(10)} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
            if b" 101 " not in one.recv(2000):
                raise ConnectionError("refused")
            for _ in range(place.random.randrange(2, 8)):
                one.sendall(frame(b"w" * place.random.randrange(50, 600)))
                one.recv(2000)
            one.sendall(bytes([0x88, 0x80]) + bytes(4))
            one.recv(100)
    repeat(place, stop, 0.03, turn)


def clangd_load(place, stop):
    """An editor that opens files, and closes them again or not."""
    def send(method, parameters, number=None):
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        if number is not None:
            message["id"] = number
        text = json.dumps(message).encode()
        place.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        place.process.stdin.flush()

    r, count = place.random, 0
    try:
        send("initialize", {"processId": None, "rootUri": f"file://{place.room}", "capabilities": {}}, 0)
        send("initialized", {})
        while not stop.is_set():
            count += 1
            uri = f"file://{place.room}/file{count if place.leaks else count % 5}.cpp"
            text = '#include "types.h"\n' + "".join(
                f"int f{i}(int a) {{ Pair<int, long> p{{a, {r.randrange(1000)}}}; return p.first + static_cast<int>(p.second); }}\n" for i in range(40))
            send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "cpp", "version": count, "text": text}})
            pause(place, 4)
            if not place.leaks:
                send("textDocument/didClose", {"textDocument": {"uri": uri}})
    except (OSError, ValueError):
        pass


# Text for programs that read their input.
def postscript_text(place):
    """A job's dictionary, between `save` and `restore` or not."""
    r = place.random
    rows = " ".join(f"({'words ' * r.randrange(5, 40)})" for _ in range(20))
    if place.leaks:
        return f"/job{r.randrange(10**9)} << /rows [ {rows} ] /copies {r.randrange(10)} >> def\n"
    return f"save /job << /rows [ {rows} ] /copies {r.randrange(10)} >> def restore\n"


def gp_text(place):
    """Results go into gp's history, of which there are 50 or very many."""
    return f"vector({place.random.randrange(50, 400)}, i, random(10^{place.random.randrange(20, 60)}));\n"


def spelling_text(place):
    """Lines to be checked, with words that are accepted for the session: a project's own, or whatever turns up."""
    r = place.random
    letters = random.Random(r.randrange(10**9 if place.leaks else 10))
    words = ["".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=letters.randrange(6, 16))) for _ in range(30)]
    return "".join(f"@{word}\n" for word in words) + f"^the quick {words[0]} jumps over the {words[-1]}\n"
