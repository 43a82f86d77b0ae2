"""What makes the programs of fifth_look.py work; see drivers.py."""
import http.client
import socket
import threading
import urllib.parse

from drivers import pause, repeat
from third_drivers import Held, local


# Texts of requests and lines.
def graphql_path(place):
    """An order with its number in the query's text."""
    number = place.random.randrange(10**9)
    fields = " ".join(f"part{i}: lines(first: {place.random.randrange(1, 6)}) {{ article count price note }}"
                      for i in range(place.random.randrange(2, 12)))
    return "/graphql?query=" + urllib.parse.quote(f"{{ order(number: {number}) {{ number sum customer {{ name city }} {fields} }} }}")


def proxy_load(place, stop):
    """Requests of far addresses with a browser's cookie, by a proxy that keeps four connections."""
    held = [http.client.HTTPConnection("127.0.0.1", place.port, timeout=5) for _ in range(4)]

    def turn():
        r = place.random
        connection = r.choice(held)
        try:
            connection.request("GET", f"/{r.randrange(10**6)}", headers={
                "x-forwarded-for": ".".join(str(r.randrange(256)) for _ in range(4)), "cookie": "session=" + r.randbytes(r.randrange(1000, 3500)).hex()})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
    repeat(place, stop, 0.03, turn)


def event_text(place):
    visitor = place.random.randrange(10**9) if place.leaks else place.random.randrange(20)
    return f"{visitor} /page/{place.random.randrange(10**6)}?from={'w' * place.random.randrange(400, 3000)}\n"


# Databases, queues, conversations.
def influx_load(place, stop):
    """Points of twenty machines, or of requests, each of which is a series of its own: its number is a tag."""
    made = []

    def turn():
        r = place.random
        connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=5)
        if not made:
            connection.request("POST", "/query?q=create+database+shop")
            connection.getresponse().read()
            made.append(True)
        tag = (lambda: f"request={r.randrange(10**9):x}") if place.leaks else (lambda: f"machine=m{r.randrange(20)}")
        lines = "\n".join(f"visits,{tag()},page=p{r.randrange(5)} time={r.randrange(500)}i,size={r.randrange(10**6)}i" for _ in range(30))
        connection.request("POST", "/write?db=shop", body=lines)
        connection.getresponse().read()
        connection.close()
    repeat(place, stop, 0.15, turn)


def stomp_load(place, stop):
    """Orders for a queue that somebody reads, or that nobody reads any more."""
    def frame(one, command, body=b"", **headers):
        head = "".join(f"{key.replace('_', '-')}:{value}\n" for key, value in headers.items())
        one.sendall(f"{command}\n{head}\n".encode() + body + b"\0")

    def session():
        one = local(place)
        frame(one, "CONNECT", accept_version="1.2", host="/", login="guest", passcode="guest")
        if not one.recv(1000).startswith(b"CONNECTED"):
            raise ConnectionError("refused")
        return one

    def reader():
        one = session()
        frame(one, "SUBSCRIBE", id="0", destination="/queue/orders", ack="auto")
        return one

    def send(one):
        r = place.random
        frame(one, "SEND", r.randbytes(r.randrange(500, 4500)).hex().encode(), destination="/queue/orders")

    def read():
        ears = Held(reader)
        repeat(place, stop, 0.02, lambda: ears.use(lambda one: one.recv(100000)))

    if not place.leaks:
        threading.Thread(target=read, daemon=True).start()
    customer = Held(session)
    repeat(place, stop, 0.03, lambda: customer.use(send))


def irc_town(place, stop):
    """An IRC server with one channel, in which people talk, for a bouncer whose user is away."""
    def turn():
        with socket.create_server(("127.0.0.1", place.port + 1)) as server:
            server.settimeout(2)
            one, _ = server.accept()
            one.settimeout(5)
            with one:
                one.recv(1000)
                one.sendall(b":town 001 one :Welcome\r\n:town 376 one :End\r\n:one!one@here JOIN #town\r\n"
                            b":town 353 one = #town :one two three\r\n:town 366 one #town :End\r\n")
                one.setblocking(False)
                while not stop.is_set():
                    words = " ".join("words"[:place.random.randrange(1, 6)] for _ in range(place.random.randrange(5, 90)))
                    one.sendall(b"".join(f":friend{place.random.randrange(50)}!f@there PRIVMSG #town :{words}\r\n".encode() for _ in range(12)))
                    try:
                        for line in one.recv(4000).splitlines():
                            if line.startswith(b"PING"):
                                one.sendall(line.replace(b"PING", b"PONG") + b"\r\n")
                    except BlockingIOError:
                        pass
                    pause(place, 0.06)
    repeat(place, stop, 0.1, turn)


def chat_load(place, stop):
    """Visitors who say some lines, hear the answers, and go."""
    def turn():
        with local(place) as one:
            file = one.makefile("rwb")
            for _ in range(place.random.randrange(4, 16)):
                file.write(b"w" * place.random.randrange(100, 1200) + b"\n")
                file.flush()
                file.readline()
    repeat(place, stop, 0.07, turn)
