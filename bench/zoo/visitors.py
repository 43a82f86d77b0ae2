"""More networks that came later: pyramids, pooled token mixers, regions, latents, disentangled attention, forecasts."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from zoo.images import conv
from zoo.transformers import ids


class PoolFormer(nn.Module):
    def __init__(self, width=64, layers=4):
        super().__init__()
        self.stem, self.pool = nn.Conv2d(3, width, 7, 4, 2), nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.layers = nn.ModuleList(nn.ModuleList([nn.GroupNorm(1, width), nn.GroupNorm(1, width), nn.Conv2d(width, 4 * width, 1),
                                                   nn.Conv2d(4 * width, width, 1)]) for _ in range(layers))

    def forward(self, x):
        x = self.stem(x)
        for n1, n2, up, down in self.layers:
            y = n1(x)
            x = x + self.pool(y) - y
            x = x + down(F.gelu(up(n2(x))))
        return x.mean((2, 3))


class BiFpn(nn.Module):
    """Weighted sums of maps of four sizes, up by the nearest, down by maxima."""

    def __init__(self, width=64):
        super().__init__()
        self.down = nn.ModuleList(conv(width, width, 3, groups=width) for _ in range(3))
        self.up = nn.ModuleList(conv(width, width, 3, groups=width) for _ in range(3))
        self.point = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(6))
        self.weights = nn.Parameter(torch.rand(6, 3))

    def forward(self, *maps):
        w = F.relu(self.weights)
        w = w / (w.sum(1, keepdim=True) + 1e-4)
        top = [maps[-1]]
        for k in range(3):
            up = F.interpolate(top[-1], scale_factor=2, mode="nearest")
            y = w[k, 0] * maps[2 - k] + w[k, 1] * up
            top.append(self.point[k](self.up[k](F.silu(y))))
        top = top[::-1]
        out = [top[0]]
        for k in range(3):
            y = w[3 + k, 0] * maps[k + 1] + w[3 + k, 1] * top[k + 1] + w[3 + k, 2] * F.max_pool2d(out[-1], 3, 2, 1)
            out.append(self.point[3 + k](self.down[k](F.silu(y))))
        return tuple(out)


class Regions(nn.Module):
    """Boxes of a map, pooled, through two linear layers."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(conv(3, 32, 3, 4), conv(32, 64, 3, 2))
        self.head = nn.Sequential(nn.Linear(64 * 49, 256), nn.ReLU(), nn.Linear(256, 84))

    def forward(self, x, boxes):
        return self.head(torchvision.ops.roi_align(self.body(x), [boxes], 7, 1 / 8, 2).flatten(1))


class Perceiver(nn.Module):
    def __init__(self, width=128, latents=96):
        super().__init__()
        self.latents, self.embed = nn.Parameter(torch.randn(1, latents, width)), nn.Linear(40, width)
        self.cross = nn.MultiheadAttention(width, 4, batch_first=True)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 2 * width, 0.0, "gelu", batch_first=True) for _ in range(3))

    def forward(self, x):
        x, y = self.embed(x), self.latents.expand(x.shape[0], -1, -1)
        y = y + self.cross(y, x, x)[0]
        for layer in self.layers:
            y = layer(y)
        return y.mean(1)


class Deberta(nn.Module):
    """Scores of contents and of distances, these gathered."""

    def __init__(self, width=192, heads=6, length=96):
        super().__init__()
        self.heads = heads
        self.qkv, self.out, self.places = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Parameter(torch.randn(64, width))
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        at = torch.arange(length)
        self.register_buffer("distance", (at[:, None] - at[None]).clamp(-32, 31) + 32)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        places = self.qkv.weight[c:2 * c] @ self.places.t()
        places = places.view(self.heads, -1, 64)
        near = torch.gather(q @ places, 3, self.distance.expand(b, self.heads, -1, -1))
        a = (q @ k.transpose(2, 3) + near) / (3 * q.shape[-1]) ** 0.5
        a = a.masked_fill(mask[:, None, None] == 0, float("-inf")).softmax(-1)
        x = self.norm(x + self.out((a @ v).transpose(1, 2).reshape(b, t, c)))
        return self.norm(x + self.down(F.gelu(self.up(x))))


class ConvLstm(nn.Module):
    def __init__(self, width=24, steps=6):
        super().__init__()
        self.width, self.gates, self.head = width, nn.Conv2d(3 + width, 4 * width, 3, padding=1), nn.Conv2d(width, 1, 1)

    def forward(self, x):
        b, t, _, h, w = x.shape
        state = cell = x.new_zeros(b, self.width, h, w)
        for k in range(t):
            i, f, o, g = self.gates(torch.cat([x[:, k], state], 1)).chunk(4, 1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            state = torch.sigmoid(o) * torch.tanh(cell)
        return self.head(state)


class NBeats(nn.Module):
    def __init__(self, back=96, ahead=24, blocks=6):
        super().__init__()
        self.ahead = ahead
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(back, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, back + ahead))
                                    for _ in range(blocks))

    def forward(self, x):
        y = 0
        for block in self.blocks:
            out = block(x)
            x, y = x - out[:, self.ahead:], y + out[:, :self.ahead]
        return y


class TextCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(6000, 128)
        self.nets, self.head = nn.ModuleList(nn.Conv1d(128, 100, k) for k in (3, 4, 5)), nn.Linear(300, 8)

    def forward(self, x):
        y = self.words(x).transpose(1, 2)
        return self.head(torch.cat([F.relu(net(y)).max(-1)[0] for net in self.nets], 1))


class Ghost(nn.Module):
    def __init__(self):
        super().__init__()
        layers, i = [], 16
        for o, s in ((24, 2), (40, 2), (80, 2), (112, 1)):
            layers.append(nn.ModuleList([conv(i, 2 * i, 1), conv(2 * i, 2 * i, 3, groups=2 * i), nn.Conv2d(4 * i, 4 * i, 3, s, 1, groups=4 * i),
                                         conv(4 * i, o // 2, 1, act=None), conv(o // 2, o // 2, 3, act=None, groups=o // 2)]))
            i = o
        self.stem, self.layers = conv(3, 16, 3, 2), nn.ModuleList(layers)

    def forward(self, x):
        x = self.stem(x)
        for a, b, c, d, e in self.layers:
            y = a(x)
            y = c(torch.cat([y, b(y)], 1))
            y = d(y)
            x = torch.cat([y, e(y)], 1)
        return x


class Video(nn.Module):
    """A block of a diffusion over frames: GroupNorm in three dimensions, space and time apart."""

    def __init__(self, width=64):
        super().__init__()
        self.norm, self.space = nn.GroupNorm(8, width), nn.Conv3d(width, width, (1, 3, 3), padding=(0, 1, 1))
        self.time, self.attention = nn.Conv3d(width, width, (3, 1, 1), padding=(1, 0, 0)), nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, x):
        b, c, t, h, w = x.shape
        x = x + self.time(F.silu(self.space(F.silu(self.norm(x)))))
        y = x.permute(0, 3, 4, 2, 1).reshape(b * h * w, t, c)
        y = y + self.attention(y, y, y)[0]
        return y.view(b, h, w, t, c).permute(0, 4, 3, 1, 2)


class TwoStage(nn.Module):
    """The best 300 of 6,000 boxes of each of 4 images, decoded and cut to the image."""

    def forward(self, scores, deltas, anchors):
        best, at = scores.topk(300, 1)
        a = torch.gather(anchors.expand(scores.shape[0], -1, -1), 1, at[..., None].expand(-1, -1, 4))
        d = torch.gather(deltas, 1, at[..., None].expand(-1, -1, 4))
        centre, size = a[..., :2] + d[..., :2] * a[..., 2:], a[..., 2:] * torch.exp(d[..., 2:].clamp(max=4))
        boxes = torch.cat([centre - size / 2, centre + size / 2], -1).clamp(0, 640)
        wide = (boxes[..., 2] - boxes[..., 0] > 4) & (boxes[..., 3] - boxes[..., 1] > 4)
        return boxes, torch.where(wide, best.sigmoid(), torch.zeros_like(best))


class Sage(nn.Module):
    """Means of 12 neighbours, gathered, three times."""

    def __init__(self, width=96):
        super().__init__()
        self.own, self.others = (nn.ModuleList(nn.Linear(width, width) for _ in range(3)) for _ in range(2))

    def forward(self, x, near):
        for own, others in zip(self.own, self.others):
            x = F.normalize(F.relu(own(x) + others(x[near].mean(1))), dim=-1)
        return x


def models():
    r = torch.randn
    return {
        "poolformer_b2": lambda: (PoolFormer(), (r(2, 3, 128, 128),)),
        "bifpn": lambda: (BiFpn(), tuple(r(1, 64, s, s) for s in (64, 32, 16, 8))),
        "regions_100": lambda: (Regions(), (r(1, 3, 256, 256), torch.cat([torch.rand(100, 2) * 128, 128 + torch.rand(100, 2) * 128], 1))),
        "perceiver_b4": lambda: (Perceiver(), (r(4, 400, 40),)),
        "deberta_b4": lambda: (Deberta(), (r(4, 96, 192), (torch.arange(96)[None] < torch.tensor([[96], [80], [50], [33]])).long())),
        "conv_lstm_b2": lambda: (ConvLstm(), (r(2, 6, 3, 40, 40),)),
        "nbeats_b32": lambda: (NBeats(), (r(32, 96),)),
        "text_cnn_b8": lambda: (TextCnn(), (ids(8, 60, high=6000),)),
        "ghost_b4": lambda: (Ghost(), (r(4, 3, 128, 128),)),
        "video_block": lambda: (Video(), (r(1, 64, 8, 24, 24),)),
        "two_stage_b4": lambda: (TwoStage(), (r(4, 6000), r(4, 6000, 4) / 4, torch.rand(1, 6000, 4) * 300 + 20)),
        "sage_2000": lambda: (Sage(), (r(2000, 96), ids(2000, 12, high=2000))),
    }
