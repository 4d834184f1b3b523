"""LLVM text that measures a machine's peak rate of multiply-adds."""

from __future__ import annotations

from graphc.codegen.machine.target import Target

PEAK = "graphc_probe_peak"
"""Symbol of ``void graphc_probe_peak(ptr table)``. The table holds the address of an i64, the number of rounds, and the
address of one register's worth of f32 for the result, so that LLVM removes no work."""


def chains(target: Target) -> int:
    """Return the number of independent sums: enough to hide latency, few enough for the registers."""
    return min(16, target.registers - 4)


def flops_per_round(target: Target) -> int:
    """Return the f32 operations in one round."""
    return 2 * chains(target) * (target.vector_bytes // 4)


def emit_peak(target: Target) -> str:
    """Return LLVM text with the function PEAK."""
    lanes, count = target.vector_bytes // 4, chains(target)
    vector = f"<{lanes} x float>"
    step = "float 0x3FEFFFFFE0000000"
    factor = f"<{', '.join([step] * lanes)}>"
    starts = [f"<{', '.join([f'float {i + 1}.0'] * lanes)}>" for i in range(count)]
    phis = [f"  %a{i} = phi {vector} [ {starts[i]}, %entry ], [ %b{i}, %loop ]" for i in range(count)]
    muladd = f"{vector} @llvm.{'fma' if target.fma else 'fmuladd'}.v{lanes}f32"
    steps = [f"  %b{i} = call {muladd}({vector} %a{i}, {vector} %f, {vector} %f)" for i in range(count)]
    sums = [f"  %s{i} = fadd {vector} %{f's{i - 1}' if i > 1 else 'b0'}, %b{i}" for i in range(1, count)]
    return "\n".join(
        [
            f'target triple = "{target.triple}"',
            f"declare {muladd}({vector}, {vector}, {vector})",
            f"define void @{PEAK}(ptr %table) {{",
            "entry:",
            "  %pn = load ptr, ptr %table, align 8",
            "  %n = load i64, ptr %pn, align 8",
            "  %pp = getelementptr ptr, ptr %table, i64 1",
            "  %p = load ptr, ptr %pp, align 8",
            f"  store {vector} {factor}, ptr %p, align 4",
            # NOTE: a volatile load keeps the factor in a register; LLVM cannot fold it into the loop.
            f"  %f = load volatile {vector}, ptr %p, align 4",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %j, %loop ]",
            *phis,
            *steps,
            "  %j = add i64 %i, 1",
            "  %more = icmp ult i64 %j, %n",
            "  br i1 %more, label %loop, label %out",
            "out:",
            *sums,
            f"  store {vector} %s{count - 1}, ptr %p, align 4",
            "  ret void",
            "}",
            "",
        ]
    )
