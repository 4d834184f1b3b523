"""Lowering of one group: chains that are longer than Python's stack is deep, under conditions too."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from graphc.fusion.partition import Partition
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.statements import Kernel, Loop, walk
from graphc.lowering.group import lower_group, pick_elements
from tests.codegen.kernel_native import check_equivalent, kernel_of
from tests.passes.graph_text import graph_of

STEPS = {
    "an op": ("%{1} = sin(%{0}) : f32[4]", 1),
    "two reads of one value": ("%{1} = mul(%{0}, %{0}) : f32[4]", 1),
    "a read under a condition": (
        "%p{1} = pad(%{0}) {{low=[1], high=[0], interior=[0]}} : f32[5]\n"
        "%{1} = slice(%p{1}) {{starts=[0], stops=[4], steps=[1]}} : f32[4]",
        1,
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_group_of_any_length_is_lowered(step: str):
    text, _ = STEPS[step]
    lines = "\n".join(text.format(f"v{i}", f"v{i + 1}") for i in range(500))
    graph = graph_of(f"graph @g(%v0: f32[4]) -> (f32[4]) {{\n{lines}\nreturn %v500\n}}")
    partition = Partition(graph)
    group = partition.group_of[graph.outputs[0].node]
    group.nodes[:] = [n for n in graph.nodes() if not n.results[0].is_scalar_constant]
    group.outputs = list(graph.outputs)
    place = {graph.inputs[0]: "v0", graph.outputs[0]: "out0"}
    assert sys.getrecursionlimit() < 2000
    kernel, storages = lower_group(group, place, frozenset(graph.outputs))
    assert storages == ("v0", "out0") and kernel.body


def picked(kernel: Kernel, numbers: list[int]) -> Kernel:
    loop = kernel.body[0]
    assert isinstance(loop, Loop)
    result = replace(kernel, body=(replace(loop, body=pick_elements(loop.body)),))
    x = np.random.default_rng(0).standard_normal(20).astype(np.float32)
    x[3] = np.nan
    memory = {"x": x, "t": np.array(numbers, np.int64), "y": np.zeros(4, np.float32)}
    check_equivalent(kernel, result, {b.name: memory[b.name] for b in kernel.arguments})
    return result


def loops(kernel: Kernel) -> int:
    return sum(isinstance(s, Loop) for s, _ in walk(kernel.body))


def one_hot(terms: str, combine: str = "add") -> Kernel:
    return kernel_of(f"""
        kernel @k(%x: f32[20] in, %t: i64[4] in, %y: f32[4] out) {{
          for i in 4 parallel {{
            acc a: f32 = {combine} f32(0.0)
            for k in 5 reduce {{
              p: f32 = load %x[5*i + k]
              t: i64 = load %t[i]
              n: i64 = index k
              {terms}
            }}
            s = read a
            store %y[i] = s
          }}
        }}""")


PICK = "c: bool = eq(t, n)\nw: f32 = select(c, p, f32(0.0))\n"


@pytest.mark.parametrize("numbers", [[0, 1, 2, 4], [-1, 5, -100, 3]])
def test_a_sum_of_one_term_is_that_term(numbers: list[int]):
    assert loops(picked(one_hot(PICK + "update a with w"), numbers)) == 1


def test_its_negative_and_the_operands_the_other_way_round():
    terms = PICK.replace("eq(t, n)", "eq(n, t)") + "m: f32 = neg(w)\nupdate a with m"
    assert loops(picked(one_hot(terms), [4, 0, 7, 2])) == 1


@pytest.mark.parametrize(
    "terms,combine",
    [
        (PICK + "update a with w", "max"),
        (PICK.replace("f32(0.0)", "f32(1.0)") + "update a with w", "add"),
        (PICK.replace("eq", "lt") + "update a with w", "add"),
        (PICK + "m: f32 = mul(w, p)\nupdate a with m", "add"),
        (PICK + "update a with w\nupdate a with p", "add"),
        ("d: i64 = add(n, t)\nc: bool = eq(d, n)\nw: f32 = select(c, p, f32(0.0))\nupdate a with w", "add"),
    ],
)
def test_other_sums_stay(terms: str, combine: str):
    assert loops(picked(one_hot(terms, combine), [1, 1, 1, 1])) == 2


def test_two_sums_that_pick_by_one_number():
    kernel = kernel_of("""
        kernel @k(%x: f32[20] in, %t: i64[4] in, %y: f32[4] out) {
          for i in 4 parallel {
            t: i64 = load %t[i]
            acc a: f32 = add f32(0.0)
            for k in 5 reduce {
              n: i64 = index k
              c: bool = eq(t, n)
              p: f32 = load %x[5*i + k]
              w: f32 = select(c, p, f32(0.0))
              update a with w
            }
            acc b: f32 = add f32(0.0)
            for l in 5 reduce {
              m: i64 = index l
              d: bool = eq(t, m)
              q: f32 = load %x[-5*i - l + 19]
              v: f32 = select(d, q, f32(0.0))
              update b with v
            }
            s = read a
            u = read b
            z: f32 = sub(s, u)
            store %y[i] = z
          }
        }""")
    assert loops(picked(kernel, [0, 4, 2, 9])) == 1


@pytest.mark.parametrize("terms", [PICK + "update a with w", PICK + "m: f32 = neg(w)\nupdate a with m"])
def test_special_values_keep_their_bits(terms: str):
    kernel = one_hot(terms)
    loop = kernel.body[0]
    assert isinstance(loop, Loop)
    changed = replace(kernel, body=(replace(loop, body=pick_elements(loop.body)),))
    rows = [[np.nan, np.inf, -np.inf, -0.0, 0.0], [1e-45, -1e-45, 3.4e38, -3.4e38, 1.0]]
    x = np.array([*rows, *rows], np.float32).ravel()
    for first in range(-1, 6):
        numbers = np.array([first, (first + 1) % 5, (first + 2) % 5, first], np.int64)
        results = []
        for k in (kernel, changed):
            memory = {"x": x.copy(), "t": numbers, "y": np.zeros(4, np.float32)}
            run_kernel(k, memory)
            results.append(memory["y"])
        known = ~np.isnan(results[0])
        np.testing.assert_array_equal(np.isnan(results[1]), ~known)
        np.testing.assert_array_equal(results[1].view(np.int32)[known], results[0].view(np.int32)[known])
