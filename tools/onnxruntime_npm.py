#!/usr/bin/python3
"""ONNX Runtime from npm, the peer that answers and speed are compared with. As a program: installs it.

It goes to ${PLIMSOLL_CACHE:-~/.cache/plimsoll}/ort; no script of the package is run.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import npm
from cache import cache_dir

PACKAGE = "onnxruntime-node"
VERSION = "1.30.0"


class Unavailable(Exception):
    pass


def home():
    return cache_dir() / "ort"


def installed_version():
    try:
        return json.loads((home() / "node_modules" / PACKAGE / "package.json").read_text())["version"]
    except (OSError, ValueError, KeyError):
        return None


def environment():
    """What our Node scripts need to find the package."""
    return os.environ | {"PLIMSOLL_ORT": str(home() / "node_modules" / PACKAGE)}


def ensure():
    """Installs the package if it is not there: beside its place first, then by one rename."""
    if installed_version() == VERSION:
        return
    if not (shutil.which("npm") and shutil.which("node")):
        raise Unavailable("node and npm are not installed (Debian packages nodejs and npm)")
    cache_dir().mkdir(parents=True, exist_ok=True)
    staging = tempfile.mkdtemp(prefix=".ort.", dir=cache_dir())
    try:
        done = subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
                               "--prefix", staging, f"{PACKAGE}@{VERSION}"], capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"npm install {PACKAGE}@{VERSION}: {npm.error(done.stderr)}")
        shutil.rmtree(home(), ignore_errors=True)
        os.rename(staging, home())
    finally:
        shutil.rmtree(staging, ignore_errors=True)


if __name__ == "__main__":
    try:
        ensure()
    except Unavailable as problem:
        sys.exit(f"error: {problem}")
