"""OrtValue, OrtDevice, SparseTensor and their like: memory shared with numpy and others."""
import gc
import sys

import models
import numpy as np
import pytest
from models import helper, tensor
from onnx import TensorProto

import plimsoll as ort

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_an_array_is_shared_both_ways():
    array = X.copy()
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert value.data_ptr() == array.ctypes.data
    array[0, 0] = 99
    assert value.numpy()[0, 0] == 99
    value.numpy()[1, 2] = -1
    assert array[1, 2] == -1
    assert np.shares_memory(np.asarray(value), array)
    assert np.asarray(value, np.float64).dtype == np.float64


def test_what_a_value_tells_of_itself():
    value = ort.OrtValue.ortvalue_from_numpy(X)
    assert value.shape() == [2, 3]
    assert value.data_type() == "tensor(float)"
    assert value.element_type() == TensorProto.FLOAT
    assert value.tensor_size_in_bytes() == X.nbytes
    assert value.device_name() == "cpu"
    assert value.is_tensor() and value.has_value()
    assert not value.is_sparse_tensor() and not value.is_tensor_sequence()
    assert repr(value) == "OrtValue(tensor(float)[2, 3])"


def test_the_array_lives_as_long_as_the_value():
    array = np.full(1 << 16, 7.0)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    count = sys.getrefcount(array)
    seen = value.numpy()
    del value
    assert sys.getrefcount(array) == count  # `seen` keeps it
    del seen
    assert sys.getrefcount(array) == count - 1
    view = ort.OrtValue.ortvalue_from_numpy(array)
    del array
    gc.collect()
    np.full(1 << 16, 8.0)
    assert (view.numpy() == 7).all()


def test_what_is_not_contiguous_is_copied():
    value = ort.OrtValue.ortvalue_from_numpy(X.T)
    np.testing.assert_array_equal(value.numpy(), X.T)
    assert value.data_ptr() != X.ctypes.data


def test_strings_of_numpy():
    value = ort.OrtValue.ortvalue_from_numpy(np.array(["a", "bc"]))
    assert value.data_type() == "tensor(string)" and value.numpy().tolist() == ["a", "bc"]


def test_new_values_are_zero():
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 2], np.int64)
    assert value.data_type() == "tensor(int64)" and not value.numpy().any()
    assert ort.OrtValue.ortvalue_from_shape_and_type([3], TensorProto.BFLOAT16).data_type() == "tensor(bfloat16)"
    assert ort.OrtValue.ortvalue_from_shape_and_type([0], np.float32).data_ptr() == 0
    for shape, kind in (([-1], np.float32), ([1 << 40, 1 << 40], np.float32), ([1], 99), ([1], TensorProto.STRING)):
        with pytest.raises(ort.InvalidArgument):
            ort.OrtValue.ortvalue_from_shape_and_type(shape, kind)
    with pytest.raises(TypeError):
        ort.OrtValue.ortvalue_from_shape_and_type([1], "no type")


def test_update_inplace():
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    address = value.data_ptr()
    value.update_inplace(X)
    np.testing.assert_array_equal(value.numpy(), X)
    value.update_inplace(ort.OrtValue.ortvalue_from_numpy(X + 1))
    np.testing.assert_array_equal(value.numpy(), X + 1)
    assert value.data_ptr() == address
    for wrong in (X[:1], X.astype(np.float64)):
        with pytest.raises(ort.InvalidArgument):
            value.update_inplace(wrong)
    with pytest.raises(TypeError, match="numpy.ndarray or an OrtValue"):
        value.update_inplace([1, 2])


def test_types_that_numpy_has_not():
    bits = (np.array([1.5, -2.0, 3.25], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    assert value.data_ptr() == bits.ctypes.data and value.element_type() == TensorProto.BFLOAT16
    session = ort.InferenceSession(models.build(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], [tensor("x", TensorProto.BFLOAT16, ("n",))],
        [tensor("y", shape=("n",))], opset=19))
    np.testing.assert_array_equal(session.run(None, {"x": value})[0], [1.5, -2.0, 3.25])
    back = ort.InferenceSession(models.one_node("Identity", TensorProto.BFLOAT16, ("n",)))
    result, = back.run(None, {"x": value})
    assert result.dtype == np.uint16
    np.testing.assert_array_equal(result, bits)
    with pytest.raises(ort.InvalidArgument, match="expected bfloat16, found uint16"):
        back.run(None, {"x": bits})
    with pytest.raises(ort.InvalidFeed, match="ortvalue_from_numpy_with_onnx_type"):
        back.run(None, {"x": [1.0]})


def test_float8_and_four_bits():
    eight = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x38, 0xC0], np.uint8), 17)  # 1.0, -2.0
    session = ort.InferenceSession(models.build(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], [tensor("x", 17, ("n",))],
        [tensor("y", shape=("n",))], opset=19))
    np.testing.assert_array_equal(session.run(None, {"x": eight})[0], [1.0, -2.0])
    four = np.array([[-8, 7, 0], [1, -1, 3]], np.int8)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(four, 22)
    assert value.data_type() == "tensor(int4)" and value.tensor_size_in_bytes() == 3
    np.testing.assert_array_equal(value.numpy(), four)
    with pytest.raises(ort.InvalidArgument, match="expected elements of 2 bytes"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(four, TensorProto.BFLOAT16)
    with pytest.raises(ort.InvalidArgument, match="DataType"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(four, 1000)


def test_dlpack_to_numpy_and_back():
    value = ort.OrtValue.ortvalue_from_numpy(X.copy())
    assert value.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(value)
    assert array.ctypes.data == value.data_ptr()
    np.testing.assert_array_equal(array, X)
    del value
    gc.collect()
    np.testing.assert_array_equal(array, X)
    source = X.copy()
    imported = ort.OrtValue.from_dlpack(source)
    assert imported.data_ptr() == source.ctypes.data
    np.testing.assert_array_equal(ort.OrtValue.from_dlpack(source.T).numpy(), X.T)


def test_dlpack_keeps_the_owner_and_lets_it_go():
    source = X.copy()
    count = sys.getrefcount(source)
    value = ort.OrtValue.from_dlpack(source)
    assert sys.getrefcount(source) > count
    del value
    assert sys.getrefcount(source) == count
    unused = ort.OrtValue.ortvalue_from_numpy(source).__dlpack__()
    del unused
    assert sys.getrefcount(source) == count


def test_dlpack_of_bools_and_capsules():
    flags = ort.OrtValue.ortvalue_from_numpy(np.array([True, False]))
    assert ort.OrtValue.from_dlpack(flags).data_type() == "tensor(bool)"
    capsule = flags.__dlpack__()
    assert ort.OrtValue.from_dlpack(capsule).data_type() == "tensor(uint8)"
    with pytest.raises(ort.InvalidArgument, match="not used before"):
        ort.OrtValue.from_dlpack(capsule)
    with pytest.raises(ort.InvalidArgument):
        ort.OrtValue.from_dlpack("nothing of the kind")
    with pytest.raises(ort.InvalidArgument, match="cannot be exported"):
        ort.OrtValue.ortvalue_from_numpy(np.array(["a"])).__dlpack__()


def test_torch_tensors_are_fed_where_they_are():
    torch = pytest.importorskip("torch", reason="no python3-torch")
    session = ort.InferenceSession(models.double())
    value = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    expected = 2 * value.numpy()
    np.testing.assert_array_equal(session.run(None, {"x": value})[0], expected)
    np.testing.assert_array_equal(session.run(None, {"x": value.clone().requires_grad_()})[0], expected)
    np.testing.assert_array_equal(session.run(None, {"x": value.t().contiguous().t()})[0], expected)
    assert ort.OrtValue.from_dlpack(value).data_ptr() == value.data_ptr()
    result, = session.run_with_ort_values(None, {"x": value})
    assert torch.from_dlpack(result).sum() == expected.sum()


def test_sequences():
    value = ort.OrtValue.ortvalue_from_sequence([X, X[0]])
    assert value.is_tensor_sequence() and value.data_type() == "seq(tensor(float))"
    assert [element.shape() for element in value.elements()] == [[2, 3], [3]]
    assert value.elements()[0].data_ptr() == X.ctypes.data
    assert ort.OrtValue.ortvalue_from_sequence([], np.int64).data_type() == "seq(tensor(int64))"
    for wrong in ([X, X.astype(np.int64)], []):
        with pytest.raises(ort.InvalidArgument):
            ort.OrtValue.ortvalue_from_sequence(wrong)
    with pytest.raises(ort.InvalidArgument, match="expected a tensor"):
        value.numpy()


def test_sparse_tensors():
    cpu = ort.OrtDevice.make("cpu", 0)
    values, indices = np.array([1.0, 2.0, 3.0], np.float32), np.array([0, 4, 8])
    coo = ort.SparseTensor.sparse_coo_from_numpy(np.array([3, 3]), values, indices, cpu)
    assert coo.format() == ort.OrtSparseFormat.ORT_SPARSE_COO and coo.dense_shape().tolist() == [3, 3]
    assert coo.values() is values and coo.data_type() == "sparse_tensor(float)"
    assert coo.as_coo_view().indices().tolist() == [0, 4, 8]
    np.testing.assert_array_equal(coo.to_dense(), np.diag(values))
    pairs = ort.SparseTensor.sparse_coo_from_numpy([3, 3], values, np.array([[0, 0], [1, 1], [2, 2]]), cpu)
    np.testing.assert_array_equal(pairs.to_dense(), np.diag(values))
    csr = ort.SparseTensor.sparse_csr_from_numpy([3, 3], values, np.array([0, 1, 2]), np.array([0, 1, 2, 3]), cpu)
    assert csr.as_csrc_view().outer().tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(csr.to_dense(), np.diag(values))
    value = ort.OrtValue.ort_value_from_sparse_tensor(coo)
    assert value.is_sparse_tensor() and value.as_sparse_tensor() is coo and value.shape() == [3, 3]
    for wrong in (coo.as_csrc_view, csr.as_coo_view, coo.as_blocksparse_view, value.numpy, value.data_ptr):
        with pytest.raises(ort.InvalidArgument):
            wrong()
    with pytest.raises(RuntimeError, match="CPU"):
        coo.to_cuda(ort.OrtDevice.make("cuda", 0))
    with pytest.raises(ort.InvalidArgument, match="below"):
        ort.SparseTensor.sparse_coo_from_numpy([3, 3], values, np.array([0, 4, 9]), cpu)


def test_devices():
    assert ort.OrtDevice.make("cpu", 0).device_type() == ort.OrtDevice.cpu()
    assert ort.OrtDevice.make("cuda", 1).device_id() == 1
    with pytest.raises(ort.InvalidArgument, match="Unsupported device type"):
        ort.OrtDevice.make("abacus", 0)
    for make in (lambda: ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0),
                 lambda: ort.OrtValue.ortvalue_from_shape_and_type([1], np.float32, "cuda", 0)):
        with pytest.raises(RuntimeError, match="Can't allocate memory on the device 'cuda'"):
            make()


def test_vectors_of_values():
    vector = ort.OrtValueVector()
    vector.reserve(2)
    vector.push_back(ort.OrtValue.ortvalue_from_numpy(X))
    vector.push_back(np.array([1, 0], np.uint8).__dlpack__(), True)
    vector.shrink_to_fit()
    assert len(vector) == 2 and vector.element_type_at(0) == 1 and vector.bool_tensor_indices() == [1]
    np.testing.assert_array_equal(np.asarray(ort.OrtValue.from_dlpack(vector.dlpack_at(0))), X)
    assert len(vector.to_dlpacks()) == 2
    assert vector.to_dlpacks(lambda capsule: ort.OrtValue.from_dlpack(capsule).shape()) == [[2, 3], [2]]


def test_copy_tensors():
    a, b = (ort.OrtValue.ortvalue_from_numpy(np.full(3, number)) for number in (1.0, 2.0))
    ort.copy_tensors([a], [b])
    assert b.numpy().tolist() == [1.0] * 3
    with pytest.raises(ort.InvalidArgument):
        ort.copy_tensors([a], [])


def test_memory_infos_and_enumerations():
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    assert (info.name, info.device_id, info.allocator_type) == ("Cpu", 0, ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR)
    newer = ort.OrtMemoryInfo.create_v2("Cpu", ort.OrtMemoryInfoDeviceType.CPU, 0, 0, ort.OrtDeviceMemoryType.DEFAULT, 64,
                                        ort.OrtAllocatorType.ORT_DEVICE_ALLOCATOR)
    assert newer.device_mem_type == ort.OrtDeviceMemoryType.DEFAULT
    settings = ort.OrtArenaCfg(1 << 20, 1, 4096, -1)
    assert settings.max_mem == 1 << 20 and settings.arena_extend_strategy == 1
    assert ort.OrtArenaCfg({"initial_growth_chunk_size_bytes": 2}).initial_growth_chunk_size_bytes == 2
    for wrong in ({"max_memory": 1}, {"max_mem": "much"}, {"arena_extend_strategy": 7}):
        with pytest.raises(ort.InvalidArgument):
            ort.OrtArenaCfg(wrong)
