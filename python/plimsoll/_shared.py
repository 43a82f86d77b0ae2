"""Arrays that processes share: files in memory, sealed, mapped and not copied.

What pickle gives out of band (protocol 5) is collected by `Outgoing`: an array that lies in a file of ours already
(`shared_empty`, the result of a job) is given as that file; all others are written into one more, which is their only
copy. Whoever receives the files maps them copy-on-write."""
from __future__ import annotations

import fcntl
import mmap
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Sequence, Tuple

MOST_FILES = 100  # of one message; what is beyond is copied
MOST_MAPPINGS = 200  # each takes two descriptors: above that, results are copied out of theirs
_ALIGNMENT = 64
_PAGE = mmap.PAGESIZE
_CLOSED = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_FUTURE_WRITE = 0x10  # F_SEAL_FUTURE_WRITE, since Linux 5.1: who has it mapped goes on writing, nobody else begins


class Mapping(mmap.mmap):
    """One file in memory, mapped. `private`: copy-on-write, so that the file does not know what was changed."""

    file = -1
    private = False
    address = 0
    alive = 0

    def __del__(self) -> None:
        Mapping.alive -= 1
        if self.file >= 0:
            os.close(self.file)


def _map(file: int, size: int, private: bool) -> Mapping:
    """Owns `file` from here on."""
    flags = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED
    try:
        mapping = Mapping(file, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    except (OSError, ValueError):
        if not private:
            os.close(file)
            raise
        try:
            mapping = Mapping(file, size, flags=flags, prot=mmap.PROT_READ)  # no room to change it (RLIMIT_DATA)
        except BaseException:
            os.close(file)
            raise
    Mapping.alive += 1
    mapping.file, mapping.private = file, private
    return mapping


def _address(view: Any) -> int:
    import numpy
    return int(numpy.frombuffer(view, numpy.uint8).__array_interface__["data"][0])


def shared_empty(shape: Any, dtype: Any = float) -> Any:
    """A numpy array, all zeros, in memory that jobs are given without a copy. What you write into it while a job runs,
    the job may see; what the job writes stays with the job."""
    import numpy
    kind = numpy.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"shared_empty: an array of {kind} holds references, which another process cannot be given")
    empty = numpy.empty((0,), kind)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = 1
    for length in shape:
        count *= int(length)
    if count <= 0:
        return numpy.zeros(shape, kind)
    size = count * empty.itemsize
    file = os.memfd_create("plimsoll-array", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, size)
    except BaseException:
        os.close(file)
        raise
    mapping = _map(file, size, False)
    try:
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | _FUTURE_WRITE)
    except OSError:  # an older kernel: then the job is trusted not to write
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    mapping.address = _address(mapping)
    return numpy.frombuffer(mapping, kind, count).reshape(shape)


def _mapping_of(exporter: Any) -> "Optional[Mapping]":
    for _ in range(64):
        if exporter is None or isinstance(exporter, Mapping):
            return exporter
        exporter = exporter.obj if isinstance(exporter, memoryview) else getattr(exporter, "base", None)
    return None


def _is_as_in_the_file(mapping: Mapping, offset: int, size: int) -> bool:
    """Whether no page of a private mapping was written: then it would be this process's own."""
    if not mapping.private:
        return True
    import numpy
    first, last = (mapping.address + offset) // _PAGE, (mapping.address + offset + size - 1) // _PAGE
    try:
        with open("/proc/self/pagemap", "rb", 0) as pagemap:
            pagemap.seek(first * 8)
            entries = numpy.frombuffer(pagemap.read((last - first + 1) * 8), numpy.uint64)
    except OSError:
        return False
    if len(entries) != last - first + 1:
        return False
    there = (entries & numpy.uint64(3 << 62)) != 0
    of_file = (entries & numpy.uint64(1 << 61)) != 0
    return bool((~there | of_file).all())


class Outgoing:
    """The files of one message. `share`: files that somebody can still write to may be among them."""

    def __init__(self, share: bool = True) -> None:
        self.share = share
        self.files: "List[int]" = []
        self.table: "List[Tuple[int, int, int]]" = []  # (number of the file, offset, size) of each buffer
        self._known: "dict[int, int]" = {}
        self._kept: "List[Any]" = []
        self._packed: "List[Tuple[int, Any]]" = []  # (place in the table, its bytes)
        self._size = 0
        self._own = -1

    def add(self, view: memoryview) -> int:
        """Its place in the table."""
        mapping = _mapping_of(view.obj) if self.share else None
        if mapping is not None and mapping.file >= 0:
            offset = _address(view) - mapping.address
            known = self._known.get(mapping.file)
            if known is None and len(self.files) < MOST_FILES and _is_as_in_the_file(mapping, offset, view.nbytes):
                known = self._known[mapping.file] = len(self.files)
                self.files.append(mapping.file)
                self._kept.append(mapping)
            elif known is not None and not _is_as_in_the_file(mapping, offset, view.nbytes):
                known = None
            if known is not None:
                self.table.append((known, offset, view.nbytes))
                return len(self.table) - 1
        self._packed.append((len(self.table), view))
        self.table.append((-1, self._size, view.nbytes))
        self._size += -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
        return len(self.table) - 1

    def total_bytes(self) -> int:
        return sum(size for _, _, size in self.table)

    def finish(self) -> None:
        """Writes what was not in a file yet, and seals it."""
        if not self._packed:
            return
        self._own = file = os.memfd_create("plimsoll-buffers", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, self._size)
        for place, view in self._packed:
            _, offset, size = self.table[place]
            data, at = view.cast("B"), 0
            while at < size:
                at += os.pwrite(file, data[at:at + (1 << 30)], offset + at)
            self.table[place] = (len(self.files), offset, size)
        self._packed = []
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _CLOSED)
        self.files.append(file)

    def close(self) -> None:
        """When they are sent."""
        if self._own >= 0:
            os.close(self._own)
            self._own = -1
        self.files, self._kept = [], []


class Incoming(ValueError):
    """Files that are not what they should be."""


def receive(files: "Sequence[int]", table: "Sequence[Tuple[int, int, int]]", trusted: bool = True) -> "List[Any]":
    """The buffers of a message, in the order of its table; owns the files. Raises Incoming."""
    left, mapped = list(files), []
    try:
        while left:
            file = left[0]
            try:
                seals, size = fcntl.fcntl(file, fcntl.F_GET_SEALS), os.fstat(file).st_size
            except OSError as error:
                raise Incoming(f"a file that cannot be sealed: {error}") from None
            wanted = fcntl.F_SEAL_SHRINK | (0 if trusted else fcntl.F_SEAL_WRITE)
            if seals & wanted != wanted or size == 0:
                raise Incoming("a file that can still be changed")
            left.pop(0)
            mapping = _map(file, size, True)
            if Mapping.alive > MOST_MAPPINGS:
                mapped.append(bytearray(memoryview(mapping)))
            else:
                if "numpy" in sys.modules:
                    mapping.address = _address(mapping)
                mapped.append(mapping)
    finally:
        for file in left:
            os.close(file)
    views = []
    for number, offset, size in table:
        if not 0 <= number < len(mapped) or offset < 0 or size < 0 or offset + size > len(mapped[number]):
            raise Incoming("a buffer outside of its file")
        views.append(memoryview(mapped[number])[offset:offset + size])
    return views
