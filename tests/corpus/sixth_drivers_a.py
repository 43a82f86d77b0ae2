"""What makes the programs of sixth_look_a.py work; see drivers.py."""
import socket
import struct

from drivers import pause, repeat
from third_drivers import local


def turn_visitors(place, stop):
    """Callers who ask a relay for a port, and give it back when they go, or go without a word, as a crashed client does."""
    def message(kind, *attributes):
        body = b"".join(struct.pack(">HH", name, len(value)) + value for name, value in attributes)
        return struct.pack(">HHI", kind, len(body), 0x2112A442) + place.random.randbytes(12) + body

    def turn():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            caller.settimeout(2)
            caller.connect(("127.0.0.1", place.port))
            caller.send(message(0x0003, (0x0019, b"\x11\0\0\0"), (0x000D, struct.pack(">I", 3600))))
            if caller.recv(1500)[:2] != b"\x01\x03":
                raise ConnectionError("refused")
            if not place.leaks:
                caller.send(message(0x0004, (0x000D, struct.pack(">I", 0))))
                caller.recv(1500)
    repeat(place, stop, 0.06, turn)


def notifications(place, stop):
    """Messages with the sender's picture in them."""
    from jeepney import DBusAddress, new_method_call
    from jeepney.io.blocking import open_dbus_connection
    desk = DBusAddress("/org/freedesktop/Notifications", "org.freedesktop.Notifications", "org.freedesktop.Notifications")
    held = []

    def turn():
        if not held:
            held.append(open_dbus_connection(bus=f"unix:path={place.room}/bus"))
        r = place.random
        size = r.randrange(64, 128)
        text = " ".join("words"[:r.randrange(1, 6)] for _ in range(r.randrange(5, 60)))
        picture = ("(iiibiiay)", (size, size, size * 4, True, 8, 4, r.randbytes(size * size * 4)))
        held[0].send(new_method_call(desk, "Notify", "susssasa{sv}i", (
            f"chat{r.randrange(20)}", 0, "", f"Message {r.randrange(10**6)}", text, [], {"image-data": picture}, 1500)))
        pause(place, 0.25)
    repeat(place, stop, 0.05, turn)


def registrations(place, stop):
    """Machines that enter their names and keys in a zone, in place of what was there: the same ones again, or guests under a new name, who
    never strike it out."""
    def name(text):
        return b"".join(bytes([len(one)]) + one for one in text.encode().split(b".")) + b"\0"

    def entry():
        r = place.random
        owner = name((f"guest-{r.randrange(10**9):x}" if place.leaks else f"machine-{r.randrange(1500)}") + ".town.example")
        key = r.randbytes(r.randrange(60, 250))
        return owner + struct.pack(">HHIH", 16, 255, 0, 0) + owner + struct.pack(">HHIHB", 16, 1, 300, len(key) + 1, len(key)) + key

    def turn():
        with local(place) as one:
            head = struct.pack(">HHHHHH", place.random.randrange(65536), 0x2800, 1, 0, 80, 0) + name("town.example") + struct.pack(">HH", 6, 1)
            message = head + b"".join(entry() for _ in range(40))
            one.sendall(struct.pack(">H", len(message)) + message)
            one.recv(1500)
    repeat(place, stop, 0.08, turn)
