// Executes kernels of emitted CUDA text on the CPU.
//
// Blocks run one after the other. A block runs warp by warp, each until its lanes wait for other warps. So a warp runs as
// far ahead of the others as barriers allow, which exposes missing ones. One fiber runs the threads of a warp in a row as
// long as none of them waits; a waiting thread keeps its fiber, and another fiber runs the rest.
#include "gc_emulate.h"

#include <sys/mman.h>

#include "gc_memory.h"
#include "gc_races.h"
#include "gc_state.h"
#include "gc_traffic.h"

namespace {

// ---- fibers

void fiber_main();

void forget_fibers();

bool make_fibers() {
  size_t stride = kStack + kPage;
  char* stacks = (char*)mmap(nullptr, stride * (kMaxThreads + 1), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == (char*)MAP_FAILED) return false;
  for (int i = 0; i <= kMaxThreads; i++) {
    mprotect(stacks + i * stride, kPage, PROT_NONE);
    fibers[i].stack = stacks + i * stride + kPage;
  }
  forget_fibers();
  return true;
}

// Restarts every fiber: after a fault some are in the middle of a thread.
void forget_fibers() {
  for (idle_count = 0; idle_count <= kMaxThreads; idle_count++) {
    idle[idle_count] = &fibers[kMaxThreads - idle_count];
    idle[idle_count]->begun = false;
  }
}

inline Thread& current() { return threads[gc_emu_thread.x]; }

inline void to_scheduler() { change(running->context, scheduler); }

inline void enter(Context& from, Fiber* fiber) {
  if (!fiber->begun) fiber->context.begin(fiber->stack, kStack, fiber_main);
  fiber->begun = true;
  running = fiber;
  change(from, fiber->context);
}

// The next runnable thread of the warp in the order of its lanes; -1 if there is none.
inline int next_ready() {
  while (cursor < lanes) {
    int number = (int)warp * kWarp + lane_order[cursor];
    if (threads[number].status != kFresh && threads[number].status != kReady) {
      cursor++;
      continue;
    }
    return number;
  }
  return -1;
}

// Switches to the next runnable thread, or to the scheduler. `mine` resumes here when it is its turn.
inline void go_on(Context& mine) {
  int number = next_ready();
  if (number < 0) {
    change(mine, scheduler);
  } else if (threads[number].status == kFresh) {
    enter(mine, idle[--idle_count]);
  } else {
    cursor++;
    gc_emu_thread.x = (unsigned)number;
    enter(mine, threads[number].fiber);
  }
}

// Runs the threads of a warp that have not started, in a row.
void fiber_main() {
  for (;;) {
    Fiber* mine = running;
    for (int number; (number = next_ready()) >= 0 && threads[number].status == kFresh;) {
      cursor++;
      threads[number].fiber = mine;
      gc_emu_thread.x = (unsigned)number;
      launch.kernel->call(launch.kernel->function, launch.slots);
      threads[gc_emu_thread.x].status = kDone;
    }
    idle[idle_count++] = mine;
    go_on(mine->context);
  }
}

[[noreturn]] void fail(int code) {
  gc_emu_fault.code = code;
  gc_emu_fault.block = gc_emu_block.x;
  gc_emu_fault.thread = gc_emu_thread.x;
  failed = true;
  to_scheduler();
  abort();
}

void wait(int status, int line, int waits_for) {
  Thread& thread = current();
  thread.status = status;
  thread.line = line;
  thread.waits_for = waits_for;
  go_on(thread.fiber->context);
}

// ---- the schedule

unsigned random_below(unsigned n) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)((random_state >> 33) % n);
}

// 0: forwards, 1: backwards, others: a new permutation each time.
void arrange(int* numbers, int n) {
  for (int i = 0; i < n; i++) numbers[i] = launch.order == 1 ? n - 1 - i : i;
  if (launch.order < 2) return;
  for (int i = n - 1; i > 0; i--) {
    int j = (int)random_below((unsigned)i + 1), kept = numbers[i];
    numbers[i] = numbers[j];
    numbers[j] = kept;
  }
}

// Threads that wait at a barrier which others do not reach.
bool diverged(unsigned one, unsigned other) {
  gc_emu_thread.x = one;
  gc_emu_fault.code = GC_DIVERGED;
  gc_emu_fault.block = gc_emu_fault.other_block = gc_emu_block.x;
  gc_emu_fault.thread = one;
  gc_emu_fault.other_thread = other;
  gc_emu_fault.line = threads[one].line;
  gc_emu_fault.other_line = threads[other].status == kDone ? 0 : threads[other].line;
  failed = true;
  return false;
}

bool is_alike(const Thread& a, const Thread& b) {
  return a.status == b.status && a.line == b.line && a.waits_for == b.waits_for;
}

// Releases the lanes of a warp that all wait for each other. False if none does, or after a fault.
bool release_warp(unsigned first) {
  int waits = -1;
  for (int i = 0; i < lanes; i++)
    if (threads[first + i].status == kAtWarp) { waits = i; break; }
  if (waits < 0) return false;
  Thread& one = threads[first + waits];
  for (int i = 0; i < lanes; i++)
    if (!is_alike(threads[first + i], one)) return diverged(first + waits, first + i);
  if (one.waits_for == kSync) warp_epoch[warp]++;
  else gc_emu_statistics.exchanges++;
  for (int i = 0; i < lanes; i++) threads[first + i].status = kReady;
  return true;
}

// Runs the threads of one warp until all of them are done or wait for the block.
void run_warp(unsigned number) {
  warp = number;
  unsigned first = warp * kWarp;
  lanes = (int)(launch.threads - first < (unsigned)kWarp ? launch.threads - first : kWarp);
  arrange(lane_order, lanes);
  do {
    cursor = 0;
    if (next_ready() >= 0) go_on(scheduler);
    if (launch.watch & kWatchTraffic) count_traffic();
  } while (!failed && release_warp(first));
}

// Releases the threads of the block that all wait for each other. False if all are done, or after a fault.
bool release_block() {
  unsigned waits = launch.threads;
  for (unsigned i = 0; i < launch.threads; i++)
    if (threads[i].status == kAtBlock) { waits = i; break; }
  if (waits == launch.threads) return false;
  for (unsigned i = 0; i < launch.threads; i++)
    if (!is_alike(threads[i], threads[waits])) return diverged(waits, i);
  for (unsigned i = 0; i < launch.threads; i++) threads[i].status = kReady;
  block_epoch++;
  return true;
}

void begin_block(unsigned number) {
  gc_emu_block.x = number;
  block_epoch = 0;
  memset(warp_epoch, 0, launch.warps * sizeof(unsigned));
  for (unsigned i = 0; i < launch.threads; i++) {
    threads[i].status = kFresh;
    threads[i].parity = 0;
  }
  for (SharedArray& array : shared_arrays) memset(array.data, kUnwritten, array.nbytes);
  if (launch.shared_dynamic) memset(dynamic_memory, kUnwritten, (size_t)launch.shared_dynamic);
}

void run_block(unsigned number) {
  begin_block(number);
  int order[kMaxWarps];
  do {
    arrange(order, (int)launch.warps);
    for (unsigned i = 0; i < launch.warps && !failed; i++) run_warp((unsigned)order[i]);
  } while (!failed && release_block());
  long long met = block_epoch;
  gc_statistics& seen = gc_emu_statistics;
  seen.barriers += met;
  if (met < seen.fewest_barriers || seen.fewest_barriers < 0) seen.fewest_barriers = met;
  if (met > seen.most_barriers) seen.most_barriers = met;
}

// Order of blocks: block `start + i * step` of a launch is number i; the step is coprime to their number.
void arrange_blocks(uint64_t grid, uint64_t* start, uint64_t* step) {
  *start = random_below((unsigned)grid);
  *step = 1 + random_below((unsigned)grid - 1);
  for (;; *step = *step % grid + 1) {
    uint64_t a = *step, b = grid;
    while (b) {
      uint64_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return;
  }
}

void run_grid(unsigned grid, int order) {
  launch.order = order;
  gc_emu_launch_number++;
  shared_arrays.clear();
  failed = false;
  random_state = (uint64_t)order * 0x9e3779b97f4a7c15ull + 1;
  gc_emu_thread = gc_emu_block = {0, 0, 0};
  gc_statistics& seen = gc_emu_statistics;
  seen = {seen.launches + 1, grid, (long long)grid * launch.threads, 0, -1, 0, 0, launch.shared_dynamic};
  uint64_t start = 0, step = 1;
  if (order >= 2 && grid > 1) arrange_blocks(grid, &start, &step);
  for (uint64_t i = 0; i < grid && !failed; i++)
    run_block((unsigned)(order == 1 ? grid - 1 - i : (start + i * step) % grid));
  if (failed) forget_fibers();
}

}  // namespace

// ---- functions for kernels

extern "C" {

void gc_emu_access(const gc_region* region, long long index, int item, int width, int writes, int line) {
  gc_emu_fault.line = line;
  if (index < 0 || index + width > region->count) {
    describe(region, index, width, writes);
    fail(GC_OUTSIDE);
  }
  if (launch.watch & kWatchTraffic) note_traffic(region, index, item, width, writes);
  if (launch.watch & kWatchRaces)
    for (int i = 0; i < width; i++) watch(region, index + i, item, writes);
}

void gc_emu_misaligned(const gc_region* region, long long index, int width, int writes, int line) {
  gc_emu_fault.line = line;
  describe(region, index, width, writes);
  fail(GC_MISALIGNED);
}

// An array that is private to a thread.
void gc_emu_outside(const char* name, long long index, long long count, int line) {
  gc_emu_fault.line = line;
  gc_region region = {nullptr, count, count, name, -2, 1, 1};
  describe(&region, index, 1, 0);
  fail(GC_OUTSIDE);
}

void gc_emu_extent(const gc_region* region, long long count) {
  describe(region, count, 1, 0);
  fail(GC_EXTENT_TOO_LARGE);
}

void gc_emu_bind(gc_region* region, gc_word address, int item, int writes, int parameter) {
  auto found = find((uintptr_t)address);
  long long count = found ? (long long)((found->first + found->second.nbytes - address) / (size_t)item) : 0;
  long long extent = launch.extents ? launch.extents[parameter] : -1;
  bool fits = extent <= count;
  if (extent == 0 || (extent > 0 && fits)) count = extent;
  *region = {(char*)address, launch.watch ? 0 : count, count, nullptr, parameter, (short)writes, (short)item};
  if (extent == 0 || (found && address % (size_t)item == 0 && fits) || gc_emu_fault.code) return;
  describe(region, found && !fits ? extent : (long long)address, 1, 0);
  gc_emu_fault.code = !found ? GC_NO_MEMORY : !fits ? GC_EXTENT_TOO_LARGE : GC_MISALIGNED;
}

// An array at its first use in this launch.
void gc_emu_share(gc_region* region, const char* name, long long count, int item) {
  *region = {region->data, launch.watch ? 0 : count, count, name, -1, 1, (short)item};
  shared_arrays.push_back({region->data, (size_t)(count * item)});
  memset(region->data, kUnwritten, (size_t)(count * item));
  gc_emu_statistics.shared += count * item;
  if (gc_emu_statistics.shared <= kSharedLimit) return;
  describe(region, 0, 1, 0);
  gc_emu_fault.count = gc_emu_statistics.shared;
  fail(GC_SHARED_TOO_LARGE);
}

void gc_emu_share_dynamic(gc_region* region, const char* name, long long offset, long long count, int item) {
  *region = {dynamic_memory + offset, launch.watch ? 0 : count, count, name, -1, 1, (short)item};
  if (offset >= 0 && offset + count * item <= launch.shared_dynamic) return;
  describe(region, 0, 1, 0);
  gc_emu_fault.count = offset + count * item;
  fail(GC_SHARED_TOO_LARGE);
}

void gc_emu_block_wait(int line) { wait(kAtBlock, line, kSync); }

void gc_emu_warp_wait(int line) { wait(kAtWarp, line, kSync); }

int gc_emu_lane(void) { return (int)(gc_emu_thread.x % kWarp); }

gc_word gc_emu_exchange(gc_word bits, int source, int line) {
  Thread& thread = current();
  int lane = gc_emu_lane(), parity = thread.parity;
  unsigned mine = gc_emu_thread.x / kWarp;
  unsigned there = launch.threads - mine * kWarp;
  if (source < 0 || source >= kWarp || (unsigned)source >= there) {
    gc_emu_fault.index = source;
    gc_emu_fault.count = there < (unsigned)kWarp ? there : kWarp;
    gc_emu_fault.line = line;
    fail(GC_NO_LANE);
  }
  // Lanes that are one exchange ahead write to the other half meanwhile.
  thread.parity ^= 1;
  exchanged[mine][parity][lane] = bits;
  wait(kAtWarp, line, 0);
  return exchanged[mine][parity][source];
}

// ---- functions for the runtime

// 0, or the code in gc_emu_fault. `words` and `extents` have one entry per parameter: its value, and its number of elements,
// or -1 if unknown. All orders must leave the same memory. Races are checked in the first order only: accesses that are
// ordered there are ordered in all.
int gc_emu_launch(const gc_kernel* kernel, unsigned grid, unsigned count, long long shared, const gc_word* words,
                  const long long* extents, const int* orders, int order_count, int watched) {
  memset(&gc_emu_fault, 0, sizeof gc_emu_fault);
  gc_emu_fault.parameter = -1;
  if (count == 0 || count > kMaxThreads || shared < 0 || shared > kSharedLimit) return gc_emu_fault.code = GC_BAD_LAUNCH;
  if (fibers[0].stack == nullptr && !make_fibers()) return gc_emu_fault.code = GC_BAD_LAUNCH;
  launch = {kernel, nullptr, count, (count + kWarp - 1) / kWarp, shared, 0, watched, extents};
  std::vector<gc_slot>& slots = bound_slots;
  slots.resize((size_t)kernel->parameters + 1);
  for (gc_slot& slot : slots) slot.region = {};
  kernel->bind(words, slots.data());
  if (gc_emu_fault.code) return gc_emu_fault.code;
  launch.slots = slots.data();
  gc_emu_threads = {count, 1, 1};
  gc_emu_blocks = {grid, 1, 1};
  if (pages.size() > kMaxPages) pages.clear();
  if (order_count > 1) keep_before(slots);
  begin_traffic();
  for (int i = 0; i < order_count; i++) {
    if (i > 0) restore_before();
    if (i == 1 && watched) {
      launch.watch = 0;
      kernel->bind(words, slots.data());
    }
    run_grid(grid, orders[i]);
    if (failed) return gc_emu_fault.code;
    if (i == 0 && order_count > 1) keep_result();
    if (i > 0 && !is_result(slots, orders[i])) return gc_emu_fault.code = GC_ORDER;
  }
  return 0;
}

gc_word gc_emu_allocate(gc_word nbytes) {
  size_t whole = (size_t)nbytes + 2 * kRedZone + kAlignment;
  char* taken = (char*)malloc(whole);
  if (taken == nullptr) return 0;
  uintptr_t start = ((uintptr_t)taken + kRedZone + kAlignment - 1) / kAlignment * kAlignment;
  memset((char*)start - kRedZone, kFence, kRedZone);
  memset((char*)start, kUnwritten, (size_t)nbytes);
  memset((char*)start + nbytes, kFence, kRedZone);
  allocations[start] = {(size_t)nbytes, taken, whole};
  allocated_bytes += nbytes;
  if (allocated_bytes > peak_bytes) peak_bytes = allocated_bytes;
  return start;
}

// 0, GC_FENCE for a write outside of the allocation, or GC_NO_MEMORY if there is no such allocation.
int gc_emu_free(gc_word address) {
  auto found = allocations.find((uintptr_t)address);
  if (found == allocations.end()) return GC_NO_MEMORY;
  Allocation gone = found->second;
  int code = is_whole(found->first, gone) ? GC_FINE : GC_FENCE;
  memset((char*)address, kUnwritten, gone.nbytes);
  allocations.erase(found);
  allocated_bytes -= gone.nbytes;
  freed.push_back(gone);
  for (freed_bytes += gone.whole; freed_bytes > kQuarantine; freed.pop_front()) {
    freed_bytes -= freed.front().whole;
    free(freed.front().taken);
  }
  return code;
}

// Bytes from an address to the end of its allocation; -1 outside of all.
long long gc_emu_room(gc_word address) {
  auto found = find((uintptr_t)address);
  return found ? (long long)(found->first + found->second.nbytes - address) : -1;
}

// Allocated bytes, their peak, allocations, bytes taken from the system.
void gc_emu_memory(long long* found) {
  found[0] = (long long)allocated_bytes;
  found[1] = (long long)peak_bytes;
  found[2] = (long long)allocations.size();
  found[3] = (long long)(allocated_bytes + freed_bytes);
}

void gc_emu_reset_peak(void) { peak_bytes = allocated_bytes; }
}
