"""What the kernel and the C library say about this process. Nothing here knows torch."""
import ctypes
import os

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Reading:
    """One look at the process: bytes, exact where the kernel is."""
    FIELDS = ("anonymous_bytes", "resident_bytes", "heap_live_bytes", "heap_free_bytes", "data_bytes")
    __slots__ = (*FIELDS, "threads")

    def __init__(self, anonymous_bytes=0, resident_bytes=0, heap_live_bytes=0, heap_free_bytes=0, data_bytes=0,
                 threads=0):
        self.anonymous_bytes = anonymous_bytes
        self.resident_bytes = resident_bytes
        self.heap_live_bytes = heap_live_bytes
        self.heap_free_bytes = heap_free_bytes
        self.data_bytes = data_bytes
        self.threads = threads

    # Memory in use, twice: without what malloc holds free, so that what some code took and freed again leaves it
    # unchanged, whether or not malloc gave the pages back; the doctor's own work does not show in it. The first rises
    # too when free pages are touched again, the second when memory is only reserved: the lesser growth is the true one.
    @property
    def in_use_bytes(self):
        return self.anonymous_bytes - self.heap_free_bytes

    @property
    def mapped_in_use_bytes(self):
        return self.data_bytes - self.heap_free_bytes

    @property
    def beside_malloc_bytes(self):
        """Private writable mappings, resident or not, that malloc did not make."""
        return self.data_bytes - self.heap_live_bytes - self.heap_free_bytes

    def __sub__(self, other):
        return Reading(*(getattr(self, name) - getattr(other, name) for name in self.FIELDS), self.threads)

    def __iadd__(self, other):
        for name in self.FIELDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


def read_rollup(pid="self"):
    """smaps_rollup in bytes: exact, unlike statm, whose counters lag behind by up to some hundred KB on kernels
    since 6.2. {} where it cannot be read (no such process, no permission, a kernel without it)."""
    fields = {}
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                words = line.split()
                if len(words) == 3 and words[2] == b"kB":
                    fields[words[0][:-1].decode()] = int(words[1]) * 1024
    except OSError:
        return {}
    return fields


def read_statm():
    """(resident, anonymous, mapped data) bytes from statm: cheap; the first two are coarse."""
    with open("/proc/self/statm", "rb") as file:
        _, resident, shared, _, _, data, _ = (int(word) * PAGE_BYTES for word in file.read().split())
    return resident, resident - shared, data


def count_threads():
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def private_bytes(rollup):
    return rollup.get("Private_Dirty", 0) + rollup.get("Private_Clean", 0)


def generated_code_bytes():
    """Executable mappings that belong to no file: kernels that oneDNN and others made while running."""
    total = 0
    try:
        with open("/proc/self/maps", "rb") as file:
            for line in file:
                words = line.split(None, 5)
                if b"x" in words[1] and words[4] == b"0" and len(words) == 5:
                    low, high = words[0].split(b"-")
                    total += int(high, 16) - int(low, 16)
    except OSError:
        pass
    return total


class _MallInfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def _c_function(name, result, arguments):
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None  # another C library than glibc, or one older than 2.33
    function.restype, function.argtypes = result, arguments
    return function


_mallinfo2 = _c_function("mallinfo2", _MallInfo2, [])
_malloc_trim = _c_function("malloc_trim", ctypes.c_int, [ctypes.c_size_t])


def read_heap():
    """(live, free) bytes of malloc in all its arenas; (0, 0) where the C library does not tell."""
    if _mallinfo2 is None:
        return 0, 0
    info = _mallinfo2()
    return info.uordblks + info.hblkhd, info.fordblks


def trim():
    """Asks malloc to give free pages back; False where it cannot be asked."""
    if _malloc_trim is None:
        return False
    _malloc_trim(0)
    return True


def read():
    rollup = read_rollup()
    resident, anonymous, data = read_statm()
    live, free = read_heap()
    return Reading(rollup.get("Anonymous", anonymous), rollup.get("Rss", resident), live, free, data,
                   count_threads())
