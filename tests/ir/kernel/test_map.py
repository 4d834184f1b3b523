"""The statement mapper: what is replaced, what stays the same object, copies that mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.base.dtypes import float32
from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, atoms, substitute
from graphc.ir.kernel.map import (
    BodyCopier,
    Names,
    indices_of,
    map_indices,
    map_parts,
    map_statements,
    names_given,
    rename_buffers,
    scalars_read,
    substitute_axes,
)
from graphc.ir.kernel.statements import (
    Acc,
    Bound,
    Const,
    Let,
    Load,
    Loop,
    Prefetch,
    Read,
    Stmt,
    Store,
    Update,
    walk,
)
from tests.codegen.kernel_native import check_equivalent, kernel_of

ROW, COLUMN = Axis("i", 4), Axis("j", 3)
ZERO = Const(0.0, float32)


def nest() -> tuple[Stmt, ...]:
    """Two loops, one inside the other, with a load and a store in each."""
    inner = Loop(COLUMN, "parallel", (Load("w", "x", as_index(COLUMN), float32), Store("y", as_index(COLUMN), "w")))
    outer = Loop(ROW, "parallel", (Load("v", "x", as_index(ROW), float32), inner, Store("y", as_index(ROW), "v")))
    return (outer,)


# ---- bodies


def test_a_body_that_does_not_change_is_the_same_object():
    body = nest()
    seen: list[Stmt] = []

    def leaf(stmt: Stmt) -> Sequence[Stmt]:
        seen.append(stmt)
        return (stmt,)

    assert map_statements(body, leaf=leaf, enter=lambda _: None, leave=lambda loop: (loop,)) is body
    assert seen == [s for s, _ in walk(body) if not isinstance(s, Loop)]


def test_only_the_loops_around_what_changes_are_new():
    first, second = Loop(ROW, "parallel", nest()), Loop(ROW, "serial", (Store("y", as_index(ROW), ZERO),))
    changed = map_statements((first, second), leaf=lambda s: () if s == second.body[0] else (s,))
    assert changed[0] is first
    assert changed[1] == Loop(ROW, "serial", ())


def test_what_stands_for_a_loop_is_not_mapped_again():
    body = nest()
    again = map_statements(body, leaf=lambda s: (s, s), enter=lambda loop: (loop, loop))
    assert again == (*body, *body)


def test_loops_are_left_inside_out():
    left: list[str] = []

    def leave(loop: Loop) -> Sequence[Stmt]:
        left.append(loop.axis.name)
        return loop.body

    assert all(not isinstance(s, Loop) for s in map_statements(nest(), leave=leave))
    assert left == ["j", "i"]


def test_buffers_are_renamed_wherever_they_are_used():
    body = (Loop(ROW, "parallel", (Prefetch("x", as_index(ROW)), *nest())),)
    renamed = rename_buffers(body, {"x": "z"})
    used = [s.buffer for s, _ in walk(renamed) if isinstance(s, Load | Store | Prefetch)]
    assert used == ["z", "z", "z", "y", "y"]
    assert rename_buffers(body, {"q": "z"}) is body


def test_every_index_is_replaced():
    kernel = kernel_of("""
        kernel @k(%x: f32[20] in, %y: f32[20] out) {
          for i in 4 parallel {
            n: i32 = index i
            for j in 3 reduce {
              v: f32 = load %x[i + 4*j] if 1 <= i < 3 else f32(0.0)
              store %y[i + 5*j] = v if 0 <= i < 2
            }
          }
        }""")
    (loop,) = kernel.body
    assert isinstance(loop, Loop)
    moved = map_indices(
        loop.body, lambda index: substitute(index, lambda a: as_index(a) + 7 if a == loop.axis else None)
    )
    assert [i.constant for s, _ in walk(moved) for i in indices_of(s)] == [7] * 5


# ---- one statement


def test_every_part_of_a_statement_is_replaced():
    def change(stmt: Stmt) -> Stmt:
        return map_parts(
            stmt,
            index=lambda i: i + 1,
            ref=lambda r: "r",
            acc=lambda a: "a",
            buffer=lambda b: "b",
            define=lambda n: "n",
        )

    guard = (Bound(as_index(ROW), 0, 3),)
    there = (Bound(as_index(ROW) + 1, 0, 3),)
    assert change(Load("v", "x", as_index(ROW), float32, guard, ZERO)) == Load(
        "n", "b", as_index(ROW) + 1, float32, there, ZERO
    )
    assert change(Store("x", as_index(ROW), "v", guard, "add")) == Store("b", as_index(ROW) + 1, "r", there, "add")
    assert change(Let("v", "add", ("u", ZERO), float32)) == Let("n", "add", ("r", "r"), float32)
    assert change(Acc("s", float32, "add", ZERO)) == Acc("n", float32, "add", "r")
    assert change(Update("s", "v")) == Update("a", "r")
    assert change(Read("v", "s")) == Read("n", "a")
    assert change(Prefetch("x", as_index(ROW))) == Prefetch("b", as_index(ROW) + 1)
    assert change(nest()[0]) == nest()[0]


def test_a_name_is_given_after_the_operands_are_read():
    order: list[str] = []

    def seen(name: str) -> str:
        order.append(name)
        return name

    map_parts(Let("v", "neg", ("u",), float32), ref=lambda r: seen(str(r)), define=seen)
    assert order == ["u", "v"]


def test_a_statement_of_which_no_part_changes_is_the_same_object():
    for stmt in (Load("v", "x", as_index(ROW), float32, (Bound(as_index(ROW), 0, 3),), ZERO), Read("v", "s")):
        assert map_parts(stmt) is stmt


def test_axes_and_run_time_terms_of_an_index_are_replaced():
    index = Index(((ROW, 2), (Dynamic("n", 0, 5), 3), (Dynamic("m", 0, 5), 1)), 1)
    moved = substitute_axes(index, {ROW: as_index(COLUMN) + 4}, {"n": "k", "m": ZERO})
    assert moved.coefficient(COLUMN) == 2 and moved.constant == 9
    assert {a.name for a in atoms(moved)} == {"j", "k", "m"}


def test_what_a_statement_reads_and_gives():
    index = Index(((Dynamic("n", 0, 3), 1),))
    assert scalars_read(Store("y", index, "v", (Bound(Index(((Dynamic("m", 0, 3), 1),)), 0, 2),))) == {"n", "m", "v"}
    assert scalars_read(Let("v", "add", ("u", ZERO), float32)) == {"u"}
    assert scalars_read(Read("v", "s")) == set()
    assert names_given((*nest(), Acc("s", float32, "add", ZERO), Update("s", "v"))) == {"v", "w", "s"}


def test_indices_of_statements():
    i = as_index(Axis("i", 4))
    assert indices_of(Store("y", i, "v")) == (i,)
    assert indices_of(Prefetch("y", i)) == (i,)
    assert indices_of(Loop(Axis("i", 4), "parallel", ())) == ()


# ---- copies


def test_a_copy_shares_no_name_with_its_original():
    kernel = kernel_of("""
        kernel @k(%x: f32[12] in, %y: f32[3] out) {
          for j in 3 parallel {
            acc a: f32 = add f32(0.0)
            for k in 4 reduce {
              v: f32 = load %x[4*j + k]
              w: f32 = mul(v, v)
              update a with w
            }
            r = read a
            store %y[j] = r
          }
        }""")
    names = Names()
    first = BodyCopier(names, {}).body(kernel.body)
    second = BodyCopier(names, {}).body(kernel.body)
    check_equivalent(kernel, replace(kernel, body=first))
    check_equivalent(kernel, replace(kernel, body=(*first, *second)))
