"""The service of `plimsoll lab fork-vs-spawn`: it runs one snippet of somebody else's code for each request.

service.py WAY SNIPPET PLIMSOLL: announces itself on descriptor 3, then answers each line with one. The ways are those
that the article tries one after the other, and the one that Plimsoll adds.
"""
import gc
import multiprocessing
import os
import subprocess
import sys


def run_snippet(path):
    with open(path) as file:
        code = file.read()
    namespace = {"__name__": "snippet"}
    exec(compile(code, path, "exec"), namespace)
    namespace.clear()


def in_process(path):
    run_snippet(path)
    gc.collect()


def reset_and_trim(path):
    import ctypes

    run_snippet(path)
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None:
        for reset in (lambda: torch.compiler.reset(), lambda: torch._C._jit_clear_class_registry(),
                      lambda: torch.jit._state._python_cu.drop_all_functions()):
            try:
                reset()
            except (AttributeError, RuntimeError):
                pass  # not in this version of torch
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def worker(start_method):
    def run(path):
        process = multiprocessing.get_context(start_method).Process(target=run_snippet, args=(path,))
        process.start()
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"the worker ended with {process.exitcode}")
    return run


def with_receipt(path):
    subprocess.run([sys.argv[3], "exec", "--quiet", "--", sys.executable, path],
                   check=True, stdin=subprocess.DEVNULL)


WAYS = {"in process": in_process, "reset and trim": reset_and_trim, "fork": worker("fork"), "spawn": worker("spawn"),
        "plimsoll exec": with_receipt}


def main():
    run = WAYS[sys.argv[1]]
    channel = os.fdopen(3, "r+b", buffering=0)
    channel.write(b"ready\n")
    while channel.readline():
        try:
            run(sys.argv[2])
            channel.write(b"done\n")
        except Exception as error:  # the lab shows it and stops
            channel.write(f"failed: {type(error).__name__}: {error}".replace("\n", " ").encode() + b"\n")


if __name__ == "__main__":
    main()
