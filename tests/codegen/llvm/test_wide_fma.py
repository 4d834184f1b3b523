"""Multiply-adds of f32 through f64: rounded once or twice, in whole vectors or in halves."""

from __future__ import annotations

import pytest

from graphc.codegen.llvm.wide_fma import WideFma


def written(lanes: int, rounds_once: bool = False, in_halves: bool = False) -> list[str]:
    lines: list[str] = []

    def line(expression: str) -> str:
        lines.append(expression)
        return f"%{len(lines)}"

    assert WideFma(line, rounds_once, in_halves).text(["%a", "%b", "%c"], lanes) == f"%{len(lines)}"
    return lines


def verbs(lines: list[str]) -> list[str]:
    return [line.partition(" ")[0] for line in lines]


def test_a_sum_is_rounded_to_f64_and_to_f32():
    lines = written(8)
    assert verbs(lines) == ["fpext", "fpext", "fpext", "fmul", "fadd", "fptrunc"]
    assert lines[-1] == "fptrunc <8 x double> %5 to <8 x float>" and written(0)[0] == "fpext float %a to double"


def test_rounding_once_takes_the_odd_neighbour():
    lines = written(2, rounds_once=True)
    assert "splat (i64 63)" in "\n".join(lines) and verbs(lines).count("fsub") == 4
    assert written(0, rounds_once=True)[-2].startswith("bitcast i64 ")


@pytest.mark.parametrize(("lanes", "pairs"), [(4, 2), (8, 4), (16, 8)])
def test_halves_are_vectors_of_two_f64(lanes: int, pairs: int):
    lines = written(lanes, in_halves=True)
    assert verbs(lines).count("fmul") == verbs(lines).count("fptrunc") == pairs
    assert all("<2 x double>" in line for line in lines if line.startswith("fmul"))
    picks = (0, 1, 4, 5) if lanes == 4 else range(lanes)  # a rounded pair has two zeros after it
    assert lines[-1].endswith(f"<{lanes} x i32> <" + ", ".join(f"i32 {i}" for i in picks) + ">")


@pytest.mark.parametrize("lanes", [0, 2, 3])
def test_short_vectors_have_no_halves(lanes: int):
    assert written(lanes, in_halves=True) == written(lanes)
