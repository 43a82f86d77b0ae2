"""Where models, goldens and ONNX Runtime live on this machine, and how a file gets there whole."""
import contextlib
import hashlib
import os
import pathlib
import sys
import tempfile


def cache_dir():
    return pathlib.Path(os.environ.get("PLIMSOLL_CACHE") or pathlib.Path.home() / ".cache" / "plimsoll")


def model_path(name):
    return cache_dir() / "models" / f"{name}.onnx"


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def whole_file(path):
    """Yields a temporary name beside `path` and renames it at the end: a killed process leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        yield pathlib.Path(temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def chosen(arguments, known):
    """The names given on the command line, or all of them; an unknown name ends the program with usage status."""
    for name in arguments:
        if name not in known:
            print(f"error: no model '{name}'; known: {' '.join(known)}", file=sys.stderr)
            sys.exit(2)
    return list(arguments) or list(known)


def print_list(names):
    for name in names:
        print(name if model_path(name).exists() else f"{name} missing")
    return 0
