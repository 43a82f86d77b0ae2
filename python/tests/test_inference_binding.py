"""IOBinding: inputs read and outputs written where they are."""
import sys
import threading

import models
import numpy as np
import pytest

import plimsoll as ort

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture
def session():
    return ort.InferenceSession(models.double())


def test_bound_arrays_are_read_at_every_run(session):
    array = X.copy()
    binding = session.io_binding()
    binding.bind_cpu_input("x", array)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], 2 * X)
    array += 1
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], 2 * (X + 1))


def test_outputs_are_written_in_place(session):
    out = np.zeros_like(X)
    value = ort.OrtValue.ortvalue_from_numpy(out)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X))
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(out, 2 * X)
    assert binding.get_outputs()[0].data_ptr() == out.ctypes.data
    copied, = binding.copy_outputs_to_cpu()
    assert not np.shares_memory(copied, out)


def test_addresses(session):
    out = np.zeros_like(X)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, out.shape, out.ctypes.data)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_array_equal(out, 2 * X)
    with pytest.raises(ValueError, match="`element_type` and `shape`"):
        binding.bind_output("y", buffer_ptr=out.ctypes.data)
    with pytest.raises(ort.InvalidArgument, match="address"):
        binding.bind_input("x", "cpu", 0, np.float32, [1], 0)
    with pytest.raises(ort.InvalidArgument):
        binding.bind_input("x", "cpu", 0, np.float32, [1 << 40, 1 << 40], X.ctypes.data)
    with pytest.raises(RuntimeError, match="'cuda'"):
        binding.bind_output("y", "cuda")


def test_the_order_of_outputs_is_that_of_binding():
    session = ort.InferenceSession(models.two_in_two_out())
    binding = session.io_binding()
    binding.bind_cpu_input("a", X)
    binding.bind_cpu_input("b", X)
    binding.bind_output("product")
    binding.bind_output("sum")
    session.run_with_iobinding(binding)
    product, total = binding.get_outputs_as_ortvaluevector()
    np.testing.assert_array_equal(product.numpy(), X * X)
    np.testing.assert_array_equal(total.numpy(), 2 * X)
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    binding.clear_binding_inputs()
    with pytest.raises(ort.InvalidArgument, match="'a' is missing"):
        session.run_with_iobinding(binding)


def test_what_cannot_be_bound(session):
    binding = session.io_binding()
    for bind in (lambda: binding.bind_cpu_input("z", X), lambda: binding.bind_output("z")):
        with pytest.raises(ort.InvalidArgument, match="'z'"):
            bind()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_shape_and_type([1, 4], np.float32))
    with pytest.raises(ort.InvalidArgument, match="output 'y'"):
        session.run_with_iobinding(binding)


def test_a_binding_belongs_to_its_session(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    with pytest.raises(ort.InvalidArgument, match="another session"):
        ort.InferenceSession(models.double()).run_with_iobinding(binding)


def test_a_binding_keeps_what_is_bound_and_lets_it_go(session):
    array = X.copy()
    count = sys.getrefcount(array)
    binding = session.io_binding()
    binding.bind_cpu_input("x", array)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert sys.getrefcount(array) == count + 1
    binding.clear_binding_inputs()
    assert sys.getrefcount(array) == count
    binding.bind_cpu_input("x", array)
    del binding
    assert sys.getrefcount(array) == count


def test_a_binding_outlives_its_session(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    del session
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), 2 * X)


def test_two_threads_with_one_binding_are_told():
    session = ort.InferenceSession(models.forever())
    binding = session.io_binding()
    for name, array in models.FOREVER.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("y")
    options = ort.RunOptions()
    ended = []

    def run():
        with pytest.raises(ort.Cancelled):
            session.run_with_iobinding(binding, options)
        ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        while True:
            try:
                binding.get_outputs()
            except ort.Busy as busy:
                assert "another thread" in str(busy)
                break
    finally:
        options.terminate = True
        thread.join()
    assert ended == [True]


def test_run_with_ortvaluevector(session):
    feeds, fetches = ort.OrtValueVector(), ort.OrtValueVector()
    feeds.push_back(ort.OrtValue.ortvalue_from_numpy(X))
    device = [ort.OrtDevice.make("cpu", 0)]
    session.run_with_ortvaluevector(ort.RunOptions(), ["x"], feeds, ["y"], fetches, device)
    np.testing.assert_array_equal(fetches[0].numpy(), 2 * X)
    out = np.zeros_like(X)
    fetches = ort.OrtValueVector([ort.OrtValue.ortvalue_from_numpy(out)])
    session.run_with_ortvaluevector(None, ["x"], feeds, ["y"], fetches, device)
    np.testing.assert_array_equal(out, 2 * X)
    with pytest.raises(ort.InvalidArgument):
        session.run_with_ortvaluevector(None, ["x", "z"], feeds, ["y"], fetches, device)
