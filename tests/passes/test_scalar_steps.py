"""Steps on a few numbers become plain arithmetic of scalars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc as gc
import graphc.ops.registry
from graphc.codegen.machine.costs import DEFAULT
from graphc.ir.graph.interpret import copy
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import Trait
from graphc.passes.scalar_steps import ScalarSteps
from tests.passes.check_pass import check_equal

ROTATION = """
graph @f(%c: f32[2], %x: f32[4,3], %w: f32[40], %t: f32[]) -> (f32[2], f32[4,2], f32[4]) {
  %s.0, %s.1, %s.2, %s.3 = scan(%c, %t, %x, %w) {body=graph @step(
      %c: f32[2], %t: f32[], %x: f32[3], %w: f32[40]) -> (f32[2], f32[], f32[2], f32[]) {
    %a = slice(%c) {starts=[0], stops=[1], steps=[1]} : f32[1]
    %b = slice(%c) {starts=[1], stops=[2], steps=[1]} : f32[1]
    %k = slice(%w) {starts=[3], stops=[39], steps=[35]} : f32[2]
    %z = sum(%x) {axes=[0], keepdims=true} : f32[1]
    %n = neg(%b) : f32[1]
    %j = concat(%n, %a) {axis=0} : f32[2]
    %h = mul(%j, %k) : f32[2]
    %e = add(%h, %z) : f32[2]
    %p = pad(%a) {low=[1], high=[0], interior=[0], value=2.0} : f32[2]
    %m = mul(%e, %p) : f32[2]
    %u = add(%t, f32(1.0)) : f32[]
    return %e, %u, %m, %u
  }, carries=2, sequences=1, length=4, reverse=false} : f32[2], f32[], f32[4,2], f32[4]
  return %s.0, %s.2, %s.3
}
"""


def split(text: str, costs=DEFAULT):
    graph = parse_graph(text)
    before = copy(graph)
    result = ScalarSteps(costs=costs).run(graph)
    verify_graph(result.graph)
    check_equal(before, result.graph)
    return result


@pytest.mark.parametrize("reverse", ["false", "true"])
def test_carries_and_stacks_become_scalars(reverse: str):
    result = split(ROTATION.replace("reverse=false", f"reverse={reverse}"))
    assert result.changed == 1
    (scan,) = result.graph.having(Trait.LOOP)
    body = scan.attrs["body"]
    assert scan.attrs["carries"] == 3 and [v.shape for v in body.inputs] == [(), (), (), (3,), (40,)]
    assert {v.shape for v in body.outputs} == {()} and len(body.outputs) == 6
    assert not {"concat", "pad", "sum"} & {n.op.name for n in body.nodes()}
    assert ScalarSteps().run(result.graph).changed == 0


@pytest.mark.parametrize(
    "old,new",
    [
        ("%j = concat(%n, %a) {axis=0}", "%j = add(%c, %c)"),
        ("%z = sum(%x) {axes=[0], keepdims=true}", "%z = max(%x) {axes=[0], keepdims=true}"),
    ],
)
def test_other_steps_stay(old: str, new: str):
    """Arrays that a step does not join from numbers, and ops that have no elements."""
    assert old in ROTATION
    assert split(ROTATION.replace(old, new)).changed == 0


def test_large_steps_stay():
    wide = ROTATION.replace("f32[4,3]", "f32[4,9]").replace("%x: f32[3]", "%x: f32[9]")
    assert split(wide).changed == 0
    few = replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, scalar_nodes=5))
    assert split(ROTATION, few).changed == 0


@pytest.mark.parametrize("length", [1, 5])
def test_values_and_gradients_are_those_of_eager_mode(length: int):
    def simulate(rates, start):
        def step(state, _):
            x, y, z = state[0], state[1], state[2]
            state = state + 0.01 * gc.stack([rates[0] * (y - x), x * (rates[1] - z) - y, x * y - rates[2] * z])
            return state, state

        return (gc.scan(step, start, length=length)[1] ** 2).sum()

    rates, start = gc.tensor([10.0, 28.0, 2.5], dtype=gc.float64), gc.tensor([1.0, -2.0, 3.0], dtype=gc.float64)
    function = gc.value_and_grad(simulate, argnums=(0, 1))
    expected, (by_rates, by_start) = function(rates, start)
    found, gradients = gc.compile(function)(rates, start)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-13)
    for a, b in zip(gradients, (by_rates, by_start), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
