"""What a result was measured on."""
import os
import pathlib
import platform
import re
import subprocess

INSTRUCTION_SETS = ["sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16",
                    "avx_vnni", "amx_tile", "asimd", "sve"]


def _field(path, name):
    match = re.search(rf"^{name}\s*:\s*(.*)$", pathlib.Path(path).read_text(), re.MULTILINE)
    return match[1].strip() if match else ""


def _output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


BEYOND_AVX2 = ("avx512", "avx_vnni", "amx_")


def describe(root, held=None):
    """`held` are the instructions beyond which both engines see none."""
    flags = set((_field("/proc/cpuinfo", "flags") or _field("/proc/cpuinfo", "Features")).split())
    if held:
        flags = {flag for flag in flags if not flag.startswith(BEYOND_AVX2)}
    return {
        "cpu": _cpu() + (f", both held to {held.upper()}" if held else ""),
        "instruction_sets": [name for name in INSTRUCTION_SETS if name in flags],
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(_field("/proc/meminfo", "MemTotal").split()[0]) * 1024,
        "load_average": os.getloadavg()[0],
        "kernel": platform.release(),
        "system": _system(),
        "node": _output("node", "--version"),
        "plimsoll_commit": _output("git", "-C", str(root), "describe", "--always", "--dirty"),
    }


def _cpu():
    """Virtual machines say "AMD EPYC" or "Intel Xeon" of every generation: family, model and stepping tell which."""
    name = _field("/proc/cpuinfo", "model name") or platform.machine()
    if "AMD" not in name and "Intel" not in name:
        return name
    family, model, stepping = (int(_field("/proc/cpuinfo", field) or 0) for field in ("cpu family", "model", "stepping"))
    generation = _amd(family, model) if "AMD" in name else _intel(family, model, stepping)
    return f"{re.sub(r' *@.*', '', name)} ({generation})"


def _intel(family, model, stepping):
    if (family, model) == (6, 85):
        return "Skylake" if stepping < 5 else "Cascade Lake" if stepping < 10 else "Cooper Lake"
    return {(6, 79): "Broadwell", (6, 106): "Ice Lake", (6, 143): "Sapphire Rapids", (6, 207): "Emerald Rapids",
            (6, 173): "Granite Rapids"}.get((family, model), f"family {family}, model {model}")


def _amd(family, model):
    zen4 = family == 25 and (0x10 <= model <= 0x1f or 0x60 <= model <= 0x7f or 0xa0 <= model <= 0xaf)
    return {23: "Zen 2 or before", 25: "Zen 4" if zen4 else "Zen 3", 26: "Zen 5"}.get(family, f"family {family}")


def _system():
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)
    return match[1] if match else platform.system()


def slug(cpu):
    return re.sub(r"[^a-z0-9]+", "-", cpu.lower()).strip("-")
