// Cost of the accesses of a launch on a GPU: sectors of device memory per request of a warp, rounds of shared memory.
//
// Lanes run one after the other here, so the accesses of a warp are grouped afterwards: between two barriers of a warp,
// the n-th access of each lane to one array is one request. Lanes that skip some (at the end of a row) make that slightly
// inexact.
#pragma once
#include <algorithm>
#include <unordered_set>

#include "gc_state.h"

struct gc_traffic {
  long long load_requests, load_bytes, load_sectors, loaded;  // The last: distinct sectors.
  long long store_requests, store_bytes, store_sectors, stored;
  long long shared_requests, shared_rounds, shared_ideal;
};

extern "C" {
gc_traffic gc_emu_traffic;
}

namespace {

constexpr uint64_t kSector = 32, kBanks = 32, kBank = 4;

struct Access {
  uint64_t address;
  uint32_t bytes;
};

// Accesses of one kind to one array by the lanes of the running warp.
struct Stream {
  const void* array;
  int writes;
  bool shared;
  std::vector<Access> lanes[kWarp];
};

std::vector<Stream> streams;
size_t stream_count;
std::unordered_set<uint64_t> loaded_sectors, stored_sectors;

void note_traffic(const gc_region* region, long long index, int item, int width, int writes) {
  const void* array = region->parameter < 0 ? (const void*)region->name : (const void*)(region->data);
  size_t found = 0;
  while (found < stream_count && (streams[found].array != array || streams[found].writes != writes)) found++;
  if (found == stream_count) {
    if (++stream_count > streams.size()) streams.emplace_back();
    Stream& fresh = streams[found];
    fresh.array = array;
    fresh.writes = writes;
    fresh.shared = region->parameter < 0;
    for (std::vector<Access>& lane : fresh.lanes) lane.clear();
  }
  uint64_t address = (uint64_t)(uintptr_t)region->data + (uint64_t)index * (uint64_t)item;
  streams[found].lanes[gc_emu_thread.x % kWarp].push_back({address, (uint32_t)(item * width)});
}

// Distinct units of memory that a request accesses.
void units_of(const Stream& stream, size_t request, uint64_t size, std::vector<uint64_t>* units, long long* bytes) {
  units->clear();
  for (const std::vector<Access>& lane : stream.lanes) {
    if (request >= lane.size()) continue;
    const Access& access = lane[request];
    *bytes += access.bytes;
    for (uint64_t unit = access.address / size; unit <= (access.address + access.bytes - 1) / size; unit++)
      units->push_back(unit);
  }
  std::sort(units->begin(), units->end());
  units->erase(std::unique(units->begin(), units->end()), units->end());
}

void count_shared(const std::vector<uint64_t>& words) {
  long long of_bank[kBanks] = {}, most = 0;
  for (uint64_t word : words) most = std::max(most, ++of_bank[word % kBanks]);
  gc_emu_traffic.shared_requests++;
  gc_emu_traffic.shared_rounds += most;
  gc_emu_traffic.shared_ideal += (long long)((words.size() + kBanks - 1) / kBanks);
}

void count_global(const std::vector<uint64_t>& sectors, int writes, long long bytes) {
  gc_traffic& all = gc_emu_traffic;
  (writes ? all.store_requests : all.load_requests)++;
  (writes ? all.store_bytes : all.load_bytes) += bytes;
  (writes ? all.store_sectors : all.load_sectors) += (long long)sectors.size();
  (writes ? stored_sectors : loaded_sectors).insert(sectors.begin(), sectors.end());
}

// Counts the accesses of a warp's lanes since their last barrier.
void count_traffic() {
  static std::vector<uint64_t> units;
  for (size_t i = 0; i < stream_count; i++) {
    const Stream& stream = streams[i];
    size_t requests = 0;
    for (const std::vector<Access>& lane : stream.lanes) requests = std::max(requests, lane.size());
    for (size_t request = 0; request < requests; request++) {
      long long bytes = 0;
      units_of(stream, request, stream.shared ? kBank : kSector, &units, &bytes);
      if (stream.shared) count_shared(units);
      else count_global(units, stream.writes, bytes);
    }
  }
  stream_count = 0;
  gc_emu_traffic.loaded = (long long)loaded_sectors.size();
  gc_emu_traffic.stored = (long long)stored_sectors.size();
}

void begin_traffic() {
  gc_emu_traffic = {};
  stream_count = 0;
  loaded_sectors.clear();
  stored_sectors.clear();
}

}  // namespace
