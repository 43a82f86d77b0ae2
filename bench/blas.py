"""PyTorch's matrix products at their best. Debian's torch multiplies by whatever BLAS is installed: without libopenblas0-pthread at
4 GFLOP/s, and OpenBLAS takes processors that are younger than itself for the oldest it knows (a Xeon of 2024 for Prescott: 31
GFLOP/s instead of 138)."""
import functools
import os
import subprocess
import sys

KERNELS = ("", "Haswell", "Zen", "SkylakeX", "Cooperlake")  # of OpenBLAS; the first: its own choice
PRODUCT = """
import time, torch
torch.set_num_threads({threads})
a, best = torch.randn(1024, 1024), 1e9
for _ in range(10):
    start = time.perf_counter()
    a @ a
    best = min(best, time.perf_counter() - start)
print(2 * 1.024**3 / best)
"""


def _environment(threads, kernel):
    given = {"OPENBLAS_CORETYPE": kernel} if kernel else {}
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), **given}


@functools.lru_cache(maxsize=None)
def fastest(threads):
    """(GFLOP/s of a 1024x1024x1024 product in PyTorch, the kernel of OpenBLAS that gives it)."""
    speeds = []
    for kernel in KERNELS:
        done = subprocess.run([sys.executable, "-c", PRODUCT.format(threads=threads)], capture_output=True, text=True,
                              env=_environment(threads, kernel))
        if done.returncode == 0:  # a kernel that this processor cannot run ends the process
            speeds.append((float(done.stdout), kernel))
    return max(speeds)


def torch_environment(threads):
    """Of a process in which PyTorch has that kernel."""
    return _environment(threads, fastest(threads)[1])


def described(threads):
    """A line for people."""
    speed, kernel = fastest(threads)
    return f"PyTorch's 1024x1024x1024 product: {speed:.0f} GFLOP/s at {threads} threads ({kernel or 'what OpenBLAS chose'})"
