"""Calls of programs with named dimensions: sizes solved, checked and remembered; arenas and outputs that grow."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.entry import emit_module
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.threads.execution import Execution
from graphc.compiler.compile import describe
from graphc.errors import ArgumentError, DTypeError, ShapeError
from graphc.ir.kernel.parse import parse_program
from graphc.runtime import call_sizes
from graphc.runtime.call import Executable
from graphc.runtime.loader import load_object

PROGRAM = """\
dim batch = 1..64 hint 8
dim time = 2..4096 hint 16
program @f {
  input %x: f32[batch,2*time]
  input %w: f32[time]
  output %y: f32[batch,time]
  output %s: f32[batch]
  temp %t: f32[batch,time]

  kernel @halves(%x: f32[2*batch*time] in, %w: f32[time] in, %t: f32[batch*time] out) {
    for i in batch parallel {
      for j in time parallel {
        a: f32 = load %x[2*time*i + j]
        b: f32 = load %x[2*time*i + j + time]
        w: f32 = load %w[j]
        c: f32 = add(a, b)
        d: f32 = mul(c, w)
        store %t[time*i + j] = d
      }
    }
  }

  kernel @sums(%t: f32[batch*time] in, %y: f32[batch*time] out, %s: f32[batch] out, %e: f32[time] scratch) {
    for i in batch parallel {
      acc sum: f32 = add f32(0.0)
      for j in time reduce {
        a: f32 = load %t[time*i + j]
        store %e[j] = a
        update sum with a
      }
      r = read sum
      store %s[i] = r
      for k in time parallel {
        b: f32 = load %e[k]
        c: f32 = add(b, b)
        store %y[time*i + k] = c
      }
    }
  }

  call @halves(%x, %w, %t)
  call @sums(%t, %y, %s)
}
"""


@pytest.fixture(scope="module")
def program() -> Executable:
    target = host_target()
    planned = plan_memory(parse_program(PROGRAM))
    manifest, constants = describe(planned, target)
    code = build_object(emit_module(planned, target, Execution()), target)
    return Executable(manifest, load_object(code, manifest.entry), constants)


def given(batch: int, time: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(batch * 1000 + time)
    return random.random((batch, 2 * time), np.float32), random.random(time, np.float32)


@pytest.mark.parametrize(("batch", "time"), [(1, 2), (64, 4096), (3, 5), (8, 16), (7, 1000), (1, 4096), (3, 5)])
def test_one_program_at_many_sizes(program: Executable, batch: int, time: int):
    x, w = given(batch, time)
    expected = (x[:, :time] + x[:, time:]) * w
    y, s = program(x, w)
    np.testing.assert_array_equal(y, 2 * expected)
    np.testing.assert_allclose(s, expected.sum(axis=1), rtol=1e-5)
    out = [np.empty_like(y), np.empty_like(s)]
    assert program.run((x, w), out=out)[0] is out[0]
    np.testing.assert_array_equal(out[0], y)


def test_sizes_that_do_not_fit_are_refused(program: Executable):
    x, w = given(3, 5)
    with pytest.raises(ShapeError, match=r"dimension 1 of input 'x' is 10, not 8 = 2\*time"):
        program(x, w[:4])
    with pytest.raises(ShapeError, match=r"batch is 65, outside of 1\.\.64"):
        program(np.zeros((65, 10), np.float32), w)
    with pytest.raises(ShapeError, match="dimension 1 of input 'x' is 9, not 8"):
        program(x[:, :9], w[:4])
    with pytest.raises(ShapeError, match="has 1 dimensions, not 2"):
        program(x[0], w)
    with pytest.raises(ArgumentError, match="takes 2 input arrays"):
        program(x)
    with pytest.raises(ArgumentError, match="is a list"):
        program(x, [1.0] * 5)
    with pytest.raises(DTypeError, match="float64"):
        program(x, w.astype(np.float64))
    with pytest.raises(ShapeError, match=r"output 'y' has shape \[3, 4\]"):
        program.run((x, w), out=[np.empty((3, 4), np.float32), np.empty(3, np.float32)])


def test_inputs_that_are_not_dense_are_copied(program: Executable):
    x, w = given(4, 6)
    wide = np.zeros((4, 24), np.float32)
    wide[:, ::2] = x
    np.testing.assert_array_equal(program(wide[:, ::2], w)[0], program(x, w)[0])


def test_what_calls_take_is_remembered_but_not_for_ever(program: Executable, monkeypatch: pytest.MonkeyPatch):
    sizes = program.sizes
    x, w = given(2, 3)
    shapes = (x.shape, w.shape)
    assert sizes.of_shapes(shapes) is sizes.of_shapes(shapes)
    monkeypatch.setattr(call_sizes, "REMEMBERED", 4)
    for time in range(2, 40):
        assert sizes.of_shapes(((1, 2 * time), (time,))).results[0][2] == (1, time)
    assert len(sizes._known) <= 4


def test_sizes_for_named_dimensions_without_a_call(program: Executable):
    found = program.sizes.of_dimensions({"time": 100})
    assert [spec.shape for *_, spec in found.inputs] == [(8, 200), (100,)]
    assert found.arena >= 4 * 8 * 100 and found.arena == program.sizes.of_dimensions({"time": 100, "batch": 8}).arena
    with pytest.raises(ArgumentError, match="there is no dimension rows"):
        program.sizes.of_dimensions({"rows": 1})
    with pytest.raises(ArgumentError, match="dimension time is 1"):
        program.sizes.of_dimensions({"time": 1})
