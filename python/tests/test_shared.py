"""Arrays that travel without copies."""
import gc
import os

import pytest

import plimsoll
from jobs import arrays

numpy = pytest.importorskip("numpy")
MIB = 1 << 20


def files_in_memory():
    return len([name for name in os.listdir("/proc/self/fd") if _target(name).startswith("/memfd:plimsoll")])


def _target(name):
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return ""


def test_ordinary_arrays_there_and_back():
    given = numpy.arange(MIB, dtype="f4").reshape(1024, 1024)
    result = plimsoll.isolated(arrays.doubled, given)
    assert (result.value == given * 2).all() and result.value.shape == given.shape
    assert (result.receipt.shared_in_bytes, result.receipt.shared_out_bytes) == (given.nbytes, given.nbytes)
    result.value[0] += 1  # ours to change
    assert result.value[0, 1] == 3


def test_shared_arrays_are_not_copied():
    """The job sees the same pages: it is charged for none of them, and what it writes stays with it."""
    given = plimsoll.shared_empty((16, MIB), "u1")
    given[:] = 7
    result = plimsoll.isolated(arrays.change_and_sum, given, limit="256MiB")
    assert result.value == 7 * given.size and (given == 7).all()
    assert result.receipt.shared_in_bytes == given.nbytes
    seals = plimsoll.isolated(arrays.try_to_write, given).value
    assert seals == "refused" and (given == 7).all()


def test_slices_of_shared_arrays():
    given = plimsoll.shared_empty((4, MIB), "u1")
    for row in range(4):
        given[row] = row
    assert plimsoll.isolated(arrays.first_of_each, given[2], given[1:3], given[::2]).value == [2, 1, 0]


def test_results_are_sent_on_without_a_copy_until_they_are_changed():
    made = plimsoll.isolated(arrays.shared, 4 * MIB).value
    assert (made == 3).all()
    before = files_in_memory()
    with plimsoll.Pool(1) as pool:
        assert pool.submit(arrays.total, made).result() == 3 * made.size
        made[5] = 100
        assert pool.submit(arrays.total, made).result() == 3 * made.size + 97
        future = pool.submit(arrays.pair, made)
        one, two = future.result()
        assert one is not two and (one == made).all() and (two == made + 1).all()
        assert future.receipt.shared_in_bytes == made.nbytes
        del one, two, future
    gc.collect()
    assert files_in_memory() == before


def test_many_results_do_not_take_all_descriptors():
    with plimsoll.Pool(1) as pool:
        kept = [pool.submit(arrays.shared, MIB // 2).result() for _ in range(260)]
    assert len(os.listdir("/proc/self/fd")) < 700
    assert all(array[0] == 3 for array in kept)


def test_source_and_sandbox_get_arrays_and_give_them():
    given = numpy.arange(MIB, dtype="f8")
    for sandbox in (None, True):
        result = plimsoll.isolated_source("import numpy\ny = x * 2", {"x": given}, "y", sandbox=sandbox)
        assert (result.value == given * 2).all() and result.receipt.shared_out_bytes == given.nbytes


def test_a_stranger_cannot_give_a_file_that_it_can_still_change():
    hostile = """
import plimsoll._shared as shared, numpy
shared._CLOSED = 0
x = numpy.ones(1 << 20)
"""
    with pytest.raises(plimsoll.ResultUnreadable, match="can still be changed"):
        plimsoll.isolated_source(hostile, result="x")


def test_result_limit_counts_buffers():
    with pytest.raises(plimsoll.ResultTooLarge):
        plimsoll.isolated(arrays.shared, 2 * MIB, result_limit="1MiB")


def test_shared_empty_as_numpy_has_it():
    assert plimsoll.shared_empty(3).dtype == numpy.float64 and plimsoll.shared_empty((2, 0)).shape == (2, 0)
    assert plimsoll.shared_empty((2, 3), "i4").sum() == 0
    with pytest.raises(TypeError):
        plimsoll.shared_empty(3, object)


def test_few_descriptors_and_no_leaks():
    given = plimsoll.shared_empty(MIB, "u1")
    plimsoll.isolated(arrays.total, given)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        plimsoll.isolated(arrays.doubled, numpy.zeros(MIB, "u1"))
        with pytest.raises(plimsoll.TimeLimitExceeded):
            plimsoll.isolated(arrays.sleep_on, given, timeout=0.2)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
