"""Device functions at the start of every CUDA text, with the same results on a GPU and in emulated kernels.

With GC_EMULATE, ``shim/gc_emulate.h`` precedes the text and redefines parameters, shared and private arrays, vectors
and thread cooperation. Everything after it is the same text for both.
"""

from __future__ import annotations

PRELUDE = r"""#ifndef GC_EMULATE
#define GC_IN(T) const T* __restrict__
#define GC_OUT(T) T* __restrict__
#define GC_INOUT(T) T* __restrict__
#define GC_IN_SHARED(T) const T*
#define GC_OUT_SHARED(T) T*
#define GC_INOUT_SHARED(T) T*
#define GC_EXTENT(name, n)
#define GC_SHARED(T, name, n) __shared__ __align__(16) T name[n]
#define GC_SHARED_DYNAMIC(T, name, offset, n) T* const name = (T*)(gc_dynamic_shared + (offset))
#define GC_PRIVATE(T, name, n) T name[n]
extern __shared__ __align__(16) unsigned char gc_dynamic_shared[];
template <class T, int N> struct gc_vector_of;
template <> struct gc_vector_of<float, 2> { typedef float2 type; };
template <> struct gc_vector_of<float, 4> { typedef float4 type; };
template <> struct gc_vector_of<double, 2> { typedef double2 type; };
template <> struct gc_vector_of<int, 2> { typedef int2 type; };
template <> struct gc_vector_of<int, 4> { typedef int4 type; };
template <> struct gc_vector_of<long long, 2> { typedef longlong2 type; };
template <int N, class T>
__device__ __forceinline__ typename gc_vector_of<T, N>::type gc_load_vector(const T* p) {
  return *reinterpret_cast<const typename gc_vector_of<T, N>::type*>(p);
}
template <int N, class T, class V>
__device__ __forceinline__ void gc_store_vector(T* p, V v) {
  *reinterpret_cast<typename gc_vector_of<T, N>::type*>(p) = v;
}
#define gc_load2(p, i) gc_load_vector<2>((p) + (i))
#define gc_load4(p, i) gc_load_vector<4>((p) + (i))
#define gc_store2(p, i, v) gc_store_vector<2>((p) + (i), v)
#define gc_store4(p, i, v) gc_store_vector<4>((p) + (i), v)
#define gc_is_aligned(p) (((unsigned long long)(p) & 15) == 0)
#define gc_block_sync() __syncthreads()
#define gc_warp_sync() __syncwarp()
#define gc_shfl_xor(value, mask) __shfl_xor_sync(0xffffffffu, value, mask)
#define GC_FN(name) name
#else
#define gc_is_aligned(region) (((unsigned long long)(region).data & 15) == 0)
#define GC_FN(name) __builtin_##name
#endif
#define GC_DEVICE static __device__ __forceinline__
template <class To, class From> GC_DEVICE To gc_bitcast(From from) {
  union { From from; To to; } bits;
  bits.from = from;
  return bits.to;
}
#define GC_F32(bits) gc_bitcast<float>(bits##u)
#define GC_F64(bits) gc_bitcast<double>(bits##ull)
template <class T> GC_DEVICE T gc_max(T a, T b) { return a > b || a != a ? a : b; }
template <class T> GC_DEVICE T gc_min(T a, T b) { return a < b || a != a ? a : b; }
template <class I> GC_DEVICE I gc_floor_div(I a, I b) { I q = a / b; return q - (a % b < 0); }
template <class I> GC_DEVICE I gc_floor_mod(I a, I b) { I r = a % b; return r < 0 ? r + b : r; }
template <class T, class U> GC_DEVICE T gc_div(T a, T b) {
  if (b == 0) return 0;
  if ((T)-1 < (T)0 && b == (T)-1) return (T)((U)0 - (U)a);
  return (T)(a / b);
}
template <class T> GC_DEVICE T gc_rem(T a, T b) {
  if (b == 0 || ((T)-1 < (T)0 && b == (T)-1)) return 0;
  return (T)(a % b);
}
template <class T, class U, int Bits> GC_DEVICE T gc_shl(T a, T b) { return (U)b >= Bits ? (T)0 : (T)((U)a << (U)b); }
template <class T, class U, int Bits> GC_DEVICE T gc_shr_unsigned(T a, T b) {
  return (U)b >= Bits ? (T)0 : (T)((U)a >> (U)b);
}
template <class T, class U, int Bits> GC_DEVICE T gc_shr(T a, T b) {
  return (T)(a >> ((U)b >= Bits ? (U)(Bits - 1) : (U)b));
}
GC_DEVICE int gc_mulhi_unsigned(int a, int b) {
  return (int)(unsigned)(((unsigned long long)(unsigned)a * (unsigned)b) >> 32);
}
template <class T, class F> GC_DEVICE T gc_to_integer(F v, T least, T most) {
  if (v != v) return 0;
  if (v <= (F)least) return least;
  if (v >= (F)most) return most;
  return (T)v;
}
GC_DEVICE float gc_widen_bf16(unsigned short b) { return gc_bitcast<float>((unsigned)b << 16); }
GC_DEVICE float gc_widen_f16(unsigned short h) {
  const unsigned sign = (unsigned)(h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return gc_bitcast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  const float value = gc_bitcast<float>(rest << 13) * gc_bitcast<float>(0x77800000u);
  return gc_bitcast<float>(sign | gc_bitcast<unsigned>(value));
}
GC_DEVICE unsigned gc_round_bf16(float v) {
  const unsigned bits = gc_bitcast<unsigned>(v);
  return v != v ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
}
GC_DEVICE unsigned short gc_narrow_bf16(float v) { return (unsigned short)(gc_round_bf16(v) >> 16); }
GC_DEVICE unsigned short gc_narrow_f16(float v) {
  const unsigned bits = gc_bitcast<unsigned>(v), rest = bits & 0x7fffffffu;
  const unsigned short sign = (unsigned short)(bits >> 16 & 0x8000u);
  if (v != v) return (unsigned short)(sign | 0x7e00u | (bits >> 13 & 0x1ffu));
  if (rest > 0x477fefffu) return (unsigned short)(sign | 0x7c00u);
  if (rest < 0x38800000u)
    return (unsigned short)(sign | (gc_bitcast<unsigned>(gc_bitcast<float>(rest) + 0.5f) - 0x3f000000u));
  return (unsigned short)(sign | (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13);
}
GC_DEVICE int gc_pair(float a, float b) {
  return (int)(gc_round_bf16(a) >> 16 | (gc_round_bf16(b) & 0xffff0000u));
}
GC_DEVICE float gc_dot2(int a, int b) {
  const float high = gc_bitcast<float>(a & 0xffff0000) * gc_bitcast<float>(b & 0xffff0000);
  return GC_FN(fmaf)(gc_bitcast<float>((unsigned)a << 16), gc_bitcast<float>((unsigned)b << 16), high);
}
GC_DEVICE int gc_dot4(int a, int b) {
  int total = 0;
  for (int place = 0; place < 32; place += 8)
    total += (int)((unsigned)a >> place & 255u) * (int)(signed char)((unsigned)b >> place & 255u);
  return total;
}
GC_DEVICE int gc_dot2i(int a, int b) {
  return (int)(short)(a & 0xffff) * (int)(short)(b & 0xffff) + (a >> 16) * (b >> 16);
}
GC_DEVICE float gc_nibble(int a) { return (float)((int)((unsigned)a << 28) >> 28); }
"""
"""Written for compilers for GPUs and CPUs alike, without any header."""
