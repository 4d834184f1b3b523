"""Where signs of zeros are seen; that values stay the same is tested in test_canonicalize_values.py."""

from __future__ import annotations

import pytest

from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
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


@pytest.mark.parametrize(("length", "unseen"), [(LONGEST_SEARCH - 3, True), (LONGEST_SEARCH * 100, False)])
def test_long_chains_are_not_followed_to_their_ends(length: int, unseen: bool):
    steps = "".join(f"  %a{i} = neg({f'%a{i - 1}' if i else '%z'}) : f32[4]\n" for i in range(length))
    graph = parse(f"{steps}  %e = exp(%a{length - 1}) : f32[4]\n  return %e")
    assert is_unseen(graph, next(n for n in graph.nodes() if n.op.name == "add").result) is unseen
