"""What operators of shapes and places refuse; ONNX's own data has their answers."""
import numpy as np

from harness import rejects

F32 = np.float32
X, IMAGE = np.ones((2, 3), F32), np.ones((1, 2, 5, 5), F32)
HUGE = 1 << 62


def i64(*values):
    return np.array(values, np.int64)


rejects("Reshape", [X, i64(7)], says="shape [7] has 7 elements")
rejects("Reshape", [X, i64(7)], says="shape [7] has 7 elements", symbolic=True)
rejects("Reshape", [X, i64(-2)], says="shape [-2] has a negative dimension")
rejects("Reshape", [X, i64(HUGE, HUGE)], says="node 'Reshape_0' (Reshape): size")
rejects("Reshape", [X, i64(-1, -1)], says="more than one -1")
rejects("Tile", [X, i64(HUGE, HUGE)], says="node 'Tile_0' (Tile): size")
rejects("Tile", [X, i64(-1, 1)], says="-1 repeats")
rejects("Split", [X, i64(HUGE, HUGE)], {"axis": 0}, outputs=2, says="node 'Split_0' (Split): size")
rejects("Split", [X, i64(-1, 3)], {"axis": 0}, outputs=2, says="size -1 is negative")
rejects("Transpose", [X], {"perm": [0, 0]}, says="named twice")
rejects("Transpose", [X], {"perm": [0, 2]}, says="no permutation")
rejects("Squeeze", [X, i64(0)], says="axis 0 of shape [2, 3] is not 1")
rejects("Unsqueeze", [X, i64(HUGE)], says="is outside [-3, 3)")
rejects("Slice", [X, i64(0), i64(1), i64(0), i64(0)], says="a step is 0")
rejects("Slice", [X, i64(0), i64(1), i64(5)], says="axis 5")
rejects("Concat", [X, np.ones((3, 4), F32)], {"axis": 0}, says="dimensions 3 and 4 differ")
rejects("Gather", [X, i64(2)], says="index 2 is outside [-2, 2)")
rejects("Scatter", [X, np.array([[9]]), X[:1, :1]], opset=9, says="index 9 is outside [-2, 2)")
rejects("TopK", [X, i64(4)], outputs=2, says="K 4 is outside [0, 3]")
rejects("ConstantOfShape", [i64(HUGE, 2)], says="which no memory holds")
rejects("Pad", [X, i64(HUGE, 0, 0, 0)], says="out of reason")
rejects("CumSum", [X, np.array(2)], says="axis 2 is outside [-2, 2)")
rejects("ArgMin", [np.ones((3, 0), F32)], {"axis": 1}, says="axis 1 of shape [3, 0] is empty")
rejects("Softmax", [X], {"axis": 2}, says="axis 2 is outside")
rejects("LogSoftmax", [X], {"axis": -3}, says="axis -3 is outside")
rejects("Flatten", [X], {"axis": 5}, says="axis 5 is outside")
rejects("LayerNormalization", [X, np.ones(4, F32)], says="expected 3 elements")
rejects("PRelu", [X, np.ones(4, F32)], says="cannot be broadcast")
rejects("Where", [X > 0, X, np.ones(4, F32)], says="cannot be broadcast")
rejects("MatMul", [X, X], says="inner dimensions 3 and 2 differ")
rejects("Gemm", [X, X], says="inner dimensions 3 and 2 differ")
rejects("Resize", [IMAGE, None, np.array([1, 1, np.nan, 1], F32)], says="scale nan is not positive")
rejects("Conv", [IMAGE, np.ones((3, 2, 3, 3), F32)], {"dilations": [HUGE, 1]}, says="'dilations'")
rejects("ConvTranspose", [IMAGE, np.ones((2, 3, 3, 3), F32)], {"output_shape": [HUGE, HUGE]}, says="output_shape")
rejects("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "pads": [HUGE] * 4}, says="'pads'")
rejects("AveragePool", [IMAGE], {"kernel_shape": [0, 2]}, says="'kernel_shape'")
for op in ("Equal", "Greater", "Less", "Sub", "Mul", "Div"):
    rejects(op, [X, np.ones((2, 4), F32)], says="cannot be broadcast")
for op in ("Abs", "Cos", "Erf", "Exp", "Floor", "Neg", "Sigmoid", "Softplus", "Tan", "Tanh", "Identity", "GlobalAveragePool", "GlobalMaxPool"):
    rejects(op, [np.ones((1, 2, 3), F32)] * 2, says="found 2")
for op in ("And", "Or", "Xor"):
    rejects(op, [X, X], says="type float is not allowed")
