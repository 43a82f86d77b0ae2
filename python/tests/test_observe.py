"""plimsoll.observe: the same figures as the C++ side, from Python."""
import os
import subprocess
import sys
import threading

import pytest

import plimsoll
from plimsoll import observe

MIB = 1 << 20


@pytest.fixture
def child():
    """A Python that holds 32 MiB and waits."""
    code = "import sys; block = bytearray(32 << 20); print('ready', flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def allowed_rest(kernel_bytes):
    return max(MIB, kernel_bytes // 50)


def test_read_explains_a_child(child):
    sample = observe.read(child.pid)
    assert not sample.gap and sample.exact
    view = sample.process
    assert view.processes == 1
    assert view.allocator_bytes + view.heap_bytes >= 32 * MIB
    assert abs(view.kernel_bytes - view.sum_bytes) <= allowed_rest(view.kernel_bytes)
    assert view["heap_bytes"] == view.heap_bytes


def test_account_names_libraries_and_actions(child):
    account = observe.account(child.pid)
    assert sum(part.bytes for part in account.process) == account.sample.process.sum_bytes
    assert any("python" in part.name for part in account.libraries)
    assert abs(account.process_unexplained_bytes) <= allowed_rest(account.sample.process.kernel_bytes)
    version = account.sample.container.version if "container" in account.sample else 2
    assert {part.returns_by for part in account.process} >= {
        "malloc_trim", "memory.force_empty" if version == 1 else "memory.reclaim"}
    if "container" not in account.sample:
        pytest.skip("no memory cgroup can be seen here")
    assert sum(part.bytes for part in account.container) > 0


def test_reads_itself_by_default():
    before = observe.read(tree=False).process
    block = bytearray(48 * MIB)
    after = observe.read(tree=False).process
    assert abs(after.sum_bytes - before.sum_bytes - len(block)) < 4 * MIB


def test_an_end_is_a_gap(child):
    watcher = observe.Observer(child.pid)
    assert not watcher.read().gap and not watcher.ended
    child.kill()
    child.wait()
    sample = watcher.read()
    assert sample.gap and "ended" in sample.gap_reason and watcher.ended
    assert watcher.account().notes == [sample.gap_reason]


@pytest.mark.parametrize("pid", [0, -5, 2**22 + 1])
def test_no_such_process(pid):
    with pytest.raises(plimsoll.InvalidArgument, match=str(pid)):
        observe.Observer(pid)


def test_unknown_figures_are_named():
    with pytest.raises(AttributeError, match="heap_bytes"):
        observe.read(tree=False).process.heap


def test_threads_take_turns(child):
    watcher = observe.Observer(child.pid, cost_limit=1)
    wrong = []

    def many():
        for _ in range(10):
            sample = watcher.read()
            if sample.gap or sample.process.sum_bytes < 32 * MIB:
                wrong.append(sample)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert watcher.own_cpu_seconds > 0


def test_judge_sees_a_straight_leak(child):
    sample = observe.read(child.pid, tree=False)
    samples = []
    for second in range(120):
        grown = observe.Figures(sample, seconds=float(second), iteration=-1, process=observe.Figures(sample.process))
        for name in ("heap_bytes", "sum_bytes", "kernel_bytes", "rss_bytes"):
            grown["process"][name] += second * MIB
        samples.append(grown)
    verdict = observe.judge(samples)
    assert verdict.verdict == "leak", verdict
    assert verdict.bytes_per_second == pytest.approx(MIB, rel=0.1)


def test_judge_of_nothing_is_undecided():
    assert observe.judge([]).verdict == "undecided"


def test_watching_leaves_no_descriptors(child):
    def count():
        return len(os.listdir("/proc/self/fd"))

    observe.read(child.pid)
    before = count()
    for _ in range(20):
        observe.account(child.pid)
    assert count() == before


def test_a_daemon_thread_does_not_abort_the_exit():
    program = ("import os, threading, time, plimsoll\n"
               "def read():\n"
               "    while True: plimsoll.observe.read(os.getpid())\n"
               "threading.Thread(target=read, daemon=True).start()\n"
               "time.sleep(0.1)\n")
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
