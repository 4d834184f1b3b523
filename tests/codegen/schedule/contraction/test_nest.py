"""Tiling: what follows the sums stays in registers when it is short and goes through a scratch tile when it is long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphc.codegen.llvm.build import emit_assembly
from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.contraction.nest import SCRATCH, apply_tile
from graphc.codegen.schedule.contraction.pack import Packed, make_packing
from graphc.codegen.schedule.contraction.register_block import Tile, choose_tile
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.pipeline import find_blocks, schedule_program
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Loop, Prefetch, Update, walk
from tests.codegen.kernel_native import check_equivalent, check_native, check_scheduled, kernel_of, program_of
from tests.codegen.products import plain, transposed_a, transposed_b
from tests.native import emitted
from tools.codegen.register_blocks import innermost_loops

WIDE = target_named("avx512")


def followed(length: int) -> Kernel:
    """A product of 30 x 64 x 20 with ``length`` operations after the sum."""
    steps = "\n".join(f"                v{i + 1}: f32 = add(v{i}, f32(1.0))" for i in range(length))
    return kernel_of(f"""
        kernel @k(%a: f32[600] in, %b: f32[1280] in, %c: f32[1920] out) {{
          for i in 30 parallel {{
            for j in 64 parallel {{
              acc s: f32 = add f32(0.0)
              for l in 20 reduce {{
                x: f32 = load %a[20*i + l]
                y: f32 = load %b[64*l + j]
                p: f32 = mul(x, y)
                update s with p
              }}
              v0 = read s
{steps}
              store %c[64*i + j] = v{length}
            }}
          }}
        }}""")


@pytest.mark.parametrize(("length", "through_scratch"), [(1, False), (40, True)])
def test_long_epilogues_go_through_a_scratch_tile(length: int, through_scratch: bool):
    kernel = check_scheduled(followed(length), WIDE).kernel("k")
    assert any(b.name == SCRATCH for b in kernel.buffers) is through_scratch


def updated(a: str, c: str) -> Kernel:
    """A product of 30 x 64 x 20 that changes two arrays as a step with momentum does; ``c`` says where."""
    return kernel_of(f"""
        kernel @k(%a: f32[600] in, %b: f32[1280] in, %m: f32[20000] inout, %w: f32[20000] inout, %r: f32[1] in) {{
          for i in 30 parallel {{
            for j in 64 parallel {{
              m: f32 = load %m[{c}]
              r: f32 = load %r[0]
              d: f32 = mul(m, r)
              acc s: f32 = add f32(0.0)
              for l in 20 reduce {{
                x: f32 = load %a[{a}]
                y: f32 = load %b[64*l + j]
                p: f32 = mul(x, y)
                update s with p
              }}
              g = read s
              n: f32 = add(d, g)
              w: f32 = load %w[{c}]
              t: f32 = mul(n, r)
              u: f32 = sub(w, t)
              store %m[{c}] = n
              store %w[{c}] = u
            }}
          }}
        }}""")


@pytest.mark.parametrize(
    ("places", "kinds"), [("i + 30*j", ["serial", "unroll", "vector"]), ("9*i + 300*j", ["serial"])]
)
def test_results_that_lie_apart_are_changed_through_a_scratch_tile(places: str, kinds: list[str]):
    """Along rows where they are contiguous there, else lane by lane."""
    kernel = updated("30*l + i", places)
    c = find_contraction(kernel)
    assert c is not None
    tile = Tile(0.0, c.outer[1], c.outer[0], None, 14, 2)
    tiled = apply_tile(c, tile, kernel, WIDE, Names(), Packed())
    after = next(s for s, _ in walk(tiled.body) if isinstance(s, Loop) and s.kind == "serial")
    assert [after.kind, *(s.kind for s, _ in walk(after.body) if isinstance(s, Loop))][: len(kinds)] == kinds
    check_equivalent(kernel, tiled)
    check_native(tiled, target_named("host"))


@pytest.mark.parametrize(("rows", "depth", "asks"), [(100, 300, True), (3, 300, False), (100, 9000, False)])
def test_the_next_panel_of_a_large_operand_is_asked_for(rows: int, depth: int, asks: bool):
    """A panel that is read several times leaves time for the next one to arrive; two that do not share the second
    cache would push each other out."""
    kernel = transposed_b(rows, 512, depth)
    c = find_contraction(kernel)
    assert c is not None
    tile = replace(choose_tile(c, WIDE, frozenset({"b"})), pack=c.b, vector=c.outer[1], row=c.outer[0])
    packing = make_packing(c, tile, WIDE, "packed")
    tiled = apply_tile(c, tile, kernel, WIDE, Names(), Packed(packing))
    assert any(isinstance(s, Prefetch) for s, _ in walk(tiled.body)) is asks


@pytest.mark.parametrize(
    ("columns", "depth", "vectors", "lines"),
    [(512, 600, 2, 2), (512, 300, 2, 0), (16384, 64, 2, 2), (16384, 64, 8, 0)],
)
def test_an_operand_that_is_read_once_is_prefetched_line_by_line(columns: int, depth: int, vectors: int, lines: int):
    """A fixed distance ahead, on through the panels, several of which may stay in the L2 cache: it comes from memory,
    unless that cache can hold it. Not where a step reads as many lines as are under way by themselves."""
    kernel = transposed_b(3, columns, depth)
    c = find_contraction(kernel)
    assert c is not None
    tile = replace(
        choose_tile(c, WIDE, frozenset({"b"})), pack=c.b, vector=c.outer[1], row=c.outer[0], rows=3, vectors=vectors
    )
    tiled = apply_tile(c, tile, kernel, WIDE, Names(), Packed(make_packing(c, tile, WIDE, "packed")))
    places = [s.index.constant for s, _ in walk(tiled.body) if isinstance(s, Prefetch)]
    distance = WIDE.costs.contraction.prefetch_bytes // 4
    assert places == [distance + 16 * line for line in range(lines)]


@pytest.mark.parametrize(("points", "asks"), [(6, True), (1, False)])
def test_the_panels_of_the_next_product_are_asked_for(points: int, asks: bool):
    """Prefetch the panels of the next small product of a batch while rows pass by those of this one."""
    kernel = kernel_of(f"""
        kernel @k(%a: f32[{points * 5000}] in, %b: f32[{points * 6400}] in, %c: f32[{points * 3200}] out) {{
          for p in {points} parallel {{
            for i in 50 parallel {{
              for j in 64 parallel {{
                acc s: f32 = add f32(0.0)
                for l in 100 reduce {{
                  x: f32 = load %a[5000*p + 100*i + l]
                  y: f32 = load %b[6400*p + 64*l + j]
                  v: f32 = mul(x, y)
                  update s with v
                }}
                r = read s
                store %c[3200*p + 64*i + j] = r
              }}
            }}
          }}
        }}""")
    c = find_contraction(kernel)
    assert c is not None
    tile = choose_tile(c, WIDE, frozenset({"b"}))
    assert tile is not None and tile.pack is not None
    tiled = apply_tile(c, tile, kernel, WIDE, Names(), Packed(make_packing(c, tile, WIDE, "packed")))
    asked = [s.index.constant for s, _ in walk(tiled.body) if isinstance(s, Prefetch)]
    assert bool(asked) is asks
    assert all(place >= 6400 for place in asked), "what lies a whole product further on"


def test_windows_that_share_elements_are_not_written_out():
    """Neighbouring rows of a convolution read the same elements for different taps: one step is emitted, not three."""

    def steps(across: int) -> int:
        kernel = kernel_of(f"""
        kernel @k(%x: f32[5000] in, %w: f32[6144] in, %y: f32[1792] out) {{
          for i in 56 parallel {{
            for j in 32 parallel {{
              acc s: f32 = add f32(0.0)
              for c in 64 reduce {{
                for t in 3 reduce {{
                  a: f32 = load %x[60*c + {across}*i + t]
                  b: f32 = load %w[96*c + 32*t + j]
                  p: f32 = mul(a, b)
                  update s with p
                }}
              }}
              v = read s
              store %y[32*i + j] = v
            }}
          }}
        }}""")
        body = check_scheduled(kernel, WIDE).kernel("k").body
        return sum(isinstance(s, Update) for s, _ in walk(body))

    assert steps(1) == 1 and steps(5) == 3


def test_register_blocks_do_not_spill():
    """No loop over multiply-adds touches the stack, neither for sums nor for addresses."""
    for target in map(target_named, ("avx512", "avx2", "neon")):
        for kernel in (plain(256, 256, 256), plain(200, 100, 300, "f64"), transposed_b(100, 300, 64)):
            program = schedule_program(program_of(kernel), target)
            lines = emit_assembly(emitted(plan_memory(program), target), target).splitlines()
            loops = [body for body in innermost_loops(lines) if sum("fm" in line for line in body) >= 8]
            assert loops, target.triple
            for body in loops:
                assert not any("(%rsp)" in line or "[sp" in line for line in body), "\n".join(body)


WINDOWS = """
    kernel @k(%x: f64[6272] in, %w: f64[13824] in, %y: f64[6912] out) {
      for o in 48 parallel {
        for h in 12 parallel {
          for v in 12 parallel {
            acc s: f64 = add f64(0.0)
            for c in 32 reduce {
              for p in 3 reduce {
                for q in 3 reduce {
                  a: f64 = load %x[196*c + 14*h + v + 14*p + q]
                  b: f64 = load %w[288*o + 9*c + 3*p + q]
                  m: f64 = mul(a, b)
                  update s with m
                }
              }
            }
            r = read s
            store %y[144*o + 12*h + v] = r
          }
        }
      }
    }"""
"""A convolution of images of 32 channels with windows of 3 x 3."""


@pytest.mark.parametrize(
    "kernel",
    [
        *(plain(256, 256, 256), plain(200, 100, 300, "f64"), transposed_b(128, 96, 256), transposed_a(128, 96, 256)),
        kernel_of(WINDOWS),
    ],
    ids=["plain", "f64", "transposed_b", "transposed_a", "windows"],
)
def test_no_block_that_may_be_chosen_spills_on_neon(kernel: Kernel):
    """Each load takes a register there, so what a block multiplies is read where it is multiplied."""
    program, target = program_of(kernel), target_named("neon")
    blocks = find_blocks(program, target)["k"]
    across = [label for label in blocks.labels if label.partition(" packed")[0].endswith("/-")]
    assert len(across) >= 10
    for label in across:
        scheduled = plan_memory(schedule_program(program, target, {blocks.key: label}))
        lines = emit_assembly(emitted(scheduled, target), target).splitlines()
        loops = [body for body in innermost_loops(lines) if sum("fmla" in line for line in body) >= 4]
        assert loops, label
        for body in loops:
            assert not any("[sp" in line for line in body), "\n".join([label, *body])


@pytest.mark.parametrize(("channels", "inside"), [(512, True), (16, False)])
def test_images_pass_by_a_panel_when_that_moves_less_memory(channels: int, inside: bool):
    """Rows of a small image with many channels are loops inside of the panels' loop; weights that fit the cache are
    read again for each row instead."""
    image, weights, result = 81 * channels, 9 * channels * channels, 49 * channels
    kernel = kernel_of(f"""
        kernel @k(%x: f32[{image}] in, %w: f32[{weights}] in, %y: f32[{result}] out) {{
          for i in 7 parallel {{
            for j in 7 parallel {{
              for o in {channels} parallel {{
                acc s: f32 = add f32(0.0)
                for p in 3 reduce {{
                  for q in 3 reduce {{
                    for c in {channels} reduce {{
                      a: f32 = load %x[{9 * channels}*i + {9 * channels}*p + {channels}*j + {channels}*q + c]
                      b: f32 = load %w[{3 * channels * channels}*p + {channels * channels}*q + {channels}*c + o]
                      m: f32 = mul(a, b)
                      update s with m
                    }}
                  }}
                }}
                v = read s
                store %y[{7 * channels}*i + {channels}*j + o] = v
              }}
            }}
          }}
        }}""")
    c = find_contraction(kernel)
    assert c is not None
    tile = choose_tile(c, WIDE)
    assert tile is not None
    tiled = apply_tile(c, replace(tile, pack=None), kernel, WIDE, Names(), Packed())
    loops = next(around for s, around in walk(tiled.body) if isinstance(s, Update))
    extents = [x.axis.extent for x in loops if x.kind == "parallel"]
    assert (extents[0] != 7) is inside, extents


def test_panels_of_short_sums_are_walked_along_in_groups():
    """An update of 4096 x 4096 elements by a sum of 64 is bound by what it writes: rows are written 1024 at a time."""
    kernel = plain(512, 4096, 64)
    c = find_contraction(kernel)
    assert c is not None
    tile = choose_tile(c, WIDE)
    assert tile is not None
    tiled = apply_tile(c, replace(tile, pack=None), kernel, WIDE, Names(), Packed())
    loops = next(around for s, around in walk(tiled.body) if isinstance(s, Update))
    group, rows, panel = (x.axis for x in loops if x.kind == "parallel")
    width = tile.vectors * 16
    assert group.extent * panel.extent * width == 4096 and 512 <= panel.extent * width <= 1024
    assert rows.extent > 1
    assert len({s.axis for s, _ in walk(tiled.body) if isinstance(s, Loop)}) == sum(
        isinstance(s, Loop) for s, _ in walk(tiled.body)
    ), "no loop shares its axis with another"


@pytest.mark.parametrize(("rows", "asks"), [(30, False), (3000, True)])
def test_what_is_added_to_a_sum_is_read_after_it(rows: int, asks: bool):
    kernel = kernel_of(f"""
        kernel @k(%a: f32[{20 * rows}] in, %b: f32[1280] in, %r: f32[{64 * rows}] in, %c: f32[{64 * rows}] out) {{
          for i in {rows} parallel {{
            for j in 64 parallel {{
              v: f32 = load %r[64*i + j]
              acc s: f32 = add f32(0.0)
              for l in 20 reduce {{
                x: f32 = load %a[20*i + l]
                y: f32 = load %b[64*l + j]
                p: f32 = mul(x, y)
                update s with p
              }}
              t = read s
              w: f32 = add(v, t)
              store %c[64*i + j] = w
            }}
          }}
        }}""")
    scheduled = check_scheduled(kernel, WIDE, natively=rows < 100).kernel("k")
    lanes = next(s for s, _ in walk(scheduled.body) if isinstance(s, Loop) and s.kind == "vector")
    kinds = [type(s).__name__ for s in lanes.body]
    assert kinds.index("Load") > kinds.index("Loop")
    assert ("Prefetch" in kinds[: kinds.index("Loop")]) is asks


SMALL = {"l1_bytes": 256, "l2_bytes": 4096}
"""Caches so small that matrices of a small product do not fit them."""


def loops_around_sums(rows: int, target: Target) -> list[list[Loop]]:
    """Loops around each sum of a product of packed columns that is computed as it should be."""
    program = check_scheduled(transposed_b(rows, 70, 16), target, natively=False)
    kernel = program.kernel("k")
    assert any(b.name == "packed" for b in kernel.buffers)
    return [list(around) for s, around in walk(kernel.body) if isinstance(s, Update)]


@pytest.mark.parametrize(("rows", "groups"), [(280, [5]), (281, [5, 1])])
def test_rows_that_do_not_stay_near_pass_by_all_panels_in_groups(rows: int, groups: list[int]):
    result = loops_around_sums(rows, replace(WIDE, **SMALL))
    extents = {x.axis: x.axis.extent for around in result for x in around if x.axis.name.startswith("g")}
    assert list(extents.values()) == [n for n in groups if n > 1]
    assert [x.axis.extent for x in result[0] if x.kind == "parallel"][:2] == [groups[0], 2]


def test_rows_that_stay_near_are_no_groups():
    result = loops_around_sums(280, replace(WIDE, l1_bytes=256))
    assert [x.axis.extent for x in result[0] if x.kind == "parallel"] == [20, 2]


@pytest.mark.parametrize("rows", [1000, 1001])
def test_groups_of_rows_natively(rows: int, machine: Target):
    check_scheduled(transposed_b(rows, 70, 16), replace(machine, **SMALL))
