// Device memory between fences, and comparison of what a launch leaves in it in different orders of threads.
#pragma once
#include <stdlib.h>

#include <algorithm>
#include <deque>
#include <map>

#include "gc_state.h"

namespace {

struct Allocation {
  size_t nbytes;
  char* taken;  // Pointer from malloc.
  size_t whole;
};

std::map<uintptr_t, Allocation> allocations;
std::deque<Allocation> freed;
size_t freed_bytes, allocated_bytes, peak_bytes;

// The allocation that contains an address, or ends right before it; null if there is none.
const std::pair<const uintptr_t, Allocation>* find(uintptr_t address) {
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin()) return nullptr;
  --next;
  return address - next->first <= next->second.nbytes ? &*next : nullptr;
}

bool is_whole(uintptr_t start, const Allocation& allocation) {
  const unsigned char* before = (const unsigned char*)start - kRedZone;
  const unsigned char* behind = (const unsigned char*)start + allocation.nbytes;
  for (size_t i = 0; i < kRedZone; i++)
    if (before[i] != kFence || behind[i] != kFence) return false;
  return true;
}

// ---- orders

// Memory that a launch may write to, each range once.
struct Piece {
  char* data;
  size_t nbytes;
  std::vector<char> before, result;
};

std::vector<gc_slot> bound_slots;
std::vector<Piece> pieces;

void keep_before(const std::vector<gc_slot>& slots) {
  std::map<char*, size_t> ranges;
  for (const gc_slot& slot : slots) {
    if (!(slot.region.writes & 1)) continue;
    size_t& nbytes = ranges.emplace(slot.region.data, 0).first->second;
    nbytes = std::max(nbytes, (size_t)(slot.region.count * slot.region.item));
  }
  pieces.resize(ranges.size());  // Existing entries keep their capacity.
  size_t i = 0;
  for (auto& range : ranges) {
    pieces[i].data = range.first;
    pieces[i].nbytes = range.second;
    pieces[i++].before.assign(range.first, range.first + range.second);
  }
}

void restore_before() {
  for (Piece& piece : pieces) memcpy(piece.data, piece.before.data(), piece.nbytes);
}

void keep_result() {
  for (Piece& piece : pieces) piece.result.assign(piece.data, piece.data + piece.nbytes);
}

// Whether memory is as the first order left it; otherwise the fault holds the first difference.
bool is_result(const std::vector<gc_slot>& slots, int order) {
  for (Piece& piece : pieces) {
    if (memcmp(piece.data, piece.result.data(), piece.nbytes) == 0) continue;
    size_t at = 0;
    while (piece.data[at] == piece.result[at]) at++;
    gc_emu_fault.line = order;
    for (size_t i = 0; i < slots.size(); i++) {  // The last parameter that starts before it.
      const gc_region& region = slots[i].region;
      if (!(region.writes & 1) || region.data > piece.data + at) continue;
      if (gc_emu_fault.parameter >= 0 && slots[(size_t)gc_emu_fault.parameter].region.data > region.data) continue;
      gc_emu_fault.parameter = (int)i;
      gc_emu_fault.index = piece.data + at - region.data;
    }
    memcpy(piece.data, piece.result.data(), piece.nbytes);
    return false;
  }
  return true;
}

}  // namespace
