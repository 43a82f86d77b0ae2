"""Writes ONNX Runtime's checkpoints: flatbuffers by the rules of the format, front to back, independent of our reader."""
import struct


class Writer:
    def __init__(self):
        self.data = bytearray(struct.pack("<I4s", 0, b"ODTC"))

    def align(self, size):
        self.data += bytes(-len(self.data) % size)

    def vector(self, values, width=1):
        """Bytes of elements: their place."""
        self.align(8)
        if width == 8:
            self.data += bytes(4)
        at = len(self.data)
        self.data += struct.pack("<I", len(values) // width) + values + bytes(1)
        return at

    def table(self, fields):
        """`fields`: by number, (format, value) of a scalar or the function that writes what is pointed at."""
        self.align(8)
        count = max(fields, default=-1) + 1
        vtable = len(self.data)
        self.data += bytes(4 + 2 * count)
        self.align(8)
        at = len(self.data)
        self.data += struct.pack("<i", at - vtable)
        places = {}
        for number, field in fields.items():
            size = struct.calcsize("<" + field[0]) if isinstance(field, tuple) else 4
            self.align(size)
            places[number] = len(self.data)
            self.data += struct.pack("<" + field[0], field[1]) if isinstance(field, tuple) else bytes(4)
        struct.pack_into("<HH", self.data, vtable, 4 + 2 * count, len(self.data) - at)
        for number, place in places.items():
            struct.pack_into("<H", self.data, vtable + 4 + 2 * number, place - at)
        for number, field in fields.items():
            if not isinstance(field, tuple):
                struct.pack_into("<I", self.data, places[number], field(self) - places[number])
        return at


def text(value):
    return lambda writer: writer.vector(value.encode())


def table(fields):
    return lambda writer: writer.table(fields)


def tables(items):
    def write(writer):
        writer.align(4)
        at = len(writer.data)
        writer.data += struct.pack("<I", len(items)) + bytes(4 * len(items))
        for number, item in enumerate(items):
            place = at + 4 + 4 * number
            struct.pack_into("<I", writer.data, place, item(writer) - place)
        return at
    return write


def tensor(name, array):
    dims = b"".join(struct.pack("<q", size) for size in array.shape)
    return table({0: text(name), 2: lambda w: w.vector(dims, 8), 3: ("i", {"float32": 1, "int64": 7}[str(array.dtype)]),
                  4: lambda w: w.vector(array.tobytes())})


def checkpoint(trained, frozen, moments=None, step=1, rate=0.001, ints=(), floats=(), texts=(), nominal=False):
    writer = Writer()
    module = {0: tables([tensor(*item) for item in trained.items()]), 1: tables([tensor(*item) for item in frozen.items()]),
              2: ("B", int(nominal))}
    groups = [] if moments is None else [table({0: text("group0"), 1: ("q", step), 2: ("f", rate), 3: tables(
        [table({0: text(name), 1: tables([tensor("m", m) for m in pair])}) for name, pair in moments.items()])})]
    bag = {0: tables([table({0: text(n), 1: ("q", v)}) for n, v in ints]), 1: tables([table({0: text(n), 1: ("f", v)}) for n, v in floats]),
           2: tables([table({0: text(n), 1: text(v)}) for n, v in texts])}
    root = writer.table({0: ("i", 2), 1: table(module), 2: tables(groups), 3: table(bag)})
    struct.pack_into("<I", writer.data, 0, root)
    return bytes(writer.data)
