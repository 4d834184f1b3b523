"""Tests of canonicalization: one golden case per rule, cases that must stay, and random programs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from graphc.base.dtypes import float32
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy, evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import REGISTRY, OpDef, Sample, Trait, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops.dispatch import use
from graphc.passes.canonicalize import LONGEST_SEARCH, RULES, Canonicalize, RuleDispatcher, is_unseen, splat
from tests.passes.check_pass import check_pass

X, XY, N, B = "%x: f32[2,3]", "%x: f32[2,3], %y: f32[2,3]", "%n: i32[4]", "%p: bool[4]"
# Inputs, body before, body after, type of the result.
CASES = {
    "add minus zero": (X, "%a = add(%x, f32(-0.0)) : f32[2,3]", "return %x"),
    "unseen zero": (
        X,
        "%a = add(%x, f32(0.0)) : f32[2,3]\n%b = exp(%a) : f32[2,3]",
        "%b = exp(%x) : f32[2,3]\nreturn %b",
    ),
    "add integer zero": (N, "%a = add(%n, i32(0)) : i32[4]", "return %n"),
    "add zeros": (
        "%x: f32[3]",
        "%z = broadcast_to(f32(-0.0)) {shape=[2,3]} : f32[2,3]\n%a = add(%z, %x) : f32[2,3]",
        "%a = broadcast_to(%x) {shape=[2,3]} : f32[2,3]\nreturn %a",
    ),
    "add neg": (XY, "%n = neg(%y) : f32[2,3]\n%a = add(%x, %n) : f32[2,3]", "%a = sub(%x, %y) : f32[2,3]\nreturn %a"),
    "neg add": (XY, "%n = neg(%y) : f32[2,3]\n%a = add(%n, %x) : f32[2,3]", "%a = sub(%x, %y) : f32[2,3]\nreturn %a"),
    "sub neg": (XY, "%n = neg(%y) : f32[2,3]\n%a = sub(%x, %n) : f32[2,3]", "%a = add(%x, %y) : f32[2,3]\nreturn %a"),
    "sub zero": (X, "%a = sub(%x, f32(0.0)) : f32[2,3]", "return %x"),
    "mul one": (X, "%a = mul(f32(1.0), %x) : f32[2,3]", "return %x"),
    "mul minus one": (X, "%a = mul(%x, f32(-1.0)) : f32[2,3]", "%a = neg(%x) : f32[2,3]\nreturn %a"),
    "mul ones array": (
        "%x: f32[2]",
        "%k = constant() {value=f32[2](1.0, 1.0)} : f32[2]\n%a = mul(%k, %x) : f32[2]",
        "return %x",
    ),
    "integer mul zero": (
        N,
        "%a = mul(%n, i32(0)) : i32[4]",
        "%a = broadcast_to(i32(0)) {shape=[4]} : i32[4]\nreturn %a",
    ),
    "mul neg neg": (
        XY,
        "%m = neg(%x) : f32[2,3]\n%n = neg(%y) : f32[2,3]\n%a = mul(%m, %n) : f32[2,3]",
        "%a = mul(%x, %y) : f32[2,3]\nreturn %a",
    ),
    "div one": (X, "%a = div(%x, f32(1.0)) : f32[2,3]", "return %x"),
    "div power of two": (X, "%a = div(%x, f32(8.0)) : f32[2,3]", "%a = mul(%x, f32(0.125)) : f32[2,3]\nreturn %a"),
    "div minus half": (X, "%a = div(%x, f32(-0.5)) : f32[2,3]", "%a = mul(%x, f32(-2.0)) : f32[2,3]\nreturn %a"),
    "double neg": (X, "%n = neg(%x) : f32[2,3]\n%a = neg(%n) : f32[2,3]", "return %x"),
    "abs neg": (X, "%n = neg(%x) : f32[2,3]\n%a = abs(%n) : f32[2,3]", "%a = abs(%x) : f32[2,3]\nreturn %a"),
    "abs abs": (X, "%n = abs(%x) : f32[2,3]\n%a = abs(%n) : f32[2,3]", "%n = abs(%x) : f32[2,3]\nreturn %n"),
    "square": (X, "%a = pow(%x, f32(2.0)) : f32[2,3]", "%a = mul(%x, %x) : f32[2,3]\nreturn %a"),
    "pow one": (X, "%a = pow(%x, f32(1.0)) : f32[2,3]", "return %x"),
    "pow zero": (
        X,
        "%a = pow(%x, f32(0.0)) : f32[2,3]",
        "%a = broadcast_to(f32(1.0)) {shape=[2,3]} : f32[2,3]\nreturn %a",
    ),
    "codes whose zeros are added": (
        X,
        "%q = quantize_linear(%x) {scale=0.5, low=0.0, high=9.0, zero=0.0, dtype=f32} : f32[2,3]\n"
        "%a = exp(%q) : f32[2,3]",
        "%q = quantize_linear(%x) {scale=0.5, low=0.0, high=9.0, zero=0.0, dtype=f32, signed_zero=true} : f32[2,3]\n"
        "%a = exp(%q) : f32[2,3]\nreturn %a",
    ),
    "codes of positive numbers": (
        X,
        "%t = le(%x, f32(0.0)) : bool[2,3]\n%r = where(%t, f32(0.0), %x) : f32[2,3]\n"
        "%q = quantize_linear(%r) {scale=0.5, low=0.0, high=255.0, zero=0.0, dtype=u8} : u8[2,3]",
        "%q = quantize_linear(%x) {scale=0.5, low=0.0, high=255.0, zero=0.0, dtype=u8} : u8[2,3]\nreturn %q",
    ),
    "codes of limited numbers": (
        X,
        "%c = clamp(%x, f32(-2.0), f32(6.0)) {strict=false} : f32[2,3]\n"
        "%q = quantize_linear(%c) {scale=0.5, low=-4.0, high=12.0, zero=4.0, dtype=u8} : u8[2,3]",
        "%q = quantize_linear(%x) {scale=0.5, low=-4.0, high=12.0, zero=4.0, dtype=u8} : u8[2,3]\nreturn %q",
    ),
    "maximum of one": (X, "%a = maximum(%x, %x) : f32[2,3]", "return %x"),
    "constant last": (X, "%a = mul(f32(2.5), %x) : f32[2,3]", "%a = mul(%x, f32(2.5)) : f32[2,3]\nreturn %a"),
    "implicit broadcast": (
        "%x: f32[2,3], %y: f32[3]",
        "%b = broadcast_to(%y) {shape=[2,3]} : f32[2,3]\n%a = mul(%x, %b) : f32[2,3]",
        "%a = mul(%x, %y) : f32[2,3]\nreturn %a",
    ),
    "late broadcast": (
        "%x: f32[3], %y: f32[3]",
        "%b = broadcast_to(%y) {shape=[2,3]} : f32[2,3]\n%a = mul(%x, %b) : f32[2,3]",
        "%mul = mul(%x, %y) : f32[3]\n%a = broadcast_to(%mul) {shape=[2,3]} : f32[2,3]\nreturn %a",
    ),
    "cast to the same": (X, "%a = cast(%x) {dtype=f32} : f32[2,3]", "return %x"),
    "cast there and back": (
        X,
        "%w = cast(%x) {dtype=f64} : f64[2,3]\n%a = cast(%w) {dtype=f32} : f32[2,3]",
        "return %x",
    ),
    "cast through a wider type": (
        N,
        "%w = cast(%n) {dtype=i64} : i64[4]\n%a = cast(%w) {dtype=f32} : f32[4]",
        "%a = cast(%n) {dtype=f32} : f32[4]\nreturn %a",
    ),
    "where known": (XY, "%a = where(bool(false), %x, %y) : f32[2,3]", "return %y"),
    "where same": ("%p: bool[3], %x: f32[2,3]", "%a = where(%p, %x, %x) : f32[2,3]", "return %x"),
    "where not": (
        "%p: bool[3], %x: f32[3], %y: f32[3]",
        "%q = logical_not(%p) : bool[3]\n%a = where(%q, %x, %y) : f32[3]",
        "%a = where(%p, %y, %x) : f32[3]\nreturn %a",
    ),
    "not not": (B, "%q = logical_not(%p) : bool[4]\n%a = logical_not(%q) : bool[4]", "return %p"),
    "not eq": (
        XY,
        "%q = eq(%x, %y) : bool[2,3]\n%a = logical_not(%q) : bool[2,3]",
        "%a = ne(%x, %y) : bool[2,3]\nreturn %a",
    ),
    "not lt of integers": (
        "%n: i32[4], %m: i32[4]",
        "%q = lt(%n, %m) : bool[4]\n%a = logical_not(%q) : bool[4]",
        "%a = ge(%n, %m) : bool[4]\nreturn %a",
    ),
    "and true": (B, "%a = logical_and(bool(true), %p) : bool[4]", "return %p"),
    "or true": (
        B,
        "%a = logical_or(%p, bool(true)) : bool[4]",
        "%a = broadcast_to(bool(true)) {shape=[4]} : bool[4]\nreturn %a",
    ),
    "reshape to the same": (X, "%a = reshape(%x) {shape=[2,3]} : f32[2,3]", "return %x"),
    "reshape twice": (
        X,
        "%r = reshape(%x) {shape=[6]} : f32[6]\n%a = reshape(%r) {shape=[3,2]} : f32[3,2]",
        "%a = reshape(%x) {shape=[3,2]} : f32[3,2]\nreturn %a",
    ),
    "reshape there and back": (
        X,
        "%r = reshape(%x) {shape=[6]} : f32[6]\n%a = reshape(%r) {shape=[2,3]} : f32[2,3]",
        "return %x",
    ),
    "broadcast twice": (
        "%x: f32[3]",
        "%r = broadcast_to(%x) {shape=[2,3]} : f32[2,3]\n%a = broadcast_to(%r) {shape=[4,2,3]} : f32[4,2,3]",
        "%a = broadcast_to(%x) {shape=[4,2,3]} : f32[4,2,3]\nreturn %a",
    ),
    "broadcast of leading ones": (
        "%x: f32[3]",
        "%r = reshape(%x) {shape=[1,1,3]} : f32[1,1,3]\n%a = broadcast_to(%r) {shape=[4,2,3]} : f32[4,2,3]",
        "%a = broadcast_to(%x) {shape=[4,2,3]} : f32[4,2,3]\nreturn %a",
    ),
    "transpose nothing": (X, "%a = transpose(%x) {permutation=[0,1]} : f32[2,3]", "return %x"),
    "transpose twice": (
        "%x: f32[2,3,4]",
        "%t = transpose(%x) {permutation=[1,2,0]} : f32[3,4,2]\n%a = transpose(%t) {permutation=[2,1,0]} : f32[2,4,3]",
        "%a = transpose(%x) {permutation=[0,2,1]} : f32[2,4,3]\nreturn %a",
    ),
    "slice all": (X, "%a = slice(%x) {starts=[0,0], stops=[2,3], steps=[1,1]} : f32[2,3]", "return %x"),
    "slice twice": (
        "%x: f32[20]",
        "%s = slice(%x) {starts=[2], stops=[19], steps=[3]} : f32[6]\n"
        "%a = slice(%s) {starts=[1], stops=[6], steps=[2]} : f32[3]",
        "%a = slice(%x) {starts=[5], stops=[18], steps=[6]} : f32[3]\nreturn %a",
    ),
    "slice nothing behind the end": (
        "%x: f32[12]",
        "%s = slice(%x) {starts=[1], stops=[12], steps=[5]} : f32[3]\n"
        "%a = slice(%s) {starts=[3], stops=[3], steps=[4]} : f32[0]",
        "%a = slice(%x) {starts=[0], stops=[0], steps=[20]} : f32[0]\nreturn %a",
    ),
    "pad nothing": (X, "%a = pad(%x) {low=[0,0], high=[0,0], interior=[0,0]} : f32[2,3]", "return %x"),
    "concat of one": (X, "%a = concat(%x) {axis=0} : f32[2,3]", "return %x"),
    "concat twice": (
        XY,
        "%c = concat(%x, %y) {axis=1} : f32[2,6]\n%a = concat(%y, %c) {axis=1} : f32[2,9]",
        "%a = concat(%y, %x, %y) {axis=1} : f32[2,9]\nreturn %a",
    ),
    "flip twice": (
        X,
        "%s = flip(%x) {axes=[0,1]} : f32[2,3]\n%a = flip(%s) {axes=[0]} : f32[2,3]",
        "%a = flip(%x) {axes=[1]} : f32[2,3]\nreturn %a",
    ),
    "flip of one element": ("%x: f32[1,3]", "%a = flip(%x) {axes=[0]} : f32[1,3]", "return %x"),
    "transpose of one number": (
        X,
        "%b = broadcast_to(f32(2.0)) {shape=[2,3]} : f32[2,3]\n"
        "%t = transpose(%b) {permutation=[1,0]} : f32[3,2]\n%r = reshape(%t) {shape=[6]} : f32[6]",
        "%r = broadcast_to(f32(2.0)) {shape=[6]} : f32[6]\nreturn %r",
    ),
    "sum over nothing": (X, "%a = sum(%x) {axes=[]} : f32[2,3]", "%a = add(%x, f32(0.0)) : f32[2,3]\nreturn %a"),
    "sum over ones": (
        "%x: f32[2,1,3]",
        "%a = sum(%x) {axes=[1]} : f32[2,3]",
        "%add = add(%x, f32(0.0)) : f32[2,1,3]\n%a = reshape(%add) {shape=[2,3]} : f32[2,3]\nreturn %a",
    ),
    "integer sum over nothing": (
        N,
        "%a = sum(%n) {axes=[]} : i64[4]",
        "%a = cast(%n) {dtype=i64} : i64[4]\nreturn %a",
    ),
    "max over ones kept": ("%x: f32[1,3]", "%a = max(%x) {axes=[0], keepdims=true} : f32[1,3]", "return %x"),
    "sum of one number": (
        X,
        "%b = broadcast_to(f32(0.5)) {shape=[2,3]} : f32[2,3]\n%a = sum(%b) {axes=[0]} : f32[3]",
        "%a = broadcast_to(f32(1.0)) {shape=[3]} : f32[3]\nreturn %a",
    ),
    "known size": (
        X,
        "%s = size() {value=3} : i64[]\n%a = broadcast_to(%s) {shape=[2]} : i64[2]",
        "%a = broadcast_to(i64(3)) {shape=[2]} : i64[2]\nreturn %a",
    ),
    "matmul of transposed": (
        "%x: f32[5,2,3], %y: f32[4,3]",
        "%s = transpose(%x) {permutation=[0,2,1]} : f32[5,3,2]\n%t = transpose(%y) {permutation=[1,0]} : f32[3,4]\n"
        "%a = matmul(%s, %t) {transpose_a=true} : f32[5,2,4]",
        "%reshape = reshape(%x) {shape=[10,3]} : f32[10,3]\n"
        "%matmul = matmul(%reshape, %y) {transpose_b=true} : f32[10,4]\n"
        "%a = reshape(%matmul) {shape=[5,2,4]} : f32[5,2,4]\nreturn %a",
    ),
    "matmul of rows": (
        "%x: f32[2,2,3], %y: f32[3,4]",
        "%a = matmul(%x, %y) : f32[2,2,4]",
        "%reshape = reshape(%x) {shape=[4,3]} : f32[4,3]\n%matmul = matmul(%reshape, %y) : f32[4,4]\n"
        "%a = reshape(%matmul) {shape=[2,2,4]} : f32[2,2,4]\nreturn %a",
    ),
    "slice of a slice of a size": (
        "%x: f32[2*n,3]",
        "%b = slice(%x) {starts=[n,0], stops=[2*n,3], steps=[1,1]} : f32[n,3]\n"
        "%a = slice(%b) {starts=[1,0], stops=[n,2], steps=[1,1]} : f32[n - 1,2]",
        "%a = slice(%x) {starts=[n + 1,0], stops=[2*n,2], steps=[1,1]} : f32[n - 1,2]",
    ),
    "sum of a size of numbers": (
        "%x: f32[n]",
        "%b = broadcast_to(f32(0.5)) {shape=[n]} : f32[n]\n%s = sum(%b) {axes=[0]} : f32[]\n%a = mul(%x, %s) : f32[n]",
        "%size = size() {value=n} : i64[]\n%cast = cast(%size) {dtype=f64} : f64[]\n"
        "%mul = mul(%cast, f64(0.5)) : f64[]\n%s = cast(%mul) {dtype=f32} : f32[]\n%a = mul(%x, %s) : f32[n]",
    ),
}
STAYS = {
    "slice of a slice that may be empty": (
        "%x: f32[n]",
        "%b = slice(%x) {starts=[1], stops=[n - 1], steps=[2]} : f32[((n + 1) // 2) - 1]\n"
        "%a = slice(%b) {starts=[0], stops=[(n // 4)], steps=[1]} : f32[(n // 4)]",
    ),
    "size": ("%n: i64[n]", "%s = size() {value=n} : i64[]\n%a = mul(%n, %s) : i64[n]"),
    "flip of a size": ("%x: f32[n]", "%a = flip(%x) {axes=[0]} : f32[n]"),
    "sum over a size that may be 1": ("%x: f32[n]", "%a = sum(%x) {axes=[0]} : f32[]"),
    "add zero": (X, "%a = add(%x, f32(0.0)) : f32[2,3]"),
    "sub minus zero": (X, "%a = sub(%x, f32(-0.0)) : f32[2,3]"),
    "abs of a negative unsigned": ("%x: u8[3]", "%n = neg(%x) : u8[3]\n%a = abs(%n) : u8[3]"),
    "saturating cast": ("%n: i32[4]", "%w = cast(%n) {dtype=f64} : f64[4]\n%a = cast(%w) {dtype=i8} : i8[4]"),
    "float mul zero": (X, "%a = mul(%x, f32(0.0)) : f32[2,3]"),
    "div three": (X, "%a = div(%x, f32(3.0)) : f32[2,3]"),
    "div overflowing inverse": (X, "%a = div(%x, f32(2.938736e-39)) : f32[2,3]"),
    "not lt of floats": (XY, "%q = lt(%x, %y) : bool[2,3]\n%a = logical_not(%q) : bool[2,3]"),
    "narrowing cast": (X, "%n = cast(%x) {dtype=i32} : i32[2,3]\n%a = cast(%n) {dtype=f32} : f32[2,3]"),
    "gradient cut": (X, "%a = stop_gradient(%x) : f32[2,3]"),
    "flip": (X, "%a = flip(%x) {axes=[1]} : f32[2,3]"),
    "bool add": (B, "%a = add(%p, bool(true)) : bool[4]"),
    "matmul of batches": (
        "%x: f32[5,2,3], %y: f32[5,3,4]",
        "%t = transpose(%x) {permutation=[1,0,2]} : f32[2,5,3]\n%r = reshape(%t) {shape=[5,2,3]} : f32[5,2,3]\n"
        "%a = matmul(%r, %y) : f32[5,2,4]",
    ),
}


def text(inputs, body):
    """The graph with that body, which returns its last value unless it says otherwise."""
    lines = body.split("\n")
    if not lines[-1].startswith("return"):
        lines.append(f"return {lines[-1].split(' = ')[0]}")
    types = dict(part.split(": ") for part in inputs.split(", "))
    types |= {line.split(" = ")[0]: line.rsplit(" : ", 1)[1] for line in lines[:-1]}
    dims = ["dim n = 2..9 hint 4"] if re.search(r"\bn\b", inputs.replace("%n", "")) else []
    return "\n".join(
        [*dims, f"graph @f({inputs}) -> ({types[lines[-1].split()[1]]}) {{", *(f"  {i}" for i in lines), "}"]
    )


@pytest.mark.parametrize("name", CASES)
def test_rule(name):
    inputs, before, after = CASES[name]
    check_pass(Canonicalize(), text(inputs, before), text(inputs, after))


@pytest.mark.parametrize("name", STAYS)
def test_stays(name):
    check_pass(Canonicalize(), text(*STAYS[name]))


def test_every_rule_has_a_case():
    """Each rule is what changes at least one case."""
    used = set()
    for inputs, before, _ in CASES.values():
        graph = parse_graph(text(inputs, before) + "\n")
        with use(RuleDispatcher(graph)):
            for node in list(graph.nodes()):
                for rule in RULES:
                    if node in graph and rule.looks_at(node.op) and rule.rewrite(graph, node) is not None:
                        used.add(rule.title)
    assert used == {rule.title for rule in RULES}


def test_splat():
    graph = Graph()
    x = graph.add_input(TensorType(float32, (3,)), "x")
    two = graph.scalar(2.0, float32)
    wide = emit(graph, REGISTRY["broadcast_to"], (two,), {"shape": (3,)})[0]
    array = emit(graph, REGISTRY["constant"], (), {"value": np.array([1, 1, 2], np.float32)})[0]
    empty = emit(graph, REGISTRY["constant"], (), {"value": np.zeros((0,), np.float32)})[0]
    assert [splat(v) for v in (x, two, wide, array, empty)] == [None, 2.0, 2.0, None, None]


@pytest.mark.parametrize("seed", range(20))
def test_random_chains_keep_their_value(seed):
    random = np.random.default_rng(seed)
    graph = Graph()
    values = [graph.add_input(TensorType(float32, s), "x") for s in ((2, 3), (3,), (2, 1), ())]
    values += [graph.scalar(c, float32) for c in (0.0, 1.0, -1.0, 2.0, 0.3)]
    for _ in range(25):
        name = random.choice(["add", "sub", "mul", "div", "neg", "abs", "maximum", "broadcast_to", "transpose"])
        x, y = (values[i] for i in random.integers(0, len(values), 2))
        if name == "broadcast_to":
            made = emit(graph, REGISTRY[name], (x,), {"shape": (2, 3)})
        elif name == "transpose":
            made = emit(graph, REGISTRY[name], (x,), {"permutation": tuple(reversed(range(len(x.shape))))})
            made = emit(graph, REGISTRY[name], made, {"permutation": tuple(reversed(range(len(x.shape))))})
        else:
            made = emit(graph, REGISTRY[name], (x, y)[: len(REGISTRY[name].operands)])
        values.extend(made)
    graph.set_outputs(values[-4:])
    original = copy(graph)
    result = Canonicalize().run(graph).graph
    verify_graph(result)
    arguments = [random.standard_normal(v.shape).astype(np.float32) for v in graph.inputs]
    with np.errstate(all="ignore"):
        for got, expected in zip(evaluate(result, arguments), evaluate(original, arguments), strict=True):
            np.testing.assert_array_equal(np.abs(got), np.abs(expected))


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
