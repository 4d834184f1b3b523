"""Horizontal fusion of loops: which reductions become one, which may not, and that the numbers stay the same."""

from __future__ import annotations

from dataclasses import replace

from graphc.ir.kernel.statements import Kernel, Load, Loop, walk
from graphc.lowering.horizontal_loops import fuse_loops
from tests.codegen.kernel_native import check_equivalent, kernel_of


def merged(text: str) -> Kernel:
    kernel = kernel_of(text)
    only = kernel.body[0]
    if isinstance(only, Loop) and only.kind == "parallel":
        result = replace(kernel, body=(replace(only, body=fuse_loops(only.body)),))
    else:
        result = replace(kernel, body=fuse_loops(kernel.body))
    check_equivalent(kernel, result)
    return result


def reductions(kernel: Kernel) -> int:
    return sum(isinstance(s, Loop) and s.kind == "reduce" for s, _ in walk(kernel.body))


def loads(kernel: Kernel) -> int:
    return sum(isinstance(s, Load) for s, _ in walk(kernel.body))


def two_sums(first: str, second: str, between: str = "", extent: int = 5) -> str:
    return f"""
        kernel @k(%x: f32[20] in, %g: f32[20] in, %s: f32[4] out, %t: f32[4] out) {{
          for i in 4 parallel {{
            acc a: f32 = add f32(0.0)
            for j in 5 reduce {{
              p: f32 = load %x[5*i + j]
              {first}
            }}
            m = read a
            {between}
            acc b: f32 = add f32(0.0)
            for k in {extent} reduce {{
              q: f32 = load %x[5*i + k]
              {second}
            }}
            n = read b
            store %s[i] = m
            store %t[i] = n
          }}
        }}"""


def test_independent_sums_share_their_loop_and_what_they_read():
    kernel = merged(two_sums("update a with p", "w: f32 = mul(q, q)\nupdate b with w"))
    assert reductions(kernel) == 1 and loads(kernel) == 1


def test_scalars_that_the_second_needs_move_ahead():
    kernel = merged(two_sums("update a with p", "w: f32 = mul(q, h)\nupdate b with w", "h: f32 = load %g[i]"))
    assert reductions(kernel) == 1


def test_a_sum_that_needs_the_other_stays():
    assert reductions(merged(two_sums("update a with p", "w: f32 = mul(q, m)\nupdate b with w"))) == 2


def test_another_extent_stays():
    assert reductions(merged(two_sums("update a with p", "update b with q", extent=4))) == 2


def test_a_third_sum_moves_past_one_that_needs_the_first():
    kernel = merged("""
        kernel @k(%x: f32[20] in, %s: f32[4] out, %t: f32[4] out) {
          for i in 4 parallel {
            acc a: f32 = add f32(0.0)
            for j in 5 reduce {
              p: f32 = load %x[5*i + j]
              update a with p
            }
            m = read a
            acc b: f32 = add f32(0.0)
            for k in 5 reduce {
              q: f32 = load %x[5*i + k]
              w: f32 = mul(q, m)
              update b with w
            }
            n = read b
            acc c: f32 = max f32(-100.0)
            for l in 5 reduce {
              r: f32 = load %x[5*i + l]
              update c with r
            }
            o = read c
            u: f32 = add(n, o)
            store %s[i] = m
            store %t[i] = u
          }
        }""")
    assert reductions(kernel) == 2


def test_a_row_that_the_first_writes_is_taken_from_it():
    kernel = merged("""
        kernel @k(%x: f32[20] in, %s: f32[4] out, %t: f32[4] out, %row: f32[5] scratch) {
          for i in 4 parallel {
            acc a: f32 = add f32(0.0)
            for j in 5 reduce {
              p: f32 = load %x[5*i + j]
              e: f32 = mul(p, p)
              store %row[j] = e
              update a with e
            }
            m = read a
            acc b: f32 = max f32(-100.0)
            for k in 5 reduce {
              q: f32 = load %row[k]
              update b with q
            }
            n = read b
            store %s[i] = m
            store %t[i] = n
          }
        }""")
    assert reductions(kernel) == 1 and loads(kernel) == 1


def test_a_row_read_at_another_element_keeps_the_loops_apart():
    kernel = merged("""
        kernel @k(%x: f32[20] in, %s: f32[4] out, %t: f32[4] out, %row: f32[5] scratch) {
          for i in 4 parallel {
            acc a: f32 = add f32(0.0)
            for j in 5 reduce {
              p: f32 = load %x[5*i + j]
              store %row[j] = p
              update a with p
            }
            m = read a
            acc b: f32 = add f32(0.0)
            for k in 5 reduce {
              q: f32 = load %row[-1*k + 4]
              update b with q
            }
            n = read b
            store %s[i] = m
            store %t[i] = n
          }
        }""")
    assert reductions(kernel) == 2


def test_nests_of_several_loops():
    kernel = merged("""
        kernel @k(%x: f32[24] in, %s: f32[2] out) {
          acc a: f32 = add f32(0.0)
          for i in 4 reduce {
            for j in 6 reduce {
              p: f32 = load %x[6*i + j]
              update a with p
            }
          }
          m = read a
          acc b: f32 = max f32(-100.0)
          for k in 4 reduce {
            for l in 6 reduce {
              q: f32 = load %x[6*k + l]
              update b with q
            }
          }
          n = read b
          store %s[0] = m
          store %s[1] = n
        }""")
    assert reductions(kernel) == 2 and loads(kernel) == 1


def test_loops_that_hold_further_loops_beside_other_statements_stay_apart():
    kernel = merged("""
        kernel @k(%x: f32[15] in, %s: f32[2] out) {
          acc a: f32 = add f32(0.0)
          for i in 3 reduce {
            for j in 4 reduce {
              acc inner: f32 = add f32(0.0)
              for w in 2 reduce {
                p: f32 = load %x[5*i + j + w]
                update inner with p
              }
              q = read inner
              update a with q
            }
          }
          m = read a
          acc b: f32 = add f32(0.0)
          for k in 3 reduce {
            acc other: f32 = max f32(-100.0)
            for l in 5 reduce {
              r: f32 = load %x[5*k + l]
              update other with r
            }
            t = read other
            update b with t
          }
          n = read b
          store %s[0] = m
          store %s[1] = n
        }""")
    assert reductions(kernel) == 5
