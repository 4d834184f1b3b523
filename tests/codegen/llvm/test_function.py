"""The function writer: shared registers, preheaders, phis, and values over copies and lanes."""

from __future__ import annotations

import pytest

from graphc.base.dtypes import float32, int32, int64
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.function import FunctionWriter, LaneValue
from graphc.codegen.machine.target import host_target
from graphc.errors import CompileError
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Const


def accepted(writer: FunctionWriter, parameters: str = "i64 %n, ptr %p") -> str:
    """The text, after LLVM has taken it as a function."""
    text = writer.text()
    declarations = "\n".join(writer.declarations.values())
    build_object(f"{declarations}\ndefine void @f({parameters}) {{\nentry:\n{text}\n  ret void\n}}\n", host_target())
    return text


def test_equal_expressions_share_a_register():
    f = FunctionWriter({})
    a = f.memo(0, ("add", "%n", 1), "add i64 %n, 1")
    assert f.memo(0, ("add", "%n", 1), "add i64 %n, 1") == a
    assert accepted(f).count("add i64") == 1


def test_what_belongs_to_an_outer_scope_goes_before_the_loop():
    f = FunctionWriter({})
    outer = f.open_loop(Axis("i", 3))
    inner = f.open_loop(Axis("j", 4))
    assert f.depth == 2
    f.memo(0, "once", "add i64 %n, 7")
    f.memo(1, "per row", f"mul i64 {f.scopes[1].register}, 4")
    f.close_loop(inner, [])
    f.close_loop(outer, [])
    lines = accepted(f).splitlines()
    labels = [i for i, line in enumerate(lines) if line.endswith(":")]
    place = {word: next(i for i, line in enumerate(lines) if word in line) for word in ("%n, 7", "mul i64")}
    assert place["%n, 7"] < labels[0] < place["mul i64"] < labels[1]


def test_counters_have_as_many_bits_as_a_register_if_they_fit():
    f = FunctionWriter({}, word_bits=32)
    for extent, kind in ((5, "i32"), (2**31 - 1, "i32"), (2**31, "i64")):
        loop = f.open_loop(Axis("i", extent))
        total = f.phi(loop, "i64", "%n")
        f.close_loop(loop, [f.line(f"add i64 {total}, {f.scopes[-1].register}")])
        assert loop.kind == kind and f"phi {kind} [ 0," in f.text()
    loop = f.open_loop(Axis("j", 9), end="%n")
    f.close_loop(loop, [])
    text = accepted(f)
    assert text.count("zext i32") == 3 and "trunc i64 %n to i32" in text


def test_registers_of_a_closed_loop_are_forgotten():
    f = FunctionWriter({})
    for _ in range(2):
        loop = f.open_loop(Axis("i", 3))
        f.memo(1, "square", f"mul i64 {f.scopes[1].register}, {f.scopes[1].register}")
        f.close_loop(loop, [])
    assert accepted(f).count("mul i64") == 2


def test_a_phi_carries_a_value_around_the_loop():
    f = FunctionWriter({})
    loop = f.open_loop(Axis("i", 5))
    total = f.phi(loop, "i64", "%n")
    following = f.line(f"add i64 {total}, {f.scopes[-1].register}")
    f.close_loop(loop, [following])
    f.statement(f"store i64 {following}, ptr %p")
    assert f"phi i64 [ %n, %entry ], [ {following}, %" in accepted(f)


def test_splats_are_shared_by_type_and_width():
    f = FunctionWriter({})
    assert f.splat("%n", int64, 4) == f.splat("%n", int64, 4) != f.splat("%n", int64, 8)
    assert f.splat("0", int64, 4) != f.splat("0", int32, 4)
    accepted(f)


def test_widening():
    f = FunctionWriter({})
    u = Axis("u", 2)
    value = LaneValue(float32, (u,), 0, {(0,): "%a", (1,): "%b"})
    assert f.widen(value, {u: 1}, 0) == "%b"
    assert f.widen(Const(1.0, float32), {}, 4).startswith("splat (float")
    assert f.widen(value, {u: 0}, 4) != f.widen(value, {u: 1}, 4)
    with pytest.raises(CompileError, match="a vector of 8 lanes meets one of 4"):
        f.widen(LaneValue(float32, (), 8, {(): "%v"}), {}, 4)


def test_declarations_are_kept_once():
    known: dict[str, str] = {}
    f = FunctionWriter(known)
    f.declare("llvm.x", "declare void @llvm.x()")
    f.declare("llvm.x", "declare void @llvm.x()")
    assert known == {"llvm.x": "declare void @llvm.x()"}
