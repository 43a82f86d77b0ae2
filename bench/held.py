"""ONNX Runtime as it is on a machine with AVX2 and nothing beyond it, on a machine that has more.

It asks the CPU what it can, by CPUID, which no program may intercept here (no CPUID faulting on AMD; /dev/kvm, where it
is, boots no unmodified guest: docs/decisions/0027-held-to-avx2.md). So a copy of the library gets UD2 in the place of
each CPUID, and a small library beside it answers (hold_cpuid.c). Nothing else in it changes: what it runs then is what
it runs on such a machine.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import onnxruntime_npm
from cache import cache_dir, whole_file

SOURCE = pathlib.Path(__file__).with_name("hold_cpuid.c")
CPUID, UD2 = b"\x0f\xa2", b"\x0f\x0b"
HELD = onnxruntime_npm.INFERENCE._replace(folder="ort-avx2")
PRELOADED = "hold_cpuid.so"


def file_offset(segments, address):
    offset, = (start + address - begin for start, begin, size in segments if begin <= address < begin + size)
    return offset


def without_cpuid(library, copy):
    """Writes the copy; returns how many instructions were replaced. The disassembler tells them from like bytes."""
    headers = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout
    segments = [tuple(int(x, 16) for x in found) for found in
                re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", headers)]
    data = bytearray(pathlib.Path(library).read_bytes())
    count = 0
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", library], stdout=subprocess.PIPE, text=True) as listing:
        for line in listing.stdout:
            if line.rstrip().endswith("\tcpuid"):
                at = file_offset(segments, int(line.partition(":")[0], 16))
                if data[at:at + 2] != CPUID:
                    raise ValueError(f"{library}: no CPUID at {at:#x}")
                data[at:at + 2] = UD2
                count += 1
    if listing.returncode != 0 or count == 0:
        raise ValueError(f"{library}: the disassembler found no CPUID")
    pathlib.Path(copy).write_bytes(data)
    return count


def build_preloaded(path):
    with whole_file(pathlib.Path(path)) as temporary:
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", temporary, SOURCE], check=True)


def ensure():
    """Makes the copy, once, and what is preloaded, anew: it is small."""
    onnxruntime_npm.ensure()
    if HELD.installed_version() != HELD.version:
        staging = pathlib.Path(tempfile.mkdtemp(prefix=f".{HELD.folder}.", dir=cache_dir()))
        try:
            shutil.copytree(onnxruntime_npm.INFERENCE.home() / "node_modules", staging / "node_modules",
                            ignore=shutil.ignore_patterns("darwin", "win32", "arm64", "libonnxruntime.so*"))
            for library in onnxruntime_npm.INFERENCE.path().glob("bin/*/linux/x64/libonnxruntime.so*"):
                without_cpuid(library, staging / library.relative_to(onnxruntime_npm.INFERENCE.home()))
            shutil.rmtree(HELD.home(), ignore_errors=True)
            os.rename(staging, HELD.home())
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    build_preloaded(HELD.home() / PRELOADED)


def environment():
    """Of both engines: C's library, too, copies memory as it would there."""
    return onnxruntime_npm.environment(HELD) | {
        "LD_PRELOAD": str(HELD.home() / PRELOADED), "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW"}
