"""Preparation: what depends on weights alone becomes a program of its own, and both together compute the same."""

from __future__ import annotations

import numpy as np

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.memory.prepacking import call_invariant_storages, recipes, split_prepacking
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.files.manifest import PREPACKED, Recipe
from graphc.ir.kernel.dims import dims_of_program
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.verify import verify_program
from graphc.lowering.program import lower_graph
from graphc.passes.pipeline import optimize
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

WIDE = target_named("avx512")
LINEAR = """
    graph @linear(%x: f32[40,24], %w: f32[40,24] {cls} "w", %s: f32[40] {cls} "s") -> (f32[40,40]) {
      %e = exp(%s) : f32[40]
      %c = reshape(%e) {shape=[40,1]} : f32[40,1]
      %v = mul(%w, %c) : f32[40,24]
      %y = matmul(%x, %v) {transpose_a=false, transpose_b=true} : f32[40,40]
      %z = add(%y, %e) : f32[40,40]
      return %z
    }"""


def scheduled(text: str, cls: str = "weight") -> Program:
    return schedule_program(lower_graph(optimize(graph_of(text.replace("{cls}", cls)))), WIDE)


def test_weights_are_scaled_and_packed_apart():
    graph = graph_of(LINEAR.replace("{cls}", "weight"))
    main, first = split_prepacking(scheduled(LINEAR))
    assert first is not None
    for program in (main, first):
        verify_program(program)
        verify_program(plan_memory(program))
    assert [(s.cls, s.path) for s in first.storages if s.path] == [("input", "w"), ("input", "s")]
    made = [s for s in first.storages if s.cls == "output"]
    taken = [s for s in main.storages if s.cls == "weight"]
    assert sorted(s.path for s in taken) == sorted(PREPACKED + s.name for s in made) and len(made) == 2
    assert len(main.calls) == 1 and first.name == "linear_weights"
    x, w, s = random_arguments(graph)
    prepared = dict(zip((PREPACKED + m.name for m in made), run_program(plan_memory(first), [w, s]), strict=True))
    (result,) = run_program(plan_memory(main), [x, *(prepared[t.path] for t in taken)])
    expected = x @ (w * np.exp(s)[:, None]).T + np.exp(s)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_params_are_no_weights():
    program = scheduled(LINEAR, "param")
    assert split_prepacking(program) == (program, None)
    assert call_invariant_storages(program) == {s.name for s in program.storages if s.cls == "constant"}


def test_what_depends_on_inputs_is_not_fixed():
    program = scheduled(LINEAR)
    fixed = {s.name: s.cls for s in program.storages if s.name in call_invariant_storages(program)}
    assert {"w", "s"} < set(fixed) and "x" not in fixed and "output" not in fixed.values()


def test_flags_of_loops_are_computed_in_each_call():
    """Prepacking took the storage of a flag with it, while the loop stayed."""
    program = scheduled("""
        graph @chosen(%x: f32[40,24], %w: f32[40,24] {cls} "w", %s: f32[] {cls} "s") -> (f32[40,40]) {
          %v = exp(%w) : f32[40,24]
          %p = lt(%s, f32(0.5)) : bool[]
          %c = cond(%p, %x) {then=graph @then(%a: f32[40,24]) -> (f32[40,24]) {
            %e = exp(%a) : f32[40,24]
            return %e
          }, otherwise=graph @otherwise(%a: f32[40,24]) -> (f32[40,24]) {
            %e = neg(%a) : f32[40,24]
            return %e
          }} : f32[40,24]
          %y = matmul(%c, %v) {transpose_a=false, transpose_b=true} : f32[40,40]
          return %y
        }""")
    main, first = split_prepacking(program)
    assert first is not None
    flags = {axis.flag for call in main.calls for axis in call.loops} - {""}
    assert len(flags) == 2 and {main.storage(flag).cls for flag in flags} == {"temp"}
    verify_program(main)


def test_a_program_that_only_reads_its_weights_needs_no_prepacking():
    program = scheduled("""
        graph @plain(%x: f32[7,24], %w: f32[24] weight "w") -> (f32[7,24]) {
          %z = add(%x, %w) : f32[7,24]
          return %z
        }""")
    assert split_prepacking(program) == (program, None)


def test_outputs_made_of_weights_alone_are_made_by_each_call():
    program = scheduled("""
        graph @own(%x: f32[7], %w: f32[24] weight "w") -> (f32[24], f32[7]) {
          %e = exp(%w) : f32[24]
          %z = exp(%x) : f32[7]
          return %e, %z
        }""")
    main, first = split_prepacking(program)
    assert first is None and main is program


def test_large_transformed_weights_are_prepared():
    program = scheduled("""
        graph @conv(%x: f32[1,512,9,9], %w: f32[512,512,3,3] weight "w", %s: f32[512,1,1,1] weight "s")
            -> (f32[1,512,7,7]) {
          %v = mul(%w, %s) : f32[512,512,3,3]
          %y = conv(%x, %v) {stride=[1,1], padding=[[0,0],[0,0]], dilation=[1,1], groups=1} : f32[1,512,7,7]
          return %y
        }""")
    main, first = split_prepacking(program)
    assert first is not None and not any(c.loops for c in first.calls)
    assert {v for c in main.calls for v in c.values}.isdisjoint({"v", "winograd_weight"})
    assert [s.path[0] for s in main.storages if s.cls == "weight"] == [PREPACKED]


def recipes_of(text: str) -> list[Recipe]:
    """Recipes of the outputs that are large, in order."""
    _, first = split_prepacking(scheduled(text))
    assert first is not None
    result = recipes(first)
    assert all(Recipe.parse(str(r)) == r for r in result.values())
    return [result[s.name] for s in first.storages if s.cls == "output" and s.shape != (40,)]


def test_recipes_are_equal_where_the_same_is_made_of_weights():
    (one,) = recipes_of(LINEAR)
    renamed = LINEAR.replace("%w", "%weight").replace("%s", "%scale").replace("@linear", "@other")
    assert recipes_of(renamed) == [one]
    taller = LINEAR.replace("%x: f32[40,24]", "%x: f32[80,24]").replace("(f32[40,40])", "(f32[80,40])")
    taller = taller.replace(": f32[40,40]", ": f32[80,40]")
    assert recipes_of(taller) == [one]
    assert sorted(one.inputs) == [0, 1]


def test_recipes_differ_where_something_else_is_made():
    (one,) = recipes_of(LINEAR)
    for other in (
        LINEAR.replace("exp(%s)", "sqrt(%s)"),
        LINEAR.replace("transpose_b=true", "transpose_b=false").replace("[40,24]", "[40,40]"),
        LINEAR.replace("%v = mul(%w, %c)", "%v = sub(%w, %c)"),
    ):
        (result,) = recipes_of(other)
        assert result.digest != one.digest


def test_constants_are_part_of_a_recipe_by_content():
    values = [", ".join(str(float(last if i == 39 else i)) for i in range(40)) for last in (7, 7, 8)]
    made = "%k = constant() {value=f32[40](VALUE)} : f32[40]\n %e = mul(%s, %k) : f32[40]"
    text = LINEAR.replace("%e = exp(%s) : f32[40]", made)
    (one,), (also,), (other,) = (recipes_of(text.replace("VALUE", v)) for v in values)
    assert one == also and one.digest != other.digest


STEPS = """
    dim n = 1..64 hint 8
    graph @f(%x: f32[6,n,32], %w: f32[32,32] weight "w") -> (f32[n,32]) {
      %h = broadcast_to(f32(0.0)) {shape=[n,32]} : f32[n,32]
      %r = scan(%h, %x, %w) {body=graph @step(%a: f32[n,32], %b: f32[n,32], %u: f32[32,32]) -> (f32[n,32]) {
        %m = matmul(%a, %u) {transpose_a=false, transpose_b=true} : f32[n,32]
        %o = add(%m, %b) : f32[n,32]
        return %o
      }, carries=1, sequences=1, length=6} : f32[n,32]
      return %r
    }"""


def test_what_depends_on_sizes_of_a_call_is_computed_in_each():
    main, first = split_prepacking(schedule_program(lower_graph(optimize(graph_of(STEPS))), WIDE))
    assert first is not None and not dims_of_program(first)
    assert list(dims_of_program(main)) == ["n"]
