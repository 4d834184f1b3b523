"""Build random programs with named dimensions: each statement is run on PyTorch at all sizes at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from tools.nets.builder import KNOWN, LARGEST, TAME, Builder, Unfit
from tools.nets.families import sized as sized
from tools.nets.families.table import FAMILIES, OTHERS, TRIES, Step
from tools.nets.program import Input, Program
from tools.nets.sized_program import Extent, Range, SizedProgram

NAMES = ("batch", "time", "side")
SIZES = 8
"""Sizes for each program: the hints, the least, the greatest, ones, and others."""
ATTEMPTS = 4
"""Attempts at a program whose results depend on a dimension."""
EDGES = (1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 21, 31, 32, 33, 47, 63, 64, 65)
"""Sizes around vectors and tiles."""
FAMILIES_OF_SIZES: dict[str, tuple[Step, ...]] = {
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

    def __init__(self, seed: str, family: str, training: bool = False):
        super().__init__(seed, family, training)
        self.dims: dict[str, Range] = {}
        self.most = self.pick((1, 2, 2, 3))
        self.sizes: list[dict[str, int]] = [{} for _ in range(SIZES)]
        self.others: list[dict[str, Any]] = [{} for _ in range(SIZES - 1)]
        """The variables at the other sizes."""
        self.given: list[tuple[np.ndarray, ...]] = []
        self.patterns: list[tuple[Extent, ...]] = []
        self.chosen: dict[int, str] = {}
        """The dimension that replaces a number in shapes, by number; empty for none."""

    def worlds(self) -> list[dict[str, Any]]:
        """Return the variables at each of the sizes."""
        return [self.values, *self.others]

    def shape_of(self, name: str) -> tuple[int, ...]:
        shape = []
        for axis, sizes in enumerate(zip(*[w[name].shape for w in self.worlds()], strict=True)):
            shape.append(sizes[0] if len(set(sizes)) == 1 else Named(sizes[0], f"{name}.shape[{axis}]"))
        return tuple(shape)

    def numbers(self, size: Any) -> list[int]:
        """Return a number's value at each of the sizes."""
        if type(size) is not Named:
            return [int(size)] * SIZES
        return [int(eval(size.text, {}, world)) for world in self.worlds()]

    # ---- arguments

    def input(
        self, shape: Sequence[int], dtype: str = "", kind: str = "", layout: str = "", gradient: bool = True
    ) -> str:
        pattern = tuple([self.extent_of(size) for size in shape])
        dtype = dtype or self.float
        kind = kind or (self.pick(("", "", "eighths")) if dtype in ("f32", "f64") else "")
        layout = layout or self.pick(("dense",) * 12 + ("transposed", "strided", "offset"))
        arrays = []
        for world, sizes in zip(self.worlds(), self.sizes, strict=True):
            extents = [e.at(sizes) for e in pattern]
            if min(extents, default=0) < 0 or np.prod(extents, dtype=np.int64) > 30 * LARGEST:
                raise Unfit
            arrays.append(self.array(extents, dtype, self.kind_at(kind, world)))
            if arrays[-1].shape != tuple(extents):
                raise Unfit("not enough different numbers")
        name = f"a{len(self.inputs)}"
        floating = dtype in ("f32", "f64")
        argument = Input(name, arrays[0], layout, floating and gradient and self.chance(0.9))
        self.inputs.append(argument)
        self.given.append(tuple(arrays))
        self.patterns.append(pattern)
        for world, array in zip(self.worlds(), arrays, strict=True):
            world[name] = torch.from_numpy(argument.memory(array)).requires_grad_(argument.gradient)
        return name

    def kind_at(self, kind: str, world: dict[str, Any]) -> str:
        """Return a kind of contents, with values for numbers computed from sizes."""
        word, _, number = kind.partition(" ")
        if not number:
            return kind
        value = int(eval(number, {}, world))
        if value < 1:
            raise Unfit
        return f"{word} {value}"

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

    def let(self, expression: str) -> str:
        results = [self.result(expression, world) for world in self.worlds()]
        if len({len(r) for r in results}) > 1 or not results[0] or len(results[0]) > 8:
            raise Unfit
        for tensors in zip(*results, strict=True):
            if len({(p.dim(), p.dtype) for p in tensors}) > 1 or tensors[0].dtype not in KNOWN:
                raise Unfit
        names = [f"v{len(self.values) + i}" for i in range(len(results[0]))]
        several = "," if len(names) == 1 and self.is_listed(expression) else ""
        self.body.append(f"{', '.join(names)}{several} = {expression}")
        for world, tensors in zip(self.worlds(), results, strict=True):
            world.update(zip(names, tensors, strict=True))
        return names[0]

    def is_listed(self, expression: str) -> bool:
        """Return whether an expression gives several values, perhaps one."""
        return isinstance(self.run_in(expression, eval, self.values), (tuple, list))

    def result(self, expression: str, world: dict[str, Any]) -> tuple[Any, ...]:
        """Return the tensors of an expression at one of the sizes."""
        value = self.run_in(expression, eval, world)
        tensors = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        for tensor in tensors:
            if not isinstance(tensor, torch.Tensor) or tensor.numel() > 60 * LARGEST:
                raise Unfit
            if tensor.is_floating_point() and tensor.numel() and not bool((tensor.detach().abs() < 10 * TAME).all()):
                raise Unfit
        return tensors

    def do(self, statement: str) -> None:
        for world in self.worlds():
            self.run_in(statement, exec, world)
        self.body.append(statement)

    def layer(self, expression: str) -> str:
        if ".shape[" in expression:
            raise Unfit
        return super().layer(expression)

    def run_in(self, text: str, how: Callable[..., Any], world: dict[str, Any]) -> Any:
        """Run a text at one of the sizes."""
        before, self.values = self.values, world
        try:
            return self._run(text, how)
        except ZeroDivisionError as error:
            raise Unfit(str(error)) from error
        finally:
            self.values = before

    def sized(self) -> SizedProgram:
        """Return the program."""
        program: Program = super().program()
        complete = SizedProgram(
            program,
            tuple(self.dims.items()),
            tuple(self.patterns),
            tuple(self.sizes),
            tuple(zip(*self.given, strict=True)) if self.given else tuple(() for _ in self.sizes),
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
    done = 0
    for _ in range(TRIES):
        steps = (*OTHERS, sized.step) if done and builder.chance(0.15) else FAMILIES_OF_SIZES[family]
        dims = set(builder.dims)
        try:
            builder.pick(steps)(builder)
        except (Unfit, NameError, ZeroDivisionError):
            # Numbers without a dimension in this program, such as channels of layers.
            if builder.chance(0.5):
                builder.chosen |= {e: "" for e, name in builder.chosen.items() if name not in dims}
            continue
        done += 1
        if done == length:
            break
    return builder.sized()
