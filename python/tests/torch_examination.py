"""What the tests of the torch doctor share. Import it before anything that imports torch."""
import gc

import pytest

torch = pytest.importorskip("torch", reason="no python3-torch")

# The doctor looks at every object there is: without torch's own, as after gc.freeze() in a server, it is quick.
gc.collect()
gc.freeze()

import torch_patients as patients  # noqa: E402
from plimsoll import torch_doctor  # noqa: E402


def examine(patient, n=14, **options):
    with torch_doctor.watch(**options) as report:
        patient(n)
    assert report.finished and not [note for note in report.notes if "doctor itself failed" in note], report.notes
    return report


def found(report):
    return {finding.cause for finding in report.findings}


def line_of(finding):
    """The first line to change, as it stands in torch_patients.py."""
    assert finding.places, finding.to_text()
    assert finding.places[0].file == patients.__file__
    return finding.places[0].code
