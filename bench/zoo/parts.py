"""Small models around one thing that networks do: name -> (module, inputs)."""
import torch
import torch.nn.functional as F
from torch import nn


class Fn(nn.Module):
    def __init__(self, f, **parts):
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, nn.Module):
                self.add_module(name, part)
            else:
                self.register_buffer(name, part)
        self.f = f

    def forward(self, *x):
        return self.f(self, *x)


def models():
    r, S = torch.randn, nn.Sequential
    out = {}

    def add(name, f, *inputs, **parts):
        out[name] = lambda: (Fn(f, **parts) if not isinstance(f, nn.Module) else f, inputs)
    add("p_roll_windows", lambda s, x: torch.roll(x.view(1, 8, 7, 8, 7, 96), (3, 3), (2, 4)).permute(0, 1, 3, 2, 4, 5).reshape(64, 49, 96) * 2, r(1, 56, 56, 96))
    add("p_grid_sample", lambda s, x, t: F.grid_sample(x, t, align_corners=False), r(1, 16, 96, 96), torch.rand(1, 96, 96, 2) * 2 - 1)
    add("p_bilinear", lambda s, x: F.interpolate(x, scale_factor=4, mode="bilinear", align_corners=True), r(1, 32, 48, 48))
    add("p_bicubic", lambda s, x: F.interpolate(x, scale_factor=2, mode="bicubic"), r(1, 3, 96, 96))
    add("p_softmax_channels", lambda s, x: F.softmax(x, 1), r(1, 21, 200, 200))
    add("p_argmax_channels", lambda s, x: x.argmax(1), r(1, 21, 200, 200))
    add("p_unfold", lambda s, x: F.unfold(x, 3, padding=1), r(1, 16, 64, 64))
    add("p_big_depthwise", S(nn.Conv2d(48, 48, 31, padding=15, groups=48), nn.ReLU()), r(1, 48, 40, 40))
    add("p_row_column", S(nn.Conv2d(64, 64, (1, 9), padding=(0, 4)), nn.ReLU(), nn.Conv2d(64, 64, (9, 1), padding=(4, 0)), nn.ReLU()), r(1, 64, 40, 40))
    add("p_dilated", S(nn.Conv2d(64, 64, 3, padding=6, dilation=6), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=12, dilation=12)), r(1, 64, 48, 48))
    add("p_deconv_groups", S(nn.ConvTranspose2d(64, 64, 4, 2, 1, groups=64), nn.Conv2d(64, 32, 1), nn.ConvTranspose2d(32, 32, 3, 2, groups=4)), r(1, 64, 40, 40))
    add("p_deconv3d", S(nn.ConvTranspose3d(32, 16, 2, 2), nn.ReLU(), nn.ConvTranspose3d(16, 8, 4, 2, 1)), r(1, 32, 8, 16, 16))
    add("p_conv3d_depthwise", S(nn.Conv3d(32, 32, 3, padding=1, groups=32), nn.ReLU(), nn.Conv3d(32, 32, 1)), r(1, 32, 8, 28, 28))
    add("p_pool3d", S(nn.MaxPool3d(2), nn.AvgPool3d(3, 1, 1)), r(1, 16, 16, 64, 64))
    add("p_avgpool3", S(nn.AvgPool2d(3, 1, 1), nn.MaxPool2d(5, 1, 2)), r(1, 64, 56, 56))
    add("p_lrn", S(nn.LocalResponseNorm(5), nn.ReLU()), r(1, 64, 56, 56))
    add("p_layernorm_channels", lambda s, x: s.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), r(1, 64, 56, 56), norm=nn.LayerNorm(64))
    add("p_instance1d", S(nn.InstanceNorm1d(64), nn.ReLU()), r(4, 64, 1000))
    add("p_groupnorm", S(nn.GroupNorm(8, 64), nn.SiLU()), r(4, 64, 40, 40))
    add("p_batchnorm_first", S(nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1)), r(2, 16, 64, 64))
    add("p_mish", S(nn.Conv2d(32, 32, 3, padding=1), nn.Mish(), nn.Conv2d(32, 32, 3, padding=1), nn.Mish()), r(1, 32, 64, 64))
    add("p_elu_selu", S(nn.Linear(128, 256), nn.ELU(), nn.Linear(256, 256), nn.SELU(), nn.Linear(256, 64), nn.Softplus()), r(256, 128))
    add("p_gelu_tanh", lambda s, x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x ** 3))), r(128, 3072))
    add("p_glu", S(nn.Linear(128, 512), nn.GLU(-1), nn.LayerNorm(256)), r(200, 128))
    add("p_cumsum", lambda s, x: x.cumsum(1), r(8, 1000, 32))
    add("p_cumsum_last", lambda s, x: x.cumsum(-1), r(256, 1000))
    add("p_sort", lambda s, x: x.topk(1000)[0], r(16, 1000))
    add("p_topk1", lambda s, x: x.topk(1)[1], r(64, 8000))
    add("p_topk5_axis1", lambda s, x: x.topk(5, 1)[0], r(4, 200, 64))
    add("p_nonzero", lambda s, x: x[x > 0.5], r(200, 200))
    add("p_where_mask", lambda s, x, m: x.masked_fill(m, -1e9).softmax(-1), r(4, 8, 64, 64), torch.rand(4, 1, 64, 64) > 0.8)
    add("p_onehot", lambda s, x: F.one_hot(x, 512).float().sum(1), torch.randint(0, 512, (16, 100)))
    add("p_gather_rows", lambda s, x, i: x[i].sum(1), r(5000, 64), torch.randint(0, 5000, (200, 20)))
    add("p_gather_elements", lambda s, x, i: torch.gather(x, 1, i), r(64, 1000), torch.randint(0, 1000, (64, 500)))
    add("p_gather_axis2", lambda s, x, i: torch.gather(x, 1, i[:, :, None].expand(-1, -1, 64)), r(8, 196, 64), torch.randint(0, 196, (8, 49)))
    add("p_index_put", lambda s, x, i, v: x.clone().index_put((i,), v), r(1000, 64), torch.randperm(1000)[:300], r(300, 64))
    add("p_scatter_add_edges", lambda s, x, i: torch.zeros(500, 1).scatter_add(0, i, x), r(5000, 1), torch.randint(0, 500, (5000, 1)))
    add("p_einsum", lambda s, a, b: torch.einsum("bhid,bhjd->bhij", a, b).amax(-1), r(2, 4, 64, 32), r(2, 4, 64, 32))
    add("p_einsum_odd", lambda s, a, b: torch.einsum("bijk,bkl->bjil", a, b), r(4, 20, 30, 16), r(4, 16, 24))
    add("p_bmm_thin", lambda s, a, b: torch.bmm(a, b), r(256, 1, 64), r(256, 64, 50))
    add("p_bmm_small", lambda s, a, b: torch.bmm(a, b), r(2000, 4, 4), r(2000, 4, 4))
    add("p_outer", lambda s, a, b: (a[:, :, None] * b[:, None, :]).flatten(1) @ s.w, r(64, 24), r(64, 24), w=r(576, 32))
    add("p_matvec", lambda s, a, x: a @ x, r(2000, 1000), r(1000))
    add("p_matmul_tall", lambda s, a, b: a.t() @ b, r(5000, 32), r(5000, 32))
    add("p_cdist", lambda s, a, b: ((a[:, None] - b[None]) ** 2).sum(-1).sqrt(), r(200, 16), r(300, 16))
    add("p_std", lambda s, x: torch.cat([x.mean(-1), x.std(-1), x.amax(-1), x.amin(-1)], -1), r(64, 80, 200))
    add("p_reduce_middle", lambda s, x: x.sum(1) + x.amax(1) + x.prod(1), r(16, 64, 256))
    add("p_reduce_first", lambda s, x: x.logsumexp(0), r(256, 1000))
    add("p_norm", lambda s, x: x / x.norm(dim=-1, keepdim=True), r(2000, 128))
    add("p_transpose_many", lambda s, x: x.permute(3, 1, 0, 2).contiguous() + 1, r(16, 24, 32, 40))
    add("p_concat_slices", lambda s, x: torch.cat([x[:, 1:], x[:, :1]], 1) - torch.cat([x[:, :, -1:], x[:, :, :-1]], 2), r(8, 64, 128))
    add("p_split_many", lambda s, x: torch.cat([torch.sigmoid(y) if k % 2 else torch.tanh(y) for k, y in enumerate(x.split(16, -1))], -1), r(100, 256))
    add("p_pixel_unshuffle", S(nn.PixelUnshuffle(2), nn.Conv2d(12, 16, 3, padding=1), nn.PixelShuffle(2)), r(1, 3, 128, 128))
    add("p_channel_shuffle", lambda s, x: x.view(1, 4, 16, 40, 40).transpose(1, 2).reshape(1, 64, 40, 40) + x, r(1, 64, 40, 40))
    add("p_squeeze_excite", lambda s, x: x * torch.sigmoid(s.b(F.relu(s.a(x.mean((2, 3), keepdim=True))))), r(4, 96, 28, 28), a=nn.Conv2d(96, 24, 1), b=nn.Conv2d(24, 96, 1))
    add("p_conv_few_out", S(nn.Conv2d(64, 1, 3, padding=1), nn.Sigmoid()), r(1, 64, 128, 128))
    add("p_conv_few_in", S(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3)), r(8, 1, 64, 64))
    add("p_conv_12", S(nn.Conv2d(12, 12, 3, padding=1), nn.Sigmoid(), nn.Conv2d(12, 20, 3, 2, 1), nn.Tanh()), r(2, 12, 96, 96))
    add("p_conv_stride4", S(nn.Conv2d(3, 96, 4, 4), nn.GELU(), nn.Conv2d(96, 192, 2, 2)), r(1, 3, 224, 224))
    add("p_conv1d_few", S(nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv1d(16, 16, 5, padding=2), nn.ReLU(), nn.Conv1d(16, 1, 5, padding=2)), r(4, 1, 4000))
    add("p_conv1d_groups", S(nn.Conv1d(64, 64, 9, padding=4, groups=64), nn.Conv1d(64, 128, 1, groups=4), nn.ReLU()), r(2, 64, 1000))
    add("p_causal_wave", S(nn.ConstantPad1d((8, 0), 0.0), nn.Conv1d(24, 48, 3, dilation=4), nn.GLU(1)), r(1, 24, 8000))
    add("p_reflect_pad", S(nn.ReflectionPad2d(3), nn.Conv2d(16, 16, 7), nn.ReplicationPad2d(1), nn.AvgPool2d(3, 1)), r(1, 16, 96, 96))
    add("p_sincos", lambda s, x: torch.cat([torch.sin(x * s.freq), torch.cos(x * s.freq)], -1), torch.rand(1000, 1), freq=torch.logspace(0, 4, 64)[None])
    add("p_pow_log", lambda s, x: (torch.log(x.abs() + 1e-6) * 10).pow(2) + x.abs().pow(0.45) + torch.exp(-x), r(200, 1000))
    add("p_int_math", lambda s, x: (x * 31 + 7) % 1000 + torch.div(x, 3, rounding_mode="floor"), torch.randint(0, 100000, (100, 1000)))
    add("p_compare", lambda s, x, y: ((x > y) & (x < 1.0) | (y == 0)).float().mean(-1), r(200, 1000), r(200, 1000))
    add("p_double", S(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64)).double(), r(100, 64).double())
    add("p_half_cast", lambda s, x: (x.half() * 2).float() + 1, r(200, 1000))
    add("p_round_clip", lambda s, x: (x * 12.7).round().clamp(-128, 127) / 12.7, r(200, 1000))
    add("p_gru_cell_loop", lambda s, x: s.loop(x), r(8, 20, 32), loop=Loop())
    add("p_linear_3d", S(nn.Linear(40, 80), nn.ReLU(), nn.Linear(80, 40)), r(16, 50, 40))
    add("p_linear_b2", S(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)), r(2, 512))
    add("p_linear_b5_wide", S(nn.Linear(256, 10000)), r(5, 256))
    add("p_bn1d_mlp", S(nn.Linear(64, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 64), nn.ReLU(), nn.BatchNorm1d(64)), r(128, 64))
    add("p_prelu", S(nn.Conv2d(16, 16, 3, padding=1), nn.PReLU(16), nn.Conv2d(16, 16, 3, padding=1), nn.PReLU()), r(1, 16, 96, 96))
    add("p_maxout", lambda s, x: s.l(x).view(-1, 64, 4).max(-1)[0], r(256, 64), l=nn.Linear(64, 256))
    add("p_avgpool_global1d", S(nn.Conv1d(16, 32, 3), nn.AdaptiveAvgPool1d(1)), r(16, 16, 500))
    add("p_adaptive_pool", S(nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(64 * 49, 100)), r(1, 64, 28, 28))
    return out


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(32, 64)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 64)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return h
