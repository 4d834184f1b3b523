"""Finds kernels that are products of matrices which a library computes faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from graphc.base.dtypes import DType, bfloat16
from graphc.base.sizes.size import hint, is_size
from graphc.codegen.schedule.contraction.product import Operand, Product
from graphc.codegen.schedule.gpu.product_epilogue import Epilogue, match_epilogue
from graphc.codegen.schedule.gpu.sum_of_products import Factor, SumOfProducts, find_sum_of_products
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Load, Store, identity

MOST_CALLS = 32
"""Calls of the library for one kernel, each of which takes the time of a launch."""
_TYPES = ("f32", "f64")
_WORDS = {"dot2": bfloat16}
"""Of what words are made that are multiplied part by part. Not ``dot4``: its first bytes are unsigned, the library's
are signed."""
_Steps = dict[Axis, int]
_Side = dict[str, int]
"""Strides by the name of a matrix."""
_Merged = tuple[int, _Side]
"""The extent of several axes as one, and the strides along it."""


def find_product(kernel: Kernel, tf32: bool = False) -> Product | None:
    """The product that a kernel is, whatever its size; None where no library has one like it."""
    found = find_sum_of_products(kernel, Names("p"))
    if found is None or found.acc.init != identity("add", found.acc.dtype):
        return None
    epilogue = match_epilogue(found.after)
    if epilogue is None:
        return None
    dtype = _element_type(found)
    if dtype is None:
        return None
    made = _Operands(found, epilogue, found.left.dtype.bits // dtype.bits).product(dtype)
    if made is None or (found.acc.dtype.name != "f32" and made.epilogue != "none"):
        return None  # the library's epilogues are those of sums in f32
    return replace(made, fast="tf32") if tf32 and dtype.name == "f32" else made


def _element_type(found: SumOfProducts) -> DType | None:
    """The type of the factors, elements as they are stored or several of them in a word; None for other ones."""
    for factor in (found.left, found.right):
        (first, *others) = factor.statements
        if others or not isinstance(first, Load) or first.guard:
            return None
    if found.product.op in _WORDS:
        return _WORDS[found.product.op]
    same = found.left.dtype is found.right.dtype is found.acc.dtype
    return found.acc.dtype if same and found.product.op == "mul" and found.acc.dtype.name in _TYPES else None


class _Operands:
    """The axes of a sum of products as rows, columns and batches of matrices."""

    def __init__(self, found: SumOfProducts, epilogue: Epilogue, parts: int):
        self.found = found
        self.parts = parts
        """Factors in an element of a buffer."""
        self.epilogue = epilogue
        loads = {"a": found.left.loads[0], "b": found.right.loads[0], "out": epilogue.store}
        loads.update({f"added{i}": load for i, load in enumerate(epilogue.added)})
        self.loads: Mapping[str, Load | Store] = loads
        steps = {name: _steps(load.index) for name, load in loads.items()}
        self.is_affine = None not in steps.values()
        self.steps = {name: x for name, x in steps.items() if x is not None}

    def product(self, dtype: DType) -> Product | None:
        """The product, with what can be neither rows nor columns as batches or loops around them."""
        if not self.is_affine:
            return None
        terms = self.merged(self.sorted(self.found.reduced, "a"), ("a", "b"))
        rows, above = self.side(self.found.left)
        columns, beside = self.side(self.found.right)
        if terms is None or rows is None or columns is None:
            return None
        if self.parts > 1 and any(not _equal(step, 1) for step in terms[1].values()):
            return None
        left = {*above, *beside, *self.found.shared}
        outer = self.sorted([x for x in self.found.outer if x in left], "out")
        for number in range(len(outer) + 1):
            batch = self.merged(outer[number:], tuple(self.steps))
            if batch is not None:
                return self.made(dtype, rows, columns, terms, batch, outer[:number])
        return None

    def made(
        self, dtype: DType, rows: _Merged, columns: _Merged, terms: _Merged, batch: _Merged, loops: Sequence[Axis]
    ) -> Product | None:
        """The record, if what is added lies as the library wants it."""
        places = {
            "a": (rows, terms),
            "b": (terms, columns),
            **{name: (rows, columns) for name in self.steps if name not in ("a", "b")},
        }
        operands = {}
        for name, steps in self.steps.items():
            parts = self.parts if name in ("a", "b") else 1
            down, across = (side[1].get(name, 0) * (1 if side is terms else parts) for side in places[name])
            operands[name] = Operand(
                self.loads[name].buffer,
                self.loads[name].index.constant,
                down,
                across,
                batch[1].get(name, 0) * parts,
                tuple(steps.get(x, 0) for x in loops),
            )
        extents = tuple(x.extent for x in loops)
        if any(map(is_size, extents)) or prod(extents) > MOST_CALLS:
            return None
        whole = Product(
            dtype,
            self.found.acc.dtype,
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
                with_it = _with_added(whole, operands[name])
                if with_it is None:
                    return None
                whole = with_it
        return whole if whole.descriptor() is not None and _writes_once(whole) else None

    def sorted(self, axes: Sequence[Axis], name: str) -> list[Axis]:
        """Axes by their strides in a matrix, largest first; as they are where these are sizes."""
        steps = self.steps[name]
        if any(is_size(steps.get(x, 0)) for x in axes):
            return list(axes)
        return sorted(axes, key=lambda x: -abs(steps.get(x, 0)))

    def side(self, factor: Factor) -> tuple[_Merged | None, list[Axis]]:
        """The axes of the rows or columns as one, and those above that do not go along with them."""
        own = "a" if factor is self.found.left else "b"
        axes = self.sorted(self.found.only(factor), "out")
        names = (own, *(name for name in self.steps if name not in ("a", "b")))
        for number in range(len(axes) + 1):
            merged = self.merged(axes[number:], names)
            if merged is not None:
                return merged, axes[:number]
        return None, []

    def merged(self, axes: Sequence[Axis], names: Sequence[str]) -> _Merged | None:
        """Axes, outermost first, as one of such an extent and such strides in the matrices; None where their strides
        do not fit together."""
        axes = [x for x in axes if not (type(x.extent) is int and x.extent == 1)]
        extent: int = 1
        steps: _Side = dict.fromkeys(names, 0)
        for axis in reversed(axes):
            of = {name: self.steps[name].get(axis, 0) for name in names}
            if axis is axes[-1]:
                steps = of
            elif any(not _equal(of[name], steps[name] * extent) for name in names):
                return None
            extent = extent * axis.extent
        return extent, steps


def _equal(a: int, b: int) -> bool:
    difference = a - b
    return not is_size(difference) and difference == 0


def _steps(index: Index) -> _Steps | None:
    """The strides of an affine index; None for other ones."""
    if is_size(index.constant) or not all(isinstance(atom, Axis) for atom, _ in index.terms):
        return None
    return {atom: step for atom, step in index.terms if isinstance(atom, Axis)}


def _with_added(whole: Product, added: Operand) -> Product | None:
    """The product with a matrix or a bias added; None where there is one already or it lies otherwise."""
    if added.buffer == whole.out.buffer:
        return replace(whole, c=added) if added == whole.out and whole.c is None else None
    along = added.rows if whole.is_by_columns else added.columns
    across = added.columns if whole.is_by_columns else added.rows
    if whole.bias is None and _equal(along, 1) and _equal(across, 0) and _equal(added.batch, 0):
        return replace(whole, bias=added)
    lines = whole.n if whole.is_by_columns else whole.m
    return replace(whole, c=added) if whole.c is None and (not _equal(across, 0) or _equal(lines, 1)) else None


def _writes_once(whole: Product) -> bool:
    """Whether the matrices of a result are apart."""
    return not (whole.out.batch == 0 and hint(whole.batch) > 1)
