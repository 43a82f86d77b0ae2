"""Runs that are stopped, wait, or end with their process: never a hang, never a crash."""
import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import models
import numpy as np
import pytest

import plimsoll as ort

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture(scope="module")
def endless():
    return ort.InferenceSession(models.forever())


def program(text, model, tmp_path, **kwargs):
    """Runs a program of its own with `model` in model.onnx."""
    (tmp_path / "model.onnx").write_bytes(model)
    preamble = ("import os, signal, sys, threading, time, numpy as np, plimsoll as ort\n"
                "session = ort.InferenceSession('model.onnx')\n"
                "FOREVER = {'n': np.array(1 << 60), 'x': np.zeros(1, np.float32)}\n"
                "X = np.ones((2, 4), np.float32)\n")
    return subprocess.run([sys.executable, "-c", preamble + text], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60, check=False, **kwargs)


def test_a_loop_that_ends(endless):
    result, = endless.run(None, {"n": np.array(5), "x": np.zeros(1, np.float32)})
    assert result == 5


def test_terminate_stops_a_run_and_only_it(endless):
    options = ort.RunOptions()
    threading.Timer(0.2, lambda: setattr(options, "terminate", True)).start()
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail, match="cancelled") as caught:
        endless.run(None, models.FOREVER, options)
    assert type(caught.value) is ort.Cancelled
    with pytest.raises(ort.Cancelled):  # until it is unset
        endless.run(None, models.FOREVER, options)
    options.terminate = False
    assert endless.run(None, {"n": np.array(2), "x": X[0, :1]}, options)[0] == 2


def test_timeout(endless):
    options = ort.RunOptions()
    options.timeout = 0.1
    with pytest.raises(TimeoutError):
        endless.run(None, models.FOREVER, options)


def test_signal_handlers_run_during_a_run(endless):
    seen = []

    def handler(number, frame):
        seen.append(number)
        if len(seen) == 2:
            raise RuntimeError("enough")

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.2)
    try:
        with pytest.raises(RuntimeError, match="enough"):
            endless.run(None, models.FOREVER)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) == 2  # the first did not stop it
    assert endless.run(None, {"n": np.array(2), "x": X[0, :1]})[0] == 2


def test_ctrl_c(endless):
    main = threading.main_thread().ident
    threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        endless.run(None, models.FOREVER)
    binding = endless.io_binding()
    for name, array in models.FOREVER.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("y")
    threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        endless.run_with_iobinding(binding)


def test_other_threads_go_on_during_a_run(endless):
    options = ort.RunOptions()
    counted = []

    def count():
        for _ in range(1000):
            counted.append(1)
        options.terminate = True

    threading.Timer(0.05, count).start()
    with pytest.raises(ort.Cancelled):
        endless.run(None, models.FOREVER, options)
    assert len(counted) == 1000


def test_many_threads_on_one_session():
    session = ort.InferenceSession(models.chain())
    feeds = [np.full((4, 256), number, np.float32) for number in range(16)]
    wrong = []

    def run(feed):
        for _ in range(20):
            if not np.allclose(session.run(None, {"x": feed})[0], feed, rtol=1e-4):
                wrong.append(feed[0, 0])

    threads = [threading.Thread(target=run, args=(feed,)) for feed in feeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert session.plan({"x": [4, 256]}).concurrent_runs == len(os.sched_getaffinity(0))


def test_run_async_calls_back():
    session = ort.InferenceSession(models.double())
    done, got = threading.Event(), []

    def callback(results, user_data, error):
        got.append((results, user_data, error, threading.current_thread()))
        done.set()

    session.run_async(["y"], {"x": X}, callback, "mine")
    assert done.wait(20)
    results, user_data, error, thread = got[0]
    np.testing.assert_array_equal(results[0], 2 * X)
    assert user_data == "mine" and error == "" and thread is not threading.current_thread()
    with pytest.raises(ort.InvalidArgument):  # at once
        session.run_async(None, {"z": X}, callback, None)


def test_run_async_tells_errors(endless):
    done, got = threading.Event(), []
    options = ort.RunOptions()

    def callback(results, user_data, error):
        got.append((results, error))
        done.set()

    endless.run_async(None, models.FOREVER, callback, None, options)
    options.terminate = True
    assert done.wait(20)
    assert got == [([], "the run was cancelled")]


def test_asyncio(endless):
    session = ort.InferenceSession(models.double())

    async def main():
        results = await asyncio.gather(*(session.arun(None, {"x": X + number}) for number in range(8)))
        for number, (result,) in enumerate(results):
            np.testing.assert_array_equal(result, 2 * (X + number))
        task = asyncio.create_task(endless.arun(None, models.FOREVER))
        await asyncio.sleep(0.1)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await endless.arun(None, {"n": np.array(3), "x": X[0, :1]}))[0] == 3  # there is room again
        with pytest.raises(ort.InvalidArgument):
            await session.arun(None, {})

    asyncio.run(main())


def test_a_forked_child_runs(tmp_path):
    done = program("""
session.run(None, {'x': np.ones((64, 256), np.float32)})
child = os.fork()
if child == 0:
    assert np.allclose(session.run(None, {'x': np.ones((64, 256), np.float32)})[0], 1, rtol=1e-4)
    other = ort.InferenceSession('model.onnx')
    assert np.allclose(other.run(None, {'x': np.ones((64, 256), np.float32)})[0], 1, rtol=1e-4)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert np.allclose(session.run(None, {'x': np.ones((64, 256), np.float32)})[0], 1, rtol=1e-4)
""", models.chain(), tmp_path)
    assert done.stdout == "7\n", done.stderr


def test_a_child_forked_during_a_run_is_told(tmp_path):
    done = program("""
options = ort.RunOptions()
def run():
    try: session.run(None, FOREVER, options)
    except ort.Cancelled: print('cancelled')
thread = threading.Thread(target=run)
thread.start()
time.sleep(0.2)
child = os.fork()
if child == 0:
    try: session.run(None, FOREVER)
    except ort.NoModel as error: os._exit(7 if 'forked' in str(error) else 8)
    os._exit(9)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
options.terminate = True
thread.join()
print(code)
""", models.forever(), tmp_path)
    assert done.stdout == "cancelled\n7\n", done.stderr


def test_ctrl_c_in_a_forked_child(tmp_path):
    done = program("""
session.run(None, {'n': np.array(3), 'x': X[0, :1]})
child = os.fork()
if child == 0:
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try: session.run(None, FOREVER)
    except KeyboardInterrupt: os._exit(7)
    os._exit(8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""", models.forever(), tmp_path)
    assert done.stdout == "7\n", done.stderr


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError('over')"])
def test_the_interpreter_ends_during_a_run(end, tmp_path):
    done = program(f"""
threading.Thread(target=lambda: session.run(None, FOREVER), daemon=True).start()
time.sleep(0.2)
{end}
""", models.forever(), tmp_path)
    assert done.returncode == {"": 0, "sys.exit(3)": 3}.get(end, 1), done.stderr
    assert "Fatal" not in done.stderr and "terminate" not in done.stderr


def test_the_interpreter_ends_as_runs_end(tmp_path):
    done = program("""
def run():
    while True: session.run(None, {'x': X})
for _ in range(4): threading.Thread(target=run, daemon=True).start()
time.sleep(0.2)
""", models.double(), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_started_run_ends_before_the_interpreter(tmp_path):
    done = program("""
session.run_async(None, {'n': np.array(300000), 'x': X[0, :1]}, lambda results, data, error: print(results[0][0]), None)
""", models.forever(), tmp_path)
    assert (done.returncode, done.stdout) == (0, "300001.0\n"), done.stderr
