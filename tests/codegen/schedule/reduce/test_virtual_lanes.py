"""Virtual lanes: one written order of long sums, which interpreter and vectors of every width follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.codegen.machine.target import in_strict_order
from graphc.codegen.schedule.reduce.virtual_lanes import FEWEST_TERMS, LANES, canonical_sums
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Loop, Program
from graphc.ir.kernel.verify import verify_program
from tests.native import TARGETS, Native, lowered, scheduled, target_or_skip
from tests.passes.graph_text import graph_of


def program(body: str) -> Program:
    result = canonical_sums(lowered(graph_of(body)))
    verify_program(result)
    return result


def total(terms: int, kind: str = "f32", op: str = "sum") -> Program:
    return program(f"""
        graph @g(%x: {kind}[3,{terms}]) -> ({kind}[3]) {{
          %y = {op}(%x) {{axes=[1], keepdims=false}} : {kind}[3]
          return %y
        }}""")


def has_lanes(result: Program) -> bool:
    return any(b.name.startswith("lanes") for k in result.kernels for b in k.buffers)


def in_lanes(x: np.ndarray) -> np.ndarray:
    """Return the sums of rows in the documented order."""
    lanes = np.zeros((len(x), LANES), x.dtype)
    for start in range(0, x.shape[1], LANES):
        terms = x[:, start : start + LANES]
        lanes[:, : terms.shape[1]] += terms
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]


@pytest.mark.parametrize("terms", [FEWEST_TERMS, 65, 95, 96, 127, 1000])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_a_sum_has_the_documented_order(terms: int, kind: str):
    x = np.random.default_rng(terms).standard_normal((3, terms)).astype("f4" if kind == "f32" else "f8")
    (result,) = run_program(total(terms, kind), [x])
    assert result.tobytes() == in_lanes(x).tobytes()


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("terms", [64, 99, 300])
@pytest.mark.parametrize("op", ["sum", "max", "prod"])
def test_native_code_follows_it(name: str, terms: int, op: str):
    target = in_strict_order(target_or_skip(name))
    x = np.random.default_rng(terms).standard_normal((3, terms)).astype(np.float32)
    strict = total(terms, op=op)
    native = Native(scheduled(strict, target), target)
    assert native([x])[0].tobytes() == run_program(strict, [x])[0].tobytes()


def test_short_sums_and_sums_of_integers_have_no_lanes():
    assert has_lanes(total(FEWEST_TERMS))
    assert not has_lanes(total(FEWEST_TERMS - 1))
    assert not has_lanes(total(500, "i64"))


def test_columns_are_summed_across_results():
    columns = program("""
        graph @g(%x: f32[500,40]) -> (f32[40]) {
          %y = sum(%x) {axes=[0], keepdims=false} : f32[40]
          return %y
        }""")
    assert not has_lanes(columns)


@pytest.mark.parametrize(
    ("left", "right", "results", "lanes"),
    [("4,300", "300,5", "4,5", False), ("4,300", "4,300", "4", True), ("4,300", "300", "4", True)],
)
def test_matrix_products_have_no_lanes(left: str, right: str, results: str, lanes: bool):
    if results == "4,5":
        body = f"%y = matmul(%a, %b) : f32[{results}]"
    else:
        body = f"""%p = mul(%a, %b) : f32[{left}]
          %y = sum(%p) {{axes=[1], keepdims=false}} : f32[{results}]"""
        right = left if right == "4,300" else "1,300"
    result = program(f"""
        graph @g(%a: f32[{left}], %b: f32[{right}]) -> (f32[{results}]) {{
          {body}
          return %y
        }}""")
    assert has_lanes(result) == lanes


def test_a_vector_times_weights_has_no_lanes():
    def product(kind: str) -> Program:
        return program(f"""
            graph @g(%x: f32[1,300], %w: f32[40,300]{kind}) -> (f32[1,40]) {{
              %y = matmul(%x, %w) {{transpose_b=true}} : f32[1,40]
              return %y
            }}""")

    assert not has_lanes(product(' param "w"'))
    assert has_lanes(product(""))


def test_long_sums_are_split_into_segments_that_depend_on_sizes_alone():
    strict = total(1 << 19)
    segments = strict.kernels[0].body[0]
    assert len(strict.kernels) == 2 and has_lanes(strict)
    assert isinstance(segments, Loop) and segments.kind == "parallel" and segments.axis.extent > 1


@pytest.mark.parametrize("size", [1, 31, 32, 64, 70, 200])
def test_sums_of_sizes_that_calls_decide(size: int):
    dim = gc.Dim("n", min=1, max=400)
    calls: list[Any] = [
        gc.compile(lambda x: x.softmax(1), dims=[(None, dim)], strict_order=True, target=target)
        for target in ("sse2", "host")
    ]
    x = gc.tensor(np.random.default_rng(size).standard_normal((2, size)).astype(np.float32))
    first, second = (call(x).numpy() for call in calls)
    assert first.tobytes() == second.tobytes()
    np.testing.assert_allclose(first, gc.softmax(x, 1).numpy(), rtol=1e-5, atol=1e-7)
