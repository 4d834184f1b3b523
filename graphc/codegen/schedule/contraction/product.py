"""Matrix products in the form of GPU libraries: sizes, strides of the operands, epilogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from graphc.base.dtypes import DType
from graphc.base.records import dataclass
from graphc.base.sizes.size import Dimension, at
from graphc.base.sizes.size_relations import at_most
from graphc.files.product_descriptor import Matrix, ProductDescriptor


@dataclass(frozen=True)
class ProductOperand:
    """Operand of a product. Element (row, column) of matrix i is at ``start + i * batch + row * rows + column *
    columns``."""

    buffer: str
    start: int
    """Offset of the first element, in elements of the buffer; each may hold several of the product's factors."""
    rows: int
    columns: int
    batch: int = 0
    moves: tuple[int, ...] = ()
    """Strides, in elements of the buffer, per iteration of each of the product's ``loops``."""


@dataclass(frozen=True)
class Product:
    """``out = activation(alpha * a b + c + bias)`` for a batch of matrices, inside ``loops``."""

    type: DType
    """Type of the factors."""
    sums: DType
    """Type of the sums, of ``out``, ``c`` and ``bias``."""
    m: int
    n: int
    k: int
    batch: int
    a: ProductOperand
    """Rows m, columns k."""
    b: ProductOperand
    """Rows k, columns n."""
    out: ProductOperand
    """Rows m, columns n; one of its strides is 1."""
    c: ProductOperand | None = None
    bias: ProductOperand | None = None
    """One number per position along the side of ``out`` with stride 1."""
    activation: str = ""
    """``relu``, ``gelu`` (the tanh approximation), or empty."""
    alpha: float = 1.0
    loops: tuple[int, ...] = ()
    """Extents of loops around calls of the library, outermost first."""
    fast: str = ""
    """``tf32`` where f32 factors may be rounded to 10 bits of fraction, else empty."""

    @property
    def operands(self) -> dict[str, ProductOperand]:
        """Operands by name, in the order of ``ProductDescriptor.operands``."""
        turned = ("a", "b") if self.is_by_columns else ("b", "a")
        operands = {"a": getattr(self, turned[0]), "b": getattr(self, turned[1]), "d": self.out}
        operands.update({name: x for name, x in (("c", self.c), ("bias", self.bias)) if x is not None})
        return operands

    @property
    def is_by_columns(self) -> bool:
        """True if columns of ``out`` are contiguous; otherwise the library's ``d`` is ``out`` transposed."""
        return _is(self.out.rows, 1) and not _is(self.out.columns, 1)

    @property
    def epilogue(self) -> str:
        """Epilogue, by the name that ``ProductDescriptor`` uses."""
        return "_".join(x for x in (self.activation, "bias" if self.bias else "") if x) or "none"

    def at(self, values: Mapping[Dimension, Any]) -> Product:
        """Return the product with numbers in place of sizes."""
        return _at(self, values)

    def calls(self) -> Iterator[tuple[tuple[str, int], ...]]:
        """Yield, for each iteration of the loops, (buffer, first element) of the operands in the descriptor's order."""
        points: list[tuple[int, ...]] = [()]
        for extent in self.loops:
            points = [(*point, i) for point in points for i in range(extent)]
        for point in points:
            yield tuple(
                (x.buffer, x.start + sum(i * step for i, step in zip(point, x.moves, strict=True)))
                for x in self.operands.values()
            )

    def descriptor(self) -> ProductDescriptor | None:
        """Return the product in the library's terms; None if the library does not support a matrix's strides.

        Its numbers may be symbolic sizes, like the numbers of the product.
        """
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
        self, steps: tuple[int, int], rows: int, columns: int, operand: ProductOperand, dtype: DType | None = None
    ) -> tuple[Matrix, bool] | None:
        """Return the layout of a rows x columns matrix with these strides, and whether it is transposed; None if it has
        no leading dimension."""
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
    changes: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, ProductOperand):
            changes[field.name] = _at(value, values)
        elif isinstance(value, tuple):
            changes[field.name] = tuple(at(x, values) for x in value)
        elif not isinstance(value, str | DType | float) and value is not None:
            changes[field.name] = at(value, values)
    return replace(record, **changes)
