"""One process of the command that runs many command lines, each in a fork of it or several in one (fork_server.cpp): a case
costs what it computes, not what the loader does. Without the preloaded library each is a process of its own."""
import os
import socket
import struct
import subprocess

SECONDS = 1800  # until a command that waits for nothing is given up; one that works is ended by fork_server.cpp


class ForkServer:
    """Not for several threads. The forks inherit the limits and the environment of the time at which it is made."""

    def __init__(self, command, library, per_fork):
        ours, theirs = socket.socketpair()
        with theirs:
            environment = dict(os.environ, LD_PRELOAD=library, LD_BIND_NOW="1", PLIMSOLL_FORK_SERVER=str(theirs.fileno()),
                               PLIMSOLL_COMMANDS_PER_FORK=str(per_fork),
                               ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")
            self.process = subprocess.Popen([command], env=environment, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        ours.settimeout(SECONDS)
        self.socket = ours

    def run(self, arguments, stdout, stderr):
        """The exit code, below 0 the signal's number, as of subprocess; what it printed is in the two files."""
        strings = b"".join(os.fsencode(part) + b"\0" for part in (stdout, stderr, *arguments))
        self.socket.sendall(struct.pack("=I", len(strings)) + strings)
        answer = self.socket.recv(4)
        if len(answer) != 4:
            raise AssertionError("the server of the command ended")
        return os.waitstatus_to_exitcode(struct.unpack("=i", answer)[0])

    def close(self):
        self.socket.close()
        self.process.wait()
