#!/usr/bin/python3
"""scenarios.py FAMILY SEED [SECONDS]: the families in Python, as plimsoll_scenario has those in C++.

Behaves as its family says and prints a line per iteration; at its end `truth`, the bytes kept per iteration where the
family knows them. What the right verdict is stands in families.csv.
"""
import collections
import functools
import gc
import os
import random
import sys
import time

import blind_scenarios
import second_scenarios


class Run:
    def __init__(self, seed, seconds):
        self.random = random.Random(seed * 104729 + 7)
        self.seconds = seconds
        self.pause = self.random.uniform(0.002, 0.004)
        self.noise = int(10 ** self.random.uniform(3, 4.6))
        self.iteration = 0
        self.kept = 0
        self.begin = time.monotonic()

    def progress(self):
        return (time.monotonic() - self.begin) / self.seconds

    def log_uniform(self, low, high):
        return low * (high / low) ** self.random.random()

    def request(self):
        return [bytes(self.random.randrange(64, self.noise)) for _ in range(self.random.randrange(1, 6))]

    def next(self):
        self.iteration += 1
        os.write(1, b"iteration %d\n" % self.iteration)
        time.sleep(self.pause * self.random.uniform(0.6, 1.4))
        return self.progress() < 1

    def __iter__(self):
        self.begin = time.monotonic()  # imports are over
        yield
        while self.next():
            self.request()
            yield


def growing_list(run):
    kept = []
    size = int(run.log_uniform(200, 4000))
    for _ in run:
        record = {"id": run.iteration, "body": "x" * size}
        kept.append(record)
        run.kept += sum(map(sys.getsizeof, (record, record["body"], record["id"]))) + 8


def dictionary_per_shape(run):
    import numpy

    plans = {}
    cells = run.log_uniform(100, 1500)
    for _ in run:
        shape = (1, 3, run.iteration)
        plans[shape] = numpy.ones(int(cells * run.random.uniform(0.5, 1.5)))
        run.kept += plans[shape].nbytes + 238  # array, key and entry, by tracemalloc


def unbounded_cache(run):
    size = int(run.log_uniform(300, 5000))

    @functools.lru_cache(maxsize=None)
    def answer(question):
        return bytes(size)

    for _ in run:
        answer("question %d" % run.iteration)
        run.kept += size + 116  # key and entry, by tracemalloc


def cycles_without_gc(run):
    gc.disable()
    size = int(run.log_uniform(300, 5000))

    class Node:
        pass

    for _ in run:
        node = Node()
        node.me, node.body = node, bytes(size)
        run.kept += size + 122  # node and its values, by tracemalloc


def open_files(run):
    kept = []
    every = run.random.randrange(2, 8)
    for _ in run:
        if run.iteration % every == 0:
            kept.append(open("/dev/null", "rb", buffering=0))


def kilobyte_python(run):
    kept = []
    for _ in run:
        kept.append(bytes(1024 - 33))
        run.kept += 1024 + 16 + 8  # with malloc's header and the list's pointer


def network(torch, run):
    torch.set_num_threads(1)
    torch.manual_seed(run.random.randrange(1000))
    width = run.random.choice([32, 64, 128])
    layers = [torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers).eval(), width


def torch_kept_graph(run):
    import torch

    model, width = network(torch, run)
    outputs = []
    for _ in run:
        outputs.append(model(torch.ones(2, width)).sum())


def torch_hooks(run):
    import torch

    model, width = network(torch, run)
    size = int(run.log_uniform(500, 4000))
    with torch.no_grad():
        for _ in run:
            buffer = torch.zeros(size)

            def hook(module, inputs, output, buffer=buffer):
                return None

            if run.iteration % 3 == 0:
                model[run.random.randrange(4)].register_forward_hook(hook)
            if run.iteration % 50 == 0:  # many hooks make a call slow
                model(torch.ones(1, width))


def torch_traceback(run):
    import torch

    model, width = network(torch, run)
    failures = []
    chance = run.random.uniform(0.2, 0.8)

    def serve():
        with torch.no_grad():
            activations = model(torch.ones(8, width))
            copies = torch.cat([activations] * 4)
            if run.random.random() < chance:
                raise ValueError("bad request of %d" % copies.numel())

    for _ in run:
        try:
            serve()
        except ValueError as error:
            failures.append(error)


def lazy_imports(run):
    modules = ["json", "decimal", "sqlite3", "asyncio", "email.message", "xml.dom.minidom", "unittest", "http.client",
               "multiprocessing", "ctypes", "numpy", "logging.config", "tarfile", "difflib", "doctest", "pydoc"]
    run.random.shuffle(modules)
    until = run.random.uniform(0.15, 0.5)
    count = len(modules)
    for _ in run:
        if modules and run.progress() / until > 1 - len(modules) / count:
            __import__(modules.pop())


def collected_cycles(run):
    gc.set_threshold(run.random.randrange(300, 900), 10, 10)
    size = int(run.log_uniform(1000, 20000))

    class Node:
        pass

    for _ in run:
        for _ in range(3):
            node = Node()
            node.me, node.body = node, bytes(size)


def bounded_cache(run):
    size = int(run.log_uniform(500, 8000))
    full_at = run.random.uniform(0.1, 0.45)  # however busy the machine is
    answers = collections.OrderedDict()
    for _ in run:
        answers["question %d" % run.iteration] = bytes(size)
        if run.progress() > full_at:
            answers.popitem(last=False)


def numpy_temporaries(run):
    import numpy

    cells = run.log_uniform(1e4, 1e6)
    for _ in run:
        if run.iteration % 5 == 0:
            numpy.ones(int(cells * run.random.uniform(0.1, 1))).sum()


def rebuilt_index(run):
    every = run.random.randrange(80, 500)
    rows = run.random.randrange(2000, 20000)
    index = {}
    for _ in run:
        if run.iteration % every == 0:
            index = {number: str(number) for number in range(int(rows * run.random.uniform(0.9, 1.1)))}
    del index


def torch_inference(run):
    import torch

    model, width = network(torch, run)
    with torch.inference_mode():
        for _ in run:
            model(torch.ones(run.random.randrange(1, 16), width))


def torch_varied_shapes(run):
    import torch

    torch.set_num_threads(1)
    channels = run.random.choice([4, 8])
    model = torch.nn.Conv2d(3, channels, 3).eval()
    with torch.no_grad():
        for _ in run:
            model(torch.ones(1, 3, run.random.randrange(8, 64), run.random.randrange(8, 64)))


def log_handlers(run):
    import logging

    class Memory(logging.Handler):
        def __init__(self, size):
            super().__init__()
            self.buffer = bytearray(size)

    size = int(run.log_uniform(500, 5000))
    log = logging.getLogger("service")
    for _ in run:
        log.addHandler(Memory(size))


def pending_tasks(run):
    import asyncio

    loop = asyncio.new_event_loop()
    size = int(run.log_uniform(200, 4000))
    waiting = []

    async def wait(event, body):
        await event.wait()
        return body

    for _ in run:
        event = asyncio.Event()
        waiting.append((loop.create_task(wait(event, bytes(size))), event))
        loop.call_soon(loop.stop)
        loop.run_forever()


def torch_history(run):
    import torch

    model, width = network(torch, run)
    history = []
    rows = run.random.randrange(2, 20)
    with torch.no_grad():
        for _ in run:
            history.append(model(torch.ones(rows, width)))


def json_churn(run):
    import json

    rows = run.random.randrange(20, 400)
    for _ in run:
        text = json.dumps([{"id": row, "name": "n" * run.random.randrange(50)} for row in range(rows // 20)])
        json.loads(text)


def joined_arrays(run):
    import numpy

    parts, limit = [], run.random.randrange(100, 500)
    cells = int(run.log_uniform(500, 20000))
    for _ in run:
        parts.append(numpy.ones(cells))
        if len(parts) > limit:
            numpy.concatenate(parts).sum()
            parts = []


def torch_training(run):
    import torch

    model, width = network(torch, run)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in run:
        optimizer.zero_grad()
        model(torch.ones(8, width)).sum().backward()
        optimizer.step()


FAMILIES = {
    "py_log_handlers": log_handlers,
    "py_pending_tasks": pending_tasks,
    "torch_history": torch_history,
    "py_json_churn": json_churn,
    "py_joined_arrays": joined_arrays,
    "torch_training": torch_training,
    "py_growing_list": growing_list,
    "py_dictionary_per_shape": dictionary_per_shape,
    "py_unbounded_cache": unbounded_cache,
    "py_cycles_without_gc": cycles_without_gc,
    "py_open_files": open_files,
    "py_kilobyte": kilobyte_python,
    "torch_kept_graph": torch_kept_graph,
    "torch_hooks": torch_hooks,
    "torch_traceback": torch_traceback,
    "py_lazy_imports": lazy_imports,
    "py_collected_cycles": collected_cycles,
    "py_bounded_cache": bounded_cache,
    "py_numpy_temporaries": numpy_temporaries,
    "py_rebuilt_index": rebuilt_index,
    "torch_inference": torch_inference,
    "torch_varied_shapes": torch_varied_shapes,
    **blind_scenarios.FAMILIES,
    **second_scenarios.FAMILIES,
}


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(FAMILIES))
        return 0
    if len(sys.argv) < 3 or sys.argv[1] not in FAMILIES:
        print(__doc__, file=sys.stderr)
        return 2
    run = Run(int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 14)
    FAMILIES[sys.argv[1]](run)
    os.write(1, b"truth %f\n" % (run.kept / max(1, run.iteration)))
    os._exit(0)  # with what it kept


if __name__ == "__main__":
    sys.exit(main())
