"""What makes the programs of fourth_look.py work; see drivers.py."""
import base64
import http.client
import json
import socket
import struct
import threading

from drivers import pause, repeat
from third_drivers import Held, local, packed, whole


# Sockets of the web.
def upgraded(place, path, deaf=False):
    one = socket.socket()
    one.settimeout(5)
    if deaf:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)  # as far away; the kernel has less room for it
    one.connect(("127.0.0.1", place.port))
    key = base64.b64encode(place.random.randbytes(16)).decode()
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = one.recv(1)
        if not part:
            raise ConnectionError("closed")
        answer += part
    if b" 101 " not in answer:
        raise ConnectionError("refused")
    return one


def said(text):
    """A frame of text with a mask of zeros."""
    size = bytes([0x81, 0x80 | len(text)]) if len(text) < 126 else struct.pack(">BBH", 0x81, 0x80 | 126, len(text))
    return size + bytes(4) + text


def heard(one):
    """The text of one frame."""
    size = whole(one, 2)[1] & 127
    if size == 126:
        size = struct.unpack(">H", whole(one, 2))[0]
    return whole(one, size) if size else b""


def socketio_load(place, stop):
    """Visitors who watch some shares for a moment."""
    def turn():
        with upgraded(place, "/socket.io/?EIO=4&transport=websocket") as one:
            heard(one)
            one.sendall(said(b"40"))
            heard(one)
            for _ in range(place.random.randrange(1, 5)):
                one.sendall(said(b'42["watch","share%d"]' % place.random.randrange(50)))
                heard(one)
            one.sendall(bytes([0x88, 0x80]) + bytes(4))
            one.recv(100)
    repeat(place, stop, 0.06, turn)


def deaf_websocket(place, stop):
    """A subscriber who reads nothing."""
    held = []

    def turn():
        if not held:
            held.append(upgraded(place, "/", deaf=True))
    repeat(place, stop, 1, turn)


# Queues, metrics, sources.
def statsd_load(place, stop):
    """Metrics with the number of their request in their name, as should not be."""
    telling = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def turn():
        r = place.random
        name = f"shop.orders.request-{r.randrange(10**9)}"
        telling.sendto(f"{name}.count:1|c\n{name}.time:{r.randrange(500)}|ms\n{name}.size:{r.randrange(10**6)}|g\n"
                        f"{name}.users:{r.randrange(10**6)}|s\nshop.requests:1|c".encode(),
                       ("127.0.0.1", place.port))
    repeat(place, stop, 0.01, turn)


def push_load(place, stop):
    """Batches that push their metrics under the name of their machine: one of twenty, or a pod that comes once."""
    def turn():
        r = place.random
        instance = f"pod-{r.randrange(10**9):x}" if place.leaks else f"machine-{r.randrange(20)}"
        lines = "".join(f"# TYPE batch_part_{i}_seconds gauge\n" + "".join(
            f'batch_part_{i}_seconds{{step="{step}"}} {r.random()}\n' for step in range(5)) for i in range(12))
        connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=5)
        connection.request("PUT", f"/metrics/job/batch/instance/{instance}", body=lines)
        connection.getresponse().read()
        connection.close()
    repeat(place, stop, 0.2, turn)


def zookeeper_load(place, stop):
    """A queue of sequential nodes, whose jobs are removed when they are done, or never."""
    def session():
        one = local(place, 10)
        one.sendall(packed(struct.pack(">iqiq", 0, 0, 20000, 0) + packed(bytes(16))))
        whole(one, struct.unpack(">I", whole(one, 4))[0])
        made.clear()
        return one

    def call(one, kind, body):
        one.sendall(packed(struct.pack(">ii", 1, kind) + body))
        answer = whole(one, struct.unpack(">I", whole(one, 4))[0])
        return struct.unpack(">i", answer[12:16])[0], answer[16:]

    def create(one, path, data, flags):
        acl = struct.pack(">ii", 1, 31) + packed(b"world") + packed(b"anyone")
        return call(one, 1, packed(path) + packed(data) + acl + struct.pack(">i", flags))

    def turn(one):
        if not made:
            create(one, b"/jobs", b"", 0)
        failed, answer = create(one, b"/jobs/job-", b"j" * place.random.randrange(1000, 8000), 2)
        if failed:
            raise ValueError("no node")
        made.append(answer[4:])
        if not place.leaks and len(made) > 20:
            call(one, 2, packed(made.pop(1)) + struct.pack(">i", -1))

    made, keeper = [], Held(session)
    repeat(place, stop, 0.025, lambda: keeper.use(turn))


def gearman_load(place, stop):
    """Jobs in the background, for a function that a worker does, or that has been renamed: then nobody does."""
    def command(kind, *words):
        return b"\0REQ" + struct.pack(">I", kind) + packed(b"\0".join(words))

    def answer(one):
        head = whole(one, 12)
        size = struct.unpack(">I", head[8:])[0]
        return struct.unpack(">I", head[4:8])[0], (whole(one, size) if size else b"")

    def worker():
        one = local(place)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # so that it keeps up
        one.sendall(command(1, b"resize" if not place.leaks else b"resize_old"))
        return one

    def work():
        def turn(one):
            one.sendall(command(9))
            kind, body = answer(one)
            if kind == 11:
                one.sendall(command(13, body.split(b"\0")[0], b"done"))
        hands = Held(worker)
        repeat(place, stop, 0.01, lambda: hands.use(turn))

    def submit(one):
        r = place.random
        one.sendall(command(18, b"resize", b"%d" % r.randrange(10**9), b"i" * r.randrange(500, 5000)))
        answer(one)

    working = threading.Thread(target=work, daemon=True)
    working.start()
    customer = Held(lambda: local(place))
    repeat(place, stop, 0.02, lambda: customer.use(submit))
    working.join()


def frame_load(place, stop):
    """Lines in short connections; two in five are none of those that the server knows."""
    def turn():
        with local(place) as one:
            file = one.makefile("rwb")
            for _ in range(4):
                letter = b"x" if place.random.random() < 0.4 else b"w"
                file.write(letter * place.random.randrange(3000, 12000) + b"\n")
                file.flush()
                file.readline()
    repeat(place, stop, 0.12, turn)


def source_edits(place, stop):
    """Somebody who works on one of ten sources."""
    while not stop.is_set():
        write_source(place, place.random.randrange(1, 10))
        pause(place, 1.2)


def write_source(place, number):
    r = place.random
    parts = "".join(f"export function part{i}(value) {{ return value * {r.random()} + {json.dumps('words ' * r.randrange(3, 20))}.length; }}\n"
                    for i in range(70))
    imports = "".join(f'import {{ part0 as other{i} }} from "./{i}.js";\nother{i}(1);\n' for i in range(1, 10)) if number == 0 else ""
    (place.room / "src" / f"{number}.js").write_text(imports + parts)


# Text for programs that read their input.
def notebook_text(place):
    """Cells whose result is shown."""
    r = place.random
    return f"np.random.default_rng({r.randrange(10**9)}).random(({r.randrange(150, 500)}, 30))\n"
