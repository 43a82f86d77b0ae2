"""The doctor's own loop around a model."""
from .watching import Watch


def run(model, inputs, iterations, experiments):
    if iterations < 1:
        raise ValueError(f"iterations: at least 1 expected, {iterations} found")
    if not callable(model):
        raise TypeError(f"model: a Module or a callable expected, {type(model).__name__} found")
    watching = Watch().start()
    watching.step_name = "a call of the model by check()"
    try:
        for _ in range(iterations):
            watching.step()
            arguments, keywords = _arguments(inputs() if callable(inputs) else inputs)
            model(*arguments, **keywords)
    finally:
        report = watching.stop(experiments)
    return report


def _arguments(inputs):
    if isinstance(inputs, dict):
        return (), inputs
    if isinstance(inputs, tuple):
        return inputs, {}
    return (inputs,), {}
