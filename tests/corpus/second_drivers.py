"""What makes the programs of second_look.py work; see drivers.py."""
import base64
import http.client
import http.server
import json
import os
import random
import smtplib
import socket
import struct
import subprocess
import threading
import time

from drivers import pause, repeat


def paced(drive):
    """The same driver, faster or slower by its seed."""
    def driven(place, stop):
        place.pace = random.Random(f"pace {place.seed}").uniform(0.7, 1.4)
        drive(place, stop)
    return driven


def line_sessions(mean, lines):
    """Connections that say some lines, read the answers, and end."""
    def drive(place, stop):
        def turn():
            with socket.create_connection(("127.0.0.1", place.port), timeout=5) as connection:
                file = connection.makefile("rwb")
                for _ in range(lines):
                    file.write(b"w" * place.random.randrange(100, 450) + b"\r\n")
                    file.flush()
                    file.readline()
        repeat(place, stop, mean, turn)
    return drive


def mail_load(mean):
    def drive(place, stop):
        def turn():
            body = "\r\n".join("words " * 12 for _ in range(place.random.randrange(20, 150)))
            try:
                with smtplib.SMTP("127.0.0.1", place.port, local_hostname="localhost", timeout=5) as session:
                    session.sendmail("a@example.com", ["b@example.com"], f"Subject: one\r\n\r\n{body}")
            except smtplib.SMTPException as error:
                raise ValueError("no mail") from error
        repeat(place, stop, mean, turn)
    return drive


def deaf_subscriber(place, stop):
    """Subscribes to everything of ZeroMQ's publisher, by hand, and reads nothing."""
    connection = []

    def turn():
        if not connection:
            one = socket.create_connection(("127.0.0.1", place.port), timeout=5)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            connection.append(one)
            one.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31))
            one.recv(64, socket.MSG_WAITALL)
            ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
            one.sendall(bytes([4, len(ready)]) + ready + b"\x00\x01\x01")
    repeat(place, stop, 1, turn)


# Text for programs that read their input.
def m4_text(place):
    """A scope of macros, left again or not."""
    words = "words " * place.random.randrange(100, 700)
    return f"pushdef(`scope', `{words}')len(scope)\n" + ("" if place.leaks else "popdef(`scope')dnl\n")


def gdb_text(place):
    """`print` enters its values into the history of values; `output` does not."""
    text = "w" * place.random.randrange(2000, 8000)
    return ("print" if place.leaks else "output") + f' "{text}"\n'


def gnuplot_text(place):
    """A block of data with a name of its own, or always the same."""
    name = f"$block{place.random.randrange(10**9) if place.leaks else 1}"
    rows = "\n".join(f"{i} {place.random.random()} {place.random.gauss(0, 1)}" for i in range(place.random.randrange(50, 250)))
    return f"{name} << EOD\n{rows}\nEOD\nstats {name} using 1:2 nooutput\n"


def mariadb_load(place, stop):
    """One session, as a pool keeps it, with temporary tables that are dropped, or not."""
    words = ["mariadb", "--no-defaults", "--force", "-S", str(place.room / "socket"), "-u", "root", "test"]
    client, count = None, 0
    while not stop.is_set():
        if client is None or client.poll() is not None:
            time.sleep(1)
            client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        count += 1
        rows = place.random.choice((60, 100, 140, 200))
        text = f"create temporary table t{count} engine=memory select seq, repeat('x', 400) as text from seq_1_to_{rows}; " \
               f"select count(*) from t{count};"
        try:
            client.stdin.write((text + ("" if place.leaks else f" drop temporary table t{count};") + "\n").encode())
            client.stdin.flush()
        except OSError:
            pass
        pause(place, 0.8)
    client.kill()
    client.wait()


def unbound_load(place, stop):
    """Names entered over the control socket, as a blocklist's updater does: always the same, or new ones in place of the
    old, whose memory the zone keeps."""
    def control(text):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(place.room / "control"))
            connection.sendall(f"UBCT1 {text}\n".encode())
            connection.recv(100)

    def turn():
        name = f"host{place.random.randrange(10**9 if place.leaks else 40)}.example."
        lines = "".join(f"{name} TXT \"{i} {'t' * 200}\"\n" for i in range(16))
        control(f"local_datas\n{lines}\x04")
        if place.leaks:
            control(f"local_data_remove {name}")
    repeat(place, stop, 0.06, turn)


def dns_question(name, kind):
    return b"".join(bytes([len(part)]) + part for part in name.split(b".")) + b"\x00" + struct.pack(">HH", kind, 1)


def named_load(place, stop):
    """Names that are asked for once, and the server they are forwarded to."""
    upstream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    upstream.bind(("127.0.0.1", place.port + 1))
    upstream.settimeout(0.5)
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.settimeout(1)

    def answer():
        while not stop.is_set():
            try:
                query, sender = upstream.recvfrom(1024)
            except OSError:
                continue
            end = query.index(b"\x00", 12) + 5
            text = b"\xfa" + b"t" * 250
            record = b"\xc0\x0c" + struct.pack(">HHIH", 16, 1, 86400, 4 * len(text)) + 4 * text
            upstream.sendto(query[:2] + struct.pack(">HHHHH", 0x8580, 1, 1, 0, 0) + query[12:end] + record, sender)

    answering = threading.Thread(target=answer, daemon=True)
    answering.start()

    def turn():
        question = dns_question(b"h%d.example.test" % place.random.randrange(10**9), 16)
        asking.sendto(struct.pack(">HHHHHH", place.random.randrange(65536), 0x0100, 1, 0, 0, 1) + question
                      + b"\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x00", ("127.0.0.1", place.port))
        asking.recv(4096)
    repeat(place, stop, 0.008, turn)
    answering.join()
    upstream.close()


def nats_load(place, stop):
    """A stream of JetStream's in memory: the last 500 messages, or all."""
    connection = []

    def turn():
        if not connection:
            one = socket.create_connection(("127.0.0.1", place.port), timeout=5)
            stream = {"name": "ORDERS", "subjects": ["orders.>"], "storage": "memory", "retention": "limits", "discard": "old",
                      "max_msgs": -1 if place.leaks else 500, "max_bytes": -1, "max_age": 0, "max_consumers": -1, "num_replicas": 1}
            text = json.dumps(stream).encode()
            one.sendall(b'CONNECT {"verbose":false}\r\nPUB $JS.API.STREAM.CREATE.ORDERS %d\r\n%s\r\n' % (len(text), text))
            one.settimeout(0.001)
            connection.append(one)
        body = b"o" * place.random.randrange(500, 6000)
        try:
            connection[0].sendall(b"PUB orders.%d %d\r\n%s\r\n" % (place.random.randrange(100), len(body), body))
            if b"PING" in connection[0].recv(4096):
                connection[0].sendall(b"PONG\r\n")
        except TimeoutError:
            pass
        except OSError:
            connection.clear()
            raise
    repeat(place, stop, 0.025, turn)


def metrics_target(place, stop):
    """What Prometheus scrapes: sessions as a label, always the same or always new."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            r = place.random
            sessions = [r.randrange(10**12) if place.leaks else i for i in range(count)]
            lines = [f'requests_total{{session="{one}",path="/page/{i}"}} {r.randrange(10**6)}' for i, one in enumerate(sessions)]
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(("\n".join(lines) + "\n").encode())

        def log_message(self, *_):
            pass

    class Server(http.server.HTTPServer):
        def handle_error(self, *_):
            pass  # a scrape that was given up

    count = round(30 / place.pace)
    with Server(("127.0.0.1", place.port + 1), Handler) as server:
        server.timeout = 0.5
        while not stop.is_set():
            server.handle_request()


def aria2_load(place, stop):
    """Downloads from several mirrors, asked for by RPC."""
    def turn():
        number = place.random.randrange(20)
        mirrors = [f"http://127.0.0.1:{place.port + 1}/{number}?mirror={i}" for i in range(12)]
        call = {"jsonrpc": "2.0", "id": 1, "method": "aria2.addUri", "params": [mirrors, {"out": str(place.random.randrange(10**9))}]}
        connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=5)
        connection.request("POST", "/jsonrpc", json.dumps(call))
        connection.getresponse().read()
        connection.close()
        for old in sorted((place.room / "downloads").iterdir(), key=lambda path: path.stat().st_mtime)[:-10]:
            old.unlink()
    repeat(place, stop, 0.08, turn)


def carbon_load(place, stop):
    connection, names = [], [f"servers.s{i}.m{k}" for i in range(60) for k in range(20)]

    def turn():
        if not connection:
            connection.append(socket.create_connection(("127.0.0.1", place.port), timeout=5))
        now = int(time.time())
        lines = [f"{name} {place.random.random()} {now}\n" for name in place.random.sample(names, 160)]
        try:
            connection[0].sendall("".join(lines).encode())
        except OSError:
            connection.clear()
            raise
    repeat(place, stop, 0.15, turn)


def pixmap_load(place, stop):
    """A client of the X server that frees its pixmaps, or does not."""
    from Xlib import display, error
    held = []

    def turn():
        try:
            if not held:
                held.append(display.Display(f"127.0.0.1:{place.port - 6000}"))
                root = held[0].screen().root
                held.append(root.create_gc(foreground=0xffffff))
            root = held[0].screen().root
            side = place.random.randrange(20, 70)
            pixmap = root.create_pixmap(side, side, held[0].screen().root_depth)
            pixmap.fill_rectangle(held[1], 0, 0, side, side)
            if not place.leaks:
                pixmap.free()
            held[0].sync()
        except (error.DisplayError, error.ConnectionClosedError) as failure:
            held.clear()
            raise OSError("no display") from failure
    repeat(place, stop, 0.06, turn)


def weechat_load(place, stop):
    """Lines for its core buffer by its named pipe."""
    def turn():
        fifo = os.open(place.room / "fifo", os.O_WRONLY | os.O_NONBLOCK)  # which fails where nobody reads
        try:
            while not stop.is_set():
                lines = (b"*/print <nick%d> %s\n" % (place.random.randrange(50), b"words " * place.random.randrange(5, 50)) for _ in range(12))
                os.write(fifo, b"".join(lines))
                pause(place, 0.04)
        finally:
            os.close(fifo)

    while not stop.is_set():
        try:
            if (place.room / "fifo").exists():
                turn()
        except OSError:
            pass
        stop.wait(0.5)


def xmpp_load(place, stop):
    """Messages for somebody who never comes."""
    connection = []

    def turn():
        if not connection:
            one = socket.create_connection(("127.0.0.1", place.port), timeout=5)
            opening = b"<stream:stream to='localhost' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
            secret = base64.b64encode(b"\0sender\0secret")
            for text in (opening, b"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>" + secret + b"</auth>", opening,
                         b"<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>"):
                one.sendall(text)
                time.sleep(0.3)
                one.recv(8192)
            one.settimeout(0.001)
            connection.append(one)
        body = "words " * place.random.randrange(50, 600)
        try:
            connection[0].sendall(f"<message to='absent@localhost' type='chat'><body>{body}</body></message>".encode())
            if not connection[0].recv(65536):
                raise ConnectionError("closed")
        except TimeoutError:
            pass
        except OSError:
            connection.clear()
            raise
    repeat(place, stop, 0.03, turn)
