"""Nests of a program: register blocks with packed operands, each with its reason, in an equivalent program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.target import Target, host_target, target_named
from graphc.codegen.schedule.base import Context, Nest, Scheduled
from graphc.codegen.schedule.estimate.cost import StatementCounts
from graphc.codegen.schedule.expansion.expand import expand
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.nests import Nests, Version, with_least_version
from graphc.codegen.schedule.steps import run_steps
from graphc.codegen.schedule.threads.chunks import chunk_kernel
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.dims import bind_kernel
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import STORAGE, Kernel, Loop, Program, Storage
from graphc.ir.kernel.verify import verify_program
from tests.codegen.chunks import Chunks
from tests.codegen.kernel_native import check_equivalent, kernel_of, random_array, single
from tests.codegen.sized import around, check_schedule
from tests.codegen.sized_products import DIMS, STORE_TRANSPOSED, sized_product
from tests.native import lowered, priced
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

LINEAR = graph_of("""
    graph @linear(%x: f32[64,24], %w: f32[40,24]) -> (f32[64,40]) {
      %y = matmul(%x, %w) {transpose_a=false, transpose_b=true} : f32[64,40]
      return %y
    }""")


def test_a_product_is_packed_for_its_register_block():
    program = lowered(LINEAR)
    result = Nests().run(Scheduled(program), Context(Forms(target_named("avx512"))))
    made = result.scheduled.program
    verify_program(made)
    assert [c.kernel for c in made.calls] == [f"{program.calls[0].kernel}_pack", program.calls[0].kernel]
    assert result.changed == 4
    assert result.reasons[0].startswith(f"{program.calls[0].kernel}: register block ")
    arguments = random_arguments(LINEAR)
    for got, wanted in zip(run_program(made, arguments), run_program(program, arguments), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


BATCH_LAST = ("({m})*l + i", "({k})*j + l")
"""Rows of images side by side, so that these lie across lanes."""
POOL = f"""{DIMS}
        kernel @k(%x: f32[400*batch] in, %y: f32[100*batch] out) {{
          for c in 100 parallel {{
            for n in batch parallel {{
              acc m: f32 = max f32(-inf)
              for k in 4 reduce {{
                x: f32 = load %x[4*batch*c + batch*k + n]
                update m with x
              }}
              r = read m
              store %y[batch*c + n] = r
            }}
          }}
        }}"""
TURNED = f"""{DIMS}
        kernel @k(%x: f32[480*batch] in, %y: f32[480*batch] out) {{
          for c in 480 parallel {{
            for n in batch parallel {{
              x: f32 = load %x[480*n + c]
              y: f32 = mul(x, f32(2.0))
              store %y[batch*c + n] = y
            }}
          }}
        }}"""


def of_many(kernel: Kernel) -> Kernel:
    """The kernel that expects as many images as make several vectors."""
    return bind_kernel(kernel, {"batch": gc.Dim("batch", 1, 64, hint=64)})


KERNELS = {
    "windows": lambda: kernel_of(POOL),
    "transpose": lambda: kernel_of(TURNED),
    "product": lambda: of_many(sized_product("batch", 50, 96, BATCH_LAST, STORE_TRANSPOSED)),
    "product, narrow weights": lambda: of_many(sized_product("batch", 50, 96, BATCH_LAST, STORE_TRANSPOSED, "bf16")),
    "steps": lambda: kernel_of(
        POOL.replace("400*batch", "12*time*batch").replace("100*batch", "3*time*batch").replace("in 100", "in 3*time")
    ),
}
CONSTANT = frozenset({"b"})


def version_of(kernel: Kernel, target: Target, constants: frozenset[str] = CONSTANT) -> Version | None:
    context = Context(Forms(target))
    nest, _ = run_steps(Nest(kernel, Names(), constants), context)
    return with_least_version(kernel, nest, context)


def with_weights(kernel: Kernel) -> Program:
    """The program of a product whose second operand is a constant, as products of frozen models have them."""
    program = single(kernel)
    position = [b.name for b in kernel.arguments].index("b")
    name = program.calls[0].args[position]

    def constant(s: Storage) -> Storage:
        data = random_array(kernel.buffer("b"), 1)
        return replace(s, cls="constant", path="", data=data) if s.name == name else s

    storages = sorted(map(constant, program.storages), key=lambda s: STORAGE.index(s.cls))
    return replace(program, storages=tuple(storages))


@pytest.mark.parametrize("target", ["avx512", "avx2", "neon"])
@pytest.mark.parametrize("name", KERNELS)
def test_one_image_has_a_version_of_its_own(name: str, target: str):
    version = version_of(KERNELS[name](), target_named(target))
    assert version is not None and version.kernel.versions == 2
    assert version.reason.startswith("a version of its own for batch = 1, there ")


@pytest.mark.parametrize("name", KERNELS)
def test_the_version_of_one_image_runs_for_one_image_only(name: str):
    version = version_of(KERNELS[name](), target_named("avx512"))
    assert version is not None
    least, rest = version.kernel.body
    assert isinstance(least, Loop) and isinstance(rest, Loop)
    for batch in (1, 2, 3, 63, 64):
        (loop,) = bind_kernel(version.kernel, {"batch": batch}).body
        assert isinstance(loop, Loop) and loop.kind == "version"
        assert loop.axis.name == (least if batch == 1 else rest).axis.name


@pytest.mark.sampled(50)
@pytest.mark.parametrize("target", ["avx512", "avx2", "neon"])
@pytest.mark.parametrize("name", KERNELS)
def test_versions_are_right_at_every_size(name: str, target: str):
    machine, kernel = target_named(target), KERNELS[name]()
    sizes = [{"batch": n, "time": 1 + n % 4} for n in around(machine) if n <= 64]
    sizes = sizes if name == "steps" else [{"batch": s["batch"]} for s in sizes]
    program = with_weights(kernel) if name.startswith("product") else single(kernel)
    after = check_schedule(program, machine, sizes)
    assert any(k.versions == 2 for k in after.kernels)


@pytest.mark.parametrize("name", ["windows", "product"])
def test_threads_share_every_version(name: str):
    version = version_of(KERNELS[name](), host_target())
    assert version is not None
    kernel = expand(version.kernel)
    chunking = chunk_kernel(kernel, StatementCounts(), DEFAULT.threads)
    assert chunking is not None
    inside = [s.axis for loop in kernel.body if isinstance(loop, Loop) for s in loop.body if isinstance(s, Loop)]
    assert all(
        any(a in chunking.shares for a in (loop.axis, *inside)) for loop in kernel.body if isinstance(loop, Loop)
    )
    for batch in (1, 2, 33):
        sizes = {"batch": batch}
        arrays = [random_array(b, i) for i, b in enumerate(bind_kernel(kernel, sizes).arguments)]
        expected = [a.copy() for a in arrays]
        Chunks(kernel, None, host_target()).run(expected, sizes=sizes)
        parts = Chunks(kernel, chunking, host_target())
        for chunks in (1, 2, 7):
            got = [a.copy() for a in arrays]
            parts.run(got, reversed(range(chunks)), chunks, sizes)
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"{batch} in {chunks} chunks")


def test_a_version_is_shared_as_evenly_as_a_kernel():
    """The version that is not expected is opened too: its loops are handed out, not it as a whole."""
    version = version_of(KERNELS["windows"](), target_named("avx512"))
    assert version is not None
    chunking = chunk_kernel(version.kernel, StatementCounts(), DEFAULT.threads)
    assert chunking is not None
    least = version.kernel.body[0]
    assert isinstance(least, Loop) and not chunking.shares[least.axis].whole
    assert any(isinstance(s, Loop) and s.axis in chunking.shares for s in least.body)


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (lambda: sized_product("rows", 48, 24), "lanes are columns"),
        (lambda: kernel_of(POOL.replace("1..64 hint 8", "32..64 hint 40")), "the fewest fill a register"),
        (lambda: kernel_of(POOL.replace("1..64 hint 8", "0..64 hint 8")), "there may be none"),
        (lambda: kernel_of(POOL.replace("1..64 hint 8", "1..64 hint 1")), "one is expected"),
    ],
)
def test_other_kernels_have_one_nest(kernel: Any, why: str):
    assert version_of(kernel(), target_named("avx512")) is None, why


def test_no_version_reads_many_more_weights():
    kernel, wide = KERNELS["product"](), target_named("avx512")
    assert version_of(kernel, priced(wide, lanes={"version_weights": 0})) is None
    with_dims, unknown = version_of(kernel, wide), version_of(kernel, wide, frozenset())
    assert with_dims is not None and with_dims.packing is not None
    assert unknown is not None and unknown.packing is None


def test_a_least_size_that_leaves_nothing_to_compute_has_no_version():
    text = POOL.replace("hint 8", "hint 64").replace("in batch p", "in batch - 1 p")
    assert version_of(kernel_of(text), priced(target_named("avx512"), lanes={"version_saved": 0})) is None


def test_a_version_has_to_gain():
    for costs in ({"version_gain": 100}, {"version_saved": 1e6}):
        assert version_of(KERNELS["windows"](), priced(target_named("avx512"), lanes=costs)) is None


def test_both_versions_mean_the_same():
    kernel = KERNELS["windows"]()
    version = version_of(kernel, target_named("sse2"))
    assert version is not None
    for batch in (1, 2, 5):
        check_equivalent(bind_kernel(kernel, {"batch": batch}), bind_kernel(version.kernel, {"batch": batch}))


def test_a_size_over_which_all_loops_are_gone_needs_no_version():
    graph = parse_graph("""
        dim rows = 2..2147483647 hint 3
        graph @main(%x: f32[rows,0]) -> (f32[]) {
          %y = sum(%x) {axes=[0,1]} : f32[]
          return %y
        }""")
    (result,) = load_compiled(compile_graph(graph))(np.zeros((5, 0), np.float32))
    assert result == 0
