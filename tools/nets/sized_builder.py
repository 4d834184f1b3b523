"""Build random programs with named dimensions: each statement is run on PyTorch at all sizes at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tools.nets.builder import LARGEST, TAME, Builder, Unfit
from tools.nets.families import sized as sized
from tools.nets.families.grammar import Steps
from tools.nets.families.table import FAMILIES, OTHERS, grow
from tools.nets.program import Program
from tools.nets.sized_program import Extent, Range, SizedProgram

NAMES = ("batch", "time", "side")
SIZES = 8
"""Sizes for each program: the hints, the least, the greatest, ones, and others."""
ATTEMPTS = 4
"""Attempts at a program whose results depend on a dimension."""
EDGES = (1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 21, 31, 32, 33, 47, 63, 64, 65)
"""Sizes around vectors and tiles."""
FAMILIES_OF_SIZES: dict[str, Steps] = {
    **{
        name: (*steps, *steps, sized.step)
        for name, steps in FAMILIES.items()
        if name not in ("specials", "wide integers", "long rows", "scalars", "losses", "empty dimensions")
    },
    "losses": FAMILIES["losses"],
    "sizes": (sized.step,),
    "sizes of images": (sized.image, sized.image, sized.step),
    "sequences": (sized.sequence, sized.sequence, sized.step),
}


class Named(int):
    """A number that depends on the sizes; its text is the expression that computes it."""

    text: str

    def __new__(cls, value: int, text: str) -> Named:
        named = super().__new__(cls, value)
        named.text = text
        return named

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return self.text

    def __neg__(self) -> Any:
        return Named(-int(self), f"-{self.text}")


def _operator(name: str, sign: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    plain = getattr(int, f"__{name}__")

    def forward(a: Any, b: Any) -> Any:
        result = plain(int(a), b)
        return result if result is NotImplemented else Named(result, f"({a}{sign}{b})")

    def reflected(a: Any, b: Any) -> Any:
        result = plain(b, int(a)) if isinstance(b, int) else NotImplemented
        return result if result is NotImplemented else Named(result, f"({b}{sign}{a})")

    return forward, reflected


for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("mod", "%")):
    _forward, _reflected = _operator(_name, _sign)
    setattr(Named, f"__{_name}__", _forward)
    setattr(Named, f"__r{_name}__", _reflected)


class SizedBuilder(Builder):
    """A growing program at several sizes; numbers in shapes that differ between the sizes are written as
    expressions."""

    SIZES = SIZES
    MOST = 60 * LARGEST

    def __init__(self, seed: str, family: str, training: bool = False):
        super().__init__(seed, family, training)
        self.dims: dict[str, Range] = {}
        self.most = self.pick((1, 2, 2, 3))
        self.sizes: list[dict[str, int]] = [{} for _ in range(SIZES)]
        self.chosen: dict[int, str] = {}
        """The dimension that replaces a number in shapes, by number; empty for none."""
        self.settled: set[str] = set()
        """Dimensions of steps that came about."""

    def shape_of(self, name: str) -> tuple[int, ...]:
        shape = []
        for axis, sizes in enumerate(zip(*[w[name].shape for w in self.worlds], strict=True)):
            shape.append(sizes[0] if len(set(sizes)) == 1 else Named(sizes[0], f"{name}.shape[{axis}]"))
        return tuple(shape)

    def numbers(self, size: Any) -> list[int]:
        """Return a number's value at each of the sizes."""
        if type(size) is not Named:
            return [int(size)] * SIZES
        return [int(eval(size.text, {}, world)) for world in self.worlds]

    # ---- arguments

    def extents(self, shape: Sequence[int]) -> tuple[Any, list[tuple[int, ...]]]:
        pattern = tuple([self.extent_of(size) for size in shape])
        shapes = [tuple([e.at(sizes) for e in pattern]) for sizes in self.sizes]
        if any(min(s, default=0) < 0 or np.prod(s, dtype=np.int64) > self.MOST // 2 for s in shapes):
            raise Unfit
        return pattern, shapes

    def kind_at(self, kind: str, world: dict[str, Any]) -> str:
        word, _, number = kind.partition(" ")
        value = int(eval(number, {}, world)) if number else 1
        if value < 1:
            raise Unfit
        return f"{word} {value}" if number else kind

    def extent_of(self, size: int) -> Extent:
        """Return the size of an argument: in terms of a dimension if it was computed from sizes, and for a plain number
        perhaps a dimension whose hint is that number."""
        if type(size) is Named:
            return self.matched(self.numbers(size))
        number = int(size)
        if number not in self.chosen or self.chance(0.03):
            new = len(self.dims) < self.most and self.chance(0.7 if number > 1 else 0.12)
            self.chosen[number] = self.new_dim(number) if new else ""
        dim = self.chosen[number]
        return Extent(0, dim, 1) if dim else Extent(number)

    def matched(self, numbers: list[int]) -> Extent:
        """Return the expression with these values."""
        if len(set(numbers)) == 1:
            return Extent(numbers[0])
        for dim in self.dims:
            dim_sizes = [sizes[dim] for sizes in self.sizes]
            low, high = int(np.argmin(dim_sizes)), int(np.argmax(dim_sizes))
            across = dim_sizes[high] - dim_sizes[low]
            if across and (numbers[high] - numbers[low]) % across == 0:
                factor = (numbers[high] - numbers[low]) // across
                extent = Extent(numbers[low] - factor * dim_sizes[low], dim, factor)
                if factor > 0 and numbers == [extent.at(sizes) for sizes in self.sizes]:
                    return extent
        raise Unfit

    def new_dim(self, hint: int) -> str:
        """Return an additional dimension, and its value at each of the sizes."""
        name = NAMES[len(self.dims)]
        low = 0 if hint == 0 or self.chance(0.12) else self.pick((1, 1, 1, max(1, hint - 2)))
        high = self.pick((hint + 1, 2 * hint + 3, 40, 70))
        high = max(high, hint + 1)
        self.dims[name] = Range(low, high, hint)
        inside = [e for e in (*EDGES, low, high, high - 1, low + 1) if low <= e <= high]
        first = [hint, low, high, max(low, 1), *(self.pick(inside) for _ in range(SIZES - 4))]
        for sizes, number in zip(self.sizes, first, strict=True):
            sizes[name] = number
        return name

    # ---- statements

    def layer(self, expression: str) -> str:
        if ".shape[" in expression:
            raise Unfit
        return super().layer(expression)

    def tried(self, done: bool) -> None:
        if not done and self.chance(0.5):
            self.chosen |= {e: "" for e, name in self.chosen.items() if name not in self.settled}
        self.settled = set(self.dims)

    def _expect(self, value: Any) -> None:
        super()._expect(value)
        if value.is_floating_point() and value.numel() and not bool((value.detach().abs() < 10 * TAME).all()):
            raise Unfit

    def sized(self) -> SizedProgram:
        """Return the program."""
        program: Program = super().program()
        complete = SizedProgram(
            program,
            tuple(self.dims.items()),
            tuple(self.patterns),
            tuple(self.sizes),
            tuple(zip(*self.arrays_of, strict=True)) if self.arrays_of else tuple(() for _ in self.sizes),
        ).without(*needed(program.body, program.outputs))
        if not complete.dims:
            raise Unfit("no dimension")
        return complete


def needed(body: tuple[str, ...], outputs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the results, and the statements that assign or write to anything that they need."""
    words = set(outputs)
    statements: list[str] = []
    for line in reversed(body):
        target, _, right = line.partition(" = ")
        writes = not re.fullmatch(r"(v\d+(, )?)+,?", target)
        if writes or set(re.findall(r"\bv\d+\b", target)) & words:
            statements.append(line)
            words |= set(re.findall(r"\b[va]\d+\b", line if writes else right))
    return tuple(reversed(statements)), outputs


def draw(seed: int, number: int) -> SizedProgram:
    """Return the program of a seed and a number; raises Unfit when none came about."""
    names = tuple(FAMILIES_OF_SIZES)
    for attempt in range(ATTEMPTS):
        try:
            return _drawn(f"sized/{seed}/{number}/{attempt}", names[number % len(names)], number // len(names) % 2 == 0)
        except Unfit:
            continue
    raise Unfit


def _drawn(seed: str, family: str, training: bool) -> SizedProgram:
    builder = SizedBuilder(seed, family, training)
    length = builder.pick((1, 1, 2, 2, 3, 3, 4, 5))
    grow(builder, FAMILIES_OF_SIZES[family], (*OTHERS, sized.step), 0.15, length)
    return builder.sized()
