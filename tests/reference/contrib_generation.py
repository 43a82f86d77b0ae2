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


def beam_loop(ids, logits_of, inputs, attrs, outputs, adjust=lambda scores, rows: scores):
    """Follows the beams of prompts; logits_of(rows, step) tells of the next token."""
    _, most, minimum, beams, returned, penalty, *rest = (*inputs, *[None] * 6)[:9]
    beams, returned, pad, eos = int(beams[0]), int(returned[0]), attrs["pad_token_id"], attrs["eos_token_id"]
    penalty = 1.0 if penalty is None else float(penalty[0])
    rows = np.repeat(ids, beams, 0)
    totals = np.where(np.arange(len(rows)) % beams == 0, 0, -1e9).astype(np.float32)
    kept = [Kept(beams, penalty) for _ in ids]
    for step in range(int(most[0]) - ids.shape[1]):
        logits = logits_of(rows, step)
        scores = logits - logits.max(1, keepdims=True)
        scores = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        scores = adjust(process(scores, rows, attrs, step, minimum, *rest, beams=beams), rows)
        scores = scores.astype(np.float32) + totals[:, None]  # as float32 has it: two forbidden words are minus infinity
        parents, tokens, totals = np.zeros(len(rows), int), np.full(len(rows), pad), np.zeros(len(rows), np.float32)
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
    sequences, ratings = np.full([len(ids), returned, int(most[0])], pad, np.int32), np.zeros([len(ids), returned])
    for b, group in enumerate(kept):
        for i in range(0 if group.done else beams):
            group.add(rows[b * beams + i], totals[b * beams + i])
        for i in range(returned):
            ratings[b, i], tokens = group.entries[i]
            sequences[b, i, :len(tokens)] = tokens
    return [(sequences, "int32"), ratings][:outputs]


@contrib("BeamSearch", beam_cases)
def beam_search(inputs, attrs, network, outputs, **_):
    if "encoder" in attrs:
        return encoded_beam_search(inputs, attrs, network, outputs)
    ids, beams = inputs[0], int(inputs[3][0])
    mask, places = prompt_state(np.repeat(ids, beams, 0), attrs["pad_token_id"])
    counts, state = mask.sum(1).astype(int), [mask, places]

    def logits_of(rows, step):
        if step:
            state[:] = grow(*state, counts, step - 1)
        return network.logits(rows, state[1], state[0])
    return beam_loop(ids, logits_of, inputs, attrs, outputs)


class Listener:
    """A decoder that mixes its last token, the mean of its tokens and the mean of what the encoder shows."""
    FEATURES = 3

    def __init__(self, rng, words, form):
        self.width, self.words, self.hears = 4, words, form.startswith("whisper")
        self.has_logits, self.hidden = self.hears or "old" in form, "hidden" in form
        self.asks_ids, self.whole_rows = "ids" in form, "whole" in form
        weights = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)  # noqa: E731
        self.embedding, self.heard = weights(words, self.width), weights(self.FEATURES, self.width)
        self.read, self.head = weights(words, self.width), 3 * weights(self.width, words)

    def encoded(self, source):
        if self.hears:
            return np.swapaxes(source, 1, 2).astype(float) @ self.heard
        return self.read[source].astype(float)

    def logits(self, rows, encoded, mask):
        x = self.embedding[rows].astype(float)
        seen = (encoded * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return np.tanh(x[:, -1] + x.mean(1) + seen) @ self.head

    @staticmethod
    def mean(x, axes, longest, name):
        """Over `axes`, of which `longest` has the elements."""
        return [Node("ReduceSum", [x, axes], [f"{name}_sum"], {"keepdims": 0}), Node("Shape", [x], [f"{name}_shape"]),
                Node("Gather", [f"{name}_shape", f"at_{longest}"], [f"{name}_size"]), Node("Cast", [f"{name}_size"], [f"{name}_count"], {"to": FLOAT}),
                Node("Div", [f"{name}_sum", f"{name}_count"], [name])]

    def mixed(self, past, cross):
        """[rows, 1, words] from x, all tokens, and the encoder's [rows, length, width]."""
        shown = [Node("Cast", ["encoder_attention_mask"], ["flags"], {"to": FLOAT}), Node("Unsqueeze", ["flags", "axis_2"], ["flag"]),
                 Node("Mul", [cross, "flag"], ["lit"]), Node("ReduceSum", ["lit", "axis_1"], ["light"], {"keepdims": 0}),
                 Node("ReduceSum", ["flags", "axis_1"], ["count"], {"keepdims": 1}), Node("Div", ["light", "count"], ["seen"])]
        if self.hears:
            shown = self.mean(cross, "axis_1", 1, "seen")
        return shown + self.mean(past, "axes_12", 2, "mean") + [
                        Node("Slice", ["x", "last", "end", "axis_1"], ["last_x"]), Node("Squeeze", ["last_x", "axis_1"], ["now"]),
                        Node("Add", ["now", "mean"], ["near"]), Node("Add", ["near", "seen"], ["all"]), Node("Tanh", ["all"], ["bent"]),
                        Node("MatMul", ["bent", "head"], ["flat"]), Node("Unsqueeze", ["flat", "axis_1"], ["logits"])]

    def graph(self, nodes, inputs, outputs, name):
        integers = {"axis_1": [1], "axis_2": [2], "axes_12": [1, 2], "last": [-1], "end": [1 << 40], "at_1": 1, "at_2": 2}
        initializers = {key: np.array(value, np.int64) for key, value in integers.items()}
        initializers.update(embedding=self.embedding, heard=self.heard, read=self.read, head=self.head)
        used = {i for node in nodes for i in node.inputs}
        return Graph(nodes, inputs, outputs, {k: v for k, v in initializers.items() if k in used}, name=name)

    def encoder(self):
        nodes = [Node("Gather", ["read", "encoder_input_ids"], ["encoder_hidden_states"])]
        inputs = [("encoder_input_ids", INT, ["b", "e"]), ("encoder_attention_mask", INT, ["b", "e"])]
        if self.hears:
            nodes = [Node("Transpose", ["encoder_input_ids"], ["turned"], {"perm": [0, 2, 1]}),
                     Node("MatMul", ["turned", "heard"], ["encoder_hidden_states"])]
            inputs = [("encoder_input_ids", FLOAT, ["b", self.FEATURES, "e"])]
        cross = [Node("Unsqueeze", ["encoder_hidden_states", "axis_1"], [f"present_{part}_cross_0"]) for part in ("key", "value")]
        outputs = [(f"present_{part}_cross_0", FLOAT, ["b", 1, "e", self.width]) for part in ("key", "value")]
        if not self.has_logits:
            return self.graph(nodes + cross, inputs, outputs, "encoder")
        inputs.append(("decoder_input_ids", INT, ["b", "s"]))
        nodes += [Node("Gather", ["embedding", "decoder_input_ids"], ["x"])]
        nodes += [Node("Unsqueeze", ["x", "axis_1"], [f"present_{part}_self_0"]) for part in ("key", "value")]
        nodes += self.mixed("present_value_self_0", "encoder_hidden_states")
        first = [("logits", FLOAT, ["b", 1, self.words]), ("encoder_hidden_states", FLOAT, ["b", "e", self.width])]
        first += [(f"present_{part}_self_0", FLOAT, ["b", 1, "s", self.width]) for part in ("key", "value")]
        return self.graph(nodes + cross, inputs, first + outputs, "encoder")

    def decoder(self):
        inputs = [("input_ids", INT, ["b", "s" if self.whole_rows else 1])]
        inputs += [("encoder_input_ids", INT, ["b", "e"])] * self.asks_ids
        inputs += [("encoder_attention_mask", INT, ["b", "e"])] * (not self.hears)
        inputs += [("encoder_hidden_states", FLOAT, ["b", "e", self.width])] * self.hidden
        nodes = [Node("Gather", ["embedding", "input_ids"], ["tokens"]), Node("Slice", ["tokens", "last", "end", "axis_1"], ["x"]),
                 Node("Unsqueeze", ["x", "axis_1"], ["new"]), Node("Squeeze", ["past_value_cross_0", "axis_1"], ["crossed"])]
        for part in ("key", "value"):
            inputs.append((f"past_{part}_self_0", FLOAT, ["b", 1, "p", self.width]))
            nodes.append(Node("Concat", [f"past_{part}_self_0", "new"], [f"present_{part}_self_0"], {"axis": 2}))
        inputs += [(f"past_{part}_cross_0", FLOAT, ["b", 1, "e", self.width]) for part in ("key", "value")]
        nodes += self.mixed("present_value_self_0", "encoder_hidden_states" if self.hidden else "crossed")
        outputs = [("logits", FLOAT, ["b", 1, self.words])]
        outputs += [(f"present_{part}_self_0", FLOAT, ["b", 1, "t", self.width]) for part in ("key", "value")]
        return self.graph(nodes, inputs, outputs, "decoder")


FORMS = ["t5 new", "t5 new whole", "t5 old", "t5 old hidden", "t5 old hidden ids", "whisper", "whisper hidden"]


def listening_cases(rng, forms=FORMS):
    words, batch, length = some(rng, 12, 4), some(rng, 3), some(rng, 5)
    network = Listener(rng, words, choice(rng, forms))
    source = rng.uniform(-1, 1, [batch, Listener.FEATURES, length]).astype(np.float32) if network.hears else rng.integers(
        0, words - 1, [batch, length]).astype(np.int32)
    if not network.hears and rng.random() < 0.3 and length > 1:
        source[0, 0] = words - 1  # padding on the left
    mask = None
    if not network.hears and rng.random() < 0.3:
        mask = (rng.random([batch, length]) < 0.7).astype(np.int32)
        mask[:, -1] = 1
    first = None
    if network.hears and rng.random() < 0.7:
        first = rng.integers(0, words - 1, [batch, some(rng, 3)]).astype(np.int32)
    beams, begins = some(rng, 4), 1 if first is None else first.shape[1]
    most = begins + some(rng, 8, 2)
    attrs = {"encoder": network.encoder(), "decoder": network.decoder(), "model_type": 2 if network.hears else 1,
             "eos_token_id": some(rng, words - 2, 0), "pad_token_id": words - 1, "decoder_start_token_id": some(rng, words - 2, 0)}
    if rng.random() < 0.5:
        attrs["early_stopping"] = 1
    number = lambda value: np.array([value], np.int32)  # noqa: E731
    inputs = [source, number(most), number(begins + some(rng, 3)) if rng.random() < 0.3 else None, number(beams),
              number(some(rng, beams)), np.array([rng.uniform(0.5, 1.5)], np.float32), None,
              None, None, mask, first]
    while inputs[-1] is None:
        inputs.pop()
    return {"inputs": inputs, "attrs": attrs, "network": network, "outputs": choice(rng, [1, 2]), "rtol": 1e-4, "atol": 1e-4}


def encoded_beam_search(inputs, attrs, network, outputs, adjust=lambda scores, rows: scores, **_):
    source, mask, first = inputs[0], *(*inputs, *[None] * 11)[9:11]
    beams = int(inputs[3][0])
    if first is None:
        first = np.full([len(source), 1], attrs["decoder_start_token_id"], np.int32)
    if mask is None:
        mask = np.ones([len(source), source.shape[-1]])
        if not network.hears:
            mask = (np.cumsum(source != attrs["pad_token_id"], 1) > 0).astype(float)
    encoded, mask = np.repeat(network.encoded(source), beams, 0), np.repeat(mask, beams, 0)
    return beam_loop(first, lambda rows, _: network.logits(rows, encoded, mask), inputs[:9], attrs, outputs, adjust)


contrib("BeamSearch", listening_cases)(encoded_beam_search)


def timestamp_rules(scores, rows, attrs):
    """Timestamps begin at `first`, come in pairs, and do not go back."""
    first, eos = attrs["beginning_timestamp_token_id"], attrs["eos_token_id"]
    for score, row in zip(scores, rows.tolist()):
        times = [t for t in row if t >= first]
        begin = next((i + 1 for i, t in enumerate(row) if t >= first), len(row))
        score[[attrs["no_timestamps_token_id"], attrs["start_of_lm_token_id"]]] = LOWEST
        if len(row) > begin:
            score[[attrs["decoder_start_token_id"], attrs["translate_token_id"], attrs["transcribe_token_id"]]] = LOWEST
        one = row[-1] >= first
        two = len(row) <= begin or row[-2] >= first
        if one and two:
            score[first:] = LOWEST
        elif one:
            score[:eos] = LOWEST
        if times:
            score[first:times[-1] + (0 if one and not two else 1)] = LOWEST
        if len(row) == begin:
            score[first + 51:] = LOWEST
        shown = score[first:][score[first:] > LOWEST]
        if shown.size and np.log(np.exp(shown - shown.max()).sum()) + shown.max() > score[:first].max():
            score[:first] = LOWEST
    return scores


def whisper_cases(rng):
    while True:
        case = listening_cases(rng, ["whisper", "whisper hidden"])
        words, attrs = case["network"].words, case["attrs"]
        if words < 10:
            continue
        del attrs["model_type"]
        attrs.update(eos_token_id=4, decoder_start_token_id=0, translate_token_id=1, transcribe_token_id=2, start_of_lm_token_id=3,
                     no_timestamps_token_id=5, beginning_timestamp_token_id=6)
        inputs = [*case["inputs"], *[None] * 15][:15]
        inputs[11] = np.array([int(rng.integers(2))], np.int32) if rng.random() < 0.8 else None
        inputs[14] = np.array([rng.uniform(0.5, 2)], np.float32) if rng.random() < 0.5 else None
        while inputs[-1] is None:
            inputs.pop()
        return {**case, "inputs": inputs}


@contrib("WhisperBeamSearch", whisper_cases)
def whisper_beam_search(inputs, attrs, network, outputs, **_):
    processor, temperature = (*inputs, *[None] * 15)[11], (*inputs, *[None] * 15)[14]

    def adjust(scores, rows):
        if temperature is not None:
            with np.errstate(over="ignore"):
                scores = np.where(scores == LOWEST, np.float32(LOWEST) / temperature[0], scores / temperature[0])
        return timestamp_rules(scores, rows, attrs) if processor is not None and processor[0] == 1 else scores
    return encoded_beam_search(inputs, attrs, network, outputs, adjust=adjust)


def sampling_cases(rng):
    case = greedy_cases(rng)
    case["attrs"].pop("no_repeat_ngram_size", None)  # where all words are forbidden, none is the likeliest: some word is not
    for mask in case["inputs"][4:6]:
        if mask is not None:
            mask[..., :2] = 1
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
T5 = Listener(np.random.default_rng(0), 6, "t5 old")
LISTENS = {"encoder": T5.encoder(), "decoder": T5.decoder(), "eos_token_id": 0, "pad_token_id": 5, "model_type": 1}
refuses("BeamSearch", [IDS, MOST, None, ONE, ONE], LISTENS, says="decoder_start_token_id")
refuses("BeamSearch", [IDS, MOST, None, ONE, ONE], {**LISTENS, "decoder": NETWORK.graph()}, says="a decoder with 4 inputs")
refuses("BeamSearch", [IDS, MOST, None, ONE, ONE], {**LISTENS, "encoder": NETWORK.graph()}, says="an encoder with 4 inputs")
refuses("BeamSearch", [IDS, MOST, None, ONE, ONE], {**LISTENS, "model_type": 3}, says="model_type")
refuses("BeamSearch", [IDS, MOST, None, ONE, ONE], {**LISTENS, "model_type": 2}, says="an encoder with 3 inputs")
refuses("BeamSearch", [IDS, MOST, None, ONE, ONE], {**ATTRS, "encoder": T5.encoder()}, says="model_type 0")
refuses("BeamSearch", [IDS, ONE, None, ONE, ONE], {**LISTENS, "decoder_start_token_id": 1}, says="max_length")
refuses("BeamSearch", [IDS, MOST, None, ONE, ONE, None, None, None, None, ONE], {**LISTENS, "decoder_start_token_id": 1}, says="attention_mask")
refuses("Sampling", [IDS, MOST], {**ATTRS, "min_tokens_to_keep": 6}, says="min_tokens_to_keep")
refuses("Sampling", [IDS, MOST, None, None, None, None, None, ONE], ATTRS, says="presence_mask")
