"""A kernel that is a product of matrices as libraries compute them: sizes, where its operands lie, its epilogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from graphc.base.dtypes import DType
from graphc.base.sizes.size import Dimension, at
from graphc.base.sizes.size_relations import at_most
from graphc.files.product_descriptor import Matrix, ProductDescriptor


@dataclass(frozen=True)
class Operand:
    """Element (row, column) of matrix i lies ``i * batch + row * rows + column * columns`` behind the first one."""

    buffer: str
    start: int
    """Where that is, in elements of the buffer, of which each may hold several of the product's factors."""
    rows: int
    columns: int
    batch: int = 0
    moves: tuple[int, ...] = ()
    """Elements of the buffer from one iteration to the next of each of the product's ``loops``."""


@dataclass(frozen=True)
class Product:
    """``out = activation(alpha * a b + c + bias)`` for a batch of matrices, inside of ``loops``."""

    type: DType
    """Of the factors."""
    sums: DType
    """Of the sums, of ``out``, ``c`` and ``bias``."""
    m: int
    n: int
    k: int
    batch: int
    a: Operand
    """Rows m, columns k."""
    b: Operand
    """Rows k, columns n."""
    out: Operand
    """Rows m, columns n; one of its strides is 1."""
    c: Operand | None = None
    bias: Operand | None = None
    """One number for each place along that side of ``out`` which has stride 1."""
    activation: str = ""
    """``relu``, ``gelu`` (by tanh), or none."""
    alpha: float = 1.0
    loops: tuple[int, ...] = ()
    """Extents of loops around calls of the library, outermost first."""
    fast: str = ""
    """``tf32`` where f32 factors may lose all but 10 bits of their fraction."""

    @property
    def operands(self) -> dict[str, Operand]:
        """By name in the order of ``ProductDescriptor.operands``."""
        turned = ("a", "b") if self.is_by_columns else ("b", "a")
        found = {"a": getattr(self, turned[0]), "b": getattr(self, turned[1]), "d": self.out}
        found.update({name: x for name, x in (("c", self.c), ("bias", self.bias)) if x is not None})
        return found

    @property
    def is_by_columns(self) -> bool:
        """Whether neighbours in a column of ``out`` lie side by side; a library's ``d`` is ``out`` transposed else."""
        return _is(self.out.rows, 1) and not _is(self.out.columns, 1)

    @property
    def epilogue(self) -> str:
        """As ``ProductDescriptor`` says it."""
        return "_".join(x for x in (self.activation, "bias" if self.bias else "") if x) or "none"

    def at(self, values: Mapping[Dimension, Any]) -> Product:
        """The product with numbers in place of sizes."""
        return _at(self, values)

    def calls(self) -> Iterator[tuple[tuple[str, int], ...]]:
        """For each iteration of the loops where operands start: (buffer, element), in the order of the descriptor."""
        spots: list[tuple[int, ...]] = [()]
        for extent in self.loops:
            spots = [(*spot, i) for spot in spots for i in range(extent)]
        for spot in spots:
            yield tuple(
                (x.buffer, x.start + sum(i * step for i, step in zip(spot, x.moves, strict=True)))
                for x in self.operands.values()
            )

    def descriptor(self) -> ProductDescriptor | None:
        """The product in the library's terms; None where a matrix does not lie as one of a library. Its numbers are
        sizes where those of the product are."""
        out = self.out
        m, n = (self.m, self.n) if self.is_by_columns else (self.n, self.m)
        first, second = (self.a, self.b) if self.is_by_columns else (self.b, self.a)
        turn = (lambda x: (x.rows, x.columns)) if self.is_by_columns else (lambda x: (x.columns, x.rows))
        a, b = self.matrix(turn(first), m, self.k, first), self.matrix(turn(second), self.k, n, second)
        d = self.matrix(turn(out), m, n, out, self.sums)
        c = self.matrix(turn(self.c), m, n, self.c, self.sums) if self.c is not None else None
        if a is None or b is None or d is None or d[1] or (self.c is not None and (c is None or c[1])):
            return None
        if self.bias is not None and not _is(turn(self.bias)[0], 1):
            return None
        compute = self.fast or self.sums.name
        return ProductDescriptor(
            compute, a[0], b[0], d[0], a[1], b[1], self.epilogue, self.alpha, c[0] if c is not None else None
        )

    def matrix(
        self, steps: tuple[int, int], rows: int, columns: int, operand: Operand, dtype: DType | None = None
    ) -> tuple[Matrix, bool] | None:
        """How rows x columns with these strides lie, and whether transposed."""
        name = (dtype or self.type).name
        for turned in (False, True):
            (down, across), (r, c) = (steps, (rows, columns)) if not turned else (steps[::-1], (columns, rows))
            if not _is(down, 1) and not _is(r, 1):
                continue
            leading = r if _is(c, 1) else across
            if at_most(r, leading) and at_most(1, leading):
                return Matrix(name, r, c, leading, self.batch, operand.batch), turned
        return None


def _is(size: int, number: int) -> bool:
    return type(size) is int and size == number


def _at(record: Any, values: Mapping[Dimension, Any]) -> Any:
    parts: dict[str, Any] = {}
    for part in fields(record):
        value = getattr(record, part.name)
        if isinstance(value, Operand):
            parts[part.name] = _at(value, values)
        elif isinstance(value, tuple):
            parts[part.name] = tuple(at(x, values) for x in value)
        elif not isinstance(value, str | DType | float) and value is not None:
            parts[part.name] = at(value, values)
    return replace(record, **parts)
