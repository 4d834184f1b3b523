"""explain: what is reported agrees with the program that is compiled."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.dtypes import float32
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.steps import STEPS
from graphc.compiler.explain import PATHS, Explanation, KernelExecution, explain, memory_of
from graphc.compiler.freeze import freeze
from graphc.compiler.pass_names import PROGRAM_PASSES
from graphc.compiler.stages import Stages
from graphc.errors import CompileError
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.models.model_trace import snapshot
from graphc.nn import functional as F
from graphc.ops import dispatch
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.effects.host import host_call
from graphc.ops.pointwise.math import exp


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(48)
        self.up = nn.Linear(48, 96)
        self.down = nn.Linear(96, 48)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def floats(*shape: int) -> gc.Tensor:
    return gc.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def stages_of(model, *examples) -> Stages:
    traced = snapshot(model, examples)
    return Stages(freeze(traced.graph, traced.state()))


def explained(model, *examples) -> Explanation:
    return explain(stages_of(model, *examples))


def test_a_block_of_a_transformer():
    stages = stages_of(Block().eval(), floats(16, 48))
    report = explain(stages)
    assert [c.kind for c in report.calls if c.kind != "pack"] == ["row", "contraction", "contraction"]
    assert [c.kernel for c in report.calls] == [c.kernel for c in stages.scheduled.calls]
    modules = [c.modules for c in report.calls if c.kind != "pack"]
    assert modules[0] == ("norm",) and "up" in modules[1] and "down" in modules[2]
    products = [c for c in report.calls if c.kind == "contraction"]
    assert products[0].flops >= 2 * 16 * 48 * 96
    assert all(re.fullmatch(r"register block \d+ x \d+ vectors of \d+, packed", c.schedule) for c in products)
    assert "test_explain.py:" in report.calls[-1].source


def test_neighbours_that_are_not_fused_have_reasons():
    report = explained(Block().eval(), floats(16, 48))
    numbers = {(a.producer, a.reader) for a in report.unfused}
    assert len(report.unfused) == 2 and all(a < b for a, b in numbers)
    assert all("each element is read many times" in a.reason for a in report.unfused)


def test_rows_of_other_axes_are_not_fused():
    report = explained(lambda x: F.softmax(F.softmax(x, 0), 1), floats(32, 48))
    assert [a.reason for a in report.unfused] == ["the two reduce different rows: another shape, or other axes"]


def test_everything_merged_has_nothing_unfused():
    assert explained(lambda x: F.softmax(x.tanh() * 2, 1), floats(32, 48)).unfused == ()


def test_scratch_rows():
    report = explained(lambda x: F.softmax(x, 1), floats(8, 1000))
    assert report.calls[0].scratch == (4000,) and "scratch   1 rows of 4000 bytes" in str(report)


def test_layouts_are_compared_for_images_only():
    convolution = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()).eval()
    stages = stages_of(convolution, floats(2, 8, 12, 12))
    report = explain(stages)
    assert set(report.layouts) == {"channels_first", "channels_last"}
    assert report.layouts[report.layout] == min(report.layouts.values())
    assert report.layout in str(report)
    assert explained(lambda x: x + 1, floats(3)).layout == ""


def test_memory():
    stages = stages_of(lambda x: F.softmax(F.softmax(x, 0), 1), floats(32, 48))
    memory = explain(stages).memory
    assert memory == memory_of(stages.scheduled)
    assert memory.arena == stages.scheduled.arena >= memory.bound >= 32 * 48 * 4
    assert memory.temporaries >= 32 * 48 * 4 and memory.constants == 0


def test_json_holds_everything():
    report = explained(Block().eval(), floats(16, 48))
    facts = json.loads(json.dumps(report.as_json()))
    assert len(facts["calls"]) == len(report.calls) and facts["memory"]["arena"] == report.memory.arena


def test_equal_kernels_keep_their_own_modules():
    model = nn.Sequential(
        nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()
    ).eval()
    calls = [c for c in explained(model, floats(4, 32)).calls if c.kind == "contraction"]
    assert len({c.kernel for c in calls}) < len({c.modules for c in calls}) == 3


def test_a_compile_from_a_program_has_no_fusion():
    stages = Stages(lowered=stages_of(Block().eval(), floats(16, 48)).lowered)
    report = explain(stages)
    assert report.unfused == () and len(report.calls) >= 3
    with pytest.raises(CompileError):
        _ = stages.traced


def test_the_example_of_the_page_runs():
    page = (Path(__file__).resolve().parents[2] / "docs" / "explain.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "contraction ('up',)" in done.stdout and done.stdout.startswith("Block: ")


def test_packed_weights_are_kept_once():
    stages = stages_of(Block().eval(), floats(16, 48))
    weights = 4 * (2 * 48 * 96 + 48 + 96 + 2 * 48)
    packed = [c for c in explain(stages).calls if c.packed]
    assert packed and memory_of(stages.scheduled).constants <= weights + 4096
    assert not any("weight: " in entry for c in packed for entry in c.reads)


def test_passes_are_named_with_their_reasons():
    stages = Stages(stages_of(Block().eval(), floats(16, 48)).traced, target=target_named("avx512"))
    report = explain(stages)
    assert [p.name for p in report.passes[-len(PROGRAM_PASSES) :]] == list(PROGRAM_PASSES)
    text = str(report)
    assert "\npasses:\n" in text and "   nests: " in text and ": register block " in text
    (nests,) = (p for p in report.passes if p.name == "nests")
    assert [s.name for s in nests.steps] == [s.name for s in STEPS]
    assert 0 < sum(s.seconds for s in nests.steps) <= nests.seconds
    assert any(line.startswith("      contraction: ") for line in text.splitlines())
    (listed,) = (p for p in report.as_json()["passes"] if p["name"] == "nests")
    assert [s["name"] for s in listed["steps"]] == [s.name for s in STEPS]


def test_host_calls_are_counted_and_named():
    graph = Graph("main")
    x = graph.add_input(TensorType(float32, (4, 3)), "x")
    with dispatch.use(GraphDispatcher(graph)):
        token, host_result = host_call(graph.scalar(0.0, float32), exp(x), number=0, name="look", results="f32[4,3]")
        host_call(token, host_result, number=1, name="hook of Linear")
        graph.set_outputs([exp(host_result)])
    explanation = explain(Stages(graph))
    assert [c.schedule for c in explanation.calls if c.kind == "host"] == [
        "calls Python: look",
        "calls Python: hook of Linear",
    ]
    assert "host calls: 2, in which native code waits for Python" in str(explanation)


def test_second_computations_are_named():
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    step = gc.compile_step(lambda x: gc.checkpoint(net, x), nn.MSELoss(), gc.optim.SGD(net.parameters(), lr=0.1))
    step(gc.ones(3, 4), gc.zeros(3, 4))
    report = explain(Stages(step.graphs[0]))
    assert any(line.endswith(": 48 bytes") for line in report.held) and "computed a second time" in str(report)
    assert explain(Stages(gc.trace(net, gc.ones(3, 4)))).held == ()


def paths(function: Callable[..., Any], *shapes: tuple[int, ...]) -> list[KernelExecution]:
    stages = Stages(gc.trace(function, *[gc.zeros(shape) for shape in shapes]), target=target_named("sm_90"))
    found = explain(stages)
    assert str(found).count("\n   ") and "\npaths:\n" in str(found)
    return [call.device for call in found.calls if call.device is not None]


@pytest.mark.parametrize(
    "path,function,shapes",
    [
        ("thread", lambda x: x * 2 + 1, [(64, 300)]),
        ("warp", lambda x: F.softmax(x, -1), [(512, 40)]),
        ("block", lambda x: F.softmax(x, -1), [(16, 4000)]),
        ("tiles", lambda a, b: a @ b, [(64, 24), (24, 32)]),
        ("library", lambda a, b: a @ b, [(512, 512), (512, 512)]),
    ],
)
def test_the_path_of_a_kernel(path: str, function: Callable[..., Any], shapes: list[tuple[int, ...]]):
    found = paths(function, *shapes)
    assert found[0].path == path and found[0].threads and found[0].blocks
    assert PATHS[path] in str(found[0])
    assert ("shared bytes" in str(found[0])) == (path != "library")


def test_tiles_lie_in_shared_memory():
    assert paths(lambda a, b: a @ b, (64, 24), (24, 32))[0].shared > 0


def test_programs_of_the_cpu_have_no_paths():
    found = explain(Stages(gc.trace(lambda x: x + 1, gc.zeros(8))))
    assert all(call.device is None for call in found.calls) and "paths:" not in str(found)
