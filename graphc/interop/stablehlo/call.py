"""Context of a rule: the operation, its attributes in checked form, and its regions to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.errors import ParseError, UnsupportedError
from graphc.base.records import dataclass
from graphc.interop.stablehlo.graph import Block, Dense, Operation, Symbol
from graphc.ir.types import TensorType
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

if TYPE_CHECKING:
    from graphc.interop.stablehlo.run import ProgramRunner


@dataclass
class OperationCall:
    """One application of an operation."""

    operation: Operation
    runner: ProgramRunner
    scope: Mapping[str, Any]
    """Values of the enclosing blocks by name."""
    pointwise: bool = False
    """Whether shapes are those of whole tensors, and not the text's."""

    @property
    def type(self) -> TensorType:
        """Return the type of the only result, or of the first one."""
        return self.operation.types[0]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Return the attributes by name."""
        return self.operation.attributes

    def ints(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return an attribute that lists integers. Raises ParseError."""
        return integers(self.attributes.get(name), default, self._place(name))

    def int(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute. Raises ParseError."""
        value = self.attributes.get(name, default)
        if type(value) is not int:
            raise ParseError(f"{self._place(name)} is not an integer")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean attribute, false where it is left out."""
        return self.attributes.get(name, False) is True

    def word(self, name: str, default: str = "") -> str:
        """Return an attribute that is one of a list of words."""
        return str(self.attributes.get(name, default))

    def symbol(self, name: str) -> str:
        """Return the name of a function. Raises ParseError."""
        value = self.attributes.get(name)
        if not isinstance(value, Symbol):
            raise ParseError(f"{self._place(name)} is not the name of a function")
        return value.name

    def numbers(self, name: str) -> Mapping[str, Any]:
        """Return an attribute with named parameters, such as ``#stablehlo.gather<...>``. Raises ParseError."""
        value = self.attributes.get(name)
        if not isinstance(value, Mapping):
            raise ParseError(f"{self._place(name)} has no named parameters")
        return value

    def _place(self, name: str) -> str:
        return f"line {self.operation.line}: attribute {name!r} of {self.operation.name}"

    @staticmethod
    def known(tensor: Tensor) -> np.ndarray | None:
        """Return the elements of a constant; None for values that calls may change."""
        return None if tensor.requires_grad else front().known(tensor)

    # Regions

    def block(self, index: int = 0) -> Block:
        """Return a region. Raises ParseError."""
        if index >= len(self.operation.blocks):
            raise ParseError(f"line {self.operation.line}: {self.operation.name} lacks a region")
        return self.operation.blocks[index]

    def run(self, block: Block, *arguments: Tensor) -> list[Tensor]:
        """Run a region and return its results."""
        return self.runner.run(block, arguments, self.scope)

    def over_elements(self, block: Block, *arguments: Tensor) -> list[Tensor]:
        """Run a region for one element on whole tensors, element by element.

        Raises UnsupportedError for a region with operations that do more than that.
        """
        for operation in block.operations:
            if not self.runner.is_pointwise(operation):
                raise self.unsupported(f"a region with {operation.name} (line {operation.line})")
        return self.runner.run(block, arguments, self.scope, pointwise=True)

    def unsupported(self, what: str, remedy: str | None = None) -> UnsupportedError:
        """Return the error for a form of the operation that graphc lacks."""
        return UnsupportedError(
            f"{self.operation.name}: graphc has no form for {what}", where=str(self.operation), remedy=remedy
        )


def integers(value: Any, default: Sequence[int] | None, place: str) -> tuple[int, ...]:
    """Return a list of integers: a tuple, or a dense constant. Raises ParseError."""
    if value is None and default is not None:
        return tuple(default)
    if isinstance(value, Dense):
        value = tuple(value.array.reshape(-1).tolist())
    if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
        raise ParseError(f"{place} is not a list of integers")
    return tuple(map(int, value))
