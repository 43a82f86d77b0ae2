"""Strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer, and movement of strings."""
import re

import numpy as np

from harness import broadcastable, choice, random_shape, reference, rejects

WORDS = ["", "a", "bc", "Straße", "ÉCOLE", "Ωμέγα", "ПРИВЕТ мир", "tab\there", "  two  spaces ", "日本語", "x,y,,z", "🙂",
         "a b c", "monday", "Monday", "TUESDAY", ",", "12", "a1b2"]


def texts(rng, shape, words=None):
    words = words or WORDS
    array = np.empty(shape, object)
    for at in np.ndindex(*shape):
        array[at] = choice(rng, words)
    return array


def concat_cases(rng):
    shape = random_shape(rng)
    return {"inputs": [texts(rng, broadcastable(rng, shape)), texts(rng, shape)], "opset": 20}


@reference("StringConcat", lambda rng: concat_cases(rng) | {"constant_inputs": [0, 1]}, name="StringConcat of constants")
@reference("StringConcat", concat_cases)
def string_concat(inputs, **_):
    return [np.asarray(np.add(inputs[0], inputs[1]), object)]


def split_cases(rng):
    attrs = {}
    if rng.random() < 0.7:
        attrs["delimiter"] = choice(rng, ["", ",", " ", "a", "ab", "本"])
    if rng.random() < 0.5:
        attrs["maxsplit"] = int(rng.integers(0, 3))
    return {"inputs": [texts(rng, random_shape(rng, most=4))], "attrs": attrs, "opset": 20, "outputs": 2}


@reference("StringSplit", split_cases)
def string_split(inputs, attrs, **_):
    (x,) = inputs
    delimiter, most = attrs.get("delimiter") or None, attrs.get("maxsplit", -1)
    pieces = [(text if delimiter else text.strip()).split(delimiter, most) for text in x.ravel()]
    longest = max([len(p) for p in pieces], default=0)
    split = np.empty([len(pieces), longest], object)
    for i, row in enumerate(pieces):
        split[i, :] = row + [""] * (longest - len(row))
    return [split.reshape([*x.shape, longest]), np.array([len(p) for p in pieces], np.int64).reshape(x.shape)]


def simple_case(text, change):
    """One character to one, as Unicode's table of simple mappings has it."""
    mapped = [getattr(c, change)() for c in text]
    return "".join(m if len(m) == 1 else "i" if c == "\u0130" and change == "lower" else c for c, m in zip(text, mapped))


def normalizer_cases(rng):
    count = int(rng.integers(0, 7))
    attrs = {}
    if rng.random() < 0.8:
        attrs["case_change_action"] = choice(rng, ["LOWER", "UPPER", "NONE"])
    if rng.random() < 0.6:
        attrs["is_case_sensitive"] = int(rng.integers(0, 2))
    if rng.random() < 0.7:
        attrs["stopwords"] = [choice(rng, WORDS) for _ in range(3)]
    if rng.random() < 0.2:
        attrs["locale"] = "de_DE"
    return {"inputs": [texts(rng, choice(rng, [[count], [1, count]]))], "attrs": attrs, "opset": 10}


@reference("StringNormalizer", normalizer_cases)
def string_normalizer(inputs, attrs, **_):
    (x,) = inputs
    def fold(text):
        return text if attrs.get("is_case_sensitive", 0) else simple_case(text, "lower")
    stops = {fold(word) for word in attrs.get("stopwords", [])}
    change = {"LOWER": "lower", "UPPER": "upper"}.get(attrs.get("case_change_action", "NONE"))
    kept = [text for text in x.ravel() if fold(text) not in stops] or [""]
    result = np.empty(len(kept), object)
    result[:] = [simple_case(text, change) if change else text for text in kept]
    return [result.reshape([*([1] if x.ndim == 2 else []), len(kept)])]


PATTERNS = ["a", "[a-z]*", r"\w+", ".*", "", "(a|bc)+", r"[^,]*,.*", "(?i)MONDAY", r"\d{2}", "日.?語", "x,y,,z"]


def regex_cases(rng):
    return {"inputs": [texts(rng, random_shape(rng, most=4))], "attrs": {"pattern": choice(rng, PATTERNS)}, "opset": 20}


@reference("RegexFullMatch", regex_cases)
def regex_full_match(inputs, attrs, **_):
    # In RE2 \w and \d are ASCII, a dot is no line end; Python's re.ASCII says the same of these patterns.
    flags = re.ASCII if "\\" in attrs["pattern"] else 0
    return [np.vectorize(lambda text: re.fullmatch(attrs["pattern"], text, flags) is not None, otypes=[bool])(inputs[0])]


def tfidf_cases(rng):
    use_text = rng.random() < 0.5
    vocabulary = ["a", "b", "c", "ab", ""] if use_text else [1, 5, 7, -3]
    lengths = int(rng.integers(1, 4))
    pool, starts, count = [], [], 0
    for n in range(1, lengths + 1):
        starts.append(len(pool))
        grams = {tuple(choice(rng, vocabulary) for _ in range(n)) for _ in range(int(rng.integers(0 if n < lengths else 1, 5)))}
        for gram in sorted(grams):
            pool += gram
            count += 1
    attrs = {"mode": choice(rng, ["TF", "IDF", "TFIDF"]), "min_gram_length": int(rng.integers(1, lengths + 1)),
             "max_skip_count": int(rng.integers(0, 4)), "ngram_counts": starts,
             "ngram_indexes": [int(i) for i in rng.permutation(count)], "pool_strings" if use_text else "pool_int64s": pool}
    attrs["max_gram_length"] = int(rng.integers(attrs["min_gram_length"], lengths + 1))
    if rng.random() < 0.6:
        attrs["weights"] = [float(w) for w in rng.uniform(0.5, 2, count).astype(np.float32)]
    shape = choice(rng, [[int(rng.integers(0, 9))], [int(rng.integers(1, 4)), int(rng.integers(0, 9))]])
    x = texts(rng, shape, vocabulary + ["unknown"]) if use_text else rng.choice(
        vocabulary + [99], shape).astype(choice(rng, [np.int32, np.int64]))
    return {"inputs": [x], "attrs": attrs, "opset": 9}


@reference("TfIdfVectorizer", tfidf_cases)
def tf_idf_vectorizer(inputs, attrs, **_):
    (x,) = inputs
    pool = attrs.get("pool_strings") or attrs["pool_int64s"]
    starts = attrs["ngram_counts"] + [len(pool)]
    grams = []
    for n in range(1, len(starts)):
        grams += [tuple(pool[i:i + n]) for i in range(starts[n - 1], starts[n], n)]
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    y = np.zeros([rows.shape[0], max(attrs["ngram_indexes"]) + 1])
    for row, result in zip(rows, y):
        for i, gram in enumerate(grams):
            n = len(gram)
            if not attrs["min_gram_length"] <= n <= attrs["max_gram_length"]:
                continue
            count = 0
            for skip in range(1 if n == 1 else attrs["max_skip_count"] + 1):
                for first in range(len(row)):
                    places = [first + k * (skip + 1) for k in range(n)]
                    count += places[-1] < len(row) and tuple(row[p] for p in places) == gram
            weight = attrs["weights"][i] if "weights" in attrs and attrs["mode"] != "TF" else 1.0
            result[attrs["ngram_indexes"][i]] += (min(count, 1) if attrs["mode"] == "IDF" else count) * weight
    return [y[0] if x.ndim == 1 else y]


def movement_cases(rng):
    shape = random_shape(rng, least=1, zeros=False)
    axis = int(rng.integers(len(shape)))
    return {"inputs": [texts(rng, shape), rng.integers(0, shape[axis], [3])], "attrs": {"axis": axis}, "opset": 13}


@reference("Gather", movement_cases, name="Gather of strings")
def gather(inputs, attrs, **_):
    return [np.take(inputs[0], inputs[1], attrs["axis"])]


def comparison_cases(rng):
    shape = random_shape(rng)
    return {"inputs": [texts(rng, shape), texts(rng, broadcastable(rng, shape), ["a", "bc", ""])], "opset": 19}


@reference("Equal", comparison_cases, name="Equal of strings")
def equal(inputs, **_):
    return [np.asarray(inputs[0] == inputs[1], bool)]


@reference("Where", lambda rng: {"inputs": [rng.random([2, 3]) < 0.5, texts(rng, [2, 3]), texts(rng, [1, 3])]},
           name="Where of strings")
def where(inputs, **_):
    return [np.where(*inputs)]


@reference("Concat", lambda rng: {"inputs": [texts(rng, [2, 3]), texts(rng, [2, 1])], "attrs": {"axis": 1}},
           name="Concat of strings")
def concat(inputs, attrs, **_):
    return [np.concatenate(inputs, 1)]


@reference("Unique", lambda rng: {"inputs": [texts(rng, [int(rng.integers(0, 20))])], "outputs": 4}, name="Unique of strings")
def unique(inputs, **_):
    encoded = [text.encode() for text in inputs[0]]
    values = sorted(set(encoded))
    result = np.empty(len(values), object)
    result[:] = [value.decode() for value in values]
    return [result, np.array([encoded.index(v) for v in values], np.int64),
            np.array([values.index(v) for v in encoded], np.int64), np.array([encoded.count(v) for v in values], np.int64)]


TEXT = np.array(["a", "b"], object)
BROKEN = np.array([b"ok", b"\xc3\x28"], object)
rejects("StringConcat", [TEXT], says="expected 2 to 2 inputs")
rejects("StringConcat", [TEXT, np.zeros(2, np.float32)], says="type")
rejects("StringConcat", [TEXT, np.array(["a", "b", "c"], object)], says="broadcast", opset=20)
rejects("StringSplit", [np.zeros(2, np.float32)], says="type float is not allowed", opset=20)
rejects("StringSplit", [BROKEN], says="expected UTF-8", opset=20)
rejects("StringSplit", [TEXT], {"maxsplits": 1}, says="unknown attribute", opset=20)
rejects("StringNormalizer", [BROKEN], {"case_change_action": "LOWER"}, says="element 1: expected UTF-8")
rejects("StringNormalizer", [TEXT], {"stopwords": [b"\xff"]}, says="expected UTF-8")
rejects("StringNormalizer", [TEXT], {"case_change_action": "TITLE"}, says="'TITLE'")
rejects("StringNormalizer", [np.array([["a"], ["b"]], object)], says="[1, C]")
rejects("StringNormalizer", [np.zeros(2)], says="type double is not allowed")
rejects("RegexFullMatch", [TEXT], {"pattern": "("}, says="missing )", opset=20)
rejects("RegexFullMatch", [TEXT], {"pattern": "((a{100}){100}){100}"}, says="repetition", opset=20)
rejects("RegexFullMatch", [TEXT], {"pattern": r"(\pL{500}\pN{500}){20}"}, says="is not an expression of RE2", opset=20)
rejects("RegexFullMatch", [TEXT], {"pattern": r"(a)\1"}, says="is not an expression of RE2", opset=20)
rejects("RegexFullMatch", [TEXT], says="attribute 'pattern' is missing", opset=20)
rejects("RegexFullMatch", [BROKEN], {"pattern": "a"}, says="expected UTF-8", opset=20)
GRAMS = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0],
         "ngram_indexes": [0, 1], "pool_int64s": [3, 4]}
NUMBERS = np.array([1, 2], np.int64)
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "mode": "BM25"}, says="'BM25'")
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "max_gram_length": 2}, says="'max_gram_length'")
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "min_gram_length": 0}, says="1 <= minimum")
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "max_skip_count": -1}, says="'max_skip_count'")
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "ngram_counts": [5]}, says="'ngram_counts'")
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "ngram_counts": [0, 1]}, says="whole 2-grams", )
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "ngram_indexes": [0]}, says="'ngram_indexes'")
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "ngram_indexes": [0, -1]}, says="'ngram_indexes': -1")
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "weights": [1.0]}, says="'weights'")
rejects("TfIdfVectorizer", [NUMBERS], {**GRAMS, "pool_strings": ["a"]}, says="expected one of")
rejects("TfIdfVectorizer", [TEXT], GRAMS, says="type string is not allowed")
rejects("TfIdfVectorizer", [np.zeros([1, 1, 1], np.int64)], GRAMS, says="rank")
