"""Matching of kernels as products of matrices, for a GPU library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from graphc.base.dtypes import DType, bfloat16
from graphc.base.sizes.size import hint, is_size
from graphc.codegen.schedule.contraction.product import Product, ProductOperand
from graphc.codegen.schedule.gpu.product_epilogue import Epilogue, match_epilogue
from graphc.codegen.schedule.gpu.sum_of_products import Factor, SumOfProducts, find_sum_of_products
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Load, Store, identity

MOST_CALLS = 32
"""Most calls of the library for one kernel; each costs a launch."""
_TYPES = ("f32", "f64")
_WORDS = {"dot2": bfloat16}
"""Element types of words that are multiplied element by element. Not ``dot4``: its first bytes are unsigned, the
library's are signed."""
_Steps = dict[Axis, int]
_Side = dict[str, int]
"""Strides by the name of a matrix."""
_Merged = tuple[int, _Side]
"""The extent of several axes as one, and the strides along it."""


def find_product(kernel: Kernel, tf32: bool = False) -> Product | None:
    """Match a kernel, of any size, as a product of matrices; None where no library supports it."""
    match = find_sum_of_products(kernel, Names("p"))
    if match is None or match.acc.init != identity("add", match.acc.dtype):
        return None
    epilogue = match_epilogue(match.after)
    if epilogue is None:
        return None
    dtype = _element_type(match)
    if dtype is None:
        return None
    product = _Operands(match, epilogue, match.left.dtype.bits // dtype.bits).product(dtype)
    if product is None or (match.acc.dtype.name != "f32" and product.epilogue != "none"):
        return None  # the library has epilogues for sums in f32 only
    return replace(product, fast="tf32") if tf32 and dtype.name == "f32" else product


def _element_type(match: SumOfProducts) -> DType | None:
    """Return the type of the factors: plain loads of elements, or of words of several elements; None for others."""
    for factor in (match.left, match.right):
        (first, *others) = factor.statements
        if others or not isinstance(first, Load) or first.guard:
            return None
    if match.product.op in _WORDS:
        return _WORDS[match.product.op]
    same = match.left.dtype is match.right.dtype is match.acc.dtype
    return match.acc.dtype if same and match.product.op == "mul" and match.acc.dtype.name in _TYPES else None


class _Operands:
    """Mapping of the axes of a sum of products to rows, columns and batches of matrices."""

    def __init__(self, match: SumOfProducts, epilogue: Epilogue, packed: int):
        self.match = match
        self.parts = packed
        """Number of factors in an element of a buffer."""
        self.epilogue = epilogue
        loads = {"a": match.left.loads[0], "b": match.right.loads[0], "out": epilogue.store}
        loads.update({f"added{i}": load for i, load in enumerate(epilogue.added)})
        self.loads: Mapping[str, Load | Store] = loads
        steps = {name: _steps(load.index) for name, load in loads.items()}
        self.is_affine = None not in steps.values()
        self.steps = {name: x for name, x in steps.items() if x is not None}

    def product(self, dtype: DType) -> Product | None:
        """Return the product; axes of neither rows nor columns become batches, or loops around calls."""
        if not self.is_affine:
            return None
        terms = self.merged(self.sorted(self.match.reduced, "a"), ("a", "b"))
        rows, outer_rows = self.side(self.match.left)
        columns, outer_columns = self.side(self.match.right)
        if terms is None or rows is None or columns is None:
            return None
        if self.parts > 1 and any(not _equal(step, 1) for step in terms[1].values()):
            return None
        others = {*outer_rows, *outer_columns, *self.match.shared}
        outer = self.sorted([x for x in self.match.outer if x in others], "out")
        for number in range(len(outer) + 1):
            batch = self.merged(outer[number:], tuple(self.steps))
            if batch is not None:
                return self.assemble(dtype, rows, columns, terms, batch, outer[:number])
        return None

    def assemble(
        self, dtype: DType, rows: _Merged, columns: _Merged, terms: _Merged, batch: _Merged, loops: Sequence[Axis]
    ) -> Product | None:
        """Return the record of the product, if the library supports the strides of the added matrices."""
        sides = {
            "a": (rows, terms),
            "b": (terms, columns),
            **{name: (rows, columns) for name in self.steps if name not in ("a", "b")},
        }
        operands = {}
        for name, steps in self.steps.items():
            packed = self.parts if name in ("a", "b") else 1
            down, across = (side[1].get(name, 0) * (1 if side is terms else packed) for side in sides[name])
            operands[name] = ProductOperand(
                self.loads[name].buffer,
                self.loads[name].index.constant,
                down,
                across,
                batch[1].get(name, 0) * packed,
                tuple(steps.get(x, 0) for x in loops),
            )
        extents = tuple(x.extent for x in loops)
        if any(map(is_size, extents)) or prod(extents) > MOST_CALLS:
            return None
        product = Product(
            dtype,
            self.match.acc.dtype,
            m=rows[0],
            n=columns[0],
            k=terms[0] * self.parts,
            batch=batch[0],
            a=operands["a"],
            b=operands["b"],
            out=operands["out"],
            activation=self.epilogue.activation,
            alpha=self.epilogue.alpha,
            loops=extents,
        )
        for name in self.steps:
            if name.startswith("added"):
                extended = _with_added(product, operands[name])
                if extended is None:
                    return None
                product = extended
        return product if product.descriptor() is not None and _writes_once(product) else None

    def sorted(self, axes: Sequence[Axis], name: str) -> list[Axis]:
        """Sort axes by their strides in a matrix, largest first; keep their order where a stride is a symbolic size."""
        steps = self.steps[name]
        if any(is_size(steps.get(x, 0)) for x in axes):
            return list(axes)
        return sorted(axes, key=lambda x: -abs(steps.get(x, 0)))

    def side(self, factor: Factor) -> tuple[_Merged | None, list[Axis]]:
        """Return the inner axes of the rows or columns merged into one, and the outer axes that cannot be merged."""
        own = "a" if factor is self.match.left else "b"
        axes = self.sorted(self.match.only(factor), "out")
        names = (own, *(name for name in self.steps if name not in ("a", "b")))
        for number in range(len(axes) + 1):
            merged = self.merged(axes[number:], names)
            if merged is not None:
                return merged, axes[:number]
        return None, []

    def merged(self, axes: Sequence[Axis], names: Sequence[str]) -> _Merged | None:
        """Merge axes, outermost first, into one; return its extent and its strides in the matrices.

        Returns None where the strides of the axes do not allow that.
        """
        axes = [x for x in axes if not (type(x.extent) is int and x.extent == 1)]
        extent: int = 1
        steps: _Side = dict.fromkeys(names, 0)
        for axis in reversed(axes):
            own = {name: self.steps[name].get(axis, 0) for name in names}
            if axis is axes[-1]:
                steps = own
            elif any(not _equal(own[name], steps[name] * extent) for name in names):
                return None
            extent = extent * axis.extent
        return extent, steps


def _equal(a: int, b: int) -> bool:
    difference = a - b
    return not is_size(difference) and difference == 0


def _steps(index: Index) -> _Steps | None:
    """Return the strides of an affine index; None for others."""
    if is_size(index.constant) or not all(isinstance(atom, Axis) for atom, _ in index.terms):
        return None
    return {atom: step for atom, step in index.terms if isinstance(atom, Axis)}


def _with_added(product: Product, added: ProductOperand) -> Product | None:
    """Return the product with a matrix or a bias added; None where it has one already, or for other strides."""
    if added.buffer == product.out.buffer:
        return replace(product, c=added) if added == product.out and product.c is None else None
    along = added.rows if product.is_by_columns else added.columns
    across = added.columns if product.is_by_columns else added.rows
    if product.bias is None and _equal(along, 1) and _equal(across, 0) and _equal(added.batch, 0):
        return replace(product, bias=added)
    lines = product.n if product.is_by_columns else product.m
    return replace(product, c=added) if product.c is None and (not _equal(across, 0) or _equal(lines, 1)) else None


def _writes_once(product: Product) -> bool:
    """Check whether the matrices of a batch of results are disjoint."""
    return not (product.out.batch == 0 and hint(product.batch) > 1)
