"""Vectorising: which axis runs across lanes, tails of every width, and equal results for every element type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.schedule.lanes.choose import choose, lanes_of, split_lanes, vectorise
from graphc.codegen.schedule.loops.transform import hoist
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Load, Loop, Store, walk
from tests.codegen.kernel_native import check_equivalent, check_native, kernel_of
from tests.native import target_or_skip

WIDE, NARROW = target_named("avx512"), target_named("sse2")


def vectorised(kernel: Kernel, target: Target) -> Kernel:
    stored = {s.buffer for s, _ in walk(kernel.body) if isinstance(s, Store)}
    names = Names()
    result = replace(kernel, body=vectorise(hoist(kernel.body, stored), target, names))
    check_equivalent(kernel, result)
    return result


def vectors(kernel: Kernel) -> list[int]:
    """Lanes of every vector loop in order."""
    return [s.axis.extent for s, _ in walk(kernel.body) if isinstance(s, Loop) and s.kind == "vector"]


def map_kernel(n: int, dtype: str = "f32") -> Kernel:
    return kernel_of(f"""
        kernel @k(%x: {dtype}[{n}] in, %y: {dtype}[{n}] out) {{
          for i in {n} parallel {{
            v: {dtype} = load %x[i]
            w: {dtype} = add(v, v)
            store %y[i] = w
          }}
        }}""")


# ---- tails


@pytest.mark.parametrize("n,expected", [(16, [16]), (13, [13]), (40, [16, 8]), (216, [16, 16, 8])])
def test_masks_make_one_tail(n: int, expected: list[int]):
    assert vectors(vectorised(map_kernel(n), WIDE)) == expected


@pytest.mark.parametrize("n,expected", [(4, [4]), (7, [4, 2, 1]), (3, [2, 1]), (22, [4, 4, 2])])
def test_without_masks_tails_are_powers_of_two(n: int, expected: list[int]):
    assert vectors(vectorised(map_kernel(n), NARROW)) == expected


@pytest.mark.parametrize("n", [*range(1, 36), 64, 65, 127])
def test_every_length_natively(n: int, machine: Target):
    check_native(vectorised(map_kernel(n), machine), machine)


@pytest.mark.parametrize("dtype", ["f64", "i64", "i32", "i8", "u8"])
@pytest.mark.parametrize("n", [1, 5, 16, 23, 67])
def test_every_element_type_natively(n: int, dtype: str, machine: Target):
    check_native(vectorised(map_kernel(n, dtype), machine), machine)


@pytest.mark.parametrize("n", [1, 5, 16, 23, 67])
def test_bools_natively(n: int, machine: Target):
    kernel = kernel_of(f"""
        kernel @k(%x: bool[{n}] in, %a: f32[{n}] in, %y: bool[{n}] out, %z: f32[{n}] out) {{
          for i in {n} parallel {{
            v: bool = load %x[i]
            a: f32 = load %a[i]
            c: bool = lt(a, f32(0.0))
            w: bool = xor(v, c)
            store %y[i] = w
            s: f32 = select(w, a, f32(9.0))
            store %z[i] = s
          }}
        }}""")
    check_native(vectorised(kernel, machine), machine)


# ---- reductions


def reduction(n: int, combine: str, init: str, dtype: str = "f32") -> Kernel:
    return kernel_of(f"""
        kernel @k(%x: {dtype}[{3 * n}] in, %y: {dtype}[3] out) {{
          for j in 3 parallel {{
            acc a: {dtype} = {combine} {dtype}({init})
            for i in {n} reduce {{
              v: {dtype} = load %x[{n}*j + i]
              update a with v
            }}
            r = read a
            store %y[j] = r
          }}
        }}""")


@pytest.mark.parametrize("n", [2, 7, 16, 17, 31, 33, 64, 67, 130])
@pytest.mark.parametrize(
    "combine,init", [("add", "0.0"), ("add", "2.5"), ("max", "-inf"), ("max", "1.0"), ("min", "inf"), ("mul", "1.0")]
)
def test_reductions_of_every_length_natively(n: int, combine: str, init: str, machine: Target):
    check_native(vectorised(reduction(n, combine, init), machine), machine)


@pytest.mark.parametrize("dtype", ["f64", "i64", "i32", "i8", "u8"])
def test_reductions_of_every_type_natively(dtype: str, machine: Target):
    one = "1.0" if dtype == "f64" else "1"
    for combine in ("add", "max", "min"):
        check_native(vectorised(reduction(21, combine, one, dtype), machine), machine)


@pytest.mark.parametrize("combine,init", [("or", "false"), ("and", "true"), ("or", "true")])
def test_reductions_of_bools_natively(combine: str, init: str, machine: Target):
    for n in (1, 5, 16, 19, 40):
        check_native(vectorised(reduction(n, combine, init, "bool"), machine), machine)


def test_a_long_reduction_has_several_chains():
    kernel = vectorised(reduction(1000, "add", "0.0"), WIDE)
    assert any(s.kind == "unroll" and s.axis.extent == 4 for s, _ in walk(kernel.body) if isinstance(s, Loop))


# ---- choices


def test_columns_run_across_lanes_when_rows_are_reduced():
    kernel = kernel_of("""
        kernel @k(%x: f32[640] in, %y: f32[64] out) {
          for j in 64 parallel {
            acc a: f32 = add f32(0.0)
            for i in 10 reduce {
              v: f32 = load %x[64*i + j]
              update a with v
            }
            r = read a
            store %y[j] = r
          }
        }""")
    result = vectorised(kernel, WIDE)
    for stmt, loops in walk(result.body):
        if isinstance(stmt, Loop) and stmt.kind == "reduce":
            assert loops[-1].kind == "vector", "the reduction runs inside of the lanes"
    check_native(result, target_or_skip("host"))


def test_serial_loops_and_colliding_stores_stay_scalar():
    kernel = kernel_of("""
        kernel @k(%i: i64[40] in, %x: f32[40] in, %y: f32[8] inout) {
          for i in 40 serial {
            a: i64 = load %i[i]
            b: i64 = max(a, i64(0))
            c: i64 = min(b, i64(7))
            v: f32 = load %x[i]
            store %y[[c:0..7]] add= v
          }
        }""")
    result = vectorised(kernel, WIDE)
    assert not vectors(result)
    check_native(result, target_or_skip("host"))


def test_gathers_scatters_and_guards_natively(machine: Target):
    kernel = kernel_of("""
        kernel @k(%i: i32[40] in, %x: f32[99] in, %y: f32[80] out, %z: f32[45] out) {
          for i in 40 parallel {
            a: i32 = load %i[i]
            b: i32 = max(a, i32(0))
            c: i32 = min(b, i32(98))
            v: f32 = load %x[[c:0..98]]
            w: f32 = load %x[i - 3] if 3 <= i < 30 else f32(0.5)
            u: f32 = load %x[(7*i) // 3]
            s: f32 = add(v, w)
            t: f32 = add(s, u)
            store %y[2*i] = t
            store %y[79 - 2*i] = u
            store %z[i + 5] = w if 2 <= i < 33
            n: i64 = index (i % 6)
            f: f32 = cast(n)
            store %z[i] = f if 0 <= i < 2
          }
        }""")
    result = vectorised(kernel, machine)
    assert vectors(result)
    check_native(result, machine)


def test_lanes_fit_the_widest_type():
    (loop,) = map_kernel(64, "f64").body
    assert isinstance(loop, Loop)
    assert lanes_of(loop, WIDE) == 8 and lanes_of(loop, NARROW) == 2
    (loop,) = map_kernel(64, "u8").body
    assert isinstance(loop, Loop)
    assert lanes_of(loop, WIDE) == 16


def test_a_short_loop_is_not_worth_a_vector_when_it_gathers():
    (loop,) = kernel_of("""
        kernel @k(%x: f32[64] in, %y: f32[4] out) {
          for i in 2 parallel {
            v: f32 = load %x[31*i]
            store %y[3*i] = v
          }
        }""").body
    assert isinstance(loop, Loop)
    assert not choose(loop, NARROW).vectorise


def test_pieces_cover_the_loop_once():
    for n in range(1, 100):
        (loop,) = map_kernel(n).body
        assert isinstance(loop, Loop)
        for target in (WIDE, NARROW):
            kernel = replace(map_kernel(n), body=split_lanes(loop, target, Names()))
            check_equivalent(map_kernel(n), kernel)


# ---- columns


def test_sums_of_columns_read_long_pieces_of_each_row():
    kernel = kernel_of(
        """
        kernel @k(%x: f32[40960] in, %y: f32[1024] out) {
          for i in 1024 parallel {
            acc a: f32 = add f32(0.0)
            for k in 40 reduce {
              v: f32 = load %x[1024*k + i]
              update a with v
            }
            r = read a
            store %y[i] = r
          }
        }"""
    )
    body = vectorise(kernel.body, target_named("avx512"), Names("z"))
    copies = [s.axis.extent for s, _ in walk(body) if isinstance(s, Loop) and s.kind == "unroll"]
    assert copies == [16]


@pytest.mark.parametrize("target,vectors", [("avx2", 8), ("avx512", 2)])
def test_longer_bodies_of_sums_of_columns_read_pieces_of_256_bytes_on_avx2(target: str, vectors: int):
    """Rows lie on different pages: wider pieces take fewer page walks."""
    lines = "\n".join(f"v{n + 1}: f32 = mul(v{n}, f32(0.5))" for n in range(20))
    kernel = kernel_of(f"""
        kernel @k(%x: f32[40960] in, %y: f32[1024] out) {{
          for i in 1024 parallel {{
            acc a: f32 = add f32(0.0)
            for k in 40 reduce {{
              v0: f32 = load %x[1024*k + i]
              {lines}
              update a with v20
            }}
            r = read a
            store %y[i] = r
          }}
        }}""")
    body = vectorise(kernel.body, target_named(target), Names("z"))
    assert [s.axis.extent for s, _ in walk(body) if isinstance(s, Loop) and s.kind == "unroll"] == [vectors]


@pytest.mark.parametrize("sums", [16, 17, 40])
def test_many_sums_of_columns_at_once(sums: int):
    results = ", ".join(f"%y{s}: f32[40] out" for s in range(sums))
    parts = [
        f"kernel @k(%x: f32[360] in, {results}) {{ for i in 40 parallel {{",
        *(f"acc a{s}: f32 = add f32(0.0)" for s in range(sums)),
        "for k in 9 reduce {",
        *(f"v{s}: f32 = load %x[40*k + i]\nupdate a{s} with v{s}" for s in range(sums)),
        "}",
        *(f"r{s} = read a{s}\nstore %y{s}[i] = r{s}" for s in range(sums)),
        "} }",
    ]
    assert vectors(vectorised(kernel_of("\n".join(parts)), WIDE)) == [16, 8]


def test_running_sums_of_rows_far_apart_take_lanes_along_the_rows():
    kernel = kernel_of(
        """
        kernel @k(%x: f32[65536] in, %y: f32[65536] out) {
          for i in 64 parallel {
            acc a: f32 = add f32(0.0)
            for k in 1024 serial {
              v: f32 = load %x[1024*i + k]
              update a with v
              r = read a
              store %y[1024*i + k] = r
            }
          }
        }"""
    )
    body = vectorise(kernel.body, target_named("avx512"), Names("z"))
    loads = [(s, loops[-1]) for s, loops in walk(body) if isinstance(s, Load)]
    assert [(loop.kind, s.index.coefficient(loop.axis)) for s, loop in loads] == [("vector", 1)]


# ---- work that a short loop around lanes shares


def shared_work(n: int, groups: int) -> Kernel:
    """Every fourth run of lanes reads the same element and does the same with it."""
    return kernel_of(f"""
        kernel @k(%x: f32[{groups * n}] in, %y: f32[{groups * 4 * n}] out) {{
          for i in {groups} parallel {{
            for j in 4 parallel {{
              for k in {n} parallel {{
                a: f32 = load %x[{n}*i + k]
                b: f32 = mul(a, a)
                c: f32 = mul(b, a)
                d: f32 = mul(c, a)
                e: f32 = mul(d, b)
                f: f32 = mul(e, c)
                store %y[{4 * n}*i + {n}*j + k] = f
              }}
            }}
          }}
        }}""")


def unrolled(kernel: Kernel) -> list[int]:
    """Copies of every unrolled loop in order."""
    return [s.axis.extent for s, _ in walk(kernel.body) if isinstance(s, Loop) and s.kind == "unroll"]


def test_a_short_loop_around_shared_work_is_written_out():
    assert unrolled(vectorised(shared_work(16, 3), WIDE)) == [4]
    assert unrolled(vectorised(shared_work(5, 3), WIDE)) == [4]


def test_iterations_of_shared_work_run_side_by_side():
    assert unrolled(vectorised(shared_work(16, 8), WIDE)) == [4, 4]
    assert unrolled(vectorised(shared_work(16, 6), WIDE)) == [2, 4]


def test_a_loop_whose_iterations_differ_stays():
    kernel = kernel_of("""
        kernel @k(%x: f32[64] in, %y: f32[64] out) {
          for j in 4 parallel {
            for k in 16 parallel {
              v: f32 = load %x[4*k + j]
              store %y[16*j + k] = v
            }
          }
        }""")
    assert unrolled(vectorised(kernel, WIDE)) == []


def test_shared_work_natively(machine: Target):
    for n, groups in ((16, 4), (16, 3), (7, 2)):
        check_native(vectorised(shared_work(n, groups), machine), machine)


def between(step: int) -> Kernel:
    return kernel_of(f"""
        kernel @k(%x: f32[{3 * 40}] in, %y: f32[{40 * step}] out) {{
          for i in 40 parallel {{
            for j in 3 parallel {{
              v: f32 = load %x[i + 40*j]
              store %y[{step}*i + j] = v
            }}
          }}
        }}""")


def test_what_lies_between_lanes_is_written_out():
    assert 3 in unrolled(vectorised(between(3), WIDE))
    assert 3 not in unrolled(vectorised(between(4), WIDE)), "one of four elements stays as it is"


def test_what_lies_between_lanes_natively(machine: Target):
    check_native(vectorised(between(3), machine), machine)


# ---- running sums


def running(n: int, dtype: str = "f32", op: str = "add", step: int = 1) -> Kernel:
    place = f"k + {n}*i" if step > 0 else f"{n}*i - k + {n - 1}"
    start = {"add": 0, "mul": 1, "max": -5}[op]
    literal = f"{dtype}({start}.0)" if dtype[0] == "f" else f"{dtype}({start})"
    return kernel_of(f"""
        kernel @k(%x: {dtype}[{3 * n}] in, %y: {dtype}[{3 * n}] out) {{
          for i in 3 parallel {{
            acc a: {dtype} = {op} {literal}
            for k in {n} serial {{
              v: {dtype} = load %x[{place}]
              update a with v
              w = read a
              store %y[{place}] = w
            }}
          }}
        }}""")


def test_running_sums_along_a_row_take_lanes():
    assert vectors(vectorised(running(64), WIDE)) == [16]
    assert vectors(vectorised(running(77), WIDE)) == [16, 13]
    assert vectors(vectorised(running(77), NARROW)) == [4]


@pytest.mark.parametrize("kernel", [running(7), running(64, step=-1)])
def test_short_rows_and_rows_from_the_end_stay_in_order(kernel: Kernel):
    assert vectors(vectorised(kernel, WIDE)) == []


@pytest.mark.parametrize("n", [16, 17, 77])
@pytest.mark.parametrize(
    ("dtype", "op"), [("f32", "add"), ("f64", "max"), ("i32", "mul"), ("i64", "add"), ("i8", "max")]
)
def test_running_sums_natively(machine: Target, n: int, dtype: str, op: str):
    kernel = running(n, dtype, op)
    check_native(vectorised(kernel, machine), machine)


# ---- windows


def pool(step: int, taps: int) -> Kernel:
    return kernel_of(f"""
        kernel @k(%x: f32[{39 * step + 2 * taps}] in, %y: f32[40] out) {{
          for i in 40 parallel {{
            acc m: f32 = max f32(-inf)
            for j in {taps} reduce {{
              v: f32 = load %x[{step}*i + j]
              update m with v
            }}
            r = read m
            store %y[i] = r
          }}
        }}""")


def reduced(kernel: Kernel) -> list[int]:
    return [s.axis.extent for s, _ in walk(kernel.body) if isinstance(s, Loop) and s.kind == "reduce"]


def test_windows_with_common_elements_are_written_out():
    assert reduced(vectorised(pool(2, 3), WIDE)) == []
    assert reduced(vectorised(pool(1, 3), WIDE)) != [], "whole vectors are read anyhow"
    assert reduced(vectorised(pool(2, 30), WIDE)) != [], "too many steps"


@pytest.mark.parametrize(("step", "taps"), [(2, 2), (2, 3), (3, 5), (4, 3)])
def test_windows_natively(step: int, taps: int, machine: Target):
    check_native(vectorised(pool(step, taps), machine), machine)


# ---- rows that data choose


def chosen_rows(n: int, dtype: str = "f32") -> Kernel:
    """Rows are added to other rows, which are found in memory."""
    return kernel_of(f"""
        kernel @k(%y: {dtype}[{5 * n}] inout, %at: i64[7] in, %x: {dtype}[{7 * n}] in) {{
          for m in 7 serial {{
            p: i64 = load %at[m]
            q: i64 = max(p, i64(0))
            r: i64 = min(q, i64(4))
            for i in {n} parallel {{
              v: {dtype} = load %x[{n}*m + i]
              store %y[{n}*[r:0..4] + i] add= v
            }}
          }}
        }}""")


def test_rows_that_data_choose_take_lanes():
    assert vectors(vectorised(chosen_rows(64), WIDE)) == [16]
    assert vectors(vectorised(chosen_rows(21), WIDE)) == [16, 5]


def test_elements_that_data_choose_do_not():
    kernel = kernel_of("""
        kernel @k(%y: f32[5] inout, %at: i64[64] in) {
          for i in 64 serial {
            p: i64 = load %at[i]
            q: i64 = max(p, i64(0))
            r: i64 = min(q, i64(4))
            store %y[[r:0..4]] add= f32(1.0)
          }
        }""")
    assert vectors(vectorised(kernel, WIDE)) == []


@pytest.mark.parametrize(("n", "dtype"), [(16, "f32"), (21, "f32"), (9, "f64"), (33, "i32")])
def test_rows_that_data_choose_natively(machine: Target, n: int, dtype: str):
    check_native(vectorised(chosen_rows(n, dtype), machine), machine)
