"""A program with named dimensions, and arrays for it."""

from __future__ import annotations

from functools import cache

import numpy as np

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.entry import emit_module
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.threads.execution import Execution
from graphc.compiler.compile import describe
from graphc.ir.kernel.parse import parse_program
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


@cache
def sized_program() -> Executable:
    """The program, loaded."""
    return executable_of(PROGRAM)


def executable_of(text: str) -> Executable:
    """A program, planned and loaded."""
    target = host_target()
    planned = plan_memory(parse_program(text))
    manifest, constants = describe(planned, target)
    code = build_object(emit_module(planned, target, Execution()), target)
    return Executable(manifest, load_object(code, manifest.entry, manifest.target), constants)


def given(batch: int, time: int) -> tuple[np.ndarray, np.ndarray]:
    """Its inputs."""
    random = np.random.default_rng(batch * 1000 + time)
    return random.random((batch, 2 * time), np.float32), random.random(time, np.float32)


def check(results: list[np.ndarray], x: np.ndarray, w: np.ndarray) -> None:
    """Check the outputs."""
    y, s = results
    expected = (x[:, : len(w)] + x[:, len(w) :]) * w
    np.testing.assert_array_equal(y, 2 * expected)
    np.testing.assert_allclose(s, expected.sum(axis=1), rtol=1e-5)
