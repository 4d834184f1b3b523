"""Arrays on a device against numpy's: views, copies, what other libraries see."""

import copy
import gc
import pickle

import numpy as np
import pytest

from graphc.base import dlpack
from graphc.base.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from graphc.runtime.devices import array as arrays
from graphc.runtime.devices import device_named
from graphc.runtime.devices.array import DeviceArray, empty, from_cuda_array_interface, from_dlpack, from_host, zeros

S = np.s_
KEYS = [
    *(
        S[1],
        S[-1, 0],
        S[:, 1:],
        S[::-1],
        S[..., ::-2],
        S[None, 1, ..., None],
        S[1:0],
        S[:, :, 3:0:-1],
        S[0, 0, 0],
        S[()],
    ),
    *(S[np.int64(1)], S[..., 2], S[:, None, ::2, 1:3]),
]


@pytest.fixture
def device():
    return device_named("cuda-emu")


@pytest.fixture
def host():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def same(result, expected):
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    assert np.array_equal(result.get(), expected)
    assert result.flags.c_contiguous == expected.flags.c_contiguous
    assert result.flags.f_contiguous == expected.flags.f_contiguous


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_basic_indices_are_views(device, host, key):
    array = from_host(device, host)
    view = array[key]
    parts = key if isinstance(key, tuple) else (key,)
    expected = host[parts] if ... in parts else host[(*parts, ...)]
    same(view, expected)
    assert view.memory is array.memory
    if view.size:
        assert view.address - array.address == expected.ctypes.data - host.ctypes.data
        assert view.strides == expected.strides


@pytest.mark.parametrize("dtype", ["f64", "f32", "i64", "i32", "i8", "u8", "bool", "f16", "bf16"])
def test_every_element_type_goes_there_and_back(device, dtype):
    kind = arrays.numpy_type(dtype)
    values = np.arange(6).reshape(2, 3).astype(kind)
    same(from_host(device, values), values)
    same(zeros(device, (3, 0, 2), dtype), np.zeros((3, 0, 2), kind))
    assert empty(device, (2, 3), dtype).nbytes == values.nbytes


def test_axes_move(device, host):
    array = from_host(device, host)
    same(array.T, host.T)
    same(array.transpose(1, 0, 2), host.transpose(1, 0, 2))
    same(array.transpose((2, 0, 1)), host.transpose(2, 0, 1))
    same(array.expand_dims(1), np.expand_dims(host, 1))
    same(array.expand_dims((0, -1)).squeeze(), host)
    same(array[:1].broadcast_to((5, 3, 4)), np.broadcast_to(host[:1], (5, 3, 4)))
    assert not array.broadcast_to((7, 2, 3, 4)).flags.writeable
    with pytest.raises(ShapeError):
        array.broadcast_to((2, 5, 4))
    with pytest.raises(ShapeError):
        array.transpose(0, 1)


def test_shapes_change_where_strides_fit():
    """For all views of small arrays: a view exactly where numpy needs no copy, and with the same elements."""
    generator = np.random.default_rng(0)
    device = device_named("cuda-emu")
    base = np.arange(96, dtype=np.int32)
    array = from_host(device, base)
    shapes = [(96,), (2, 48), (2, 3, 16), (4, 4, 6), (2, 2, 2, 2, 6), (1, 96, 1)]
    for _ in range(200):
        shape, expected_result = (shapes[i] for i in generator.integers(len(shapes), size=2))
        order = tuple(generator.permutation(len(shape)))
        plain, view = base.reshape(shape).transpose(order), array.reshape(shape).transpose(order)
        if generator.random() < 0.3:
            plain, view = plain[::-1], view[::-1]
        expected = plain.reshape(expected_result)
        if np.shares_memory(expected, base):
            same(view.reshape(expected_result), expected)
            assert view.reshape(expected_result).memory is array.memory
        else:
            with pytest.raises(ShapeError, match="contiguous"):
                view.reshape(expected_result)
            same(view.contiguous().reshape(expected_result), expected)


def test_one_size_may_be_left_open(device, host):
    array = from_host(device, host)
    same(array.reshape(-1), host.reshape(-1))
    same(array.reshape(2, -1), host.reshape(2, -1))
    same(array.reshape((4, -1, 2)), host.reshape(4, -1, 2))
    same(array[:0].reshape(0, 7), host[:0].reshape(0, 7))
    for wrong in ((5, -1), (23,), (-1, -1), (0, -1)):
        with pytest.raises(ShapeError):
            array.reshape(wrong)


def test_elements_are_written_through_views(device, host):
    array = from_host(device, host)
    array[:, ::-1, 1::2].set(np.full((2, 3, 2), -1, np.float32))
    array[0].set(np.float32(5))
    host[:, ::-1, 1::2] = -1
    host[0] = 5
    same(array, host)
    with pytest.raises(DTypeError):
        array.set(host.astype(np.float64))
    with pytest.raises(ShapeError):
        array.set(host[:, :2])
    with pytest.raises(ArgumentError, match="not to be written"):
        array.broadcast_to((2, 2, 3, 4)).set(host)


def test_copies_have_memory_of_their_own(device, host):
    array = from_host(device, host)
    copy, dense = array.copy(), array.T.copy()
    array.set(np.zeros_like(host))
    same(copy, host)
    same(dense, np.ascontiguousarray(host.T))
    assert array.contiguous() is array


def test_arrays_are_copied_and_not_pickled(device, host):
    array = from_host(device, host)
    for made in (copy.copy(array), copy.deepcopy({"a": array.T})["a"].T):
        assert made.memory is not array.memory
        same(made.contiguous(), host)
    with pytest.raises(ArgumentError, match="pickled"):
        pickle.dumps(array)


def test_a_copier_makes_arrays_dense(device, host, monkeypatch):
    seen = []

    def copier(source, made):
        seen.append(source)
        made.set(source.get())

    monkeypatch.setattr(arrays, "_copiers", [])
    arrays.use_copier(copier)
    same(from_host(device, host).T.contiguous(), np.ascontiguousarray(host.T))
    assert len(seen) == 1


def test_what_is_no_view_is_refused(device, host):
    array = from_host(device, host)
    for key in ([0, 1], np.array([0]), host > 1, True):
        with pytest.raises(ArgumentError, match="has no view"):
            array[key]
    with pytest.raises(IndexRangeError):
        array[2]
    with pytest.raises(IndexRangeError):
        array[0, 0, 0, 0]
    with pytest.raises(ArgumentError, match="get"):
        np.asarray(array)
    with pytest.raises(ArgumentError):
        len(array[0, 0, 0])
    with pytest.raises(ArgumentError, match="bytes"):
        DeviceArray(device, array.memory, (25,), np.float32)
    assert len(array) == 2


def test_memory_lives_as_long_as_a_view(device):
    gc.collect()  # what earlier tests have left
    before = device.memory_stats().allocated
    array = zeros(device, (1000,), "f32")
    view = array[5:]
    del array
    assert device.memory_stats().allocated == before + 4000
    assert view.get().sum() == 0
    del view
    gc.collect()
    assert device.memory_stats().allocated == before


def test_bytes_between_elements_are_known(device, host):
    array = from_host(device, host)
    start = array.address
    assert array.byte_bounds() == (start, start + 96)
    assert array[::-1, 1].byte_bounds() == (start + 16, start + 80)
    assert array[:0].byte_bounds() == (start, start)


def test_other_libraries_share_memory_by_dlpack(device, host):
    array = from_host(device, host)
    for mine, plain in ((array, host), (array.T, host.T), (array[:, ::-1], host[:, ::-1])):
        shared = np.from_dlpack(mine)
        assert np.array_equal(shared, plain)
        back = from_dlpack(mine, device)
        same(back, plain)
        back.set(np.asarray(back.get()) + 1)
        assert np.array_equal(shared, plain + 1)
        back.set(np.ascontiguousarray(plain))
    del shared, back, mine
    gc.collect()
    assert not dlpack._exported


def test_capsules_nobody_takes_are_given_back(device, host):
    array = from_host(device, host)
    capsule = array.__dlpack__()
    versioned = array.__dlpack__(max_version=(1, 1))
    assert len(dlpack._exported) == 2
    del capsule, versioned
    gc.collect()
    assert not dlpack._exported


def test_read_only_arrays_say_so(device, host):
    array = from_host(device, host).broadcast_to((2, 2, 3, 4))
    assert not np.from_dlpack(array).flags.writeable
    assert not from_dlpack(array, device).flags.writeable
    with pytest.raises(BufferError):
        array.__dlpack__()


def test_other_libraries_share_memory_by_the_array_interface(device, host):
    array = from_host(device, host)
    for mine, plain in ((array, host), (array[:, ::-1], host[:, ::-1]), (array[:0], host[:0])):
        said = mine.__cuda_array_interface__
        assert (said["version"], said["typestr"], said["shape"]) == (3, "<f4", plain.shape)
        same(from_cuda_array_interface(mine, device), plain)
    assert array.__cuda_array_interface__["strides"] is None
    with pytest.raises(ArgumentError):
        from_cuda_array_interface(host, device)


def test_memory_of_another_device_is_refused(device, host):
    class Elsewhere:
        def __dlpack__(self, **_):
            raise AssertionError

        def __dlpack_device__(self):
            return (2, 1)

    with pytest.raises(ArgumentError, match="kind 2, number 1"):
        from_dlpack(Elsewhere(), device)
    with pytest.raises(ArgumentError):
        from_dlpack(3, device)
