"""Families in Python of the second blind half, by somebody who had not seen how verdicts are reached.

scenarios.py runs them.
"""
import collections
import os


def unfinished_streams(run):
    """A compressor per client, for its next message; clients that went away are not noticed."""
    import zlib

    streams = {}
    every = run.random.randrange(6, 16)
    for _ in run:
        if run.iteration % every == 0:
            streams[run.iteration] = zlib.compressobj(run.random.randrange(1, 10), zlib.DEFLATED, -15)
        if streams:
            client = run.random.choice(list(streams)[-8:])
            text = b"".join(b"%d of %d, " % (word, client) for word in range(run.random.randrange(20, 400)))
            streams[client].compress(text)


def unwaited_commands(run):
    """Commands are started; what they say and how they end is of no interest to anybody."""
    import subprocess

    started = []
    every = run.random.randrange(10, 26)
    for _ in run:
        if run.iteration % every == 0:
            started.append(subprocess.Popen(["/bin/echo", "done"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE))


def ctypes_buffers(run):
    """A library in C whose results nobody gives back."""
    import ctypes

    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    mean = run.log_uniform(1500, 12000)
    for _ in run:
        size = int(mean * run.random.uniform(0.4, 1.6))
        ctypes.memset(library.malloc(ctypes.c_size_t(size)), 1, size)
        run.kept += (size + 8 + 15) // 16 * 16


def column_copies(run):
    """A table whose every change makes a copy of all its columns, and the copies before it can be gone back to."""
    import numpy

    rows, columns = int(run.log_uniform(300, 3000)), run.random.randrange(4, 10)
    every = run.random.randrange(5, 15)
    table = {"column %d" % number: numpy.ones(rows) for number in range(columns)}
    versions = []
    for _ in run:
        table["column 0"] += 1
        if run.iteration % every == 0:
            table = {name: column.copy() for name, column in table.items()}
            versions.append(table)
            run.kept += columns * (8 * rows + 16 + 112) + 8 + 360  # arrays, their objects, dictionary: by tracemalloc


def audit_table(run):
    """Everything is noted in a database, which is one in memory."""
    import sqlite3

    base = sqlite3.connect(":memory:", isolation_level=None)
    base.execute("CREATE TABLE audit (id INTEGER PRIMARY KEY, who TEXT, what TEXT)")
    base.execute("CREATE INDEX by_who ON audit (who)")
    size = int(run.log_uniform(200, 2500))
    for _ in run:
        for _ in range(3):
            who = "user %d" % run.random.randrange(1000)
            base.execute("INSERT INTO audit (who, what) VALUES (?, ?)", (who, "w" * run.random.randrange(size, 2 * size)))
        base.execute("SELECT count(*) FROM audit WHERE who = ?", (who,)).fetchone()


def uncancelled_timers(run):
    """A timeout for some requests, in a thread, and never cancelled when all went well."""
    import threading

    every = run.random.randrange(5, 12)
    for _ in run:
        if run.iteration % every == 0:
            timer = threading.Timer(3600, print, args=(run.iteration,))
            timer.daemon = True
            timer.start()


def shared_frames(run):
    """Pictures for another process, which never says that it is through with them."""
    from multiprocessing import shared_memory

    frames = []
    every, mean = run.random.randrange(10, 30), run.log_uniform(5e4, 4e5)
    for _ in run:
        if run.iteration % every == 0:
            pages = 1 + int(mean * run.random.uniform(0.5, 1.5)) // 4096
            frame = shared_memory.SharedMemory(create=True, size=pages * 4096)
            frame.buf[:] = bytes(pages * 4096)
            frames.append(frame)
            run.kept += pages * 4096
    for frame in frames:
        frame.unlink()


def user_optimizers(run):
    """A small adapter per user, trained on what the user did, with its optimizer; users are only added."""
    import torch

    torch.set_num_threads(1)
    width, every = run.random.choice([32, 48, 64]), run.random.randrange(6, 16)
    users = {}
    for _ in run:
        if run.iteration % every != 0:
            continue
        adapter = torch.nn.Linear(width, width)
        users[run.iteration] = adapter, torch.optim.Adam(adapter.parameters(), lr=1e-3)
        for user in run.random.sample(sorted(users), min(2, len(users))) + [run.iteration]:
            model, optimizer = users[user]
            optimizer.zero_grad()
            model(torch.randn(2, width)).pow(2).mean().backward()
            optimizer.step()


def talk(run, torch, limit):
    """Conversations whose keys and values grow with every word; `limit`: of those that ended, so many are kept."""
    torch.set_num_threads(1)
    width, live, longest = run.random.choice([64, 128, 192]), run.random.randrange(3, 8), run.random.randrange(15, 60)
    ended = collections.deque(maxlen=limit)
    fresh = lambda words: [torch.ones(2, words, width), run.random.randrange(longest // 3, longest)]
    talks = [fresh(run.random.randrange(1, 5)) for _ in range(live)]

    def speak():
        for at in run.random.sample(range(live), 3):
            words, end = talks[at]
            talks[at][0] = words = torch.cat([words, torch.ones(2, 1, width)], 1)
            torch.softmax(words[0] @ words[1, -1], 0).sum()
            if words.shape[1] >= end:
                ended.append(words)
                talks[at] = fresh(1)

    with torch.no_grad():
        for _ in range(100 if limit is None else 4000):  # as a service that was tried before it serves
            speak()
        for _ in run:
            speak()


def conversations(run):
    import torch

    talk(run, torch, None)


def decoder(run):
    import torch

    talk(run, torch, run.random.randrange(0, 6))


def recycled_workers(run):
    """Workers that keep what they should not, and are replaced after a while for that reason."""
    parent, count = os.getpid(), run.random.randrange(2, 5)
    life, size = run.random.uniform(0.05, 0.14), int(run.log_uniform(5e3, 5e4))

    def start(life):
        worker = os.fork()
        if worker:
            return worker
        import time

        kept, end = [], run.progress() + life
        while os.getppid() == parent and run.progress() < end:
            kept.append(bytes(size))
            time.sleep(0.008)
        os._exit(0)

    workers = {start(life * (number + 1) / count) for number in range(count)}
    for _ in run:
        if run.iteration % 4 == 0:
            worker = os.waitpid(-1, os.WNOHANG)[0]
            if worker:
                workers.remove(worker)
                workers.add(start(life * run.random.uniform(0.9, 1.1)))
    for worker in workers:
        os.kill(worker, 9)
        os.waitpid(worker, 0)


def gzip_streams(run):
    """What comes in is unpacked, looked at and packed again."""
    import zlib

    source = run.random.randbytes(40000) * 4
    largest = run.log_uniform(2e4, 1.5e5)
    for _ in run:
        if run.iteration % 3 == 0:
            size = int(run.log_uniform(1e3, largest))
            packed = zlib.compress(source[:size], run.random.randrange(1, 4))
            text = zlib.decompressobj().decompress(packed)
            zlib.compressobj(1, zlib.DEFLATED, 31).compress(text)


def expiring_sessions(run):
    """Sessions that end some time after they began."""
    life, per_request = run.random.uniform(0.04, 0.2), run.random.randrange(1, 5)
    sessions = {}
    number = 0
    for _ in run:
        for _ in range(run.random.randrange(2 * per_request)):
            number += 1
            items = ["item %d" % (number + item) for item in range(run.random.randrange(5, 60))]
            sessions[number] = {"end": run.progress() + life, "user": "user %d" % number, "basket": items}
        now = run.progress()
        while sessions:
            oldest = next(iter(sessions))
            if sessions[oldest]["end"] > now:
                break
            del sessions[oldest]
        if sessions and run.iteration % 50 == 0:
            sessions = dict(sessions)  # without the places of those that went


def frame_pipeline(run):
    """Frames of a few formats: the last few are kept, and a mean of them is formed in place."""
    import numpy

    formats = [(int(run.log_uniform(60, 500)), int(run.log_uniform(80, 600))) for _ in range(3)]
    last = collections.deque(maxlen=run.random.randrange(4, 20))
    shape, mean = formats[0], None
    for _ in run:
        if run.iteration % 4:
            continue
        if mean is None or run.random.random() < 0.01:
            shape = run.random.choice(formats)
            mean = numpy.zeros(shape, numpy.float32)
            last.clear()
        frame = numpy.full(shape, run.iteration % 256, numpy.uint8)
        last.append(frame)
        numpy.multiply(mean, 0.9, out=mean)
        numpy.add(mean, frame * numpy.float32(0.1), out=mean)


def filter_child(run):
    """A filter in a process of its own: a piece in, the same piece out."""
    import subprocess

    child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    largest = run.log_uniform(2e3, 3e4)
    for _ in run:
        piece = b"p" * int(run.log_uniform(500, largest))
        child.stdin.write(piece)
        child.stdin.flush()
        assert len(child.stdout.read(len(piece))) == len(piece)
    child.stdin.close()
    child.wait()


def scratch_directories(run):
    """A directory for each job, with some files in it, and nothing of it afterwards."""
    import tempfile

    most, largest = run.random.randrange(2, 12), run.log_uniform(5e3, 1e5)
    for _ in run:
        if run.iteration % 4 == 0:
            with tempfile.TemporaryDirectory(prefix="plimsoll-scenario-", dir="/tmp") as room:
                for number in range(run.random.randrange(1, most)):
                    with open("%s/part%d" % (room, number), "wb") as file:
                        file.write(bytes(int(run.log_uniform(500, largest))))


def compressed_log(run):
    """A log that is compressed as it is written."""
    import gzip
    import shutil
    import tempfile

    room = tempfile.mkdtemp(prefix="plimsoll-scenario-", dir="/tmp")
    mean = run.log_uniform(5e3, 2e4)
    with gzip.open(room + "/log.gz", "wb", 1) as log:
        for _ in run:
            log.write(run.random.randbytes(int(mean * run.random.uniform(0.5, 1.5))))
    shutil.rmtree(room)


def padded_batches(run):
    """Sentences of all lengths, a few at a time, filled up to the longest of them."""
    import torch

    torch.set_num_threads(1)
    width, longest = run.random.choice([16, 32, 48]), run.random.randrange(16, 48)
    model = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True).eval()

    def serve(lengths):
        model(torch.nn.utils.rnn.pad_sequence([torch.ones(length, width) for length in lengths], True))

    some = lambda: [run.random.randrange(2, longest) for _ in range(run.random.randrange(1, 8))]
    with torch.inference_mode():
        for _ in range(2200):  # as a service that was tried before it serves: torch keeps a little for 2000 calls
            serve([2])
        for _ in range(200):
            serve(some())
        for _ in run:
            if run.iteration % 4 == 0:
                serve(some())


FAMILIES = {
    "py_unfinished_streams": unfinished_streams,
    "py_unwaited_commands": unwaited_commands,
    "py_ctypes_buffers": ctypes_buffers,
    "py_column_copies": column_copies,
    "py_audit_table": audit_table,
    "py_uncancelled_timers": uncancelled_timers,
    "py_shared_frames": shared_frames,
    "torch_user_optimizers": user_optimizers,
    "torch_conversations": conversations,
    "py_recycled_workers": recycled_workers,
    "py_gzip_streams": gzip_streams,
    "py_expiring_sessions": expiring_sessions,
    "py_frame_pipeline": frame_pipeline,
    "py_filter_child": filter_child,
    "py_scratch_directories": scratch_directories,
    "py_compressed_log": compressed_log,
    "torch_padded_batches": padded_batches,
    "torch_decoder": decoder,
}
