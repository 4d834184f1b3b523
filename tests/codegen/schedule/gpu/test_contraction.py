"""Tiled contractions add the same products in the same order as the kernels that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import graphc as gc
import graphc.nn.functional as F
from graphc.codegen.machine.cuda.costs import TILES as COSTS
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.gpu.contraction import (
    TILES,
    Tile,
    choose_tile,
    describe_tiles,
    split_terms,
    tile_contraction,
)
from graphc.codegen.schedule.gpu.sum_of_products import find_sum_of_products
from graphc.compiler.stages import Stages
from graphc.ir.kernel.dims import dims_of_kernel
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Loop, walk
from graphc.ir.kernel.verify import verify_kernel
from tests.codegen.kernel_native import kernel_of, random_memory
from tests.codegen.products import plain, transposed_a, transposed_b
from tests.codegen.sized import check_sizes
from tests.codegen.sized_products import PLAIN, RESIDUAL, TRANSPOSED_A, TRANSPOSED_B, sized_product


def tiled(kernel: Kernel) -> Kernel | None:
    tiled_kernel = tile_contraction(kernel, host_target(), Names("t"))
    if tiled_kernel is not None:
        verify_kernel(tiled_kernel)
        assert tiled_kernel.threads and tiled_kernel.threads % 32 == 0
    return tiled_kernel


def check_tiled(kernel: Kernel) -> Kernel:
    tiled_kernel = tiled(kernel)
    assert tiled_kernel is not None, kernel.name
    expected = random_memory(kernel)
    memory = {name: array.copy() for name, array in expected.items()}
    run_kernel(kernel, expected)
    run_kernel(tiled_kernel, memory)
    for name, array in expected.items():
        np.testing.assert_array_equal(memory[name], array, err_msg=name)
    return tiled_kernel


def sums_of(function: Callable, *operands) -> list[Kernel]:
    """The lowered kernels of a function that sum."""
    program = Stages(traced=gc.trace(function, *operands)).lowered
    return [k for k in program.kernels if any(isinstance(s, Loop) and s.kind == "reduce" for s, _ in walk(k.body))]


def numbers(*shape: int, dtype: str = "f32") -> gc.Tensor:
    return gc.zeros(*shape, dtype=getattr(gc, {"f32": "float32", "f64": "float64"}[dtype]))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (33, 21, 19), (5, 70, 3), (100, 4, 17)])
@pytest.mark.parametrize("form", [plain, transposed_a, transposed_b])
def test_products(form: Callable, m: int, n: int, k: int, dtype: str) -> None:
    check_tiled(form(m, n, k, dtype))


@pytest.mark.parametrize("stored", ["f16", "bf16"])
def test_narrow_factors_are_converted_when_they_are_shared(stored: str) -> None:
    tiled_kernel = check_tiled(transposed_b(20, 36, 40, stored=stored))
    assert [str(b.dtype) for b in tiled_kernel.buffers if b.role == "shared"] == ["f32", "f32"]


def functions() -> dict[str, tuple[Callable, Sequence]]:
    t = numbers
    return {
        "bias and relu": (lambda x, w, b: F.relu(x @ w + b), (t(40, 30), t(30, 24), t(24))),
        "residual": (lambda x, w, r: F.gelu(x @ w, approximate="tanh") + r, (t(40, 30), t(30, 24), t(40, 24))),
        "transposed": (lambda x, w: (x.T @ w.T).T * 2, (t(30, 40), t(24, 30))),
        "batched": (lambda x, w: x @ w, (t(2, 3, 17, 9), t(2, 3, 9, 33))),
        "batched over one": (lambda x, w: x @ w, (t(4, 17, 9), t(9, 33))),
        "heads": (lambda q, k: q.transpose(1, 2) @ k.permute(0, 2, 3, 1), (t(2, 20, 3, 8), t(2, 21, 3, 8))),
        "every other row": (lambda x, w: x[::2] @ w[:, ::3], (t(40, 30), t(30, 60))),
        "f64": (lambda x, w: x @ w, (t(40, 30, dtype="f64"), t(30, 24, dtype="f64"))),
        "conv": (lambda x, w: F.conv2d(x, w), (t(2, 3, 9, 9), t(5, 3, 3, 3))),
        "strided conv": (lambda x, w, b: F.relu(F.conv2d(x, w, b, 2, 1)), (t(1, 3, 11, 11), t(8, 3, 3, 3), t(8))),
        "dilated conv": (lambda x, w: F.conv2d(x, w, dilation=2, padding=2), (t(1, 3, 9, 9), t(8, 3, 3, 3))),
        "grouped conv": (lambda x, w: F.conv2d(x, w, padding=1, groups=2), (t(2, 6, 7, 7), t(8, 3, 3, 3))),
        "conv of a line": (lambda x, w: F.conv1d(x, w, padding=2), (t(2, 6, 30), t(8, 6, 5))),
        "pointwise conv": (lambda x, w: F.conv2d(x, w), (t(2, 16, 6, 6), t(20, 16, 1, 1))),
    }


@pytest.mark.parametrize("name", functions())
def test_sums_of_products_in_programs(name: str) -> None:
    function, operands = functions()[name]
    (kernel,) = sums_of(function, *operands)
    check_tiled(kernel)


def test_gradients_of_a_convolution() -> None:
    x, w = numbers(2, 4, 9, 9), numbers(8, 4, 3, 3)
    x.requires_grad_()
    w.requires_grad_()

    def gradients(x, w):
        y = F.conv2d(x, w, padding=1, stride=2)
        return gc.autograd.grad((y * y).sum(), (x, w))

    kernels = sums_of(gradients, x, w)
    assert len(kernels) == 3
    for kernel in kernels:
        check_tiled(kernel)


def test_other_sums_are_left() -> None:
    assert [tiled(k) for k in sums_of(lambda x: x.sum(1), numbers(40, 30))] == [None]
    assert [tiled(k) for k in sums_of(lambda x, w: x @ w, numbers(40), numbers(40, 30))] == [None]
    assert [tiled(k) for k in sums_of(lambda x, y: (x * y).sum(1), numbers(40, 30), numbers(40, 30))] == [None]


def test_factors_may_be_computed() -> None:
    kernel = kernel_of("""
        kernel @k(%a: f32[1200] in, %n: i64[40] in, %b: f32[600] in, %c: f32[800] out) {
          for i in 40 parallel {
            for j in 20 parallel {
              acc s: f32 = add f32(0.0)
              for l in 30 reduce {
                m: i64 = load %n[i]
                u: f32 = load %a[30*[m:0..39] + l]
                x: f32 = exp(u)
                v: f32 = load %b[20*l + j] if 1 <= l < 29 else f32(2.0)
                y: f32 = neg(v)
                p: f32 = mul(y, x)
                update s with p
              }
              r = read s
              store %c[20*i + j] = r
            }
          }
        }""")
    tiled_kernel = tiled(kernel)
    assert tiled_kernel is not None
    expected = random_memory(kernel)
    expected["n"] = np.random.default_rng(1).permutation(40)
    memory = {name: array.copy() for name, array in expected.items()}
    run_kernel(kernel, expected)
    run_kernel(tiled_kernel, memory)
    np.testing.assert_array_equal(memory["c"], expected["c"])


@pytest.mark.parametrize("dims", [PLAIN, TRANSPOSED_A, TRANSPOSED_B])
@pytest.mark.parametrize(("m", "n", "k"), [("rows", 40, 24), ("rows", 24, "time"), ("batch*rows", "time", 24)])
def test_named_dimensions(m, n, k, dims) -> None:
    kernel = sized_product(m, n, k, dims, RESIDUAL)
    tiled_kernel = tiled(kernel)
    assert tiled_kernel is not None
    sizes_of_calls = [{"batch": 2, "rows": 3, "time": 17}, {"batch": 1, "rows": 33, "time": 32}]
    dims_in_kernel = dims_of_kernel(kernel)
    check_sizes(
        kernel, tiled_kernel, [{d: n for d, n in sizes.items() if d in dims_in_kernel} for sizes in sizes_of_calls]
    )


@pytest.mark.parametrize("form", [plain, transposed_a, transposed_b])
@pytest.mark.parametrize("terms", [1024, 1031])
def test_long_sums_are_cut_and_added_in_order(form: Callable, terms: int) -> None:
    kernel = form(16, 18, terms)
    kernels = split_terms(kernel, host_target(), Names("t"), "sums")
    assert kernels is not None
    first, second = kernels
    for kernel_of_split in kernels:
        verify_kernel(kernel_of_split)
    assert first.threads and not second.threads and second.name == kernel.name
    memory = random_memory(kernel)
    expected = {name: array.copy() for name, array in memory.items()}
    run_kernel(kernel, expected)
    memory["sums"] = np.zeros(first.buffer("sums").size, np.float32)
    run_kernel(first, {b.name: memory[b.name] for b in first.arguments})
    run_kernel(second, {b.name: memory[b.name] for b in second.arguments})
    np.testing.assert_allclose(memory["c"], expected["c"], rtol=1e-5, atol=1e-3)


def test_short_sums_are_not_cut() -> None:
    assert split_terms(plain(64, 64, 200), host_target(), Names("t"), "sums") is None
    assert split_terms(plain(2000, 2000, 1000), host_target(), Names("t"), "sums") is None


def test_what_is_said_of_tiles() -> None:
    tiled_kernel = tiled(plain(4096, 4096, 64))
    assert tiled_kernel is not None
    words = "tiles of both factors in 16896 bytes of shared memory, 64 results for each of 256 threads"
    assert describe_tiles(tiled_kernel) == words


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_tile_is_whole(tile: Tile) -> None:
    assert tile.threads % 32 == 0 and tile.threads <= 1024
    for size, own in ((tile.rows, tile.own_rows), (tile.columns, tile.own_columns)):
        assert size % own == 0
        assert size * tile.depth % tile.threads == 0


def chosen(m: int, n: int, k: int, dtype: str = "f32") -> Tile | None:
    found = find_sum_of_products(plain(m, n, k, dtype), Names("p"))
    assert found is not None
    chosen = choose_tile(found, m, n, COSTS)
    assert chosen is None or chosen[1] == 1
    return chosen and chosen[0]


def test_large_results_have_large_tiles() -> None:
    large, small = chosen(4096, 4096, 64), chosen(64, 64, 64)
    assert large is not None and small is not None
    assert large.owned == 64 and small.rows * small.columns < 64 * 64


def test_wide_numbers_take_registers() -> None:
    tile = chosen(4096, 4096, 64, "f64")
    assert tile is not None and tile.owned <= COSTS.wide_owned


def test_few_rows_have_none() -> None:
    assert chosen(3, 4096, 64) is None
    assert chosen(8, 8, 64) is None


def test_long_sums_with_few_results_are_cut() -> None:
    found = find_sum_of_products(plain(64, 64, 1 << 16), Names("p"))
    assert found is not None
    chosen = choose_tile(found, 64, 64, COSTS, COSTS.most_parts)
    assert chosen is not None and chosen[1] > 8
    short = find_sum_of_products(plain(64, 64, 300), Names("p"))
    assert short is not None
    assert choose_tile(short, 64, 64, COSTS, COSTS.most_parts) == choose_tile(short, 64, 64, COSTS)
