"""isolated and isolated_source."""
import io
import os
import pathlib
import subprocess
import sys
import threading
import time
import zipfile

import pytest

import plimsoll
from jobs import work

ROOT = pathlib.Path(__file__).resolve().parents[2]


def alive(pid):
    """Not counting those that wait for init to notice."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_returns_the_value_and_a_receipt():
    result = plimsoll.isolated(work.add, 2, b=3, limit="512MiB", timeout=60)
    assert result.value == 5
    assert result.receipt.exit_code == 0 and result.receipt.ending == "exited"
    assert result.receipt.limit_bytes == 512 << 20 and not result.receipt.limit_hit
    assert result.receipt.peak_bytes > 1 << 20 and "exited" in str(result.receipt)


def test_runs_elsewhere_each_time():
    assert len({plimsoll.isolated(work.pid).value, plimsoll.isolated(work.pid).value, os.getpid()}) == 3
    assert plimsoll.isolated(work.descriptors).value[:3] == [0, 1, 2]


def test_original_exception_with_its_traceback():
    with pytest.raises(KeyError) as caught:
        plimsoll.isolated(work.fail_deep, "key")
    assert caught.value.args == ("key",)
    text = str(caught.value.__cause__)
    assert "in fail_deep" in text and "in inner" in text and "_worker.py" not in text
    assert caught.value.receipt.exit_code == 0


def test_exceptions_with_any_constructor_are_what_they_were():
    """Their __init__ wants what nobody kept, or they hold what cannot travel."""
    for kind, arguments, keywords in ((work.Stubborn, ("this", "that"), {}), (work.Locked, ("this",), {}),
                                      (work.Demanding, (), {"code": 7, "reason": "this"})):
        with pytest.raises(kind) as caught:
            plimsoll.isolated(work.fail, kind, *arguments, **keywords)
        assert type(caught.value) is kind and "this" in str(caught.value)
        assert "Traceback" in str(caught.value.__cause__) and "in fail" in str(caught.value.__cause__)
        assert caught.value.receipt is not None
    assert caught.value.code == 7
    with plimsoll.Pool(1) as pool:
        assert isinstance(pool.submit(work.fail, work.Stubborn, 1, 2).exception(), work.Stubborn)


def test_exception_whose_type_is_not_known_here_comes_as_text():
    with pytest.raises(plimsoll.RemoteError) as caught:
        plimsoll.isolated(work.fail_with_a_local_type)
    assert caught.value.type_name.endswith("Local") and "in fail_with_a_local_type" in caught.value.traceback


@pytest.mark.parametrize("bad, says", [
    (lambda: 1, "lambda"), (threading.Lock().acquire, "picklable"), (work.add, None)])
def test_what_cannot_be_sent(bad, says):
    with pytest.raises(plimsoll.NotTransferable, match=says or "picklable"):
        plimsoll.isolated(bad, *([threading.Lock()] if says is None else []))


def test_closures_are_told_what_to_do():
    def closure():
        return says

    says = 1
    with pytest.raises(plimsoll.NotTransferable, match="top of its module"):
        plimsoll.isolated(closure)


def test_result_that_cannot_be_sent_back():
    with pytest.raises(plimsoll.NotTransferable, match="the result"):
        plimsoll.isolated(work.lock)


def test_result_that_cannot_be_read_here():
    with pytest.raises(plimsoll.ResultUnreadable, match="poison") as caught:
        plimsoll.isolated(work.poison)
    assert caught.value.receipt.exit_code == 0


def test_result_too_large():
    with pytest.raises(plimsoll.ResultTooLarge, match="result_limit"):
        plimsoll.isolated(work.zeros, 100_000, result_limit=50_000)
    assert len(plimsoll.isolated(work.zeros, 3_000_000).value) == 3_000_000


def test_limits():
    with pytest.raises(plimsoll.MemoryLimitExceeded) as caught:
        plimsoll.isolated(work.fill, 400 << 20, limit="100MiB")
    assert isinstance(caught.value, MemoryError) and caught.value.receipt.limit_bytes == 100 << 20
    assert caught.value.receipt.limit_hit or not caught.value.receipt.mechanism.startswith("cgroup")
    with pytest.raises(plimsoll.TimeLimitExceeded) as caught:
        plimsoll.isolated(work.sleep, 1000, timeout=0.3)
    assert caught.value.receipt.ending == "wall time" and isinstance(caught.value, TimeoutError)
    with pytest.raises(plimsoll.TimeLimitExceeded):
        plimsoll.isolated(work.spin, cpu_time=0.3)


@pytest.mark.parametrize("function, arguments, says", [
    (work.leave, (7,), "code 7"), (work.leave, (0,), "code 0"), (work.crash, (), "signal 11"),
    (work.close_everything, (), "exited")])
def test_a_process_that_ends_without_an_answer(function, arguments, says):
    with pytest.raises(plimsoll.WorkerDied, match=says) as caught:
        plimsoll.isolated(function, *arguments)
    assert caught.value.receipt.peak_bytes > 0


def test_sys_exit_does_not_end_us():
    with pytest.raises(plimsoll.RemoteError, match="SystemExit: 3"):
        plimsoll.isolated(work.system_exit, 3)
    with pytest.raises(plimsoll.RemoteError, match="KeyboardInterrupt"):
        plimsoll.isolated(work.fail, KeyboardInterrupt)


def test_garbage_on_every_descriptor():
    with pytest.raises((plimsoll.ResultTooLarge, plimsoll.ResultUnreadable)):
        plimsoll.isolated(work.garbage)


def test_threads_and_children_do_not_keep_it_alive():
    assert plimsoll.isolated(work.threads, timeout=60).value == "left behind"
    result = plimsoll.isolated(work.children, timeout=60)
    assert not alive(result.value) and result.receipt.processes_killed >= 1


@pytest.mark.parametrize("keywords", [
    {"limit": 0}, {"limit": -1}, {"limit": 1 << 70}, {"limit": "many"}, {"limit": 1.5}, {"limit": True}, {"timeout": 0}, {"timeout": -1},
    {"timeout": float("nan")}, {"timeout": "1"}, {"sandbox": "some"}, {"processes": 0}, {"limit": "1KiB"}])
def test_terms_that_make_no_sense(keywords):
    with pytest.raises(plimsoll.InvalidArgument):
        plimsoll.isolated(work.pid, **keywords)


def test_a_number_of_bytes_may_be_a_float():
    assert plimsoll.isolated(work.add, 1, 2, limit=1.5e9).receipt.limit_bytes == 1_500_000_000


def test_not_callable():
    with pytest.raises(plimsoll.InvalidArgument, match="not callable"):
        plimsoll.isolated("print()")


def test_source():
    code = "import sys\nprint('out', n)\nprint('err', file=sys.stderr)\nanswer = {'a': [n, 2.5, None, b'x', (1,)]}"
    result = plimsoll.isolated_source(code, {"n": 7}, "answer")
    assert result.value == {"a": [7, 2.5, None, b"x", (1,)]}
    assert (result.stdout, result.stderr, result.truncated) == ("out 7\n", "err\n", False)
    assert plimsoll.isolated_source("x = 1").value is None


def test_source_arrays():
    numpy = pytest.importorskip("numpy")
    result = plimsoll.isolated_source("import numpy as np\ny = x * np.float32(2)",
                                      {"x": numpy.arange(6, dtype="f4").reshape(2, 3)}, "y")
    assert result.value.dtype == numpy.float32
    assert (result.value == [[0, 2, 4], [6, 8, 10]]).all()


def test_source_errors():
    with pytest.raises(plimsoll.RemoteError) as caught:
        plimsoll.isolated_source("print('before')\nx = 1 / 0")
    assert caught.value.type_name == "ZeroDivisionError" and caught.value.stdout == "before\n"
    assert "x = 1 / 0" in caught.value.traceback and caught.value.receipt is not None
    with pytest.raises(plimsoll.RemoteError, match="SyntaxError"):
        plimsoll.isolated_source("x = (")
    with pytest.raises(plimsoll.RemoteError, match="does not define 'y'"):
        plimsoll.isolated_source("x = 1", result="y")
    with pytest.raises(plimsoll.NotTransferable, match="plain data"):
        plimsoll.isolated_source("x = object()", result="x")
    for wrong in ({"code": 5}, {"code": "", "result": "a b"}, {"code": "", "inputs": {"1": 2}}, {"code": "", "inputs": 5}):
        with pytest.raises(plimsoll.InvalidArgument):
            plimsoll.isolated_source(**wrong)


def test_source_output_is_capped_and_survives_a_kill():
    result = plimsoll.isolated_source("import os\nfor i in range(200): os.write(1, b'x' * 1000000)\nok = 1",
                                      result="ok", output_limit=1000)
    assert result.value == 1 and result.stdout == "x" * 1000 and result.truncated
    with pytest.raises(plimsoll.TimeLimitExceeded) as caught:
        plimsoll.isolated_source("print('said', flush=True)\nwhile True: pass", timeout=1)
    assert caught.value.stdout == "said\n"


def test_nothing_from_source_or_sandbox_is_unpickled(tmp_path):
    victim = tmp_path / "victim"
    hostile = f"""
import pickle, os, sys
class Touch:
    def __reduce__(self): return (open, ({str(victim)!r}, "w"))
import plimsoll._plain, plimsoll._worker
plimsoll._plain.encode = lambda value: pickle.dumps(Touch())
x = 1
"""
    with pytest.raises(plimsoll.ResultUnreadable):
        plimsoll.isolated_source(hostile, result="x")
    with pytest.raises(plimsoll.NotTransferable):
        plimsoll.isolated(work.touching, str(victim), sandbox=True)
    assert not victim.exists()
    # Shown to work where it is allowed: without a sandbox a pickle is read.
    handle = plimsoll.isolated(work.touching, str(victim)).value
    assert isinstance(handle, io.TextIOWrapper) and victim.exists()
    handle.close()


def test_sandbox():
    os.environ["PLIMSOLL_TEST_SECRET"] = "s3cret"
    try:
        result = plimsoll.isolated(work.environment, "PLIMSOLL_TEST_SECRET", sandbox=True)
    finally:
        del os.environ["PLIMSOLL_TEST_SECRET"]
    assert result.value is None
    if not result.receipt.sandbox:
        pytest.skip("no layer of the sandbox is available here")
    with pytest.raises(plimsoll.RemoteError, match="(?i)permission|not permitted|read-only|no such file"):
        plimsoll.isolated_source("open('/usr/share/plimsoll-was-here', 'w')", sandbox=True)
    # Below a private /tmp a file of this name may be made; ours is another one.
    readme = ROOT / "README.md"
    before = readme.read_bytes()
    try:
        plimsoll.isolated_source(f"open({str(readme)!r}, 'a').write('x')", sandbox=True)
    except plimsoll.RemoteError:
        pass
    assert readme.read_bytes() == before
    with pytest.raises(plimsoll.RemoteError):
        plimsoll.isolated_source("import socket\nsocket.create_connection(('127.0.0.1', 1))", sandbox=True)
    assert plimsoll.isolated_source("x = sum(range(10))", result="x", sandbox=True).value == 45


def test_strict_sandbox_holds_or_is_refused():
    try:
        result = plimsoll.isolated_source("x = sum(range(10))", result="x", sandbox="strict")
    except plimsoll.Error as error:
        pytest.skip(f"refused here, as it says: {error}")
    assert result.value == 45 and len(result.receipt.sandbox) >= 8


SCRIPT = """
import sys, time, plimsoll
class Own(Exception): pass
def twice(x): return 2 * x
def fails(): raise Own("mine")
{guard}
    print(plimsoll.isolated(twice, 21).value)
    with plimsoll.Pool(1) as pool: print(pool.submit(twice, 4).result())
    try: plimsoll.isolated(fails)
    except Own as error: print("own", error)
"""


def test_functions_of_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(guard="if __name__ == '__main__':"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout == "42\n8\nown mine\n", done.stderr
    script.write_text(SCRIPT.format(guard="if True:"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0 and "if __name__ == '__main__':" in done.stderr
    done = subprocess.run([sys.executable, "-c", "import plimsoll; print(plimsoll.isolated(len, '__main__').value)"],
                          capture_output=True, text=True, check=False)
    assert done.stdout == "8\n", done.stderr  # a text that only looks like it


def test_functions_of_an_application(tmp_path):
    """A directory, and an archive, that Python runs by their __main__.py."""
    (tmp_path / "app").mkdir()
    source = SCRIPT.format(guard="if __name__ == '__main__':")
    (tmp_path / "app" / "__main__.py").write_text(source)
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", source)
    for name in ("app", "app.zip"):
        done = subprocess.run([sys.executable, tmp_path / name], capture_output=True, text=True, check=False)
        assert done.stdout == "42\n8\nown mine\n", done.stderr


def test_strange_places(tmp_path):
    """A name that is no UTF-8 on sys.path, and a working directory that is gone."""
    place = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(place)
    with open(place + b"/odd_module.py", "w", encoding="utf-8") as file:
        file.write("def f(): return 3\n")
    code = ("import os, sys, plimsoll\nsys.path.append(sys.argv[1])\nimport odd_module\nos.mkdir('gone')\n"
            "os.chdir('gone')\nos.rmdir('../gone')\nprint(plimsoll.isolated(odd_module.f).value)\n"
            "print(plimsoll.isolated(odd_module.f, sandbox=True).value)")
    # Python itself does not start there with a relative PYTHONPATH.
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(plimsoll.__file__))}
    done = subprocess.run([sys.executable, "-c", code, place], cwd=tmp_path, env=environment, capture_output=True,
                          text=True, check=False)
    assert done.stdout == "3\n3\n", done.stderr


def test_a_job_that_comes_back_twice():
    """Its forked child returns too: only the worker answers, and only the worker takes the next job."""
    parent, child = plimsoll.isolated(work.fork).value
    assert child != 0 and parent != os.getpid()
    with plimsoll.Pool(1) as pool:
        for number in range(5):
            assert pool.submit(work.fork).result()[1] != 0
            assert pool.submit(work.add, number, 1).result() == number + 1


def test_function_that_another_process_cannot_import(tmp_path, monkeypatch):
    module = tmp_path / "vanishing_module.py"
    module.write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import vanishing_module
    assert plimsoll.isolated(vanishing_module.f).value == 1
    module.unlink()
    with pytest.raises(plimsoll.NotTransferable, match="vanishing_module"):
        plimsoll.isolated(vanishing_module.f)


def test_few_descriptors():
    code = "import plimsoll; print(plimsoll.isolated(abs, -3).value)"
    done = subprocess.run(["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", sys.executable, "-c", code], capture_output=True,
                          text=True, check=False)
    assert done.stdout == "3\n", done.stderr


def test_the_interpreter_ends_while_a_daemon_thread_waits():
    code = ("import plimsoll, threading, time\n"
            "for _ in range(3): threading.Thread(target=plimsoll.isolated, args=(time.sleep, 1000), daemon=True).start()\n"
            "plimsoll.isolated(abs, 1)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_from_threads():
    values = []
    threads = [threading.Thread(target=lambda n=n: values.append(plimsoll.isolated(work.add, n).value)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(values) == [0, 1, 2, 3]


def test_leaves_no_descriptors_or_threads():
    def state():
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir("/proc/self/task"))
    plimsoll.isolated(work.pid)
    before = state()
    for _ in range(3):
        plimsoll.isolated(work.pid)
        with pytest.raises(plimsoll.TimeLimitExceeded):
            plimsoll.isolated(work.sleep, 100, timeout=0.05)
    deadline = time.monotonic() + 10
    while state() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state() == before
