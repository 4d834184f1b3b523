"""StableHLO programs in plain records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from graphc.base.dtypes import DType
from graphc.base.records import dataclass
from graphc.ir.types import TensorType


@dataclass(frozen=True)
class Dense:
    """Elements of a constant. ``array`` has the type's shape; bf16 is stored as f32."""

    array: np.ndarray
    dtype: DType


@dataclass(frozen=True)
class Symbol:
    """Name of a function."""

    name: str


@dataclass(frozen=True)
class FunctionType:
    """Types of arguments and results."""

    arguments: tuple[Any, ...]
    results: tuple[Any, ...]


@dataclass
class Operation:
    """One application of an operation. Values are used by their names, such as ``%3`` or ``%3#1``."""

    name: str
    """Name with dialect, such as ``stablehlo.add``."""
    operands: tuple[str, ...]
    results: tuple[str, ...]
    types: tuple[Any, ...]
    """Types of the results: TensorTypes, or texts of other types."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Numbers, strings, Dense, Symbols, and tuples and dictionaries of these, by the names of the generic form."""
    blocks: tuple[Block, ...] = ()
    line: int = 0
    """Line in the text, counted from 1."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.name}"


@dataclass
class Block:
    """Arguments, operations in order, and the values that the block returns."""

    arguments: list[str]
    types: list[Any]
    operations: list[Operation]
    returned: tuple[str, ...]
    captured: tuple[str, ...] = ()
    """Names of enclosing blocks that the block reads."""


@dataclass
class HloFunction:
    """HloFunction of a program."""

    name: str
    body: Block
    results: tuple[Any, ...]
    public: bool
    line: int


@dataclass
class Program:
    """Functions of a module by name."""

    name: str
    functions: dict[str, HloFunction]

    @property
    def main(self) -> HloFunction:
        """Return the entry: the function ``main``, else the first public one."""
        public = [f for f in self.functions.values() if f.public]
        return self.functions.get("main") or (public or [*self.functions.values()])[0]


def every_operation(block: Block) -> Iterator[Operation]:
    """Yield the operations of a block and of all blocks inside."""
    for operation in block.operations:
        yield operation
        for inner in operation.blocks:
            yield from every_operation(inner)


def type_of(value: Any) -> TensorType:
    """Return a type as the type of a tensor."""
    assert isinstance(value, TensorType)
    return value
