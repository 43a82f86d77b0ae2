"""What jobs do in the tests: good things and bad."""
import os
import signal
import sys
import threading
import time

COUNT = [0]


def add(a, b=0):
    return a + b


def pid():
    return os.getpid()


def fork():
    child = os.fork()
    return os.getpid(), child


def count():
    COUNT[0] += 1
    return COUNT[0]


def fail(kind, *arguments, **keywords):
    raise kind(*arguments, **keywords)


def fail_with_a_local_type():
    class Local(Exception):
        pass
    raise Local("nobody can import it")


def fail_deep(text):
    def inner():
        raise KeyError(text)
    inner()


class Stubborn(Exception):
    """Cannot be pickled back: its constructor wants two arguments."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Demanding(Exception):
    def __init__(self, *, code, reason):
        super().__init__(f"{code}: {reason}")
        self.code, self.reason = code, reason


class Locked(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class Poison:
    """A result that is pickled, but not read again outside a worker."""

    def __reduce__(self):
        return (explode, (os.getpid(),))


def explode(maker):
    if os.getpid() != maker:
        raise RuntimeError("poison")
    return "harmless"


class Touch:
    """A pickle that runs code where it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def poison():
    return Poison()


def touching(path):
    return Touch(path)


def zeros(size):
    return bytes(size)


def keep(size, kept=[]):  # pylint: disable=dangerous-default-value
    kept.append(bytearray(size))
    return len(kept)


def fill(size):
    data = bytearray(size)
    for at in range(0, size, 4096):
        data[at] = 1
    return size


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def log(path, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    time.sleep(0.002)
    return text


def spin():
    while True:
        pass


def leave(code):
    os._exit(code)


def system_exit(code):
    sys.exit(code)


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(10)


def close_everything():
    os.closerange(0, 1024)
    return "closed"


def garbage():
    for descriptor in range(3, 1024):
        try:
            os.write(descriptor, b"\xff" * 64)
        except OSError:
            pass
    return "written"


def threads():
    for daemon in (True, False):
        threading.Thread(target=time.sleep, args=(1000,), daemon=daemon).start()
    return "left behind"


def children():
    import subprocess
    return subprocess.Popen(["/bin/sleep", "1000"]).pid  # pylint: disable=consider-using-with


def shout(size):
    os.write(1, b"x" * size)
    return "done"


def lock():
    return threading.Lock()


def environment(name):
    return os.environ.get(name)


def descriptors():
    return sorted(int(name) for name in os.listdir("/proc/self/fd"))


class Speechless(Exception):
    def __str__(self):
        raise ValueError("no text")


def refuse_to_be_read(maker):
    if os.getpid() != maker:
        raise Speechless()


class Unreadable:
    """Cannot be unpickled elsewhere, and the exception cannot be told."""

    def __reduce__(self):
        return refuse_to_be_read, (os.getpid(),)


class Touchy(Exception):
    @property
    def type_name(self):
        raise KeyError("not set")


def odd(kind):
    if kind == "unreadable":
        return Unreadable()
    raise Touchy("x")
