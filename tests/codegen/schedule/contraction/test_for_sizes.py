"""Register blocks that suit small sizes as well: chosen among those that are as fast for expected ones."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.target import host_target, target_named
from graphc.codegen.schedule.contraction.for_sizes import suit_small_sizes
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.contraction.register_block import Tile, choose_tile
from graphc.ir.kernel.statements import Kernel
from tests.codegen.kernel_native import kernel_of
from tests.codegen.sized import check_schedule
from tests.codegen.sized_products import TRANSPOSED_B, sized_product

PADDED = """
        dim batch = 1..64 hint 16
        kernel @k(%x: f32[batch*SIDE*SIDE*24] in, %w: f32[768] in, %c: f32[batch*(SIDE + 2)*(SIDE + 2)*32] out) {
          for b in batch parallel {
            for i in SIDE parallel {
              for j in SIDE parallel {
                for o in 32 parallel {
                  acc s: f32 = add f32(0.0)
                  for l in 24 reduce {
                    x: f32 = load %x[24*SIDE*SIDE*b + 24*SIDE*i + 24*j + l]
                    y: f32 = load %w[24*o + l]
                    p: f32 = mul(x, y)
                    update s with p
                  }
                  r = read s
                  store %c[32*(SIDE + 2)*((SIDE + 2)*b + i + 1) + 32*(j + 1) + o] = r
                }
              }
            }
          }
        }"""
"""A convolution of 1x1 whose result has zeros around it, so that pixels and images are axes of their own."""


def padded(side: int) -> Kernel:
    return kernel_of(PADDED.replace("(SIDE + 2)", str(side + 2)).replace("SIDE", str(side)))


def blocks(kernel: Kernel, target: str) -> tuple[Tile, Tile]:
    """The best block for expected sizes, and the one that is taken."""
    machine, free = target_named(target), frozenset({"w", "b"})
    contraction = find_contraction(kernel)
    assert contraction is not None
    best = choose_tile(contraction, machine, free)
    assert best is not None
    return best, suit_small_sizes(kernel, best, machine, free)


@pytest.mark.parametrize("target", ["avx512", "avx2", "neon"])
def test_rows_run_over_pixels_where_these_are_as_good_as_images(target: str):
    best, suited = blocks(padded(14), target)
    assert best.row is not None and best.row.name == "b"
    assert suited.row is not None and suited.row.name in ("i", "j")
    assert suited.cycles <= best.cycles * target_named(target).costs.contraction.as_fast


def test_rows_run_over_images_where_pixels_are_few():
    best, suited = blocks(padded(1), "avx512")
    assert suited is best and best.row is not None and best.row.name == "b"


FRAMES = """
        dim batch = 1..64 hint 32
        dim samples = 512..65536 hint 1760
        kernel @k(%x: f32[batch*samples] in, %w: f32[16384] in, %c: f32[COUNT*batch*48] out) {
          for b in batch parallel {
            for t in COUNT parallel {
              for o in 32 parallel {
                acc s: f32 = add f32(0.0)
                for l in 512 reduce {
                  x: f32 = load %x[samples*b + 160*t + l]
                  y: f32 = load %w[512*o + l]
                  p: f32 = mul(x, y)
                  update s with p
                }
                r = read s
                store %c[48*COUNT*b + 48*t + o] = r
              }
            }
          }
        }""".replace("COUNT", "((samples - 352) // 160)")
"""Frames of recordings: one of 512 samples, eight of the expected 1,760."""


def test_rows_run_over_frames_for_one_long_recording():
    best, suited = blocks(kernel_of(FRAMES), "avx512")
    assert best.row is not None and best.row.name == "b"
    assert suited.row is not None and suited.row.name == "t"


def test_a_block_stays_that_has_no_rival_over_other_axes():
    best, suited = blocks(sized_product("rows", 70, 23, TRANSPOSED_B), "avx512")
    assert suited is best


def test_products_over_pixels_are_right_at_every_size():
    check_schedule(padded(7), host_target(), [{"batch": n} for n in (1, 2, 3, 5, 16, 17)])
