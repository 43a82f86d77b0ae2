#!/usr/bin/python3
"""complete_packages.py STAGE VERSION CONTACT: what Debian's policy asks of every package below CPack's stage.

Each gets copyright and changelog in usr/share/doc; manual pages are compressed; search paths leave the binaries, which find
the library where Debian has it.
"""
import gzip
import os
import pathlib
import subprocess
import sys

PACKAGES = {"library": "libplimsoll{soname}", "development": "libplimsoll-dev", "command": "plimsoll",
            "debian_python": "python3-plimsoll"}  # of each component, as in cmake/packages.cmake
ROOT = pathlib.Path(__file__).resolve().parent.parent
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: plimsoll

Files: *
Copyright: 2026 the Plimsoll authors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
"""
UPLOT = """
Files: third_party/uplot/*
Copyright: {holder}
License: Expat
{text}
"""


def compress(path, text):
    with gzip.GzipFile(path, "wb", 9, mtime=0) as file:
        file.write(text)


def uplot_license():
    """Part of the pages that `plimsoll watch --html` writes."""
    lines = (ROOT / "third_party/uplot/LICENSE").read_text().splitlines()
    holder = next(line for line in lines if line.startswith("Copyright")).removeprefix("Copyright (c) ")
    return UPLOT.format(holder=holder, text="\n".join(f" {line}" if line.strip() else " ." for line in lines))


def last_commit_date():
    stamp = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%aD"], capture_output=True, text=True).stdout.strip()
    return stamp or "Thu, 01 Jan 1970 00:00:00 +0000"


def complete(folder, package, version, contact):
    doc = folder / "usr/share/doc" / package
    doc.mkdir(parents=True)
    (doc / "copyright").write_text(COPYRIGHT + (uplot_license() if package == "plimsoll" else ""))
    changelog = (f"plimsoll ({version}) unstable; urgency=medium\n\n  * What changed is told in the project's CHANGELOG.md.\n\n"
                 f" -- {contact}  {last_commit_date()}\n")
    compress(doc / "changelog.gz", changelog.encode())
    for page in folder.glob("usr/share/man/man*/*.[1-8]"):
        compress(f"{page}.gz", page.read_bytes())
        page.unlink()
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        binary = path.open("rb").read(4) == b"\x7fELF"
        if binary:
            subprocess.run(["patchelf", "--remove-rpath", path], check=True)
        path.chmod(0o755 if binary and path.parent.name == "bin" else 0o644)


def main():
    stage, version, contact = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    os.umask(0o022)
    for component, package in PACKAGES.items():
        if (stage / component).is_dir():
            complete(stage / component, package.format(soname=version.rpartition(".")[0]), version, contact)


if __name__ == "__main__":
    main()
