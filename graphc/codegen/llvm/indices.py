"""Indices of kernels in LLVM, as scalars and as vectors over lanes, and masks of used lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.dtypes import DType, int8, int32, int64
from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size import is_size
from graphc.codegen.llvm.function import Coordinates, FunctionWriter, LaneValue
from graphc.codegen.llvm.scalar import register_type, splat_literal
from graphc.ir.kernel.access import Access, access
from graphc.ir.kernel.index import Atom, Axis, Div, Dynamic, Index, Mod, atoms, bounds, substitute
from graphc.ir.kernel.statements import Const


@dataclass(frozen=True)
class VectorAxis:
    """Axis across lanes, of which ``axis.extent`` of ``lanes`` lanes are used; the extent may be a size."""

    axis: Axis
    lanes: int

    @property
    def partial(self) -> bool:
        """Whether some lanes are unused."""
        return self.axis.extent != self.lanes

    @property
    def fixed(self) -> bool:
        """Whether the used lanes are known at compile time."""
        return not is_size(self.axis.extent)


def ends(index: Index) -> tuple[int, int]:
    """Return the minimum and maximum of an index."""
    low, high = bounds(index)
    return size_bounds(low)[0], size_bounds(high)[1]


class IndexWriter:
    """Turns index expressions into registers."""

    def __init__(self, function: FunctionWriter, lookup: Callable[[str], LaneValue]):
        self.function = function
        self.lookup = lookup
        self.vector: VectorAxis | None = None
        self._masks: dict[tuple[str, VectorAxis], str] = {}
        """Registers with masks of used lanes, by block."""

    def fix(self, index: Index, at: Coordinates) -> Index:
        """Return the index with unrolled axes replaced by their coordinates."""
        if not at:
            return index
        return substitute(index, lambda a: at.get(a) if isinstance(a, Axis) else None)

    def varies(self, index: Index) -> bool:
        """Return whether the index differs between lanes."""
        if self.vector is None:
            return False
        for atom in atoms(index):
            if atom == self.vector.axis:
                return True
            if isinstance(atom, Dynamic) and self.lookup(atom.name).lanes:
                return True
        return False

    def access(self, index: Index) -> Access:
        """Return how an index changes along the lanes."""
        assert self.vector is not None
        return access(
            index, self.vector.axis, [a.name for a in atoms(index) if type(a) is Dynamic and self.lookup(a.name).lanes]
        )

    def _depth(self, atom: Atom, at: Coordinates) -> int:
        if type(atom) is Axis:
            return self.function.depth_of(atom)
        if isinstance(atom, Dynamic):
            return self.lookup(atom.name).depth
        return max((self._depth(a, at) for a, _ in atom.operand.terms), default=0)

    def scalar_index(self, index: Index, at: Coordinates) -> str:
        """Return a lane-invariant index as an i64 register or literal."""
        return self._sum(index, at)[0]

    def _sum(self, index: Index, at: Coordinates) -> tuple[str, int]:
        """Return (register, loop depth) of an index without unrolled axes."""
        total, depth = "", 0
        if is_size(index.constant):
            total, index = self.function.sizes.value(index.constant), Index(index.terms)
        for d, terms in self._by_depth(index, at):
            for atom, coefficient in terms:
                register = self._atom(atom, at)
                if coefficient != 1:
                    factor = self.function.sizes.value(coefficient)
                    register = self.function.memo(d, ("mul", register, factor), f"mul nsw i64 {register}, {factor}")
                total = (
                    self.function.memo(d, ("add", total, register), f"add nsw i64 {total}, {register}")
                    if total
                    else register
                )
            depth = d
        if index.constant or not total:
            if not total:
                return str(index.constant), 0
            total = self.function.memo(depth, ("add", total, index.constant), f"add nsw i64 {total}, {index.constant}")
        return total, depth

    def _by_depth(self, index: Index, at: Coordinates) -> list[tuple[int, list[tuple[Atom, int]]]]:
        if len(index.terms) == 1:
            return [(self._depth(index.terms[0][0], at), [*index.terms])]
        groups: dict[int, list[tuple[Atom, int]]] = {}
        for term in index.terms:
            groups.setdefault(self._depth(term[0], at), []).append(term)
        return sorted(groups.items())

    def _atom(self, atom: Atom, at: Coordinates) -> str:
        if isinstance(atom, Axis):
            return self.function.scopes[self.function.depth_of(atom)].register
        depth = self._depth(atom, at)
        if isinstance(atom, Dynamic):
            value = self.lookup(atom.name)
            register = value.register(at)
            if value.dtype.bits == 64:
                return register
            return self.function.memo(depth, ("wide", register), f"sext {register_type(value.dtype)} {register} to i64")
        operand, _ = self._sum(atom.operand, at)
        low, high = ends(atom.operand)
        remainder = isinstance(atom, Mod)
        if low >= 0:
            return self._quotient(operand, self.function.sizes.positive(atom.divisor), atom, high, depth)
        if is_size(atom.divisor):
            return self._signed_floor(operand, self.function.sizes.positive(atom.divisor), remainder, depth)
        lift = -(low // atom.divisor) * atom.divisor
        lifted = self.function.memo(depth, ("add", operand, lift), f"add nsw i64 {operand}, {lift}")
        result = self._quotient(lifted, str(atom.divisor), atom, high + lift, depth)
        if remainder:
            return result
        less = -(lift // atom.divisor)
        return self.function.memo(depth, ("add", result, less), f"add nsw i64 {result}, {less}")

    def _quotient(self, operand: str, divisor: str, atom: Div | Mod, most: int, depth: int) -> str:
        """Return the quotient or remainder of an index from 0 to ``most``."""
        memo, verb = self.function.memo, "urem" if isinstance(atom, Mod) else "udiv"
        kind = self.function.sizes.type_of(0, max(most, size_bounds(atom.divisor)[1]))
        if kind != "i64":
            operand, divisor = (
                memo(depth, (kind, x), f"trunc i64 {x} to {kind}") if x.startswith("%") else x
                for x in (operand, divisor)
            )
        result = memo(depth, (verb, operand, divisor), f"{verb} {kind} {operand}, {divisor}")
        return result if kind == "i64" else memo(depth, ("wide", result), f"zext {kind} {result} to i64")

    def _signed_floor(self, operand: str, divisor: str, remainder: bool, depth: int) -> str:
        """Return the floor quotient or remainder of a possibly negative index by a size."""
        memo = self.function.memo
        rest = memo(depth, ("srem", operand, divisor), f"srem i64 {operand}, {divisor}")
        less = memo(depth, ("ashr", rest, 63), f"ashr i64 {rest}, 63")
        if remainder:
            lift = memo(depth, ("and", less, divisor), f"and i64 {less}, {divisor}")
            return memo(depth, ("add", rest, lift), f"add nsw i64 {rest}, {lift}")
        quotient = memo(depth, ("sdiv", operand, divisor), f"sdiv i64 {operand}, {divisor}")
        return memo(depth, ("add", quotient, less), f"add nsw i64 {quotient}, {less}")

    def vector_index(self, index: Index, at: Coordinates, dtype: DType = int64) -> str:
        """Return an index as a vector of integers, one per lane."""
        vector = self.vector
        assert vector is not None
        lanes, f = vector.lanes, self.function
        kind = register_type(dtype, lanes)
        uniform = Index(tuple((a, c) for a, c in index.terms if not self.varies(Index(((a, 1),)))), index.constant)
        base, _ = self._sum(uniform, at)
        if dtype.bits == 32 and base.startswith("%"):
            base = f.line(f"trunc i64 {base} to i32")
        total = f.splat(base, dtype, lanes) if base.startswith("%") else splat_literal(Const(int(base), dtype), lanes)
        for atom, coefficient in index.terms:
            if not self.varies(Index(((atom, 1),))):
                continue
            if isinstance(atom, Axis):
                term = self._steps(coefficient, dtype)
            else:
                term = self._vector_atom(atom, at, dtype)
                if coefficient != 1:
                    term = f.line(f"mul {kind} {term}, {self._wide(coefficient, dtype)}")
            total = f.line(f"add {kind} {total}, {term}")
        return total

    def _wide(self, size: Any, dtype: DType, positive: bool = False) -> str:
        """Return a number or size in every lane; a ``positive`` one may be a divisor."""
        assert self.vector is not None
        if not is_size(size):
            return splat_literal(Const(size, dtype), self.vector.lanes)
        sizes, kind = self.function.sizes, register_type(dtype)
        register = sizes.positive(size) if positive else sizes.value(size)
        if dtype.bits < 64:
            register = sizes.line(f"trunc i64 {register} to {kind}")
        return self.function.splat(register, dtype, self.vector.lanes)

    def _steps(self, stride: Any, dtype: DType) -> str:
        """Return the distance of each lane from the first one."""
        assert self.vector is not None
        lanes, element = self.vector.lanes, register_type(dtype)
        if not is_size(stride):
            return f"<{', '.join(f'{element} {i * stride}' for i in range(lanes))}>"
        numbers = ", ".join(f"{element} {i}" for i in range(lanes))
        return self.function.line(f"mul {register_type(dtype, lanes)} {self._wide(stride, dtype)}, <{numbers}>")

    def _vector_atom(self, atom: Div | Mod | Dynamic | Axis, at: Coordinates, dtype: DType) -> str:
        assert self.vector is not None
        lanes, f = self.vector.lanes, self.function
        kind = register_type(dtype, lanes)
        if isinstance(atom, Dynamic):
            value = self.lookup(atom.name)
            register = f.widen(value, at, lanes)
            if value.dtype.bits == dtype.bits:
                return register
            verb = "sext" if value.dtype.bits < dtype.bits else "trunc"
            return f.line(f"{verb} {register_type(value.dtype, lanes)} {register} to {kind}")
        assert isinstance(atom, (Div, Mod))
        low, high = ends(atom.operand)
        multiples = max(0, -(low // max(1, size_bounds(atom.divisor)[0])))
        lift = multiples * atom.divisor
        most = high + size_bounds(lift)[1] + self.vector.lanes * 64
        narrow = int32 if most < 2**31 and size_bounds(atom.divisor)[1] < 2**31 else int64
        inner = register_type(narrow, lanes)
        operand = self.vector_index(atom.operand + lift, at, narrow)
        verb = "urem" if isinstance(atom, Mod) else "udiv"
        result = f.line(f"{verb} {inner} {operand}, {self._wide(atom.divisor, narrow, positive=True)}")
        if multiples and isinstance(atom, Div):
            result = f.line(f"sub {inner} {result}, {self._wide(multiples, narrow)}")
        if narrow.bits < dtype.bits:
            result = f.line(f"sext {inner} {result} to {kind}")
        return result if narrow.bits <= dtype.bits else f.line(f"trunc {inner} {result} to {kind}")

    def mask(self) -> str:
        """Return the mask of used lanes of the vector axis."""
        vector = self.vector
        assert vector is not None
        if vector.fixed:
            bits = ("true" if i < vector.axis.extent else "false" for i in range(vector.lanes))
            return "<" + ", ".join(f"i1 {b}" for b in bits) + ">"
        # NOTE: processors without mask registers would widen a mask from another block there, and narrow it here.
        key = self.function.block, vector
        if key not in self._masks:
            number = int32 if vector.lanes < 64 else int8
            kind, count = register_type(number, vector.lanes), self._wide(vector.axis.extent, number)
            numbers = ", ".join(f"{register_type(number)} {i}" for i in range(vector.lanes))
            self._masks[key] = self.function.line(f"icmp slt {kind} <{numbers}>, {count}")
        return self._masks[key]
