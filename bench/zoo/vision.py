"""What torchvision has, at several sizes."""
import torch
import torchvision
from torch import nn

TORCHVISION = {  # name: [(batch, size)]
    "alexnet": [(1, 224)], "vgg11": [(1, 224)], "vgg13_bn": [(1, 224)], "squeezenet1_0": [(1, 224)], "squeezenet1_1": [(1, 160), (4, 224)],
    "shufflenet_v2_x0_5": [(1, 224)], "shufflenet_v2_x1_0": [(1, 224), (4, 224)], "googlenet": [(1, 224)], "inception_v3": [(1, 299)],
    "regnet_x_400mf": [(1, 224)], "regnet_x_800mf": [(1, 224), (4, 224)], "regnet_x_1_6gf": [(1, 224)], "regnet_y_400mf": [(1, 224)],
    "regnet_y_800mf": [(1, 160)], "regnet_y_1_6gf": [(1, 224)], "mnasnet0_5": [(1, 224)], "mnasnet1_0": [(1, 224), (4, 224)],
    "mobilenet_v2": [(1, 96), (1, 224), (4, 160)], "mobilenet_v3_small": [(1, 224)], "efficientnet_b1": [(1, 240)],
    "efficientnet_v2_s": [(1, 224)], "resnext50_32x4d": [(1, 224)], "wide_resnet50_2": [(1, 224)], "resnet18": [(1, 224), (4, 112)],
    "resnet34": [(1, 320)], "densenet169": [(1, 160)], "convnext_small": [(1, 224)], "swin_t": [(1, 224)],
    "maxvit_t": [(1, 224)], "vit_b_32": [(1, 224), (4, 224)],
}
OWN_SETTINGS = {"googlenet": {"aux_logits": False, "init_weights": False}, "inception_v3": {"aux_logits": False, "init_weights": False}}
SEGMENTATION = {"deeplabv3_mobilenet_v3_large": 256, "lraspp_mobilenet_v3_large": 320, "fcn_resnet50": 192}
VIDEO = {"r3d_18": (1, 3, 8, 112, 112), "r2plus1d_18": (1, 3, 8, 112, 112), "mc3_18": (1, 3, 8, 112, 112), "s3d": (1, 3, 16, 224, 224)}


class Head(nn.Module):
    """Of a segmentation network, its first output."""

    def __init__(self, name):
        super().__init__()
        self.net = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None)

    def forward(self, x):
        return self.net(x)["out"]


def models():
    out = {}
    for name, cases in TORCHVISION.items():
        for b, s in cases:
            out[f"{name}_b{b}_{s}"] = lambda name=name, b=b, s=s: (
                getattr(torchvision.models, name)(weights=None, **OWN_SETTINGS.get(name, {})), (torch.randn(b, 3, s, s),))
    for name, s in SEGMENTATION.items():
        out[f"{name}_{s}"] = lambda name=name, s=s: (Head(name), (torch.randn(1, 3, s, s),))
    for name, shape in VIDEO.items():
        out[name] = lambda name=name, shape=shape: (getattr(torchvision.models.video, name)(weights=None), (torch.randn(*shape),))
    return out
