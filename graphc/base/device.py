"""Names of the places where tensors live; front-end tensors live in the memory of the host."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.public import reduced


class device:
    """A device by name, e.g. ``device("cpu")``. Tensors of the front end accept the cpu only."""

    def __init__(self, type: str | device, index: int | None = None):
        name = str(type)
        self.type, _, number = name.partition(":")
        self.index = int(number) if number else index
        if self.type != "cpu":
            raise ArgumentError(f"tensors live on the cpu, not on {name!r}", remedy="'cpu', or no device at all")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(super().__reduce_ex__(max(2, protocol)))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"
        )

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, (device, str)) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


CPU = device("cpu")
