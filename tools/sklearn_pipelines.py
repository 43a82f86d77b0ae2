#!/usr/bin/python3
"""sklearn_pipelines.py [NAME...]: pipelines of scikit-learn as ONNX, written from their fitted attributes.

Trains each, writes it, runs it through the command (build/plimsoll, or $PLIMSOLL) and compares with scikit-learn's own
predictions. The last line is `N passed, M failed`. With --keep DIR the models stay there.
"""
import argparse
import pathlib
import sys
import traceback
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "reference"))
from harness import run_model  # noqa: E402
from model_file import Graph, Node, encode_model  # noqa: E402
from sklearn import datasets, ensemble, feature_extraction, impute, linear_model, neural_network, pipeline  # noqa: E402
from sklearn import preprocessing, svm, tree  # noqa: E402

ML = "ai.onnx.ml"
PIPELINES = []


class Writer:
    """Nodes one after the other; add() returns the names of the outputs."""

    def __init__(self):
        self.nodes, self.inputs, self.initializers, self.made = [], [], {}, 0

    def input(self, name, kind, width):
        self.inputs.append((name, kind, ["rows"] if width is None else ["rows", width]))
        return name

    def constant(self, value):
        name = f"constant_{len(self.initializers)}"
        self.initializers[name] = value
        return name

    def add(self, op, inputs, attrs=None, domain=ML, outputs=1):
        names = [f"v{self.made + i}" for i in range(outputs)]
        self.made += outputs
        self.nodes.append(Node(op, inputs if isinstance(inputs, list) else [inputs], names, attrs or {}, domain))
        return names[0] if outputs == 1 else names

    def model(self, outputs):
        return encode_model(Graph(self.nodes, self.inputs, outputs, self.initializers), {"": 20, ML: 3})


def reals(values):
    return [float(v) for v in np.asarray(values, np.float32).ravel()]


def labels(classes, numbers):
    if np.asarray(classes).dtype.kind in "OU":
        return {"classlabels_strings": [str(c) for c in classes]}
    return {numbers: [int(c) for c in classes]}


# ---- estimators ------------------------------------------------------------------------------------


def standard_scaler(w, x, s):
    return w.add("Scaler", x, {"offset": reals(s.mean_), "scale": reals(1 / s.scale_)})


def min_max_scaler(w, x, s):
    # scikit-learn: x * scale_ + min_
    return w.add("Scaler", x, {"offset": reals(-s.min_ / s.scale_), "scale": reals(s.scale_)})


def linear_classifier(w, x, m, transform):
    return w.add("LinearClassifier", x, {"coefficients": reals(m.coef_), "intercepts": reals(m.intercept_),
                                         "post_transform": transform, **labels(m.classes_, "classlabels_ints")}, outputs=2)


def svm_kernel(m):
    return {"kernel_type": m.kernel.upper(), "kernel_params": reals([m._gamma, m.coef0, m.degree])}


def svm_classifier(w, x, m):
    attrs = {"coefficients": reals(m._dual_coef_), "rho": reals(m._intercept_), "support_vectors": reals(m.support_vectors_),
             "vectors_per_class": [int(n) for n in m.n_support_], **svm_kernel(m), **labels(m.classes_, "classlabels_ints")}
    if m.probability:
        attrs.update({"prob_a": reals(m.probA_), "prob_b": reals(m.probB_)})
    return w.add("SVMClassifier", x, attrs, outputs=2)


def svm_regressor(w, x, m):
    return w.add("SVMRegressor", x, {"coefficients": reals(m.dual_coef_), "rho": reals(m.intercept_), **svm_kernel(m),
                                     "support_vectors": reals(m.support_vectors_), "n_supports": len(m.support_)})


def below(threshold):
    """The largest float that is not above a threshold: floats compare with it as with the threshold."""
    near = np.float32(threshold)
    return float(np.nextafter(near, np.float32(-np.inf)) if near > threshold else near)


def tree_attributes(trees, prefix, leaf_weights):
    """leaf_weights(tree number, the value of a leaf) -> [(target, weight)]"""
    nodes = {f"nodes_{n}": [] for n in ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"]}
    weights = {f"{prefix}_{n}": [] for n in ["treeids", "nodeids", "ids", "weights"]}
    for number, t in enumerate(trees):
        for at in range(t.node_count):
            leaf = t.children_left[at] < 0
            entry = [number, at, 0 if leaf else int(t.feature[at]), "LEAF" if leaf else "BRANCH_LEQ",
                     0.0 if leaf else below(t.threshold[at]), 0 if leaf else int(t.children_left[at]),
                     0 if leaf else int(t.children_right[at])]
            for name, value in zip(nodes, entry):
                nodes[name].append(value)
            for target, weight in leaf_weights(number, t.value[at]) if leaf else []:
                for name, value in zip(weights, [number, at, target, float(np.float32(weight))]):
                    weights[name].append(value)
    return {**nodes, **weights}


def tree_classifier(w, x, trees, classes):
    def probabilities(_, value):
        return [(i, v / value.sum() / len(trees)) for i, v in enumerate(value[0])]
    return w.add("TreeEnsembleClassifier", x, {**tree_attributes(trees, "class", probabilities),
                                               **labels(classes, "classlabels_int64s")}, outputs=2)


def dense_layers(w, x, m):
    for i, (weights, bias) in enumerate(zip(m.coefs_, m.intercepts_)):
        x = w.add("Gemm", [x, w.constant(weights.astype(np.float32)), w.constant(bias.astype(np.float32))], domain="")
        if i + 1 < len(m.coefs_):
            x = w.add("Relu", x, domain="")
    return x


# ---- pipelines: each gives (inputs, model, [(expected, tolerance), ...]) -----------------------------------


def is_pipeline(f):
    PIPELINES.append(f)
    return f


def split(data):
    """Every third row is for testing."""
    x, y = data.data.astype(np.float32), data.target
    test = np.arange(len(x)) % 3 == 0
    return x[~test], y[~test], x[test]


@is_pipeline
def logistic_regression_of_three_classes():
    x, y, test = split(datasets.load_iris())
    p = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression(max_iter=1000)).fit(x, y)
    w = Writer()
    label, scores = linear_classifier(w, standard_scaler(w, w.input("x", "float", x.shape[1]), p[0]), p[1], "SOFTMAX")
    # As converters end it: a dictionary for every row.
    zipped = w.add("ZipMap", scores, {"classlabels_int64s": [int(c) for c in p.classes_]})
    probabilities = p.predict_proba(test)
    return ({"x": test}, w.model([label, scores, zipped]), [
        (p.predict(test), 0), (probabilities, 1e-5), ([dict(zip(p.classes_.tolist(), row)) for row in probabilities], 1e-5)])


@is_pipeline
def logistic_regression_of_two_classes():
    x, y, test = split(datasets.load_breast_cancer())
    names = np.array(["malignant", "benign"])[y]
    p = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression(max_iter=1000)).fit(x, names)
    w = Writer()
    label, scores = linear_classifier(w, standard_scaler(w, w.input("x", "float", x.shape[1]), p[0]), p[1], "LOGISTIC")
    return {"x": test}, w.model([label, scores]), [(p.predict(test), 0), (p.predict_proba(test), 1e-4)]


@is_pipeline
def linear_svc():
    x, y, test = split(datasets.load_wine())
    p = pipeline.make_pipeline(preprocessing.MinMaxScaler(), svm.LinearSVC(random_state=0)).fit(x, y)
    w = Writer()
    label, scores = linear_classifier(w, min_max_scaler(w, w.input("x", "float", x.shape[1]), p[0]), p[1], "NONE")
    return {"x": test}, w.model([label, scores]), [(p.predict(test), 0), (p.decision_function(test), 1e-4)]


@is_pipeline
def svc_with_probabilities():
    x, y, test = split(datasets.load_iris())
    p = pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVC(probability=True, random_state=0)).fit(x, y)
    w = Writer()
    label, scores = svm_classifier(w, standard_scaler(w, w.input("x", "float", x.shape[1]), p[0]), p[1])
    return {"x": test}, w.model([label, scores]), [(p.predict(test), 0), (p.predict_proba(test), 1e-3)]


@is_pipeline
def svc_polynomial_of_two_classes():
    x, y, test = split(datasets.load_breast_cancer())
    p = pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVC(kernel="poly", degree=3, coef0=1.0)).fit(x, y)
    w = Writer()
    label, scores = svm_classifier(w, standard_scaler(w, w.input("x", "float", x.shape[1]), p[0]), p[1])
    decision = p.decision_function(test)  # of the second class; the model's first column is of the first
    return {"x": test}, w.model([label, scores]), [(p.predict(test), 0), (np.stack([decision, -decision], 1), 1e-3)]


@is_pipeline
def svr():
    x, y, test = split(datasets.load_diabetes())
    p = pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVR(C=100.0)).fit(x, y)
    w = Writer()
    out = svm_regressor(w, standard_scaler(w, w.input("x", "float", x.shape[1]), p[0]), p[1])
    return {"x": test}, w.model([out]), [(p.predict(test)[:, None], 1e-4)]


@is_pipeline
def random_forest():
    x, y, test = split(datasets.load_digits())
    m = ensemble.RandomForestClassifier(n_estimators=100, random_state=0).fit(x, y)
    w = Writer()
    label, scores = tree_classifier(w, w.input("x", "float", x.shape[1]), [e.tree_ for e in m.estimators_], m.classes_)
    return {"x": test}, w.model([label, scores]), [(m.predict(test), 0), (m.predict_proba(test), 1e-5)]


@is_pipeline
def decision_tree_of_two_names():
    x, y, test = split(datasets.load_breast_cancer())
    m = tree.DecisionTreeClassifier(max_depth=5, random_state=0).fit(x, np.array(["no", "yes"])[y])
    w = Writer()
    label, scores = tree_classifier(w, w.input("x", "float", x.shape[1]), [m.tree_], m.classes_)
    return {"x": test}, w.model([label, scores]), [(m.predict(test), 0), (m.predict_proba(test), 1e-6)]


@is_pipeline
def gradient_boosting_regressor():
    x, y, test = split(datasets.load_diabetes())
    m = ensemble.GradientBoostingRegressor(random_state=0).fit(x, y)
    attrs = tree_attributes([e.tree_ for e in m.estimators_[:, 0]], "target", lambda _, v: [(0, v[0, 0] * m.learning_rate)])
    w = Writer()
    out = w.add("TreeEnsembleRegressor", w.input("x", "float", x.shape[1]),
                {**attrs, "n_targets": 1, "base_values": reals([m.init_.constant_.ravel()[0]])})
    return {"x": test}, w.model([out]), [(m.predict(test)[:, None], 1e-5)]


@is_pipeline
def gradient_boosting_classifier():
    x, y, test = split(datasets.load_breast_cancer())
    m = ensemble.GradientBoostingClassifier(random_state=0).fit(x, y)
    attrs = tree_attributes([e.tree_ for e in m.estimators_[:, 0]], "class", lambda _, v: [(0, v[0, 0] * m.learning_rate)])
    prior = m.init_.class_prior_[1]
    w = Writer()
    label, scores = w.add("TreeEnsembleClassifier", w.input("x", "float", x.shape[1]),
                          {**attrs, "base_values": reals([np.log(prior / (1 - prior))]), "post_transform": "LOGISTIC",
                           **labels(m.classes_, "classlabels_int64s")}, outputs=2)
    return {"x": test}, w.model([label, scores]), [(m.predict(test), 0), (m.predict_proba(test), 1e-5)]


@is_pipeline
def extra_trees_regressor_of_two_targets():
    x, y, test = split(datasets.load_diabetes())
    m = ensemble.ExtraTreesRegressor(n_estimators=30, random_state=0).fit(x, np.stack([y, np.sqrt(y)], 1))
    attrs = tree_attributes([e.tree_ for e in m.estimators_], "target", lambda _, v: [(0, v[0, 0]), (1, v[1, 0])])
    w = Writer()
    out = w.add("TreeEnsembleRegressor", w.input("x", "float", x.shape[1]),
                {**attrs, "n_targets": 2, "aggregate_function": "AVERAGE"})
    return {"x": test}, w.model([out]), [(m.predict(test), 1e-5)]


@is_pipeline
def encoders_of_text_columns():
    rng = np.random.default_rng(0)
    colors, sizes = np.array(["red", "green", "blue"]), np.array(["small", "medium", "large"])
    text = np.stack([rng.choice(colors, 300), rng.choice(sizes, 300)], 1)
    number = rng.normal(size=[300, 2]).astype(np.float32)
    y = (text[:, 0] == "red").astype(int) + (number[:, 0] > 0)
    hot = preprocessing.OneHotEncoder(handle_unknown="ignore").fit(text[:, :1])
    ordinal = preprocessing.OrdinalEncoder(categories=[list(sizes)]).fit(text[:, 1:])
    def features(t, n):
        return np.concatenate([hot.transform(t[:, :1]).toarray(), ordinal.transform(t[:, 1:]), n], 1)
    m = linear_model.LogisticRegression(max_iter=1000).fit(features(text, number), y)
    w = Writer()
    columns = w.input("text", "string", 2)
    first, second = [w.add("ArrayFeatureExtractor", [columns, w.constant(np.array([i], np.int64))]) for i in range(2)]
    one_hot = w.add("OneHotEncoder", first, {"cats_strings": [str(c) for c in hot.categories_[0]], "zeros": 1})
    one_hot = w.add("Reshape", [one_hot, w.constant(np.array([-1, 3], np.int64))], domain="")
    position = w.add("LabelEncoder", second, {"keys_strings": [str(s) for s in sizes], "values_floats": [0.0, 1.0, 2.0]})
    joined = w.add("FeatureVectorizer", [one_hot, position, w.input("number", "float", 2)], {"inputdimensions": [3, 1, 2]})
    label, scores = linear_classifier(w, joined, m, "SOFTMAX")
    test = (np.concatenate([text[:50], [["violet", "small"]]]), np.concatenate([number[:50], [[0.5, 0.5]]]).astype(np.float32))
    expected = features(*test)
    return ({"text": test[0].astype(object), "number": test[1]}, w.model([label, scores]),
            [(m.predict(expected), 0), (m.predict_proba(expected), 1e-5)])


SENTENCES = ["The cat sat on the mat", "A dog barked at the cat", "Stocks fell sharply on Monday", "The market rose again",
             "Cats and dogs play", "Investors sold stocks", "A cat chased a mouse", "The bank raised rates on monday",
             "My dog likes the mat", "Rates and stocks and markets", "Überraschend stiegen die Kurse", "Die Katze schläft"]
TOPICS = ["pets", "pets", "money", "money", "pets", "money", "pets", "money", "pets", "money", "money", "pets"]


@is_pipeline
def tf_idf_of_words_and_pairs():
    t = feature_extraction.text.TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2)).fit(SENTENCES)
    m = linear_model.LogisticRegression().fit(t.transform(SENTENCES), TOPICS)
    grams = sorted(t.vocabulary_, key=lambda g: (g.count(" "), g))
    pool = [token for gram in grams for token in gram.split(" ")]
    where = [int(t.vocabulary_[gram]) for gram in grams]
    w = Writer()
    lower = w.add("StringNormalizer", w.input("text", "string", None), {"case_change_action": "LOWER"}, domain="")
    tokens = w.add("StringSplit", lower, domain="", outputs=2)[0]
    counted = w.add("TfIdfVectorizer", tokens, {
        "mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
        "ngram_counts": [0, sum(" " not in g for g in grams)], "ngram_indexes": where, "pool_strings": pool,
        "weights": reals(t.idf_[where])}, domain="")
    label, scores = linear_classifier(w, w.add("Normalizer", counted, {"norm": "L2"}), m, "LOGISTIC")
    test = [*SENTENCES, "the DOG fell on the Bank", "unknown words only", "MARKETS and cats"]
    return ({"text": np.array(test, object)}, w.model([label, scores]),
            [(m.predict(t.transform(test)), 0), (m.predict_proba(t.transform(test)), 1e-5)])


@is_pipeline
def imputer_normalizer_regression():
    x, y, test = split(datasets.load_diabetes())
    rng = np.random.default_rng(0)
    for part in (x, test):
        part[rng.random(part.shape) < 0.1] = np.nan
    p = pipeline.make_pipeline(impute.SimpleImputer(strategy="median"), preprocessing.Normalizer(norm="l1"),
                               linear_model.LinearRegression()).fit(x, y)
    w = Writer()
    filled = w.add("Imputer", w.input("x", "float", x.shape[1]),
                   {"imputed_value_floats": reals(p[0].statistics_), "replaced_value_float": float("nan")})
    out = w.add("LinearRegressor", w.add("Normalizer", filled, {"norm": "L1"}),
                {"coefficients": reals(p[2].coef_), "intercepts": reals([p[2].intercept_])})
    return {"x": test}, w.model([out]), [(p.predict(test)[:, None], 1e-4)]


@is_pipeline
def multi_layer_perceptron():
    x, y, test = split(datasets.load_digits())
    p = pipeline.make_pipeline(preprocessing.StandardScaler(),
                               neural_network.MLPClassifier((40, 20), max_iter=300, random_state=0)).fit(x, y)
    w = Writer()
    scores = dense_layers(w, standard_scaler(w, w.input("x", "float", x.shape[1]), p[0]), p[1])
    label = w.add("ArgMax", scores, {"axis": 1, "keepdims": 0}, domain="")
    return ({"x": test}, w.model([label, w.add("Softmax", scores, {"axis": 1}, domain="")]),
            [(p.predict(test), 0), (p.predict_proba(test), 1e-4)])


# ---- main --------------------------------------------------------------------------------------------


def difference(found, expected, tolerance):
    """None, or what differs. The tolerance is relative to the largest magnitude; of maps keys are compared too."""
    if isinstance(expected, list):
        if [list(row) for row in found] != [list(row) for row in expected]:
            return "the keys of maps differ"
        found, expected = [np.array([list(row.values()) for row in rows]) for rows in (found, expected)]
    expected = np.asarray(expected)
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if tolerance == 0:
        wrong = np.array([str(a) != str(b) for a, b in zip(found.ravel(), expected.ravel())])
        return f"{wrong.sum()} of {wrong.size} labels differ" if wrong.any() else None
    worst = np.abs(found - expected).max() / max(1.0, np.abs(expected).max())
    return f"differs by {worst:.2e}, allowed {tolerance:.0e}" if not worst <= tolerance else None


def check(build, keep):
    inputs, model, expected = build()
    if keep:
        (pathlib.Path(keep) / f"{build.__name__}.onnx").write_bytes(model)
    found, _ = run_model(model, inputs)
    for i, (values, tolerance) in enumerate(expected):
        problem = difference(found[i], values, tolerance)
        if problem:
            return f"output {i}: {problem}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", help="a folder for the models")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    passed = failed = 0
    for build in PIPELINES:
        if options.names and build.__name__ not in options.names:
            continue
        try:
            problem = check(build, options.keep)
        except Exception:  # the others still run
            problem = traceback.format_exc()
        print(f"{build.__name__}: {problem or 'agrees'}")
        passed, failed = passed + (problem is None), failed + (problem is not None)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
