"""Sums of which a mask hides terms: what is hidden is not read, and all else is as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Kernel, Loop, walk
from tests.native import TARGETS, Native, lowered, scheduled, target_or_skip
from tests.passes.graph_text import graph_of

HEADS, PLACES, SIZE = 3, 150, 80


def attention(keys: int = PLACES, size: int = SIZE, select_operands: str = "%m, %q, f32(-inf)", rows: int = 1) -> str:
    """Scores where the mask is true and their powers as weights; values of as many places."""
    return f"""
        graph @g(%m: bool[{keys}], %x: f32[{HEADS},{rows},{size}], %k: f32[{HEADS},{keys},{size}],
                 %v: f32[{HEADS},{keys},{size}]) -> (f32[{HEADS},{rows},{keys}], f32[{HEADS},{rows},{size}]) {{
          %q = matmul(%x, %k) {{transpose_b=true}} : f32[{HEADS},{rows},{keys}]
          %s = where({select_operands}) : f32[{HEADS},{rows},{keys}]
          %p = exp(%s) : f32[{HEADS},{rows},{keys}]
          %y = masked_matmul(%p, %v) : f32[{HEADS},{rows},{size}]
          return %s, %y
        }}"""


def small(target: Target) -> Target:
    """With a first cache that does not hold the keys of these tests."""
    return replace(target, l1_bytes=4096)


def ended(kernels: tuple[Kernel, ...]) -> int:
    return sum(bool(s.until) for kernel in kernels for s, _ in walk(kernel.body) if isinstance(s, Loop))


def masks(keys: int) -> list[np.ndarray]:
    """Seen: what a decoder sees at several places, parts, what lies apart, nothing, and all."""
    positions = np.arange(keys)
    some = [positions <= last for last in (0, 1, 7, 8, 15, 16, 17, keys - 2, keys - 1)]
    return [*some, (positions > 40) & (positions < 61), positions % 37 == 5, positions < 0, positions == keys - 1]


def arguments(mask: np.ndarray, size: int, rows: int = 1) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    x = random.integers(-4, 5, (HEADS, rows, size)).astype(np.float32) / 64
    k, v = (random.integers(-4, 5, (HEADS, len(mask), size)).astype(np.float32) / 4 for _ in range(2))
    return [mask, x, k, v]


def wanted(operands: list[np.ndarray]) -> list[np.ndarray]:
    mask, x, k, v = operands
    with np.errstate(all="ignore"):
        scores = np.where(mask, x @ k.swapaxes(-1, -2), -np.inf).astype(np.float32)
        return [scores, np.exp(scores) @ np.where(mask[:, None], v, 0)]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("keys", "size"), [(PLACES, SIZE), (64, 64), (97, 33)])
def test_what_is_hidden_is_not_read(name: str, keys: int, size: int):
    """Whole blocks of keys, and values behind the last one that is seen: were they read, results would be NaN."""
    target = small(target_or_skip(name))
    program = scheduled(lowered(graph_of(attention(keys, size))), target)
    assert ended(program.kernels) >= 2
    native = Native(program, target)
    for number, mask in enumerate(masks(keys)):
        operands = arguments(mask, size)
        visible = np.flatnonzero(mask)
        operands[3][:, visible[-1] + 1 if len(visible) else 0 :] = np.nan
        operands[2][:, ~mask] = np.inf  # the selection hides what comes of those that are read
        for got, expected in zip(native(operands), wanted(operands), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
        if number == 5:
            for got, expected in zip(run_program(program, operands), wanted(operands), strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["avx512", "avx2"])
def test_either_side_of_a_selection_may_be_the_sum(name: str):
    target = small(target_or_skip(name))
    program = scheduled(lowered(graph_of(attention(select_operands="%m, f32(-inf), %q"))), target)
    assert ended(program.kernels) >= 2
    for mask in masks(PLACES):
        operands = arguments(~mask, SIZE)
        expected = wanted([mask, *operands[1:]])
        for got, value in zip(Native(program, target)(operands), expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (attention(40, 64), target_named("avx512")),
        (attention(rows=7), small(target_named("avx512"))),
        (attention().replace("masked_matmul", "matmul").replace("where(%m, %q, f32(-inf))", "where(%m, %q, %q)"),
         small(target_named("avx512"))),
    ],
    ids=["near", "rows", "no mask"],
)  # fmt: skip
def test_what_stays(text: str, target: Target):
    """Operands that stay in the first cache, several rows, and sums that are seen on both ways."""
    assert ended(schedule_program(lowered(graph_of(text)), target).kernels) == 0


def test_sums_that_are_seen_beside_the_selection_are_computed():
    text = attention().replace("return %s, %y", "return %q, %y")
    kernels = schedule_program(lowered(graph_of(text)), small(target_named("avx512"))).kernels
    assert sum(ended((kernel,)) > 0 for kernel in kernels) == 1, "values, and no keys"
