"""One node of each operator that takes several float types, large enough to be timed: what bench/element_types.py runs.

A case is a node with its inputs. T is the element type under test; a step is the unit of work that a straightforward
vectorized loop does at a known pace (LOOP_NS): one element moved or added, one multiply-add, one function like exp.
"""
import math

import numpy as np

MOVE, INDEX, SIMPLE, FUNCTION, MULTIPLY, SORT, RANDOM = "move", "index", "simple", "function", "multiply", "sort", "random"
# Nanoseconds for a step of f32 by a loop that a compiler vectorizes with 8 lanes, from memory near by; f64 takes twice that.
# Places from data, comparisons of a sort and random numbers are no work for vectors: these are a scalar loop's.
LOOP_NS = {MOVE: 0.25, INDEX: 1.0, SIMPLE: 0.25, FUNCTION: 1.0, MULTIPLY: 0.1, SORT: 2.0, RANDOM: 3.0}


class Input:
    """An input of the model (or an initializer) of type T, or of an array's own type."""

    def __init__(self, shape=None, low=-1.0, high=1.0, array=None, constant=False):
        self.shape, self.low, self.high, self.array, self.constant = shape, low, high, array, constant


class Case:
    def __init__(self, op, inputs, attrs=None, *, label="", domain="", opset=21, outputs=1, steps=None, pace=SIMPLE, like=None):
        self.op, self.inputs, self.attrs = op, inputs, attrs or {}
        self.name = op + (f" {label}" if label else "")
        self.domain, self.opset, self.outputs, self.pace = domain, opset, outputs, pace
        self.steps = steps or max(math.prod(i.shape if i.array is None else i.array.shape) for i in inputs if i)
        self.like = like  # attributes that depend on the type: f(type number) -> dict


def x(*shape, low=-1.0, high=1.0):
    return Input(shape, low, high)


def w(*shape, low=-1.0, high=1.0):
    return Input(shape, low, high, constant=True)


def given(array):
    return Input(array=np.asarray(array))


def fixed(array, dtype=np.int64):
    return Input(array=np.asarray(array, dtype), constant=True)


N = 1 << 18  # elements of an elementwise case
SQUARE = (512, 512)
IMAGE = (1, 64, 56, 56)
MS, TRAINING, ML = "com.microsoft", "ai.onnx.preview.training", "ai.onnx.ml"
POSITIVE = {"low": 0.1, "high": 2.0}
RNG = np.random.default_rng(0)


def elementwise():
    for op in ["Abs", "Neg", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Relu", "LeakyRelu", "HardSigmoid", "HardSwish",
               "Sign", "Softsign", "Shrink", "ThresholdedRelu", "IsNaN", "IsInf"]:
        yield Case(op, [x(N, **(POSITIVE if op == "Sqrt" else {}))], opset=22)
    for op in ["Exp", "Log", "Erf", "Tanh", "Sigmoid", "Softplus", "Gelu", "Elu", "Selu", "Celu", "Mish", "Sin", "Cos", "Tan",
               "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Atanh"]:
        yield Case(op, [x(N, **(POSITIVE if op == "Log" else {}))], opset=22, pace=FUNCTION)
    yield Case("Acosh", [x(N, low=1.1, high=3.0)], opset=22, pace=FUNCTION)
    yield Case("Swish", [x(N)], opset=24, pace=FUNCTION)
    yield Case("Gelu", [x(N)], {"approximate": "tanh"}, label="tanh", pace=FUNCTION)
    yield Case("Gelu", [x(N)], domain=MS, label="ms", pace=FUNCTION)
    yield Case("QuickGelu", [x(N)], domain=MS, pace=FUNCTION)
    yield Case("FastGelu", [x(512, 512), x(512)], domain=MS, pace=FUNCTION)
    yield Case("BiasGelu", [x(512, 512), x(512)], domain=MS, pace=FUNCTION)
    yield Case("BiasSplitGelu", [x(2, 128, 2560), x(2560)], domain=MS, pace=FUNCTION)
    yield Case("BiasAdd", [x(2, 256, 512), x(512), x(2, 256, 512)], domain=MS)
    yield Case("Clip", [x(N), w(low=-0.5, high=-0.4), w(low=0.4, high=0.5)])
    for op in ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"]:
        yield Case(op, [x(*SQUARE), x(*SQUARE)])
    yield Case("Add", [x(*SQUARE), x(512)], label="row")
    yield Case("Mul", [x(*SQUARE), x(512, 1)], label="column")
    yield Case("Pow", [x(*SQUARE, **POSITIVE), x(*SQUARE, **POSITIVE)], pace=FUNCTION)
    yield Case("Mod", [x(*SQUARE), x(*SQUARE, **POSITIVE)], {"fmod": 1}, pace=FUNCTION)
    yield Case("PRelu", [x(*SQUARE), x(512)])
    yield Case("Where", [given(RNG.random(SQUARE) < 0.5), x(*SQUARE), x(*SQUARE)])
    yield Case("Cast", [x(N)], {"to": 1}, label="to f32", pace=MOVE)
    yield Case("Cast", [x(N)], {"to": 7}, label="to int64")
    yield Case("Dropout", [x(N), fixed(0.5, np.float32), fixed(True, bool)], opset=22, pace=RANDOM)
    yield Case("Bernoulli", [x(N, low=0)], opset=22, pace=RANDOM)
    yield Case("RandomNormalLike", [x(N)], opset=22, pace=RANDOM)
    yield Case("RandomUniformLike", [x(N)], opset=22, pace=RANDOM)
    yield Case("CDist", [x(256, 64), x(256, 64)], {"metric": "euclidean"}, domain=MS, steps=256 * 256 * 64, pace=MULTIPLY)


def products():
    yield Case("MatMul", [x(256, 256), w(256, 256)], steps=256 ** 3, pace=MULTIPLY)
    yield Case("MatMul", [x(128, 768), w(768, 3072)], label="128x768x3072", steps=128 * 768 * 3072, pace=MULTIPLY)
    yield Case("MatMul", [x(1, 768), w(768, 3072)], label="1x768x3072", steps=768 * 3072, pace=MULTIPLY)
    yield Case("MatMul", [x(12, 128, 64), x(12, 64, 128)], label="batched, both computed", steps=12 * 128 * 64 * 128, pace=MULTIPLY)
    yield Case("Gemm", [x(256, 256), w(256, 256), w(256)], steps=256 ** 3, pace=MULTIPLY)
    yield Case("FusedMatMul", [x(256, 256), x(256, 256)], {"transB": 1, "alpha": 0.5}, domain=MS, steps=256 ** 3, pace=MULTIPLY)
    yield Case("TransposeMatMul", [x(256, 256), x(256, 256)], {"transB": 1}, domain=MS, steps=256 ** 3, pace=MULTIPLY)
    yield Case("FusedGemm", [x(256, 256), w(256, 256), w(256)], {"activation": "Relu"}, domain=MS, steps=256 ** 3, pace=MULTIPLY)
    yield Case("Einsum", [x(256, 256), x(256, 256)], {"equation": "ij,jk->ik"}, steps=256 ** 3, pace=MULTIPLY)
    yield Case("Einsum", [x(64, 64, 64), x(64, 64)], {"equation": "bij,bj->bi"}, label="bij,bj->bi", pace=MULTIPLY)
    yield Case("Einsum", [x(512, 512)], {"equation": "ij->ji"}, label="ij->ji", pace=MOVE)
    yield Case("Det", [x(64, 32, 32)], opset=22, steps=64 * 32 ** 3 // 3, pace=MULTIPLY)
    yield Case("Inverse", [x(64, 32, 32)], domain=MS, steps=64 * 32 ** 3, pace=MULTIPLY)
    for op, gates in [("LSTM", 4), ("GRU", 3), ("RNN", 1)]:
        yield Case(op, [x(32, 4, 128), w(1, gates * 128, 128), w(1, gates * 128, 128), w(1, 2 * gates * 128)],
                   {"hidden_size": 128}, opset=22, steps=32 * 4 * 2 * gates * 128 * 128, pace=MULTIPLY)
    yield Case("LSTM", [x(4, 1, 256), w(1, 1024, 256), w(1, 1024, 256), w(1, 2048)], {"hidden_size": 256}, opset=22,
               label="4 steps of one", steps=4 * 2 * 1024 * 256, pace=MULTIPLY)


def convolutions():
    madds = 56 * 56 * 64 * 64 * 9
    yield Case("Conv", [x(*IMAGE), w(64, 64, 3, 3), w(64)], {"pads": [1] * 4}, label="3x3", steps=madds, pace=MULTIPLY)
    yield Case("Conv", [x(*IMAGE), w(64, 64, 1, 1), w(64)], label="1x1", steps=madds // 9, pace=MULTIPLY)
    yield Case("Conv", [x(*IMAGE), w(64, 1, 3, 3), w(64)], {"group": 64, "pads": [1] * 4}, label="depthwise 3x3",
               steps=56 * 56 * 64 * 9, pace=MULTIPLY)
    yield Case("Conv", [x(1, 3, 112, 112), w(32, 3, 3, 3)], {"strides": [2, 2], "pads": [1] * 4}, label="first, stride 2",
               steps=56 * 56 * 32 * 27, pace=MULTIPLY)
    yield Case("Conv", [x(*IMAGE), w(64, 16, 3, 3)], {"group": 4, "pads": [1] * 4}, label="4 groups", steps=madds // 4, pace=MULTIPLY)
    yield Case("Conv", [x(1, 64, 1024), w(64, 64, 3)], {"pads": [1, 1]}, label="1 dimension", steps=1024 * 64 * 64 * 3, pace=MULTIPLY)
    yield Case("Conv", [x(1, 16, 16, 16, 16), w(16, 16, 3, 3, 3)], {"pads": [1] * 6}, label="3 dimensions",
               steps=16 ** 3 * 16 * 16 * 27, pace=MULTIPLY)
    yield Case("Conv", [x(1, 8, 8, 8, 8, 8), w(8, 8, 3, 3, 3, 3)], {"pads": [1] * 8}, label="4 dimensions",
               steps=8 ** 4 * 8 * 8 * 81, pace=MULTIPLY)
    yield Case("Conv", [x(*IMAGE), x(64, 64, 3, 3)], {"pads": [1] * 4}, label="3x3, computed weights", steps=madds, pace=MULTIPLY)
    yield Case("ConvTranspose", [x(1, 64, 28, 28), w(64, 32, 2, 2)], {"strides": [2, 2]}, steps=28 * 28 * 64 * 32 * 4, pace=MULTIPLY)
    yield Case("ConvTranspose", [x(1, 8, 8, 8, 8), w(8, 8, 2, 2, 2)], {"strides": [2] * 3}, label="3 dimensions",
               steps=8 ** 3 * 8 * 8 * 8, pace=MULTIPLY)
    yield Case("NhwcConv", [x(1, 56, 56, 64), w(64, 64, 3, 3)], {"pads": [1] * 4}, domain=MS, steps=madds, pace=MULTIPLY)
    yield Case("FusedConv", [x(*IMAGE), w(64, 64, 3, 3), w(64)], {"pads": [1] * 4, "activation": "Relu"}, domain=MS, steps=madds,
               pace=MULTIPLY)
    yield Case("DeformConv", [x(1, 16, 28, 28), w(16, 16, 3, 3), x(1, 18, 28, 28)], {"pads": [1] * 4}, opset=22,
               steps=28 * 28 * 16 * 9 * 20, pace=MULTIPLY)
    yield Case("Col2Im", [x(1, 64 * 9, 54 * 54), fixed([56, 56]), fixed([3, 3])], opset=18)


def pooling():
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    taps = 64 * 28 * 28 * 9
    yield Case("MaxPool", [x(*IMAGE)], window, opset=22, steps=taps)
    yield Case("MaxPool", [x(*IMAGE)], window, opset=22, steps=taps, outputs=2, label="with indices")
    yield Case("AveragePool", [x(*IMAGE)], window, opset=22, steps=taps)
    yield Case("LpPool", [x(*IMAGE)], window, opset=22, steps=taps)
    cube = {"kernel_shape": [2] * 3, "strides": [2] * 3}
    for op in ["MaxPool", "AveragePool", "LpPool"]:
        yield Case(op, [x(1, 16, 32, 32, 32)], cube, opset=22, label="3 dimensions")
    for op in ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"]:
        yield Case(op, [x(*IMAGE)], opset=22)
    indices = np.arange(64 * 28 * 28).reshape(1, 64, 28, 28) * 4
    yield Case("MaxUnpool", [x(1, 64, 28, 28), given(indices)], {"kernel_shape": [2, 2], "strides": [2, 2]}, opset=22, pace=MOVE)
    rois = np.tile([0, 4, 4, 40, 40], (16, 1))
    yield Case("MaxRoiPool", [x(1, 16, 56, 56), w_rois(rois)], {"pooled_shape": [7, 7]}, opset=22, steps=16 * 16 * 37 * 37)
    yield Case("RoiAlign", [x(1, 16, 56, 56), w_rois(rois[:, 1:]), fixed(np.zeros(16))], {"output_height": 7, "output_width": 7,
               "sampling_ratio": 2}, opset=22, steps=16 * 16 * 49 * 16)
    yield Case("Resize", [x(1, 16, 56, 56), None, fixed([1, 1, 2, 2], np.float32)], {"mode": "linear"}, label="linear",
               steps=16 * 112 * 112 * 2)
    yield Case("Resize", [x(1, 16, 56, 56), None, fixed([1, 1, 2, 2], np.float32)], {"mode": "cubic"}, label="cubic",
               steps=16 * 112 * 112 * 8)
    yield Case("Resize", [x(1, 16, 56, 56), None, fixed([1, 1, 2, 2], np.float32)], {"mode": "nearest"}, label="nearest",
               steps=16 * 112 * 112)
    yield Case("GridSample", [x(1, 16, 56, 56), x(1, 56, 56, 2)], opset=22, steps=16 * 56 * 56 * 8)
    yield Case("AffineGrid", [x(4, 2, 3), fixed([4, 3, 128, 128])], opset=20, steps=4 * 128 * 128 * 2 * 3)
    yield Case("Upsample", [x(1, 16, 56, 56), fixed([1, 1, 2, 2], np.float32)], {"mode": "linear"}, opset=9, steps=16 * 112 * 112 * 2)


class Rois(Input):
    """Of type T, but with numbers that mean something."""


def w_rois(values):
    r = Rois(values.shape, constant=True)
    r.values = values
    return r


def normalization():
    yield Case("BatchNormalization", [x(*IMAGE), w(64), w(64), w(64), w(64, **POSITIVE)], opset=15)
    yield Case("InstanceNormalization", [x(*IMAGE), w(64), w(64)], opset=22)
    yield Case("LayerNormalization", [x(256, 768), w(768), w(768)], opset=17)
    yield Case("GroupNormalization", [x(*IMAGE), w(64), w(64)], {"num_groups": 8}, opset=21)
    yield Case("RMSNormalization", [x(256, 768), w(768)], opset=23)
    yield Case("SimplifiedLayerNormalization", [x(256, 768), w(768)], opset=17)
    yield Case("SkipLayerNormalization", [x(2, 128, 768), x(2, 128, 768), w(768), w(768)], domain=MS)
    yield Case("SkipSimplifiedLayerNormalization", [x(2, 128, 768), x(2, 128, 768), w(768)], domain=MS)
    yield Case("MeanVarianceNormalization", [x(*IMAGE)], opset=13)
    yield Case("LpNormalization", [x(256, 768)], opset=22)
    yield Case("LpNormalization", [x(256, 768)], {"axis": 0}, opset=22, label="axis 0")
    yield Case("LRN", [x(*IMAGE)], {"size": 5}, opset=13, pace=FUNCTION)
    yield Case("Softmax", [x(256, 768)], pace=FUNCTION)
    yield Case("Softmax", [x(*IMAGE)], {"axis": 1}, label="axis 1", pace=FUNCTION)
    yield Case("LogSoftmax", [x(256, 768)], pace=FUNCTION)
    yield Case("Hardmax", [x(256, 768)])
    yield Case("BiasSoftmax", [x(4, 64, 768), x(1, 64, 768)], {"axis": 2, "is_inner_broadcast": 0}, domain=MS, pace=FUNCTION)
    labels = RNG.integers(0, 64, (16, 28))
    yield Case("NegativeLogLikelihoodLoss", [x(16, 64, 28), given(labels)], opset=22, steps=16 * 28, pace=INDEX)
    yield Case("SoftmaxCrossEntropyLoss", [x(16, 64, 28), given(labels)], opset=13, pace=FUNCTION)


def reductions():
    for op in ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]:
        pace = FUNCTION if op == "LogSumExp" else SIMPLE
        yield Case("Reduce" + op, [x(*SQUARE, **POSITIVE), fixed([1])], opset=20, pace=pace)
        yield Case("Reduce" + op, [x(*SQUARE, **POSITIVE), fixed([0])], opset=20, pace=pace, label="axis 0")
    yield Case("ReduceMean", [x(16, 64, 16, 16), fixed([1, 3])], opset=20, label="axes 1, 3")
    for op in ["ArgMax", "ArgMin"]:
        yield Case(op, [x(*SQUARE)], {"axis": 1}, opset=13)
    yield Case("ArgMax", [x(*SQUARE)], {"axis": 0}, opset=13, label="axis 0")
    yield Case("TopK", [x(256, 1024), fixed([10])], opset=11, outputs=2, pace=FUNCTION)
    yield Case("TopK", [x(256, 1024), fixed([1024])], opset=11, outputs=2, steps=256 * 1024 * 10, pace=SORT, label="all")
    for op in ["CumSum", "CumProd"]:
        yield Case(op, [x(*SQUARE), fixed(1)], opset=26)
        yield Case(op, [x(*SQUARE), fixed(0)], opset=26, label="axis 0")
    yield Case("Unique", [x(1 << 14)], {"sorted": 1}, opset=11, steps=(1 << 14) * 14, pace=SORT)
    yield Case("NonZero", [x(*SQUARE)], pace=INDEX)
    yield Case("Multinomial", [x(64, 1024)], {"sample_size": 64}, opset=22, pace=FUNCTION)


def attention():
    qkv = [x(1, 8, 128, 64)] * 3
    steps = 2 * 8 * 128 * 128 * 64
    yield Case("Attention", qkv, opset=23, steps=steps, pace=MULTIPLY)
    yield Case("Attention", qkv, {"is_causal": 1}, opset=23, steps=steps, pace=MULTIPLY, label="causal")
    yield Case("MultiHeadAttention", [x(1, 128, 512)] * 3, {"num_heads": 8}, domain=MS, steps=steps, pace=MULTIPLY)
    yield Case("Attention", [x(1, 128, 512), w(512, 1536), w(1536)], {"num_heads": 8}, domain=MS,
               steps=steps + 128 * 512 * 1536, pace=MULTIPLY, label="ms")
    angles = [w(128, 32), w(128, 32)]
    yield Case("RotaryEmbedding", [x(1, 8, 128, 64), *angles, fixed(np.arange(128)[None])], opset=23)
    yield Case("RotaryEmbedding", [x(1, 8, 128, 64), fixed(np.arange(128)[None]), *angles], domain=MS, label="ms")


def movement():
    move = {"pace": MOVE}
    yield Case("Transpose", [x(*SQUARE)], {"perm": [1, 0]}, **move)
    yield Case("Concat", [x(256, 512), x(256, 512)], {"axis": 1}, steps=512 * 512, **move)
    yield Case("Slice", [x(*SQUARE), fixed([0, 0]), fixed([512, 512]), fixed([0, 1]), fixed([1, 2])], steps=512 * 256, **move)
    yield Case("Gather", [x(*SQUARE), fixed(RNG.integers(0, 512, 512))], {"axis": 0}, **move)
    yield Case("Gather", [x(*SQUARE), fixed(RNG.integers(0, 512, 512))], {"axis": 1}, label="axis 1", pace=INDEX)
    yield Case("GatherElements", [x(*SQUARE), fixed(RNG.integers(0, 512, SQUARE))], {"axis": 1}, pace=INDEX)
    yield Case("GatherND", [x(*SQUARE), fixed(RNG.integers(0, 512, (512, 1)))], **move)
    yield Case("ScatterElements", [x(*SQUARE), fixed(RNG.integers(0, 512, SQUARE)), x(*SQUARE)], {"axis": 1}, opset=18, pace=INDEX)
    yield Case("ScatterElements", [x(*SQUARE), fixed(RNG.integers(0, 512, SQUARE)), x(*SQUARE)], {"axis": 1, "reduction": "add"},
               opset=18, label="add", pace=INDEX)
    yield Case("ScatterND", [x(*SQUARE), fixed(RNG.permutation(512)[:, None]), x(*SQUARE)], {"reduction": "add"}, opset=18, **move)
    yield Case("Pad", [x(*SQUARE), fixed([8, 8, 8, 8])], {"mode": "reflect"}, **move)
    yield Case("Tile", [x(128, 128), fixed([4, 4])], steps=512 * 512, **move)
    yield Case("Expand", [x(512, 1), fixed([512, 512])], steps=512 * 512, **move)
    yield Case("Trilu", [x(*SQUARE)], opset=14, **move)
    yield Case("DepthToSpace", [x(*IMAGE)], {"blocksize": 2}, **move)
    yield Case("SpaceToDepth", [x(*IMAGE)], {"blocksize": 2}, **move)
    yield Case("Split", [x(*SQUARE)], {"axis": 1, "num_outputs": 2}, opset=18, outputs=2, **move)
    yield Case("ReverseSequence", [x(*SQUARE), fixed(np.full(512, 300))], **move)
    yield Case("Compress", [x(*SQUARE), fixed(RNG.random(512) < 0.5, bool)], {"axis": 1}, **move)
    yield Case("CenterCropPad", [x(*SQUARE), fixed([400, 600])], opset=18, **move)
    yield Case("OneHot", [given(RNG.integers(0, 128, 2048)), fixed(128), w(2)], steps=2048 * 128, **move)
    yield Case("TensorScatter", [x(4, 8, 128, 64), x(4, 8, 16, 64), fixed([0, 1, 2, 3])], opset=24, **move)
    # So many that making room for what only the run knows does not count.
    yield Case("Range", [x(low=0, high=0), x(low=1 << 15, high=1 << 15), x(low=1 / 32, high=1 / 32)], steps=1 << 20)
    yield Case("EyeLike", [x(*SQUARE)], **move)


def signals():
    yield Case("DFT", [x(16, 1024, 2)], opset=20, steps=16 * 1024 * 10, pace=FUNCTION)
    yield Case("DFT", [x(16, 1000, 2), None, fixed(1)], opset=20, steps=16 * 1000 * 10, pace=FUNCTION, label="1000")
    yield Case("STFT", [x(1, 16384, 1), fixed(128), None, fixed(256)], opset=17, steps=127 * 256 * 8, pace=FUNCTION)


def quantized():
    yield Case("QuantizeLinear", [x(*SQUARE), w(low=0.01, high=0.01), fixed(0, np.uint8)], opset=21)
    yield Case("DequantizeLinear", [given(RNG.integers(0, 255, SQUARE, dtype=np.uint8)), w(low=0.01, high=0.01), fixed(0, np.uint8)],
               opset=21)
    blocks = RNG.integers(0, 255, (256, 8, 16), dtype=np.uint8)
    yield Case("MatMulNBits", [x(32, 256), fixed(blocks, np.uint8), w(256 * 8)], {"K": 256, "N": 256, "bits": 4, "block_size": 32},
               domain=MS, steps=32 * 256 * 256, pace=MULTIPLY)
    table = RNG.integers(0, 255, (1024, 128), dtype=np.uint8)
    yield Case("GatherBlockQuantized", [fixed(table, np.uint8), given(RNG.integers(0, 1024, 512)), w(1024, 4)],
               {"bits": 8, "block_size": 32, "quantize_axis": 1, "gather_axis": 0}, domain=MS, steps=512 * 128)
    bytes_image = given(RNG.integers(0, 255, IMAGE, dtype=np.uint8))
    one, zero = fixed(0.02, np.float32), fixed(3, np.uint8)
    yield Case("QLinearAveragePool", [bytes_image, one, zero, one, zero], {"kernel_shape": [3, 3], "strides": [2, 2]}, domain=MS,
               steps=64 * 27 * 27 * 9)
    yield Case("QLinearGlobalAveragePool", [bytes_image, one, zero, one, zero], {"channels_last": 0}, domain=MS)
    bytes_square = given(RNG.integers(0, 255, SQUARE, dtype=np.uint8))
    yield Case("QLinearReduceMean", [bytes_square, one, zero, one, zero], {"axes": [1], "keepdims": 1}, domain=MS)
    yield Case("QLinearSoftmax", [bytes_square, one, zero, one, zero], {"axis": -1, "opset": 13}, domain=MS, pace=FUNCTION)
    yield Case("QLinearAdd", [bytes_square, one, zero, bytes_square, one, zero, one, zero], domain=MS)
    yield Case("QLinearSigmoid", [bytes_square, one, zero, one, zero], domain=MS)
    yield Case("MaxPool", [bytes_image], {"kernel_shape": [3, 3], "strides": [2, 2]}, opset=22, label="of bytes", steps=64 * 27 * 27 * 9)


def learning():
    numbers = [fixed(0.1, np.float32), fixed(2)]
    for op, states in [("Adagrad", 1), ("Adam", 2), ("Momentum", 1)]:
        attrs = {"Momentum": {"mode": "standard", "alpha": 0.9, "beta": 0.9, "norm_coefficient": 0.0}}.get(op, {})
        yield Case(op, [*numbers, *[x(N, low=0)] * (2 + states)], attrs, domain=TRAINING, outputs=1 + states, pace=FUNCTION)
    features = x(256, 64)
    yield Case("Scaler", [features], {"offset": [0.5] * 64, "scale": [2.0] * 64}, domain=ML)
    yield Case("Normalizer", [features], {"norm": "L2"}, domain=ML)
    yield Case("Binarizer", [features], {"threshold": 0.1}, domain=ML)
    yield Case("Imputer", [features], {"imputed_value_floats": [0.0], "replaced_value_float": 0.5}, domain=ML)
    yield Case("LinearRegressor", [features], {"coefficients": [0.1] * 640, "intercepts": [0.0] * 10, "targets": 10}, domain=ML,
               steps=256 * 640, pace=MULTIPLY)
    yield Case("ArrayFeatureExtractor", [features, fixed(np.arange(32))], domain=ML, steps=256 * 32, pace=MOVE)


FAMILIES = [elementwise, products, convolutions, pooling, normalization, reductions, attention, movement, signals, quantized, learning]


def all_cases():
    return [case for family in FAMILIES for case in family()]
