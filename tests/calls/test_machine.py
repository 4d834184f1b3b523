"""Compiled functions and training steps on a device: the numbers of the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls.machine import HOST, is_device, machine_named, machine_of, target_for
from graphc.errors import ArgumentError, CompileError, DeviceError
from graphc.nn import functional as F

DEVICE = "cuda-emu"


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.wide, self.back = nn.Linear(8, 16), nn.Linear(16, 10)

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        y = self.norm(x)
        x = x + self.mix(y, y, y, need_weights=False)[0]
        return self.back(F.gelu(self.wide(x))).mean(1)


def convolutions() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3), nn.GELU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, 10)),
    )


MODELS: list[tuple[str, Callable[[], nn.Module], tuple[int, ...]]] = [
    ("perceptron", lambda: nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 10)), (4, 6)),
    ("convolutions", convolutions, (4, 3, 8, 8)),
    ("attention", Attention, (4, 5, 8)),
]


def pair(make: Callable[[], nn.Module]) -> tuple[nn.Module, nn.Module]:
    gc.manual_seed(0)
    first, second = make(), make()
    second.load_state_dict(first.state_dict())
    return first, second


def close(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    a, b = (t.detach().cpu().numpy() for t in (found, expected))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("make,shape", [m[1:] for m in MODELS], ids=[m[0] for m in MODELS])
def test_a_model_gives_what_it_gives_on_the_cpu(make: Any, shape: tuple[int, ...], where: str):
    plain, model = pair(make)
    place = DEVICE if where == "device" else "cpu"
    compiled = gc.compile(model.to(place)) if where == "device" else gc.compile(model, device=DEVICE)
    for seed in range(4):  # from the third call on, a recording is replayed
        x, y = gc.randn(*shape), gc.randint(0, 10, (shape[0],))
        gc.manual_seed(seed)
        expected = plain(x)
        gc.manual_seed(seed)
        found = compiled(x.to(place))
        assert found.device == place
        close(found, expected)
        F.cross_entropy(expected, y).backward()
        F.cross_entropy(found, y.to(place)).backward()
    for a, b in zip(plain.parameters(), model.parameters(), strict=True):
        assert b.grad is not None and b.grad.device == place
        close(b.grad, a.grad)
    for a, b in zip(plain.buffers(), model.buffers(), strict=True):
        close(b, a)


@pytest.mark.sampled(50)
@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("name", ["SGD", "AdamW"])
@pytest.mark.parametrize("make,shape", [m[1:] for m in MODELS], ids=[m[0] for m in MODELS])
def test_a_training_step_gives_what_it_gives_on_the_cpu(make: Any, shape: tuple[int, ...], name: str, where: str):
    plain, model = pair(make)
    place = DEVICE if where == "device" else "cpu"
    model.to(place)
    # A bias before a norm or of keys has gradient 0 but for rounding, which Adam would make steps of.
    kind, options = getattr(gc.optim, name), {"lr": 1e-2, **({"eps": 1e-3} if name == "AdamW" else {})}
    first = gc.compile_step(plain, F.cross_entropy, kind(plain.parameters(), **options))
    second = gc.compile_step(model, F.cross_entropy, kind(model.parameters(), **options), device=DEVICE)
    x, y = gc.randn(*shape), gc.randint(0, 10, (shape[0],))
    for seed in range(5):
        gc.manual_seed(seed)
        expected = first(x, y)
        gc.manual_seed(seed)
        close(second(x.to(place), y.to(place)), expected)
    for a, b in zip(plain.parameters(), model.parameters(), strict=True):
        assert b.device == place
        close(b, a, 1e-4)


def test_a_function_runs_where_its_arguments_lie():
    compiled = gc.compile(lambda x, y: (x @ y).exp())
    x, y = gc.randn(3, 4), gc.randn(4, 2)
    here, there = compiled(x, y), compiled(x.to(DEVICE), y.to(DEVICE))
    assert here.is_cpu and there.device == DEVICE
    close(there, here)
    assert compiled(x, y).is_cpu


def test_a_model_that_is_moved_is_compiled_again():
    model = nn.Linear(3, 2)
    compiled, x = gc.compile(model), gc.randn(5, 3)
    expected = compiled(x)
    model.to(DEVICE)
    close(compiled(x.to(DEVICE)), expected)
    model.cpu()
    close(compiled(x), expected, 0)


def test_one_program_serves_sizes_that_are_known_at_run_time():
    n = gc.Dim("n", max=64)
    compiled = gc.compile(lambda x: F.softmax(x * 2, 0).sum(1), dims={"x": (n, None)}, device=DEVICE)
    for count in (3, 20, 64):
        x = gc.randn(count, 5)
        close(compiled(x), F.softmax(x * 2, 0).sum(1))
    assert len(compiled.variants) == 1


def test_an_index_out_of_range_is_an_error_and_changes_nothing():
    model = nn.Embedding(4, 3)
    compiled = gc.compile(model, device=DEVICE)
    with pytest.raises(IndexError, match="out of range"):
        compiled(gc.tensor([1, 9]))
    close(compiled(gc.tensor([1, 2])), model(gc.tensor([1, 2])), 0)


def test_names_of_machines():
    assert machine_named(HOST, None) == machine_named(HOST, "cpu") == HOST
    assert machine_named(HOST, DEVICE) == DEVICE and is_device(DEVICE) and not is_device("avx2")
    assert target_for(DEVICE).cpu == "sm_90" and machine_of(HOST, [gc.ones(1)]) == HOST
    assert machine_of("avx2", [gc.ones(1, device=DEVICE)]) == "avx2"
    with pytest.raises(ArgumentError, match="pass one of them"):
        machine_named("avx2", DEVICE)
    with pytest.raises(CompileError):
        machine_named("z80", None)
    if not gc.cuda.is_available():
        with pytest.raises(DeviceError):
            gc.compile(lambda x: x, device="cuda")


@pytest.mark.parametrize("tier", ["full", "auto"])
def test_a_call_whose_program_is_in_the_cache_imports_no_compiler(tier: str, tmp_path: Path):
    code = f"""
import sys
import graphc as gc
gc.manual_seed(0)
call = gc.compile(gc.nn.Sequential(gc.nn.Linear(3, 2), gc.nn.ReLU()).eval(), tier="{tier}")
with gc.no_grad():
    call(gc.ones(1, 3))
names = "compiler.compile", "compiler.stages", "lowering", "fusion", "codegen.machine.target", "codegen.llvm"
print([n for n in names if "graphc." + n in sys.modules])
"""
    environment = {**os.environ, "GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(tmp_path / "cache")}
    for arguments in ([code.replace(tier, "full")], [code]):
        run = subprocess.run([sys.executable, "-c", *arguments], env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"
