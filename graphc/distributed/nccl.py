"""Collectives of GPU tensors by NCCL, through cupy: one process for each GPU, on a second stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.dtypes import layout_of
from graphc.base.errors import DeviceError, DTypeError
from graphc.distributed.communicator import Communicator
from graphc.runtime.devices import cuda
from graphc.runtime.devices.array import DeviceArray, empty

_TYPES = {
    **{"f64": "FLOAT64", "f32": "FLOAT32", "f16": "FLOAT16", "bf16": "BFLOAT16", "i64": "INT64", "i32": "INT32"},
    **{"i8": "INT8", "u64": "UINT64", "u32": "UINT32", "u8": "UINT8"},
}
"""NCCL's name of each element type."""
_PAIRS = {"c64": "f32", "c128": "f64"}
"""Element type whose pairs represent a complex type in sums."""
_TRUTHS = {"sum": "max", "prod": "min", "max": "max", "min": "min"}
"""Reduction of the bytes of bool, which NCCL does not have."""


class Nccl:
    """Collectives for arrays on one GPU of this process (a CudaDevice).

    All processes create it together, each with its own GPU. Results are new arrays. A collective runs on its own
    stream, after the work submitted to the device before it and before later work; the host does not wait.
    """

    def __init__(self, host: Communicator, device: Any):
        """Connect the processes; ``host`` distributes the identifier. Raises DeviceError without NCCL."""
        self.rank, self.size = host.rank, host.size
        self._device = device
        self._library = cuda.nccl()
        with cuda.driver_errors("NCCL cannot connect the processes"), device.current():
            mine = self._library.get_unique_id() if host.rank == 0 else None
            self._connection = self._library.NcclCommunicator(host.size, host.gather_objects(mine)[0], host.rank)
        self._stream = device.second_stream()

    def all_reduce(self, array: DeviceArray, op: str) -> DeviceArray:
        """Return the reduction over all processes."""
        source = array.contiguous()
        kind, count, op = self._typed(source, op)
        result = empty(self._device, source.shape, source.dtype)
        self._issue(self._connection.allReduce, source, result, count, kind, self._op(op))
        return result

    def reduce_scatter(self, array: DeviceArray, op: str) -> DeviceArray:
        """Return part ``rank`` of the reduction, along the first dimension, which ``size`` must divide."""
        source = array.contiguous()
        kind, count, op = self._typed(source, op)
        result = empty(self._device, (source.shape[0] // self.size, *source.shape[1:]), source.dtype)
        self._issue(self._connection.reduceScatter, source, result, count // self.size, kind, self._op(op))
        return result

    def all_gather(self, array: DeviceArray) -> DeviceArray:
        """Return the arrays of all processes, stacked along a new first dimension by rank."""
        source = array.contiguous()
        result = empty(self._device, (self.size, *source.shape), source.dtype)
        self._issue(self._connection.allGather, source, result, source.nbytes, self._library.NCCL_UINT8)
        return result

    def broadcast(self, array: DeviceArray, root: int) -> DeviceArray:
        """Return the array of rank ``root``."""
        source = array.contiguous()
        result = empty(self._device, source.shape, source.dtype)
        self._issue(self._connection.broadcast, source, result, source.nbytes, self._library.NCCL_UINT8, root)
        return result

    def all_to_all(self, array: DeviceArray) -> DeviceArray:
        """Send part i along the first dimension to rank i; return the received parts in the order of senders."""
        source = array.contiguous()
        result = empty(self._device, source.shape, source.dtype)
        self._issue(self._exchange, source, result, source.nbytes // self.size, self._library.NCCL_UINT8)
        return result

    def _exchange(self, source: int, result: int, nbytes: int, kind: int, stream: int) -> None:
        """Group all sends and receives into one NCCL call, since a single one would wait for its peer."""
        self._library.groupStart()
        for peer in range(self.size):
            self._connection.send(source + peer * nbytes, nbytes, kind, peer, stream)
            self._connection.recv(result + peer * nbytes, nbytes, kind, peer, stream)
        self._library.groupEnd()

    def _issue(self, call: Callable[..., None], source: DeviceArray, result: DeviceArray, *rest: Any) -> None:
        """Submit a collective, ordered after earlier and before later work of the device."""
        if not source.size:
            return
        with cuda.driver_errors("an NCCL collective failed"), self._device.current():
            self._stream.follow()
            call(source.address, result.address, *rest, self._stream.address)
            # NOTE: freed memory is reused by work on the device's stream, which waits for this stream from here on.
            self._stream.lead()

    def _typed(self, array: DeviceArray, op: str) -> tuple[int, int, str]:
        """Return NCCL's element type for a reduction, the number of such elements, and NCCL's reduction."""
        name = layout_of(array.dtype).name
        if name == "bool":
            return self._library.NCCL_UINT8, array.size, _TRUTHS[op]
        number = 2 if name in _PAIRS else 1
        nccl_name = _TYPES.get(_PAIRS.get(name, name))
        nccl_type = None if nccl_name is None else getattr(self._library, f"NCCL_{nccl_name}", None)
        if nccl_type is None or (number == 2 and op != "sum"):
            raise DTypeError(
                f"NCCL has no reduction {op!r} of {name}",
                remedy="pass tensor.float()" if number == 1 else "pass view_as_real(tensor)",
            )
        return nccl_type, number * array.size, op

    def _op(self, op: str) -> int:
        return getattr(self._library, f"NCCL_{op.upper()}")


class Copies:
    """Collectives of a single process on any device: every one is a copy."""

    def all_reduce(self, array: DeviceArray, op: str) -> DeviceArray:
        return array.copy()

    def reduce_scatter(self, array: DeviceArray, op: str) -> DeviceArray:
        return array.copy()

    def all_gather(self, array: DeviceArray) -> DeviceArray:
        """Return a copy with a first dimension of size 1, for the rank."""
        return array.copy().reshape(1, *array.shape)

    def broadcast(self, array: DeviceArray, root: int) -> DeviceArray:
        return array.copy()

    def all_to_all(self, array: DeviceArray) -> DeviceArray:
        return array.copy()


class OnDevices:
    """Collectives of a group for arrays on devices, with one connection for each GPU, made at first use."""

    def __init__(self, host: Communicator):
        self._host = host
        self._connections: dict[str, Nccl] = {}

    def of(self, array: DeviceArray) -> Nccl | Copies:
        """Return the collectives for an array's device. Raises DeviceError for several processes without CUDA GPUs."""
        device = array.device
        if self._host.size == 1:
            return Copies()
        if not isinstance(device, cuda.CudaDevice):
            raise DeviceError(
                f"several processes exchange GPU tensors by NCCL, which does not support {device.name}",
                remedy="pass tensor.cpu()",
            )
        if device.name not in self._connections:
            self._connections[device.name] = Nccl(self._host, device)
        return self._connections[device.name]
