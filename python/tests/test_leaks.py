"""Runs, sessions, exceptions and bindings by the thousands, each kind in a process of its own, watched from this one by observe: flat, and
RSS within 1 MiB. PLIMSOLL_LEAK_SHARE=1 does all of it (100,000 runs, 1,000 sessions, 1,000 exceptions, 10,000 bindings), as
`./dev test --full` does; a tenth without. Then sixteen threads on one session, for PLIMSOLL_THREADS_SECONDS (3)."""
import os
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples" / "digits.onnx")
SHARE = float(os.environ.get("PLIMSOLL_LEAK_SHARE", "0.1"))
MIB = 1 << 20
COUNTS = {"runs": 100_000, "sessions": 1_000, "exceptions": 1_000, "bindings": 10_000}


def workloads():
    """Each kind's function of the iteration's number."""
    import plimsoll
    options = plimsoll.SessionOptions()
    options.intra_op_num_threads = 1  # threads would only wait for each other on so small a model
    session = plimsoll.InferenceSession(DIGITS, options)
    feeds = [{"image": np.random.default_rng(batch).random((batch, 1, 8, 8), np.float32)} for batch in (1, 3)]
    wrong = [{"image": np.zeros((1, 8, 8), np.float32)}, {"image": np.zeros((1, 1, 8, 8), np.int64)}, {"other": 1}, {}]
    broken = pathlib.Path(DIGITS).read_bytes()[:-100]

    def runs(number):
        session.run(None, feeds[number % 2])

    def sessions(number):
        plimsoll.InferenceSession(DIGITS, options).run(None, feeds[number % 2])

    def exceptions(number):
        try:
            if number % 5 == 4:
                plimsoll.InferenceSession(broken)
            else:
                session.run(None, wrong[number % 5])
        except plimsoll.Error:
            return
        except (ValueError, RuntimeError, TypeError):
            return
        raise AssertionError("nothing was raised")

    def bindings(number):
        binding = session.io_binding()
        binding.bind_cpu_input("image", feeds[number % 2]["image"])
        binding.bind_output(session.get_outputs()[0].name)
        session.run_with_iobinding(binding)
        binding.copy_outputs_to_cpu()
        if number % 2:
            binding.clear_binding_inputs()
            binding.clear_binding_outputs()

    return {"runs": runs, "sessions": sessions, "exceptions": exceptions, "bindings": bindings}


def soak(kind, count):
    """In the child: a tenth as a warm-up, then a line for each of 200 shares, and no more until it is answered."""
    work = workloads()[kind]
    for number in range(count // 10):
        work(number)
    step = max(1, count // 200)
    for number in range(count):
        if number % step == 0:
            print(number, flush=True)
            sys.stdin.readline()
        work(number)


@pytest.mark.parametrize("kind", COUNTS)
def test_nothing_grows(kind):
    from plimsoll import observe
    count, samples = round(COUNTS[kind] * SHARE), []
    with subprocess.Popen([sys.executable, __file__, kind, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as child:
        watcher = None
        for line in child.stdout:
            watcher = watcher or observe.Observer(child.pid, tree=False, cost_limit=1.0)  # not before it became what it is
            sample = watcher.read(int(line))
            sample.pop("container", None)  # the tests themselves are in it
            samples.append(sample)
            child.stdin.write("\n")
            child.stdin.flush()
    assert child.returncode == 0 and not any(sample.gap for sample in samples), [sample.get("gap_reason") for sample in samples]
    verdict = observe.judge(samples, minimum_seconds=0)
    rise = samples[-1].process.rss_bytes - samples[0].process.rss_bytes
    print(f"{count} {kind}: {verdict.verdict}, {rise / 1024:+.0f} KiB of {samples[-1].process.rss_bytes / MIB:.0f} MiB")
    assert verdict.verdict == "flat" and abs(rise) <= MIB, verdict


def test_sixteen_threads_on_one_session():
    import plimsoll
    options = plimsoll.SessionOptions()
    options.intra_op_num_threads = 1
    session = plimsoll.InferenceSession(DIGITS, options)
    seconds = float(os.environ.get("PLIMSOLL_THREADS_SECONDS", "3"))
    until, wrong, done = time.monotonic() + seconds, [], []

    def serve(seed):
        image = np.random.default_rng(seed).random((1 + seed % 3, 1, 8, 8), np.float32)
        expected = plimsoll.InferenceSession(DIGITS, options).run(None, {"image": image})[0]
        count = 0
        while time.monotonic() < until and not wrong:
            try:
                if not np.array_equal(session.run(None, {"image": image})[0], expected):
                    wrong.append(f"thread {seed}, run {count}")
            except Exception as error:
                wrong.append(repr(error))
            count += 1
        done.append(count)

    threads = [threading.Thread(target=serve, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(done) == 16 and min(done) > 0, wrong
    print(f"16 threads, {sum(done)} runs in {seconds:g} s")
    session.release_memory()
    assert session.memory_stats()["accounts"]["planned"]["now_bytes"] == 0


if __name__ == "__main__":
    soak(sys.argv[1], int(sys.argv[2]))
