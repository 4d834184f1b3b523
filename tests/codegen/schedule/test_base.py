"""Results of program passes: unchanged records, and counts of new ones."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from graphc.codegen.schedule.base import PassResult, Scheduled, StepResult, count_changes
from graphc.ir.kernel.statements import Program
from tests.native import lowered
from tests.passes.graph_text import graph_of


def two_calls() -> Program:
    return lowered(
        graph_of("""
        graph @g(%x: f32[8,8]) -> (f32[8,8]) {
          %y = matmul(%x, %x) {transpose_a=false, transpose_b=false} : f32[8,8]
          %z = matmul(%y, %x) {transpose_a=false, transpose_b=true} : f32[8,8]
          return %z
        }""")
    )


def test_changes_are_new_kernels_and_calls_that_differ():
    program = two_calls()
    first, second = program.calls
    assert count_changes(program, program) == 0
    assert count_changes(program, replace(program, calls=(second, first))) == 2
    assert count_changes(program, replace(program, calls=(first,))) == 1
    renewed = replace(program, kernels=(replace(program.kernels[0]), *program.kernels[1:]))
    assert count_changes(program, renewed) == 1


@pytest.mark.parametrize("kind", [PassResult, StepResult])
def test_results_are_frozen(kind: type):
    result = kind(Scheduled(two_calls()), 0)
    with pytest.raises(FrozenInstanceError):
        result.changed = 1
    assert result.reasons == ()
