#!/usr/bin/python3
"""make_wheel.py BUILD FOLDER: a wheel of what is built in BUILD, for Debian's Python, written to FOLDER; prints its path.

It contains the Python package, the `plimsoll` command and, in plimsoll.libs, the library with every shared library of
Debian's that it needs beyond what each Debian has, so that nothing but Python and numpy is asked of the machine. Those keep
their names: a process that has one of them already goes on with that one.
"""
import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TAG = "cp311-cp311-linux_x86_64"
LIBS = "plimsoll.libs"
# Part of every Debian that has Python: the C library, and the C++ library, which apt itself needs.
EVERYWHERE = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s))\.so(\.\d+)*")
SUMMARY = "Runs ONNX models inside a memory budget; the names are those of ONNX Runtime's Python package"


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def install(build, prefix):
    for component in ("library", "command", "python"):
        run("cmake", "--install", build, "--component", component, "--prefix", prefix, "--strip")


def needed(binaries):
    """The files of all libraries that these need, by name."""
    found = {}
    for binary in binaries:
        for name, path in re.findall(r"^\t(\S+) => (/\S+) \(", run("ldd", binary), re.MULTILINE):
            if not EVERYWHERE.fullmatch(name) and not name.startswith("libplimsoll"):
                found[name] = pathlib.Path(path).resolve()
    return found


def owner(path):
    """The Debian package of a file, which may have been put there under /lib before that became /usr/lib."""
    done = subprocess.run(["dpkg", "-S", path, str(path).removeprefix("/usr")], capture_output=True, text=True)
    return done.stdout.split(":")[0]


def licenses(libraries, folder):
    """What Debian says of whose work it is."""
    for path in libraries.values():
        package = owner(path)
        target = folder / f"{package}.txt"
        if not target.exists():
            shutil.copy(f"/usr/share/doc/{package}/copyright", target)


def search(binary, *folders):
    """Looks for libraries there, for those of its libraries too (RPATH, not RUNPATH)."""
    run("patchelf", "--force-rpath", "--set-rpath", ":".join(folders), binary)


def fill(build, tree, version):
    with tempfile.TemporaryDirectory() as room:
        prefix = pathlib.Path(room)
        install(build, prefix)
        package, = prefix.glob("lib/python3.*/dist-packages/plimsoll")
        command = prefix / "bin/plimsoll"
        library = next(path for path in prefix.glob("lib/*/libplimsoll.so.*") if path.is_symlink())
        shutil.copytree(package, tree / "plimsoll")
        scripts, libs, info = tree / f"plimsoll-{version}.data/scripts", tree / LIBS, tree / f"plimsoll-{version}.dist-info"
        for folder in (scripts, libs, info / "licenses"):
            folder.mkdir(parents=True)
        shutil.copy(command, scripts)
        shutil.copy(library.resolve(), libs / library.name)
        decoders, = prefix.glob("lib/*/libplimsoll_decoders.so.*")
        shutil.copy(decoders, libs)
    modules = list((tree / "plimsoll").glob("*.so"))
    # The copies have the search paths of the build no more; the library stands beside them.
    os.environ["LD_LIBRARY_PATH"] = str(libs)
    libraries = needed([*modules, scripts / "plimsoll", libs / library.name, libs / decoders.name])
    for name, path in libraries.items():
        shutil.copy(path, libs / name)
    licenses(libraries, info / "licenses")
    shutil.copy(ROOT / "LICENSE", info / "licenses/plimsoll.txt")
    for module in modules:
        search(module, f"$ORIGIN/../{LIBS}")
    # A virtual environment and --user; then pip as root outside of one.
    search(scripts / "plimsoll", *(f"$ORIGIN/../lib/python3.11/{kind}-packages/{LIBS}" for kind in ("site", "dist")))
    for path in libs.iterdir():
        search(path, "$ORIGIN")
    return info


def describe(info, version):
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: plimsoll make_wheel.py\nRoot-Is-Purelib: false\nTag: {TAG}\n")
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: plimsoll\nVersion: {version}\nSummary: {SUMMARY}\nLicense: Apache-2.0\n"
        "Requires-Python: >=3.11,<3.12\nRequires-Dist: numpy\nProvides-Extra: torch\nRequires-Dist: torch; extra == 'torch'\n"
        "Description-Content-Type: text/markdown\n\n" + (ROOT / "docs/installing.md").read_text())
    (info / "top_level.txt").write_text("plimsoll\n")


def pack(tree, info, path):
    """The same tree gives the same bytes."""
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
            wheel.writestr(entry, data)
        for file in sorted(path for path in tree.rglob("*") if path.is_file()):
            name, data = file.relative_to(tree).as_posix(), file.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            writer.writerow([name, f"sha256={digest}", len(data)])
            add(name, data, 0o755 if "/scripts/" in name else 0o644)
        record = info.relative_to(tree).as_posix() + "/RECORD"
        writer.writerow([record, "", ""])
        add(record, rows.getvalue(), 0o644)


def main():
    build, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    version = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(\S+)", (build / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"plimsoll-{version}-{TAG}.whl"
    with tempfile.TemporaryDirectory() as room:
        tree = pathlib.Path(room)
        info = fill(build, tree, version)
        describe(info, version)
        pack(tree, info, path)
    print(path)


if __name__ == "__main__":
    main()
