"""Programs with named dimensions are scheduled once, and are right at every size: 1, odd ones, tiles and limits."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.target import target_named
from graphc.ir.kernel.statements import Kernel
from tests.codegen.kernel_native import kernel_of
from tests.codegen.sized import around, check_schedule
from tests.native import priced

TARGETS = ("host", "avx2", "neon")
DIMS = """
        dim batch = 1..8 hint 4
        dim time = 1..300 hint 40
"""

ELEMENTWISE = """
        kernel @k(%x: f32[batch*time*6] in, %b: f32[6] in, %y: f32[batch*time*6] out) {
          for i in batch parallel {
            for j in time parallel {
              for k in 6 parallel {
                v: f32 = load %x[6*time*i + 6*j + k]
                b: f32 = load %b[k]
                s: f32 = add(v, b)
                e: f32 = tanh(s)
                store %y[6*time*i + 6*j + k] = e
              }
            }
          }
        }"""

MERGED = """
        kernel @k(%x: f32[batch*time*6] in, %y: f32[batch*time*6] out) {
          for i in batch parallel {
            for j in time parallel {
              for k in 6 parallel {
                v: f32 = load %x[6*time*i + 6*j + k]
                e: f32 = mul(v, v)
                store %y[6*time*i + 6*j + k] = e
              }
            }
          }
        }"""

ALONE = """
        kernel @k(%x: f32[time] in, %y: f32[time] out) {
          for i in time parallel {
            v: f32 = load %x[i]
            w: f32 = mul(v, v)
            store %y[i] = w
          }
        }"""

SOFTMAX = """
        kernel @k(%x: f32[batch*ROW] in, %y: f32[batch*ROW] out) {
          for i in batch parallel {
            acc m: f32 = max f32(-inf)
            for j in ROW reduce {
              v: f32 = load %x[(ROW)*i + j]
              update m with v
            }
            top = read m
            acc s: f32 = add f32(0.0)
            for j2 in ROW reduce {
              v2: f32 = load %x[(ROW)*i + j2]
              d: f32 = sub(v2, top)
              e: f32 = exp(d)
              update s with e
            }
            all = read s
            for j3 in ROW parallel {
              v3: f32 = load %x[(ROW)*i + j3]
              d3: f32 = sub(v3, top)
              e3: f32 = exp(d3)
              q: f32 = div(e3, all)
              store %y[(ROW)*i + j3] = q
            }
          }
        }"""

COLUMN_SUMS = """
        kernel @k(%x: f32[batch*time*CHANNELS] in, %y: f32[CHANNELS] out) {
          for k in CHANNELS parallel {
            acc s: f32 = add f32(0.0)
            for i in batch reduce {
              for j in time reduce {
                v: f32 = load %x[CHANNELS*time*i + CHANNELS*j + k]
                update s with v
              }
            }
            r = read s
            store %y[k] = r
          }
        }"""

COLUMNS_OF_TIME = """
        kernel @k(%x: f32[batch*time] in, %y: f32[time] out) {
          for k in time parallel {
            acc s: f32 = add f32(0.0)
            for i in batch reduce {
              v: f32 = load %x[time*i + k]
              update s with v
            }
            r = read s
            store %y[k] = r
          }
        }"""

TRANSPOSE = """
        kernel @k(%x: f32[batch*time*WIDTH] in, %y: f32[batch*time*WIDTH] out) {
          for b in batch parallel {
            for i in time parallel {
              for j in WIDTH parallel {
                v: f32 = load %x[time*(WIDTH)*b + (WIDTH)*i + j]
                store %y[time*(WIDTH)*b + time*j + i] = v
              }
            }
          }
        }"""

TRANSPOSE_BACK = """
        kernel @k(%x: f32[batch*time*WIDTH] in, %y: f32[batch*time*WIDTH] out) {
          for b in batch parallel {
            for i in time parallel {
              for j in WIDTH parallel {
                v: f32 = load %x[time*(WIDTH)*b + time*j + i]
                store %y[time*(WIDTH)*b + (WIDTH)*i + j] = v
              }
            }
          }
        }"""

RUNNING_SUM = """
        kernel @k(%x: f32[batch*time] in, %y: f32[batch*time] out) {
          for i in batch parallel {
            acc s: f32 = add f32(0.0)
            for j in time serial {
              v: f32 = load %x[time*i + j]
              update s with v
              r = read s
              store %y[time*i + j] = r
            }
          }
        }"""

MASK = """
        kernel @k(%x: f32[batch*time*time] in, %y: f32[batch*time*time] out) {
          for b in batch parallel {
            for i in time parallel {
              for j in time parallel {
                v: f32 = load %x[time*time*b + time*i + j]
                p: i64 = index i
                q: i64 = index j
                c: bool = le(q, p)
                w: f32 = select(c, v, f32(-1.0))
                store %y[time*time*b + time*i + j] = w
              }
            }
          }
        }"""

POSITIONS = """
        kernel @k(%x: f32[batch*time] in, %y: f32[batch*time] out) {
          for b in batch parallel {
            for i in time parallel {
              v: f32 = load %x[time*b + i]
              p: i64 = index i
              n: i64 = index time - 3
              c: bool = lt(p, n)
              w: f32 = select(c, v, f32(-1.0))
              store %y[time*b + i] = w
            }
          }
        }"""

PAD = """
        kernel @k(%x: f32[batch*time*6] in, %y: f32[batch*(time + 3)*6] out) {
          for i in batch parallel {
            for j in time + 3 parallel {
              for k in 6 parallel {
                v: f32 = load %x[6*time*i + 6*j + k - 6] if 0 <= j - 1 < time else f32(2.0)
                store %y[6*(time + 3)*i + 6*j + k] = v
              }
            }
          }
        }"""

PAD_ALONG = """
        kernel @k(%x: f32[batch*time] in, %y: f32[batch*(time + 3)] out) {
          for i in batch parallel {
            for j in time + 3 parallel {
              v: f32 = load %x[time*i + j - 1] if 0 <= j - 1 < time else f32(2.0)
              store %y[(time + 3)*i + j] = v
            }
          }
        }"""

CONCAT = """
        kernel @k(%x: f32[batch*time*6] in, %z: f32[batch*6] in, %y: f32[batch*(time + 1)*6] out) {
          for i in batch parallel {
            for j in time + 1 parallel {
              for k in 6 parallel {
                p: i64 = index j
                c: bool = lt(p, i64(1))
                a: f32 = load %z[6*i + k] if 0 <= j < 1 else f32(0.0)
                v: f32 = load %x[6*time*i + 6*j + k - 6] if 1 <= j < time + 1 else f32(0.0)
                w: f32 = select(c, a, v)
                store %y[6*(time + 1)*i + 6*j + k] = w
              }
            }
          }
        }"""

FLAT_VIEW = """
        kernel @k(%x: f32[batch*time*6] in, %y: f32[batch*time*6] out) {
          for i in batch parallel {
            for j in time*6 parallel {
              v: f32 = load %x[6*time*i + 6*(j % time) + j // time]
              store %y[6*time*i + j] = v
            }
          }
        }"""

KERNELS = {
    "elementwise": ELEMENTWISE,
    "merged": MERGED,
    "alone": ALONE,
    "softmax over time": SOFTMAX.replace("ROW", "time"),
    "softmax over channels": SOFTMAX.replace("ROW", "40"),
    "softmax over both": SOFTMAX.replace("ROW", "5*time"),
    "sums of columns": COLUMN_SUMS.replace("CHANNELS", "6"),
    "sums of columns of time": COLUMNS_OF_TIME,
    "transpose": TRANSPOSE.replace("WIDTH", "24"),
    "transpose of both": TRANSPOSE.replace("WIDTH", "time"),
    "transpose back": TRANSPOSE_BACK.replace("WIDTH", "24"),
    "running sum": RUNNING_SUM,
    "mask": MASK,
    "positions": POSITIONS,
    "pad": PAD,
    "pad along": PAD_ALONG,
    "concat": CONCAT,
    "flat view": FLAT_VIEW,
}


def parsed(text: str) -> Kernel:
    return kernel_of((DIMS + text).replace("        ", ""))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_right_at_every_size(name: str, target: str):
    machine = target_named(target)
    square = "time*time" in KERNELS[name]
    lengths = around(machine)[:8] if square else around(machine, 97)
    sizes = [{"batch": 1 + 2 * (i % 2), "time": t} for i, t in enumerate(lengths)]
    check_schedule(parsed(KERNELS[name]), machine, [{d: s[d] for d in s if d in KERNELS[name]} for s in sizes])


# ---- long sums

SHORT = {"split_from": 64, "stretch": 32, "few_results": 2}
"""Costs at which short sums have the form of long ones."""
ROWS = {"rows_from": 1, "rows_stretch": 640, "few_results": 2, "high": 2, "wide": 8, "fewest_rows": 1}
"""The same for sums of columns."""

TOTAL = """
        kernel @k(%x: f32[batch*time*6] in, %y: f32[1] out) {
          acc s: f32 = add f32(0.0)
          for i in batch reduce {
            for j in time reduce {
              for k in 6 reduce {
                v: f32 = load %x[6*time*i + 6*j + k]
                update s with v
              }
            }
          }
          r = read s
          store %y[0] = r
        }"""

LARGEST = TOTAL.replace("add f32(0.0)", "max f32(-inf)")

APART = """
        kernel @k(%x: f32[batch*time*8] in, %y: f32[1] out) {
          acc s: f32 = add f32(0.0)
          for i in batch reduce {
            for j in time reduce {
              v: f32 = load %x[8*time*i + 8*j]
              update s with v
            }
          }
          r = read s
          store %y[0] = r
        }"""

WIDE_COLUMNS = COLUMN_SUMS.replace("CHANNELS", "40")

COLUMNS_BETWEEN = WIDE_COLUMNS.replace("40*time*i + 40*j + k", "40*time*i + time*k + j")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "costs"),
    [
        (TOTAL, SHORT),
        (LARGEST, SHORT),
        (APART, SHORT),
        (WIDE_COLUMNS, {**SHORT, "few_results": 64}),
        (WIDE_COLUMNS, {**ROWS, "row_bytes": 64}),
        (COLUMNS_OF_TIME, {**ROWS, "row_bytes": 64}),
        (WIDE_COLUMNS, ROWS),
        (COLUMNS_OF_TIME, ROWS),
        (COLUMNS_BETWEEN, ROWS),
    ],
)
def test_long_sums_are_split_for_all_sizes(text: str, costs: dict, target: str):
    machine = priced(target_named(target), reduction=costs)
    sizes = [{"batch": b, "time": t} for b, t in [(1, 1), (3, 5), (8, 31), (1, 32), (4, 33), (2, 97)]]
    program = check_schedule(parsed(text), machine, sizes)
    assert len(program.kernels) == (1 if text is COLUMNS_BETWEEN else 2)
