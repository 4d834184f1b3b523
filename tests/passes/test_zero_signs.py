"""Positions where signs of zeros matter; test_canonicalize_values.py checks the values."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.op import REGISTRY, OpDef, Sample, Trait, ZeroSign
from graphc.passes.zero_signs import LONGEST_SEARCH, is_unseen


def parse(body: str, result: str = "f32[4]") -> Graph:
    """A graph in which %z is x + 0."""
    head = f"graph @f(%x: f32[4], %y: f32[4]) -> ({result}) {{"
    return parse_graph(f"{head}\n  %z = add(%x, f32(0.0)) : f32[4]\n  {body}\n}}")


@pytest.mark.parametrize(
    ("body", "unseen"),
    [
        ("return %z", False),
        ("%a = exp(%z) : f32[4]\n  return %a", True),
        ("%a = exp(%z) : f32[4]\n  return %a, %z", False),
        ("%a = neg(%z) : f32[4]\n  return %a", False),
        ("%a = mul(%z, %y) : f32[4]\n  %b = abs(%a) : f32[4]\n  return %b", True),
        ("%a = mul(%z, %y) : f32[4]\n  %b = abs(%a) : f32[4]\n  %c = sin(%z) : f32[4]\n  return %b, %c", False),
        ("%a = div(%z, %y) : f32[4]\n  %b = exp(%a) : f32[4]\n  return %b", True),
        ("%a = div(%y, %z) : f32[4]\n  %b = exp(%a) : f32[4]\n  return %b", False),
        ("%a = sum(%z) {axes=[0], keepdims=false} : f32[]\n  return %a", True),
        ("return %y", True),
        ("%c = le(%z, f32(0.0)) : bool[4]\n  %w = where(%c, f32(0.0), %z) : f32[4]\n  return %w", True),
        ("%c = gt(%z, f32(0.0)) : bool[4]\n  %w = where(%c, %z, %y) : f32[4]\n  return %w", True),
        ("%c = lt(%z, f32(0.0)) : bool[4]\n  %w = where(%c, f32(0.0), %z) : f32[4]\n  return %w", False),
        ("%c = le(%z, f32(1.0)) : bool[4]\n  %w = where(%c, f32(0.0), %z) : f32[4]\n  return %w", False),
        ("%c = le(%y, f32(0.0)) : bool[4]\n  %w = where(%c, f32(0.0), %z) : f32[4]\n  return %w", False),
    ],
)
def test_who_sees_the_sign_of_a_zero(body: str, unseen: bool):
    result = ", ".join("f32[]" if "sum(" in body else "f32[4]" for _ in body.rpartition("return")[2].split(","))
    graph = parse(body, result)
    assert is_unseen(graph, next(n for n in graph.nodes() if n.op.name == "add").result) is unseen


OTHERS = np.array([0, -0.0, 1, -1, 2.5, np.inf, -np.inf, np.nan], np.float32)


def first_sample(op: OpDef) -> Sample:
    assert op.samples is not None
    return op.samples()[0]


ELEMENTWISE = [
    op
    for op in REGISTRY.values()
    if op.has(Trait.ELEMENTWISE) and any(a.dtype.kind == "f" for a in first_sample(op).operands)
]


def with_zeros(op: OpDef, number: int, zero: float) -> np.ndarray:
    """An op of one zero in operand ``number`` and all combinations of other elements in the others."""
    sample = first_sample(op)
    shape = np.array(np.meshgrid(*[OTHERS] * len(op.operands))).reshape(len(op.operands), -1)
    columns = [c > 0 if a.dtype == bool else c for a, c in zip(sample.operands, shape, strict=True)]
    columns[number] = np.full_like(columns[number], zero)
    return op.evaluate(columns, op.normalize(sample.attrs))[0]


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_no_op_shows_more_of_the_sign_of_a_zero_than_it_says(op: OpDef):
    for number, operand in enumerate(first_sample(op).operands):
        if operand.dtype.kind != "f":
            continue
        plus, minus = (with_zeros(op, number, zero) for zero in (0.0, -0.0))
        shown = op.sign_of_zero(number)
        if shown is not ZeroSign.SEEN:
            np.testing.assert_array_equal(plus, minus)  # in which 0 equals -0
        if shown is ZeroSign.HIDDEN and plus.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(plus), np.signbit(minus))


@pytest.mark.parametrize(("length", "unseen"), [(LONGEST_SEARCH - 3, True), (LONGEST_SEARCH * 100, False)])
def test_long_chains_are_not_followed_to_their_ends(length: int, unseen: bool):
    steps = "".join(f"  %a{i} = neg({f'%a{i - 1}' if i else '%z'}) : f32[4]\n" for i in range(length))
    graph = parse(f"{steps}  %e = exp(%a{length - 1}) : f32[4]\n  return %e")
    assert is_unseen(graph, next(n for n in graph.nodes() if n.op.name == "add").result) is unseen
