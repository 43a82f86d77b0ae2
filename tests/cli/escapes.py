#!/usr/bin/python3
"""escapes.py NAME [ARGUMENT]: one attempt of a job to get out. Exit code 0: it got what it wanted, 3: it was refused."""
import ctypes
import mmap
import os
import signal
import socket
import sys
import time

AMOUNT = 200 << 20
HOLD_SECONDS = 1.5  # samples come at least every 50 ms
REFUSED = 3


def bomb(mark):
    """Every process forks as long as it may, and none waits for any."""
    first, end = os.getpid(), time.monotonic() + 1
    while time.monotonic() < end:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)
    if os.getpid() != first:
        os.execv("/bin/sleep", ["sleep", mark])


def daemon(mark):
    """Two sessions away, without parents, environment or descriptors."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid() if os.getpid() != os.getsid(0) else None
            if os.fork() == 0:
                os.setsid()
                os.closerange(0, 100)
                os.execve("/bin/sleep", ["sleep", mark], {})
            os._exit(0)
        os._exit(0)
    time.sleep(0.5)  # until it is on its way, and its parents are gone


def orphan_of_a_killed_keeper(mark):
    """Whoever keeps us is killed first."""
    try:
        os.kill(os.getppid(), signal.SIGKILL)
    except OSError:
        sys.exit(REFUSED)
    daemon(mark)


def fill(write):
    chunk = bytes(1 << 20)
    for _ in range(AMOUNT >> 20):
        write(chunk)
    time.sleep(HOLD_SECONDS)


def anonymous(_):
    parts = []
    fill(lambda chunk: parts.append(bytearray(b"x" * len(chunk))))


def several(_):
    """Four processes, each below the limit."""
    for _ in range(3):
        if os.fork() == 0:
            break
    parts = [bytearray(b"x" * (1 << 20)) for _ in range(50)]
    time.sleep(HOLD_SECONDS)
    assert parts


def memfd(_):
    file = os.memfd_create("escape")
    fill(lambda chunk: os.write(file, chunk))


def shared_memory(mark):
    with open(f"/dev/shm/plimsoll-escape-{mark}", "wb", 0) as file:
        fill(file.write)
    os.unlink(file.name)


def system_v(_):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(0, ctypes.c_size_t(AMOUNT), 0o600 | 0o1000)
    if segment < 0:
        sys.exit(REFUSED)
    address = libc.shmat(segment, None, 0)
    libc.shmctl(segment, 0, None)  # gone with the last who has it
    for offset in range(0, AMOUNT, 4096):
        ctypes.memset(address + offset, 1, 1)
    time.sleep(HOLD_SECONDS)


def tcp(_):
    """What was sent to somebody who never reads."""
    server = socket.create_server(("127.0.0.1", 0))
    pairs, sent = [], 0
    while sent < AMOUNT and len(pairs) < 400:
        one = socket.create_connection(server.getsockname())
        pairs.append((one, server.accept()[0]))
        one.setblocking(False)
        before = sent
        for _ in range(200):
            try:
                sent += one.send(bytes(1 << 18))
            except BlockingIOError:
                time.sleep(0.0005)
                try:
                    sent += one.send(bytes(1 << 18))
                except BlockingIOError:
                    break
        if sent - before < 1 << 14:
            break
    print(f"{sent >> 20} MiB sent, never read", flush=True)
    time.sleep(HOLD_SECONDS)
    sys.exit(0 if sent >= AMOUNT // 2 else REFUSED)


def own_cgroup(controller):
    for line in open("/proc/self/cgroup"):
        _, controllers, path = line.rstrip("\n").split(":", 2)
        if controller in controllers.split(","):
            return f"/sys/fs/cgroup/{controllers}{path}"
    for line in open("/proc/self/cgroup"):
        if line.startswith("0::"):
            return "/sys/fs/cgroup" + line.rstrip("\n")[3:]
    return None


def write(path, text):
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        print(f"{path}: {error}", flush=True)
        sys.exit(REFUSED)


def raise_limit(_):
    place = own_cgroup("memory")
    first = os.path.exists(place + "/memory.limit_in_bytes")
    if first:
        write(place + "/memory.memsw.limit_in_bytes", "-1") if os.path.exists(place + "/memory.memsw.limit_in_bytes") else None
    write(place + ("/memory.limit_in_bytes" if first else "/memory.max"), "-1" if first else "max")
    anonymous(None)


def leave(mark):
    """To the cgroup above, where no limit of ours is; and what it holds there."""
    place = own_cgroup("memory")
    above = os.path.dirname(place)
    write(above + "/cgroup.procs", str(os.getpid()))
    anonymous(None)


def freeze(_):
    """Nobody who is frozen by version 1 dies; on version 2 he does."""
    if os.path.isdir("/sys/fs/cgroup/freezer"):
        place = f"/sys/fs/cgroup/freezer/plimsoll-escape-{os.getpid()}"
        try:
            os.mkdir(place)
        except OSError:
            sys.exit(REFUSED)
        write(place + "/cgroup.procs", str(os.getpid()))
        write(place + "/freezer.state", "FROZEN")
    else:
        write(own_cgroup("memory") + "/cgroup.freeze", "1")
    time.sleep(60)


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else None)
    except (OSError, MemoryError) as refusal:
        print(f"{sys.argv[1]}: {refusal}", flush=True)
        sys.exit(REFUSED)
