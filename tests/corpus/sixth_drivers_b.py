"""What makes the programs of sixth_look_b.py work; see drivers.py."""
import socket
import ssl
import struct
import time

from drivers import Talk, pause, repeat
from third_drivers import Held, local


def lines_of_input(make, mean):
    """`make(place)`: bytes for the program's stdin."""
    def drive(place, stop):
        while not stop.is_set():
            try:
                place.process.stdin.write(make(place))
                place.process.stdin.flush()
            except (OSError, ValueError):
                return
            pause(place, mean)
    return drive


# Servers.
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
        number = r.randrange(10**9)
        held.use(lambda one: one.sendall(b"".join(b"<13>Jan  1 00:00:00 host shop[%d]: step %d %s\n" % (number, i, b"words " * r.randrange(40, 400))
                                                  for i in range(r.randrange(2, 7)))))
    repeat(place, stop, 0.07, turn)


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
def captured(place):
    """A conversation by TCP, as libpcap writes it: both hands shaken, a question and its answer, the end."""
    r = place.random
    ends = (r.randrange(0x0a000001, 0x0afffffe), r.randrange(1024, 65536)), (r.randrange(0x0b000001, 0x0bfffffe), 80)
    numbers = [r.randrange(2**31), r.randrange(2**31)]
    packets = [struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)] if not getattr(place, "begun", False) else []
    place.begun = True

    def packet(who, flags, data=b""):
        (source, source_port), (target, target_port) = ends[who], ends[1 - who]
        segment = struct.pack(">HHIIBBHHH", source_port, target_port, numbers[who], numbers[1 - who], 0x50, flags, 64000, 0, 0) + data
        frame = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(segment), 0, 0, 64, 6, 0, source, target) + segment
        numbers[who] += len(data) + (1 if flags & 3 else 0)
        now = time.time()
        packets.append(struct.pack("<IIII", int(now), int(now % 1 * 10**6), len(frame), len(frame)) + frame)

    packet(0, 2)
    packet(1, 18)
    packet(0, 16)
    packet(0, 24, b"GET /%d HTTP/1.1\r\nHost: one.test\r\nCookie: %s\r\n\r\n" % (r.randrange(10**9), r.randbytes(r.randrange(20, 300)).hex().encode()))
    body = b"words " * r.randrange(10, 150)
    packet(1, 24, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    packet(0, 17)
    packet(1, 17)
    return b"".join(packets)


def order_text(place):
    r = place.random
    lines = "".join(f'<line article="{r.randrange(10**6)}" count="{r.randrange(9)}" price="{r.random() * 100:.2f}">words of {r.randrange(10**6)}</line>'
                    for _ in range(r.randrange(1, 9)))
    begin = "" if getattr(place, "begun", False) else "<orders>"
    place.begun = True
    return f'{begin}<order number="{r.randrange(10**9)}"><customer>name {r.randrange(10**6)}</customer>{lines}</order>\n'.encode()


def session_text(place):
    return f"{place.random.randrange(10**9)} {'words ' * place.random.randrange(10, 250)}\n".encode()
