"""The start page and the guides: all of their Python, C++ and commands run as they stand."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [DOCS / "index.md", *sorted((DOCS / "guide").glob("*.md"))]
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build"))


def snippets(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    """What the guides say is there."""
    shutil.copy(ROOT / "examples/digits.onnx", tmp_path / "model.onnx")
    shutil.copy(ROOT / "examples/digit.npy", tmp_path)
    return tmp_path


def run(command, folder):
    path = f"{BUILD}:{os.environ['PATH']}"
    return subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True,
                          check=False, timeout=120)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python(page, folder):
    for source in snippets(page, "python"):
        done = run([sys.executable, "-c", source], folder)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
        # `print(...)  # text` promises to print just that, in order.
        for promised in re.findall(r"print\(.*\) +# (True|False|\d+|\(.*\)|\w+)$", source, re.MULTILINE):
            assert promised in printed, done.stdout
            printed = printed.split(promised, 1)[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands(page, folder):
    for source in snippets(page, "sh"):
        done = run(["bash", "-euo", "pipefail", "-c", source], folder)
        assert done.returncode == 0, done.stdout + done.stderr


def test_cpp(folder):
    """One program of all of them: compiling is what takes long."""
    pieces = [(page.stem, source) for page in PAGES for source in snippets(page, "cpp")]
    assert len(pieces) >= len(PAGES)
    text = "#include <plimsoll/cxx_api.h>\n#include <plimsoll/operators.h>\n#include <cstdio>\n#include <stdexcept>\n#include <vector>\n"
    for number, (name, source) in enumerate(pieces):
        text += f'// {name}\nstatic void snippet_{number}() {{\nplimsoll::Env env;\n{source}}}\n'
    calls = "\n".join(f"snippet_{number}();" for number in range(len(pieces)))
    (folder / "snippets.cpp").write_text(f"{text}int main() {{\n{calls}\n}}\n")
    libraries = sorted(BUILD.rglob("libplimsoll.so"))
    if not libraries:
        pytest.skip("no libplimsoll.so in the build")
    library = libraries[0].parent
    built = run(["g++", "-std=c++20", "-I", ROOT / "include", "snippets.cpp", "-o", "snippets", "-L", library,
                 "-lplimsoll", f"-Wl,-rpath,{library}"], folder)
    assert built.returncode == 0, built.stderr[:3000]
    done = run([folder / "snippets"], folder)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_links(page):
    """Every relative link leads to a file of the project."""
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


NAMES = dict(re.findall(r"^\| `([\w.]+)` \| (same|better|without effect|refused) \|", (DOCS / "moving.md").read_text(), re.MULTILINE))
OURS = re.findall(r"^\| `([\w.]+)` \| (?!same|better|without|refused)", (DOCS / "moving.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", [name for name, state in NAMES.items() if state != "refused"] + OURS)
def test_names_of_the_table_are_there(name):
    import plimsoll
    if name.startswith("training."):
        pytest.importorskip("torch", reason="no python3-torch")
        pytest.importorskip("onnx", reason="no python3-onnx")
    thing = plimsoll
    for part in name.split("."):
        thing = getattr(thing, part)


@pytest.mark.parametrize("name", ["InferenceSession", "SessionOptions", "RunOptions", "IOBinding", "OrtValue"])
def test_the_table_has_every_name(name):
    import plimsoll
    public = {f"{name}.{member}" for member in dir(getattr(plimsoll, name)) if not member.startswith("_")}
    assert public <= {*NAMES, *OURS}


def test_the_table_has_every_function_and_enumeration():
    import inspect
    import plimsoll
    ours_alone = {"isolated", "isolated_source", "shared_empty"}  # jobs: docs/python.md
    public = {name for name in plimsoll.__all__ if inspect.isfunction(getattr(plimsoll, name))} - ours_alone
    assert public <= {*NAMES, *OURS}
