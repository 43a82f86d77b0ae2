"""Networks of kinds that came later: scans, shifted windows, modulated convolutions, detection with its boxes, serving at batch 2 to 8."""
import math

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from zoo.images import Residual
from zoo.transformers import RmsNorm, ids


class ConvNextV2(nn.Module):
    """Global response normalization between the two products."""

    def __init__(self, widths=(40, 80, 160), depths=(2, 2, 4)):
        super().__init__()
        self.stem, self.down, self.stages = nn.Conv2d(3, widths[0], 4, 4), nn.ModuleList(), nn.ModuleList()
        for k, (w, depth) in enumerate(zip(widths, depths)):
            self.down.append(nn.Conv2d(widths[k - 1], w, 2, 2) if k else nn.Identity())
            self.stages.append(nn.ModuleList(nn.ModuleDict({
                "depth": nn.Conv2d(w, w, 7, padding=3, groups=w), "norm": nn.LayerNorm(w), "up": nn.Linear(w, 4 * w),
                "down": nn.Linear(4 * w, w)}) for _ in range(depth)))
            for n, block in enumerate(self.stages[-1]):
                self.register_buffer(f"gamma{k}_{n}", torch.randn(4 * w))
        self.head = nn.Linear(widths[-1], 100)

    def forward(self, x):
        x = self.stem(x)
        for k, (down, stage) in enumerate(zip(self.down, self.stages)):
            x = down(x)
            for n, block in enumerate(stage):
                y = block["norm"](block["depth"](x).permute(0, 2, 3, 1))
                y = F.gelu(block["up"](y))
                g = torch.norm(y, p=2, dim=(1, 2), keepdim=True)
                y = getattr(self, f"gamma{k}_{n}") * (y * (g / (g.mean(-1, keepdim=True) + 1e-6))) + y
                x = x + block["down"](y).permute(0, 3, 1, 2)
        return self.head(x.mean((2, 3)))


class Mamba(nn.Module):
    """Selective scans, their steps written out as exporters leave them."""

    def __init__(self, width=96, state=8, steps=24, layers=2):
        super().__init__()
        self.state, self.steps, inner = state, steps, 2 * width
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": RmsNorm(width), "in": nn.Linear(width, 2 * inner, False), "conv": nn.Conv1d(inner, inner, 4, padding=3, groups=inner),
            "x": nn.Linear(inner, 6 + 2 * state, False), "dt": nn.Linear(6, inner), "out": nn.Linear(inner, width, False)}) for _ in range(layers))
        self.register_buffer("a", -torch.arange(1, state + 1).float().repeat(inner, 1))

    def forward(self, x):
        for p in self.layers:
            u, gate = p["in"](p["norm"](x)).chunk(2, -1)
            u = F.silu(p["conv"](u.transpose(1, 2))[..., :self.steps]).transpose(1, 2)
            dt, b, c = p["x"](u).split([6, self.state, self.state], -1)
            dt = F.softplus(p["dt"](dt))
            decay, put = torch.exp(dt[..., None] * self.a), (dt * u)[..., None] * b[:, :, None]
            h, out = 0, []
            for t in range(self.steps):
                h = decay[:, t] * h + put[:, t]
                out.append((h @ c[:, t, :, None])[..., 0])
            x = x + p["out"]((torch.stack(out, 1) + u) * F.silu(gate))
        return x


class Rwkv(nn.Module):
    """Time mixing with running sums, step by step."""

    def __init__(self, width=192, steps=32):
        super().__init__()
        self.steps, self.norm = steps, nn.LayerNorm(width)
        self.k, self.v, self.r, self.o = (nn.Linear(width, width, False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width, False), nn.Linear(4 * width, width, False)
        self.register_buffer("mix", torch.rand(3, width))
        self.register_buffer("decay", -torch.rand(width))
        self.register_buffer("first", torch.rand(width))

    def forward(self, x):
        y = self.norm(x)
        before = F.pad(y, (0, 0, 1, -1))
        k, v, r = (f(y * m + before * (1 - m)) for f, m in zip((self.k, self.v, self.r), self.mix))
        top, bottom, out = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), []
        for t in range(self.steps):
            e = torch.exp(self.first + k[:, t])
            out.append((top + e * v[:, t]) / (bottom + e + 1e-6))
            top, bottom = (torch.exp(self.decay) * s + torch.exp(k[:, t]) * w for s, w in ((top, v[:, t]), (bottom, 1)))
        x = x + self.o(torch.sigmoid(r) * torch.stack(out, 1))
        return x + self.down(F.relu(self.up(self.norm(x))) ** 2)


class PointTransformer(nn.Module):
    """Attention of vectors between a point and its neighbours."""

    def __init__(self, width=64, near=16):
        super().__init__()
        self.near, self.first = near, nn.Linear(3, width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.place = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
        self.weigh = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, p):
        b, n, _ = p.shape
        near = torch.cdist(p, p).topk(self.near, largest=False)[1]

        def of(values):
            return torch.gather(values[:, None].expand(-1, n, -1, -1), 2, near[..., None].expand(-1, -1, -1, values.shape[-1]))
        x = F.relu(self.first(p))
        place = self.place(p[:, :, None] - of(p))
        a = self.weigh(self.q(x)[:, :, None] - of(self.k(x)) + place).softmax(2)
        return (a * (of(self.v(x)) + place)).sum(2)


class Detector(nn.Module):
    """A head of YOLO with its boxes chosen inside of the model."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.SiLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.SiLU())
        self.head = nn.Conv2d(64, 85, 1)
        nn.init.normal_(self.head.weight, std=4.0)  # scores that rounding cannot put into another order
        y, x = torch.meshgrid(torch.arange(40), torch.arange(40), indexing="ij")
        self.register_buffer("grid", torch.stack([x, y], -1).reshape(-1, 2).float())

    def forward(self, x):
        y = torch.sigmoid(self.head(self.body(x)))[0].flatten(1).t()
        centre, size = (y[:, :2] * 2 - 0.5 + self.grid) * 8, (y[:, 2:4] * 2) ** 2 * 32
        boxes = torch.cat([centre - size / 2, centre + size / 2], -1)
        score, kind = (y[:, 5:] * y[:, 4:5]).max(-1)
        kept = torchvision.ops.nms(boxes, score, 0.5)
        return boxes[kept], score[kept], kind[kept]


class FtTransformer(nn.Module):
    """A word for every column of a table."""

    def __init__(self, numbers=12, codes=8, width=64):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(numbers, width)), nn.Parameter(torch.randn(numbers, width))
        self.tables, self.cls = nn.Embedding(codes * 50, width), nn.Parameter(torch.randn(1, 1, width))
        self.register_buffer("offsets", torch.arange(codes) * 50)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 2 * width, 0.0, batch_first=True, norm_first=True) for _ in range(3))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x, codes):
        y = torch.cat([self.cls.expand(x.shape[0], -1, -1), x[:, :, None] * self.weight + self.bias, self.tables(codes + self.offsets)], 1)
        for layer in self.layers:
            y = layer(y)
        return self.head(y[:, 0])


class TabNet(nn.Module):
    def __init__(self, columns=40, width=32):
        super().__init__()
        self.first = nn.BatchNorm1d(columns)
        self.steps = nn.ModuleList(nn.ModuleList([nn.Sequential(nn.Linear(columns, 2 * width), nn.BatchNorm1d(2 * width), nn.GLU()),
                                                  nn.Sequential(nn.Linear(width, columns), nn.BatchNorm1d(columns))]) for _ in range(4))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.first(x)
        prior, out, y = torch.ones_like(x), 0, x
        for f, choose in self.steps:
            d = f(y)
            z = choose(d) * prior
            s = z.sort(-1, descending=True)[0]  # sparsemax
            total = s.cumsum(-1) - 1
            k = torch.arange(1, z.shape[1] + 1).float()
            count = (s * k > total).sum(-1, keepdim=True)
            mask = (z - torch.gather(total, 1, count - 1) / count).clamp(min=0)
            prior, out, y = prior * (1.5 - mask), out + F.relu(d), mask * x
        return self.head(out)


class GruTranslator(nn.Module):
    """Encoder and decoder of GRU with additive attention, 16 steps."""

    def __init__(self, width=160):
        super().__init__()
        self.words, self.encoder = nn.Embedding(4000, 96), nn.GRU(96, width, batch_first=True, bidirectional=True)
        self.cell, self.a, self.b, self.c = nn.GRUCell(96 + 2 * width, width), nn.Linear(2 * width, width), nn.Linear(width, width), nn.Linear(width, 1)
        self.start, self.head = nn.Linear(2 * width, width), nn.Linear(width, 4000)

    def forward(self, source, target):
        memory = self.encoder(self.words(source))[0]
        keys, h, out = self.a(memory), torch.tanh(self.start(memory[:, -1])), []
        for t in range(16):
            weights = self.c(torch.tanh(keys + self.b(h)[:, None])).softmax(1)
            h = self.cell(torch.cat([self.words(target[:, t]), (weights * memory).sum(1)], -1), h)
            out.append(h)
        return self.head(torch.stack(out, 1))


class DiffusionBlock(nn.Module):
    """Residual blocks with a time's shift, and attention over pixels and over words."""

    def __init__(self, width=128, words=256, groups=32):
        super().__init__()
        self.n1, self.c1, self.t = nn.GroupNorm(groups, width), nn.Conv2d(width, width, 3, padding=1), nn.Linear(256, width)
        self.n2, self.c2, self.n3 = nn.GroupNorm(groups, width), nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(groups, width)
        self.q, self.kv, self.out = nn.Linear(width, width, False), nn.Linear(width, 2 * width, False), nn.Linear(width, width)
        self.q2, self.kv2, self.out2 = nn.Linear(width, width, False), nn.Linear(words, 2 * width, False), nn.Linear(width, width)
        self.ln, self.gate, self.down = nn.LayerNorm(width), nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def attend(self, q, k, v, heads=4):
        q, k, v = (y.view(y.shape[0], y.shape[1], heads, -1).transpose(1, 2) for y in (q, k, v))
        a = torch.softmax(q @ k.transpose(2, 3) * q.shape[-1] ** -0.5, -1)
        return (a @ v).transpose(1, 2).flatten(2)

    def forward(self, x, time, words):
        y = self.c1(F.silu(self.n1(x))) + self.t(F.silu(time))[:, :, None, None]
        x = x + self.c2(F.silu(self.n2(y)))
        b, c, h, w = x.shape
        y = self.n3(x).flatten(2).transpose(1, 2)
        y = y + self.out(self.attend(self.q(y), *self.kv(y).chunk(2, -1)))
        y = y + self.out2(self.attend(self.q2(y), *self.kv2(words).chunk(2, -1)))
        a, g = self.gate(self.ln(y)).chunk(2, -1)
        y = y + self.down(a * F.gelu(g))
        return x + y.transpose(1, 2).reshape(b, c, h, w)


class StyleGan(nn.Module):
    """Weights that a style scales: convolutions whose weights come at run time."""

    def __init__(self, widths=(128, 96, 64), size=8):
        super().__init__()
        self.map = nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(128, 128), nn.LeakyReLU(0.2))))
        self.first = nn.Parameter(torch.randn(1, widths[0], size, size))
        self.styles = nn.ModuleList(nn.Linear(128, i) for i in (widths[0], *widths[:-1]))
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(o, i, 3, 3) / 30) for i, o in zip((widths[0], *widths[:-1]), widths))
        self.rgb = nn.Conv2d(widths[-1], 3, 1)

    def forward(self, z):
        w = self.map(z * torch.rsqrt((z * z).mean(1, keepdim=True) + 1e-8))
        x = self.first
        for k, (style, weight) in enumerate(zip(self.styles, self.weights)):
            if k:
                x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            m = weight * (style(w) + 1)[0][None, :, None, None]
            m = m * torch.rsqrt((m * m).sum((1, 2, 3), keepdim=True) + 1e-8)
            x = F.leaky_relu(F.conv2d(x, m, padding=1), 0.2)
        return self.rgb(x)


class Modulated(nn.Module):
    """The same by scaling what goes in and comes out, batch by batch."""

    def __init__(self, width=64):
        super().__init__()
        self.style, self.out, self.net = nn.Linear(64, width), nn.Linear(64, width), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x, w):
        for _ in range(3):
            x = self.net(x * self.style(w)[:, :, None, None]) * torch.sigmoid(self.out(w))[:, :, None, None]
            x = F.leaky_relu(x, 0.2)
        return x


class Lora(nn.Module):
    """Linear layers with their low-rank part beside them."""

    def __init__(self, width=320, rank=8, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList([nn.Linear(width, width), nn.Linear(width, rank, False), nn.Linear(rank, width, False)])
                                    for _ in range(layers))

    def forward(self, x):
        for full, a, b in self.layers:
            x = x + F.gelu(full(x) + 2.0 * b(a(x)))
        return x


class Bags(nn.Module):
    """Means of bags of rows, with their weights, and a tower for each side."""

    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(20000, 48), nn.Embedding(20000, 48)
        self.a = nn.Sequential(nn.Linear(48, 128), nn.ReLU(), nn.Linear(128, 64))
        self.b = nn.Sequential(nn.Linear(48, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, user, weights, items):
        u = (self.user(user) * weights[..., None]).sum(1) / weights.sum(1, keepdim=True)
        v = self.item(items).mean(2)
        return (F.normalize(self.a(u), dim=-1)[:, None] * F.normalize(self.b(v), dim=-1)).sum(-1)


class Decoder(nn.Module):
    """One token with a cache of its own tensor for every layer, the place as an input, written by a scatter."""

    def __init__(self, width=256, heads=8, layers=4, length=256):
        super().__init__()
        self.heads, self.length = heads, length
        self.words, self.head = nn.Embedding(8000, width), nn.Linear(width, 8000, False)
        self.layers = nn.ModuleList(nn.ModuleList([nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width),
                                                   nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)]) for _ in range(layers))

    def forward(self, token, at, *caches):
        b = token.shape[0]
        x, now = self.words(token), []
        here = (torch.arange(self.length) == at)[None, None, :, None]
        mask = (torch.arange(self.length) > at).float() * -1e9
        for n, (n1, qkv, out, n2, up, down) in enumerate(self.layers):
            q, k, v = (y.view(b, 1, self.heads, -1).transpose(1, 2) for y in qkv(n1(x)).chunk(3, -1))
            k, v = torch.where(here, k, caches[2 * n]), torch.where(here, v, caches[2 * n + 1])
            now += [k, v]
            y = (q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]) + mask).softmax(-1) @ v
            x = x + out(y.transpose(1, 2).reshape(b, 1, -1))
            x = x + down(F.gelu(up(n2(x))))
        return (self.head(x), *now)


class Tcn(nn.Module):
    """Residual blocks of causal convolutions that cut off what they padded."""

    def __init__(self, width=48, levels=5):
        super().__init__()
        self.first = nn.Conv1d(16, width, 1)
        self.blocks = nn.ModuleList(nn.ModuleList(nn.Conv1d(width, width, 5, padding=4 << k, dilation=1 << k) for _ in range(2)) for k in range(levels))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.first(x)
        for k, (a, b) in enumerate(self.blocks):
            y = F.relu(a(x)[..., :-(4 << k)])
            x = F.relu(x + F.relu(b(y)[..., :-(4 << k)]))
        return self.head(x[..., -1])


class Encodec(nn.Module):
    """Strided Conv1d with ELU, an LSTM, and the nearest of 256 codes, twice."""

    def __init__(self):
        super().__init__()
        layers, w = [nn.Conv1d(1, 16, 7, padding=3)], 16
        for s in (2, 4, 5):
            layers += [Residual(nn.Sequential(nn.ELU(), nn.Conv1d(w, w // 2, 3, padding=1), nn.ELU(), nn.Conv1d(w // 2, w, 1))),
                       nn.ELU(), nn.Conv1d(w, 2 * w, 2 * s, s, s // 2)]
            w *= 2
        self.net, self.rnn, self.last = nn.Sequential(*layers), nn.LSTM(w, w, 2, batch_first=True), nn.Conv1d(w, 64, 7, padding=3)
        self.books = nn.ParameterList(nn.Parameter(torch.randn(256, 64)) for _ in range(2))

    def forward(self, x):
        y = self.net(x).transpose(1, 2)
        y = self.last((y + self.rnn(y)[0]).transpose(1, 2)).transpose(1, 2)
        codes = []
        for book in self.books:
            code = (y.pow(2).sum(-1, keepdim=True) - 2 * y @ book.t() + book.pow(2).sum(1)).argmin(-1)
            codes.append(code)
            y = y - F.embedding(code, book)
        return torch.stack(codes)


class Rrdb(nn.Module):
    """Dense blocks of ESRGAN."""

    def __init__(self, width=32, grow=16, blocks=3):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 12, 3, padding=1)
        self.blocks = nn.ModuleList(nn.ModuleList(nn.Conv2d(width + k * grow, grow if k < 4 else width, 3, padding=1) for k in range(5))
                                    for _ in range(blocks))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            kept = [x]
            for k, c in enumerate(block):
                y = c(torch.cat(kept, 1))
                kept.append(F.leaky_relu(y, 0.2) if k < 4 else y)
            x = x + 0.2 * kept[-1]
        return F.pixel_shuffle(self.last(x), 2)


class InstantNgp(nn.Module):
    """Features of a table by hashed corners, blended, and a small MLP."""

    def __init__(self, levels=8, rows=4096):
        super().__init__()
        self.levels, self.rows, self.table = levels, rows, nn.Embedding(levels * rows, 2)
        self.net = nn.Sequential(nn.Linear(2 * levels, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
        self.register_buffer("corners", torch.tensor([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]))
        self.register_buffer("primes", torch.tensor([1, 261, 805]))

    def forward(self, x):
        out = []
        for level in range(self.levels):
            at = x * (16 * 1.4 ** level)
            low = at.floor()
            t = (at - low)[:, None]
            corner = low.long()[:, None] + self.corners
            w = torch.where(self.corners.bool(), t, 1 - t).prod(-1)
            rows = (corner * self.primes).sum(-1) % self.rows + level * self.rows
            out.append((self.table(rows) * w[..., None]).sum(1))
        return self.net(torch.cat(out, -1))


class Informer(nn.Module):
    """A forecast from patches of series, channels apart."""

    def __init__(self, width=128):
        super().__init__()
        self.embed, self.places = nn.Linear(16, width), nn.Parameter(torch.randn(1, 41, width))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 256, 0.0, "gelu", batch_first=True) for _ in range(2))
        self.head = nn.Linear(41 * width, 96)

    def forward(self, x):
        mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
        y = ((x - mean) / std).transpose(1, 2)
        y = torch.stack([y[..., 8 * k:8 * k + 16] for k in range(41)], 2)
        b, c, n, _ = y.shape
        y = self.embed(y).view(b * c, n, -1) + self.places
        for layer in self.layers:
            y = layer(y)
        return self.head(y.flatten(1)).view(b, c, 96).transpose(1, 2) * std + mean


class Mixer(nn.Module):
    def __init__(self, tokens=196, width=192, layers=4):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 16, 16)
        self.layers = nn.ModuleList(nn.ModuleList([nn.LayerNorm(width), nn.Linear(tokens, 96), nn.Linear(96, tokens), nn.LayerNorm(width),
                                                   nn.Linear(width, 4 * width), nn.Linear(4 * width, width)]) for _ in range(layers))

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        for n1, a, b, n2, c, d in self.layers:
            x = x + b(F.gelu(a(n1(x).transpose(1, 2)))).transpose(1, 2)
            x = x + d(F.gelu(c(n2(x))))
        return x.mean(1)


class Gat(nn.Module):
    """Graph attention over edges, its softmax by scatters."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.width = heads, width
        self.layers = nn.ModuleList(nn.ModuleList([nn.Linear(i, heads * width, False), nn.Linear(width, 1, False), nn.Linear(width, 1, False)])
                                    for i in (64, heads * width))

    def forward(self, x, ends):
        n = x.shape[0]
        for f, a, b in self.layers:
            h = f(x).view(n, self.heads, self.width)
            e = torch.exp(F.leaky_relu(a(h)[ends[0], :, 0] + b(h)[ends[1], :, 0], 0.2).clamp(max=10))
            total = torch.zeros(n, self.heads).scatter_add(0, ends[1][:, None].expand(-1, self.heads), e)
            m = h[ends[0]] * (e / (total[ends[1]] + 1e-9))[..., None]
            at = ends[1][:, None].expand(-1, self.heads * self.width)
            x = F.elu(torch.zeros(n, self.heads * self.width).scatter_add(0, at, m.flatten(1)))
        return x


def models():
    r = torch.randn
    swin = torchvision.models.swin_transformer.SwinTransformer
    return {
        "convnext_v2_b2": lambda: (ConvNextV2(), (r(2, 3, 160, 160),)),
        "swin_small_windows_b2": lambda: (swin([4, 4], 48, [2, 2, 2], [3, 6, 12], [7, 7], num_classes=50), (r(2, 3, 112, 112),)),
        "mixer_b4": lambda: (Mixer(), (r(4, 3, 224, 224),)),
        "mamba_b2": lambda: (Mamba(), (r(2, 24, 96),)),
        "rwkv_b3": lambda: (Rwkv(), (r(3, 32, 192),)),
        "tcn_b8": lambda: (Tcn(), (r(8, 16, 300),)),
        "encodec_b2": lambda: (Encodec(), (r(2, 1, 8000),)),
        "instant_ngp_4k": lambda: (InstantNgp(), (torch.rand(4096, 3),)),
        "point_transformer_b2": lambda: (PointTransformer(), (r(2, 256, 3),)),
        "detector_nms": lambda: (Detector(), (r(1, 3, 320, 320),)),
        "ft_transformer_b64": lambda: (FtTransformer(), (r(64, 12), ids(64, 8, high=50))),
        "tabnet_b128": lambda: (TabNet(), (r(128, 40),)),
        "gru_translator_b4": lambda: (GruTranslator(), (ids(4, 24, high=4000), ids(4, 16, high=4000))),
        "diffusion_block_b2": lambda: (DiffusionBlock(), (r(2, 128, 24, 24), r(2, 256), r(2, 20, 256))),
        "stylegan_b1": lambda: (StyleGan(), (r(1, 128),)),
        "modulated_b4": lambda: (Modulated(), (r(4, 64, 32, 32), r(4, 64))),
        "lora_b6": lambda: (Lora(), (r(6, 50, 320),)),
        "bags_b8": lambda: (Bags(), (ids(8, 30, high=20000), torch.rand(8, 30), ids(8, 50, 10, high=20000))),
        "decoder_scatter_b2": lambda: (Decoder(), (ids(2, 1), torch.tensor(100), *(r(2, 8, 256, 32) for _ in range(8)))),
        "rrdb_b2": lambda: (Rrdb(), (r(2, 3, 48, 48),)),
        "forecast_b4": lambda: (Informer(), (r(4, 336, 7),)),
        "gat_800": lambda: (Gat(), (r(800, 64), ids(2, 6000, high=800))),
    }
