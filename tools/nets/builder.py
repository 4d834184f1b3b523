"""Build random programs statement by statement, each run on PyTorch at once, so that all of them are valid.

A program may have open sizes: then each statement runs at several sizes, a world of variables for each.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tools.nets.program import NAMESPACE, Extent, Input, Program, Range, SizedProgram

EXTENTS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 31, 33)
LARGEST = 2000
"""Most elements of a tensor."""
TAME = 100.0
"""Largest element of a float that further statements are applied to."""
DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "i64": np.int64,
    "i32": np.int32,
    "i8": np.int8,
    "u8": np.uint8,
    "bool": np.bool_,
}
KNOWN = {torch.float32, torch.float64, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool}
INTEGERS = (torch.int64, torch.int32, torch.int8, torch.uint8)
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1e-40, -1e-40, 1e30, -1e30, 3.5, -2.5, 1e-20)


class Unfit(Exception):
    """A step does not apply; it is left out."""


class Builder:
    """A program that grows; ``let`` and ``do`` add a statement if PyTorch can run it."""

    SIZES = 1
    """Number of worlds."""
    MOST = 2 * LARGEST
    """Most elements of a result."""

    def __init__(self, seed: str, family: str, training: bool = False):
        self.random = random.Random(seed)
        self.arrays = np.random.default_rng(self.random.getrandbits(32))
        self.family = family
        self.training = training
        self.inputs: list[Input] = []
        self.layers: list[tuple[str, str]] = []
        self.body: list[str] = []
        self.worlds: list[dict[str, Any]] = [{} for _ in range(self.SIZES)]
        """All variables with their values on PyTorch; a statement that writes in place changes them."""
        self.arrays_of: list[tuple[np.ndarray, ...]] = []
        """The arrays of each input, one for each world."""
        self.patterns: list[Any] = []
        """Descriptions of the open sizes of each input."""
        self.float = self.pick(("f32", "f32", "f32", "f64"))
        """The element type of floats where nothing else is asked for."""
        self._scope: dict[str, Any] = {"t": torch, "nn": nn, "F": functional, "self": nn.Module(), **NAMESPACE}

    @property
    def values(self) -> dict[str, Any]:
        """Return the variables of the first world."""
        return self.worlds[0]

    # ---- choices

    def pick(self, options: Sequence[Any]) -> Any:
        """Return one of the options."""
        return options[self.random.randrange(len(options))]

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.random.random() < probability

    def whole(self, low: int, high: int) -> int:
        """Return a whole number, both ends included."""
        return self.random.randint(low, high)

    def extent(self, largest: int = LARGEST) -> int:
        """Return the size of a dimension."""
        return self.pick([e for e in EXTENTS if e <= max(1, largest)])

    def shape(self, rank: int | None = None, largest: int = LARGEST) -> tuple[int, ...]:
        """Return a shape without empty dimensions."""
        dims: int = self.pick((0, 1, 1, 2, 2, 2, 3, 3, 4)) if rank is None else rank
        sizes: list[int] = []
        for _ in range(dims):
            sizes.append(self.extent(largest // max(1, int(np.prod(sizes, dtype=np.int64)))))
        return tuple(sizes)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of a variable."""
        return tuple(self.values[name].shape)

    def dtype_of(self, name: str) -> str:
        """Return the short name of a variable's element type."""
        return next(n for n, d in DTYPES.items() if str(self.values[name].dtype) == f"torch.{np.dtype(d).name}")

    def axis(self, name: str) -> int:
        """Return a dimension of a variable, as a positive or negative number."""
        rank = self.values[name].dim()
        if not rank:
            raise Unfit
        return self.random.randrange(-rank, rank)

    def axes(self, name: str, least: int = 0) -> tuple[int, ...]:
        """Return some different dimensions of a variable."""
        rank = self.values[name].dim()
        if rank < least:
            raise Unfit
        chosen = self.random.sample(range(rank), self.whole(least, rank))
        return tuple(a - rank if self.chance(0.3) else a for a in chosen)

    # ---- values

    def array(self, shape: Sequence[int], dtype: str, kind: str = "") -> np.ndarray:
        """Return random contents; ``kind`` is ``eighths``, ``positive``, ``unit``, ``spread``, ``special``, ``wide``,
        ``below n``, or ``distinct n`` (below n, none twice, one dimension)."""
        draw, shape = self.arrays, tuple(shape)
        if kind.startswith("distinct"):
            values: Any = draw.permutation(int(kind.split()[1]))[: shape[0]]
        elif kind.startswith("below"):
            values = draw.integers(0, int(kind.split()[1]), shape)
        elif dtype == "bool":
            values = draw.integers(0, 2, shape)
        elif DTYPES[dtype](0).dtype.kind != "f":
            values = self._integers(shape, dtype, kind)
        elif kind == "eighths":
            values = draw.integers(-16, 17, shape) / 8
        elif kind == "positive":
            values = draw.uniform(0.2, 3.0, shape)
        elif kind == "unit":
            values = draw.uniform(0.02, 0.98, shape)
        elif kind == "spread":
            values = (draw.permutation(int(np.prod(shape, dtype=np.int64))).reshape(shape) - 3.3) * 0.37
        elif kind == "special":
            values = np.asarray(SPECIAL)[draw.integers(0, len(SPECIAL), shape)]
        else:
            values = draw.standard_normal(shape)
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(DTYPES[dtype])

    def _integers(self, shape: tuple[int, ...], dtype: str, kind: str) -> np.ndarray:
        limits = np.iinfo(DTYPES[dtype])
        if kind == "wide":
            return self.arrays.integers(limits.min, limits.max, shape, DTYPES[dtype], endpoint=True)
        return self.arrays.integers(max(limits.min, -9), 10, shape)

    def input(
        self, shape: Sequence[int], dtype: str = "", kind: str = "", layout: str = "", gradient: bool = True
    ) -> str:
        """Return a new argument."""
        pattern, shapes = self.extents(shape)
        dtype = dtype or self.float
        kind = kind or (self.pick(("", "", "eighths")) if dtype in ("f32", "f64") else "")
        arrays = [self.array(e, dtype, self.kind_at(kind, w)) for w, e in zip(self.worlds, shapes, strict=True)]
        if any(array.shape != tuple(extents) for array, extents in zip(arrays, shapes, strict=True)):
            raise Unfit("not enough different numbers")
        layout = layout or self.pick(("dense",) * 9 + ("transposed", "strided", "offset"))
        name = f"a{len(self.inputs)}"
        floating = dtype in ("f32", "f64")
        argument = Input(name, arrays[0], layout, floating and gradient and self.chance(0.9))
        self.inputs.append(argument)
        self.arrays_of.append(tuple(arrays))
        self.patterns.append(pattern)
        for world, array in zip(self.worlds, arrays, strict=True):
            world[name] = torch.from_numpy(argument.memory(array)).requires_grad_(argument.gradient)
        return name

    def extents(self, shape: Sequence[int]) -> tuple[Any, list[tuple[int, ...]]]:
        """Return the description of a shape's open sizes, and the shape in each world."""
        return (), [tuple(shape)]

    def kind_at(self, kind: str, world: dict[str, Any]) -> str:
        """Return a kind of contents in a world, in which a number computed from sizes has a value."""
        return kind

    def known(self, fits: Callable[[Any], bool], otherwise: Callable[[], str], fresh: float = 0.25) -> str:
        """Return a variable that fits, mostly a recent one, or a new argument."""
        fitting = [n for n, v in self.values.items() if fits(v)]
        if fitting and not self.chance(fresh):
            return self.pick(fitting[-5:])
        return otherwise()

    def real(self, rank: int | None = None, least: int = 0, filled: bool = True, fresh: float = 0.25) -> str:
        """Return a tame float variable of a rank, or of a least rank; ``filled`` demands elements."""

        def fits(v: Any) -> bool:
            right = v.dim() >= least if rank is None else v.dim() == rank
            return v.is_floating_point() and right and (v.numel() or not filled) and self.is_tame(v)

        shape_rank = rank if rank is not None else max(least, self.pick((0, 1, 1, 2, 2, 3, 3, 4)))
        return self.known(fits, lambda: self.input(self.shape(shape_rank)), fresh)

    def is_tame(self, value: Any) -> bool:
        """Return whether all elements are of moderate size."""
        if self.family == "specials" or not value.is_floating_point() or not value.numel():
            return True
        return bool(value.detach().abs().max() < TAME)

    def some(self, dtypes: Sequence[Any] = (), least: int = 0, filled: bool = True) -> str:
        """Return any variable, or one of the element types."""

        def fits(v: Any) -> bool:
            return (not dtypes or v.dtype in dtypes) and v.dim() >= least and (v.numel() or not filled)

        names = [n for n, d in DTYPES.items() if not dtypes or torch.from_numpy(np.zeros(1, d)).dtype in dtypes]
        return self.known(fits, lambda: self.input(self.shape(max(least, self.pick((0, 1, 2, 3)))), self.pick(names)))

    def like(self, name: str, dtype: str = "", kind: str = "") -> str:
        """Return a variable or new argument that broadcasts with another one."""
        shape = tuple(self.values[name].shape)
        if self.chance(0.4):
            first = self.whole(0, len(shape))
            shape = shape[first:]
        shape = tuple(1 if self.chance(0.2) else e for e in shape)
        if not dtype and not kind and self.chance(0.4):
            expected_type = self.values[name].dtype
            return self.known(lambda v: v.dtype == expected_type and tuple(v.shape) == shape, lambda: self.input(shape))
        return self.input(shape, dtype, kind)

    # ---- statements

    def let(self, expression: str) -> str:
        """Assign an expression to a new variable, or its elements to several; the first one's name."""
        results = [self._run(expression, eval, world) for world in self.worlds]
        listed = isinstance(results[0], (tuple, list))
        rows = [tuple(value) if listed else (value,) for value in results]
        if len({len(row) for row in rows}) > 1 or not 0 < len(rows[0]) <= 8:
            raise Unfit
        for tensors in zip(*rows, strict=True):
            for tensor in tensors:
                self._expect(tensor)
            if len({(t.dim(), t.dtype) for t in tensors}) > 1:
                raise Unfit
        names = [f"v{len(self.values) + i}" for i in range(len(rows[0]))]
        self.body.append(f"{', '.join(names)}{',' if listed and len(names) == 1 else ''} = {expression}")
        for world, row in zip(self.worlds, rows, strict=True):
            world.update(zip(names, row, strict=True))
        return names[0]

    def do(self, statement: str) -> None:
        """Add a statement that writes into variables."""
        for world in self.worlds:
            self._run(statement, exec, world)
        self.body.append(statement)

    def layer(self, expression: str) -> str:
        """Return a new layer of the module; its attribute."""
        name = f"m{len(self.layers)}"
        layer = self._run(expression, eval, self.values)
        layer.train(self.training)
        if self.float == "f64":
            expression += ".double()"
            layer.double()
        setattr(self._scope["self"], name, layer)
        self.layers.append((name, expression))
        return f"self.{name}"

    def tried(self, done: bool) -> None:
        """Note whether a step has come about."""

    def _run(self, text: str, how: Callable[..., Any], world: dict[str, Any]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return how(text, self._scope | world)
            except (RuntimeError, ValueError, TypeError, LookupError, AssertionError, ArithmeticError) as error:
                raise Unfit(str(error)) from error

    def _expect(self, value: Any) -> None:
        if not isinstance(value, torch.Tensor) or value.dtype not in KNOWN or value.numel() > self.MOST:
            raise Unfit(f"a result of {getattr(value, 'dtype', type(value).__name__)}, {getattr(value, 'shape', '')}")

    def program(self, outputs: Sequence[str] = ()) -> Program:
        """Return the program; its results are ``outputs``, or the last variable and some others."""
        assigned = [n for n in self.values if n.startswith("v")]
        if not assigned:
            raise Unfit("no statement")
        if not outputs:
            chosen = assigned[-1:] + [n for n in assigned[:-1] if self.chance(0.35)][-4:]
            written = {line.partition(".")[0].partition("[")[0].partition(" ")[0] for line in self.body if "_(" in line}
            outputs = [*chosen, *(n for n in assigned[:-1] if n in written and n not in chosen)]
        optimizer = self.pick(OPTIMIZERS) if list(self._scope["self"].parameters()) else ""
        inputs, layers, body = tuple(self.inputs), tuple(self.layers), tuple(self.body)
        return Program(self.family, inputs, layers, body, tuple(outputs), self.training, optimizer)


OPTIMIZERS = (
    "SGD(params, lr=0.05)",
    "SGD(params, lr=0.05, momentum=0.9)",
    "SGD(params, lr=0.02, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "Adam(params, lr=0.01, eps=0.01)",
    "AdamW(params, lr=0.01, eps=0.01, weight_decay=0.1)",
    "RMSprop(params, lr=0.01, eps=0.01)",
)


# ---- open sizes

NAMES = ("batch", "time", "side")
SIZES = 8
"""Sizes for each program: the hints, the least, the greatest, ones, and others."""
EDGES = (1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 21, 31, 32, 33, 47, 63, 64, 65)
"""Sizes around vectors and tiles."""


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
