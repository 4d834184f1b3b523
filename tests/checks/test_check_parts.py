"""Checks of every pass: what is right passes, and planted faults are found, named, made small and written to files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.checks.check_case import load_case
from graphc.checks.pass_check import PassReport
from graphc.codegen.llvm.module import LlvmModule
from graphc.codegen.schedule.base import Context, Nest, StepResult
from graphc.codegen.schedule.passes import PlanMemory
from graphc.codegen.schedule.steps import Hoist
from graphc.compiler import stages
from graphc.errors import ArgumentError, TraceError
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.statements import Let, Loop, Program, Stmt
from graphc.ir.op import REGISTRY
from graphc.nn import functional as F
from graphc.ops.pointwise.elementwise import mul
from graphc.passes.base import PassResult
from graphc.passes.canonicalize import Canonicalize
from graphc.passes.cse import CommonSubexpressionElimination
from graphc.passes.scans import PruneScans

MOST_NODES = 5


class Net(nn.Module):
    """Nodes of many kinds around those in which faults are planted."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        h = F.relu(self.first(x)) + 0.1
        h = gc.maximum(h, 0.5 - h)
        h = h * gc.sigmoid(h) + 0.5
        return F.log_softmax(gc.tanh(self.second(h)), dim=1)


def examples() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    return gc.tensor(random.standard_normal((4, 6)).astype(np.float32)), gc.tensor(np.array([0, 1, 2, 4]))


def checked(folder: Path | None = None, gradients: bool = False) -> PassReport:
    gc.manual_seed(3)
    report = gc.check(Net(), examples()[0], passes=True, gradients=gradients, folder=folder)
    assert isinstance(report, PassReport)
    return report


def training_step() -> Any:
    gc.manual_seed(3)
    model = nn.Sequential(Net(), nn.Dropout(0.3), nn.Linear(5, 5))
    optimizer = gc.optim.Adam(model.parameters(), lr=1e-2)
    return gc.compile_step(model, nn.CrossEntropyLoss(), optimizer)


def test_what_is_right_passes():
    report = checked(gradients=True)
    assert report.good and not report.faults
    parts = dict.fromkeys(line.part for line in report.lines)
    assert list(parts) == ["forward", "gradients", "split", "split forward", "split backward"]
    names = [line.point.name for line in report.lines if line.part == "forward"]
    assert names.index("rematerialize") < names.index("lowering") < names.index("nests/lanes") < names.index("nests")
    assert names[-1] == "native"
    assert all(line.compared and line.difference < 1e-4 for line in report.lines)
    assert "changed nothing" in str(report) and report.as_json()["good"]


def test_a_training_step_is_checked_on_a_copy():
    step = training_step()
    x, y = examples()
    step(x, y)
    before = {name: value.numpy().copy() for name, value in step.model.state_dict().items()}
    random, count = gc.get_rng_state().numpy().copy(), step.optimizer.step_count
    report = gc.check(step, x, y)
    assert isinstance(report, PassReport) and report.good and {line.part for line in report.lines} == {"step"}
    for name, value in step.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    assert step.optimizer.step_count == count
    np.testing.assert_array_equal(gc.get_rng_state().numpy(), random)


def training_function(is_compiled: bool) -> tuple[Any, Any, Any]:
    gc.manual_seed(3)
    model = nn.Sequential(Net(), nn.Dropout(0.3), nn.Linear(5, 5))
    optimizer = gc.optim.Adam(model.parameters(), lr=1e-2)

    def train(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return gc.compile(train) if is_compiled else train, model, optimizer


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_training_function_is_checked_and_nothing_is_written(is_compiled: bool):
    train, model, optimizer = training_function(is_compiled)
    x, y = examples()
    train(x, y)
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    slots = [s["exp_avg"].numpy().copy() for s in optimizer.state.values()]
    random = gc.get_rng_state().numpy().copy()
    report = gc.check(train, x, y)
    assert isinstance(report, PassReport) and report.good and {line.part for line in report.lines} == {"training"}
    assert {"cse", "lowering", "native"} <= {line.point.name for line in report.lines}
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    for state, slot in zip(optimizer.state.values(), slots, strict=True):
        np.testing.assert_array_equal(state["exp_avg"].numpy(), slot)
    np.testing.assert_array_equal(gc.get_rng_state().numpy(), random)
    assert optimizer.step_count == 1


def test_both_programs_of_an_accumulating_step_are_checked():
    model = Net()
    optimizer = gc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    report = gc.check(gc.compile_step(model, nn.NLLLoss(), optimizer, accumulate=3, clip_norm=1.0), *examples())
    assert report.good and {line.part for line in report.lines} == {"accumulation", "step"}  # type: ignore[union-attr]


def test_a_folder_asks_for_every_pass(tmp_path: Path):
    assert isinstance(gc.check(Net(), examples()[0], folder=tmp_path), PassReport)


def test_errors_of_functions_that_do_not_train_are_theirs():
    for passes in (False, True):
        with pytest.raises(TraceError, match="needs the values of a traced tensor"):
            gc.check(lambda x: x if x.sum() > 0 else -x, examples()[0], passes=passes)


def test_dtypes_that_are_no_floats_are_the_same_bit_for_bit():
    report = gc.check(lambda x: (x.argmax(1), x > 0, x.sum(0)), examples()[0], passes=True)
    assert report.good


def test_an_error_of_the_caller_is_one():
    with pytest.raises(ArgumentError, match="no precision"):
        gc.check(Net(), examples()[0], passes=True, precision="int8")  # type: ignore[call-overload]  # pyright: ignore
    with pytest.raises(ArgumentError, match="requires gradients"):
        gc.check(lambda x: x * 2, examples()[0], gradients=True)


def test_gradients_of_loops_are_checked_but_for_difference_quotients():
    def loop(x: Any) -> Any:
        return gc.scan(lambda c, v: (c * v + gc.tanh(c), c + v), x[0], x)[0]

    report = gc.check(loop, gc.randn(5, 3, requires_grad=True), passes=True, gradients=True)
    assert report.good and [x.point.name for x in report.lines if not x.compared] == ["gradient-rules"]


# ---- planted faults


def wrong_canonicalization(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Canonicalize.run

    def wrong(self: Canonicalize, graph: Graph) -> PassResult:
        result = run(self, graph)
        for node in result.graph.nodes():
            if node.op.name == "maximum":
                node.op = REGISTRY["minimum"]
        return result

    monkeypatch.setattr(Canonicalize, "run", wrong)


def wrong_number(monkeypatch: pytest.MonkeyPatch) -> None:
    run = CommonSubexpressionElimination.run

    def wrong(self: CommonSubexpressionElimination, graph: Graph) -> PassResult:
        result = run(self, graph)
        for node in result.graph.nodes():
            if node.op.name == "tanh":
                node.op = REGISTRY["erf"]
        return result

    monkeypatch.setattr(CommonSubexpressionElimination, "run", wrong)


def raising(monkeypatch: pytest.MonkeyPatch) -> None:
    run = PruneScans.run

    def wrong(self: PruneScans, graph: Graph) -> PassResult:
        if any(node.op.name == "tanh" for node in graph.nodes()):
            raise KeyError("a node that is gone")
        return run(self, graph)

    monkeypatch.setattr(PruneScans, "run", wrong)


def changed(stmt: Stmt, old: str, new: str) -> Stmt:
    if isinstance(stmt, Loop):
        return replace(stmt, body=tuple(changed(s, old, new) for s in stmt.body))
    return replace(stmt, op=new) if isinstance(stmt, Let) and stmt.op == old else stmt


def wrong_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    lower = stages.lower_graph

    def wrong(graph: Graph, **options: Any) -> Program:
        program = lower(graph, **options)
        bodies = [tuple(changed(s, "max", "min") for s in k.body) for k in program.kernels]
        pairs = zip(program.kernels, bodies, strict=True)
        return replace(program, kernels=tuple(replace(k, body=b) for k, b in pairs))

    monkeypatch.setattr(stages, "lower_graph", wrong)


def wrong_step(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Hoist.run

    def wrong(self: Hoist, nest: Nest, context: Context) -> StepResult:
        result = run(self, nest, context)
        body = tuple(changed(s, "tanh", "sin") for s in result.nest.kernel.body)
        return replace(result, nest=replace(result.nest, kernel=replace(result.nest.kernel, body=body)))

    monkeypatch.setattr(Hoist, "run", wrong)


def wrong_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    run = PlanMemory.run

    def wrong(self: PlanMemory, given: Any, context: Context) -> Any:
        result = run(self, given, context)
        program = result.scheduled.program
        storages = tuple(replace(s, offset=0) if s.cls == "temp" else s for s in program.storages)
        return replace(result, scheduled=replace(result.scheduled, program=replace(program, storages=storages)))

    monkeypatch.setattr(PlanMemory, "run", wrong)


def wrong_code(monkeypatch: pytest.MonkeyPatch) -> None:
    emit = stages.emit_module
    monkeypatch.setattr(stages, "emit_module", lambda *a: LlvmModule((emit(*a).text.replace("fadd ", "fsub "),)))


def wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY["tanh"].__dict__, "vjp", (lambda g, result, x: mul(g, result),))


@pytest.mark.parametrize(
    ("plant", "gradients", "part", "kind", "name", "node"),
    [
        (wrong_canonicalization, False, "forward", "graph", "canonicalize", "minimum("),
        (wrong_number, False, "forward", "graph", "cse", "erf("),
        (raising, False, "forward", "graph", "prune-scans", "tanh("),
        (wrong_lowering, False, "forward", "program", "lowering", "maximum("),
        (wrong_step, False, "forward", "program", "nests/hoisting", "tanh("),
        (wrong_memory, False, "forward", "program", "memory-plan", ""),
        (wrong_code, False, "forward", "native", "native", ""),
        (wrong_rule, True, "gradients", "gradient", "gradient-rules", "tanh("),
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    gradients: bool,
    part: str,
    kind: str,
    name: str,
    node: str,
    tmp_path: Path,
):
    with pytest.MonkeyPatch.context() as patched:
        plant(patched)
        report = checked(tmp_path / "cases", gradients)
        fault = report.faults[0]
        assert not report.good
        assert (fault.part, fault.point.kind, fault.point.name) == (part, kind, name)
        assert node in fault.node and "test_check_parts.py" in fault.node
        assert 1 <= fault.nodes <= MOST_NODES and sum(a.size for a in fault.arguments) <= 100
        first = next(line for line in report.lines if not line.good)
        assert first.point == fault.point and "BAD" in str(report)
        assert fault.path is not None and fault.path.parent == tmp_path / "cases"
        case = load_case(fault.path)
        assert case.point == fault.point and case.fault()
    assert load_case(fault.path).fault() == ""


def test_later_passes_only_inherit_a_difference(monkeypatch: pytest.MonkeyPatch):
    wrong_number(monkeypatch)
    report = checked()
    bad = [line for line in report.lines if not line.good]
    assert bad[0].point.name == "cse" and bad[0].note.startswith("output 0 differs by")
    assert {line.note for line in bad[1:]} == {"as before"}


@pytest.mark.parametrize(("plant", "name"), [(wrong_canonicalization, "canonicalize"), (wrong_step, "nests/hoisting")])
def test_a_fault_in_a_training_step_is_found(plant: Callable[..., None], name: str, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch)
    report = gc.check(training_step(), *examples())
    assert isinstance(report, PassReport)
    fault = report.faults[0]
    assert fault.point.name == name and fault.nodes <= MOST_NODES and "test_check_parts.py" in fault.node


def test_a_fault_in_a_training_function_is_found(tmp_path: Path):
    with pytest.MonkeyPatch.context() as patched:
        wrong_canonicalization(patched)
        report = gc.check(training_function(True)[0], *examples(), folder=tmp_path)
        fault = report.faults[0]
        assert fault.point.name == "canonicalize" and fault.nodes <= MOST_NODES and fault.part == "training"
        assert fault.path is not None and load_case(fault.path).fault()
    assert load_case(fault.path).fault() == ""
