"""The kernel interpreter against plain numpy, against a walk over the tree, and on accesses that it must refuse."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from graphc.base.dtypes import ALL, DType, elements, numbers
from graphc.errors import ArgumentError, IndexRangeError, VerifyError
from graphc.ir.kernel.index import Axis, Div, Dynamic, Index
from graphc.ir.kernel.interpret import run_kernel, run_program
from graphc.ir.kernel.parse import parse_kernel, parse_program
from graphc.ir.kernel.scalar import SCALAR_OPS, result_type
from graphc.ir.kernel.statements import Acc, Const, IndexLet, Kernel, Let, Load, Loop, Read, Store, Update
from graphc.ir.kernel.verify import verify_kernel
from tests.ir.random_kernels import kernels


class TreeWalk:
    """A second, slower meaning: every scalar op by its numpy reference, every name in one dictionary."""

    def __init__(self, kernel: Kernel, arrays: dict[str, np.ndarray]):
        self.arrays = arrays
        self.names: dict[str, Any] = {}
        self.accs: dict[str, tuple[Acc, Any]] = {}
        with np.errstate(all="ignore"):
            self.body(kernel.body)

    def index(self, index: Index) -> int:
        total = index.constant
        for atom, coefficient in index.terms:
            if isinstance(atom, (Axis, Dynamic)):
                value = int(self.names[atom.name])
            elif isinstance(atom, Div):
                value = self.index(atom.operand) // atom.divisor
            else:
                value = self.index(atom.operand) % atom.divisor
            total += coefficient * value
        return total

    def ref(self, ref: Any) -> Any:
        return np.asarray(ref.value).astype(ref.dtype.numpy) if isinstance(ref, Const) else self.names[ref]

    def holds(self, guard: Any) -> bool:
        return all(b.low <= self.index(b.index) < b.high for b in guard)

    def body(self, body: Any) -> None:
        for stmt in body:
            self.stmt(stmt)

    def stmt(self, stmt: Any) -> None:
        if isinstance(stmt, Let):
            args = [self.ref(a) for a in stmt.args]
            extra = [stmt.dtype] if SCALAR_OPS[stmt.op].rule == "cast" else []
            self.names[stmt.name] = SCALAR_OPS[stmt.op].reference(*args, *extra)
        elif isinstance(stmt, IndexLet):
            self.names[stmt.name] = np.int64(self.index(stmt.index)).astype(stmt.dtype.numpy)
        elif isinstance(stmt, Load):
            inside = self.holds(stmt.guard)
            self.names[stmt.name] = self.arrays[stmt.buffer][self.index(stmt.index)] if inside else self.ref(stmt.other)
        elif isinstance(stmt, Store) and self.holds(stmt.guard):
            array, place, value = self.arrays[stmt.buffer], self.index(stmt.index), self.ref(stmt.value)
            array[place] = SCALAR_OPS[stmt.combine].reference(array[place], value) if stmt.combine else value
        elif isinstance(stmt, Loop):
            for i in range(stmt.axis.extent):
                self.names[stmt.axis.name] = i
                self.body(stmt.body)
        else:
            self.accumulator(stmt)

    def accumulator(self, stmt: Any) -> None:
        if isinstance(stmt, Acc):
            self.accs[stmt.name] = stmt, self.ref(stmt.init)
            return
        acc, value = self.accs[stmt.acc]
        if isinstance(stmt, Update):
            self.accs[stmt.acc] = acc, SCALAR_OPS[acc.combine].reference(value, self.ref(stmt.value))
        elif isinstance(stmt, Read):
            self.names[stmt.name] = value


def arguments(kernel: Kernel) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        b.name: rng.integers(0, 2 if b.dtype.kind == "b" else 100, b.size).astype(b.dtype.numpy)
        for b in kernel.arguments
    }


@settings(max_examples=100, deadline=None)
@given(kernels())
def test_random_kernels(kernel: Kernel):
    verify_kernel(kernel)
    got, expected = arguments(kernel), arguments(kernel)
    run_kernel(kernel, got)
    TreeWalk(kernel, expected)
    for name, array in got.items():
        np.testing.assert_array_equal(array, expected[name])


def application(op: str, types: tuple[DType, ...], result: DType) -> Kernel:
    loads = "\n".join(f"v{i}: {d} = load %x{i}[i0]" for i, d in enumerate(types))
    heads = ", ".join(f"%x{i}: {d}[8] in" for i, d in enumerate(types))
    args = ", ".join(f"v{i}" for i in range(len(types)))
    body = f"{loads}\nr: {result} = {op}({args})\nstore %y[i0] = r"
    return parse_kernel(f"kernel @k({heads}, %y: {result}[8] out) {{ for i0 in 8 parallel {{ {body} }} }}")


SAMPLES = {
    "f": [0.0, -0.0, 0.5, -1.5, 2.5, float("inf"), float("nan"), 100.25],
    "i": [0, 1, -1, 2, -3, 7, -128, 127],
    "u": [0, 1, 2, 3, 7, 128, 200, 255],
    "h": [0.0, -0.0, 0.5, -1.5, 2.5, float("inf"), float("nan"), 1e-7],
    "b": [False, True] * 4,
}


def _applications() -> list:
    found = []
    for op in SCALAR_OPS.values():
        if op.rule == "cast":
            pairs = [((a,), b) for a, b in product(ALL, ALL)]
        else:
            pairs = [(types, None) for types in product(ALL, repeat=op.arity)]
        for types, stated in pairs:
            try:
                result = result_type(op.name, types, stated)
            except VerifyError:
                continue
            found.append(pytest.param(op.name, types, result, id=f"{op.name}-{'-'.join(map(str, types))}-{result}"))
    return found


@pytest.mark.parametrize(("op", "types", "result"), _applications())
def test_every_scalar_operation(op: str, types: tuple[DType, ...], result: DType):
    arrays = [np.roll(elements(SAMPLES[d.kind], d), 3 * i) for i, d in enumerate(types)]
    if op.startswith("sh"):
        arrays[1] = np.abs(arrays[1]) % 8
    if op == "ldexp":
        arrays[1] = np.where(np.isfinite(arrays[1]), np.trunc(arrays[1]), 1).astype(arrays[1].dtype)
    y = np.zeros(8, result.numpy)
    run_kernel(application(op, types, result), {**{f"x{i}": a for i, a in enumerate(arrays)}, "y": y})
    extra = [result] if SCALAR_OPS[op].rule == "cast" else []
    with np.errstate(all="ignore"):
        expected = [SCALAR_OPS[op].reference(*(a[i] for a in arrays), *extra) for i in range(8)]
    np.testing.assert_array_equal(numbers(y), numbers(np.array(expected, result.numpy)))
    assert all(np.asarray(e).dtype == result.numpy for e in expected)


SOFTMAX = """
kernel @softmax(%x: f64[12] in, %y: f64[12] out, %t: f64[4] scratch) {
  for i0 in 3 parallel {
    acc a1: f64 = max f64(-inf)
    for i1 in 4 reduce {
      v1: f64 = load %x[4*i0 + i1]
      update a1 with v1
    }
    v2 = read a1
    acc a2: f64 = add f64(0.0)
    for i2 in 4 reduce {
      v3: f64 = load %x[4*i0 + i2]
      v4: f64 = sub(v3, v2)
      v5: f64 = exp(v4)
      store %t[i2] = v5
      update a2 with v5
    }
    v6 = read a2
    for i3 in 4 parallel {
      v7: f64 = load %t[i3]
      v8: f64 = div(v7, v6)
      store %y[4*i0 + i3] = v8
    }
  }
}
"""


def test_softmax():
    kernel = parse_kernel(SOFTMAX)
    verify_kernel(kernel)
    x, y = np.random.default_rng(0).normal(size=(3, 4)), np.zeros((3, 4))
    run_kernel(kernel, {"x": x, "y": y})
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-15)


def test_float32_is_rounded_at_every_step():
    kernel = parse_kernel("""
kernel @k(%x: f32[1000] in, %y: f32[1] out) {
  acc a: f32 = add f32(0.0)
  for i in 1000 reduce {
    v: f32 = load %x[i]
    update a with v
  }
  r = read a
  store %y[0] = r
}""")
    x, y = np.random.default_rng(0).normal(size=1000).astype(np.float32), np.zeros(1, np.float32)
    run_kernel(kernel, {"x": x, "y": y})
    total = np.float32(0)
    for value in x:
        total = np.float32(total + value)
    assert y[0] == total != np.float32(x.astype(np.float64).sum())


def test_scratch_starts_as_poison():
    kernel = parse_kernel("""
kernel @k(%y: i32[2] out, %t: i32[2] scratch) {
  store %t[0] = i32(7)
  for i in 2 parallel {
    v: i32 = load %t[i]
    store %y[i] = v
  }
}""")
    y = np.zeros(2, np.int32)
    run_kernel(kernel, {"y": y})
    assert y.tolist() == [7, -1515870811]


REFUSED = {
    "load": ("v: f32 = load %x[i + 1]", "index i + 1 is 4, %x has 4 elements"),
    "store": ("store %y[i - 1] = f32(1.0)", "index i - 1 is -1, %y has 4 elements"),
    "promise": ("n: i64 = index i\n v: f32 = load %x[[n:0..2]]", "n is 3, outside of the promised 0..2"),
}


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_access(body: str, message: str):
    kernel = parse_kernel(f"kernel @k(%x: f32[4] in, %y: f32[4] out) {{ for i in 4 parallel {{ {body} }} }}")
    with pytest.raises(IndexRangeError) as error:
        run_kernel(kernel, {"x": np.zeros(4, np.float32), "y": np.zeros(4, np.float32)})
    assert message in error.value.what
    assert error.value.where is not None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, r"@k takes \['x'\], got \[\]"),
        ({"x": np.zeros(3, np.float32)}, r"@k: %x is f32\[4\], got float32 \(3,\)"),
        ({"x": np.zeros(4)}, r"@k: %x is f32\[4\], got float64 \(4,\)"),
        ({"x": np.zeros(8, np.float32)[::2]}, r"@k: %x is f32\[4\], got float32 \(4,\), not contiguous"),
    ],
)
def test_wrong_arguments(arrays: dict[str, np.ndarray], message: str):
    with pytest.raises(ArgumentError, match=message):
        run_kernel(parse_kernel("kernel @k(%x: f32[4] in) { }"), arrays)


PROGRAM = """
program @p arena 128 {
  input %x: f32[2]
  state %s: f32[2] "count"
  output %y: f32[2,1]
  output %z: f32[2] alias %s
  output %w: f32[1,2] alias %x
  constant %c: f32[2] = f32[2](10.0, 20.0)
  temp %t: f32[2] at 0
  temp %u: f32[2] at OFFSET

  kernel @add(%a: f32[2] in, %b: f32[2] in, %r: f32[2] out) {
    for i in 2 parallel {
      v1: f32 = load %a[i]
      v2: f32 = load %b[i]
      v3: f32 = add(v1, v2)
      store %r[i] = v3
    }
  }

  kernel @increment(%a: f32[2] inout) {
    for i in 2 parallel {
      store %a[i] add= f32(1.0)
    }
  }

  call @add(%x, %c, %t)
  call @add(%t, %t, %u)
  call @add(%t, %u, %y)
  call @increment(%s)
}
"""


def test_program_runs_and_writes_its_state():
    program = parse_program(PROGRAM.replace("OFFSET", "64"))
    x, state = np.array([1, 2], np.float32), np.array([5, 6], np.float32)
    y, z, w = run_program(program, [x, state])
    np.testing.assert_array_equal(y, [[33], [66]])
    np.testing.assert_array_equal(z, [6, 7])
    np.testing.assert_array_equal(w, [[1, 2]])
    np.testing.assert_array_equal(state, [6, 7])
    np.testing.assert_array_equal(x, [1, 2])


def test_temporaries_share_the_arena_as_planned():
    """Both at offset 0: the sum of t and u reads u twice, which shows in the numbers."""
    program = parse_program(PROGRAM.replace("OFFSET", "0"))
    y, _, _ = run_program(program, [np.array([1, 2], np.float32), np.zeros(2, np.float32)])
    np.testing.assert_array_equal(y, [[44], [88]])


def test_program_checks_its_arguments():
    program = parse_program(PROGRAM.replace("OFFSET", "64"))
    with pytest.raises(ArgumentError, match="@p takes 2 arguments, got 0"):
        run_program(program, [])
    with pytest.raises(ArgumentError, match=r"%x is f32\[2\], got float64\(2,\)"):
        run_program(program, [np.zeros(2), np.zeros(2, np.float32)])
