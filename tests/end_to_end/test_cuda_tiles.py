"""Every tile of contractions as CUDA C: in all orders of threads, without races, with no traffic wasted."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.cuda.emit import emit_cuda
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.gpu import contraction
from graphc.codegen.schedule.gpu.contraction import TILES, Tile
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel
from graphc.runtime.devices.emulated import EmulatedDevice
from tests.codegen.cuda.running import run_on
from tests.codegen.kernel_native import random_memory, single
from tests.codegen.products import plain, transposed_a, transposed_b

FORMS = (plain, transposed_a, transposed_b)
CASES = [
    pytest.param(tile, form, dtype, id=f"{tile.rows}x{tile.columns}-{form.__name__}-{dtype}")
    for number, tile in enumerate(TILES)
    for form, dtype in ((FORMS[number % 3], "f32"), (FORMS[(number + 1) % 3], "f64"))
]


def tiled(kernel: Kernel, tile: Tile, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setattr(contraction, "choose_tile", lambda *_: (tile, 1))
    made = contraction.tile_contraction(kernel, host_target(), Names("t"))
    assert made is not None and made.threads == tile.threads
    return made


@pytest.mark.parametrize(("tile", "form", "dtype"), CASES)
def test_every_tile(tile: Tile, form, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHC_EMULATOR", "orders,races")
    kernel = form(tile.rows + 1, tile.columns + 3, tile.depth + 5, dtype)
    program = single(tiled(kernel, tile, monkeypatch))
    expected = random_memory(kernel)
    memory = {name: array.copy() for name, array in expected.items()}
    run_kernel(kernel, expected)
    run_on(EmulatedDevice(), program, emit_cuda(program), [memory[s.name].reshape(s.shape) for s in program.storages])
    np.testing.assert_array_equal(memory["c"], expected["c"])


@pytest.mark.parametrize("form", FORMS)
def test_large_tiles_waste_no_traffic(form, monkeypatch: pytest.MonkeyPatch) -> None:
    tile = TILES[0]
    program = single(tiled(form(tile.rows, tile.columns, 4 * tile.depth), tile, monkeypatch))
    memory = random_memory(program.kernels[0])
    device = EmulatedDevice()
    device.traffic = {}
    run_on(device, program, emit_cuda(program), [memory[s.name].reshape(s.shape) for s in program.storages])
    (traffic,) = device.traffic.values()
    assert traffic.load_sectors * 32 == traffic.load_bytes
    assert traffic.store_sectors * 32 == traffic.store_bytes
    assert traffic.shared_rounds == traffic.shared_ideal
