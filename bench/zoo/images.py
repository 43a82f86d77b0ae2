"""Networks over images and volumes as people write them."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn


def conv(i, o, k=3, stride=1, act=nn.ReLU, norm=nn.BatchNorm2d, **more):
    layers = [nn.Conv2d(i, o, k, stride, k // 2, bias=norm is None, **more)]
    layers += [norm(o)] if norm else []
    return nn.Sequential(*layers, *([act()] if act else []))


class UNet(nn.Module):
    def __init__(self, channels, base, depth, dims=2, classes=2, transposed=True):
        super().__init__()
        c, t, n = (nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d) if dims == 2 else (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d)
        self.pool = nn.MaxPool2d(2) if dims == 2 else nn.MaxPool3d(2)

        def block(i, o):
            return nn.Sequential(c(i, o, 3, padding=1), n(o), nn.ReLU(), c(o, o, 3, padding=1), n(o), nn.ReLU())
        widths = [base << k for k in range(depth)]
        self.down = nn.ModuleList(block(i, o) for i, o in zip([channels, *widths], widths))
        self.up = nn.ModuleList(t(2 * w, w, 2, 2) if transposed else nn.Sequential(nn.Upsample(scale_factor=2), c(2 * w, w, 3, padding=1))
                                for w in widths[-2::-1])
        self.join = nn.ModuleList(block(2 * w, w) for w in widths[-2::-1])
        self.head = c(base, classes, 1)

    def forward(self, x):
        kept = []
        for k, block in enumerate(self.down):
            x = block(x if k == 0 else self.pool(x))
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


class Residual(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return x + self.body(x)


def espcn():
    return nn.Sequential(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                         nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))


def edsr(width=64, blocks=8):
    body = [Residual(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)))
            for _ in range(blocks)]
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), *body, nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2),
                         nn.Conv2d(width, 3, 3, padding=1))


def fsrcnn(d=56, s=12, m=4):
    layers = [nn.Conv2d(1, d, 5, padding=2), nn.PReLU(d), nn.Conv2d(d, s, 1), nn.PReLU(s)]
    for _ in range(m):
        layers += [nn.Conv2d(s, s, 3, padding=1), nn.PReLU(s)]
    return nn.Sequential(*layers, nn.Conv2d(s, d, 1), nn.PReLU(d), nn.ConvTranspose2d(d, 1, 9, 3, 4, output_padding=2))


def style_transfer():
    def block(i, o, k, stride=1, relu=True):
        return nn.Sequential(nn.ReflectionPad2d(k // 2), nn.Conv2d(i, o, k, stride), nn.InstanceNorm2d(o, affine=True),
                             *([nn.ReLU()] if relu else []))
    residual = [Residual(nn.Sequential(block(128, 128, 3), block(128, 128, 3, relu=False))) for _ in range(5)]
    return nn.Sequential(block(3, 32, 9), block(32, 64, 3, 2), block(64, 128, 3, 2), *residual,
                         nn.Upsample(scale_factor=2), block(128, 64, 3), nn.Upsample(scale_factor=2), block(64, 32, 3),
                         nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9))


def dncnn(width=64, depth=10):
    layers = [nn.Conv2d(1, width, 3, padding=1), nn.ReLU()]
    for _ in range(depth):
        layers += [conv(width, width)]
    return Residual(nn.Sequential(*layers, nn.Conv2d(width, 1, 3, padding=1)))


def autoencoder():
    down = [nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 128, 4, 2, 1), nn.ReLU()]
    up = [nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(),
          nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Sigmoid()]
    return nn.Sequential(*down, *up)


def dcgan(width=64):
    layers = []
    for i, o, s, p in [(100, 8 * width, 1, 0), (8 * width, 4 * width, 2, 1), (4 * width, 2 * width, 2, 1), (2 * width, width, 2, 1)]:
        layers += [nn.ConvTranspose2d(i, o, 4, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())


def darknet():
    layers, i = [conv(3, 16, act=lambda: nn.LeakyReLU(0.1))], 16
    for o in (32, 64, 128, 256, 512):
        layers += [nn.MaxPool2d(2), conv(i, o, act=lambda: nn.LeakyReLU(0.1))]
        i = o
    return nn.Sequential(*layers, conv(512, 256, 1, act=lambda: nn.LeakyReLU(0.1)), conv(256, 512, act=lambda: nn.LeakyReLU(0.1)),
                         nn.Conv2d(512, 255, 1))


class Focus(nn.Module):
    def forward(self, x):
        return torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)


def yolo_like():
    def csp(w):
        return Residual(nn.Sequential(conv(w, w // 2, 1, act=nn.SiLU), conv(w // 2, w, 3, act=nn.SiLU)))
    return nn.Sequential(Focus(), conv(12, 32, act=nn.SiLU), conv(32, 64, 3, 2, act=nn.SiLU), csp(64), conv(64, 128, 3, 2, act=nn.SiLU),
                         csp(128), csp(128), conv(128, 256, 3, 2, act=nn.SiLU), csp(256), csp(256), nn.Conv2d(256, 85 * 3, 1))


def pose():
    net = torchvision.models.resnet18(weights=None)
    deconvolutions, i = [], 512
    for _ in range(3):
        deconvolutions += [nn.ConvTranspose2d(i, 256, 4, 2, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU()]
        i = 256
    return nn.Sequential(*list(net.children())[:-2], *deconvolutions, nn.Conv2d(256, 17, 1))


class DiffusionBlock(nn.Module):
    def __init__(self, i, o, attention):
        super().__init__()
        self.one = nn.Sequential(nn.GroupNorm(32, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1))
        self.two = nn.Sequential(nn.GroupNorm(32, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1))
        self.time = nn.Linear(256, o)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
        self.norm, self.qkv, self.out = (nn.GroupNorm(32, o), nn.Conv2d(o, 3 * o, 1), nn.Conv2d(o, o, 1)) if attention else (None,) * 3

    def forward(self, x, t):
        x = self.skip(x) + self.two(self.one(x) + self.time(F.silu(t))[:, :, None, None])
        if self.norm is not None:
            b, c, h, w = x.shape
            q, k, v = self.qkv(self.norm(x)).reshape(b, 3, 4, c // 4, h * w).unbind(1)
            a = torch.softmax(q.transpose(-1, -2) @ k * (c // 4) ** -0.5, -1)
            x = x + self.out((v @ a.transpose(-1, -2)).reshape(b, c, h, w))
        return x


class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(4, 128, 3, padding=1), nn.Conv2d(128, 4, 3, padding=1)
        self.down = nn.ModuleList([DiffusionBlock(128, 128, False), DiffusionBlock(128, 256, True), DiffusionBlock(256, 256, True)])
        self.shrink = nn.ModuleList([nn.Conv2d(w, w, 3, 2, 1) for w in (128, 256)])
        self.up = nn.ModuleList([DiffusionBlock(512, 256, True), DiffusionBlock(384, 128, False)])

    def forward(self, x, t):
        x = self.first(x)
        a = self.down[0](x, t)
        b = self.down[1](self.shrink[0](a), t)
        c = self.down[2](self.shrink[1](b), t)
        d = self.up[0](torch.cat([F.interpolate(c, scale_factor=2.0), b], 1), t)
        return self.last(self.up[1](torch.cat([F.interpolate(d, scale_factor=2.0), a], 1), t))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
                         nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))


def cifar_resnet():
    layers, i = [conv(3, 16)], 16
    for w, s in ((16, 1), (32, 2), (64, 2)):
        layers += [conv(i, w, 3, s), Residual(nn.Sequential(conv(w, w), conv(w, w, act=None))), nn.ReLU(),
                   Residual(nn.Sequential(conv(w, w), conv(w, w, act=None))), nn.ReLU()]
        i = w
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def c3d():
    layers, i = [], 3
    for w in (32, 64, 128):
        layers += [nn.Conv3d(i, w, 3, padding=1), nn.ReLU(), nn.MaxPool3d((1 if i == 3 else 2, 2, 2))]
        i = w
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(128, 101))


class Mixer(nn.Module):
    def __init__(self, tokens=196, width=384, layers=6):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.layers = nn.ModuleList(nn.ModuleList([
            nn.LayerNorm(width), nn.Sequential(nn.Linear(tokens, 196), nn.GELU(), nn.Linear(196, tokens)),
            nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))])
            for _ in range(layers))

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for n1, mix, n2, mlp in self.layers:
            x = x + mix(n1(x).transpose(1, 2)).transpose(1, 2)
            x = x + mlp(n2(x))
        return x.mean(1)


def models():
    def one(f, *shape):
        return lambda: (f(), (torch.randn(*shape),))

    return {
        "unet_256": one(lambda: UNet(3, 32, 5), 1, 3, 256, 256), "unet_up_b2_128": one(lambda: UNet(1, 24, 4, transposed=False), 2, 1, 128, 128),
        "unet3d_32": one(lambda: UNet(1, 16, 3, 3), 1, 1, 32, 64, 64), "espcn_224": one(espcn, 1, 1, 224, 224),
        "edsr_96": one(edsr, 1, 3, 96, 96), "fsrcnn_180": one(fsrcnn, 1, 1, 180, 240), "style_224": one(style_transfer, 1, 3, 224, 224),
        "dncnn_160": one(dncnn, 1, 1, 160, 160), "autoencoder_b16": one(autoencoder, 16, 3, 64, 64), "dcgan_b8": one(dcgan, 8, 100, 1, 1),
        "darknet_416": one(darknet, 1, 3, 416, 416), "yolo_like_320": one(yolo_like, 1, 3, 320, 320), "pose_256": one(pose, 1, 3, 256, 192),
        "diffusion_32": lambda: (Diffusion(), (torch.randn(1, 4, 32, 32), torch.randn(1, 256))),
        "lenet_b64": one(lenet, 64, 1, 28, 28), "lenet_b1": one(lenet, 1, 1, 28, 28), "cifar_resnet_b32": one(cifar_resnet, 32, 3, 32, 32),
        "c3d": one(c3d, 1, 3, 16, 112, 112), "mixer": one(Mixer, 1, 3, 224, 224),
        "vit_small_64": one(lambda: torchvision.models.VisionTransformer(64, 8, 6, 6, 384, 1536), 1, 3, 64, 64),
    }
