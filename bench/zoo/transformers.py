"""Transformers in several spellings."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class GptBlock(nn.Module):
    def __init__(self, width, heads, tanh):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.tanh = tanh

    def forward(self, x, mask, past=None):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).split(c, 2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        a = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(c // self.heads))
        if mask is not None:
            a = a.masked_fill(mask[:t, :t] == 0, float("-inf"))
        y = (F.softmax(a, -1) @ v).transpose(1, 2).contiguous().view(b, t, c)
        x = x + self.out(y)
        h = self.up(self.n2(x))
        h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0)))) if self.tanh else F.gelu(h)
        return x + self.down(h), torch.stack([k, v])


class Gpt(nn.Module):
    def __init__(self, width=384, heads=6, layers=6, vocabulary=8000, context=1024, tanh=True, decode=False):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads, tanh) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("mask", torch.tril(torch.ones(context, context)))
        self.decode = decode

    def forward(self, ids, past=None):
        start = past.shape[-2] if self.decode else 0
        x = self.words(ids) + self.places(torch.arange(start, start + ids.shape[1]))
        present = []
        for k, block in enumerate(self.blocks):
            x, kv = block(x, None if self.decode else self.mask, past[k] if self.decode else None)
            present.append(kv)
        logits = self.head(self.norm(x))
        return (logits, torch.stack(present)) if self.decode else logits


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Llama(nn.Module):
    def __init__(self, width=512, heads=8, shared=2, layers=4, vocabulary=8000, decode=False):
        super().__init__()
        self.words, self.heads, self.shared, self.d = nn.Embedding(vocabulary, width), heads, shared, width // heads
        self.decode = decode
        self.layers = nn.ModuleList(nn.ModuleList([
            RmsNorm(width), nn.Linear(width, width, False), nn.Linear(width, self.d * shared, False), nn.Linear(width, self.d * shared, False),
            nn.Linear(width, width, False), RmsNorm(width), nn.Linear(width, 1376, False), nn.Linear(width, 1376, False),
            nn.Linear(1376, width, False)]) for _ in range(layers))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, vocabulary, False)
        angles = torch.outer(torch.arange(1024).float(), 1.0 / 10000 ** (torch.arange(0, self.d, 2).float() / self.d))
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))

    def turn(self, x, start, t):
        half = x.shape[-1] // 2
        return x * self.cos[start:start + t] + torch.cat([-x[..., half:], x[..., :half]], -1) * self.sin[start:start + t]

    def forward(self, ids, past=None):
        b, t = ids.shape
        start = past.shape[-2] if self.decode else 0
        x = self.words(ids)
        present = []
        for n, (n1, q, k, v, o, n2, gate, up, down) in enumerate(self.layers):
            y = n1(x)
            q_ = self.turn(q(y).view(b, t, self.heads, self.d).transpose(1, 2), start, t)
            k_ = self.turn(k(y).view(b, t, self.shared, self.d).transpose(1, 2), start, t)
            v_ = v(y).view(b, t, self.shared, self.d).transpose(1, 2)
            if self.decode:
                k_, v_ = torch.cat([past[n, 0], k_], 2), torch.cat([past[n, 1], v_], 2)
                present.append(torch.stack([k_, v_]))
            r = self.heads // self.shared
            k_ = k_[:, :, None].expand(-1, -1, r, -1, -1).reshape(b, self.heads, -1, self.d)
            v_ = v_[:, :, None].expand(-1, -1, r, -1, -1).reshape(b, self.heads, -1, self.d)
            a = q_ @ k_.transpose(2, 3) / math.sqrt(self.d)
            if not self.decode:
                a = a + torch.triu(torch.full((t, t), -1e9), 1)
            x = x + o((a.softmax(-1) @ v_).transpose(1, 2).reshape(b, t, -1))
            y = n2(x)
            x = x + down(F.silu(gate(y)) * up(y))
        logits = self.head(self.norm(x))
        return (logits, torch.stack(present)) if self.decode else logits


class T5(nn.Module):
    def __init__(self, width=256, heads=4, layers=4, buckets=32):
        super().__init__()
        self.heads, self.bias = heads, nn.Embedding(buckets, heads)
        self.layers = nn.ModuleList(nn.ModuleList([
            RmsNorm(width), nn.Linear(width, width, False), nn.Linear(width, width, False), nn.Linear(width, width, False),
            nn.Linear(width, width, False), RmsNorm(width), nn.Linear(width, 1024, False), nn.Linear(1024, width, False)]) for _ in range(layers))
        self.words = nn.Embedding(8000, width)

    def forward(self, ids):
        b, t = ids.shape
        distance = torch.arange(t)[None] - torch.arange(t)[:, None]
        n = distance.abs()
        large = 8 + (torch.log(n.float().clamp(min=1) / 8) / math.log(128 / 8) * 8).long()
        bucket = (distance > 0).long() * 16 + torch.where(n < 8, n, large.clamp(max=15))
        bias = self.bias(bucket).permute(2, 0, 1)[None]
        x = self.words(ids)
        for n1, q, k, v, o, n2, up, down in self.layers:
            y = n1(x)
            q_, k_, v_ = (f(y).view(b, t, self.heads, -1).transpose(1, 2) for f in (q, k, v))
            x = x + o(((q_ @ k_.transpose(3, 2) + bias).softmax(-1) @ v_).transpose(1, 2).reshape(b, t, -1))
            x = x + down(F.relu(up(n2(x))))
        return x


class Encoder(nn.Module):
    """nn.MultiheadAttention as torch spells it, with its padding mask."""

    def __init__(self, width=256, heads=4, layers=4, first=True):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=first)
                                    for _ in range(layers))
        self.words = nn.Embedding(8000, width)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x)
        return x


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.ModuleList(nn.TransformerDecoderLayer(256, 4, 1024, 0.0, batch_first=True) for _ in range(3))

    def forward(self, x, memory):
        mask = torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), 1)
        for layer in self.layer:
            x = layer(x, memory, tgt_mask=mask)
        return x


class LinearAttention(nn.Module):
    def __init__(self, width=256, heads=4, layers=4):
        super().__init__()
        self.heads = heads
        self.layers = nn.ModuleList(nn.ModuleList([nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)])
                                    for _ in range(layers))

    def forward(self, x):
        b, t, c = x.shape
        for norm, qkv, out in self.layers:
            q, k, v = qkv(norm(x)).view(b, t, 3, self.heads, -1).unbind(2)
            q, k = F.elu(q) + 1, F.elu(k) + 1
            kv = torch.einsum("bthd,bthe->bhde", k, v)
            z = 1 / (torch.einsum("bthd,bhd->bth", q, k.sum(1)) + 1e-6)
            x = x + out(torch.einsum("bthd,bhde,bth->bthe", q, kv, z).reshape(b, t, c))
        return x


def ids(*shape, high=8000):
    return torch.randint(0, high, shape)


def models():
    r = torch.randn
    return {
        "gpt_32": lambda: (Gpt(), (ids(1, 32),)),
        "gpt_256": lambda: (Gpt(), (ids(1, 256),)),
        "gpt_b4_64": lambda: (Gpt(tanh=False), (ids(4, 64),)),
        "gpt_512_wide": lambda: (Gpt(768, 12, 3), (ids(1, 512),)),
        "gpt_decode": lambda: (Gpt(decode=True), (ids(1, 1), r(6, 2, 1, 6, 128, 64))),
        "gpt_decode_b8": lambda: (Gpt(decode=True), (ids(8, 1), r(6, 2, 8, 6, 64, 64))),
        "llama_64": lambda: (Llama(), (ids(1, 64),)),
        "llama_256": lambda: (Llama(), (ids(1, 256),)),
        "llama_decode": lambda: (Llama(decode=True), (ids(1, 1), r(4, 2, 1, 2, 200, 64))),
        "t5_128": lambda: (T5(), (ids(1, 128),)),
        "t5_b8_32": lambda: (T5(), (ids(8, 32),)),
        "encoder_b8_64": lambda: (Encoder(), (ids(8, 64),)),
        "encoder_b32_16": lambda: (Encoder(), (ids(32, 16),)),
        "encoder_post_200": lambda: (Encoder(first=False), (ids(1, 200),)),
        "encoder_12": lambda: (Encoder(), (ids(1, 12),)),
        "encoder_tiny_b4": lambda: (Encoder(64, 2, 2), (ids(4, 40),)),
        "translator_b2": lambda: (Translator(), (r(2, 40, 256), r(2, 60, 256))),
        "linear_attention": lambda: (LinearAttention(), (r(2, 256, 256),)),
    }
