"""Why does the memory of this PyTorch program grow? See docs/torch-doctor.md.

    report = plimsoll.torch_doctor.check(model, inputs, iterations=30)
    with plimsoll.torch_doctor.watch() as report: ...
    python -m plimsoll.torch_doctor script.py

Importing this package does not import torch.
"""
import contextlib

from .report import Finding, Report

__all__ = ["Finding", "Report", "check", "watch"]


@contextlib.contextmanager
def watch(experiments=True):
    """Watches the caller's own loop. An iteration is a call of a module from the caller's code, or what lies between
    two `report.step()`. The report is filled when the block ends, also by an exception. `experiments`: at the end,
    collect garbage and ask malloc to give back what it holds."""
    from .watching import Watch
    watching = Watch().start()
    try:
        yield watching.report
    finally:
        watching.stop(experiments)


def check(model, inputs=(), iterations=30, experiments=True):
    """Calls `model` (a Module or any callable) with `inputs` (a tensor, a tuple of arguments, a dictionary of keyword
    arguments, or a function that makes one of these) and reports. Autograd is on or off as it is for the caller."""
    from .checking import run
    return run(model, inputs, iterations, experiments)
