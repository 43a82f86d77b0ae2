"""Loops with one fault each, and twins without it. `n` iterations; nothing here knows the doctor."""
import collections
import ctypes
import mmap
import traceback

import torch
from torch.utils.data import DataLoader, Dataset

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype, LIBC.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]


def linear(**state):
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16))
    return model.train(**state) if state else model.eval()


X = torch.randn(32, 64)
HIDDEN_BYTES = 32 * 256 * 4  # what ReLU's node and the second Linear's save together: one tensor


def graph_dropped(n):
    model = linear()
    for _ in range(n):
        output = model(X)
    return output


def no_graph(n):
    model = linear()
    with torch.inference_mode():
        for _ in range(n):
            output = model(X)
    return output


def frozen(n):
    model = linear().requires_grad_(False)
    for _ in range(n):
        output = model(X)
    return output


def graph_in_list(n):
    model, outputs = linear(), []
    for _ in range(n):
        outputs.append(model(X))


def views_of_weights_in_list(n):
    """No data of their own: what grows are the tensors and nodes themselves."""
    model, kept = linear(), []
    for _ in range(n):
        model(X)
        kept.append(model[0].weight.view(-1))


def detached_in_bounded(n):
    model, outputs = linear(), collections.deque(maxlen=2)
    for _ in range(n):
        outputs.append(model(X).detach())


class Service:
    def __init__(self):
        self.model, self.history = linear(), {}

    def answer(self, request, text):
        output = self.model(text)
        self.history[request] = output
        return output


def graph_in_attribute(n):
    service = Service()
    for number in range(n):
        service.answer(number, X)


KEPT = []


def graph_in_global(n):
    KEPT.clear()
    model = linear()
    for _ in range(n):
        y = model(X)
        KEPT.append(y)


def graph_in_sum(n):
    model, total = linear(), 0
    for _ in range(n):
        total = total + model(X).sum()


def number_in_sum(n):
    model, total = linear(), 0
    for _ in range(n):
        total = total + model(X).sum().item()


def fail_with(model, x):
    hidden = model(x) * 2
    raise ValueError(f"no answer of shape {tuple(hidden.shape)}")


def tracebacks_kept(n):
    model, errors = linear(), []
    with torch.no_grad():
        for _ in range(n):
            try:
                fail_with(model, X.clone())
            except ValueError as error:
                errors.append(error)


def texts_kept(n):
    model, errors = linear(), collections.deque(maxlen=4)
    with torch.no_grad():
        for _ in range(n):
            try:
                fail_with(model, X.clone())
            except ValueError:
                errors.append(traceback.format_exc())


@torch.no_grad()
def outputs_kept(n):
    model, results = linear(), []
    for _ in range(n):
        results.append(model(X))


@torch.no_grad()
def cache_reaches_bound(n):
    model, cache = linear(), collections.OrderedDict()
    for number in range(n):
        cache[number] = model(X)
        if len(cache) > 5:
            cache.popitem(last=False)


class Dropping(torch.nn.Module):
    """Asks for its mode itself."""

    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, self.training)


@torch.no_grad()
def training_mode(n, model=None):
    model = model or torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Dropout(0.5), Dropping())
    for _ in range(n):
        model(X)


def eval_mode(n):
    training_mode(n, torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Dropout(0.5), Dropping()).eval())


def mode_without_effect(n):
    training_mode(n, torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.ReLU()))


@torch.no_grad()
def statistics_change(n, model=None):
    model = model or torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.BatchNorm1d(8))
    for _ in range(n):
        model(X)


def statistics_stand(n):
    statistics_change(n, torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.BatchNorm1d(8)).eval())


class Remembering(torch.nn.Module):
    def __init__(self, forget):
        super().__init__()
        self.inner, self.forget, self.seen = torch.nn.Linear(64, 16), forget, []

    def forward(self, x):
        if self.forget:
            self.seen.clear()
        y = self.inner(x)
        self.seen.append(y)
        return y


@torch.no_grad()
def module_remembers(n, forget=False):
    net = torch.nn.Sequential(collections.OrderedDict(body=Remembering(forget).eval()))
    for _ in range(n):
        net(X)


def module_forgets(n):
    module_remembers(n, forget=True)


@torch.no_grad()
def hooks_pile_up(n, remove=False):
    model, seen = linear(), {}
    for _ in range(n):
        noted = X + 1

        def note(module, inputs, output, noted=noted):
            seen["shape"] = output.shape
        handle = model[0].register_forward_hook(note)
        model(X)
        if remove:
            handle.remove()


def hooks_removed(n):
    hooks_pile_up(n, remove=True)


class Images(Dataset):
    def __init__(self, data, keep=False, ballast_bytes=0):
        self.data, self.keep, self.ballast_bytes, self.cache = data, keep, ballast_bytes, {}

    def __len__(self):
        return len(self.data) * 1000

    def __getitem__(self, index):
        item = self.data[index % len(self.data)]
        if self.keep:
            self.cache[index] = item + 1, b"x" * self.ballast_bytes
        return item if item.dtype == torch.float32 else item.float()


@torch.no_grad()
def load(n, dataset, **options):
    model, left = linear(), n
    for batch in DataLoader(dataset, batch_size=4, **options):
        model(batch)
        left -= 1
        if left == 0:
            return


def loader_converts(n):
    load(n, Images(torch.randn(16, 64, dtype=torch.float64)))


def loader_views(n):
    load(n, Images(torch.randn(16, 64)))


def loader_grows(n):
    load(n, Images(torch.randn(16, 64), keep=True))


def workers_grow(n):
    load(n, Images(torch.randn(16, 64), keep=True, ballast_bytes=300_000), num_workers=1)


def workers_stand(n):
    load(n, Images(torch.randn(16, 64)), num_workers=1)


class Native(torch.nn.Module):
    """Takes memory that Python cannot see: `every` call, and what the first call takes `once`."""

    def __init__(self, every=0, once=0, give_back=False):
        super().__init__()
        self.every, self.once, self.give_back = every, once, give_back

    def forward(self, x):
        size, self.once = self.every + self.once, 0
        if size:
            address = LIBC.malloc(size)
            ctypes.memset(address, 1, size)
            if self.give_back:
                LIBC.free(address)
        return x


def call(n, model):
    for _ in range(n):
        model(X)


def native_leak(n):
    call(n, Native(every=50_000))


def native_balanced(n):
    call(n, Native(every=50_000, give_back=True))


def native_once(n):
    call(n, Native(once=24 << 20))


def objects_pile_up(n):
    model, log = Native(), []
    for number in range(n):
        model(X)
        log.append({"number": number, "text": f"{number}" * 4000})


def latencies(n):
    model, times = Native(), []
    for number in range(n):
        model(X)
        times.append(number * 0.5)


class Node:
    def __init__(self, value):
        self.value, self.me = value, self


def cycles(n, cyclic=True):
    model = Native()
    for _ in range(n):
        model(X)
        node = Node(torch.zeros(100_000))
        if not cyclic:
            node.me = None


def no_cycles(n):
    cycles(n, cyclic=False)


def heap_kept(n):
    """Frees 32 MiB of small blocks under one that stays: malloc cannot give them back by itself."""
    model = Native()
    blocks = [LIBC.malloc(60_000) for _ in range(500)]
    for block in blocks:
        ctypes.memset(block, 1, 60_000)
    pin = LIBC.malloc(60_000)
    for block in blocks:
        LIBC.free(block)
    call(n, model)
    return pin


def mapping_leak(n):
    """Anonymous mappings that malloc knows nothing of."""
    model, kept = Native(), []
    for _ in range(n):
        model(X)
        block = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.write(b"x" * (1 << 20))
        kept.append(block)


def trained(n):
    """Training proper: a graph, gradients and an optimizer's state are meant."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.BatchNorm1d(32), torch.nn.Linear(32, 1))
    optimizer, losses = torch.optim.Adam(model.parameters()), []
    for _ in range(n):
        optimizer.zero_grad()
        loss = model(X).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


@torch.no_grad()
def bigger_and_bigger(n):
    """Larger inputs need more memory; that is no leak."""
    model = linear()
    for number in range(n):
        output = model(X.repeat(1 + number, 1))
    return output


@torch.inference_mode()
def new_shapes(n, step=1):
    model = torch.nn.Conv2d(32, 24, 3).eval()  # large enough for oneDNN
    for number in range(n):
        x = torch.ones(1, 32, 30 + step * number, 37)
        model(x)


def same_shapes(n):
    new_shapes(n, step=0)
