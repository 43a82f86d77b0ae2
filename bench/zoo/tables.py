"""Tables, points, graphs, fields and searches."""
import torch
import torch.nn.functional as F
from torch import nn

from zoo.transformers import ids


def mlp(*widths, act=nn.ReLU):
    layers = []
    for i, o in zip(widths, widths[1:]):
        layers += [nn.Linear(i, o), act()]
    return nn.Sequential(*layers[:-1])


class Nerf(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("f", 2.0 ** torch.arange(10))
        self.a, self.b, self.c = mlp(63, 128, 128, 128, 128), mlp(191, 128, 128, 128), nn.Linear(128, 4)

    def forward(self, x):
        y = (x[:, None, :] * self.f[:, None]).flatten(1)
        e = torch.cat([x, y.sin(), y.cos()], 1)
        return torch.sigmoid(self.c(F.relu(self.b(torch.cat([F.relu(self.a(e)), e], 1)))))


class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in ((2, 128), (128, 128), (128, 128), (128, 3)))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.sin(30 * layer(x))
        return self.layers[-1](x)


class Tabular(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.ModuleList(nn.Embedding(1000, 16) for _ in range(10))
        self.net = nn.Sequential(nn.BatchNorm1d(180), nn.Linear(180, 200), nn.ReLU(), nn.BatchNorm1d(200), nn.Linear(200, 100), nn.ReLU(),
                                 nn.BatchNorm1d(100), nn.Linear(100, 1))

    def forward(self, codes, x):
        return torch.sigmoid(self.net(torch.cat([*(e(codes[:, k]) for k, e in enumerate(self.embed)), x], 1)))


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(5000, 32) for _ in range(8))
        self.low, self.high = mlp(13, 64, 32), mlp(32 + 36, 64, 1)
        self.register_buffer("pairs", torch.tril_indices(9, 9, -1))

    def forward(self, bags, x):
        y = F.relu(self.low(x))
        z = torch.stack([y, *(table(bags[:, k]).sum(1) for k, table in enumerate(self.tables))], 1)
        dots = torch.bmm(z, z.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return torch.sigmoid(self.high(torch.cat([y, dots], 1)))


class MessagePassing(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.edge, self.node = nn.ModuleList(mlp(2 * width, width, width) for _ in range(3)), nn.ModuleList(mlp(2 * width, width, width) for _ in range(3))

    def forward(self, x, ends):
        for edge, node in zip(self.edge, self.node):
            m = edge(torch.cat([x[ends[0]], x[ends[1]]], 1))
            total = torch.zeros_like(x).scatter_add(0, ends[1][:, None].expand(-1, x.shape[1]), m)
            x = x + node(torch.cat([x, total], 1))
        return x


class Gcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in ((128, 64), (64, 64), (64, 7)))

    def forward(self, x, adjacency):
        for layer in self.layers:
            x = F.relu(adjacency @ layer(x))
        return x.log_softmax(-1)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers, i = [], 3
        for o in (64, 64, 128, 1024):
            layers += [nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU()]
            i = o
        self.net, self.head = nn.Sequential(*layers), mlp(1024, 512, 256, 40)

    def forward(self, x):
        return self.head(self.net(x).max(-1)[0])


class Dgcnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Conv2d(2 * i, o, 1), nn.BatchNorm2d(o), nn.LeakyReLU(0.2)) for i, o in ((3, 32), (32, 64)))

    def forward(self, x):
        b, _, n = x.shape
        for layer in self.layers:
            square = (x * x).sum(1, keepdim=True)
            near = (2 * x.transpose(1, 2) @ x - square - square.transpose(1, 2)).topk(16)[1]
            flat = x.transpose(1, 2).reshape(b * n, -1)[(near + torch.arange(b)[:, None, None] * n).reshape(-1)].view(b, n, 16, -1)
            own = x.transpose(1, 2)[:, :, None].expand(-1, -1, 16, -1)
            x = layer(torch.cat([flat - own, own], 3).permute(0, 3, 1, 2)).max(-1)[0]
        return x


class Heat(nn.Module):
    """Sixteen steps of a stencil, by slices."""

    def forward(self, x):
        for _ in range(16):
            inner = x[:, 1:-1, 1:-1]
            y = inner + 0.1 * (x[:, 2:, 1:-1] + x[:, :-2, 1:-1] + x[:, 1:-1, 2:] + x[:, 1:-1, :-2] - 4 * inner)
            x = F.pad(y, (1, 1, 1, 1))
        return x


class Elementwise(nn.Module):
    def forward(self, x, y):
        a = torch.where(x > y, torch.exp(-x * x), torch.log1p(y.abs()))
        b = torch.atan(a) * torch.sqrt(y.abs() + 1) + F.softplus(x) - torch.erf(a)
        return (b - b.mean(-1, keepdim=True)) / (b.var(-1, keepdim=True) + 1e-5).sqrt(), b.cumsum(-1), b.max(0)[0]


class Retrieval(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("items", torch.randn(20000, 64))

    def forward(self, x):
        return torch.topk(F.normalize(x, dim=-1) @ F.normalize(self.items, dim=-1).t(), 50)


def models():
    r = torch.randn
    return {
        "mlp_b1": lambda: (mlp(784, 512, 256, 10), (r(1, 784),)),
        "mlp_b64": lambda: (mlp(784, 512, 256, 10), (r(64, 784),)),
        "mlp_wide_b1": lambda: (mlp(1024, 4096, 4096, 1024, act=nn.GELU), (r(1, 1024),)),
        "mlp_tiny_b256": lambda: (mlp(12, 32, 32, 1, act=nn.Tanh), (r(256, 12),)),
        "policy_b1": lambda: (mlp(24, 64, 64, 4, act=nn.Tanh), (r(1, 24),)),
        "nerf_10k": lambda: (Nerf(), (r(10000, 3),)),
        "siren_4k": lambda: (Siren(), (r(4096, 2),)),
        "tabular_b64": lambda: (Tabular(), (ids(64, 10, high=1000), r(64, 20))),
        "tabular_b1": lambda: (Tabular(), (ids(1, 10, high=1000), r(1, 20))),
        "dlrm_b128": lambda: (Dlrm(), (ids(128, 8, 10, high=5000), r(128, 13))),
        "messages": lambda: (MessagePassing(), (r(500, 64), ids(2, 4000, high=500))),
        "gcn_1000": lambda: (Gcn(), (r(1000, 128), torch.rand(1000, 1000))),
        "pointnet_b2": lambda: (PointNet(), (r(2, 3, 1024),)),
        "dgcnn": lambda: (Dgcnn(), (r(1, 3, 512),)),
        "heat": lambda: (Heat(), (r(1, 256, 256),)),
        "elementwise": lambda: (Elementwise(), (r(64, 4096), r(64, 4096))),
        "retrieval_b4": lambda: (Retrieval(), (r(4, 64),)),
    }
