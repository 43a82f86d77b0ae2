"""What makes the programs of sixth_look_b.py work; see drivers.py."""
import socket
import ssl
import struct
import time

from drivers import Talk, repeat
from third_drivers import Held, local


# Servers.
def order_path(place):
    return f"/order/{place.random.randrange(10**9)}?from={'w' * place.random.randrange(200, 1500)}"


def tls_load(place, stop):
    """Requests by clients with a certificate, each of whom begins a session of his own."""
    def turn():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(place.room / "cert.pem", place.room / "key.pem")
        with local(place) as one, context.wrap_socket(one) as spoken:
            spoken.sendall(b"GET /%d HTTP/1.0\r\n\r\n" % place.random.randrange(20))
            while spoken.recv(10000):
                pass
    repeat(place, stop, 0.04, turn)


def session_log(place, stop):
    """Syslog lines of sessions, two to six of each, whose ends are not told."""
    held = Held(lambda: local(place))

    def turn():
        r = place.random
        begin = f"<13>{time.strftime('%b %d %H:%M:%S')} host shop[{r.randrange(10**9)}]: step "
        lines = "".join(f"{begin}{i} {'words ' * r.randrange(40, 400)}\n" for i in range(r.randrange(2, 7)))
        held.use(lambda one: one.sendall(lines.encode()))
    repeat(place, stop, 0.12, turn)


def netflow_load(place, stop):
    """NetFlow 5: thirty flows a packet, from ports that change to two hundred machines."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    started, sent = time.time(), [0]

    def turn():
        r = place.random
        now = time.time()
        uptime = int((now - started) * 1000) + 60000
        flows = b"".join(struct.pack(">IIIHHIIIIHHBBBBHHBBH", r.randrange(0x0a000000, 0x0a0000c8), 0x0a010000 + r.randrange(200), 0, 1, 2,
                                     r.randrange(1, 50), r.randrange(50, 50000), uptime - 1000, uptime, r.randrange(1024, 65536), 443,
                                     0, 24, 6, 0, 0, 0, 24, 24, 0) for _ in range(30))
        sender.sendto(struct.pack(">HHIIIIBBH", 5, 30, uptime, int(now), 0, sent[0], 0, 0, 0) + flows, ("127.0.0.1", place.port))
        sent[0] += 30
    repeat(place, stop, 0.08, turn)


def visit_load(place, stop):
    """Visitors who leave something in their session."""
    talk = Talk(place)
    repeat(place, stop, 0.03, lambda: talk.send(b"%x %s\n" % (place.random.randrange(2**60), b"w" * place.random.randrange(500, 8000))))


# What is read from standard input.
def order_text(place):
    r = place.random
    lines = "".join(f'<line article="{r.randrange(10**6)}" count="{r.randrange(9)}" price="{r.random() * 100:.2f}">words of {r.randrange(10**6)}</line>'
                    for _ in range(r.randrange(1, 9)))
    begin = "" if getattr(place, "begun", False) else "<orders>"
    place.begun = True
    return f'{begin}<order number="{r.randrange(10**9)}"><customer>name {r.randrange(10**6)}</customer>{lines}</order>\n'
