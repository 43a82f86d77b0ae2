"""GreedySearch, Sampling and BeamSearch of com.microsoft around a decoder small enough to write twice."""
import numpy as np

from contrib import contrib, refuses, some
from harness import choice
from model_file import Graph, Node

INT, FLOAT = 6, 1
LOWEST = np.finfo(np.float32).min


class Decoder:
    """Mixes the embeddings of all tokens that the mask shows with those of the last; its cache is the embeddings."""

    def __init__(self, rng, words, positions, layers):
        self.width, self.layers = 4, layers
        self.embedding = rng.uniform(-1, 1, [words, self.width]).astype(np.float32)
        self.positions = rng.uniform(-1, 1, [positions, self.width]).astype(np.float32)
        self.head = rng.uniform(-3, 3, [self.width, words]).astype(np.float32)

    def logits(self, rows, positions, mask):
        x = self.embedding[rows].astype(float) + self.positions[positions]
        context = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return np.tanh(x[:, -1] + self.layers * context) @ self.head

    def graph(self):
        nodes = [Node("Gather", ["embedding", "input_ids"], ["words"]), Node("Gather", ["positions", "position_ids"], ["places"]),
                 Node("Add", ["words", "places"], ["x"]), Node("Unsqueeze", ["x", "axes_02"], ["one"]),
                 Node("Concat", ["one", "one"], ["new"], {"axis": 0}), Node("Cast", ["attention_mask"], ["flags"], {"to": FLOAT}),
                 Node("Unsqueeze", ["flags", "axes_1_3"], ["shown"]),
                 Node("ReduceSum", ["flags", "axis_1"], ["count"], {"keepdims": 1}),
                 Node("Unsqueeze", ["count", "axis_2"], ["total"])]
        sums = []
        for i in range(self.layers):
            nodes += [Node("Concat", [f"past_{i}", "new"], [f"present_{i}"], {"axis": 3}),
                      Node("Gather", [f"present_{i}", "zero"], [f"keys_{i}"], {"axis": 0}),
                      Node("Mul", [f"keys_{i}", "shown"], [f"seen_{i}"]),
                      Node("ReduceSum", [f"seen_{i}", "axis_2"], [f"sum_{i}"], {"keepdims": 0})]
            sums.append(f"sum_{i}")
        for i, name in enumerate(sums[1:]):
            nodes.append(Node("Add", [sums[0] if i == 0 else f"sums_{i - 1}", name], [f"sums_{i}"]))
        nodes += [Node("Identity", [f"sums_{len(sums) - 2}" if len(sums) > 1 else sums[0]], ["sums"]), Node("Div", ["sums", "total"], ["context"]), Node("Add", ["x", "context"], ["mixed"]),
                  Node("Tanh", ["mixed"], ["hidden"]), Node("MatMul", ["hidden", "head"], ["logits"])]
        words = self.embedding.shape[0]
        past = [2, "b", 1, "p", self.width]
        inputs = [("input_ids", INT, ["b", "s"]), ("position_ids", INT, ["b", "s"]), ("attention_mask", INT, ["b", "t"])]
        inputs += [(f"past_{i}", FLOAT, past) for i in range(self.layers)]
        outputs = [("logits", FLOAT, ["b", "s", words])]
        outputs += [(f"present_{i}", FLOAT, [2, "b", 1, "t", self.width]) for i in range(self.layers)]
        integers = {"axes_02": [0, 2], "axes_1_3": [1, 3], "axis_1": [1], "axis_2": [2]}
        initializers = {name: np.array(value, np.int64) for name, value in integers.items()}
        initializers.update(zero=np.array(0, np.int64), embedding=self.embedding, positions=self.positions, head=self.head)
        return Graph(nodes, inputs, outputs, initializers, name="decoder")


def prompt_cases(rng):
    words, batch, length = some(rng, 12, 4), some(rng, 3), some(rng, 4)
    most = length + some(rng, 8)
    decoder = Decoder(rng, words, most + 1, some(rng, 2))
    attrs = {"decoder": decoder.graph(), "eos_token_id": some(rng, words - 1, 0), "pad_token_id": words - 1}
    if rng.random() < 0.3:
        attrs["init_decoder"] = decoder.graph()
    if rng.random() < 0.3:
        attrs["no_repeat_ngram_size"] = some(rng, 3)
    ids = rng.integers(0, words - 1, [batch, length]).astype(np.int32)
    if rng.random() < 0.3 and length > 1:
        ids[0, 0] = words - 1  # padding
    number = lambda value: np.array([value], np.int32)  # noqa: E731
    minimum = number(length + some(rng, 3)) if rng.random() < 0.3 else None
    repetition = np.array([rng.uniform(0.8, 1.6)], np.float32) if rng.random() < 0.4 else None
    vocab_mask = (rng.random(words) < 0.8).astype(np.int32) if rng.random() < 0.3 else None
    prefix_mask = (rng.random([batch, words]) < 0.8).astype(np.int32) if rng.random() < 0.3 else None
    return decoder, attrs, ids, number(most), minimum, repetition, vocab_mask, prefix_mask


def greedy_cases(rng):
    decoder, attrs, ids, most, minimum, repetition, vocab_mask, prefix_mask = prompt_cases(rng)
    inputs = [ids, most, minimum, repetition, vocab_mask, prefix_mask]
    while inputs[-1] is None:
        inputs.pop()
    constants = [1] if rng.random() < 0.5 else []
    return {"inputs": inputs, "attrs": attrs, "network": decoder, "constant_inputs": constants}


def process(scores, rows, attrs, step, minimum, repetition, vocab_mask, prefix_mask, beams=1):
    for r, row in enumerate(rows):
        if repetition is not None:
            for word in set(row.tolist()):
                scores[r, word] *= repetition[0] if scores[r, word] < 0 else 1 / repetition[0]
        n = attrs.get("no_repeat_ngram_size", 0)
        if 0 < n <= len(row):
            tail = row[len(row) - n + 1:].tolist()
            for j in range(len(row) - n + 1):
                if row[j:j + n - 1].tolist() == tail:
                    scores[r, row[j + n - 1]] = LOWEST
        if vocab_mask is not None:
            scores[r, vocab_mask == 0] = LOWEST
        if prefix_mask is not None and step == 0:
            scores[r, prefix_mask[r // beams] == 0] = LOWEST
        if minimum is not None and len(row) < minimum[0]:
            scores[r, attrs["eos_token_id"]] = LOWEST
    return scores


def prompt_state(ids, pad):
    mask = (ids != pad).astype(float)
    places = np.where(ids == pad, 0, np.cumsum(mask, 1) - 1).astype(int)
    return mask, places


def grow(mask, places, counts, step):
    rows = mask.shape[0]
    return np.concatenate([mask, np.ones([rows, 1])], 1), np.concatenate([places, (counts + step)[:, None]], 1)


@contrib("GreedySearch", greedy_cases)
def greedy_search(inputs, attrs, network, **_):
    ids, most, *rest = (*inputs, *[None] * 4)[:6]
    pad, eos, rows = attrs["pad_token_id"], attrs["eos_token_id"], ids.copy()
    mask, places = prompt_state(ids, pad)
    counts, ended = mask.sum(1).astype(int), np.zeros(len(ids), bool)
    for step in range(int(most[0]) - ids.shape[1]):
        scores = process(network.logits(rows, places, mask), rows, attrs, step, *rest)
        tokens = scores.argmax(1)
        ended |= tokens == eos
        rows = np.concatenate([rows, np.where(ended, pad, tokens)[:, None]], 1).astype(np.int32)
        if ended.all():
            break
        mask, places = grow(mask, places, counts, step)
    missing = int(most[0]) - rows.shape[1]
    return [(np.concatenate([rows, np.full([len(ids), missing], pad)], 1).astype(np.int32), "int32")]


def beam_cases(rng):
    decoder, attrs, ids, most, minimum, repetition, vocab_mask, prefix_mask = prompt_cases(rng)
    beams = some(rng, 4)
    if rng.random() < 0.5:
        attrs["early_stopping"] = 1
    inputs = [ids, most, minimum, np.array([beams], np.int32), np.array([some(rng, beams)], np.int32),
              np.array([rng.uniform(0.5, 1.5)], np.float32) if rng.random() < 0.5 else None, repetition, vocab_mask, prefix_mask]
    while inputs[-1] is None:
        inputs.pop()
    constants = choice(rng, [[], [1, 3, 4]])
    return {"inputs": inputs, "attrs": attrs, "network": decoder, "constant_inputs": constants, "outputs": choice(rng, [1, 2]),
            "rtol": 1e-4, "atol": 1e-4}


class Kept:
    def __init__(self, beams, penalty):
        self.entries, self.beams, self.penalty, self.done = [], beams, penalty, False

    def add(self, row, total):
        score = total / len(row) ** self.penalty
        if len(self.entries) == self.beams and score <= self.entries[-1][0]:
            return
        self.entries = sorted([*self.entries, (score, row.tolist())], key=lambda entry: -entry[0])[:self.beams]


@contrib("BeamSearch", beam_cases)
def beam_search(inputs, attrs, network, outputs, **_):
    ids, most, minimum, beams, returned, penalty, *rest = (*inputs, *[None] * 6)[:9]
    beams, returned, pad, eos = int(beams[0]), int(returned[0]), attrs["pad_token_id"], attrs["eos_token_id"]
    penalty = 1.0 if penalty is None else float(penalty[0])
    rows = np.repeat(ids, beams, 0)
    mask, places = prompt_state(rows, pad)
    counts = mask.sum(1).astype(int)
    totals = np.where(np.arange(len(rows)) % beams == 0, 0, -1e9)
    kept = [Kept(beams, penalty) for _ in ids]
    for step in range(int(most[0]) - ids.shape[1]):
        logits = network.logits(rows, places, mask)
        scores = logits - logits.max(1, keepdims=True)
        scores = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        scores = process(scores, rows, attrs, step, minimum, *rest, beams=beams) + totals[:, None]
        parents, tokens, totals = np.zeros(len(rows), int), np.full(len(rows), pad), np.zeros(len(rows))
        for b, group in enumerate(kept):
            parents[b * beams:(b + 1) * beams] = b * beams
            if group.done:
                continue
            flat = scores[b * beams:(b + 1) * beams].ravel()
            best = np.lexsort([np.arange(flat.size), -flat])[:2 * beams]
            used = 0
            for j, at in enumerate(best):
                parent, token = b * beams + at // scores.shape[1], at % scores.shape[1]
                if token == eos:
                    if j < beams:
                        group.add(rows[parent], flat[at])
                    continue
                parents[b * beams + used], tokens[b * beams + used], totals[b * beams + used] = parent, token, flat[at]
                used += 1
                if used == beams:
                    break
            if len(group.entries) == beams:
                group.done = bool(attrs.get("early_stopping")) or group.entries[-1][0] >= flat[best[0]] / rows.shape[1] ** penalty
        rows = np.concatenate([rows[parents], tokens[:, None]], 1).astype(np.int32)
        if all(group.done for group in kept):
            break
        mask, places = grow(mask, places, counts, step)
    sequences, ratings = np.full([len(ids), returned, int(most[0])], pad, np.int32), np.zeros([len(ids), returned])
    for b, group in enumerate(kept):
        for i in range(0 if group.done else beams):
            group.add(rows[b * beams + i], totals[b * beams + i])
        for i in range(returned):
            ratings[b, i], tokens = group.entries[i]
            sequences[b, i, :len(tokens)] = tokens
    return [(sequences, "int32"), ratings][:outputs]


def sampling_cases(rng):
    case = greedy_cases(rng)
    case["attrs"].pop("no_repeat_ngram_size", None)  # all words forbidden are all alike
    case["attrs"].update(top_p=0.0, custom=1, temperature=float(rng.uniform(0.5, 2)))
    return case


# top_p 0 with the most likely first leaves only that one: sampling is greedy search.
contrib("Sampling", sampling_cases)(greedy_search)

NETWORK = Decoder(np.random.default_rng(0), 6, 9, 1)
ATTRS = {"decoder": NETWORK.graph(), "eos_token_id": 0, "pad_token_id": 5}
IDS, MOST, ONE = np.ones([1, 3], np.int32), np.array([6], np.int32), np.array([1], np.int32)
refuses("GreedySearch", [IDS, MOST - 3], ATTRS, says="max_length")
refuses("GreedySearch", [IDS, MOST], {"eos_token_id": 0, "pad_token_id": 5}, says="decoder")
refuses("GreedySearch", [IDS, MOST], {**ATTRS, "model_type": 1}, says="model_type")
refuses("GreedySearch", [IDS[:, :0], MOST], ATTRS, says="prompt")
refuses("GreedySearch", [IDS, MOST, None, ONE.astype(np.float32) - 1], ATTRS, says="repetition_penalty")
refuses("GreedySearch", [IDS, MOST, None, None, np.ones(5, np.int32)], ATTRS, says="vocab_mask")
refuses("GreedySearch", [IDS, MOST, None, None, None, None, ONE], ATTRS, says="attention_mask")
refuses("GreedySearch", [IDS, MOST], {**ATTRS, "vocab_size": 7}, says="vocab_size 7")
refuses("GreedySearch", [IDS + 9, MOST], ATTRS, says="10")
refuses("BeamSearch", [IDS, MOST, None, ONE - 1, ONE], ATTRS, says="num_beams")
refuses("BeamSearch", [IDS, MOST, None, ONE, ONE + 1], ATTRS, says="num_return_sequences")
refuses("Sampling", [IDS, MOST], {**ATTRS, "min_tokens_to_keep": 6}, says="min_tokens_to_keep")
refuses("Sampling", [IDS, MOST, None, None, None, None, None, ONE], ATTRS, says="presence_mask")
