#!/usr/bin/python3
"""export_models.py [NAME...]

Exports the architectures of the benchmark set with seeded random weights, the way users export theirs, into
${PLIMSOLL_CACHE:-~/.cache/plimsoll}/models. Models that are there already are left alone.
Needs Debian's python3-torch, and python3-torchvision for all but bert_L12.
"""
import argparse
import math
import sys
import warnings

from cache import chosen, model_path, print_list, whole_file

VISION = ["resnet50", "mobilenet_v3_large", "efficientnet_b0", "densenet121", "convnext_tiny", "vit_b_16"]
# Fresh weights make these three answer (almost) zero: vit's head starts at zero, and activations fade where nothing
# normalizes them. That does for speed but proves nothing about answers: their twins answer well above the tolerance.
CALIBRATED = {f"{name}_calibrated": name for name in ["mobilenet_v3_large", "efficientnet_b0", "vit_b_16"]}
NAMES = [*VISION, "bert_L12", *CALIBRATED]
OPSET = 15


def bert(layers, vocabulary=30522, width=768, heads=12, positions=512):
    """A BERT encoder. The order in which modules are created decides the random weights: keep it."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.q = nn.Linear(width, width)
            self.k = nn.Linear(width, width)
            self.v = nn.Linear(width, width)
            self.o = nn.Linear(width, width)
            self.up = nn.Linear(width, 4 * width)
            self.down = nn.Linear(4 * width, width)
            self.norm1 = nn.LayerNorm(width)
            self.norm2 = nn.LayerNorm(width)

        def forward(self, x, mask):
            # Every size is read from the tensor, as users write it: the export then has the shape arithmetic
            # (Shape, Gather, Div, Concat) that an engine must see through.
            batch, seq, channels = x.shape

            def split_heads(y):
                return y.view(batch, seq, heads, channels // heads).transpose(1, 2)

            scores = split_heads(self.q(x)) @ split_heads(self.k(x)).transpose(-1, -2)
            scores = scores / math.sqrt(channels // heads) + mask
            context = scores.softmax(-1) @ split_heads(self.v(x))
            context = context.transpose(1, 2).reshape(batch, seq, channels)
            x = self.norm1(x + self.o(context))
            return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(vocabulary, width)
            self.positions = nn.Embedding(positions, width)
            self.norm = nn.LayerNorm(width)
            self.pool = nn.Linear(width, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))

        def forward(self, ids, mask):
            x = self.norm(self.words(ids) + self.positions(torch.arange(ids.shape[1]))[None])
            additive_mask = (1.0 - mask[:, None, None, :].float()) * -10000.0
            for block in self.blocks:
                x = block(x, additive_mask)
            return x, torch.tanh(self.pool(x[:, 0]))

    return Bert()


def calibrate(model):
    """Sets the running statistics of every BatchNorm from one batch, and draws a head that was zero."""
    import torch

    norms = [module for module in model.eval().modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.train()
        norm.momentum = None  # the plain average: one batch counts fully
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2 and not parameter.any():
                torch.nn.init.normal_(parameter, std=0.02)
        if norms:
            model(torch.randn(8, 3, 224, 224))


def export(name, path):
    import torch

    torch.manual_seed(0)
    if name == "bert_L12":
        model = bert(layers=12)
        ids = torch.ones(1, 128, dtype=torch.long)
        inputs = (ids, ids)
        names = {"input_names": ["input_ids", "attention_mask"], "output_names": ["last_hidden", "pooled"]}
        tokens = {0: "batch", 1: "seq"}
        axes = {"input_ids": tokens, "attention_mask": tokens, "last_hidden": tokens, "pooled": {0: "batch"}}
    else:
        import torchvision

        model = getattr(torchvision.models, CALIBRATED.get(name, name))(weights=None)
        if name in CALIBRATED:
            calibrate(model)
        inputs = torch.randn(1, 3, 224, 224)
        names = {"input_names": ["input"], "output_names": ["logits"]}
        axes = {"input": {0: "batch"}, "logits": {0: "batch"}}
    torch.onnx.export(model.eval(), inputs, str(path), **names, dynamic_axes=axes, opset_version=OPSET)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--list", action="store_true", help="only print the names, with those that are missing marked")
    options = parser.parse_args()
    names = chosen(options.names, NAMES)
    if options.list:
        return print_list(names)
    missing = [name for name in names if not model_path(name).exists()]
    if not missing:
        return 0
    try:
        import torch  # noqa: F401
        if missing != ["bert_L12"]:
            import torchvision  # noqa: F401
    except ImportError as error:
        print(f"error: {error}; install Debian's python3-torch and python3-torchvision and use /usr/bin/python3",
              file=sys.stderr)
        return 1
    warnings.filterwarnings("ignore")
    for name in missing:
        with whole_file(model_path(name)) as temporary:
            export(name, temporary)
        print(f"exported {name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
