"""Fourier transforms, windows and mel weights, from the text of Operators.md."""
import numpy as np

from float_types import NUMPY, any_float, as_type, reals, tolerance, values_of
from harness import choice, random_shape, reference, rejects
from model_file import TYPES

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 19, 23, 30, 31, 32, 37, 64, 97, 100, 127, 128, 180, 210, 255, 257, 1000, 1024,
           1021]


def exact_dft(x, length, axis, inverse):
    """The sum of the definition; x is cut or padded with zeros."""
    x = np.moveaxis(x, axis, -1)
    x = np.concatenate([x[..., :length], np.zeros([*x.shape[:-1], max(0, length - x.shape[-1])])], -1)
    k = np.arange(length)
    turns = np.outer(k, k) % length / length  # whole turns change nothing
    matrix = np.exp((2j if inverse else -2j) * np.pi * turns)
    return np.moveaxis(x @ matrix / (length if inverse else 1), -1, axis)


def transform_limits(kind, length):
    limits = tolerance(kind)
    return {"rtol": limits["rtol"], "atol": limits["atol"] * max(1, length) ** 0.5 * 2}


def dft_cases(rng):
    kind, opset = any_float(rng), choice(rng, [17, 20])
    shape = random_shape(rng, most=4, least=1, largest=4)
    axis = int(rng.integers(len(shape)))
    shape[axis] = choice(rng, LENGTHS)
    inverse, onesided = choice(rng, [0, 1]), choice(rng, [0, 1])
    parts = choice(rng, [1, 2])
    if onesided:
        parts = 2 if inverse else 1
    if inverse and onesided and shape[axis] == 1:
        shape[axis] = 2
    rank = len(shape) + 1
    attrs = {"inverse": inverse, "onesided": onesided}
    inputs = [reals(rng, [*shape, parts], kind)]
    length = None
    if rng.random() < 0.4:
        length = choice(rng, [shape[axis], max(1, shape[axis] - 1), shape[axis] + 3, choice(rng, LENGTHS)])
        inputs.append(np.array(length, choice(rng, [np.int32, np.int64])))
    if opset == 17:
        attrs["axis"] = choice(rng, [axis, axis - rank])
    elif axis != rank - 2 or rng.random() < 0.5:
        inputs += [None] * (2 - len(inputs))
        inputs.append(np.array(choice(rng, [axis, axis - rank]), np.int64))
    return {"inputs": inputs, "attrs": attrs, "opset": opset, "axis": axis, "length": length,
            **transform_limits(kind, length or shape[axis])}


@reference("DFT", dft_cases)
def dft(inputs, attrs, axis, length, **_):
    x = values_of(inputs[0])
    signal = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    inverse, onesided = attrs["inverse"], attrs["onesided"]
    if length is None:
        length = 2 * (signal.shape[axis] - 1) if inverse and onesided else signal.shape[axis]
    if inverse and onesided:
        half = np.moveaxis(signal, axis, -1)[..., :length // 2 + 1]
        full = np.zeros([*half.shape[:-1], length], complex)
        full[..., :half.shape[-1]] = half
        full[..., 0] = full[..., 0].real
        if length % 2 == 0:
            full[..., length // 2] = full[..., length // 2].real
        for k in range(1, (length + 1) // 2):
            full[..., length - k] = np.conj(full[..., k])
        return [np.moveaxis(exact_dft(full, length, -1, True).real, -1, axis)[..., None]]
    result = exact_dft(signal, length, axis, inverse)
    if onesided:
        result = np.take(result, np.arange(length // 2 + 1), axis)
    return [np.stack([result.real, result.imag], -1)]


def stft_cases(rng):
    kind = any_float(rng)
    parts = choice(rng, [1, 1, 2])
    length, frame = int(rng.integers(20, 90)), int(rng.integers(1, 20))
    step = int(rng.integers(1, 12))
    attrs = {"onesided": 0 if parts == 2 else choice(rng, [0, 1])}
    inputs = [reals(rng, [int(rng.integers(1, 4)), length, parts], kind), np.array(step, choice(rng, [np.int32, np.int64]))]
    form = choice(rng, ["window", "length", "both"])
    window = reals(rng, [frame], kind)
    if form == "window":
        inputs.append(window)
    elif form == "length":
        inputs += [None, np.array(frame, np.int64)]
    else:
        inputs += [window, np.array(frame, np.int64)]
    return {"inputs": inputs, "attrs": attrs, "opset": 17, **transform_limits(kind, frame)}


@reference("STFT", stft_cases)
def stft(inputs, attrs, **_):
    x, step = values_of(inputs[0]), int(inputs[1])
    signal = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    window = values_of(inputs[2])
    frame = int(inputs[3]) if len(inputs) > 3 else len(window)
    window = np.ones(frame) if window is None else window
    frames = 1 + (signal.shape[1] - frame) // step
    cut = np.stack([signal[:, i * step:i * step + frame] * window for i in range(frames)], 1)
    result = exact_dft(cut, frame, -1, False)
    if attrs["onesided"]:
        result = result[..., :frame // 2 + 1]
    return [np.stack([result.real, result.imag], -1)]


OUTPUT_TYPES = ["float", "double", "float16", "bfloat16", "int32", "int64", "uint8"]


def as_output(values, attrs):
    name = [key for key, number in TYPES.items() if number == attrs.get("output_datatype", 1)][0]
    if name in NUMPY or name == "bfloat16":
        return (values, name)
    return (np.round(values, 12).astype(name), name)  # the middle is 1, whatever numpy's cosine has as its last digit


def window_cases(rng):
    attrs = {}
    if rng.random() < 0.7:
        attrs["output_datatype"] = TYPES[choice(rng, OUTPUT_TYPES)]
    if rng.random() < 0.7:
        attrs["periodic"] = choice(rng, [0, 1])
    kind = {10: "float16", 11: "double", 16: "bfloat16"}.get(attrs.get("output_datatype", 1), "float")
    limits = tolerance(kind) if attrs.get("output_datatype", 1) in (1, 10, 11, 16) else {}
    return {"inputs": [np.array(int(rng.integers(2, 50)), choice(rng, [np.int32, np.int64]))], "attrs": attrs, "opset": 17, **limits}


def angles(inputs, attrs):
    size = int(inputs[0])
    return 2 * np.pi * np.arange(size) / (size if attrs.get("periodic", 1) else size - 1)


@reference("HannWindow", window_cases)
def hann_window(inputs, attrs, **_):
    return [as_output(np.sin(angles(inputs, attrs) / 2) ** 2, attrs)]


@reference("HammingWindow", window_cases)
def hamming_window(inputs, attrs, **_):
    return [as_output(25 / 46 - 21 / 46 * np.cos(angles(inputs, attrs)), attrs)]


@reference("BlackmanWindow", window_cases)
def blackman_window(inputs, attrs, **_):
    a = angles(inputs, attrs)
    return [as_output(0.42 - 0.5 * np.cos(a) + 0.08 * np.cos(2 * a), attrs)]


def mel_cases(rng):
    kind = any_float(rng, ["float", "double"])
    length, rate = int(rng.integers(16, 200)), choice(rng, [8000, 16000])
    low, high = as_type(rng.uniform(0, 500), kind)[0], as_type(rng.uniform(1000, rate / 2), kind)[0]
    attrs = {"output_datatype": TYPES[choice(rng, OUTPUT_TYPES)]} if rng.random() < 0.6 else {}
    out = {10: "float16", 11: "double", 16: "bfloat16"}.get(attrs.get("output_datatype", 1), "float")
    limits = tolerance(out) if attrs.get("output_datatype", 1) in (1, 10, 11, 16) else {}
    return {"inputs": [np.array(int(rng.integers(1, 12)), np.int64), np.array(length, np.int32), np.array(rate, np.int64), low, high],
            "attrs": attrs, "opset": 17, **limits}


@reference("MelWeightMatrix", mel_cases)
def mel_weight_matrix(inputs, attrs, **_):
    bands, length, rate = (int(v) for v in inputs[:3])
    low, high = (2595 * np.log10(1 + float(values_of(v)) / 700) for v in inputs[3:])
    edges = 700 * (10 ** ((low + np.arange(bands + 2) * (high - low) / (bands + 2)) / 2595) - 1)
    bins = np.floor((length + 1) * edges / rate).astype(int)
    y = np.zeros([length // 2 + 1, bands])
    for i in range(bands):
        left, center, right = bins[i:i + 3]
        if center == left:
            y[center, i] = 1
        for j in range(left, center + 1):
            if center > left:
                y[j, i] = (j - left) / (center - left)
        for j in range(center, right):
            y[j, i] = (right - j) / (right - center)
    return [as_output(y, attrs)]


REAL, COMPLEX = np.zeros([1, 8, 1], np.float32), np.zeros([1, 8, 2], np.float32)
rejects("DFT", [COMPLEX], {"onesided": 1}, opset=20, says="real signal")
rejects("DFT", [np.zeros([1, 8, 3], np.float32)], opset=20, says="not 3")
rejects("DFT", [REAL, None, np.array(-1)], opset=20, says="axis -1")
rejects("DFT", [REAL, None, np.array(2)], opset=20, says="axis 2")
rejects("DFT", [REAL, np.array(0)], opset=20, says="not 0")
rejects("DFT", [REAL, np.array(-5)], opset=20, says="not -5")
rejects("DFT", [REAL, np.array([1, 2])], opset=20, says="one number")
rejects("DFT", [REAL, np.array(1 << 60)], opset=20, says="not 1152921504606846976")
rejects("DFT", [REAL, np.array(8), np.array(1)], opset=17, says="found 3")
rejects("STFT", [REAL, np.array(0), None, np.array(4)], opset=17, says="frame_step")
rejects("STFT", [REAL, np.array(1), None, np.array(9)], opset=17, says="does not fit")
rejects("STFT", [COMPLEX, np.array(1), None, np.array(4)], {"onesided": 1}, opset=17, says="real signal")
rejects("STFT", [REAL, np.array(1), np.ones([2, 2], np.float32)], opset=17, says="rank")
rejects("HannWindow", [np.array(-1)], opset=17, says="at least 0")
rejects("HannWindow", [np.array(4)], {"output_datatype": 8}, opset=17, says="output_datatype")
rejects("HannWindow", [np.array([1, 2])], opset=17, says="one number")
MEL = [np.array(8), np.array(16), np.array(8000), np.array(0, np.float32)]
rejects("MelWeightMatrix", [*MEL, np.array(80000, np.float32)], opset=17, says="bin")
rejects("MelWeightMatrix", [*MEL, np.array(np.nan, np.float32)], opset=17, says="bin nan")
rejects("MelWeightMatrix", [np.array(8), np.array(16), np.array(0), *MEL[3:], np.array(400, np.float32)], opset=17, says="bin")
