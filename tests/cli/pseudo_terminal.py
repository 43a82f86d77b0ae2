"""A program on a terminal of its own."""
import fcntl
import os
import pty
import select
import struct
import termios
import time


class PseudoTerminal:
    def __init__(self, command, columns, rows, environment):
        variables = os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"} | environment
        if "NO_COLOR" not in environment:
            variables.pop("NO_COLOR", None)
        size = struct.pack("HHHH", rows, columns, 0, 0)
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.execvpe(command[0], command, variables)
        self.bytes, self.code = b"", None

    @property
    def text(self):
        return self.bytes.decode(errors="replace")

    def resize(self, columns, rows):
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, data):
        os.write(self.descriptor, data)

    def read_some(self, seconds):
        """False at the end."""
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return True
        try:
            got = os.read(self.descriptor, 65536)
        except OSError:
            return False
        self.bytes += got
        return bool(got)

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read_some(0.05):
            pass

    def read_until(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.text:
            if time.monotonic() > end or not self.read_some(1):
                raise AssertionError(f"{text!r} did not appear in {self.text!r}")

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read_some(1):
            pass
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def close(self):
        if self.code is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self.descriptor)
