"""Collectives of tensors on GPUs: what NCCL is asked for, in which order, with which addresses, types and streams."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.distributed as dist
from graphc.base.dtypes import bfloat16
from graphc.base.errors import DeviceError, DTypeError
from graphc.distributed.communicator import Alone
from graphc.distributed.group import Group, using
from graphc.distributed.nccl import Copies, OnDevices
from graphc.runtime import devices
from graphc.runtime.devices import device_named
from graphc.runtime.devices.array import DeviceArray, empty, from_host
from tests.runtime.devices.fake_cupy import DriverError, FakeCupy

KINDS = {"INT8": 0, "UINT8": 1, "INT32": 2, "UINT32": 3, "INT64": 4, "UINT64": 5, "FLOAT16": 6, "FLOAT32": 7}
KINDS |= {"FLOAT64": 8, "BFLOAT16": 9}
OPS = {"SUM": 0, "PROD": 1, "MAX": 2, "MIN": 3}
NAMES = ("allReduce", "reduceScatter", "allGather", "broadcast", "send", "recv")


class FakeNccl:
    """In the place of cupy.cuda.nccl: writes down all calls among those of cupy; copies what one rank alone would."""

    def __init__(self, cupy: FakeCupy):
        self.available = True
        self.calls = cupy.calls
        self.fails = False
        for name, number in {**KINDS, **OPS}.items():
            setattr(self, f"NCCL_{name}", number)

    def get_unique_id(self) -> tuple[int, ...]:
        self.calls.append(("id",))
        return (1, 2, 3)

    def groupStart(self) -> None:
        self.calls.append(("start",))

    def groupEnd(self) -> None:
        self.calls.append(("end",))

    def NcclCommunicator(self, size: int, unique: tuple[int, ...], rank: int) -> Any:
        self.calls.append(("connect", size, unique, rank))
        return SimpleNamespace(**{name: self._recording(name) for name in NAMES})

    def _recording(self, name: str) -> Callable[..., None]:
        def record(*given: int) -> None:
            if self.fails:
                raise DriverError(3, "NCCL_ERROR_INTERNAL_ERROR")
            self.calls.append((name, *given))
            if name == "allReduce" and given[3] == KINDS["FLOAT32"]:
                ctypes.memmove(given[1], given[0], 4 * given[2])

        return record


class Pair(Alone):
    """The second of two processes, which is told the first one's identifier."""

    rank, size = 1, 2

    def gather_objects(self, value: Any) -> list[Any]:
        assert value is None
        return [(1, 2, 3), value]


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    result = FakeCupy()
    result.cuda.nccl = FakeNccl(result)
    monkeypatch.setitem(sys.modules, "cupy", result)
    monkeypatch.setitem(sys.modules, "cupy.cuda", result.cuda)
    monkeypatch.setattr(devices, "_cuda", cache(devices._cuda.__wrapped__))
    return result


def array(shape: tuple[int, ...], dtype: Any = np.float32, device: str = "cuda") -> DeviceArray:
    return from_host(device_named(device), np.ones(shape, np.dtype(dtype)))


def calls_of(cupy: FakeCupy) -> list[tuple[Any, ...]]:
    results = [call for call in cupy.calls if call[0] not in ("alloc", "memcpy", "watch")]
    cupy.calls.clear()
    return results


def test_a_collective_comes_between_the_work_before_and_the_work_behind_it(cupy: FakeCupy):
    x = array((2, 3))
    second = OnDevices(Pair()).of(x)
    work, stream = x.device.stream, second._stream.address
    assert work != stream and calls_of(cupy)[-1] == ("connect", 2, (1, 2, 3), 1)
    y = second.all_reduce(x, "sum")
    around = [("record", work), ("wait_event", stream)], [("record", stream), ("wait_event", work)]
    call = ("allReduce", x.address, y.address, 6, KINDS["FLOAT32"], OPS["SUM"], stream)
    assert calls_of(cupy) == [*around[0], call, *around[1]]
    assert y.shape == (2, 3) and y.address != x.address
    np.testing.assert_array_equal(y.get(), np.ones((2, 3)))


def test_process_0_makes_the_identifier(cupy: FakeCupy):
    class First(Pair):
        rank = 0

        def gather_objects(self, value: Any) -> list[Any]:
            return [value, None]

    OnDevices(First()).of(array((1,)))
    assert [c for c in calls_of(cupy) if c[0] in ("id", "connect")] == [("id",), ("connect", 2, (1, 2, 3), 0)]


def test_each_gpu_has_one_connection(cupy: FakeCupy):
    known = OnDevices(Pair())
    first, second = array((1,)), array((1,), device="cuda:1")
    assert known.of(first) is known.of(first) is not known.of(second)
    assert len([c for c in calls_of(cupy) if c[0] == "connect"]) == 2


@pytest.mark.parametrize("op", ["sum", "prod", "min", "max"])
def test_reductions_by_name(cupy: FakeCupy, op: str):
    x = array((4,), np.int64)
    OnDevices(Pair()).of(x).all_reduce(x, op)
    (call,) = [c for c in calls_of(cupy) if c[0] == "allReduce"]
    assert call[3:6] == (4, KINDS["INT64"], OPS[op.upper()])


@pytest.mark.parametrize(
    ("dtype", "kind", "count"),
    [
        *((np.dtype(n), n.upper(), 4) for n in ("float64", "float16", "int32", "int8", "uint8", "uint32", "uint64")),
        (bfloat16.numpy, "BFLOAT16", 4),
        (np.dtype("complex64"), "FLOAT32", 8),
        (np.dtype("complex128"), "FLOAT64", 8),
    ],
    ids=str,
)
def test_element_types(cupy: FakeCupy, dtype: Any, kind: str, count: int):
    x = empty(device_named("cuda"), (4,), dtype)
    OnDevices(Pair()).of(x).all_reduce(x, "sum")
    (call,) = [c for c in calls_of(cupy) if c[0] == "allReduce"]
    assert call[3:5] == (count, KINDS[kind])


@pytest.mark.parametrize(("op", "asked"), [("sum", "MAX"), ("prod", "MIN"), ("min", "MIN"), ("max", "MAX")])
def test_truth_values_are_bytes_of_which_the_largest_is_their_sum(cupy: FakeCupy, op: str, asked: str):
    x = array((4,), bool)
    OnDevices(Pair()).of(x).all_reduce(x, op)
    (call,) = [c for c in calls_of(cupy) if c[0] == "allReduce"]
    assert call[3:6] == (4, KINDS["UINT8"], OPS[asked])


@pytest.mark.parametrize(("dtype", "op"), [("int16", "sum"), ("uint16", "max"), ("complex64", "prod")])
def test_what_nccl_cannot_reduce(cupy: FakeCupy, dtype: str, op: str):
    x = array((4,), dtype)
    with pytest.raises(DTypeError, match=f"no reduction '{op}'"):
        OnDevices(Pair()).of(x).all_reduce(x, op)
    assert not [c for c in calls_of(cupy) if c[0] == "allReduce"]


def test_parts_of_a_reduction(cupy: FakeCupy):
    x = array((4, 3), np.float64)
    y = OnDevices(Pair()).of(x).reduce_scatter(x, "max")
    (call,) = [c for c in calls_of(cupy) if c[0] == "reduceScatter"]
    assert call[1:6] == (x.address, y.address, 6, KINDS["FLOAT64"], OPS["MAX"]) and y.shape == (2, 3)


def test_moved_data_are_bytes(cupy: FakeCupy):
    x = array((4, 3), np.int16)
    second = OnDevices(Pair()).of(x)
    stream = second._stream.address
    gathered, sent = second.all_gather(x), second.broadcast(x, 1)
    assert gathered.shape == (2, 4, 3) and sent.shape == (4, 3) and gathered.dtype == sent.dtype == np.int16
    results = [c for c in calls_of(cupy) if c[0] in NAMES]
    assert results == [
        ("allGather", x.address, gathered.address, 24, KINDS["UINT8"], stream),
        ("broadcast", x.address, sent.address, 24, KINDS["UINT8"], 1, stream),
    ]


def test_an_exchange_is_one_call_of_sends_and_receives(cupy: FakeCupy):
    x = array((4, 3))
    second = OnDevices(Pair()).of(x)
    calls_of(cupy)
    y, stream, kind = second.all_to_all(x), second._stream.address, KINDS["UINT8"]
    assert calls_of(cupy)[2:-2] == [
        ("start",),
        ("send", x.address, 24, kind, 0, stream),
        ("recv", y.address, 24, kind, 0, stream),
        ("send", x.address + 24, 24, kind, 1, stream),
        ("recv", y.address + 24, 24, kind, 1, stream),
        ("end",),
    ]


def test_nothing_is_sent_of_nothing(cupy: FakeCupy):
    x = array((0, 3))
    second = OnDevices(Pair()).of(x)
    calls_of(cupy)
    assert second.all_reduce(x, "sum").shape == (0, 3) and calls_of(cupy) == []


def test_tensors_on_gpus_go_by_nccl(cupy: FakeCupy):
    x = graphc.Tensor._wrap(array((4,)))
    with using(Group(Pair())):
        y = dist.reduced(x)
        z = dist.reduce_scatter(x)
    assert str(y.device) == "cuda:0" and y.shape == (4,) and z.shape == (2,)
    assert [c[0] for c in calls_of(cupy) if c[0] in NAMES] == ["allReduce", "reduceScatter"]


def test_errors_of_nccl_are_told(cupy: FakeCupy):
    x = array((4,))
    second = OnDevices(Pair()).of(x)
    cupy.cuda.nccl.fails = True
    with pytest.raises(DeviceError, match="an NCCL collective failed: NCCL_ERROR_INTERNAL_ERROR"):
        second.all_reduce(x, "sum")


def test_without_nccl_the_error_says_how_to_get_it(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules["graphc.distributed.group"], "_default", None)
    cupy.cuda.nccl.available = False
    with pytest.raises(DeviceError, match="nvidia-nccl"):
        OnDevices(Pair()).of(array((4,)))
    with pytest.raises(DeviceError, match="nvidia-nccl"):
        dist.init("nccl")


def test_other_devices_have_no_connection():
    x = from_host(device_named("cuda-emu"), np.ones(4, np.float32))
    with pytest.raises(DeviceError, match="does not support cuda-emu"):
        OnDevices(Pair()).of(x)


def test_one_process_alone_copies():
    x = graphc.tensor([[1.0, 2.0]], device="cuda-emu", requires_grad=True)
    assert isinstance(OnDevices(Alone()).of(x.detach()._data), Copies)
    y = dist.all_gather(dist.reduced(x))
    np.testing.assert_array_equal(y.detach().cpu().numpy(), [[1, 2]])
    assert str(y.device) == "cuda-emu"
    for result in (dist.reduce_scatter(x), dist.all_to_all(x), dist.reduced(x, "mean")):
        np.testing.assert_array_equal(result.detach().cpu().numpy(), [[1, 2]])
