"""Contractions with named rows, lanes and depths: scheduled once, right at every size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.ir.kernel.dims import dims_of_kernel
from graphc.ir.kernel.statements import STORAGE, Kernel
from graphc.ir.kernel.text import print_kernel
from tests.codegen.kernel_native import kernel_of
from tests.codegen.sized import check_schedule, single
from tests.codegen.sized_products import (
    GELU,
    MIXED,
    RESIDUAL,
    SCORES,
    STORE_TRANSPOSED,
    TRANSPOSED_A,
    TRANSPOSED_B,
    convolution,
    sized_product,
)

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
    found = [1, 2, 3, 7, 11, 12, 13, lanes - 1, lanes + 1, 2 * lanes + 1, 3 * lanes]
    found = [1, 2, 7, lanes + 1] if others else found
    return [{first: n, **dict.fromkeys(others, 1 + i % 3)} for i, n in enumerate(found)]


@pytest.mark.parametrize("target", ["avx512", "avx2", "neon"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_product_is_right_at_every_size(name: str, target: str):
    kernel = KERNELS[name]()
    check_schedule(kernel, target_named(target), sizes_for(kernel, target))


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
