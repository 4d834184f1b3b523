"""Which gradients travel together: parameters in buckets, in the order in which a backward pass finishes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from graphc.base.dtypes import DType

FIRST_BYTES = 1 << 20
"""Bytes of the first bucket: a small one, so that the first reduction begins early."""
BYTES = 25 << 20
"""Bytes of the other buckets, as PyTorch's: large enough that the time of a reduction is that of its bytes."""


class Bucket(NamedTuple):
    """Parameters of one element type, whose gradients are one flat array."""

    names: tuple[str, ...]
    parameters: tuple[Any, ...]
    dtype: DType

    @property
    def elements(self) -> int:
        """How many numbers the flat array has."""
        return sum(p.numel() for p in self.parameters)


def in_buckets(named: Iterable[tuple[str, Any]], first: int = FIRST_BYTES, others: int = BYTES) -> list[Bucket]:
    """Buckets of parameters with their names, last parameters first: backward passes finish gradients about the other
    way round than the forward pass meets the parameters. A bucket is full with ``first`` or ``others`` bytes."""
    found: list[Bucket] = []
    open_: dict[DType, list[tuple[str, Any]]] = {}
    bytes_: dict[DType, int] = {}

    def close(dtype: DType) -> None:
        names, parameters = zip(*open_.pop(dtype), strict=True)
        found.append(Bucket(names, parameters, dtype))

    for name, parameter in reversed([*named]):
        dtype = parameter.dtype
        open_.setdefault(dtype, []).append((name, parameter))
        bytes_[dtype] = bytes_.get(dtype, 0) + parameter.numel() * dtype.numpy.itemsize
        if bytes_[dtype] >= (others if found else first):
            close(dtype)
            bytes_[dtype] = 0
    for dtype in [*open_]:
        close(dtype)
    return found
