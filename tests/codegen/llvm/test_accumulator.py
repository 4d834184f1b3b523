"""Accumulators: neutral elements, registers per copy and lane, initial values counted once, partial vectors."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import DType, bool_, float32, float64, int8, int32, int64, uint8
from graphc.codegen.llvm.accumulator import analyse, next_power_of_two
from graphc.codegen.machine.target import Target, in_strict_order
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import COMBINES, Loop, identity
from tests.codegen.kernel_native import check_native, kernel_of, native
from tests.native import TARGETS, target_or_skip


@pytest.mark.parametrize("dtype", [float32, float64, int8, uint8, int32, int64, bool_])
@pytest.mark.parametrize("combine", [c for c in COMBINES if c != "last"])  # it keeps no earlier value
def test_identities_are_neutral(combine: str, dtype: DType):
    if dtype.kind == "f" and combine in ("and", "or"):
        return
    neutral = np.asarray(identity(combine, dtype).value, dtype.numpy)
    op = {"add": "or", "mul": "and"}.get(combine, combine) if dtype.kind == "b" else combine
    for value in (0, 1, 5, 100):
        x = np.asarray(value).astype(dtype.numpy)
        assert SCALAR_OPS[op].reference(neutral, x) == x


def test_powers_of_two():
    assert [next_power_of_two(n) for n in (1, 2, 3, 4, 5, 16, 17)] == [1, 2, 4, 4, 8, 16, 32]


def text(copies: int, lanes: int, rest: int, combine: str, init: str) -> str:
    """A reduction in copies and lanes with a rest of fewer lanes, from an initial value."""
    n = copies * lanes * 2 + rest
    return f"""
        kernel @k(%x: f32[{n}] in, %y: f32[1] out) {{
          acc a: f32 = {combine} f32({init})
          for i in 2 reduce {{
            for u in {copies} unroll {{
              for l in {lanes} vector {{
                v: f32 = load %x[{copies * lanes}*i + {lanes}*u + l]
                update a with v
              }}
            }}
          }}
          for r in {rest} vector {{
            w: f32 = load %x[r + {copies * lanes * 2}]
            update a with w
          }}
          s = read a
          store %y[0] = s
        }}"""


@pytest.mark.parametrize("combine,init", [("add", "3.0"), ("max", "0.5"), ("min", "-0.5"), ("mul", "2.0")])
@pytest.mark.parametrize("copies,lanes,rest", [(2, 4, 3), (3, 8, 5), (1, 4, 1), (4, 2, 2), (2, 3, 1)])
def test_the_initial_value_counts_once(copies: int, lanes: int, rest: int, combine: str, init: str, machine: Target):
    check_native(kernel_of(text(copies, lanes, rest, combine, init)), machine)


@pytest.mark.parametrize("combine", ["add", "mul"])
@pytest.mark.parametrize("copies,lanes", [(1, 2), (2, 4), (3, 8)])
def test_terms_outside_of_lanes_count_once(copies: int, lanes: int, combine: str):
    """Before, after and between lanes, also as products that are fused with their sum."""
    kernel = kernel_of(f"""
        kernel @k(%x: f32[{copies * lanes}] in, %z: f32[3] in, %y: f32[1] out) {{
          acc a: f32 = {combine} f32(1.5)
          update a with f32(2.0)
          for i in 3 reduce {{
            t: f32 = load %z[i]
            q: f32 = mul(t, t)
            update a with q
            for u in {copies} unroll {{
              update a with t
              for l in {lanes} vector {{
                v: f32 = load %x[{lanes}*u + l]
                update a with v
              }}
            }}
          }}
          update a with f32(3.0)
          s = read a
          store %y[0] = s
        }}""")
    memory = {
        "x": np.linspace(0.9, 1.2, copies * lanes, dtype=np.float32),
        "z": np.array([0.9, 1.1, 1.2], np.float32),
        "y": np.zeros(1, np.float32),
    }
    for name in TARGETS:
        check_native(kernel, target_or_skip(name), memory)


def test_lanes_of_loops_that_share_an_accumulator_are_equal():
    kernel = kernel_of(text(2, 8, 3, "add", "0.0"))
    spreads, lanes = analyse(kernel)
    assert set(lanes.values()) == {8}
    assert (spreads["a"].copies, spreads["a"].lanes) == (2, 8)


def test_an_accumulator_inside_of_lanes_has_one_register_per_copy():
    kernel = kernel_of("""
        kernel @k(%x: f32[48] in, %y: f32[8] out) {
          for u in 2 unroll {
            for l in 4 vector {
              acc a: f32 = add f32(1.0)
              for k in 6 reduce {
                v: f32 = load %x[8*k + 4*u + l]
                update a with v
              }
              s = read a
              store %y[4*u + l] = s
            }
          }
        }""")
    spreads, _ = analyse(kernel)
    assert (spreads["a"].copies, spreads["a"].lanes) == (1, 0)
    for name in TARGETS:
        check_native(kernel, target_or_skip(name))


def test_an_accumulator_read_while_it_runs():
    kernel = kernel_of("""
        kernel @k(%x: f32[9] in, %y: f32[9] out) {
          acc a: f32 = add f32(0.5)
          for i in 9 serial {
            v: f32 = load %x[i]
            update a with v
            s = read a
            store %y[i] = s
          }
        }""")
    assert any(isinstance(s, Loop) for s in kernel.body)
    check_native(kernel, target_or_skip("host"))


@pytest.mark.parametrize("copies,lanes,rest", [(1, 16, 5), (2, 4, 3)])
def test_lanes_are_added_in_the_written_order_where_it_is_strict(copies: int, lanes: int, rest: int, machine: Target):
    """Ones that are added to 1e8 are lost; sums of lanes keep them."""
    kernel = kernel_of(text(copies, lanes, rest, "add", "3.0"))
    terms = np.resize(np.array([1e8, 1, -1e8, 3], np.float32), copies * lanes * 2 + rest)
    memory = {"x": terms, "y": np.zeros(1, np.float32)}
    in_order = np.float32(3.0)
    for term in terms:
        in_order += term
    assert native(kernel, memory, in_strict_order(machine))["y"] == in_order != native(kernel, memory, machine)["y"]
