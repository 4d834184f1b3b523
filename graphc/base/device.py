"""Device names: the host, GPUs, and the emulated GPU."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from graphc.base import mutation_epoch
from graphc.base.errors import ArgumentError
from graphc.base.public import reduced

KINDS = ("cpu", "cuda", "cuda-emu")
"""The host, GPUs, and an emulator that executes CUDA source on the host."""


class device:
    """A device by name: ``device("cpu")``, ``device("cuda")``, ``device("cuda", 1)``, ``device("cuda-emu")``.

    The index of a GPU defaults to 0. A missing device raises DeviceError at its first use.
    """

    def __init__(self, type: str | device, index: int | None = None):
        name = str(type)
        self.type, colon, number = name.partition(":")
        if self.type not in KINDS or (colon and not number.isdecimal()):
            raise ArgumentError(f"there is no device {name!r}", remedy="use 'cpu', 'cuda', 'cuda:1' or 'cuda-emu'")
        if colon and index is not None:
            raise ArgumentError(f"device: {name!r} already has an index", remedy=f"call device({name!r})")
        self.index = int(number) if number else index
        if self.index is None and self.type == "cuda":
            self.index = 0
        if self.type == "cuda-emu":
            self.index = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(super().__reduce_ex__(max(2, protocol)))

    def __enter__(self) -> device:
        """Make this the default device of the current thread and task until the block ends."""
        _blocks.set((*_blocks.get(), self))
        mutation_epoch.note()
        return self

    def __exit__(self, *_: Any) -> None:
        _blocks.set(_blocks.get()[:-1])
        mutation_epoch.note()

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type={self.type!r})"
        return f"device(type={self.type!r}, index={self.index})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and other.partition(":")[0] in KINDS:
            return str(self) == str(device(other))
        return str(self) == str(other) if isinstance(other, device) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


CPU = device("cpu")
OF_PROCESS = [CPU]
"""The default device outside of all ``with device(...)`` blocks, in a list of one so that it can be set."""
_blocks: ContextVar[tuple[device, ...]] = ContextVar("graphc_device", default=())
"""Devices of the ``with`` blocks that this thread or task is in, innermost last."""


def device_of(name: str | device) -> device:
    """Return the device with a name; a device is returned as it is."""
    return name if name.__class__ is device else device(name)  # type: ignore[return-value]


def default_device() -> device:
    """Return the device of tensors without a ``device=`` argument."""
    blocks = _blocks.get()
    return blocks[-1] if blocks else OF_PROCESS[0]
