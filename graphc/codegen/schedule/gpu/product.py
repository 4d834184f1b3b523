"""Matching of kernels as products of matrices, for a GPU library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from graphc.base.dtypes import DType, bfloat16
from graphc.base.records import dataclass
from graphc.base.sizes.size import hint, is_size
from graphc.codegen.schedule.contraction.product import Product, ProductOperand
from graphc.codegen.schedule.gpu.sum_of_products import Factor, SumOfProducts, find_sum_of_products
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Const, Kernel, Let, Load, Read, Ref, Stmt, Store, identity

_COMMUTATIVE = ("add", "mul", "max")


@dataclass(frozen=True)
class Epilogue:
    """``activation(alpha * sum + added)``."""

    activation: str
    """``relu``, ``gelu`` or empty."""
    alpha: float
    added: tuple[Load, ...]
    store: Store


class _Terms:
    """Hash-consed expressions: equal expressions get the same number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple, int] = {}
        self.keys: list[tuple] = []

    def make(self, op: str, *operands: object) -> int:
        """Return the number of an expression of others."""
        key = (op, *(sorted(operands, key=str) if op in _COMMUTATIVE else operands))
        if key not in self.numbers:
            self.numbers[key] = len(self.keys)
            self.keys.append(key)
        return self.numbers[key]

    def constant(self, value: float) -> int:
        """Return the number of a literal, rounded to f32."""
        return self.make("constant", float(np.float32(value)))

    def gelu(self, x: int) -> int:
        """Return the number of graphc's expression of gelu (the tanh approximation)."""
        cube = self.make("mul", self.make("mul", x, x), x)
        inner = self.make("add", x, self.make("mul", cube, self.constant(0.044715)))
        tanh = self.make("tanh", self.make("mul", inner, self.constant(0.7978845608028654)))
        return self.make("mul", self.make("mul", x, self.constant(0.5)), self.make("add", tanh, self.constant(1.0)))

    def relu(self, x: int) -> int:
        """Return the number of graphc's expression of relu."""
        zero = self.constant(0.0)
        return self.make("select", self.make("le", x, zero), zero, x)


def match_epilogue(after: Sequence[Stmt]) -> Epilogue | None:
    """Match the statements after a sum as an epilogue of the library; None for others."""
    stores = [s for s in after if isinstance(s, Store)]
    if len(stores) != 1 or stores[0].guard or stores[0].combine or isinstance(stores[0].value, Const):
        return None
    terms, loads = _Terms(), {}
    numbers: dict[Ref, int] = {}
    for stmt in after:
        if isinstance(stmt, Read):
            numbers[stmt.name] = terms.make("sum")
        elif isinstance(stmt, Load):
            numbers[stmt.name] = terms.make("load", stmt.name)
            loads[numbers[stmt.name]] = stmt
        elif isinstance(stmt, Let):
            operands = [terms.constant(x.value) if isinstance(x, Const) else numbers.get(x, -1) for x in stmt.args]
            numbers[stmt.name] = terms.make(stmt.op, *operands)
    stored = numbers.get(stores[0].value, -1)
    if stored < 0:
        return None
    for activation, inner in _activations(terms, stored):
        scaled = _sum_of_loads(terms, inner)
        if scaled is not None:
            alpha, added = scaled
            if all(x in loads and not loads[x].guard for x in added):
                return Epilogue(activation, alpha, tuple(loads[x] for x in added), stores[0])
    return None


def _activations(terms: _Terms, expression: int) -> list[tuple[str, int]]:
    """Return all (activation, operand) by which an expression can be an activation of another one."""
    matches = [("", expression)]
    for x in range(len(terms.keys)):
        if x != expression and terms.relu(x) == expression:
            matches.append(("relu", x))
        if terms.keys[expression][0] == "mul" and x != expression and terms.gelu(x) == expression:
            matches.append(("gelu", x))
    return matches


def _sum_of_loads(terms: _Terms, expression: int) -> tuple[float, list[int]] | None:
    """Match ``factor * sum + loads``, with at most two loads; return the factor and the loads, or None."""
    stack, added, alpha = [expression], [], None
    while stack:
        op, *operands = terms.keys[stack.pop()]
        if op == "add":
            stack.extend(operands)
        elif op == "load":
            added.append(terms.make(op, *operands))
        else:
            factor = _factor(terms, op, operands)
            if factor is None or alpha is not None:
                return None
            alpha = factor
    return None if alpha is None or len(added) > 2 else (alpha, added)


def _factor(terms: _Terms, op: str, operands: Sequence[int]) -> float | None:
    """Return the literal by which the sum is multiplied; None for other expressions."""
    if op == "sum":
        return 1.0
    if op != "mul":
        return None
    keys = [terms.keys[p] for p in operands]
    numbers = [key[1] for key in keys if key[0] == "constant"]
    return numbers[0] if len(numbers) == 1 and any(key[0] == "sum" for key in keys) else None


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
