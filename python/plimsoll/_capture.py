"""Stdout and stderr of a part of a process's life, the descriptors' too; the beginning is kept, the rest dropped."""
import os
import sys
import threading
from typing import Any, List, Tuple


class _Stream:
    def __init__(self, descriptor: int, limit_bytes: int) -> None:
        self.descriptor, self.limit_bytes = descriptor, limit_bytes
        self.kept = bytearray()
        self.truncated = False
        self.saved = os.dup(descriptor)
        self.source, sink = os.pipe()
        os.dup2(sink, descriptor)
        os.close(sink)
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self) -> None:
        while piece := os.read(self.source, 1 << 16):
            room = self.limit_bytes - len(self.kept)
            self.kept += piece[:room]
            self.truncated |= len(piece) > room

    def restore(self) -> None:
        os.dup2(self.saved, self.descriptor)
        os.close(self.saved)
        # A process that the job left behind may keep the pipe open: what came until now counts.
        self.thread.join(timeout=0.5)
        if not self.thread.is_alive():
            os.close(self.source)


class Capture:
    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.streams: List[_Stream] = []

    def __enter__(self) -> "Capture":
        self._flush()
        self.streams = [_Stream(1, self.limit_bytes), _Stream(2, self.limit_bytes)]
        return self

    def __exit__(self, *unused: Any) -> None:
        self._flush()
        for stream in self.streams:
            stream.restore()

    @staticmethod
    def _flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # pylint: disable=broad-except
                pass

    def texts(self) -> Tuple[str, str, bool]:
        out, err = (bytes(stream.kept).decode("utf-8", "replace") for stream in self.streams)
        return out, err, any(stream.truncated for stream in self.streams)
