"""Families in Python written and labelled by somebody who had not seen how verdicts are reached. scenarios.py runs them."""
import collections


def callbacks(run):
    registry = []
    size = int(run.log_uniform(400, 6000))
    for _ in run:
        registry.append(lambda event, body=bytes(size): (event, body))
        run.kept += size + 33 + 16 + 210  # body, function, defaults and entry


def array_views(run):
    """The first few cells of a large array, as a view: the array stays."""
    import numpy

    heads = []
    cells = run.log_uniform(2000, 15000)
    every = run.random.randrange(3, 9)
    for _ in run:
        if run.iteration % every == 0:
            whole = numpy.ones(int(cells * run.random.uniform(0.5, 1.5)))
            heads.append(whole[:4])
            run.kept += whole.nbytes + 250


def queue_behind(run):
    """A queue whose consumer takes every request's first item, while some bring two."""
    import asyncio

    loop = asyncio.new_event_loop()
    queue = asyncio.Queue()
    size, second = int(run.log_uniform(1500, 9000)), run.random.uniform(0.2, 0.8)

    async def serve():
        items = 2 if run.random.random() < second else 1
        for _ in range(items):
            await queue.put({"id": run.iteration, "body": bytes(size)})
        await queue.get()
        run.kept += (items - 1) * (size + 16 + 256)  # body, number, dictionary and entry, by tracemalloc; malloc's header

    for _ in run:
        loop.run_until_complete(serve())


def finalizers(run):
    """What shall happen at the end of an object that never ends."""
    import weakref

    class Service:
        pass

    service = Service()
    size = int(run.log_uniform(500, 6000))
    for _ in run:
        weakref.finalize(service, len, bytearray(size))


def templates(run):
    """Every request's text is compiled, and what was compiled is kept by its text."""
    compiled = {}
    lines = run.random.randrange(4, 16)
    for _ in run:
        text = "def render(request):\n" + "".join(
            "    name_%d = 'value %d of %d for ' + str(request)\n" % (line, line, run.iteration) for line in range(lines))
        room = {}
        exec(compile(text, "template %d" % run.iteration, "exec"), room)
        del room["__builtins__"]
        compiled[text] = room


def network(torch, run, widths):
    torch.set_num_threads(1)
    torch.manual_seed(run.random.randrange(1000))
    width = run.random.choice(widths)
    layers = [torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, width), torch.nn.Tanh(),
              torch.nn.Linear(width, 1)]
    return torch.nn.Sequential(*layers), width


def running_loss(run):
    """total += loss, for the report: every step's graph stays with it."""
    import torch

    model, width = network(torch, run, [32, 64, 96])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    total, rows = 0, run.random.randrange(4, 24)
    for _ in run:
        loss = model(torch.randn(rows, width)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        total = total + loss


def snapshots(run):
    """The best weights so far are copied, and so were those before them."""
    import copy

    import torch

    model, width = network(torch, run, [64, 96, 128])
    best = []
    every = run.random.randrange(8, 30)
    for _ in run:
        with torch.no_grad():
            model(torch.ones(4, width))
        if run.iteration % every == 0:
            best.append(copy.deepcopy(model.state_dict()))
            # what is no weight (tensors, dictionaries, metadata) was measured in a loop that does nothing else
            run.kept += sum(one.numel() * one.element_size() for one in best[-1].values()) + 6530


def rehashed_dictionary(run):
    """Sessions come and go in one dictionary: about as many as before, under other keys."""
    mean = run.random.randrange(2000, 15000)
    per_request = run.random.randrange(5, 40)
    size = int(run.log_uniform(50, 1000))
    sessions = {("session", number): bytes(size) for number in range(-mean, 0)}
    oldest, newest = -mean, 0
    for _ in run:
        for _ in range(run.random.randrange(2 * per_request)):
            sessions["session", newest] = bytes(size)
            newest += 1
        while len(sessions) > mean * run.random.uniform(0.97, 1.03):
            del sessions["session", oldest]
            oldest += 1


def sqlite_ring(run):
    """A table of the last so many events, in a file."""
    import shutil
    import sqlite3
    import tempfile

    room = tempfile.mkdtemp(prefix="plimsoll-scenario-", dir="/tmp")
    base = sqlite3.connect(room + "/events.db", isolation_level=None)
    for setting in ("synchronous=OFF", "journal_mode=MEMORY", "cache_size=-%d" % run.random.randrange(500, 8000)):
        base.execute("PRAGMA " + setting)
    base.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, body BLOB)")
    size, full_at = int(run.log_uniform(3000, 12000)), run.random.uniform(0.1, 0.4)
    rows = at = 0
    for _ in run:
        if run.progress() < full_at:
            rows += 1
        base.execute("INSERT OR REPLACE INTO events VALUES (?, ?)", (at % max(1, rows), bytes(size)))
        base.execute("SELECT body FROM events WHERE id = ?", (run.random.randrange(max(1, rows)),)).fetchone()
        at += 1
    base.close()
    shutil.rmtree(room)


def prefetch(run):
    """A thread that prepares batches ahead of time, but only so many."""
    import queue
    import threading

    import numpy

    batches = queue.Queue(maxsize=run.random.randrange(4, 40))
    cells = run.log_uniform(2000, 60000)
    source = numpy.random.RandomState(run.random.randrange(1000))

    def prepare():
        while True:
            batches.put(source.rand(int(cells * source.uniform(0.3, 1.7))))

    threading.Thread(target=prepare, daemon=True).start()
    for _ in run:
        if run.iteration % 3 == 0:
            batches.get().sum()


def pattern_cache(run):
    """Patterns made of what users type; the module re remembers 512 of them."""
    import re

    words = run.random.randrange(2, 8)
    for _ in run:
        pattern = "|".join("%s%d(a|b)?" % ("word" * run.random.randrange(1, 3), run.iteration + word)
                           for word in range(words))
        re.search(pattern, "some text with a word%d" % run.iteration)


def accumulated_gradients(run):
    """Training with batches of very different sizes, and a step after several."""
    import torch

    model, width = network(torch, run, [32, 64, 128])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    steps, most = run.random.randrange(2, 12), run.random.choice([32, 64, 128])
    losses = collections.deque(maxlen=100)
    for _ in run:
        loss = model(torch.randn(int(run.log_uniform(1, most)), width)).pow(2).mean() / steps
        loss.backward()
        losses.append(loss.item())
        if run.iteration % steps == 0:
            optimizer.step()
            optimizer.zero_grad()


def unfrozen_layers(run):
    """Layer by layer is trained too: gradients and the optimizer's state come with each, until all are."""
    import torch

    torch.set_num_threads(1)
    width, count = run.random.choice([256, 384, 512]), run.random.randrange(3, 7)
    layers = [torch.nn.Linear(width, width) for _ in range(count)]
    model = torch.nn.Sequential(*layers)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    all_at = run.random.uniform(0.15, 0.45)
    optimizer, trained = None, 0
    for _ in run:
        if trained < count * min(1, run.progress() / all_at):
            trained += 1
            for parameter in layers[-trained].parameters():
                parameter.requires_grad_(True)
            optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=1e-4)
        if run.iteration % 4 == 0:
            optimizer.zero_grad(set_to_none=False)
            model(torch.randn(4, width)).pow(2).mean().backward()
            optimizer.step()


FAMILIES = {
    "py_callbacks": callbacks,
    "py_array_views": array_views,
    "py_queue_behind": queue_behind,
    "py_finalizers": finalizers,
    "py_templates": templates,
    "torch_running_loss": running_loss,
    "torch_snapshots": snapshots,
    "py_rehashed_dictionary": rehashed_dictionary,
    "py_sqlite_ring": sqlite_ring,
    "py_prefetch": prefetch,
    "py_pattern_cache": pattern_cache,
    "torch_accumulated_gradients": accumulated_gradients,
    "torch_unfrozen_layers": unfrozen_layers,
}
