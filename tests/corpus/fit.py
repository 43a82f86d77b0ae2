#!/usr/bin/python3
"""Fits the weights of leak_confidence (src/observe/verdict_rivals.cpp) to recordings, and tells how well they do on programs
that they were not fitted to.

  fit.py FOLDER... [--families FOLDER]

Every rise that the Judge gave a confidence to, at seven moments of each recording, is one case; a program's cases are
weighed so that each program counts the same. Rises that came in stairs or with few collections have a confidence that was
given, not fitted, and are left out. Programs are left out in turn, all their forms and seeds together; beside it stands what
the Judge itself said. The same recordings give the same weights.
"""
import argparse
import csv
import json
import math
import pathlib
import subprocess

import numpy as np

from corpus import BUILD, HERE, MOMENTS

NAMES = ["constant", "log odds of a line", "margin", "recent", "log of nurseries", "below a nursery"]
STAIRS = 0.4  # given: there are too few of them to fit it
SMALL, LARGE = 1.2, 1.6  # fitted by themselves, the others as they are: see size_weight
RIDGE = 0.5
SURE_ENOUGH = 0.8


def features(rivals):
    line = min(max(rivals["line"], 0.02), 0.99)
    nurseries = rivals["nurseries"]
    return [1, math.log(line / (1 - line)), min(rivals["margin"], 0.6), min(max(rivals["recent"], 0), 1),
            math.log(min(max(nurseries, 0.03), 4)) if nurseries > 0 else 0, 1 if nurseries > 0 else 0]


def log_size(rivals):
    """How small a rise is: 0 is enough; 0 for descriptors and the like too."""
    if rivals["bytes"] <= 0:
        return 0
    return math.log(min(max(rivals["bytes"] / (4 << 20), rivals["share"], 0.05), 1))


def large_line(rivals):
    """How much more than enough a rise is, by bytes and by share, as far as it is a line."""
    if rivals["bytes"] <= 0:
        return 0
    largeness = min(rivals["bytes"] / (4 << 20), rivals["share"] / 0.25)
    return min(max(rivals["line"], 0.02), 0.99) * math.log(min(max(largeness, 1), 4))


def offset(rivals):
    return STAIRS * math.log(min(max(rivals["pieces"], 1), 8) / 8) + SMALL * log_size(rivals) + LARGE * large_line(rivals)


def judged(files, moment, judge):
    if not files:
        return []
    text = subprocess.run([judge, "--at", str(moment), *map(str, files)], stdout=subprocess.PIPE, check=True).stdout.decode()
    found = [verdict for verdict in map(json.loads, text.splitlines()) if verdict.get("rivals")]
    return [verdict for verdict in found if verdict["rivals"]["stairs"] == 0 and verdict["rivals"]["turns"] == 0]


def cases(options):
    """(program, features, offset, whether it leaks, what the Judge said, how small it is, how large)"""
    found = []
    for folder in options.folders:
        files = sorted(folder.glob("*.jsonl"))
        for moment in MOMENTS:
            for verdict in judged(files, moment, options.judge):
                program, form, _ = pathlib.Path(verdict["file"]).stem.rsplit("-", 2)
                found.append((program, features(verdict["rivals"]), offset(verdict["rivals"]), form == "leaks", verdict["confidence"],
                              log_size(verdict["rivals"]), large_line(verdict["rivals"])))
    if options.families:
        with open(HERE.parent / "scenarios/families.csv") as file:
            kinds = {row["family"]: row["kinds"] for row in csv.DictReader(file)}
        files = sorted(options.families.glob("*.jsonl"))
        for moment in (4, 6, 8, 10, 12, 14):
            for verdict in judged(files, moment, options.judge):
                family = pathlib.Path(verdict["file"]).stem.rsplit("-", 1)[0]
                found.append((family, features(verdict["rivals"]), offset(verdict["rivals"]), "leak" in kinds[family], verdict["confidence"],
                              log_size(verdict["rivals"]), large_line(verdict["rivals"])))
    return found


def weighed(found):
    """Each program counts the same, however often it was seen to rise."""
    counts = {}
    for program, *_ in found:
        counts[program] = counts.get(program, 0) + 1
    mean = len(found) / len(counts)
    return np.array([mean / counts[program] for program, *_ in found])


def fit(found):
    """Newton's steps on the likelihood, with a small penalty on all but the constant."""
    x = np.array([one[1] for one in found], float)
    given, y = np.array([one[2] for one in found]), np.array([one[3] for one in found], float)
    importance, weights = weighed(found), np.zeros(x.shape[1])
    penalty = np.diag([0] + [RIDGE] * (x.shape[1] - 1))
    for _ in range(50):
        p = 1 / (1 + np.exp(-(x @ weights + given)))
        gradient = x.T @ (importance * (y - p)) - penalty @ weights
        hessian = (x * (importance * p * (1 - p))[:, None]).T @ x + penalty + 1e-9 * np.eye(len(weights))
        weights += np.linalg.solve(hessian, gradient)
    return weights


def size_weight(found, which, now):
    """The weight of a size alone, which is `now`, all else as the Judge has it."""
    said = np.clip([one[4] for one in found], 1e-3, 1 - 1e-3)
    x, y = np.array([one[which] for one in found]), np.array([one[3] for one in found], float)
    given, importance, weight = np.log(said / (1 - said)) - now * x, weighed(found), 0.0
    for _ in range(50):
        p = 1 / (1 + np.exp(-(weight * x + given)))
        weight += (np.sum(importance * (y - p) * x) - RIDGE * weight) / (np.sum(importance * p * (1 - p) * x * x) + RIDGE)
    return weight


def confidences(found, weights):
    return [1 / (1 + math.exp(-(float(np.dot(one[1], weights)) + one[2]))) for one in found]


def tell(title, pairs):
    loss = -sum(math.log(max(1e-9, p if y else 1 - p)) for p, y in pairs) / len(pairs)
    said = [y for p, y in pairs if p >= SURE_ENOUGH]
    unsaid = [y for p, y in pairs if p < SURE_ENOUGH]
    print(f"{title}: {len(pairs)} rises, log loss {loss:.3f}; at {SURE_ENOUGH} and more {len(said)}, of them leaks {sum(said)}; "
          f"below {len(unsaid)}, of them leaks {sum(unsaid)}")
    for low, high in ((0, 0.5), (0.5, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 1.01)):
        some = [y for p, y in pairs if low <= p < high]
        if some:
            print(f"  {low:.2f} to {min(high, 1):.2f}: {len(some)} rises, {100 * sum(some) / len(some):.0f} % leaks")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--families", type=pathlib.Path)
    parser.add_argument("--judge", default=str(BUILD / "tests/plimsoll_judge"))
    options = parser.parse_args()
    found = cases(options)
    weights = fit(found)
    for name, weight in zip(NAMES, weights):
        print(f"{name}: {weight:.3f}")
    for size, which, now in (("small", 5, SMALL), ("large", 6, LARGE)):
        apart = [size_weight([one for one in found if one[0] != program], which, now) for program in sorted({one[0] for one in found})]
        print(f"log of a {size} size, by itself: {size_weight(found, which, now):.3f}, with programs left out in turn {min(apart):.3f} to {max(apart):.3f}")
    tell("fitted", list(zip(confidences(found, weights), [one[3] for one in found])))
    apart = []
    for program in sorted({one[0] for one in found}):
        rest, own = [one for one in found if one[0] != program], [one for one in found if one[0] == program]
        apart += zip(confidences(own, fit(rest)), [one[3] for one in own])
    tell("left out in turn", apart)
    tell("as the Judge has them", [(one[4], one[3]) for one in found])


if __name__ == "__main__":
    main()
