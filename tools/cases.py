#!/usr/bin/python3
"""The inputs on which models are compared with ONNX Runtime: names, shapes, and reproducible contents.

The first data set of a model has the shape at which it is benchmarked, the others exercise its dynamic dimensions.

As a program: `cases.py` prints the names of the benchmark set; `cases.py NAME DIRECTORY` writes the inputs of NAME's
first data set there as raw files and as .npy, and prints their description as JSON.
"""
import json
import pathlib
import sys
import zlib

import numpy as np

BERT_VOCABULARY = 30522


class Draw:
    """Makes tensors that look like the real thing, from a seed of its own for every data set."""

    def __init__(self, seed):
        self._random = np.random.default_rng(seed)

    def normal(self, *shape):
        return self._random.standard_normal(shape, dtype=np.float32)

    def image(self, *shape):
        """A batch of smooth pictures with some noise, values in [0, 1]."""
        batch, channels, height, width = shape
        y, x = np.mgrid[0:height, 0:width].astype(np.float32)
        picture = np.zeros(shape, np.float32)
        for b in range(batch):
            for c in range(channels):
                for _ in range(6):
                    fy, fx = self._random.uniform(0, 0.15, 2)
                    picture[b, c] += np.sin(fy * y + fx * x + self._random.uniform(0, 6))
        picture = 0.5 + picture / 8 + 0.05 * self.normal(*shape)
        return np.clip(picture, 0, 1).astype(np.float32)

    def page(self, *shape):
        """A batch of white pages with lines of words, whose letters are random strokes; values in [-1, 1]."""
        batch, channels, height, width = shape
        pages = np.ones((batch, 1, height, width), np.float32)
        size = 16
        for paper in pages[:, 0]:
            for top in range(size // 2, height - size, 2 * size):
                for left in range(size // 2, width - size, size):
                    if self._random.random() < 0.8:  # otherwise the gap between two words
                        self._letter(paper[top:top + size, left:left + size - 4])
        noise = np.float32(0.02) * self.normal(*shape)
        return np.clip(np.broadcast_to(pages, shape) + noise, -1, 1)

    def _letter(self, cell):
        height, width = cell.shape
        for _ in range(3):
            y, x = self._random.integers(0, height - 2), self._random.integers(0, width - 2)
            if self._random.random() < 0.5:
                cell[y:y + 2, :] = -1
            else:
                cell[:, x:x + 2] = -1

    def centered_image(self, *shape):
        return (self.image(*shape) - np.float32(0.5)) / np.float32(0.5)

    def tokens(self, batch, seq):
        """Token ids and attention mask: [CLS] words [SEP], then padding in all rows but the first."""
        ids = self._random.integers(1000, BERT_VOCABULARY, (batch, seq), dtype=np.int64)
        mask = np.ones((batch, seq), np.int64)
        ids[:, 0] = 101
        for row in range(batch):
            length = seq if row == 0 else int(self._random.integers(seq // 2, seq))
            ids[row, length - 1] = 102
            ids[row, length:] = 0
            mask[row, length:] = 0
        return ids, mask

    def speech(self, batch, samples, rate):
        """A chord with an envelope: voiced enough that the detector does not answer zero."""
        t = np.arange(samples) / rate
        wave = sum(np.sin(2 * np.pi * f * t) / k for k, f in enumerate((140, 280, 420, 560, 2400), 1))
        return (0.2 * wave * np.hanning(samples) + 0.01 * self.normal(batch, samples)).astype(np.float32)


def imagenet(draw, batch):
    return {"input": draw.normal(batch, 3, 224, 224)}


def bert(draw, batch, seq):
    ids, mask = draw.tokens(batch, seq)
    return {"input_ids": ids, "attention_mask": mask}


def minilm(draw, batch, seq):
    return bert(draw, batch, seq) | {"token_type_ids": np.zeros((batch, seq), np.int64)}


def ocr(draw, *shape):
    return {"x": draw.page(*shape)}


def yolo(draw, *shape):
    return {"images": draw.image(*shape)}


def u2net(draw, *shape):
    return {"input.1": draw.centered_image(*shape)}


def silero(draw, samples, rate, batch=1, state_scale=0):
    state = np.float32(state_scale) * draw.normal(2, batch, 128)
    return {"input": draw.speech(batch, samples, rate), "state": state, "sr": np.array(rate, np.int64)}


def moonshine_encoder(draw, samples):
    return {"input_values": draw.speech(1, samples, 16000)}


def moonshine_decoder(draw, heard, spoken):
    """One more token of a text of which `spoken` tokens are there; of a text that begins, where there are none."""
    past = {f"past_key_values.{layer}.{side}.{part}": draw.normal(1, 8, length, 36)
            for layer in range(6) for side, length in (("decoder", spoken), ("encoder", heard if spoken else 0)) for part in ("key", "value")}
    return {"input_ids": np.array([[42]], np.int64), "encoder_hidden_states": draw.normal(1, heard, 288), **past,
            "use_cache_branch": np.array([spoken > 0])}


def minimind(draw, spoken):
    past = {f"past_key_values.{layer}.{part}": draw.normal(1, 2, spoken, 64) for layer in range(8) for part in ("key", "value")}
    return {"input_ids": np.array([[42]], np.int64), "attention_mask": np.ones((1, spoken + 1), np.int64),
            "position_ids": np.array([[spoken]], np.int64), **past}


# model: (the function, its arguments for each data set)
CASES = {
    "resnet50": (imagenet, (1,), (2,)),
    "mobilenet_v3_large": (imagenet, (1,), (2,)),
    "efficientnet_b0": (imagenet, (1,), (2,)),
    "densenet121": (imagenet, (1,), (2,)),
    "convnext_tiny": (imagenet, (1,), (2,)),
    "vit_b_16": (imagenet, (1,), (2,)),
    "mobilenet_v3_large_calibrated": (imagenet, (1,), (2,)),
    "efficientnet_b0_calibrated": (imagenet, (1,), (2,)),
    "vit_b_16_calibrated": (imagenet, (1,), (2,)),
    "ppocr4_det": (ocr, (1, 3, 640, 640), (1, 3, 320, 480)),
    "ppocr4_rec": (ocr, (1, 3, 48, 320), (2, 3, 48, 200)),
    "ppocr2_cls": (ocr, (1, 3, 48, 192), (3, 3, 48, 192)),
    "yolo11n": (yolo, (1, 3, 640, 640), (2, 3, 320, 480)),
    "u2netp": (u2net, (1, 3, 320, 320)),
    "minilm_l6": (minilm, (1, 128), (3, 33)),
    "bert_L12": (bert, (1, 128), (2, 17)),
    "silero_vad_v5": (silero, (512, 16000), (256, 8000), (576, 16000, 2, 0.3)),
}

# Models of bench/quantized.py alone: whether their answers are right, tests/generation tells.
STEPS = {
    "moonshine_tiny_encoder": (moonshine_encoder, (16000 * 4,)),
    "moonshine_tiny_decoder": (moonshine_decoder, (166, 32)),
    "moonshine_tiny_decoder_first": (moonshine_decoder, (166, 0)),
    "minimind2_small": (minimind, (64,)),
    "minilm_l6_one": (minilm, (1, 1)),
    "bert_L12_one": (bert, (1, 1)),
}

# The f32 rows of the benchmark table, in its order.
BENCHMARKS = [name for name in CASES
              if name not in ("ppocr2_cls", "silero_vad_v5") and not name.endswith("_calibrated")]


def data_set(model, index):
    """{input name: array} of one data set; the same on every call."""
    function, *arguments = (CASES | STEPS)[model]
    return function(Draw(zlib.crc32(f"{model}/{index}".encode())), *arguments[index])


def data_set_count(model):
    return len(CASES[model]) - 1


def save_raw(directory, feed):
    """Writes the inputs as raw little-endian files; returns their description, which tools/ort/tensors.js reads."""
    description = []
    for k, (name, array) in enumerate(feed.items()):
        file = pathlib.Path(directory) / f"input_{k}.raw"
        file.write_bytes(array.tobytes())
        description.append({"name": name, "type": array.dtype.name, "dims": list(array.shape), "file": str(file)})
    return description


def main():
    if len(sys.argv) == 1:
        print("\n".join(BENCHMARKS))
        return
    name, directory = sys.argv[1:]
    feed = data_set(name, 0)
    description = save_raw(directory, feed)
    for row, array in zip(description, feed.values()):
        row["npy"] = row["file"].replace(".raw", ".npy")
        np.save(row["npy"], array)
    print(json.dumps(description))


if __name__ == "__main__":
    main()
