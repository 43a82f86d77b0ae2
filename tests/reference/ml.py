"""ai.onnx.ml, from the text of Operators-ml.md; where it leaves room, what ONNX Runtime gives (said at each place)."""
import math

import numpy as np

from harness import choice, random_shape, reference, rejects
from model_file import Attr, Map

ML = "ai.onnx.ml"
NUMERIC = [np.float32, np.float64, np.int64, np.int32]


def rows(rng, features=None, kinds=NUMERIC, zeros=True):
    """[N, C], or [C]."""
    features = int(rng.integers(1, 6)) if features is None else features
    shape = [features] if rng.random() < 0.2 else [int(rng.integers(0 if zeros else 1, 40)), features]
    kind = choice(rng, kinds)
    values = rng.normal(size=shape) * 3
    return (np.round(values) if np.issubdtype(kind, np.integer) else values).astype(kind)


def floats(rng, count, low=-2.0, high=2.0):
    return [float(v) for v in rng.uniform(low, high, count).astype(np.float32)]


def case(opset, **arguments):
    return dict(arguments, domain=ML, opset=opset)


# ---- features --------------------------------------------------------------------------------------


@reference("Binarizer", lambda rng: case(1, inputs=[rows(rng)], attrs={"threshold": 0.5} if rng.random() < 0.7 else {}))
def binarizer(inputs, attrs, **_):
    return [(inputs[0] > attrs.get("threshold", 0.0)).astype(inputs[0].dtype)]


def scaler_cases(rng):
    x = rows(rng)
    count = choice(rng, [1, x.shape[-1]])
    return case(1, inputs=[x], attrs={"scale": floats(rng, count), "offset": floats(rng, count)}, atol=1e-6)


@reference("Scaler", scaler_cases)
def scaler(inputs, attrs, **_):
    return [((inputs[0].astype(np.float64) - attrs["offset"]) * attrs["scale"], "float")]


def normalizer_cases(rng):
    return case(1, inputs=[rows(rng)], attrs={"norm": choice(rng, ["MAX", "L1", "L2"])} if rng.random() < 0.9 else {})


@reference("Normalizer", normalizer_cases)
def normalizer(inputs, attrs, **_):
    x = inputs[0].astype(np.float64)
    if x.size == 0:
        return [(x, "float")]
    norm = {"MAX": lambda v: v.max(-1, keepdims=True), "L1": lambda v: np.abs(v).sum(-1, keepdims=True),
            "L2": lambda v: np.sqrt((v * v).sum(-1, keepdims=True))}[attrs.get("norm", "MAX")](x)
    return [(x / np.where(norm == 0, 1, norm), "float")]


def imputer_cases(rng):
    real = rng.random() < 0.6
    x = rows(rng, kinds=[np.float32, np.float64] if real else [np.int64, np.int32])
    count = choice(rng, [1, x.shape[-1]])
    if not real:
        return case(1, inputs=[x], attrs={"imputed_value_int64s": [int(v) for v in rng.integers(-9, 9, count)],
                                          "replaced_value_int64": int(rng.integers(-2, 3))})
    x[rng.random(x.shape) < 0.3] = np.nan
    return case(1, inputs=[x], attrs={"imputed_value_floats": floats(rng, count),
                                      "replaced_value_float": choice(rng, [math.nan, 0.0])})


@reference("Imputer", imputer_cases)
def imputer(inputs, attrs, **_):
    x = inputs[0]
    real = "imputed_value_floats" in attrs
    replaced = attrs["replaced_value_float" if real else "replaced_value_int64"]
    values = np.array(attrs["imputed_value_floats" if real else "imputed_value_int64s"], np.float32 if real else np.int64)
    missing = np.isnan(x) if real and math.isnan(replaced) else x == replaced
    return [np.where(missing, np.broadcast_to(values, x.shape), x).astype(x.dtype)]


def extractor_cases(rng):
    shape = random_shape(rng, least=1, zeros=False)
    x = rng.integers(-9, 9, shape).astype(choice(rng, NUMERIC))
    if rng.random() < 0.3:
        x = x.astype(str).astype(object)
    return case(1, inputs=[x, rng.integers(0, shape[-1], choice(rng, [[1], [4], [1, 3]]))])


@reference("ArrayFeatureExtractor", extractor_cases)
def array_feature_extractor(inputs, **_):
    taken = np.take(inputs[0], inputs[1].ravel(), -1)
    return [taken[None] if taken.ndim == 1 else taken]


def vectorizer_cases(rng):
    kind, count = choice(rng, NUMERIC), int(rng.integers(1, 5))
    x = [rng.integers(-9, 9, [count, int(rng.integers(1, 5))]).astype(kind) for _ in range(int(rng.integers(1, 4)))]
    return case(1, inputs=x, attrs={"inputdimensions": [t.shape[1] + int(rng.integers(-1, 2)) for t in x]})


@reference("FeatureVectorizer", vectorizer_cases)
def feature_vectorizer(inputs, attrs, **_):
    parts = []
    for x, size in zip(inputs, attrs["inputdimensions"]):
        cut = x[:, :size].astype(np.float64)
        parts.append(np.pad(cut, [(0, 0), (0, size - cut.shape[1])]))
    return [(np.concatenate(parts, 1), "float")]


# ---- categories ------------------------------------------------------------------------------------

WORDS = ["", "a", "b", "Amy", "日本", "Sally", "z"]


def words(rng, shape):
    array = np.empty(shape, object)
    for at in np.ndindex(*shape):
        array[at] = choice(rng, WORDS)
    return array


def one_hot_cases(rng):
    shape = random_shape(rng, most=4)
    if rng.random() < 0.5:
        return case(1, inputs=[words(rng, shape)], attrs={"cats_strings": ["a", "Sally", "", "b"], "zeros": 1})
    x = rng.integers(-3, 4, shape).astype(choice(rng, NUMERIC))
    return case(1, inputs=[x], attrs={"cats_int64s": [2, -1, 0]})


@reference("OneHotEncoder", one_hot_cases)
def one_hot_encoder(inputs, attrs, **_):
    categories = attrs.get("cats_strings") or attrs["cats_int64s"]
    result = np.zeros([*inputs[0].shape, len(categories)])
    for at in np.ndindex(*inputs[0].shape):
        value = inputs[0][at] if "cats_strings" in attrs else int(inputs[0][at])
        if value in categories:
            result[(*at, categories.index(value))] = 1
    return [(result, "float")]


def mapper_cases(rng):
    attrs = {"cats_strings": ["a", "b", "Amy"], "cats_int64s": [5, -1, 7], "default_string": "none", "default_int64": 42}
    shape = random_shape(rng, most=3)
    return case(1, inputs=[words(rng, shape) if rng.random() < 0.5 else rng.integers(-2, 9, shape)], attrs=attrs)


@reference("CategoryMapper", mapper_cases)
def category_mapper(inputs, attrs, **_):
    pairs = list(zip(attrs["cats_strings"], attrs["cats_int64s"]))
    if inputs[0].dtype == object:
        mapping = dict(pairs)
        return [np.vectorize(lambda v: mapping.get(v, 42), otypes=[np.int64])(inputs[0])]
    mapping = {number: text for text, number in pairs}
    return [np.vectorize(lambda v: mapping.get(v, "none"), otypes=[object])(inputs[0])]


KEYS = {"strings": (object, ["a", "b", "Amy", "a"]), "int64s": (np.int64, [3, -1, 0, 3]),
        "floats": (np.float32, [0.5, math.nan, -2.0, 0.5])}
TENSORS = {np.int32: [1, 2, 3, 4], np.int16: [4, 3, 2, 1], np.float64: [0.25, math.nan, 1.5, 2.5], np.int64: [1, 2, 3, 9]}


def label_cases(rng):
    opset = choice(rng, [2, 4])
    attrs = {}
    def side(prefix):
        if opset == 4 and rng.random() < 0.5:
            kind = choice(rng, list(TENSORS))
            attrs[f"{prefix}_tensor"] = np.array(TENSORS[kind], kind)
            return kind, TENSORS[kind]
        name = choice(rng, list(KEYS))
        attrs[f"{prefix}_{name}"] = KEYS[name][1]
        return KEYS[name]
    key_kind, keys = side("keys")
    value_kind, _ = side("values")
    if "values_tensor" in attrs and rng.random() < 0.7:
        attrs["default_tensor"] = np.array([77], value_kind)
    elif rng.random() < 0.5:
        attrs.update({"default_string": "none", "default_int64": -7, "default_float": 2.5})
    shape = random_shape(rng, most=4)
    x = np.empty(shape, key_kind)
    others = ["q"] if key_kind is object else [5]
    for at in np.ndindex(*shape):
        x[at] = choice(rng, keys + others)
    return case(opset, inputs=[x], attrs=attrs)


def label_encoder(inputs, attrs, **_):
    def find(prefix):
        return next(attrs[f"{prefix}_{n}"] for n in ["tensor", *KEYS] if f"{prefix}_{n}" in attrs)
    def key(value):
        return "nan" if isinstance(value, (float, np.floating)) and math.isnan(value) else value
    values = find("values")
    mapping = dict(zip(map(key, list(find("keys"))), list(values)))
    if isinstance(values, np.ndarray):
        kind = values.dtype
    else:
        kind = next(KEYS[n][0] for n in KEYS if f"values_{n}" in attrs)
    if "default_tensor" in attrs:
        default = attrs["default_tensor"][0]
    elif kind is object:
        default = attrs.get("default_string", "_Unused")
    elif np.issubdtype(kind, np.floating):
        default = attrs.get("default_float", 0.0)
    else:
        default = attrs.get("default_int64", -1)
    result = np.empty(inputs[0].shape, kind)
    for at in np.ndindex(*result.shape):
        result[at] = mapping.get(key(inputs[0][at]), default)
    return [result]


reference("LabelEncoder", label_cases)(label_encoder)


def label_cases_1(rng):
    x = words(rng, [7]) if rng.random() < 0.5 else rng.integers(-1, 5, [7])
    return case(1, inputs=[x], attrs={"classes_strings": ["b", "Amy", "z"], "default_int64": 9, "default_string": "none"})


@reference("LabelEncoder", label_cases_1, name="LabelEncoder 1")
def label_encoder_1(inputs, attrs, **_):
    names = attrs["classes_strings"]
    if inputs[0].dtype == object:
        return [np.array([names.index(v) if v in names else 9 for v in inputs[0]], np.int64)]
    return [np.array([names[v] if 0 <= v < 3 else "none" for v in inputs[0]], object)]


# ---- scores ----------------------------------------------------------------------------------------


def logistic(x):
    return 1 / (1 + np.exp(-x))


def probit(x):
    """By the formula of Winitzki that ONNX Runtime and the reference of ONNX share."""
    y = 2 * x - 1
    log = np.log((1 - y) * (1 + y))
    v = 2 / (np.pi * 0.147) + log / 2
    return np.sqrt(2) * np.where(y < 0, -1, 1) * np.sqrt(-v + np.sqrt(v * v - log / 0.147))


def softmax(x, skip_zeros=False):
    largest = x.max(-1, keepdims=True)
    kept = np.abs(x) > 1e-7 if skip_zeros else np.ones(x.shape, bool)
    exp = np.where(kept, np.exp(x - largest), x * np.exp(-largest))
    return exp / np.where(kept, exp, 0).sum(-1, keepdims=True)


def transform(scores, name):
    """Of two scores or more; of one only PROBIT, as in ONNX Runtime."""
    if scores.shape[-1] == 1:
        return probit(scores) if name == "PROBIT" else scores
    return {"NONE": lambda x: x, "LOGISTIC": logistic, "SOFTMAX": softmax, "PROBIT": probit,
            "SOFTMAX_ZERO": lambda x: softmax(x, True)}[name](scores)


def both_classes(score, name, probability):
    """One score of the second class, as ONNX Runtime writes those of both."""
    if name == "LOGISTIC":
        return np.stack([logistic(-score), logistic(score)], -1)
    if name == "PROBIT":
        return np.stack([probit(score), np.zeros_like(score)], -1)
    return np.stack([1 - score if probability else -score, score], -1)


def random_transform(rng):
    return choice(rng, ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])


def matrix(x):
    return x.reshape(-1, x.shape[-1]).astype(np.float32).astype(np.float64)


def labels(rng, count):
    if rng.random() < 0.5:
        return {"classlabels_strings": [f"class {i}" for i in range(count)]}
    return {"classlabels_ints": [int(v) for v in rng.permutation(20)[:count]]}


def named(attrs, index, numbers="classlabels_ints"):
    if "classlabels_strings" in attrs:
        return np.array(attrs["classlabels_strings"], object)[index]
    return np.array(attrs[numbers], np.int64)[index]


def linear_regressor_cases(rng):
    x, targets = rows(rng), int(rng.integers(1, 4))
    attrs = {"coefficients": floats(rng, targets * x.shape[-1]), "targets": targets, "post_transform": random_transform(rng)}
    if rng.random() < 0.7:
        attrs["intercepts"] = floats(rng, targets)
    return case(1, inputs=[x], attrs=attrs, rtol=1e-4, atol=1e-5)


@reference("LinearRegressor", linear_regressor_cases)
def linear_regressor(inputs, attrs, **_):
    x = matrix(inputs[0])
    weights = np.array(attrs["coefficients"]).reshape(attrs["targets"], -1)
    return [(transform(x @ weights.T + attrs.get("intercepts", 0), attrs["post_transform"]), "float")]


def linear_classifier_cases(rng):
    x, classes = rows(rng), int(rng.integers(2, 5))
    scores = 1 if classes == 2 and rng.random() < 0.5 else classes
    attrs = {"coefficients": floats(rng, scores * x.shape[-1]), "intercepts": floats(rng, scores), **labels(rng, classes),
             "post_transform": random_transform(rng), "multi_class": int(rng.integers(0, 2))}
    return case(1, inputs=[x], attrs=attrs, outputs=2, rtol=1e-4, atol=1e-5)


@reference("LinearClassifier", linear_classifier_cases)
def linear_classifier(inputs, attrs, **_):
    x = matrix(inputs[0])
    scores = x @ np.array(attrs["coefficients"]).reshape(len(attrs["intercepts"]), -1).T + attrs["intercepts"]
    if scores.shape[1] == 1:
        return [named(attrs, (scores[:, 0] > 0).astype(int)), both_classes(scores[:, 0], attrs["post_transform"], True)]
    return [named(attrs, scores.argmax(1)), transform(scores, attrs["post_transform"])]


def kernel(attrs, x, vectors):
    gamma, coef0, degree = attrs["kernel_params"]
    if attrs["kernel_type"] == "RBF":
        return np.exp(-gamma * ((x[:, None] - vectors[None]) ** 2).sum(-1))
    dot = x @ vectors.T
    return {"LINEAR": lambda: dot, "POLY": lambda: (gamma * dot + coef0) ** degree,
            "SIGMOID": lambda: np.tanh(gamma * dot + coef0)}[attrs["kernel_type"]]()


def random_kernel(rng):
    return {"kernel_type": choice(rng, ["LINEAR", "POLY", "RBF", "SIGMOID"]), "kernel_params": [0.25, 0.5, 3.0]}


def svm_regressor_cases(rng):
    x, supports = rows(rng), int(rng.integers(0, 9))
    attrs = {**random_kernel(rng), "rho": floats(rng, 1), "n_supports": supports, "one_class": int(rng.integers(0, 2)),
             "coefficients": floats(rng, supports or x.shape[-1])}
    if supports:
        attrs["support_vectors"] = floats(rng, supports * x.shape[-1])
    return case(1, inputs=[x], attrs=attrs, rtol=1e-3, atol=1e-3)


@reference("SVMRegressor", svm_regressor_cases)
def svm_regressor(inputs, attrs, **_):
    x = matrix(inputs[0])
    if attrs["n_supports"]:
        x = kernel(attrs, x, np.array(attrs["support_vectors"]).reshape(attrs["n_supports"], -1))
    y = x @ np.array(attrs["coefficients"])[:, None] + attrs["rho"][0]
    return [(np.where(y > 0, 1, -1) if attrs["one_class"] else y, "float")]


def svm_classifier_cases(rng):
    x, classes = rows(rng), int(rng.integers(2, 5))
    pairs = classes * (classes - 1) // 2
    attrs = {**random_kernel(rng), **labels(rng, classes), "rho": floats(rng, pairs), "post_transform": random_transform(rng)}
    if rng.random() < 0.3:
        attrs["coefficients"] = floats(rng, classes * x.shape[-1])
    else:
        attrs["vectors_per_class"] = [int(v) for v in rng.integers(1, 5, classes)]
        count = sum(attrs["vectors_per_class"])
        attrs["coefficients"] = floats(rng, (classes - 1) * count)
        attrs["support_vectors"] = floats(rng, count * x.shape[-1])
        if rng.random() < 0.5:
            attrs["prob_a"], attrs["prob_b"] = floats(rng, pairs, -2, -0.5), floats(rng, pairs)
    return case(1, inputs=[x], attrs=attrs, outputs=2, rtol=1e-3, atol=1e-3)


def coupled(r):
    """Wu, Lin and Weng: the p that minimizes the sum of (r_ji p_i - r_ij p_j)^2, by their iteration."""
    k = len(r)
    q = np.array([[sum(r[j][t] ** 2 for j in range(k) if j != t) if t == j2 else -r[j2][t] * r[t][j2]
                   for j2 in range(k)] for t in range(k)])
    p = np.full(k, 1 / k)
    for _ in range(100):
        qp = q @ p
        pqp = p @ qp
        if np.abs(qp - pqp).max() < 0.005 / k:
            break
        for t in range(k):
            change = (pqp - qp[t]) / q[t, t]
            p[t] += change
            pqp = (pqp + change * (change * q[t, t] + 2 * qp[t])) / (1 + change) ** 2
            qp = (qp + change * q[t]) / (1 + change)
            p = p / (1 + change)
    return p


@reference("SVMClassifier", svm_classifier_cases)
def svm_classifier(inputs, attrs, **_):
    x = matrix(inputs[0])
    classes = len(attrs.get("classlabels_strings") or attrs["classlabels_ints"])
    post = attrs["post_transform"]
    if "vectors_per_class" not in attrs:
        scores = x @ np.array(attrs["coefficients"]).reshape(classes, -1).T + attrs["rho"][0]
        index = scores.argmax(1)
        if classes == 2:  # as ONNX Runtime has it
            best = scores.max(1)
            index[best >= 0.5 if min(attrs["coefficients"]) >= 0 else best > 0] = 1
        return [named(attrs, index), transform(scores, post)]
    counts = attrs["vectors_per_class"]
    starts = np.concatenate([[0], np.cumsum(counts)])
    coefficients = np.array(attrs["coefficients"]).reshape(classes - 1, -1)
    values = kernel(attrs, x, np.array(attrs["support_vectors"]).reshape(sum(counts), -1))
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    scores, votes = np.zeros([len(x), len(pairs)]), np.zeros([len(x), classes], int)
    for n, (i, j) in enumerate(pairs):
        of_i, of_j = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        scores[:, n] = values[:, of_i] @ coefficients[j - 1, of_i] + values[:, of_j] @ coefficients[i, of_j] + attrs["rho"][n]
        votes[np.arange(len(x)), np.where(scores[:, n] > 0, i, j)] += 1
    index = votes.argmax(1)
    if "prob_a" in attrs:
        result = np.zeros([len(x), classes])
        for row in range(len(x)):
            r = np.zeros([classes, classes])
            for n, (i, j) in enumerate(pairs):
                r[i, j] = np.clip(1 / (1 + np.exp(scores[row, n] * attrs["prob_a"][n] + attrs["prob_b"][n])), 1e-7, 1 - 1e-7)
                r[j, i] = 1 - r[i, j]
            result[row] = coupled(r)
        return [named(attrs, index), transform(result, post)]
    if classes == 2:
        return [named(attrs, index), both_classes(scores[:, 0], post, post != "NONE")]
    return [named(attrs, index), transform(scores, post)]


# ---- trees -----------------------------------------------------------------------------------------

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
COMPARE = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]


def grow(rng, features, modes, depth):
    """A tree: (mode, feature, value, missing goes to true, true, false), or None for a leaf."""
    if depth == 0 or rng.random() < 0.15:
        return None
    value = float(np.float32(rng.integers(-4, 5) / 2))
    return (choice(rng, modes), int(rng.integers(features)), value, bool(rng.random() < 0.3),
            grow(rng, features, modes, depth - 1), grow(rng, features, modes, depth - 1))


def tree_attributes(rng, trees, targets, prefix, per_leaf, wide=False, weight_ids=None):
    """The attributes of version 1 and 3. Node ids are not in order, and neither are weights."""
    lists = {f"nodes_{n}": [] for n in ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
                                        "missing_value_tracks_true"]}
    weights = []
    for tree_id, tree in enumerate(trees):
        flat = []
        def place(node):
            at = len(flat)
            flat.append(None)
            flat[at] = (node, place(node[4]), place(node[5])) if node else (None, 0, 0)
            return at
        place(tree)
        ids = [0, *(int(i) + 1 for i in rng.permutation(len(flat) - 1))]
        for at, (node, on_true, on_false) in enumerate(flat):
            mode, feature, value, missing = node[:4] if node else ("LEAF", 0, 0.0, False)
            for name, entry in zip(lists, [tree_id * 3, ids[at], feature, mode, value, ids[on_true], ids[on_false], int(missing)]):
                lists[name].append(entry)
            if not node:
                for target in (weight_ids or rng.permutation(targets)[:per_leaf]):
                    weights.append((tree_id * 3, ids[at], int(target), float(np.float32(rng.uniform(-0.5 if rng.random() < 0.3 else 0, 1)))))
    order = rng.permutation(len(weights))
    lists.update({f"{prefix}_{n}": [weights[i][k] for i in order] for k, n in enumerate(["treeids", "nodeids", "ids", "weights"])})
    if wide:
        for name in ["nodes_values", f"{prefix}_weights"]:
            lists[f"{name}_as_tensor"] = np.array(lists.pop(name), np.float64)
    return lists


def numbers_of(attrs, name):
    return attrs[f"{name}_as_tensor"] if f"{name}_as_tensor" in attrs else attrs.get(name, [])


def goes_true(mode, value, threshold, missing):
    if np.isnan(value) and missing:
        return True
    return bool(COMPARE[MODES.index(mode)](value, threshold))


def reached(attrs, prefix, row):
    """For every tree the (target, weight) pairs of the leaf that a row reaches."""
    nodes = list(zip(*(attrs[f"nodes_{n}"] for n in ["treeids", "nodeids", "modes", "featureids", "truenodeids", "falsenodeids",
                                                    "missing_value_tracks_true"]), numbers_of(attrs, "nodes_values")))
    places = {node[:2]: node for node in nodes}
    leaves = {}
    for tree, node, target, weight in zip(attrs[f"{prefix}_treeids"], attrs[f"{prefix}_nodeids"], attrs[f"{prefix}_ids"],
                                          numbers_of(attrs, f"{prefix}_weights")):
        leaves.setdefault((tree, node), []).append((target, weight))
    seen = set()
    for root in nodes:
        if root[0] in seen:
            continue
        seen.add(root[0])
        node = root
        while node[2] != "LEAF":
            node = places[node[0], node[4] if goes_true(node[2], row[node[3]], node[7], node[6]) else node[5]]
        yield leaves.get(node[:2], [])


def aggregated(pairs_of_trees, targets, how):
    values, seen, count = np.zeros(targets), np.zeros(targets, bool), 0
    for pairs in pairs_of_trees:
        count += 1
        for target, weight in pairs:
            combine = {"MIN": min, "MAX": max}.get(how)
            values[target] = (combine(values[target], weight) if seen[target] else weight) if combine else values[target] + weight
            seen[target] = True
    return (values / count if how == "AVERAGE" else values), seen


def tree_input(rng, features, kinds=NUMERIC):
    x = rows(rng, features, kinds)
    if np.issubdtype(x.dtype, np.floating):
        x = (np.round(x * 2) / 2).astype(x.dtype) if rng.random() < 0.5 else x
        x[rng.random(x.shape) < 0.1 * (rng.random() < 0.5)] = np.nan
    return x


def as_compared(x, wide):
    """Integers are compared as floats, the rest as it is."""
    return matrix(x) if np.issubdtype(x.dtype, np.integer) and not wide else x.reshape(-1, x.shape[-1]).astype(np.float64)


def random_trees(rng, features):
    modes = MODES if rng.random() < 0.3 else [choice(rng, MODES[:4])] if rng.random() < 0.6 else MODES[:4]
    return [grow(rng, features, modes, int(rng.integers(0, 6))) for _ in range(int(rng.integers(1, 20)))]


def tree_regressor_cases(rng):
    features, targets = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    opset, wide = (3, True) if rng.random() < 0.3 else (choice(rng, [1, 3]), False)
    attrs = tree_attributes(rng, random_trees(rng, features), targets, "target", int(rng.integers(1, targets + 1)), wide)
    attrs.update({"n_targets": targets, "aggregate_function": choice(rng, ["SUM", "AVERAGE", "MIN", "MAX"]),
                  "post_transform": random_transform(rng)})
    if rng.random() < 0.5:
        attrs["base_values"] = floats(rng, targets)
    return case(opset, inputs=[tree_input(rng, features, [np.float64] if wide else NUMERIC)], attrs=attrs, rtol=1e-4, atol=1e-5)


@reference("TreeEnsembleRegressor", tree_regressor_cases)
def tree_ensemble_regressor(inputs, attrs, **_):
    targets = attrs["n_targets"]
    x = as_compared(inputs[0], "nodes_values_as_tensor" in attrs)
    scores = np.array([aggregated(reached(attrs, "target", row), targets, attrs["aggregate_function"])[0] for row in x])
    scores = scores.reshape(len(x), targets) + attrs.get("base_values", 0)
    return [(transform(scores, attrs["post_transform"]), "float")]


def many_trees_cases(rng):
    """One row, and so many trees that threads share them."""
    trees = [grow(rng, 3, MODES[:2], 2) for _ in range(1100)]
    attrs = {**tree_attributes(rng, trees, 1, "target", 1), "n_targets": 1, "aggregate_function": choice(rng, ["SUM", "MAX"]),
             "post_transform": "NONE"}
    return case(3, inputs=[rng.normal(size=[1, 3]).astype(np.float32)], attrs=attrs, rtol=1e-5)


reference("TreeEnsembleRegressor", many_trees_cases, name="TreeEnsembleRegressor of many trees")(tree_ensemble_regressor)


def tree_classifier_cases(rng):
    features, classes = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    opset, wide = (3, True) if rng.random() < 0.2 else (choice(rng, [1, 3]), False)
    ids = [0] if classes == 2 and rng.random() < 0.5 else [1] if classes == 2 and rng.random() < 0.3 else None
    attrs = tree_attributes(rng, random_trees(rng, features), classes, "class", int(rng.integers(1, classes + 1)), wide, ids)
    attrs["post_transform"] = random_transform(rng)
    attrs.update({"classlabels_strings": [f"class {i}" for i in range(classes)]} if rng.random() < 0.5
                 else {"classlabels_int64s": [int(v) for v in rng.permutation(20)[:classes]]})
    if rng.random() < 0.4:
        attrs["base_values"] = floats(rng, 1 if ids == [0] else classes)
    return case(opset, inputs=[tree_input(rng, features, [np.float64] if wide else NUMERIC)], attrs=attrs, outputs=2,
                rtol=1e-4, atol=1e-5)


@reference("TreeEnsembleClassifier", tree_classifier_cases)
def tree_ensemble_classifier(inputs, attrs, **_):
    classes = len(attrs.get("classlabels_strings") or attrs["classlabels_int64s"])
    x = as_compared(inputs[0], "nodes_values_as_tensor" in attrs)
    base = attrs.get("base_values", [])
    weights = numbers_of(attrs, "class_weights")
    one_score = classes == 2 and len(set(attrs["class_ids"])) == 1
    index, result = np.zeros(len(x), int), np.zeros([len(x), classes])
    for n, row in enumerate(x):
        values, seen = aggregated(reached(attrs, "class", row), classes, "SUM")
        if one_score:  # the special cases of ONNX Runtime
            second = attrs["class_ids"][0] == 1
            score = values[int(second)] + (base[int(second)] if len(base) == 2 else base[0] if base and not second else 0)
            probability = min(weights) >= 0
            index[n] = score > (0.5 if probability else 0)
            if second:
                result[n] = transform(np.array([[-score if len(base) == 2 else 0, score]]), attrs["post_transform"])[0]
            else:
                result[n] = both_classes(np.array(score), attrs["post_transform"], probability)
            continue
        if len(base):
            values, seen = values + base, np.ones(classes, bool)
        index[n] = np.where(seen, values, -np.inf).argmax()
        result[n] = transform(values[None], attrs["post_transform"])[0]
    return [named(attrs, index, "classlabels_int64s"), result]


def ensemble_cases(rng):
    features, targets = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    kind = choice(rng, [np.float32, np.float64, np.float16])
    modes = [*MODES, "MEMBER"] if rng.random() < 0.5 else MODES[:4]
    nodes, weights, targets_of, roots, sets = [], [], [], [], []
    def place(tree):
        """(number, is a leaf)."""
        if tree is None:
            weights.append(rng.uniform(-1, 1))
            targets_of.append(int(rng.integers(targets)))
            return len(weights) - 1, 1
        at = len(nodes)
        nodes.append(None)
        nodes[at] = (*tree[:4], *place(tree[4]), *place(tree[5]))
        return at, 0
    for _ in range(int(rng.integers(1, 9))):
        tree = grow(rng, features, modes, int(rng.integers(1, 5)))
        roots.append(place(tree or ("BRANCH_LEQ", 0, 0.0, False, None, None))[0])
    for node in nodes:
        if node[0] == "MEMBER":
            sets.append([float(v) / 2 for v in rng.integers(-4, 5, int(rng.integers(1, 6)))])
    attrs = {"n_targets": targets, "aggregate_function": int(rng.integers(0, 4)), "post_transform": int(rng.integers(0, 4)),
             "tree_roots": roots, "leaf_targetids": targets_of, "leaf_weights": np.array(weights, kind),
             "nodes_modes": np.array([([*MODES, "MEMBER"]).index(n[0]) for n in nodes], np.uint8),
             "nodes_splits": np.array([n[2] for n in nodes], kind), "nodes_featureids": [n[1] for n in nodes],
             "nodes_missing_value_tracks_true": [int(n[3]) for n in nodes],
             "nodes_truenodeids": [n[4] for n in nodes], "nodes_trueleafs": [n[5] for n in nodes],
             "nodes_falsenodeids": [n[6] for n in nodes], "nodes_falseleafs": [n[7] for n in nodes]}
    if sets:
        attrs["membership_values"] = np.array([v for members in sets for v in [*members, math.nan]], kind)
    tolerance = {"rtol": 5e-3, "atol": 5e-3} if kind == np.float16 else {"rtol": 1e-4, "atol": 1e-5}
    return case(5, inputs=[tree_input(rng, features, [kind])], attrs=attrs, **tolerance)


@reference("TreeEnsemble", ensemble_cases)
def tree_ensemble(inputs, attrs, **_):
    x = inputs[0].reshape(-1, inputs[0].shape[-1]).astype(np.float64)
    sets, members = [], []
    for value in attrs.get("membership_values", []):
        if np.isnan(value):
            sets.append(members)
            members = []
        else:
            members.append(value)
    member_nodes = [i for i, mode in enumerate(attrs["nodes_modes"]) if mode == 6]
    def leaf(row, at):
        is_leaf = False
        while not is_leaf:
            mode, value = attrs["nodes_modes"][at], row[attrs["nodes_featureids"][at]]
            missing = attrs["nodes_missing_value_tracks_true"][at]
            if mode == 6:
                true = value in sets[member_nodes.index(at)] or (np.isnan(value) and missing)
            else:
                true = goes_true(MODES[mode], value, attrs["nodes_splits"][at], missing)
            side = "true" if true else "false"
            is_leaf, at = attrs[f"nodes_{side}leafs"][at], attrs[f"nodes_{side}nodeids"][at]
        return [(attrs["leaf_targetids"][at], float(attrs["leaf_weights"][at]))]
    how = ["AVERAGE", "SUM", "MIN", "MAX"][attrs["aggregate_function"]]
    name = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"][attrs["post_transform"]]
    scores = [aggregated([leaf(row, root) for root in attrs["tree_roots"]], attrs["n_targets"], how)[0] for row in x]
    return [transform(np.array(scores).reshape(len(x), attrs["n_targets"]), name)]


# ---- maps ------------------------------------------------------------------------------------------


def zip_cases(rng):
    classes = int(rng.integers(1, 5))
    attrs = labels(rng, classes)
    attrs = {"classlabels_int64s" if k == "classlabels_ints" else k: v for k, v in attrs.items()}
    return case(1, inputs=[rows(rng, classes, [np.float32])], attrs=attrs)


@reference("ZipMap", zip_cases)
def zip_map(inputs, attrs, **_):
    keys = attrs.get("classlabels_strings") or attrs["classlabels_int64s"]
    return [[dict(zip(keys, row)) for row in inputs[0].reshape(-1, len(keys)).tolist()]]


def some_map(rng, keys, kind):
    taken = [keys[i] for i in rng.permutation(len(keys))[:int(rng.integers(0, len(keys) + 1))]]
    values = rng.integers(-9, 9, len(taken))
    return Map(np.array(taken, object if isinstance(keys[0], str) else np.int64),
               values.astype(str).astype(object) if kind is object else values.astype(kind))


def dict_cases(rng):
    if rng.random() < 0.5:
        vocabulary = ["a", "c", "b", "z", "a"]
        return case(1, inputs=[some_map(rng, ["a", "b", "c", "q"], choice(rng, [np.int64, np.float32, np.float64]))],
                    attrs={"string_vocabulary": vocabulary})
    return case(1, inputs=[some_map(rng, [3, -1, 7, 100], choice(rng, [object, np.float32, np.float64]))],
                attrs={"int64_vocabulary": [7, 3, 0, -1]})


@reference("DictVectorizer", dict_cases)
def dict_vectorizer(inputs, attrs, **_):
    vocabulary = attrs.get("string_vocabulary") or attrs["int64_vocabulary"]
    entries = dict(zip(inputs[0].keys.tolist(), inputs[0].values.tolist()))
    kind = inputs[0].values.dtype
    return [np.array([[entries.get(key, "" if kind == object else 0) for key in vocabulary]], kind)]


def cast_map_cases(rng):
    attrs = {"cast_to": choice(rng, ["TO_FLOAT", "TO_STRING", "TO_INT64"])}
    if rng.random() < 0.5:
        attrs.update({"map_form": "SPARSE", "max_map": int(rng.integers(9, 12))})
    return case(1, inputs=[some_map(rng, [8, 0, 3, 5], choice(rng, [object, np.float32]))], attrs=attrs)


@reference("CastMap", cast_map_cases)
def cast_map(inputs, attrs, **_):
    entries = dict(zip(inputs[0].keys.tolist(), inputs[0].values.tolist()))
    to, kind = {"TO_FLOAT": (float, np.float32), "TO_INT64": (lambda v: int(float(v)), np.int64),
                "TO_STRING": (lambda v: v if isinstance(v, str) else str(int(v)), object)}[attrs["cast_to"]]
    if attrs.get("map_form") == "SPARSE":
        missing = "0.f" if kind is object else 0
        return [np.array([[to(entries[k]) if k in entries else missing for k in range(attrs["max_map"])]], kind)]
    return [np.array([[to(entries[k]) for k in sorted(entries)]], kind)]


# ---- bad input -------------------------------------------------------------------------------------

X = np.zeros([2, 3], np.float32)
TEXT = np.array(["a", "b"], object)


def refuses(op, inputs, attrs, says, opset=1, outputs=1):
    rejects(op, inputs, attrs, says=says, domain=ML, opset=opset, outputs=outputs)


refuses("Binarizer", [TEXT], {}, "type string is not allowed")
refuses("Scaler", [X], {"scale": [1.0], "offset": [1.0, 2.0]}, "found 1 and 2")
refuses("Scaler", [X], {"scale": [1.0, 2.0], "offset": [1.0, 2.0]}, "expected 2 features")
refuses("Scaler", [X], {}, "found 0 and 0")
refuses("Normalizer", [X], {"norm": "L3"}, "'L3'")
refuses("Normalizer", [np.zeros([2, 2, 2], np.float32)], {}, "rank")
refuses("Imputer", [X], {}, "expected one of the attributes")
refuses("Imputer", [X], {"imputed_value_floats": [1.0, 2.0]}, "expected 2 features")
refuses("Imputer", [X], {"imputed_value_int64s": [1]}, "type float is not allowed")
refuses("ArrayFeatureExtractor", [X, np.array([3])], {}, "index 3 is outside [0, 3)")
refuses("ArrayFeatureExtractor", [X, np.array([-1])], {}, "index -1 is outside [0, 3)")
refuses("ArrayFeatureExtractor", [X], {}, "expected 2 to 2 inputs")
refuses("FeatureVectorizer", [X, X], {"inputdimensions": [1]}, "expected 2 sizes")
refuses("FeatureVectorizer", [X, X[:1]], {"inputdimensions": [1, 1]}, "")
refuses("OneHotEncoder", [TEXT], {"cats_strings": ["b"], "zeros": 0}, "element 0 is none of the 1 categories")
refuses("OneHotEncoder", [TEXT], {"cats_int64s": [1]}, "type string is not allowed")
refuses("OneHotEncoder", [TEXT], {}, "expected one of the attributes")
refuses("CategoryMapper", [TEXT], {"cats_strings": ["b"], "cats_int64s": [1, 2]}, "found 1 and 2")
refuses("LabelEncoder", [TEXT], {"keys_int64s": [1], "values_int64s": [1]}, "expected the type of the keys", 2)
refuses("LabelEncoder", [TEXT], {"keys_strings": ["a"], "values_int64s": [1, 2]}, "found 1 and 2", 2)
refuses("LabelEncoder", [TEXT], {"keys_strings": ["a"], "keys_int64s": [1], "values_int64s": [1]}, "found 2", 2)
refuses("LabelEncoder", [TEXT], {"keys_strings": ["a"], "values_int64s": [1], "default_tensor": np.zeros(2)}, "'default_tensor'", 4)
refuses("LabelEncoder", [TEXT], {"keys_tensor": np.zeros(1, np.uint8), "values_int64s": [1]}, "type uint8 is not allowed", 4)
refuses("LinearRegressor", [X], {"coefficients": [1.0, 2.0]}, "expected 2 features")
refuses("LinearRegressor", [X], {"coefficients": [1.0, 2.0, 3.0], "intercepts": [1.0, 2.0]}, "'intercepts'")
refuses("LinearRegressor", [X], {"coefficients": [1.0, 2.0, 3.0], "post_transform": "RELU"}, "'RELU'")
refuses("LinearClassifier", [X], {"coefficients": [1.0, 2.0, 3.0], "intercepts": [1.0], "classlabels_ints": [1, 2, 3]},
        "expected 2 labels", outputs=2)
refuses("LinearClassifier", [X], {"coefficients": [1.0, 2.0], "intercepts": [1.0], "classlabels_ints": [1, 2]},
        "expected 2 features", outputs=2)
SVM = {"coefficients": [1.0, 1.0], "support_vectors": [1.0] * 6, "rho": [0.0], "vectors_per_class": [1, 1], "classlabels_ints": [0, 1],
       "kernel_type": "RBF", "kernel_params": [1.0, 0.0, 3.0]}
refuses("SVMClassifier", [X], {**SVM, "kernel_type": "COSINE"}, "'COSINE'", outputs=2)
refuses("SVMClassifier", [X], {**SVM, "kernel_params": [1.0]}, "found 1 numbers", outputs=2)
refuses("SVMClassifier", [X], {**SVM, "vectors_per_class": [1, -1]}, "-1 is not a number of vectors", outputs=2)
refuses("SVMClassifier", [X], {**SVM, "vectors_per_class": [3, 1]}, "'coefficients'", outputs=2)
refuses("SVMClassifier", [X], {**SVM, "support_vectors": [1.0] * 5}, "'support_vectors'", outputs=2)
refuses("SVMClassifier", [X], {**SVM, "prob_a": [1.0]}, "'prob_b'", outputs=2)
refuses("SVMClassifier", [X[:, :2]], SVM, "expected 3 features", outputs=2)
refuses("SVMRegressor", [X], {"coefficients": [1.0, 1.0], "support_vectors": [1.0] * 5, "rho": [0.0], "n_supports": 2}, "'support_vectors'")
refuses("SVMRegressor", [X], {"coefficients": [1.0], "support_vectors": [1.0] * 6, "rho": [0.0], "n_supports": 2}, "'coefficients'")
refuses("SVMRegressor", [X], {"coefficients": [1.0, 1.0, 1.0], "rho": [0.0], "n_supports": -2}, "-2 is not a number")
STUMP = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0], "nodes_values": [0.5, 0.0, 0.0],
         "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
         "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0], "n_targets": 1}
for change, message in [
        ({"nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF"], "nodes_falsenodeids": [2, 2, 0]}, "cycle through node 0"),
        ({"nodes_truenodeids": [0, 0, 0]}, "cycle through node 0"),
        ({"nodes_truenodeids": [7, 0, 0]}, "names node 7 of tree 0, which is not there"),
        ({"nodes_falsenodeids": [-2, 0, 0]}, "names node -2 of tree 0, which is not there"),
        ({"target_nodeids": [1, 5]}, "names node 5 of tree 0, which is not there"),
        ({"target_treeids": [0, 1]}, "names node 2 of tree 1, which is not there"),
        ({"nodes_nodeids": [0, 1, 1]}, "node 1 of tree 0 is there twice"),
        ({"nodes_modes": ["BRANCH_LEQ", "LEAF"]}, "'nodes_modes': expected 3"),
        ({"nodes_modes": ["BRANCH_SET", "LEAF", "LEAF"]}, "'BRANCH_SET' is not a mode"),
        ({"nodes_featureids": [-1, 0, 0]}, "-1 is not a feature"),
        ({"nodes_featureids": [3, 0, 0]}, "expected at least 4 features"),
        ({"target_ids": [0, 1]}, "1 is outside [0, 1)"),
        ({"target_weights": [1.0]}, "'target_weights': expected 2"),
        ({"n_targets": 0}, "0 is not a number of targets"),
        ({"base_values": [1.0, 2.0]}, "'base_values': expected 1"),
        ({"aggregate_function": "MEDIAN"}, "'MEDIAN'"),
        ({"post_transform": "MEDIAN"}, "'MEDIAN'")]:
    refuses("TreeEnsembleRegressor", [X], {**STUMP, **change}, message, 3)
refuses("TreeEnsembleClassifier", [X], {k.replace("target", "class"): v for k, v in STUMP.items() if k != "n_targets"},
        "expected labels of classes", 3, 2)
FIVE = {"n_targets": 1, "tree_roots": [0], "leaf_targetids": [0, 0], "leaf_weights": np.ones(2, np.float32),
        "nodes_modes": np.zeros(1, np.uint8), "nodes_splits": np.zeros(1, np.float32), "nodes_featureids": [0],
        "nodes_truenodeids": [0], "nodes_trueleafs": [1], "nodes_falsenodeids": [1], "nodes_falseleafs": [1]}
for change, message in [
        ({"nodes_trueleafs": [0]}, "cycle"), ({"nodes_falsenodeids": [2]}, "2 is outside [0, 2), the leaves"),
        ({"nodes_trueleafs": [0], "nodes_truenodeids": [1]}, "1 is outside [0, 1), the nodes"),
        ({"tree_roots": [1]}, "'tree_roots': 1"), ({"leaf_targetids": [0, 3]}, "3 is outside [0, 1)"),
        ({"nodes_modes": np.full(1, 6, np.uint8)}, "expected 1 sets"), ({"nodes_modes": np.full(1, 9, np.uint8)}, "9 is not a mode"),
        ({"aggregate_function": 4}, "expected 0 to 3"), ({"post_transform": -1}, "expected 0 to 4"),
        ({"leaf_weights": np.ones(1, np.float32)}, "'leaf_weights'"), ({"nodes_featureids": Attr("ints", [])}, "expected 0")]:
    refuses("TreeEnsemble", [X], {**FIVE, **change}, message, 5)
refuses("ZipMap", [X], {"classlabels_int64s": [1, 2]}, "expected 2 columns")
refuses("ZipMap", [X], {}, "expected labels of classes")
refuses("ZipMap", [X], {"classlabels_int64s": [1, 2, 3], "classlabels_strings": ["a"]}, "found both")
refuses("ZipMap", [X.astype(np.int64)], {"classlabels_int64s": [1, 2, 3]}, "type int64 is not allowed")
NUMBERED = Map(np.array([5, 1], np.int64), np.array([1.0, 2.0], np.float32))
refuses("DictVectorizer", [X], {"int64_vocabulary": [1]}, "expected a map")
refuses("DictVectorizer", [NUMBERED], {"string_vocabulary": ["a"]}, "expected a map")
refuses("DictVectorizer", [NUMBERED], {}, "expected one of the attributes")
refuses("CastMap", [NUMBERED], {"map_form": "SPARSE", "max_map": 5}, "key 5 is outside [0, 5)")
refuses("CastMap", [NUMBERED], {"map_form": "SPARSE", "max_map": 0}, "expected at least 1")
refuses("CastMap", [NUMBERED], {"map_form": "LOOSE"}, "'LOOSE'")
refuses("CastMap", [NUMBERED], {"cast_to": "TO_BOOL"}, "'TO_BOOL'")
refuses("CastMap", [X], {}, "expected a map")
refuses("CastMap", [Map(np.array([1], np.int64), np.array(["x"], object))], {}, "expected a number")
