"""What makes the corpus's programs work: light load on loopback, or lines on their standard input.

A driver is a function (place, stop): `place` is where its program runs, `stop` an event that ends it. It goes on after
errors: servers take a while to start, and some end connections.
"""
import http.client
import json
import random
import socket
import struct
import subprocess
import time


class Place:
    """A program's own folder, port and seed."""

    def __init__(self, room, port, form, seed, process=None):
        self.room, self.port, self.form, self.seed = room, port, form, seed
        self.random = random.Random(f"{form} {seed}")
        self.helper = None  # a process besides
        self.pace = 1.0  # what its pauses are multiplied by
        self.process = process  # of the watch: what is written to its stdin the program reads

    @property
    def leaks(self):
        return self.form == "leaks"


def pause(place, mean):
    time.sleep(place.pace * mean * (0.5 + place.random.random()))


def repeat(place, stop, mean, turn):
    """Calls turn() until it is over; what fails is tried again."""
    while not stop.is_set():
        try:
            turn()
        except (OSError, http.client.HTTPException, ValueError, IndexError, struct.error):
            time.sleep(0.5)
        pause(place, mean)


def http_load(mean=0.03, paths=lambda place: f"/{place.random.randrange(10**9)}", keep=False, headers=None):
    def drive(place, stop):
        held = []

        def turn():
            connection = held.pop() if held else http.client.HTTPConnection("127.0.0.1", place.port, timeout=5)
            connection.request("GET", paths(place), headers=headers(place) if headers else {})
            connection.getresponse().read()
            held.append(connection) if keep else connection.close()
        repeat(place, stop, mean, turn)
    return drive


def line_load(make, mean=0.03):
    """`make(place)`: text for the program's stdin."""
    def drive(place, stop):
        while not stop.is_set():
            try:
                place.process.stdin.write(make(place).encode())
                place.process.stdin.flush()
            except (OSError, ValueError):
                return
            pause(place, mean)
    return drive


class Talk:
    """A connection that is made anew when it failed."""

    def __init__(self, place):
        self.place, self.file = place, None

    def send(self, data, answer=True):
        try:
            if self.file is None:
                connection = socket.create_connection(("127.0.0.1", self.place.port), timeout=5)
                self.file = connection.makefile("rwb")
            self.file.write(data)
            self.file.flush()
            line = self.file.readline() if answer else b""
            if answer and not line:
                raise ConnectionError("closed")
            return line
        except OSError:
            self.file = None
            raise


def redis_load(place, stop):
    talk = Talk(place)

    def turn():
        key, value = b"key:%d" % place.random.randrange(10**9), b"v" * place.random.randrange(200, 2500)
        talk.send(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, len(value), value))
    repeat(place, stop, 0.004 if not place.leaks else 0.02, turn)


def memcached_load(place, stop):
    talk = Talk(place)

    def turn():
        value = b"v" * place.random.randrange(1000, 9000)
        talk.send(b"set k%d 0 0 %d\r\n%s\r\n" % (place.random.randrange(10**9), len(value), value))
    repeat(place, stop, 0.01, turn)


def beanstalkd_load(place, stop):
    talk = Talk(place)

    def turn():
        body = b"j" * place.random.randrange(200, 3000)
        number = int(talk.send(b"put 1024 0 60 %d\r\n%s\r\n" % (len(body), body)).split()[1])
        if not place.leaks:  # the consumers of the other form are down
            talk.send(b"delete %d\r\n" % number)
    repeat(place, stop, 0.02, turn)


def mqtt_text(text):
    return struct.pack(">H", len(text)) + text


def mosquitto_load(place, stop):
    connection = []

    def turn():
        if not connection:
            one = socket.create_connection(("127.0.0.1", place.port), timeout=5)
            hello = mqtt_text(b"MQTT") + b"\x04\x02\x00\x3c" + mqtt_text(b"driver")
            one.sendall(bytes([0x10, len(hello)]) + hello)
            one.recv(4)
            connection.append(one)
        number = place.random.randrange(10**9) if place.leaks else place.random.randrange(200)
        body = mqtt_text(b"sensors/%d/state" % number) + b"m" * place.random.randrange(200, 1500)
        length = bytes([len(body) % 128 | 128, len(body) // 128]) if len(body) > 127 else bytes([len(body)])
        try:
            connection[0].sendall(bytes([0x31]) + length + body)  # retained
        except OSError:
            connection.clear()
            raise
    repeat(place, stop, 0.02, turn)


def syslog_load(place, stop):
    connection = []

    def turn():
        if not connection:
            connection.append(socket.create_connection(("127.0.0.1", place.port), timeout=5))
        try:
            connection[0].sendall(b"".join(b"<13>Jan  1 00:00:00 host app[1]: %s\n" % (b"words " * place.random.randrange(5, 60))
                                           for _ in range(3)))
        except OSError:
            connection.clear()
            raise
    repeat(place, stop, 0.03, turn)


def dns_load(place, stop):
    """Queries for names that dnsmasq answers itself."""
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.settimeout(1)

    def turn():
        name = b"h%d" % place.random.randrange(10**6)
        question = bytes([len(name)]) + name + b"\x04test\x00" + struct.pack(">HH", 1, 1)
        asking.sendto(struct.pack(">HHHHHH", place.random.randrange(65536), 256, 1, 0, 0, 0) + question, ("127.0.0.1", place.port))
        asking.recv(512)
    repeat(place, stop, 0.02, turn)


def postgres_load(place, stop):
    """One session of psql's, fed with statements."""
    psql = subprocess.Popen(["psql", "-q", "-h", str(place.room), "-p", str(place.port), "-U", "postgres", "postgres"],
                            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    count = 0
    while not stop.is_set():
        if psql.poll() is not None:
            time.sleep(1)
            psql = subprocess.Popen(psql.args, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        count += 1
        statement = f"select sum(i), max(md5(i::text)) from generate_series(1, {place.random.randrange(50, 500)}) i where i <> $1"
        text = f"prepare p{count} (int) as {statement}; execute p{count}(7);"
        try:
            psql.stdin.write((text + ("" if place.leaks else f" deallocate p{count};") + "\n").encode())
            psql.stdin.flush()
        except OSError:
            pass
        pause(place, 0.1)
    psql.kill()
    psql.wait()


# Text for programs that read their input.
def log_line(place):
    r = place.random
    return f"user{r.randrange(10**6)} /page/{r.randrange(10**6)} 10.0.{r.randrange(256)}.{r.randrange(256)} {r.randrange(10**5)}\n"


def session_line(place):
    return f"id={place.random.randrange(10**9)} " + "w" * place.random.randrange(50, 700) + "\n"


def json_line(place):
    return json.dumps({"id": place.random.random(), "tags": ["t" * 20] * 5, "n": list(range(15))}) + "\n"


def sql_text(place):
    text = place.random.randbytes(place.random.randrange(200, 1500)).hex()
    insert = f"insert into log(text) values('{text}');"
    return insert + ("\n" if place.leaks else " delete from log where id < (select max(id) from log) - 500;\n")


def fast_import_text(place):
    """Blobs and trees for git fast-import, which remembers every mark; without marks there is less to remember."""
    body = place.random.randbytes(place.random.randrange(200, 2000)).hex()
    place.count = getattr(place, "count", 0) + 1
    return f"blob\nmark :{place.count if place.leaks else 1}\ndata {len(body)}\n{body}\n"


def batch_text(place):
    return "HEAD\nHEAD^{tree}\n" if place.random.random() < 0.5 else "HEAD:file\n"
