"""The examples of docs/python.md run as they stand."""
import pathlib
import re
import subprocess
import sys

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number, tmp_path):
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES[number])
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    # A line that ends in `# text` without dots promises to print just that.
    for promised in re.findall(r"print\(.*\) +# ([^.;\n]+)$", EXAMPLES[number], re.MULTILINE):
        assert promised in done.stdout, done.stdout


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
