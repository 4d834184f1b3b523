// Races: unordered accesses to one element.
//
// For each accessed element, the launch records its last writer, and its readers since the previous barrier. Two accesses
// are ordered if one thread makes both, or if a barrier of their block, or of their common warp, is in between. Accesses
// of two blocks are never ordered.
#pragma once
#include <unordered_map>

#include "gc_state.h"

namespace {

// Last writer and reader of one element in this launch.
struct Cell {
  uint32_t launch;
  uint32_t write_block, write_barrier, write_warp_barrier;
  uint32_t read_block, read_barrier, read_warp_barrier;
  int16_t writer, reader;          // Threads; -1: none.
  int16_t reader_warp;             // kMany: several.
  bool read_by_blocks;             // Several.
  int16_t written_through;         // The number of a parameter.
  int32_t write_line, read_line;
};
constexpr int16_t kNobody = -1, kMany = -2;

struct Page {
  int item = 0;
  std::vector<Cell> cells;
};

std::unordered_map<uintptr_t, Page> pages;
constexpr size_t kMaxPages = 8192;

Cell& cell_of(uintptr_t address, int item) {
  Page& page = pages[address / kPage];
  if (page.item == 0 || page.item > item) {
    page.item = item;
    page.cells.assign(kPage / (size_t)item, Cell{});
  }
  Cell& cell = page.cells[address % kPage / (size_t)page.item];
  return cell;
}

[[noreturn]] void race(const gc_region* region, long long index, int writes, uint32_t block, int other, int other_writes,
                       int other_line) {
  gc_emu_fault.parameter = region->parameter;
  gc_emu_fault.name = region->name;
  gc_emu_fault.index = index;
  gc_emu_fault.count = region->count;
  gc_emu_fault.width = 1;
  gc_emu_fault.writes = writes;
  gc_emu_fault.other_writes = other_writes;
  gc_emu_fault.other_block = block;
  gc_emu_fault.other_thread = (unsigned)other;
  gc_emu_fault.other_line = other_line;
  fail(GC_RACE);
}

// Whether an access of thread `other` at these barrier counts may be concurrent with the present one.
bool is_unordered(uint32_t block, uint32_t barrier, uint32_t warp_barrier, int other) {
  unsigned me = gc_emu_thread.x;
  if (block != gc_emu_block.x) return true;
  if (barrier != block_epoch || (unsigned)other == me) return false;
  return (unsigned)other / kWarp != me / kWarp || warp_barrier == warp_epoch[me / kWarp];
}

void note_read(Cell& cell) {
  unsigned me = gc_emu_thread.x, epoch = warp_epoch[me / kWarp];
  bool first = cell.reader == kNobody;
  if (!first && cell.read_block != gc_emu_block.x) cell.read_by_blocks = true;
  bool newer = first || cell.read_block != gc_emu_block.x || cell.read_barrier != block_epoch;
  if (newer || (cell.reader_warp == (int)(me / kWarp) && cell.read_warp_barrier != epoch)) {
    cell.reader = (int16_t)me;
    cell.reader_warp = (int16_t)(me / kWarp);
  } else if (cell.reader_warp != (int)(me / kWarp)) {
    cell.reader_warp = kMany;
  } else if (cell.reader != (int)me) {
    cell.reader = kMany;
  }
  cell.read_line = gc_emu_fault.line;
  cell.read_block = gc_emu_block.x;
  cell.read_barrier = block_epoch;
  cell.read_warp_barrier = epoch;
}

// Whether a write now may be concurrent with one of the reads.
bool is_read_unordered(const Cell& cell) {
  unsigned me = gc_emu_thread.x;
  if (cell.reader == kNobody) return false;
  if (cell.read_by_blocks || cell.read_block != gc_emu_block.x) return true;
  if (cell.read_barrier != block_epoch) return false;
  if (cell.reader_warp != (int)(me / kWarp)) return true;
  return cell.read_warp_barrier == warp_epoch[me / kWarp] && cell.reader != (int)me;
}

void watch(const gc_region* region, long long index, int item, int writes) {
  Cell& cell = cell_of((uintptr_t)region->data + (uintptr_t)index * (uintptr_t)item, item);
  bool stale = cell.launch != gc_emu_launch_number || (region->parameter < 0 && cell.write_block != gc_emu_block.x);
  if (stale) {
    cell = Cell{};
    cell.launch = gc_emu_launch_number;
    cell.writer = cell.reader = kNobody;
    cell.write_block = gc_emu_block.x;
  }
  if (cell.writer != kNobody &&
      is_unordered(cell.write_block, cell.write_barrier, cell.write_warp_barrier, cell.writer))
    race(region, index, writes, cell.write_block, cell.writer, 1, cell.write_line);
  if (!writes) {
    if (cell.writer != kNobody && cell.written_through != region->parameter && !(region->writes & 2)) {
      // A GPU may have read it much earlier, through a cache that does not see writes.
      describe(region, index, 1, 0);
      gc_emu_fault.count = cell.written_through;
      gc_emu_fault.other_line = cell.write_line;
      fail(GC_ALIASED);
    }
    if (region->parameter < 0 && cell.writer == kNobody) {
      gc_emu_fault.name = region->name;
      gc_emu_fault.index = index;
      fail(GC_UNSHARED);
    }
    note_read(cell);
    return;
  }
  if (is_read_unordered(cell)) race(region, index, 1, cell.read_block, cell.reader, 0, cell.read_line);
  cell.writer = (int16_t)gc_emu_thread.x;
  cell.write_line = gc_emu_fault.line;
  cell.written_through = (int16_t)region->parameter;
  cell.write_block = gc_emu_block.x;
  cell.write_barrier = block_epoch;
  cell.write_warp_barrier = warp_epoch[gc_emu_thread.x / kWarp];
}

}  // namespace
