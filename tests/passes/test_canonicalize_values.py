"""Every rule of the canonicalizer on all values of narrow types and on the edges of wide ones, bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.base.dtypes import ALL, DType, bool_, float32, float64, int8, int32, int64, uint8
from graphc.errors import GraphcError
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.graph.interpret import copy, evaluate
from graphc.ir.graph.rewrite import apply_rules
from graphc.ir.op import REGISTRY, Trait
from graphc.ir.types import TensorType
from graphc.ops.contraction.convolution import conv
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.define import OpFunction
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement import shape
from graphc.ops.movement.size import size
from graphc.ops.pointwise import elementwise as e
from graphc.ops.pointwise import math as m
from graphc.ops.pointwise.quantization import quantize_linear
from graphc.ops.reduction import reduce
from graphc.passes.canonicalize import RULES, RuleDispatcher

Build = Callable[..., Value]
FLOATS = [0.0, 1.0, 2.0, 8.0, 0.5, 0.1, 1 / 3, 2.5, 127.5, 200.0, 300.0, 2.0**31, 2.0**63, 3e30, 1e-30, np.inf]
CONSTANTS = [0, 1, 2, 3, -1, -2, 8, 127, 128, 255]


def values_of(dtype: DType) -> np.ndarray:
    """All elements of a narrow type; of a wide one those at which rules of numbers change."""
    if dtype is bool_:
        return np.array([False, True])
    if dtype in (int8, uint8):
        info = np.iinfo(dtype.numpy)
        return np.arange(info.min, info.max + 1).astype(dtype.numpy)
    if dtype.kind == "i":
        info = np.iinfo(dtype.numpy)
        powers = [2**k + d for k in (7, 8, 15, 24, 31, 53, 62) for d in (-1, 0, 1) if 2**k + d <= info.max]
        edges = [info.min, info.min + 1, info.max - 1, info.max, 0, *powers, *(-p for p in powers)]
        return np.unique(np.array([*edges, 1, 2, 3, 7, -1, -2, -3, -7], dtype.numpy))
    info = np.finfo(dtype.numpy)
    ends = [info.max, info.tiny, info.smallest_subnormal, info.smallest_subnormal * 3, info.eps, 1 + info.eps]
    half = np.array([*FLOATS, *ends], dtype.numpy)
    return np.concatenate([half, -half, np.array([np.nan], dtype.numpy)])


def constants_of(dtype: DType) -> list[bool | int | float]:
    """Numbers that rules look for, and others, as the type has them."""
    if dtype is bool_:
        return [False, True]
    if dtype.kind == "f":
        info = np.finfo(dtype.numpy)
        ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal)]
        results = [*FLOATS, *ends]
        return [*results, *(-v for v in results), np.nan]
    info = np.iinfo(dtype.numpy)
    return [v for v in {*CONSTANTS, int(info.min), int(info.max)} if info.min <= v <= info.max]


def each_constant(rule: Callable[[Value, Value], Value]) -> Callable[[Value, Value, Any], Value]:
    """A template with one operand and a number of its type."""
    return lambda x, y, c: rule(x, shape.filled(c, x.dtype, ()))


def rows(x: Value) -> Value:
    """The elements as a matrix of two rows."""
    return shape.reshape(x, shape=(2, x.shape[0] // 2))


def planes(x: Value) -> Value:
    """The elements as an image of one channel and one row."""
    return shape.reshape(x, shape=(1, 1, 1, x.shape[0]))


ONE_STEP = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}


def swapped(x: Value) -> Value:
    return shape.transpose(x, permutation=(1, 0))


def narrow(x: Value, start: int, stop: int, step: int) -> Value:
    return shape.slice(x, starts=(start,), stops=(stop,), steps=(step,))


def operands_of(function: Any, x: Value, y: Value, changed: Value) -> list[Value]:
    """As many operands as the op has; ``changed`` is the first one, ``where`` has a condition."""
    count = len(function.op.operands)
    if function.op is e.where.op:
        return [e.ne(x, y), changed, y]
    return [changed, y, x][:count]


def of_all(functions: list[Any], build: Callable[..., list[Value]]) -> list[Build]:
    """One template per op, with attributes where it has any."""
    return [lambda x, y, c, f=f: f(*build(f, x, y, c), **attributes(f, c)) for f in functions]


def attributes(function: Any, c: Any) -> dict[str, Any]:
    if function.op is e.cast.op:
        return {"dtype": ALL[int(bool(c))]}
    return {"n": 0} if function.op.name == "polygamma" else {}


def casts(x: Value, y: Value, c: Any) -> Iterator[Value]:
    for middle, last in itertools.product(ALL, ALL):
        yield e.cast(e.cast(x, dtype=middle), dtype=last)


def all_with(traits: Trait) -> list[OpFunction]:
    return [OpFunction(op, (), False) for op in REGISTRY.values() if op.has(traits)]


COMPARISONS = [e.eq, e.ne, e.lt, e.le, e.gt, e.ge]
FOLDS = [reduce.sum, reduce.prod, reduce.max, reduce.min]


def codes(x: Value, low: float) -> Value:
    """u8 codes with a scale of one half."""
    return quantize_linear(x, scale=0.5, low=low, high=255.0 + low, zero=-low, dtype=uint8)


def real_codes(x: Value) -> Value:
    """Integers as f32."""
    return quantize_linear(x, scale=0.5, low=-100.0, high=100.0, zero=0.0, dtype=float32)


TEMPLATES: dict[str, list[Build]] = {
    "implicit_broadcast": of_all(
        all_with(Trait.ELEMENTWISE),
        lambda f, x, y, c: operands_of(f, x, y, shape.broadcast_to(narrow(x, 0, 1, 1), shape=x.shape)),
    ),
    "constant_last": of_all(
        all_with(Trait.ELEMENTWISE | Trait.COMMUTATIVE), lambda f, x, y, c: [shape.filled(c, x.dtype, ()), x]
    ),
    "add": [
        each_constant(e.add),
        lambda x, y, c: e.add(x, e.neg(y)),
        lambda x, y, c: e.add(e.neg(x), y),
        lambda x, y, c: e.add(e.neg(x), e.neg(y)),
    ],
    "unseen_sign": [
        lambda x, y, c: m.exp(e.mul(real_codes(x), 0.5)),
        lambda x, y, c: e.div(1.0, real_codes(x)),
        lambda x, y, c: codes(real_codes(x), -3.0),
    ],
    "limited_codes": [
        lambda x, y, c: codes(e.where(e.le(x, 0.0), 0.0, x), 0.0),
        lambda x, y, c: codes(e.where(e.le(x, 0.0), 0.0, x), -100.0),
        each_constant(lambda x, c: codes(m.clamp(x, c, 127.5, strict=False), -5.0)),
        each_constant(lambda x, c: codes(m.clamp(x, -2.5, c, strict=False), -5.0)),
    ],
    "unseen_zero": [
        *(lambda x, y, c, f=f: f(e.add(x, 0.0)) for f in (m.exp, m.log, m.cos, e.abs)),
        lambda x, y, c: e.eq(e.add(x, 0.0), y),
        lambda x, y, c: m.exp(e.sub(e.add(x, 0.0), reduce.max(e.add(x, 0.0), axes=(0,), keepdims=True))),
        lambda x, y, c: e.abs(e.mul(e.add(x, 0.0), y)),
        lambda x, y, c: e.abs(e.div(e.add(x, 0.0), y)),
        lambda x, y, c: m.exp(e.div(y, e.add(x, 0.0))),
        lambda x, y, c: e.abs(m.clamp(e.add(x, 0.0), c, y, strict=True)),
        lambda x, y, c: conv(planes(e.add(x, 0.0)), planes(narrow(y, 0, 2, 1)), **ONE_STEP),
        lambda x, y, c: e.abs(e.where(e.lt(x, y), e.add(x, 0.0), y)),
        lambda x, y, c: e.where(e.le(z := e.add(x, 0.0), 0.0), 0.0, z),
        lambda x, y, c: e.where(e.ne(z := e.add(x, 0.0), 0.0), z, y),
        lambda x, y, c: reduce.sum(rows(e.maximum(e.add(x, 0.0), y)), axes=(0,)),
        lambda x, y, c: (z := e.add(x, 0.0)) and [e.abs(z), e.neg(z)],  # type: ignore[list-item]
    ],
    "sub": [each_constant(e.sub), lambda x, y, c: e.sub(x, e.neg(y))],
    "mul": [each_constant(e.mul), lambda x, y, c: e.mul(e.neg(x), e.neg(y))],
    "div": [each_constant(e.div), lambda x, y, c: e.div(e.neg(x), e.neg(y))],
    "neg": [lambda x, y, c: e.neg(e.neg(x))],
    "abs": [lambda x, y, c: e.abs(e.neg(x)), lambda x, y, c: e.abs(e.abs(x))],
    "pow": [each_constant(m.pow)],
    "same_extreme": [lambda x, y, c: e.maximum(x, x), lambda x, y, c: e.minimum(x, x)],
    "cast": [lambda x, y, c: e.cast(x, dtype=x.dtype), casts],  # type: ignore[list-item]
    "where": [
        lambda x, y, c: e.where(shape.filled(bool(c), bool_, ()), x, y),
        lambda x, y, c: e.where(e.lt(x, y), x, x),
        lambda x, y, c: e.where(e.logical_not(e.lt(x, y)), x, y),
    ],
    "not": [
        lambda x, y, c: e.logical_not(e.logical_not(x)),
        *(lambda x, y, c, f=f: e.logical_not(f(x, y)) for f in COMPARISONS),
    ],
    "logic": [each_constant(e.logical_and), each_constant(e.logical_or)],
    "same_shape": [
        lambda x, y, c: shape.reshape(x, shape=x.shape),
        lambda x, y, c: shape.reshape(rows(x), shape=x.shape),
        lambda x, y, c: shape.broadcast_to(shape.broadcast_to(x, shape=(2, *x.shape)), shape=(3, 2, *x.shape)),
    ],
    "leading_ones": [
        lambda x, y, c: shape.broadcast_to(shape.reshape(x, shape=(1, 1, *x.shape)), shape=(2, 3, *x.shape))
    ],
    "transpose": [
        lambda x, y, c: shape.transpose(rows(x), permutation=(0, 1)),
        lambda x, y, c: swapped(swapped(rows(x))),
    ],
    "slice": [
        lambda x, y, c: narrow(x, 0, x.shape[0], 1),
        lambda x, y, c: narrow(narrow(x, 1, x.shape[0], 3), 0, 1, 2),
        lambda x, y, c: narrow(narrow(x, 0, x.shape[0], 2), 0, x.shape[0] // 2, 3),
    ],
    "pad": [lambda x, y, c: shape.pad(x, low=(0,), high=(0,), interior=(0,), value=0)],
    "concat": [
        lambda x, y, c: shape.concat(x, axis=0),
        lambda x, y, c: shape.concat(y, shape.concat(x, y, axis=0), axis=0),
    ],
    "flip": [
        lambda x, y, c: shape.flip(shape.flip(rows(x), axes=(0, 1)), axes=(0,)),
        lambda x, y, c: shape.flip(shape.reshape(x, shape=(1, *x.shape)), axes=(0,)),
    ],
    "view_of_one_number": [
        lambda x, y, c: shape.reshape(shape.filled(c, x.dtype, (2, 3)), shape=(6,)),
        lambda x, y, c: swapped(shape.filled(c, x.dtype, (2, 3))),
        lambda x, y, c: narrow(shape.filled(c, x.dtype, (6,)), 1, 5, 2),
        lambda x, y, c: shape.flip(shape.filled(c, x.dtype, (2, 3)), axes=(1,)),
    ],
    "reduce_nothing": [
        *(lambda x, y, c, f=f: f(x, axes=()) for f in FOLDS),
        *(lambda x, y, c, f=f: f(shape.reshape(x, shape=(1, *x.shape)), axes=(0,)) for f in FOLDS),
    ],
    "sum_of_one_number": [
        *(lambda x, y, c, n=n: reduce.sum(shape.filled(c, x.dtype, (n, 2)), axes=(0,)) for n in (1, 2, 3, 1000))
    ],
    "known_size": [lambda x, y, c, n=n: size(value=n) for n in (0, 3, 2**40)],
    "matmul_of_transposed": [
        lambda x, y, c: matmul(swapped(rows(x)), rows(y)),
        lambda x, y, c: matmul(rows(x), swapped(rows(y))),
    ],
    "matmul_of_rows": [
        lambda x, y, c: matmul(
            shape.reshape(narrow(x, 0, 2, 1), shape=(2, 1, 1)), shape.reshape(y, shape=(1, y.shape[0]))
        )
    ],
}
SUMS = ("sum_of_one_number", "matmul_of_transposed", "matmul_of_rows")
"""Rules after which terms are added in another order, or at once."""
ANY_ZERO = ("maximum", "minimum")
"""Of a zero and a minus zero either may be the larger: numpy and PyTorch leave it open."""
ONE_OPERAND = ("pow", "logic", "sum_of_one_number", "view_of_one_number")


def graphs(template: Build, dtype: DType, constants: list[Any], arguments: tuple[np.ndarray, ...]) -> Iterator[Graph]:
    """A graph per constant (one where the template looks at none) and result; none where a type does not fit."""
    seen = set()
    for c in constants:
        graph = Graph("before")
        x, y = (graph.add_input(TensorType(dtype, a.shape), name) for a, name in zip(arguments, "xy", strict=True))
        try:
            with use(GraphDispatcher(graph)):
                result = template(x, y, c)
                results = [result] if isinstance(result, Value) else list(result)
        except GraphcError:
            continue
        graph.set_outputs(results)
        text = str([(n.op.name, {k: str(v) for k, v in n.attrs.items()}) for n in graph.nodes()])
        if text not in seen:
            seen.add(text)
            yield graph


def assert_same(got: np.ndarray, expected: np.ndarray, rule: str, graph: Graph) -> None:
    """Equal bits, but for NaN's, and for what SUMS and ANY_ZERO say."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    what = f"{rule}: {[n.op.name for n in graph.nodes()]} of {expected.dtype}"
    if rule in SUMS:
        np.testing.assert_allclose(got, expected, rtol=1e-5, err_msg=what)
        return
    np.testing.assert_array_equal(got, expected, err_msg=what)
    if expected.dtype.kind == "f" and not any(n.op.name in ANY_ZERO for n in graph.nodes()):
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(expected)[known], err_msg=f"{what}: sign")


def arguments_for(name: str, dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of values; for rules of one operand, of shapes and of sums every value."""
    values = values_of(dtype)
    if name in SUMS:
        values = values[np.isfinite(values) & (np.abs(values) < 1e15)] if dtype.kind == "f" else values
    even = values[: len(values) // 2 * 2]
    if name in SUMS or name in ONE_OPERAND:
        return even, even[::-1].copy()
    x, y = np.meshgrid(values, values, indexing="ij")
    pairs = x.size // 2 * 2
    return x.ravel()[:pairs].copy(), y.ravel()[:pairs].copy()


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_rule_keeps_every_value(name: str):
    rules = [rule for rule in RULES if rule.title == name]
    fitted = 0
    for dtype in (bool_, int8, uint8, int32, int64, float32, float64):
        arguments = arguments_for(name, dtype)
        for template in TEMPLATES[name]:
            for graph in graphs(template, dtype, constants_of(dtype), arguments):
                for chosen in (rules, RULES):
                    changed = copy(graph)
                    with use(RuleDispatcher(changed)):
                        count = apply_rules(changed, chosen)
                    fitted += count if chosen is rules else 0
                    if count:
                        check(graph, changed, arguments, name)
    assert fitted, f"no template of {name} is one that the rule fits"


def check(before: Graph, after: Graph, arguments: tuple[np.ndarray, ...], name: str) -> None:
    """Both graphs give the same."""
    with np.errstate(all="ignore"):
        expected, got = evaluate(before, list(arguments)), evaluate(after, list(arguments))
    for a, b in zip(got, expected, strict=True):
        assert_same(a, b, name, before)


def test_every_rule_has_a_template():
    assert set(TEMPLATES) == {rule.title for rule in RULES}


def test_an_absolute_value_of_unsigned_numbers_is_not_that_of_the_negative_ones():
    f = graphc.compile(lambda x: graphc.abs(-x))
    assert f(graphc.tensor([9], dtype=graphc.uint8)).tolist() == [247]
