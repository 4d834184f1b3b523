"""Strict order: one set of bits on every machine, that of the lowered program with its loops run as written."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli.main import main
from graphc.codegen.machine.target import in_strict_order, target_named
from graphc.codegen.schedule.expansion.expand import expand
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.freeze import freeze
from graphc.compiler.ready import running_target
from graphc.compiler.stages import Stages
from graphc.errors import ArgumentError, CompileError
from graphc.files.model_content import load as load_artifact
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.interpret import run_program
from graphc.models.model_trace import snapshot
from graphc.nn import functional as F
from tests.native import target_or_skip

FUSED = re.compile(r"\b(vfn?m(add|sub|acc|sac)\w*|fn?madd|fn?msub|fml[as])\b")
"""Instructions that round a product and a sum at once."""


class Attention(nn.Module):
    """Two heads over six tokens."""

    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        """Residual."""
        parts = [t.reshape(2, 6, 2, 8).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1)]
        y = F.scaled_dot_product_attention(*parts).transpose(1, 2)
        return x + self.out(y.reshape(2, 6, 16))


class Recurrent(nn.Module):
    """An LSTM whose states nobody asks for."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(9, 13)

    def forward(self, x: Any) -> Any:
        """All outputs."""
        return self.cell(x)[0]


class Reductions(nn.Module):
    """Sums of every kind: short and long, of rows and of columns, running."""

    def forward(self, x: Any) -> tuple[Any, ...]:
        """In float, but for one."""
        whole = (x * 8).to(gc.int32).sum()
        sums = x.sum(), x.sum(0), x.sum(1), x.mean(), (x * x.flip(1)).sum(), x.t().flatten().exp().sum()
        return *sums, x.softmax(1), x.cumsum(1), x.var(1), x.amax(1), x.prod(1), whole


def perceptron() -> tuple[nn.Module, tuple[int, ...]]:
    """Three layers, with erf and tanh."""
    layers = nn.Linear(37, 50), nn.GELU(), nn.Linear(50, 20), nn.Tanh(), nn.Linear(20, 7)
    return nn.Sequential(*layers), (5, 37)


def convolutions() -> tuple[nn.Module, tuple[int, ...]]:
    """Build convolutions that would be folded, computed by Winograd's method, or laid out otherwise."""
    net = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)),
    )
    return net, (9, 3, 12, 12)


MODELS = {
    "mlp": perceptron,
    "cnn": convolutions,
    "lstm": lambda: (Recurrent(), (4, 3, 9)),
    "attention": lambda: (Attention(), (2, 6, 16)),
    "reductions": lambda: (Reductions(), (33, 70)),
}


@cache
def frozen(name: str) -> tuple[Graph, np.ndarray]:
    """The graph of a model with its weights as constants, and an input."""
    gc.manual_seed(1)
    model, shape = MODELS[name]()
    x = gc.randn(*shape)
    traced = snapshot(model.eval(), (x,))
    return freeze(traced.graph, traced.state()), x.numpy()


@cache
def reference(name: str) -> tuple[np.ndarray, ...]:
    """Return the meaning of the lowered program: sums in order, elementary functions as on all machines."""
    graph, x = frozen(name)
    program = Stages(graph, target=target_named("sse2:strict")).lowered
    return run_program(replace(program, kernels=tuple(map(expand, program.kernels))), [x], fused=True)


def run(name: str, target: str) -> tuple[np.ndarray, ...]:
    """The outputs of native code; skips where this machine lacks the instructions."""
    graph, x = frozen(name)
    target_or_skip(target)
    program = load_compiled(compile_stages(Stages(graph, target=running_target(target))))
    result = program(x)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def bits(arrays: Any) -> list[bytes]:
    return [np.asarray(a).tobytes() for a in arrays]


def is_strict(path: Path) -> bool:
    """Whether a file says so of its native code."""
    (entry,) = load_artifact(path).manifest.entries
    return all(code.program.target.strict_order for code in entry.natives) and bool(entry.natives)


@pytest.mark.parametrize("target", ["host", "sse2", "avx2", "avx512"])
@pytest.mark.parametrize("name", MODELS)
def test_native_code_has_the_bits_of_the_lowered_program_on_every_machine(name: str, target: str):
    assert bits(run(name, f"{target}:strict")) == bits(reference(name))


@pytest.mark.parametrize("name", ["cnn", "attention"])
def test_without_it_sums_are_rounded_otherwise(name: str):
    assert bits(run(name, "host")) != bits(reference(name))


@pytest.mark.parametrize("target", ["avx2", "avx512", "neon", "rv64gc", "rv64gcv"])
def test_products_are_multiplied_and_added_by_one_instruction(target: str):
    assert FUSED.search(Stages(frozen("mlp")[0], target=target_named(f"{target}:strict")).asm)


@pytest.mark.parametrize("name", MODELS)
def test_the_lowered_program_is_that_of_every_machine(name: str):
    targets = ("sse2", "avx512", "neon")
    assert len({Stages(frozen(name)[0], target=target_named(f"{t}:strict")).text("lowered") for t in targets}) == 1


def test_integers_are_still_summed_in_lanes():
    graph = snapshot(lambda x: x.sum(), (gc.zeros(4096, dtype=gc.int32),)).graph
    assert "vector" in Stages(graph, target=target_named("avx2:strict")).text("scheduled")


def test_a_compiled_function_and_a_training_step_keep_the_order():
    def trained(target: str) -> list[bytes]:
        gc.manual_seed(3)
        net = nn.Sequential(nn.Linear(19, 33), nn.LayerNorm(33), nn.GELU(), nn.Linear(33, 4))
        optimizer = gc.optim.AdamW(net.parameters(), lr=0.01)
        step = gc.compile_step(net, F.mse_loss, optimizer, target=target, strict_order=True)
        x, y = gc.randn(12, 19), gc.randn(12, 4)
        losses = [step(x, y).numpy() for _ in range(3)]
        with gc.no_grad():
            out = gc.compile(net, target=target, strict_order=True)(x)
        return bits([*losses, out.numpy(), *(p.detach().numpy() for p in net.parameters())])

    target_or_skip("avx2")
    assert trained("sse2") == trained("avx2")


def test_sizes_that_are_known_at_run_time_do_not_change_the_order():
    gc.manual_seed(4)
    net, batch = nn.Sequential(nn.Linear(19, 33), nn.Softmax(-1)).eval(), gc.Dim("batch", max=64)
    sized, fixed = gc.compile(net, dims=[(batch,)], strict_order=True), gc.compile(net, strict_order=True)
    with gc.no_grad():
        for rows in (1, 2, 7, 33):
            x = gc.randn(rows, 19)
            assert bits([sized(x).numpy()]) == bits([fixed(x).numpy()])


def test_a_file_keeps_the_order_of_its_native_code(tmp_path: Path):
    gc.manual_seed(1)
    model, shape = perceptron()
    path, x = tmp_path / "net.gcm", gc.randn(*shape)
    gc.export(model.eval(), x, path=path, native=True, strict_order=True)
    assert is_strict(path)
    with gc.no_grad():
        expected = gc.compile(model, freeze=True, strict_order=True)(x).numpy()
    for trust in (True, False):
        assert bits([gc.load(path, trust=trust)(x.numpy())]) == bits([expected])
    gc.export(model, x, path=path, native=True)
    assert bits([gc.load(path, trust=True, strict_order=True)(x.numpy())]) == bits([expected])


def test_a_file_without_native_code_has_no_order(tmp_path: Path):
    with pytest.raises(ArgumentError, match="takes no target, got host, in strict order"):
        gc.export(nn.Linear(2, 2), gc.zeros(1, 2), path=tmp_path / "net.gcm", strict_order=True)


def test_gpus_share_sums_and_are_refused():
    with pytest.raises(CompileError, match="whose threads share sums"):
        in_strict_order(target_named("sm_90"))
    with pytest.raises(ArgumentError, match="share sums"):
        gc.compile(nn.Linear(2, 2), device="cuda-emu", strict_order=True)


def test_the_command_line_asks_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model = tmp_path / "model.py"
    model.write_text("from graphc import nn\nnet = nn.Linear(40, 3)\n", encoding="utf-8")
    given = ["compile", f"{model}:net", "--input", "input:f32[2,40]", "-o", str(tmp_path / "net.gcm"), "--strict-order"]
    assert main(given) == 2
    assert main([*given, "--native"]) == 0
    assert is_strict(tmp_path / "net.gcm")
    capsys.readouterr()
    given = ["ir", f"{model}:net", "--input", "input:f32[2,400]", "--stage", "lowered", "--target"]
    model.write_text("net = lambda input: input.sum(1)\n", encoding="utf-8")
    assert main([*given, "avx2:strict"]) == 0
    assert "%lanes0_f32: f32[32] scratch" in capsys.readouterr().out
