"""Calls at singular points: grids for elementwise functions, drawn arrays for other functions and for distributions."""

from __future__ import annotations

import inspect
import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import torch

import graphc as gc
from graphc.nn import functional
from tests.distributions.cases import CASES
from tools.nets.forms import Form, forms_of, public
from tools.nets.operands import LARGE, Operand, array_of, choose
from tools.trees import leaves, mapped

_EPSILON = 2.0**-23
REAL = (*LARGE, 2.0, -2.0, 3.0, -3.0, 6.0, 20.0, 1 - _EPSILON, 1 + _EPSILON, -1 + _EPSILON, 1e-9, -1e-9)
"""Zeros, ends of domains, poles, kinks, saturation, denormal numbers, infinities, NaN."""
UNIT = (0.0, 1e-40, 1e-9, 0.5, 1 - _EPSILON, 1.0)
"""Points of operands between 0 and 1."""
_POSITIVE = (1e-40, 1e-9, 0.5, 1.0, 2.0, 1e5)
_FINITE = 1e6
"""Limit of points next to each other: infinities in sums of products are the subject of tools/nets/zero_products.py."""
_WHOLE_GRID, _SAMPLED_GRID = 1000, 900
"""Most points of a complete grid; larger grids are sampled."""
_DRAWS = 24
"""Calls of each form that is not elementwise."""
_ONE, _MANY = 12, 18
"""Draws before these have one singular element in each operand, or only such ones; later ones have ties."""
METHODS = ("log_prob", "cdf", "entropy", "kl_divergence")


class Call(NamedTuple):
    """A function of a library's tensors with arrays for them."""

    run: Callable[[Any, Sequence[Any]], Any]
    """Takes the library and its tensors; calls of one form share it."""
    arrays: list[np.ndarray]
    elementwise: bool = False
    """Whether each element of the operands is a point by itself."""
    differentiable: int = 0
    """How many of the first operands have gradients."""


def subjects() -> list[str]:
    """Return the public functions, each under the first of its names, and the methods of distributions."""
    names: dict[str, str] = {}
    for owner in ("nn.functional", "graphc", "special", "Tensor"):
        for name in public():
            head, _, short = name.rpartition(".")
            if head == owner and not short.endswith("_"):
                names.setdefault(short, name)
    return [*names.values(), *(f"distributions.{case}.{method}" for case in CASES for method in METHODS)]


def attribute_of(library: Any, name: str) -> Any:
    """Return the function of a public name in graphc or PyTorch, or None."""
    owner, _, short = name.rpartition(".")
    return getattr(library if owner == "graphc" else attrgetter(owner)(library), short, None)


def calls_of(subject: str, dtype: str) -> Iterator[tuple[str, Call]]:
    """Yield the calls of a subject with their labels."""
    if subject.startswith("distributions."):
        yield from _distributions(subject, dtype)
        return
    for number, form in enumerate(_forms(subject)):
        operands = [leaf for leaf in leaves(form) if isinstance(leaf, Operand)]
        chance = np.random.default_rng([zlib.crc32(subject.encode()), number])
        if not any(o.kind in ("float", "positive", "any") for o in operands):
            continue
        run = _run(subject, form)
        if _is_elementwise(form, operands):
            yield f"#{number}", Call(run, _grid(operands, dtype, chance), True, len(operands))
        else:
            for draw in range(_DRAWS):
                yield f"#{number}:{draw}", Call(run, _drawn(operands, dtype, draw, chance), False, len(operands))


# ---- functions


def _forms(subject: str) -> list[Form]:
    """Return the forms of a function; those of a loss also without its reduction."""
    owner, _, short = subject.rpartition(".")
    forms = list(forms_of(subject))
    if owner == "nn.functional" and "reduction" in inspect.signature(getattr(functional, short)).parameters:
        for form in forms_of(subject):
            keywords = form[-1] if isinstance(form[-1], dict) else {}
            if "reduction" not in keywords:
                forms.append((*(form[:-1] if keywords else form), {**keywords, "reduction": "none"}))
    return forms


def _is_elementwise(form: Form, operands: list[Operand]) -> bool:
    """Check whether operands of any size may be combined freely: those without a shape, and those of a loss that is not
    reduced."""
    keywords = form[-1] if isinstance(form[-1], dict) else {}
    shapes = {o.shape for o in operands}
    others = any(isinstance(leaf, np.ndarray) for leaf in leaves(form))
    return shapes == {None} or (keywords.get("reduction") == "none" and len(shapes) == 1 and not others)


def _run(subject: str, form: Form) -> Callable[[Any, Sequence[Any]], Any]:
    def run(library: Any, tensors: Sequence[Any]) -> Any:
        operands = iter(tensors)

        def filled(leaf: Any) -> Any:
            if isinstance(leaf, Operand):
                return next(operands)
            if isinstance(leaf, (gc.Tensor, np.ndarray)):
                return library.from_numpy(np.array(leaf))
            return getattr(library, leaf.long_name) if isinstance(leaf, gc.dtype) else leaf

        arguments = list(mapped(form, filled))
        keywords = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        return attribute_of(library, subject)(*arguments, **keywords)

    return run


def _points(operand: Operand) -> Sequence[Any]:
    if operand.kind == "bool":
        return (True, False)
    if operand.kind in ("integer", "index"):
        return (0, 1, 2, 3)
    return UNIT if operand.kind == "positive" else REAL


def _grid(operands: list[Operand], dtype: str, chance: np.random.Generator) -> list[np.ndarray]:
    """Return all combinations of points, or a sample of them with all equal ones."""
    points = [_points(o) for o in operands]
    if np.prod([len(p) for p in points]) <= _WHOLE_GRID:
        rows = list(itertools.product(*points))
    else:
        equal = list(zip(*points, strict=True)) if len(set(map(len, points))) == 1 else []
        rows = equal + [tuple(p[int(chance.integers(len(p)))] for p in points) for _ in range(_SAMPLED_GRID)]
    columns = zip(*rows, strict=True)
    with np.errstate(all="ignore"):
        return [np.array(c, _type_of(o, dtype)) for c, o in zip(columns, operands, strict=True)]


def _type_of(operand: Operand, dtype: str) -> str:
    if operand.kind in ("float", "positive", "any"):
        return dtype
    return "bool" if operand.kind == "bool" else "int64"


def _drawn(operands: list[Operand], dtype: str, draw: int, chance: np.random.Generator) -> list[np.ndarray]:
    """Return arrays that hold singular points at random positions, or equal elements."""
    choice = choose(chance)._replace(float_type=dtype, any_type=dtype, shape=(6,), special=False)
    arrays = []
    for operand in operands:
        array = array_of(operand, choice, chance)
        if operand.kind in ("float", "positive", "any") and array.size:
            points = np.asarray(_points(operand))
            with np.errstate(all="ignore"):
                if draw < _ONE:
                    array.reshape(-1)[chance.integers(array.size)] = points[(2 * draw + draw // 10) % points.size]
                elif draw < _MANY:
                    array[...] = chance.choice(points[np.abs(points) < _FINITE], array.shape)
                else:
                    array[...] = array.reshape(-1)[0] if draw % 2 else chance.choice(points[3:6])
        arrays.append(array)
    return arrays


# ---- distributions


def _distributions(subject: str, dtype: str) -> Iterator[tuple[str, Call]]:
    """Yield the calls of a method: parameters with two singular elements, and values with four."""
    _, case, method = subject.split(".")
    build = CASES[case]
    has_value = method in ("log_prob", "cdf")

    def run(library: Any, tensors: Sequence[Any]) -> Any:
        operands = iter(tensors)
        first = build(library.distributions, lambda _: next(operands))
        if method == "kl_divergence":
            return library.distributions.kl_divergence(first, build(library.distributions, lambda _: next(operands)))
        return getattr(first, method)(*operands) if has_value else getattr(first, method)()

    for draw in range(_DRAWS):
        chance = np.random.default_rng([zlib.crc32(case.encode()), draw])
        arrays: list[np.ndarray] = []

        def keep(ordinary: np.ndarray, chance: Any = chance, arrays: list[np.ndarray] = arrays) -> torch.Tensor:
            arrays.append(_parameter(np.array(ordinary, dtype), chance))
            return torch.from_numpy(np.array(ordinary))

        distribution = build(torch.distributions, keep)
        if method == "kl_divergence":
            build(torch.distributions, keep)
        if has_value:
            torch.manual_seed(draw)
            sample = np.array(distribution.sample((2,)).numpy(), dtype)
            finite = [x for x in REAL if abs(x) < _FINITE]
            arrays.append(sample if distribution.event_shape else _replaced(sample, finite, 4, chance))
        yield f":{draw}", Call(run, arrays, False, len(arrays))


def _parameter(array: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Replace elements of a parameter by singular ones of its domain: real, between 0 and 1, or positive."""
    if array.size == 1 or (array.ndim > 1 and array.shape[-1] == array.shape[-2]):
        return array
    real = [x for x in REAL if abs(x) <= 88]
    return _replaced(array, real if array.min() < 0 else UNIT if array.max() < 1 else _POSITIVE, 2, chance)


def _replaced(array: np.ndarray, points: Sequence[float], count: int, chance: np.random.Generator) -> np.ndarray:
    with np.errstate(all="ignore"):
        array.reshape(-1)[chance.integers(array.size, size=count)] = chance.choice(points, count)
    return array
