"""Recurrences, and networks over sound."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from zoo.transformers import GptBlock, ids


class Recurrent(nn.Module):
    def __init__(self, kind, i, hidden, layers=1, both=False, classes=None, vocabulary=None):
        super().__init__()
        self.words = nn.Embedding(vocabulary, i) if vocabulary else None
        self.net = getattr(nn, kind)(i, hidden, layers, batch_first=True, bidirectional=both)
        self.head = nn.Linear(hidden * (1 + both), classes) if classes else None

    def forward(self, x):
        y = self.net(self.words(x) if self.words is not None else x)[0]
        return self.head(y) if self.head is not None else y


class Crnn(nn.Module):
    def __init__(self):
        super().__init__()
        layers, i = [], 1
        for o, pool in ((32, (2, 2)), (64, (2, 2)), (128, (2, 1)), (128, (2, 1))):
            layers += [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(pool)]
            i = o
        self.net, self.rnn, self.head = nn.Sequential(*layers), nn.LSTM(256, 128, 2, bidirectional=True, batch_first=True), nn.Linear(256, 80)

    def forward(self, x):
        y = self.net(x)
        b, c, h, w = y.shape
        return self.head(self.rnn(y.permute(0, 3, 1, 2).reshape(b, w, c * h))[0]).log_softmax(-1)


class Seq2Seq(nn.Module):
    """A decoder of LSTM cells with attention, unrolled over 12 steps."""

    def __init__(self, width=192):
        super().__init__()
        self.encoder, self.cell = nn.GRU(64, width, batch_first=True), nn.LSTMCell(2 * width, width)
        self.score, self.head = nn.Linear(width, width), nn.Linear(width, 96)

    def forward(self, x):
        memory = self.encoder(x)[0]
        h = c = memory[:, -1]
        out = []
        for _ in range(12):
            a = torch.softmax((memory @ self.score(h)[:, :, None])[..., 0], -1)
            h, c = self.cell(torch.cat([(a[:, None] @ memory)[:, 0], h], 1), (h, c))
            out.append(self.head(h))
        return torch.stack(out, 1)


def wav2vec():
    layers, i = [], 1
    for k, s in ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)):
        layers += [nn.Conv1d(i, 256, k, s, bias=False), *([nn.GroupNorm(256, 256)] if i == 1 else []), nn.GELU()]
        i = 256
    return nn.Sequential(*layers)


class TasNetBlock(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(128, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256),
                                 nn.Conv1d(256, 256, 3, padding=dilation, dilation=dilation, groups=256), nn.PReLU(), nn.GroupNorm(1, 256),
                                 nn.Conv1d(256, 128, 1))

    def forward(self, x):
        return x + self.net(x)


class TasNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(1, 256, 20, 10, bias=False), nn.ConvTranspose1d(256, 1, 20, 10, bias=False)
        self.first = nn.Sequential(nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1))
        self.body = nn.Sequential(*(TasNetBlock(2 ** k) for _ in range(2) for k in range(6)))
        self.mask = nn.Sequential(nn.PReLU(), nn.Conv1d(128, 512, 1), nn.Sigmoid())

    def forward(self, x):
        e = F.relu(self.encoder(x))
        masks = self.mask(self.body(self.first(e))).view(x.shape[0], 2, 256, -1)
        return torch.cat([self.decoder(e * masks[:, s]) for s in range(2)], 1)


class WaveNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.first, self.last = nn.Conv1d(1, width, 1), nn.Conv1d(width, 64, 1)
        self.layers = nn.ModuleList(nn.ModuleList([nn.Conv1d(width, 2 * width, 2, dilation=2 ** k), nn.Conv1d(width, width, 1),
                                                   nn.Conv1d(width, width, 1)]) for k in range(9))

    def forward(self, x):
        x = self.first(x)
        skips = 0
        for k, (both, res, skip) in enumerate(self.layers):
            a, b = both(F.pad(x, (2 ** k, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            skips = skips + skip(y)
            x = x + res(y)
        return self.last(F.relu(skips))


class Vocoder(nn.Module):
    """Like HiFi-GAN's generator."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(80, 128, 7, padding=3)
        self.up = nn.ModuleList([nn.ConvTranspose1d(128, 64, 16, 8, 4), nn.ConvTranspose1d(64, 32, 16, 8, 4), nn.ConvTranspose1d(32, 16, 4, 2, 1)])
        self.res = nn.ModuleList(nn.ModuleList(nn.Conv1d(w, w, 3, padding=d, dilation=d) for d in (1, 3, 5)) for w in (64, 32, 16))
        self.last = nn.Conv1d(16, 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        for up, res in zip(self.up, self.res):
            x = up(F.leaky_relu(x, 0.1))
            for c in res:
                x = x + c(F.leaky_relu(x, 0.1))
        return torch.tanh(self.last(F.leaky_relu(x)))


class Conformer(nn.Module):
    def __init__(self, width=144, layers=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList([
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)),
            nn.LayerNorm(width), nn.MultiheadAttention(width, 4, batch_first=True), nn.LayerNorm(width),
            nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1), nn.Conv1d(width, width, 31, padding=15, groups=width),
                          nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1)),
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)),
            nn.LayerNorm(width)]) for _ in range(layers))

    def forward(self, x):
        for f1, n1, attention, n2, convolution, f2, n3 in self.layers:
            x = x + 0.5 * f1(x)
            y = n1(x)
            x = x + attention(y, y, y)[0]
            x = x + convolution(n2(x).transpose(1, 2)).transpose(1, 2)
            x = n3(x + 0.5 * f2(x))
        return x


class Whisper(nn.Module):
    def __init__(self, width=384, layers=4):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(80, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)
        self.blocks = nn.ModuleList(GptBlock(width, 6, False) for _ in range(layers))
        self.register_buffer("places", torch.randn(1500, width))

    def forward(self, x):
        x = F.gelu(self.c2(F.gelu(self.c1(x)))).transpose(1, 2)
        x = x + self.places[:x.shape[1]]
        for block in self.blocks:
            x = block(x, None)[0]
        return x


def keyword():
    layers = [nn.Conv2d(1, 64, (10, 4), (2, 2), (5, 1)), nn.BatchNorm2d(64), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12))


def m5():
    layers, i = [], 1
    for o, k, s in ((32, 80, 16), (32, 3, 1), (64, 3, 1), (64, 3, 1)):
        layers += [nn.Conv1d(i, o, k, s), nn.BatchNorm1d(o), nn.ReLU(), nn.MaxPool1d(4)]
        i = o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 35))


def tcn():
    layers, i = [], 40
    for k, o in enumerate((64, 64, 64, 64)):
        layers += [nn.ConstantPad1d((2 * 2 ** k, 0), 0.0), nn.Conv1d(i, o, 3, dilation=2 ** k), nn.ReLU()]
        i = o
    return nn.Sequential(*layers, nn.Conv1d(64, 20, 1))


class Spectrogram(nn.Module):
    """Mel filters over a Fourier transform that a convolution makes."""

    def __init__(self):
        super().__init__()
        n = torch.arange(400).float()
        basis = torch.cat([torch.cos(2 * math.pi * k * n / 400)[None] for k in range(201)] + [torch.sin(2 * math.pi * k * n / 400)[None] for k in range(201)])
        self.register_buffer("basis", (basis * torch.hann_window(400))[:, None])
        self.register_buffer("mel", torch.rand(80, 201))

    def forward(self, x):
        s = F.conv1d(F.pad(x, (200, 200), "reflect"), self.basis, stride=160)
        return torch.log10((self.mel @ (s[:, :201] ** 2 + s[:, 201:] ** 2)).clamp(min=1e-10))


def models():
    r = torch.randn
    return {
        "lstm256_b1": lambda: (Recurrent("LSTM", 128, 256), (r(1, 100, 128),)),
        "lstm256_b8": lambda: (Recurrent("LSTM", 128, 256, 2), (r(8, 50, 128),)),
        "lstm128_b32": lambda: (Recurrent("LSTM", 64, 128), (r(32, 20, 64),)),
        "lstm512_b1": lambda: (Recurrent("LSTM", 256, 512, 2), (r(1, 60, 256),)),
        "lstm64_b8_200": lambda: (Recurrent("LSTM", 32, 64), (r(8, 200, 32),)),
        "lstm300_b3": lambda: (Recurrent("LSTM", 100, 300), (r(3, 30, 100),)),
        "lstm512_b16": lambda: (Recurrent("LSTM", 512, 512), (r(16, 40, 512),)),
        "lstm1024_b4": lambda: (Recurrent("LSTM", 512, 1024), (r(4, 20, 512),)),
        "bilstm128_b1": lambda: (Recurrent("LSTM", 64, 128, 2, True), (r(1, 120, 64),)),
        "bilstm128_b8": lambda: (Recurrent("LSTM", 64, 128, 2, True), (r(8, 60, 64),)),
        "bilstm256_b32": lambda: (Recurrent("LSTM", 128, 256, 1, True), (r(32, 40, 128),)),
        "gru256_b1": lambda: (Recurrent("GRU", 128, 256), (r(1, 200, 128),)),
        "gru256_b8": lambda: (Recurrent("GRU", 128, 256, 2), (r(8, 50, 128),)),
        "gru128_b32": lambda: (Recurrent("GRU", 64, 128), (r(32, 20, 64),)),
        "bigru128_b1": lambda: (Recurrent("GRU", 64, 128, 2, True), (r(1, 100, 64),)),
        "bigru64_b8": lambda: (Recurrent("GRU", 40, 64, 1, True), (r(8, 100, 40),)),
        "rnn128_b4": lambda: (Recurrent("RNN", 64, 128), (r(4, 80, 64),)),
        "tagger_b8": lambda: (Recurrent("LSTM", 100, 100, 1, True, 20, 5000), (ids(8, 30, high=5000),)),
        "char_lm": lambda: (Recurrent("LSTM", 64, 256, 2, False, 96, 96), (ids(1, 128, high=96),)),
        "crnn": lambda: (Crnn(), (r(1, 1, 32, 200),)),
        "crnn_b8": lambda: (Crnn(), (r(8, 1, 32, 100),)),
        "seq2seq": lambda: (Seq2Seq(), (r(4, 30, 64),)),
        "wav2vec": lambda: (wav2vec(), (r(1, 1, 16000),)),
        "tasnet": lambda: (TasNet(), (r(1, 1, 8000),)),
        "wavenet": lambda: (WaveNet(), (r(1, 1, 4000),)),
        "vocoder": lambda: (Vocoder(), (r(1, 80, 60),)),
        "conformer": lambda: (Conformer(), (r(1, 200, 144),)),
        "whisper": lambda: (Whisper(), (r(1, 80, 600),)),
        "keyword": lambda: (keyword(), (r(1, 1, 49, 10),)),
        "m5_b4": lambda: (m5(), (r(4, 1, 8000),)),
        "tcn": lambda: (tcn(), (r(1, 40, 400),)),
        "spectrogram": lambda: (Spectrogram(), (r(1, 1, 16000),)),
    }
