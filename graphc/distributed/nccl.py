"""Collectives of tensors on GPUs by NCCL, through cupy: one process for each GPU, on a second stream."""

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
"""Names of NCCL's element types, by graphc's."""
_PAIRS = {"c64": "f32", "c128": "f64"}
"""Complex numbers are summed as pairs of these."""
_TRUTHS = {"sum": "max", "prod": "min", "max": "max", "min": "min"}
"""What reduces bytes of truth values, which NCCL has no type for."""


class Nccl:
    """The collectives of a group for arrays on one GPU of this process (a CudaDevice). All processes make it together,
    each with a GPU of its own; results are new arrays, there for all work that the GPU is given afterwards.

    A collective waits on its stream for what the device has been asked for before, and the device waits for its end
    before what it is asked for next: the host waits for neither."""

    def __init__(self, host: Communicator, device: Any):
        """``host``: what brings the identifier of the connection to all. Raises DeviceError where there is no NCCL."""
        self.rank, self.size = host.rank, host.size
        self._device = device
        self._library = cuda.nccl()
        with cuda.driver_errors("NCCL cannot connect the processes"), device.current():
            mine = self._library.get_unique_id() if host.rank == 0 else None
            self._connection = self._library.NcclCommunicator(host.size, host.gather_objects(mine)[0], host.rank)
        self._stream = device.second_stream()

    def all_reduce(self, array: DeviceArray, op: str) -> DeviceArray:
        """The reduction over all processes."""
        source = array.contiguous()
        kind, count, op = self._typed(source, op)
        result = empty(self._device, source.shape, source.dtype)
        self._issue(self._connection.allReduce, source, result, count, kind, self._op(op))
        return result

    def reduce_scatter(self, array: DeviceArray, op: str) -> DeviceArray:
        """Part ``rank`` of the reduction, along the first dimension, which ``size`` divides."""
        source = array.contiguous()
        kind, count, op = self._typed(source, op)
        result = empty(self._device, (source.shape[0] // self.size, *source.shape[1:]), source.dtype)
        self._issue(self._connection.reduceScatter, source, result, count // self.size, kind, self._op(op))
        return result

    def all_gather(self, array: DeviceArray) -> DeviceArray:
        """The arrays of all, with a first dimension for their ranks."""
        source = array.contiguous()
        result = empty(self._device, (self.size, *source.shape), source.dtype)
        self._issue(self._connection.allGather, source, result, source.nbytes, self._library.NCCL_UINT8)
        return result

    def broadcast(self, array: DeviceArray, root: int) -> DeviceArray:
        """The array of process ``root``."""
        source = array.contiguous()
        result = empty(self._device, source.shape, source.dtype)
        self._issue(self._connection.broadcast, source, result, source.nbytes, self._library.NCCL_UINT8, root)
        return result

    def all_to_all(self, array: DeviceArray) -> DeviceArray:
        """Part i along the first dimension goes to process i; gives what came, in the order of senders."""
        source = array.contiguous()
        result = empty(self._device, source.shape, source.dtype)
        self._issue(self._exchange, source, result, source.nbytes // self.size, self._library.NCCL_UINT8)
        return result

    def _exchange(self, source: int, result: int, nbytes: int, kind: int, stream: int) -> None:
        """Sends and receives that NCCL takes for one call, as none of them would end alone."""
        self._library.groupStart()
        for peer in range(self.size):
            self._connection.send(source + peer * nbytes, nbytes, kind, peer, stream)
            self._connection.recv(result + peer * nbytes, nbytes, kind, peer, stream)
        self._library.groupEnd()

    def _issue(self, call: Callable[..., None], source: DeviceArray, result: DeviceArray, *rest: Any) -> None:
        """Asks for a collective between what the device was asked for before and what it is asked for next."""
        if not source.size:
            return
        with cuda.driver_errors("a collective of NCCL has failed"), self._device.current():
            self._stream.follow()
            call(source.address, result.address, *rest, self._stream.address)
            # NOTE: memory that is given back goes to work on the device's stream, which waits for this one from here.
            self._stream.lead()

    def _typed(self, array: DeviceArray, op: str) -> tuple[int, int, str]:
        """NCCL's type for a reduction, how many elements of it there are, and what reduces them."""
        name = layout_of(array.dtype).name
        if name == "bool":
            return self._library.NCCL_UINT8, array.size, _TRUTHS[op]
        number = 2 if name in _PAIRS else 1
        wanted = _TYPES.get(_PAIRS.get(name, name))
        found = None if wanted is None else getattr(self._library, f"NCCL_{wanted}", None)
        if found is None or (number == 2 and op != "sum"):
            raise DTypeError(
                f"NCCL has no reduction {op!r} of {name}",
                remedy="tensor.float()" if number == 1 else "view_as_real(tensor)",
            )
        return found, number * array.size, op

    def _op(self, op: str) -> int:
        return getattr(self._library, f"NCCL_{op.upper()}")


class Copies:
    """The collectives of one process alone, on any device."""

    def all_reduce(self, array: DeviceArray, op: str) -> DeviceArray:
        """A copy."""
        return array.copy()

    def reduce_scatter(self, array: DeviceArray, op: str) -> DeviceArray:
        """A copy."""
        return array.copy()

    def all_gather(self, array: DeviceArray) -> DeviceArray:
        """A copy, with a first dimension for its rank."""
        return array.copy().reshape(1, *array.shape)

    def broadcast(self, array: DeviceArray, root: int) -> DeviceArray:
        """A copy."""
        return array.copy()

    def all_to_all(self, array: DeviceArray) -> DeviceArray:
        """A copy."""
        return array.copy()


class OnDevices:
    """The collectives of a group for arrays on devices: a connection for each GPU, made at its first one."""

    def __init__(self, host: Communicator):
        self._host = host
        self._known: dict[str, Nccl] = {}

    def of(self, array: DeviceArray) -> Nccl | Copies:
        """What serves an array; raises DeviceError for several processes with devices that are no GPUs."""
        device = array.device
        if self._host.size == 1:
            return Copies()
        if not isinstance(device, cuda.CudaDevice):
            raise DeviceError(
                f"several processes exchange tensors of GPUs by NCCL, which does not know {device.name}",
                remedy="tensor.cpu()",
            )
        if device.name not in self._known:
            self._known[device.name] = Nccl(self._host, device)
        return self._known[device.name]
