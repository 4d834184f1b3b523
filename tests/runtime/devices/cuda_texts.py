"""CUDA texts as the emitter writes them, right and with planted faults."""

from __future__ import annotations

SCALE = """
extern "C" __global__ void __launch_bounds__(128) scale(GC_IN(float) x, GC_OUT(float) y, long long n) {
  GC_EXTENT(x, n);
  GC_EXTENT(y, n);
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = x[i] * 2.0f;
}
"""

SCALE_VECTORS = """
extern "C" __global__ void scale(GC_IN(float) x, GC_OUT(float) y, long long n) {
  GC_EXTENT(x, n);
  GC_EXTENT(y, n);
  int i = (blockIdx.x * 64 + threadIdx.x) * 4;
  if (i + 4 <= n) {
    float4 v = gc_load4(x, i);
    gc_store4(y, i, make_float4(v.x * 2.0f, v.y * 2.0f, v.z * 2.0f, v.w * 2.0f));
  } else {
    for (; i < n; ++i) y[i] = x[i] * 2.0f;
  }
}
"""

SOFTMAX = """
extern "C" __global__ void __launch_bounds__(256) softmax(GC_IN(float) x, GC_OUT(float) y, long long n) {
  GC_EXTENT(x, n * gridDim.x);
  GC_EXTENT(y, n * gridDim.x);
  GC_SHARED(float, part, 8);
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const long long row = blockIdx.x * n;
  float m = -__builtin_inff();
  for (int i = t; i < n; i += 256) m = m > x[row + i] ? m : x[row + i];
  for (int o = 16; o > 0; o >>= 1) { float other = gc_shfl_xor(m, o); m = m > other ? m : other; }
  if (lane == 0) part[warp] = m;
  gc_block_sync();  // first
  m = part[lane % 8];
  for (int o = 4; o > 0; o >>= 1) { float other = gc_shfl_xor(m, o); m = m > other ? m : other; }
  gc_block_sync();  // second
  float s = 0.0f;
  for (int i = t; i < n; i += 256) s += __builtin_expf(x[row + i] - m);
  for (int o = 16; o > 0; o >>= 1) s += gc_shfl_xor(s, o);
  if (lane == 0) part[warp] = s;
  gc_block_sync();  // third
  s = part[lane % 8];
  for (int o = 4; o > 0; o >>= 1) s += gc_shfl_xor(s, o);
  for (int i = t; i < n; i += 256) y[row + i] = __builtin_expf(x[row + i] - m) / s;
}
"""

TRANSPOSE = """
extern "C" __global__ void transpose(GC_IN(float) x, GC_OUT(float) y) {
  GC_EXTENT(x, 1024);
  GC_EXTENT(y, 1024);
  GC_SHARED(float, tile, 1056);
  for (int i = threadIdx.x; i < 1024; i += 256) tile[i / 32 * 33 + i % 32] = x[i];
  gc_block_sync();
  for (int i = threadIdx.x; i < 1024; i += 256) y[i] = tile[i % 32 * 33 + i / 32];
}
"""


def changed(text: str, old: str, new: str) -> str:
    """The text with one place changed, which has to be there once."""
    assert text.count(old) == 1, (old, text.count(old))
    return text.replace(old, new)


SUMS_OF_WARPS = """
extern "C" __global__ void sums(GC_IN(float) x, GC_OUT(float) y) {
  GC_EXTENT(x, 256);
  GC_EXTENT(y, 8);
  GC_SHARED(float, own, 256);
  GC_PRIVATE(float, kept, 2);
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 32;
  kept[0] = x[first + lane];
  own[first + lane] = kept[0];
  gc_warp_sync();
  kept[1] = lane < 16 ? own[first + lane + 16] : 0.0f;
  float s = kept[0] + kept[1];
  for (int o = 8; o > 0; o >>= 1) s += gc_shfl_xor(s, o);
  if (lane == 0) y[first / 32] = s;
}
"""
