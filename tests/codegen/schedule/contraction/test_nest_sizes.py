"""Contractions with named rows, lanes and depths: scheduled once, right at every size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.base.sizes.named_dims import Dim
from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.llvm.entry import emit_program
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.base import Context
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.pipeline import schedule, schedule_program
from graphc.ir.kernel.dims import bind_kernel, dims_of_kernel
from graphc.ir.kernel.statements import STORAGE, Kernel, Loop, walk
from graphc.ir.kernel.text import print_kernel
from tests.codegen.kernel_native import kernel_of, single
from tests.codegen.sized import check_schedule
from tests.codegen.sized_products import (
    GELU,
    MIXED,
    RESIDUAL,
    SCORES,
    STORE,
    STORE_TRANSPOSED,
    TRANSPOSED_A,
    TRANSPOSED_B,
    convolution,
    sized_product,
)
from tests.native import Native, target_or_skip
from tools.codegen.register_blocks import innermost_loops

KERNELS = {
    "rows": lambda: sized_product("rows", 48, 24),
    "rows, odd": lambda: sized_product("rows", 50, 23),
    "rows, packed": lambda: sized_product("rows", 70, 23, TRANSPOSED_B),
    "rows that are a product": lambda: sized_product("batch*time", 40, 24, TRANSPOSED_B),
    "rows and GELU": lambda: sized_product("rows", 70, 24, TRANSPOSED_B, GELU),
    "rows and a residual": lambda: sized_product("rows", 70, 24, TRANSPOSED_B, RESIDUAL),
    "rows of columns": lambda: sized_product("rows", 40, 24, TRANSPOSED_A),
    "rows written as columns": lambda: sized_product("rows", 40, 24, after=STORE_TRANSPOSED),
    "rows and narrow weights": lambda: sized_product("rows", 40, 24, TRANSPOSED_B, stored="bf16"),
    "rows, one column": lambda: sized_product("rows", 1, 40, TRANSPOSED_B),
    "lanes": lambda: sized_product(20, "time", 24),
    "lanes, packed": lambda: sized_product(20, "time", 24, TRANSPOSED_B),
    "lanes and GELU": lambda: sized_product(20, "time", 24, TRANSPOSED_B, GELU),
    "lanes and one more": lambda: sized_product(20, "time + 1", 24, TRANSPOSED_B),
    "depth": lambda: sized_product(20, 40, "time"),
    "depth, packed": lambda: sized_product(20, 40, "time", TRANSPOSED_B),
    "depth across lanes": lambda: sized_product(1, 40, "time", TRANSPOSED_B),
    "gradient of weights": lambda: sized_product(40, 24, "rows", TRANSPOSED_A),
    "rows and depth": lambda: sized_product("batch", 40, "time", TRANSPOSED_B),
    "rows and lanes": lambda: sized_product("batch", "time", 24, TRANSPOSED_B),
    "all three": lambda: sized_product("batch", "time", "rows"),
    "scores": lambda: kernel_of(SCORES),
    "weighted means": lambda: kernel_of(MIXED),
    "convolution": lambda: convolution("5", False),
    "convolution of channels last": lambda: convolution("5", True),
    "convolution of any side": lambda: convolution("time", False),
    "convolution of any side, channels last": lambda: convolution("time", True),
}
"""A kernel of each way in which a size may be among the axes of a product."""


def sizes_for(kernel: Kernel, target: str) -> list[dict[str, int]]:
    """Sizes around those of blocks and vectors, 1 among them; the second dimension stays small."""
    lanes = target_named(target).vector_bytes // 4
    first, *others = sorted(dims_of_kernel(kernel), reverse=True)
    results = [1, 2, 3, 7, 11, 12, 13, lanes - 1, lanes + 1, 2 * lanes + 1, 3 * lanes]
    results = [1, 2, 7, lanes + 1] if others else results
    return [{first: n, **dict.fromkeys(others, 1 + i % 3)} for i, n in enumerate(results)]


@pytest.mark.sampled(40)
@pytest.mark.parametrize("target", ["avx512", "avx2", "neon"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_product_is_right_at_every_size(name: str, target: str):
    kernel = KERNELS[name]()
    check_schedule(kernel, target_named(target), sizes_for(kernel, target))


@pytest.mark.parametrize("target", ["avx512", "avx2"])
@pytest.mark.parametrize("after", [STORE, STORE_TRANSPOSED])
def test_every_loop_of_a_product_has_an_axis_of_its_own(after: str, target: str):
    """Threads share loops by their axes."""
    kernel = sized_product("4*rows + 2", "rows", 24, TRANSPOSED_B, after)
    result = schedule_program(single(kernel), target_named(target)).kernel("k")
    axes = [s.axis for s, _ in walk(result.body) if isinstance(s, Loop)]
    assert len(set(axes)) == len(axes)


@pytest.mark.parametrize("extents", [("rows - 1", 40, 24), (20, "rows - 1", 24), (20, 40, "rows - 1")])
def test_a_product_of_nothing_may_be_expected(extents: tuple[str | int, str | int, str | int]):
    kernel = bind_kernel(sized_product(*extents), {"rows": Dim("rows", 1, 600, hint=1)})
    check_schedule(kernel, target_named("avx512"), [{"rows": n} for n in (1, 2, 7, 18)])


@pytest.mark.parametrize("target", ["avx512", "avx2", "neon"])
def test_weights_are_packed_independently_of_named_sizes(target: str):
    """Whatever the rows are called and however many are expected, so all programs of a model can share them."""
    packs = set()
    for rows in ("rows", "batch*time", "batch", "256"):
        program = single(sized_product(rows, 384, 96, TRANSPOSED_B))
        storages = tuple(replace(s, cls="weight") if s.name == "b" else s for s in program.storages)
        storages = tuple(sorted(storages, key=lambda s: STORAGE.index(s.cls)))
        pack = schedule_program(replace(program, storages=storages), target_named(target)).kernel("k_pack")
        assert not dims_of_kernel(pack)
        packs.add(print_kernel(pack))
    assert len(packs) == 1


@pytest.mark.parametrize("target", ["avx512", "avx2"])
@pytest.mark.parametrize(("columns", "depth"), [(1536, 384), (384, 1536)])
def test_groups_of_named_rows_are_right_at_every_size(columns: int, depth: int, target: str):
    """Rows that are expected to be far more than the L2 cache holds pass by all panels in groups: 800 of 1536."""
    kernel = sized_product("batch*time", columns, depth, TRANSPOSED_B, RESIDUAL)
    program = schedule(single(kernel), Context(Forms(target_or_skip(target))))[0].program
    native = Native(program, target_named(target))
    random = np.random.default_rng(0)
    b, bias = random.standard_normal((columns, depth), np.float32), random.standard_normal(columns, np.float32)
    for batch, time in ((1, 1), (1, 11), (7, 17), (8, 15), (11, 11), (5, 100), (64, 5)):
        a, residual = (random.standard_normal((batch * time, n), np.float32) for n in (depth, columns))
        given = {"a": a, "b": b, "bias": bias, "residual": residual, "c": np.full_like(residual, np.nan)}
        arrays = [given[s.name].reshape(-1) for s in program.storages if s.cls in ("input", "state")]
        native(arrays, sizes={"batch": batch, "time": time})
        np.testing.assert_allclose(given["c"], a @ b.T + bias + residual, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("columns", "groups"), [("time", 0), ("time*rows", 1)])
def test_few_panels_of_named_lanes_are_one_group(columns: str, groups: int):
    """At most 10 panels pass by each block of rows, all of them; 5,625 in groups, so that one stays in a cache."""
    program = schedule_program(single(sized_product(20, columns, 24)), target_named("avx512"))
    loops = [s.axis.name for s, _ in walk(program.kernels[0].body) if isinstance(s, Loop)]
    assert sum(name.startswith("g_") for name in loops) == groups
    dims = dims_of_kernel(program.kernels[0])
    sizes = [{"time": time, "rows": 2} for time in (1, 33, 129)]
    sizes = [{name: given[name] for name in dims} for given in sizes]
    check_schedule(sized_product(20, columns, 24), target_named("avx512"), sizes)


def code_of(rows: str, columns: int, depth: int, after: str = STORE) -> tuple[list[list[str]], int]:
    """The instructions of the innermost loops of a linear layer for AVX-512, and the bytes of its object file."""
    program, target = single(sized_product(rows, columns, depth, TRANSPOSED_B, after)), target_named("avx512")
    storages = tuple(replace(s, cls="weight") if s.name in ("b", "bias") else s for s in program.storages)
    storages = tuple(sorted(storages, key=lambda s: STORAGE.index(s.cls)))
    result = schedule(replace(program, storages=storages), Context(Forms(target)))[0]
    text = emit_program(result.program, target, result.execution)
    loops = innermost_loops(emit_assembly(text, target).splitlines())
    return [[line for line in loop if line.startswith("\t")] for loop in loops], len(build_object(text, target))


@pytest.mark.parametrize(("columns", "depth"), [(1536, 384), (384, 1536)])
@pytest.mark.parametrize("after", [STORE, RESIDUAL, GELU], ids=["plain", "residual", "gelu"])
def test_the_inner_loop_of_a_linear_layer_with_named_rows_is_that_of_known_rows(columns: int, depth: int, after: str):
    """Blocks of 8 rows, which 16 rows have too: the same instructions, and at most four for the place of a prefetch,
    which depends on the number of rows. No sum lies on the stack."""
    known, _ = code_of("16", columns, depth, after)
    _, bytes_known = code_of("125", columns, depth, after)
    named, bytes_named = code_of("batch*time", columns, depth, after)
    (block, *_), hot = ([x for x in loops if sum("fmadd" in s for s in x) == 16] for loops in (known, named))
    assert hot and all(_vector_mnemonics(loop) == _vector_mnemonics(block) for loop in hot)
    assert all(len(loop) <= len(block) + 4 for loop in hot)
    assert not any("%rsp" in line for loop in hot for line in loop)
    sums = [loop for loop in named if any("vbroadcastss" in line for line in loop)]
    assert len(sums) > len(hot) and not any("%rsp" in line and "%zmm" in line for loop in sums for line in loop)
    assert bytes_named <= 2 * bytes_known


def _vector_mnemonics(loop: list[str]) -> list[str]:
    return sorted(line.split()[0] for line in loop if line.startswith("\tv"))
