"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, from the text of Operators.md."""
import numpy as np

from float_types import any_float, reals, tolerance, values_of
from harness import choice, random_shape, reference, rejects


def loss_cases(opsets, outputs):
    def generate(rng):
        kind = any_float(rng)
        space = random_shape(rng, most=4, largest=4)
        if rng.random() < 0.2:
            space = [int(rng.integers(60, 150))]
        batch, classes = int(rng.integers(1, 5)), int(rng.integers(1, 400) if rng.random() < 0.2 else rng.integers(1, 8))
        labels = rng.integers(0, classes, [batch, *space]).astype(choice(rng, [np.int32, np.int64]))
        attrs = {}
        if rng.random() < 0.8:
            attrs["reduction"] = choice(rng, ["none", "mean", "sum"])
        if rng.random() < 0.5:
            attrs["ignore_index"] = choice(rng, [-1, 0, classes + 3])
            labels[rng.random(labels.shape) < 0.2] = attrs["ignore_index"]
        inputs = [reals(rng, [batch, classes, *space], kind), labels]
        if rng.random() < 0.5:
            inputs.append(reals(rng, [classes], kind, 0.2, 2.0))
        return {"inputs": inputs, "attrs": attrs, "opset": choice(rng, opsets), "outputs": choice(rng, outputs),
                **tolerance(kind)}
    return generate


def loss_of(scores, labels, weights, attrs):
    classes = scores.shape[1]
    weights = np.ones(classes) if weights is None else weights
    kept = np.ones(labels.shape, bool) if "ignore_index" not in attrs else labels != attrs["ignore_index"]
    losses, weight = np.zeros(labels.shape), np.zeros(labels.shape)
    for at in np.ndindex(labels.shape):
        if kept[at]:
            label = labels[at]
            losses[at] = -scores[(at[0], label, *at[1:])] * weights[label]
            weight[at] = weights[label]
    reduction = attrs.get("reduction", "mean")
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else np.divide(losses.sum(), weight.sum())


def weights_of(inputs):
    return values_of(inputs[2]) if len(inputs) > 2 else None


@reference("NegativeLogLikelihoodLoss", loss_cases([12, 13, 22], [1]))
def negative_log_likelihood_loss(inputs, attrs, **_):
    return [loss_of(values_of(inputs[0]), inputs[1], weights_of(inputs), attrs)]


@reference("SoftmaxCrossEntropyLoss", loss_cases([12, 13], [1, 2]))
def softmax_cross_entropy_loss(inputs, attrs, outputs, **_):
    scores = values_of(inputs[0])
    shifted = scores - scores.max(axis=1, keepdims=True) if scores.size else scores
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return [loss_of(log_probabilities, inputs[1], weights_of(inputs), attrs), log_probabilities][:outputs]


SCORES = np.zeros([2, 3], np.float32)
for op in ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]:
    rejects(op, [SCORES, np.array([0, 3])], says="target 3 is outside [0, 3)")
    rejects(op, [SCORES, np.array([0, -1])], says="target -1")
    rejects(op, [SCORES, np.array([0, 1, 2])], says="differ")
    rejects(op, [SCORES, np.array([0, 1])], {"reduction": "max"}, says="'max'")
    rejects(op, [SCORES, np.array([0.0, 1.0])], says="double")
    rejects(op, [SCORES, np.array([0, 1]), np.ones(4, np.float32)], says="differ")
    rejects(op, [SCORES[0], np.array([0, 1])], says="rank")
    rejects(op, [SCORES], says="expected 2 to 3 inputs")
