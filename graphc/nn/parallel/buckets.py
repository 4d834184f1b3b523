"""Buckets of gradients to be reduced together, in the order in which a backward pass finishes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from graphc.base.dtypes import DType

FIRST_BYTES = 1 << 20
"""Bytes of the first bucket, small so that the first reduction begins early."""
BYTES = 25 << 20
"""Bytes of the other buckets, as in PyTorch: large enough that bandwidth, not latency, decides the time of a
reduction."""


class Bucket(NamedTuple):
    """Parameters of one element type whose gradients form one flat array."""

    names: tuple[str, ...]
    parameters: tuple[Any, ...]
    dtype: DType

    @property
    def elements(self) -> int:
        """Number of elements of the flat array."""
        return sum(p.numel() for p in self.parameters)


def in_buckets(named: Iterable[tuple[str, Any]], first: int = FIRST_BYTES, others: int = BYTES) -> list[Bucket]:
    """Group named parameters into buckets, last parameters first.

    Backward passes finish gradients in about the reverse of the order in which the forward pass uses the parameters. A
    bucket is closed once it holds ``first`` bytes (the first one) or ``others`` bytes.
    """
    buckets: list[Bucket] = []
    unfinished: dict[DType, list[tuple[str, Any]]] = {}
    bytes_: dict[DType, int] = {}

    def close(dtype: DType) -> None:
        names, parameters = zip(*unfinished.pop(dtype), strict=True)
        buckets.append(Bucket(names, parameters, dtype))

    for name, parameter in reversed([*named]):
        dtype = parameter.dtype
        unfinished.setdefault(dtype, []).append((name, parameter))
        bytes_[dtype] = bytes_.get(dtype, 0) + parameter.numel() * dtype.numpy.itemsize
        if bytes_[dtype] >= (others if buckets else first):
            close(dtype)
            bytes_[dtype] = 0
    for dtype in [*unfinished]:
        close(dtype)
    return buckets
