"""LLVM text of the loops that ``benchmarks.machine`` times: chains, reads, copies and folds of whole vectors."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.machine.target import Target

PROBE = "graphc_probe"
"""Symbol of ``void graphc_probe(ptr table)``; the table holds i64: number of rounds, address to read, address to write,
and bytes per round."""
STEPS = 8
"""Operations in a row, or vectors side by side, in an iteration."""


def _vector(target: Target, element: str = "float") -> str:
    return f"<{target.vector_bytes // 4} x {element}>"


def _function(
    target: Target, setup: Sequence[str], loop: Sequence[str], after: Sequence[str], declare: str = ""
) -> str:
    """Return the function: ``setup``, then ``loop`` once for each round ``%i``, then ``after``."""
    lines = "\n".join
    return f"""target triple = "{target.triple}"
{declare}
define void @{PROBE}(ptr %table) {{
entry:
  %n = load i64, ptr %table, align 8
  %sp = getelementptr i64, ptr %table, i64 1
  %source = load ptr, ptr %sp, align 8
  %tp = getelementptr i64, ptr %table, i64 2
  %target = load ptr, ptr %tp, align 8
  %bp = getelementptr i64, ptr %table, i64 3
  %bytes = load i64, ptr %bp, align 8
{lines(setup)}
  br label %loop
loop:
{lines(loop)}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %out
out:
{lines(after)}
  ret void
}}
!0 = !{{i32 1}}
"""


_EACH_ROUND = "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"
"""Counts rounds whose loop is one block."""


def _over_bytes(steps: Sequence[str], stride: int, before: Sequence[str] = (), start: str = "0") -> list[str]:
    """Emit a round over all bytes: ``steps`` at ``%at``, which begins at ``start`` and advances by STEPS strides.
    ``before`` begins with the phis of values carried from round to round, by ``%entry`` and ``%end``."""
    return [
        "  %i = phi i64 [ 0, %entry ], [ %next, %end ]",
        *before,
        "  br label %inner",
        "inner:",
        f"  %at = phi i64 [ {start}, %loop ], [ %then, %inner ]",
        *steps,
        f"  %then = add i64 %at, {STEPS * stride}",
        "  %again = icmp ult i64 %then, %bytes",
        "  br i1 %again, label %inner, label %end",
        "end:",
    ]


def _total(operation: str, kind: str) -> list[str]:
    """Reduce ``%b0`` and the following accumulators by ``operation`` and store the result; ``type`` is an LLVM type."""
    sums = [f"  %s{k} = {operation} {kind} %{f's{k - 1}' if k > 1 else 'b0'}, %b{k}" for k in range(1, STEPS)]
    return [*sums, f"  store {kind} %s{STEPS - 1}, ptr %target, align 4"]


def emit_clock(target: Target) -> str:
    """Emit rounds of 2 * STEPS integer operations, each of which takes a cycle and waits for the previous one."""
    steps = []
    for k in range(STEPS):
        steps += [f"  %x{k} = xor i64 %y{k}, %m", f"  %y{k + 1} = add i64 %x{k}, %m"]
    return _function(
        target,
        ["  %m = load volatile i64, ptr %source, align 8"],
        [_EACH_ROUND, f"  %y0 = phi i64 [ %m, %entry ], [ %y{STEPS}, %loop ]", *steps],
        [f"  store i64 %y{STEPS}, ptr %target, align 8"],
    )


def emit_chain(target: Target) -> str:
    """Emit rounds of STEPS multiply-adds of vectors, each of which waits for the previous one."""
    vector = _vector(target)
    function = f"{vector} @llvm.{'fma' if target.fma else 'fmuladd'}.v{target.vector_bytes // 4}f32"
    steps = [f"  %a{k + 1} = call {function}({vector} %a{k}, {vector} %f, {vector} %f)" for k in range(STEPS)]
    return _function(
        target,
        [f"  %f = load volatile {vector}, ptr %source, align 4"],
        [_EACH_ROUND, f"  %a0 = phi {vector} [ %f, %entry ], [ %a{STEPS}, %loop ]", *steps],
        [f"  store {vector} %a{STEPS}, ptr %target, align 4"],
        f"declare {function}({vector}, {vector}, {vector})",
    )


def emit_read(target: Target, stride: int, turn: int = 0) -> str:
    """Emit rounds that read vectors ``stride`` bytes apart from all bytes. With ``turn`` the next round begins a cache
    line later, up to ``turn`` bytes from the start (a power of two)."""
    vector = _vector(target, "i32")
    loads = []
    for k in range(STEPS):
        loads += [
            f"  %o{k} = add i64 %at, {k * stride}",
            f"  %p{k} = getelementptr i8, ptr %source, i64 %o{k}",
            f"  %v{k} = load {vector}, ptr %p{k}, align {target.vector_bytes}",
            f"  %b{k} = xor {vector} %a{k}, %v{k}",
        ]
    starts = [f"  %r{k} = phi {vector} [ zeroinitializer, %entry ], [ %b{k}, %end ]" for k in range(STEPS)]
    inner = [f"  %a{k} = phi {vector} [ %r{k}, %loop ], [ %b{k}, %inner ]" for k in range(STEPS)]
    line = [f"  %line = mul i64 %i, {target.line_bytes}", f"  %start = and i64 %line, {max(0, turn - 1)}"]
    loop = _over_bytes([*inner, *loads], stride, [*starts, *line], "%start")
    return _function(target, [], loop, _total("xor", vector))


def emit_copy(target: Target, non_temporal: bool) -> str:
    """Return a round copies all bytes, by stores past the caches or ordinary ones."""
    vector, size = _vector(target, "i32"), target.vector_bytes
    hint = ", !nontemporal !0" if non_temporal else ""
    steps = []
    for k in range(STEPS):
        steps += [
            f"  %o{k} = add i64 %at, {k * size}",
            f"  %p{k} = getelementptr i8, ptr %source, i64 %o{k}",
            f"  %q{k} = getelementptr i8, ptr %target, i64 %o{k}",
            f"  %v{k} = load {vector}, ptr %p{k}, align {size}",
            f"  store {vector} %v{k}, ptr %q{k}, align {size}{hint}",
        ]
    return _function(target, [], _over_bytes(steps, size), [])


def emit_folds(target: Target) -> str:
    """Emit rounds that add up the lanes of STEPS vectors in memory."""
    vector, lanes = _vector(target), target.vector_bytes // 4
    function = f"float @llvm.vector.reduce.fadd.v{lanes}f32"
    folds = []
    for k in range(STEPS):
        folds += [
            f"  %p{k} = getelementptr i8, ptr %source, i64 {k * target.vector_bytes}",
            f"  %v{k} = load volatile {vector}, ptr %p{k}, align {target.vector_bytes}",
            f"  %t{k} = call reassoc {function}(float 0.0, {vector} %v{k})",
            f"  %b{k} = fadd float %a{k}, %t{k}",
        ]
    phis = [f"  %a{k} = phi float [ 0.0, %entry ], [ %b{k}, %loop ]" for k in range(STEPS)]
    return _function(
        target,
        [],
        [_EACH_ROUND, *phis, *folds],
        _total("fadd", "float"),
        f"declare {function}(float, {vector})",
    )
