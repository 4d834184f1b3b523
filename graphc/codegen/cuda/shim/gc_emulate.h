// Definitions with which emitted CUDA text compiles as C++ and runs on the CPU, thread by thread.
//
// The text is compiled with GC_EMULATE defined and includes nothing. Every access to device or shared memory goes through
// gc_region, which knows the number of elements. Watched accesses (for races) and indices out of range take the slow
// path: gc_emu_access of gc_emulate.cpp, which does not return from a wrong access.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define __align__(n) alignas(n)

typedef unsigned long long gc_word;
struct gc_index3 { unsigned x, y, z; };
struct gc_region;

extern "C" {
extern gc_index3 gc_emu_thread, gc_emu_block, gc_emu_threads, gc_emu_blocks;
extern unsigned gc_emu_launch_number;
// Returns if the access is allowed: `width` elements of `item` bytes from `index` on.
void gc_emu_access(const gc_region* region, long long index, int item, int width, int writes, int line);
void gc_emu_misaligned(const gc_region* region, long long index, int width, int writes, int line);
void gc_emu_outside(const char* name, long long index, long long count, int line);
void gc_emu_extent(const gc_region* region, long long count);
void gc_emu_bind(gc_region* region, gc_word address, int item, int writes, int parameter);
void gc_emu_share(gc_region* region, const char* name, long long count, int item);
void gc_emu_share_dynamic(gc_region* region, const char* name, long long offset, long long count, int item);
void gc_emu_block_wait(int line);
void gc_emu_warp_wait(int line);
gc_word gc_emu_exchange(gc_word bits, int lane, int line);
int gc_emu_lane(void);
}

#define threadIdx gc_emu_thread
#define blockIdx gc_emu_block
#define blockDim gc_emu_threads
#define gridDim gc_emu_blocks

// ---- memory

// Elements that a kernel may access. With `limit` 0 every access takes the slow path.
struct gc_region {
  char* data;
  long long limit;
  long long count;
  const char* name;  // of a shared array; null for device memory
  int parameter;     // its number; -1 for a shared array
  short writes;      // bit 0: writeable; bit 1: other parameters may overlap it
  short item;        // bytes of an element
};

// One argument word as the parameter of a kernel: a region, or a number.
union gc_slot {
  gc_region region;
  long long number;
};

#define GC_INLINE inline __attribute__((always_inline))

// An index, and its line in the text.
struct gc_at {
  long long i;
  int line;
  GC_INLINE gc_at(long long index, int from = __builtin_LINE()) : i(index), line(from) {}
};

template <class T, int Writes>
struct gc_checked : gc_region {
  GC_INLINE void admit(gc_at at, int kind) const {
    if (__builtin_expect((gc_word)at.i >= (gc_word)limit, 0)) gc_emu_access(this, at.i, sizeof(T), 1, kind, at.line);
  }
  template <int N>
  GC_INLINE void admit_vector(gc_at at, int kind) const {
    if (__builtin_expect(at.i < 0 || at.i + N > limit, 0)) gc_emu_access(this, at.i, sizeof(T), N, kind, at.line);
    if (__builtin_expect(((gc_word)data + (gc_word)at.i * sizeof(T)) % (N * sizeof(T)), 0))
      gc_emu_misaligned(this, at.i, N, kind, at.line);
  }
  GC_INLINE T load(gc_at at) const {
    admit(at, 0);
    return ((const T*)data)[at.i];
  }
  GC_INLINE void store(gc_at at, T value) const {
    static_assert(Writes, "a parameter that is only read has no stores");
    admit(at, 1);
    ((T*)data)[at.i] = value;
  }
  GC_INLINE void extent(long long n) {
    if (__builtin_expect(n > count || n < 0, 0)) gc_emu_extent(this, n);
    if (limit) limit = n;
    count = n;
  }
};

// The target of an assignment.
template <class T>
struct gc_element {
  const gc_checked<T, 1>* region;
  gc_at at;
  GC_INLINE operator T() const { return region->load(at); }
  GC_INLINE gc_element& operator=(T value) { region->store(at, value); return *this; }
  GC_INLINE gc_element& operator=(const gc_element& other) { region->store(at, (T)other); return *this; }
  GC_INLINE gc_element& operator+=(T value) { return *this = (T)(region->load(at) + value); }
  GC_INLINE gc_element& operator*=(T value) { return *this = (T)(region->load(at) * value); }
};

template <class T, int Overlaps = 0>
struct gc_in : gc_checked<T, 0> {
  GC_INLINE T operator[](gc_at at) const { return this->load(at); }
};

template <class T, int Overlaps = 0>
struct gc_inout : gc_checked<T, 1> {
  GC_INLINE gc_element<T> operator[](gc_at at) const { return {this, at}; }
};

template <class T, long long N>
struct gc_shared : gc_inout<T> {
  unsigned launch;  // in which it was last used
  alignas(16) T elements[N];
  GC_INLINE void meet(const char* name) {
    if (__builtin_expect(launch == gc_emu_launch_number, 1)) return;
    launch = gc_emu_launch_number;
    this->data = (char*)elements;
    gc_emu_share(this, name, N, sizeof(T));
  }
};

template <class T>
struct gc_dynamic : gc_inout<T> {
  gc_dynamic(const char* name, long long offset, long long count) {
    gc_emu_share_dynamic(this, name, offset, count, sizeof(T));
  }
};

// Registers of one thread, unknown at first.
template <class T, int N>
struct gc_private {
  const char* name;
  T slots[N];
  explicit GC_INLINE gc_private(const char* called) : name(called) { __builtin_memset(slots, 0xff, sizeof slots); }
  GC_INLINE T& operator[](gc_at at) {
    if (__builtin_expect((gc_word)at.i >= (gc_word)N, 0)) gc_emu_outside(name, at.i, N, at.line);
    return slots[at.i];
  }
};

#define GC_IN(T) gc_in<T>
#define GC_OUT(T) gc_inout<T>
#define GC_INOUT(T) gc_inout<T>
#define GC_IN_SHARED(T) gc_in<T, 1>
#define GC_OUT_SHARED(T) gc_inout<T, 1>
#define GC_INOUT_SHARED(T) gc_inout<T, 1>
// Declares, at the start of a kernel, the number of elements of a parameter.
#define GC_EXTENT(name, n) name.extent(n)
// Two statements, for the start of a block.
#define GC_SHARED(T, name, n)        \
  static gc_shared<T, (n)> name; \
  name.meet(#name)
#define GC_PRIVATE(T, name, n) gc_private<T, (n)> name(#name)
#define GC_SHARED_DYNAMIC(T, name, offset, n) gc_dynamic<T> name(#name, offset, n)

// ---- vectors: 2 or 4 elements in one access of a thread

template <class T, int N>
struct gc_vector;
template <class T>
struct alignas(2 * sizeof(T)) gc_vector<T, 2> {
  T x, y;
};
template <class T>
struct alignas(4 * sizeof(T)) gc_vector<T, 4> {
  T x, y, z, w;
};

#define GC_VECTORS(T, name)              \
  typedef gc_vector<T, 2> name##2;       \
  typedef gc_vector<T, 4> name##4;       \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
GC_VECTORS(float, float)
GC_VECTORS(double, double)
GC_VECTORS(int, int)
GC_VECTORS(unsigned, uint)
GC_VECTORS(long long, longlong)
GC_VECTORS(short, short)
GC_VECTORS(unsigned short, ushort)
GC_VECTORS(signed char, char)
GC_VECTORS(unsigned char, uchar)

template <int N, class T, int Writes>
GC_INLINE gc_vector<T, N> gc_load_vector(const gc_checked<T, Writes>& region, gc_at at) {
  region.template admit_vector<N>(at, 0);
  return *(const gc_vector<T, N>*)((const T*)region.data + at.i);
}
template <int N, class T>
GC_INLINE void gc_store_vector(const gc_checked<T, 1>& region, gc_at at, gc_vector<T, N> value) {
  region.template admit_vector<N>(at, 1);
  *(gc_vector<T, N>*)((T*)region.data + at.i) = value;
}
#define gc_load2(region, i) gc_load_vector<2>(region, i)
#define gc_load4(region, i) gc_load_vector<4>(region, i)
#define gc_store2(region, i, value) gc_store_vector<2>(region, i, value)
#define gc_store4(region, i, value) gc_store_vector<4>(region, i, value)

// ---- barriers and exchanges

#define gc_block_sync() gc_emu_block_wait(__LINE__)
#define gc_warp_sync() gc_emu_warp_wait(__LINE__)
#define gc_shfl_xor(value, mask) gc_shuffle(value, gc_emu_lane() ^ (mask), __LINE__)
#define gc_shfl(value, lane) gc_shuffle(value, lane, __LINE__)

template <class T>
inline T gc_shuffle(T value, int lane, int line) {
  static_assert(sizeof(T) <= 8, "a lane hands on one register or two");
  gc_word bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = gc_emu_exchange(bits, lane, line);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

// ---- interface of kernels for the launcher

template <class T>
struct gc_parameter {
  static inline void bind(gc_slot* slot, gc_word word, int) { slot->number = (long long)word; }
  static inline T take(const gc_slot* slot) { return (T)slot->number; }
};

template <class P, class T, int Bits>
struct gc_pointer {
  static inline void bind(gc_slot* slot, gc_word word, int at) { gc_emu_bind(&slot->region, word, sizeof(T), Bits, at); }
  static inline P take(const gc_slot* slot) { return *(const P*)&slot->region; }
};
template <class T, int Overlaps>
struct gc_parameter<gc_in<T, Overlaps>> : gc_pointer<gc_in<T, Overlaps>, T, 2 * Overlaps> {};
template <class T, int Overlaps>
struct gc_parameter<gc_inout<T, Overlaps>> : gc_pointer<gc_inout<T, Overlaps>, T, 1 + 2 * Overlaps> {};

template <int... I>
struct gc_numbers {};
#if defined(__clang__)
template <class T, T... I>
using gc_sequence = gc_numbers<I...>;
template <int N>
using gc_numbers_to = __make_integer_seq<gc_sequence, int, N>;
#else
template <int N>
using gc_numbers_to = gc_numbers<__integer_pack(N)...>;
#endif

// A kernel, with functions that bind its parameters to words, and call it for one thread with the bound parameters.
struct gc_kernel {
  void (*function)();
  void (*bind)(const gc_word* words, gc_slot* slots);
  void (*call)(void (*function)(), const gc_slot* slots);
  int parameters;
};

template <class... A>
struct gc_entry {
  template <int... I>
  static inline void bind_each(const gc_word* words, gc_slot* slots, gc_numbers<I...>) {
    (gc_parameter<A>::bind(slots + I, words[I], I), ...);
  }
  template <int... I>
  static inline void call_with(void (*function)(A...), const gc_slot* slots, gc_numbers<I...>) {
    function(gc_parameter<A>::take(slots + I)...);
  }
  static void bind(const gc_word* words, gc_slot* slots) { bind_each(words, slots, gc_numbers_to<sizeof...(A)>()); }
  static void call(void (*function)(), const gc_slot* slots) {
    call_with((void (*)(A...))function, slots, gc_numbers_to<sizeof...(A)>());
  }
};

template <class... A>
inline gc_kernel gc_describe(void (*function)(A...)) {
  return {(void (*)())function, gc_entry<A...>::bind, gc_entry<A...>::call, sizeof...(A)};
}
