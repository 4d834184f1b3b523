"""CUDA text that reduces large f64 angles, as codegen.llvm.angle does (Payne and Hanek, 1983)."""

from __future__ import annotations

import struct

from graphc.codegen.schedule.expansion.steps import hexes
from graphc.ir.kernel.large_angle import FROM, QUADRANT_BITS, WORDS, two_over_pi

_HALF_PI = hexes("0x1.921fb54442d18p+0 0x1.1a62633145c07p-54")


def _double(value: float) -> str:
    return f"GC_F64(0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x})"


_TEMPLATE = r"""__constant__ unsigned long long gc_two_over_pi[@WORDS@] = {@TABLE@};
GC_DEVICE unsigned long long gc_mulhi64(unsigned long long a, unsigned long long b) {
  const unsigned long long low = 0xffffffffull, a0 = a & low, a1 = a >> 32, b0 = b & low, b1 = b >> 32;
  const unsigned long long middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & low);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}
GC_DEVICE unsigned long long gc_shifted(unsigned long long a, unsigned long long b, int n) {
  return n ? a << n | b >> (64 - n) : a;
}
// What is left of an angle above 2^47, with the quarter turns in its exponent, or what that lacks; 0 of other angles.
static __device__ double gc_reduced(double x, int part) {
  const double size = GC_FN(fabs)(x);
  if (!(size > @FROM@)) return 0.0;
  const unsigned long long bits = gc_bitcast<unsigned long long>(size);
  const unsigned long long mantissa = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  const unsigned start = (unsigned)(bits >> 52) - @START@;
  const unsigned first = start >> 6 < @LAST@ ? start >> 6 : @LAST@;
  const int shift = (int)(start & 63);
  unsigned long long q[3];
  for (int k = 0; k < 3; ++k) q[k] = gc_shifted(gc_two_over_pi[first + k], gc_two_over_pi[first + k + 1], shift);
  const unsigned long long f2 = q[2] * mantissa, product = q[1] * mantissa;
  const unsigned long long f1 = product + gc_mulhi64(q[2], mantissa);
  const unsigned long long f0 = q[0] * mantissa + gc_mulhi64(q[1], mantissa) + (f1 < product);
  const unsigned long long turns = (f0 + (1ull << 61)) >> 62;
  const unsigned long long g0 = gc_shifted(f0, f1, 2), g1 = gc_shifted(f1, f2, 2);
  double total = (double)((long long)g0 >> 32) * @P1@;
  const double pieces[3] = {(double)(long long)(g0 & 0xffffffffull) * @P2@, (double)(long long)(g1 >> 32) * @P3@,
                            (double)(long long)(g1 & 0xffffffffull) * @P4@};
  double lost[3];
  for (int k = 0; k < 3; ++k) {
    const double sum = total + pieces[k];
    lost[k] = pieces[k] - (sum - total);
    total = sum;
  }
  const double rest = lost[0] + (lost[1] + lost[2]);
  const double high = total + rest, low = rest - (high - total);
  const double product0 = high * @HALF@, exact = GC_FN(fma)(high, @HALF@, -product0);
  const double cross = exact + (high * @TAIL@ + low * @HALF@);
  const double left = product0 + cross;
  double result = part ? cross - (left - product0) : left;
  if (x < 0.0) result = -result;
  if (!part) {
    const unsigned long long quarter = (x < 0.0 ? 0ull - turns : turns) & 3;
    result = gc_bitcast<double>(gc_bitcast<unsigned long long>(result) + (quarter << @QUADRANT@));
  }
  return result + (x - x);
}
GC_DEVICE double gc_reduce_large(double x) { return gc_reduced(x, 0); }
GC_DEVICE double gc_reduce_large_rest(double x) { return gc_reduced(x, 1); }
"""


def angle_text() -> str:
    """Return the CUDA text of ``gc_reduce_large`` and ``gc_reduce_large_rest``."""
    values = {
        "WORDS": str(WORDS),
        "TABLE": ", ".join(f"0x{word:x}ull" for word in two_over_pi()),
        "FROM": _double(FROM),
        "START": str(1075 + 2 - 64),
        "LAST": str(WORDS - 4),
        **{f"P{k}": _double(2.0 ** (-32 * k)) for k in range(1, 5)},
        "HALF": _double(_HALF_PI[0]),
        "TAIL": _double(_HALF_PI[1]),
        "QUADRANT": str(52 + QUADRANT_BITS),
    }
    text = _TEMPLATE
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
