// Shared state of the launcher: limits, results for the caller, and the current launch.
#pragma once
#include <stdint.h>
#include <string.h>

#include <vector>

#include "gc_emulate.h"
#include "gc_fibers.h"

extern "C" {
gc_index3 gc_emu_thread, gc_emu_block, gc_emu_threads, gc_emu_blocks;
unsigned gc_emu_launch_number;

enum gc_fault_code {
  GC_FINE, GC_OUTSIDE, GC_MISALIGNED, GC_EXTENT_TOO_LARGE, GC_NO_MEMORY, GC_DIVERGED, GC_NO_LANE, GC_RACE, GC_UNSHARED,
  GC_SHARED_TOO_LARGE, GC_BAD_LAUNCH, GC_FENCE, GC_ORDER,
  GC_ALIASED
};

struct gc_fault {
  int code;
  int parameter;  // -1 for shared memory
  int writes, other_writes;
  long long index, count;
  int width;
  unsigned block, thread, other_block, other_thread;
  int line, other_line;
  const char* name;
};

struct gc_statistics {
  long long launches, blocks, threads, barriers, fewest_barriers, most_barriers, exchanges, shared;
};

gc_fault gc_emu_fault;
gc_statistics gc_emu_statistics;
}

namespace {

constexpr int kWarp = 32, kMaxThreads = 1024, kMaxWarps = kMaxThreads / kWarp;
constexpr size_t kStack = 256 << 10, kPage = 4096;
constexpr size_t kRedZone = 256, kAlignment = 256;
constexpr unsigned char kUnwritten = 0xff, kFence = 0xa5;  // The first is NaN, or -1, of every type.
constexpr size_t kQuarantine = 64 << 20;                   // Freed bytes that stay unused for a while.
constexpr long long kSharedLimit = 227 << 10;

struct Fiber {
  Context context;
  char* stack = nullptr;
  bool begun = false;
};

enum Status { kFresh, kReady, kAtWarp, kAtBlock, kDone };
constexpr int kSync = -1;  // A lane waits for a barrier, or (0 and more) for values of other lanes.

struct Thread {
  int status, line, waits_for, parity;
  Fiber* fiber;
};

struct SharedArray {
  char* data;
  size_t nbytes;
};

constexpr int kWatchRaces = 1, kWatchTraffic = 2;

struct Launch {
  const gc_kernel* kernel;
  const gc_slot* slots;
  unsigned threads, warps;
  long long shared_dynamic;
  int order, watch;
  const long long* extents;
};

Context scheduler;
Fiber fibers[kMaxThreads + 1];
Fiber* idle[kMaxThreads + 1];
int idle_count;
Fiber* running;

Thread threads[kMaxThreads];
gc_word exchanged[kMaxWarps][2][kWarp];
unsigned warp_epoch[kMaxWarps], block_epoch;
int lane_order[kWarp], lanes, cursor;
unsigned warp;  // The running one.
Launch launch;
bool failed;
uint64_t random_state;

std::vector<SharedArray> shared_arrays;
alignas(256) char dynamic_memory[kSharedLimit + 256];

[[noreturn]] void fail(int code);

void describe(const gc_region* region, long long index, int width, int writes) {
  gc_emu_fault.parameter = region->parameter;
  gc_emu_fault.name = region->name;
  gc_emu_fault.index = index;
  gc_emu_fault.count = region->count;
  gc_emu_fault.width = width;
  gc_emu_fault.writes = writes;
}

}  // namespace
