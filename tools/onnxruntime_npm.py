#!/usr/bin/python3
"""ONNX Runtime from npm, the peer that answers and speed are compared with. As a program: installs it.

It goes to ${PLIMSOLL_CACHE:-~/.cache/plimsoll}/ort; no script of the package is run. TRAINING is the last package that has
its training, in WebAssembly; it goes to .../ort-training.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

import npm
from cache import cache_dir


class Package(NamedTuple):
    name: str
    version: str
    folder: str
    variable: str  # by which our scripts for Node find it

    def home(self):
        return cache_dir() / self.folder

    def path(self):
        return self.home() / "node_modules" / self.name

    def installed_version(self):
        try:
            return json.loads((self.path() / "package.json").read_text())["version"]
        except (OSError, ValueError, KeyError):
            return None


INFERENCE = Package("onnxruntime-node", "1.30.0", "ort", "PLIMSOLL_ORT")
TRAINING = Package("onnxruntime-web", "1.19.2", "ort-training", "PLIMSOLL_ORT_WEB")


class Unavailable(Exception):
    pass


def installed_version():
    return INFERENCE.installed_version()


def environment(package=INFERENCE):
    """What our Node scripts need to find the package."""
    return os.environ | {package.variable: str(package.path())}


def ensure(package=INFERENCE):
    """Installs the package if it is not there: beside its place first, then by one rename."""
    if package.installed_version() == package.version:
        return
    if not (shutil.which("npm") and shutil.which("node")):
        raise Unavailable("node and npm are not installed (Debian packages nodejs and npm)")
    cache_dir().mkdir(parents=True, exist_ok=True)
    staging = tempfile.mkdtemp(prefix=f".{package.folder}.", dir=cache_dir())
    wanted = f"{package.name}@{package.version}"
    try:
        done = subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
                               "--prefix", staging, wanted], capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"npm install {wanted}: {npm.error(done.stderr)}")
        shutil.rmtree(package.home(), ignore_errors=True)
        os.rename(staging, package.home())
    finally:
        shutil.rmtree(staging, ignore_errors=True)


if __name__ == "__main__":
    try:
        ensure()
    except Unavailable as problem:
        sys.exit(f"error: {problem}")
