"""The Python examples of these pages of docs/ run as they stand, from the repository's root."""
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("python.md", "moving.md", "training-python.md")
EXAMPLES = [example for page in PAGES
            for example in re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number, tmp_path):
    if "torch" in EXAMPLES[number]:
        pytest.importorskip("torch", reason="no python3-torch")
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES[number])
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    # A line that ends in `# text` without dots promises to print just that.
    for promised in re.findall(r"print\(.*\) +# ([^.;\n]+)$", EXAMPLES[number], re.MULTILINE):
        assert promised in done.stdout, done.stdout


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
