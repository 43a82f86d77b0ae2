"""plimsoll.Pool."""
import asyncio
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest

import plimsoll
from jobs import work


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_submit_and_map():
    with plimsoll.Pool(2) as pool:
        futures = [pool.submit(work.add, n, b=1) for n in range(20)]
        assert [future.result() for future in futures] == list(range(1, 21))
        assert futures[0].receipt.peak_bytes > 0
        assert list(pool.map(work.add, range(30), range(30))) == list(range(0, 60, 2))
        assert pool.statistics()["workers_started"] == 2
    with pytest.raises(plimsoll.Cancelled, match="closed"):
        pool.submit(work.pid)


def test_map_takes_items_as_there_is_room():
    taken = []

    def items():
        for n in range(1000):
            taken.append(n)
            yield n

    with plimsoll.Pool(1) as pool:
        results = pool.map(work.add, items())
        assert next(results) == 0 and len(taken) < 20
        results.close()


def test_preload_is_done_before_the_first_job():
    with plimsoll.Pool(1, preload=["xml.dom", "jobs.work"]) as pool:
        assert pool.submit_source("import sys\nx = 'xml.dom' in sys.modules", result="x").result().value


def test_preload_that_fails():
    with plimsoll.Pool(2, preload=["no_such_module_at_all"]) as pool:
        with pytest.raises(plimsoll.StartFailed, match="no_such_module_at_all") as caught:
            pool.submit(work.pid).result()
        assert caught.value.receipt is None
        with pytest.raises(plimsoll.StartFailed):
            pool.wait_ready()
        assert pool.statistics()["workers_started"] < 10


def test_exceptions_come_back_and_the_worker_lives():
    with plimsoll.Pool(1) as pool:
        before = pool.submit(work.pid).result()
        with pytest.raises(KeyError) as caught:
            pool.submit(work.fail_deep, "k").result()
        assert "in fail_deep" in str(caught.value.__cause__) and caught.value.receipt.wall_ms > 0
        for bad, error in [((work.system_exit, 1), plimsoll.RemoteError), ((work.lock,), plimsoll.NotTransferable),
                           ((work.fail, work.Stubborn, 1, 2), work.Stubborn),
                           ((work.poison,), plimsoll.ResultUnreadable)]:
            with pytest.raises(error):
                pool.submit(*bad).result()
        assert pool.submit(work.pid).result() == before
        with pytest.raises(plimsoll.NotTransferable):
            pool.submit(lambda: 1)


@pytest.mark.parametrize("function, arguments, error", [
    (work.leave, (3,), plimsoll.WorkerDied), (work.crash, (), plimsoll.WorkerDied),
    (work.close_everything, (), plimsoll.WorkerDied), (work.sleep, (1000,), plimsoll.TimeLimitExceeded),
    (work.fill, (1 << 30,), plimsoll.MemoryLimitExceeded), (work.zeros, (200_000,), plimsoll.ResultTooLarge),
    (work.garbage, (), (plimsoll.ResultTooLarge, plimsoll.ResultUnreadable, plimsoll.WorkerDied))])
def test_bad_jobs_end_in_one_error_and_the_pool_goes_on(function, arguments, error):
    with plimsoll.Pool(1, limit="200MiB", result_limit=100_000) as pool:
        pool.wait_ready()
        with pytest.raises(error):
            pool.submit_job(function, arguments, timeout=0.5 if function is work.sleep else None).result()
        assert pool.submit(work.add, 1).result() == 1


def test_cpu_time():
    with plimsoll.Pool(1, cpu_time=0.3) as pool:
        with pytest.raises(plimsoll.TimeLimitExceeded, match="CPU"):
            pool.submit(work.spin).result()


def test_recycling():
    with plimsoll.Pool(1, recycle_after_jobs=2) as pool:
        assert [pool.submit(work.count).result() for _ in range(6)] == [1, 2, 1, 2, 1, 2]
        assert pool.statistics()["recycled_by_jobs"] == 3
    with plimsoll.Pool(1, recycle_above_bytes="60MiB") as pool:
        assert [pool.submit(work.keep, size).result() for size in (1, 1, 100 << 20, 1)] == [1, 2, 3, 1]
    with plimsoll.Pool(1, idle_timeout=0.05) as pool:
        assert pool.submit(work.count).result() == 1
        wait_for(lambda: not pool.worker_pids())
        assert pool.submit(work.count).result() == 1


def test_back_pressure():
    with plimsoll.Pool(1, queue_capacity=1) as pool:
        running = pool.submit(work.sleep, 1000)
        wait_for(lambda: pool.statistics()["waiting_now"] == 0)
        waiting = pool.submit(work.pid)
        with pytest.raises(plimsoll.Busy):
            pool.submit_job(work.pid, block=False)
        through = threading.Event()
        thread = threading.Thread(target=lambda: (pool.submit(work.pid).result(), through.set()))
        thread.start()
        assert not through.wait(0.1)
        assert running.cancel() and running.cancelled()
        assert through.wait(30) and waiting.result() > 0
        thread.join()


def test_cancelled_jobs_are_gone():
    with plimsoll.Pool(1) as pool:
        first = pool.submit(work.sleep, 1000)
        second = pool.submit(work.sleep, 1000)
        assert second.cancel() and first.cancel()
        assert pool.submit(work.add, 5).result() == 5


def test_repeatable_jobs_survive_their_worker(tmp_path):
    log = tmp_path / "log"
    with plimsoll.Pool(1) as pool:
        assert isinstance(pool.submit_job(work.leave, (1,), repeatable=True).exception(), plimsoll.WorkerDied)
        assert pool.statistics()["repeated"] == 1
        future = pool.submit_job(work.log, (str(log), "x"), repeatable=True)
        assert future.result() == "x" and log.read_text() == "x\n"


def test_source_in_a_pool():
    with plimsoll.Pool(1, plain=True, output_limit=10) as pool:
        result = pool.submit_source("import os\nprint('hello', n)\nos.write(2, b'y' * 100)\nz = n + 1", {"n": 1}, "z").result()
        assert result.value == 2 and result.stdout == "hello 1\n"
        assert result.stderr == "y" * 10 and result.truncated
        with pytest.raises(plimsoll.RemoteError) as caught:
            pool.submit_source("print('so far')\nundefined").result()
        assert caught.value.type_name == "NameError" and caught.value.stdout == "so far\n"
        with pytest.raises(plimsoll.RemoteError):
            pool.submit_source("z", result="z").result()  # names do not stay


def test_asyncio_and_stop_iteration():
    """An asyncio.Future refuses it, and would wait for ever."""
    with plimsoll.Pool(1) as pool:
        with pytest.raises(RuntimeError, match="StopIteration"):
            asyncio.run(asyncio.wait_for(pool.run(work.fail, StopIteration), 30))


def test_asyncio():
    async def main(pool):
        values = await asyncio.gather(*(pool.run(work.add, n) for n in range(40)))  # more than the queue takes
        assert values == list(range(40))
        assert (await pool.run_source("x = 3", result="x")).value == 3
        with pytest.raises(ZeroDivisionError):
            await pool.run(work.fail, ZeroDivisionError)
        ticks = 0
        task = asyncio.ensure_future(pool.run(work.sleep, 0.3))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.01)
        assert ticks > 3  # the loop was never blocked
        endless = asyncio.ensure_future(pool.run(work.sleep, 1000))
        await asyncio.sleep(0.05)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pool.run(work.sleep, 1000), 0.1)
        assert await pool.run(work.add, 1) == 1

    with plimsoll.Pool(2, queue_capacity=2) as pool:
        asyncio.run(main(pool))


def test_leaving_the_block_waits_and_an_exception_does_not():
    with plimsoll.Pool(1) as pool:
        futures = [pool.submit(work.sleep, 0.05) for _ in range(3)]
    assert [future.result() for future in futures] == [0.05] * 3
    with pytest.raises(RuntimeError, match="mine"):
        with plimsoll.Pool(1) as pool:
            future = pool.submit(work.sleep, 1000)
            raise RuntimeError("mine")
    assert isinstance(future.exception(), plimsoll.JobCancelled)


def test_a_pool_that_is_dropped_is_closed():
    pool = plimsoll.Pool(1)
    pool.wait_ready()
    pids, dropped = pool.worker_pids(), weakref.ref(pool)
    del pool
    gc.collect()
    assert dropped() is None
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_forked_children_leave_it_alone():
    with plimsoll.Pool(1) as pool:
        assert pool.submit(work.add, 1).result() == 1
        code = os.fork()
        if code == 0:
            try:
                pool.submit(work.pid)
            except plimsoll.InvalidArgument:
                pool.close()
                os._exit(5)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(code, 0)[1]) == 5
        assert pool.submit(work.count).result() == 1


@pytest.mark.parametrize("keywords", [{"workers": 0}, {"workers": "2"}, {"workers": 1, "preload": "torch"},
                                      {"workers": 1, "limit": -5}, {"workers": 1, "idle_timeout": 0}])
def test_terms_that_make_no_sense(keywords):
    with pytest.raises(plimsoll.InvalidArgument):
        plimsoll.Pool(**keywords)


# Programs that end in the middle of everything: no traceback but the one expected, no process left behind.
ENDINGS = {
    "exit": ("pool = plimsoll.Pool(2); f = pool.submit(time.sleep, 1000); tell(pool)", 0, ""),
    "sys.exit": ("pool = plimsoll.Pool(2); f = pool.submit(time.sleep, 1000); tell(pool); sys.exit(3)", 3, ""),
    "exception": ("pool = plimsoll.Pool(2); f = pool.submit(time.sleep, 1000); tell(pool); 1 / 0", 1, "ZeroDivisionError"),
}
PROGRAM = """
import sys, time, plimsoll
def tell(pool):
    pool.wait_ready()
    print(*pool.worker_pids(), flush=True)
{body}
"""


@pytest.mark.parametrize("name", ENDINGS)
def test_programs_that_end_with_an_open_pool(name):
    body, code, says = ENDINGS[name]
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(body=body)], capture_output=True, text=True, check=False,
                          timeout=60)
    assert done.returncode == code, done.stderr
    assert says in done.stderr and done.stderr.count("Traceback") == (1 if says else 0)
    assert done.stdout and not any(os.path.exists(f"/proc/{pid}") for pid in done.stdout.split())


INTERRUPTED = {
    "isolated": "print(flush=True); plimsoll.isolated(time.sleep, 1000)",
    "result": "with plimsoll.Pool(2) as pool: tell(pool); pool.submit(time.sleep, 1000).result()",
    "leaving": "with plimsoll.Pool(2) as pool: tell(pool); pool.submit(time.sleep, 1000)",
    "full queue": "with plimsoll.Pool(1) as pool:\n    tell(pool)\n    while True: pool.submit(time.sleep, 1000)",
    "under load": "with plimsoll.Pool(2) as pool:\n    tell(pool)\n    while True: list(pool.map(abs, range(50)))",
    "starting": "print(flush=True)\nwhile True:\n    with plimsoll.Pool(2) as pool: pass",
    "not ready": "print(flush=True)\npool = plimsoll.Pool(1, preload=['time'])\nwhile True: pool.wait_ready()",
}


def children_of(pid):
    """Processes whose parent it is, or which were started by it and say so."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if f"PLIMSOLL_TEST_MARK={pid}".encode() in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass
    return found


@pytest.mark.parametrize("delay", [0.0, 0.15])
@pytest.mark.parametrize("name", INTERRUPTED)
def test_ctrl_c_at_any_moment(name, delay):
    mark = f"{os.getpid()}-{name}-{delay}"
    environment = {**os.environ, "PLIMSOLL_TEST_MARK": mark}
    program = subprocess.Popen([sys.executable, "-c", PROGRAM.format(body=INTERRUPTED[name])], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert program.stdout.readline()
        time.sleep(delay)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=60)
    finally:
        program.kill()
        program.wait()
    assert program.returncode == -signal.SIGINT and "KeyboardInterrupt" in errors, errors
    assert "Fatal" not in errors and "Exception ignored" not in errors, errors
    assert children_of(mark) == []


class Alarm(BaseException):  # as KeyboardInterrupt
    """Raised by SIGALRM within `alarms`."""


@pytest.fixture(name="alarms")
def alarms_ring():
    """alarms(call, times): calls it, with an alarm at a random moment, so often."""
    def ring(*_):
        raise Alarm

    chance, before = random.Random(11), signal.signal(signal.SIGALRM, ring)

    def alarms(call, times):
        rung = 0
        for _ in range(times):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 2e-4))
                call()
            except Alarm:
                rung += 1
        return rung

    yield alarms
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("waiting", ["result", "exception", "done", "wait"])
def test_a_signal_between_any_two_steps_of_waiting(waiting, alarms):
    """Each is raised as it is, and no lock stays held or is lost."""
    with plimsoll.Pool(1) as pool:
        pool.wait_ready()
        future = pool.submit(time.sleep, 1000)
        calls = {"result": future.result, "exception": future.exception, "wait": pool._state.wait,
                 "done": lambda: [future.done() for _ in iter(int, 1)]}
        assert alarms(calls[waiting], 3000) == 3000
        answers = []
        thread = threading.Thread(target=lambda: answers.append((future.done(), pool.submit(abs, -1).cancel())))
        thread.start()
        thread.join(20)
        assert answers == [(False, True)]
        future.cancel()


def test_a_signal_between_any_two_steps_of_submitting(alarms):
    """Leaving the block waits for what was submitted, and for nothing else."""
    with plimsoll.Pool(1) as pool:
        pool.wait_ready()
        assert alarms(lambda: [pool.submit(abs, -1) for _ in iter(int, 1)], 2000) == 2000
    assert not pool._state.pending


def test_a_callback_that_wants_to_exit_stops_nobody(monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: seen.append(arguments.exc_type))
    with plimsoll.Pool(1) as pool:
        for error in (SystemExit, asyncio.CancelledError):
            def raise_it(_, error=error):
                raise error("enough")
            pool.submit(time.sleep, 0.05).add_done_callback(raise_it)
            assert pool.submit(abs, -2).result(30) == 2
    assert seen == [SystemExit, asyncio.CancelledError]


@pytest.mark.parametrize("kind, expected", [("unreadable", plimsoll.ResultUnreadable), ("touchy", work.Touchy)])
def test_odd_outcomes_are_outcomes(kind, expected):
    with plimsoll.Pool(1) as pool:
        odd, usual = pool.submit(work.odd, kind), pool.submit(abs, -2)
        with pytest.raises(expected):
            odd.result(30)
        assert usual.result(30) == 2


def test_the_collector_may_come_at_a_bad_moment():
    """It frees the pool while we hold what the delivering thread waits for."""
    pool = plimsoll.Pool(1)
    pool.itself = pool
    future = pool.submit(time.sleep, 1000)
    state = weakref.ref(pool._state)
    with future._condition:
        del pool
        gc.collect()
    with pytest.raises(plimsoll.JobCancelled):
        future.result(30)
    wait_for(lambda: state() is None)


def test_closing_can_be_interrupted_and_does_not_wait_for_itself(alarms):
    go_on, refused = threading.Event(), []
    pool = plimsoll.Pool(1)
    first = pool.submit(abs, -1)
    first.add_done_callback(lambda _: go_on.wait())
    first.result()
    assert alarms(pool.close, 20) == 20
    go_on.set()
    pool.close()
    with plimsoll.Pool(1) as pool:
        def callback(_):
            try:
                pool.close(wait=True)
            except plimsoll.InvalidArgument as error:
                refused.append(error)
        pool.submit(time.sleep, 0.05).add_done_callback(callback)
    assert len(refused) == 1


def test_what_is_kept_keeps_nothing_else():
    before, futures = len(os.listdir("/proc/self/fd")), []
    for _ in range(5):
        with plimsoll.Pool(1) as pool:
            futures.append(pool.submit(abs, -1))
            futures[-1].result()
        del pool
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # the pipe of our guard stays


def test_waiting_tasks_leave_nothing_behind():
    async def run(pool):
        tasks = [asyncio.ensure_future(pool.run(time.sleep, 1000)) for _ in range(8)]
        await asyncio.sleep(1.2)
        assert len(pool._state.waiters) <= len(tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with plimsoll.Pool(1, queue_capacity=1) as pool:
        asyncio.run(run(pool))
        assert pool._state.waiters == []


def test_no_limit_is_none():
    with plimsoll.Pool(1, result_limit=None, output_limit=None) as pool:
        assert pool.submit(work.zeros, 1000).result() == bytes(1000)
        assert pool.submit_source("print('x' * 3_000_000)").result().stdout == "x" * 3_000_000 + "\n"
    assert plimsoll.isolated_source("print('x' * 3_000_000)", output_limit=None, result_limit=None).stdout.count("x") == 3_000_000


def test_killed_parent_takes_its_workers_along():
    program = subprocess.Popen([sys.executable, "-c", PROGRAM.format(body=ENDINGS["exit"][0] + "; time.sleep(1000)")],
                               stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in program.stdout.readline().split()]
    program.kill()
    program.wait()
    program.stdout.close()
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


def test_chaos(tmp_path):
    """A worker is killed every 100 ms, if an answer came in between; PLIMSOLL_CHAOS_SECONDS says for how long, but at
    least ten are killed."""
    seconds, log = float(os.environ.get("PLIMSOLL_CHAOS_SECONDS", "3")), tmp_path / "log"
    outcomes, numbers, kills, end = [], iter(range(10**9)), [], time.monotonic() + seconds

    def going_on():
        return time.monotonic() < end or len(kills) < 10

    with plimsoll.Pool(3) as pool:
        pool.wait_ready()

        def kill():
            chance, answered = random.Random(7), 0
            while going_on():
                time.sleep(0.1)
                now = pool.statistics()["answered"]
                if now > answered and (pids := pool.worker_pids()):
                    answered = now
                    try:
                        os.kill(chance.choice(pids), signal.SIGKILL)
                        kills.append(1)
                    except ProcessLookupError:
                        pass

        killer = threading.Thread(target=kill)
        killer.start()
        while going_on():
            future = pool.submit(work.log, str(log), next(numbers))
            future.add_done_callback(outcomes.append)
        killer.join()
    submitted = next(numbers)
    assert len(outcomes) == len({id(future) for future in outcomes}) == submitted
    answered = [future.result() for future in outcomes if future.exception() is None]
    lost = [future.exception() for future in outcomes if future.exception() is not None]
    assert len(set(answered)) == len(answered)
    assert all(isinstance(error, (plimsoll.WorkerDied, plimsoll.StartFailed)) for error in lost)
    ran = log.read_text().split()
    assert len(set(ran)) == len(ran) and set(map(str, answered)) <= set(ran)
    print(f"chaos: {submitted} jobs, {len(answered)} answered, {len(lost)} lost their worker, "
          f"{pool.statistics()['workers_died']} workers died")
