"""Programs on the emulated device against native ones: models, training, named dimensions, plans, cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.compiler import cache
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.compiler.device import compile_for_device, compile_graph_for, load_on_device, target_of
from graphc.compiler.pass_names import GPU_PASSES
from graphc.compiler.stages import GPU_STAGES, Stages
from graphc.errors import ArgumentError, CompileError, IndexRangeError
from graphc.files import container
from graphc.files.device_plan import DevicePlan, LaunchSpec, Place
from graphc.files.manifest import from_json, to_json
from graphc.ir.graph.graph import Graph
from graphc.nn import functional as F
from graphc.runtime.devices import device_named
from graphc.runtime.devices.array import DeviceArray, from_host
from tests.compiler.graphs import arguments, counter, lookup, mlp
from tests.compiler.test_cache import TARGET, entry, key, same

EMULATED = "cuda-emu"


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.all = nn.Linear(12, 36)

    def forward(self, x):
        q, k, v = self.all(x).chunk(3, dim=-1)
        return F.softmax(q @ k.transpose(-1, -2) / 12**0.5, dim=-1) @ v


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 5, 3, padding=1, stride=2), nn.BatchNorm2d(5)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(11, 8), nn.Linear(8, 4)

    def forward(self, words, labels):
        return F.cross_entropy(self.out(self.words(words).mean(dim=1)), labels)


def models() -> dict[str, tuple[nn.Module, tuple[Any, ...]]]:
    gc.manual_seed(0)
    words, labels = gc.tensor([[1, 2, 3], [4, 0, 10]]), gc.tensor([0, 3])
    return {
        "linear": (nn.Linear(20, 7), (gc.randn(5, 20),)),
        "mlp": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4), nn.LayerNorm(4)), (gc.randn(5, 8),)),
        "conv": (Convolutional(), (gc.randn(2, 3, 9, 8),)),
        "conv-eval": (Convolutional().eval(), (gc.randn(2, 3, 9, 8),)),
        "recurrent": (nn.LSTM(6, 5, num_layers=2), (gc.randn(7, 3, 6),)),
        "attention": (Attention(), (gc.randn(2, 6, 12),)),
        "classifier": (Classifier(), (words, labels)),
    }


def trained(model: nn.Module) -> Any:
    """A function that gives loss and gradients."""

    def step(*inputs):
        loss = model(*inputs).square().mean()
        return loss, gc.autograd.grad(loss, list(model.parameters()))

    return step


def close(result, expected):
    for a, b in zip(result, expected, strict=True):
        a = a.get() if isinstance(a, DeviceArray) else a
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def compare(graph: Graph) -> None:
    """Five calls with arrays on the device, states included, against as many native ones."""
    device = device_named(EMULATED)
    native, program = load_compiled(compile_graph(graph)), compile_for_device(graph, EMULATED)
    arrays = arguments(graph)
    count = len(native.inputs)
    inputs, plain = arrays[:count], [a.copy() for a in arrays[count:]]
    bound = tuple(from_host(device, a) for a in arrays[count:])
    on_device = [from_host(device, a) for a in inputs]
    for _ in range(5):
        result = program.run(on_device, bound)
        assert all(isinstance(a, DeviceArray) for a in result)
        close(result, native.run(inputs, plain))
        close(bound, plain)
    launches = len(program.plan.launches)
    assert program.replays == (3 if launches > 1 else 0)


def test_random_numbers_are_those_of_the_cpu():
    graph = gc.trace(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5)), gc.ones(4, 6))
    native, program = load_compiled(compile_graph(graph)), compile_for_device(graph, EMULATED)
    bound = [np.ones(b.shape, b.dtype.replace("i64", "int64").replace("f32", "float32")) for b in program.bound]
    plain = [a.copy() for a in bound]
    x = np.ones((4, 6), np.float32)
    for _ in range(4):
        close(program.run([x], bound), native.run([x], plain))
        close(bound, plain)


def test_sizes_of_loops_around_kernels_are_those_of_each_call():
    graph = gc.trace(nn.GRU(4, 5), gc.ones(6, 2, 4), dims={"input": (gc.Dim("time", max=64),)})
    native, program = load_compiled(compile_graph(graph)), compile_for_device(graph, EMULATED)
    assert any(launch.loops for launch in program.plan.launches)
    random = np.random.default_rng(0)
    weights = [random.standard_normal(b.shape).astype(np.float32) for b in program.bound]
    for time in (6, 1, 6, 6, 13, 6):
        x = random.standard_normal((time, 2, 4)).astype(np.float32)
        close(program.run([x], weights), native.run([x], weights))
    # What was freed may be given out again at its address, which makes a call like the one before.
    assert program.replays >= 1


@pytest.mark.parametrize("name", models())
def test_models_agree_with_the_cpu(name: str):
    model, inputs = models()[name]
    compare(gc.trace(model, *inputs))


@pytest.mark.parametrize("name", ["linear", "mlp", "conv", "attention", "classifier"])
def test_gradients_agree_with_the_cpu(name: str):
    model, inputs = models()[name]
    compare(gc.trace(trained(model), *inputs))


@pytest.mark.parametrize("make", [mlp, counter, lookup])
def test_host_arrays_are_taken_and_given(make: Any):
    graph = make()
    native, program = load_compiled(compile_graph(graph)), compile_for_device(graph, EMULATED)
    arrays = arguments(graph)
    count = len(native.inputs)
    bound, plain = ([a.copy() for a in arrays[count:]] for _ in range(2))
    for _ in range(4):
        result = program.run(arrays[:count], bound)
        assert all(isinstance(a, np.ndarray) for a in result)
        close(result, native.run(arrays[:count], plain))
        close(bound, plain)
        for changed in (*bound, *plain):
            changed *= 0.5


def test_an_index_out_of_range_is_told_and_nothing_is_written():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5, 3)
            self.register_buffer("seen", gc.zeros(()))

        def forward(self, rows):
            self.seen.add_(1.0)
            return self.table(rows).relu()

    graph = gc.trace(Counting(), gc.tensor([1, 2]))
    program, device = compile_for_device(graph, EMULATED), device_named(EMULATED)
    table = np.arange(15, dtype=np.float32).reshape(5, 3)
    paths = {"table.weight": from_host(device, table), "seen": from_host(device, np.zeros((), np.float32))}
    bound = tuple(paths[b.path] for b in program.bound)
    for call in range(1, 8):
        if call % 2:
            close(program.run([np.array([0, 4])], bound), [table[[0, 4]]])
        else:
            with pytest.raises(IndexRangeError, match="9"):
                program.run([np.array([0, 9])], bound)
        assert paths["seen"].get() == (call + 1) // 2


def test_named_dimensions_have_the_sizes_of_each_call():
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(-1))
    graph = gc.trace(model, gc.ones(4, 6), dims={"input": (gc.Dim("batch", max=64),)})
    native, program = load_compiled(compile_graph(graph)), compile_for_device(graph, EMULATED)
    random = np.random.default_rng(0)
    weights = [random.standard_normal(b.shape).astype(np.float32) for b in program.bound]
    bound = tuple(from_host(device_named(EMULATED), a) for a in weights)
    for batch in (64, 1, 7, 7, 7, 7, 33):  # the largest first: an arena that grows drops recordings
        x = random.standard_normal((batch, 6)).astype(np.float32)
        close(program.run([x], bound), native.run([x], weights))
    assert program.replays == 2


def test_every_stage_of_a_gpu_has_a_text(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHC_DUMP", str(tmp_path))
    compiled = compile_graph_for(mlp(), device_named(EMULATED))
    stages = compiled.stages
    assert stages.names == GPU_STAGES
    assert 'extern "C" __global__' in stages.text("cuda")
    assert {f.suffix for f in next(tmp_path.iterdir()).iterdir()} == {".gc", ".gcp", ".gck", ".cu"}
    for name in GPU_PASSES:
        assert stages.text(name)
    with pytest.raises(ArgumentError, match="llvm"):
        stages.text("llvm")
    with pytest.raises(ArgumentError, match="cuda"):
        Stages(mlp()).text("cuda")


def test_programs_come_from_the_cache_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    device = device_named(EMULATED)
    first, second, native = compile_graph_for(mlp(), device), compile_graph_for(mlp(), device), compile_graph(mlp())
    assert "cache" not in first.stages.seconds and "cache" in second.stages.seconds
    assert "cache" not in native.stages.seconds
    assert second.on_device == first.on_device
    arrays = arguments(mlp())
    close(load_on_device(second, device).run(arrays[:1], arrays[1:]), load_compiled(native).run(arrays[:1], arrays[1:]))
    assert cache.current().usage().entries == 2


def test_plans_are_plain_data():
    plan = compile_graph_for(mlp(), device_named(EMULATED)).on_device.plan
    assert from_json(type(plan), to_json(plan)) == plan


def test_what_no_device_can_run_is_refused():
    device = device_named(EMULATED)
    with pytest.raises(CompileError, match="compiled for the CPU"):
        load_on_device(compile_graph(mlp()), device)
    with pytest.raises(CompileError, match="no CUDA C"):
        target_of(type("Other", (), {"target": "avx2", "name": "other"}))
    with pytest.raises(ArgumentError, match="cuda-emu"):
        compile_for_device(mlp(), "gpu")


@pytest.mark.parametrize("batch", [None, gc.Dim("batch", max=200, hint=128)], ids=str)
def test_large_products_are_the_librarys(batch: Any):
    model = nn.Sequential(nn.Linear(192, 160), nn.ReLU(), nn.Linear(160, 192))
    graph = gc.trace(model, gc.ones(128, 192), dims=None if batch is None else {"input": (batch,)})
    native, program = load_compiled(compile_graph(graph)), compile_for_device(graph, EMULATED)
    assert [launch.product is not None for launch in program.plan.launches] == [True, True]
    assert from_json(type(program.plan), to_json(program.plan)) == program.plan
    random = np.random.default_rng(0)
    weights = [random.standard_normal(b.shape).astype(np.float32) / 14 for b in program.bound]
    bound = tuple(from_host(device_named(EMULATED), a) for a in weights)
    for size in (128, 128, 128, 128, *((77, 1) if batch is not None else ())):
        x = random.standard_normal((size, 192)).astype(np.float32)
        close(program.run([x], bound), native.run([x], weights))
    assert program.replays == 2


def test_products_of_heads_are_calls_in_loops():
    def scores(q, k):
        return gc.einsum("bshd,bthd->bhst", q, k)

    graph = gc.trace(scores, gc.ones(3, 128, 2, 128), gc.ones(3, 128, 2, 128))
    native, program = load_compiled(compile_graph(graph)), compile_for_device(graph, EMULATED)
    (launch,) = program.plan.launches
    assert launch.product is not None
    steps, _ = program.plan.steps()
    assert len(steps) * steps[0].product["d.batch"] == 6
    inputs = arguments(graph)
    close(program.run(inputs), native.run(inputs))


# ---- the disk cache


@pytest.fixture
def disk(tmp_path: Path) -> cache.Cache:
    cache._warned.clear()
    return cache.Cache(tmp_path / "cache", 1 << 20)


def on_device() -> cache.CacheEntry:
    plain = entry()
    launch = LaunchSpec("k0", "k0_k0", 1, 32, 0, (Place("x"), Place("arena", 64)))
    return replace(plain, on_device=cache.DeviceCode(DevicePlan(plain.manifest, (launch,)), "// text"))


def test_programs_for_devices_are_kept_with_their_plan(disk: cache.Cache):
    disk.store(key(1), on_device())
    loaded = disk.load(key(1), TARGET)
    assert loaded is not None and same(loaded, on_device()) and loaded.on_device == on_device().on_device


@pytest.mark.parametrize("section", ["plan", "text"])
def test_a_plan_that_is_damaged_is_not_taken(disk: cache.Cache, section: str):
    disk.store(key(1), entry())
    parts = {"key": key(1).encode(), **cache._sections(on_device()), section: b"\xff"}
    container.write_sections(disk.path(key(1)), {name: [part] for name, part in parts.items()})
    with pytest.warns(RuntimeWarning, match="the cache of compiled programs does not work"):
        assert disk.load(key(1), TARGET) is None
    assert not disk.path(key(1)).exists()


def test_what_only_the_cpu_can_run_is_refused():
    branch = gc.compile(lambda x: gc.cond(x.sum() > 0, gc.exp, gc.tanh, (x,)), device="cuda-emu")
    with pytest.raises(CompileError, match="branches or loops that depend on values"):
        branch(gc.ones(2))
    net = gc.nn.Linear(2, 2)
    net.register_forward_hook(lambda module, args, output: None)
    with gc.no_grad(), pytest.raises(CompileError, match=r"calls Python[\s\S]*hooks.traced"):
        gc.compile(net, device="cuda-emu")(gc.ones(1, 2))
