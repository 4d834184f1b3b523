"""``tier="auto"``: which calls references serve, when the program takes over, and what both have in common."""

from __future__ import annotations

import logging
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls import bound_program
from graphc.calls.function import Compiled
from graphc.calls.quick import pending_program
from graphc.calls.quick.pending_program import tier_named
from graphc.calls.quick.quick_calls import QuickCalls
from graphc.compiler import background
from graphc.errors import ArgumentError, CompileError, IndexRangeError
from graphc.nn import functional as F
from graphc.tracing.reads import read_flag
from tests.calls.quick.held import Held, end

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def is_quick(compiled: Compiled) -> bool:
    """Return whether the next call of the last program has references."""
    return isinstance(compiled.variants[-1].calls, QuickCalls)


def net() -> nn.Sequential:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.BatchNorm1d(8), nn.Linear(8, 2))


@gc.no_grad()
def test_the_program_takes_over_between_two_calls(held: list[Held], caplog: pytest.LogCaptureFixture):
    model, x = net().eval(), gc.tensor(X)
    compiled = gc.compile(model, tier="auto")
    with caplog.at_level(logging.INFO, "graphc.compile"):
        first, second = compiled(x), compiled(x)
        assert is_quick(compiled) and len(held) == 1
        end()
        third = compiled(x)
    assert not is_quick(compiled)
    assert caplog.messages.index("Sequential: the program serves calls") > caplog.messages.index(
        "Sequential: references serve calls while a child builds the program"
    )
    full = gc.compile(model, tier="full")(x).numpy()
    assert (first.numpy() == second.numpy()).all() and (third.numpy() == full).all()
    np.testing.assert_allclose(first.numpy(), full, rtol=1e-5, atol=1e-6)


@gc.no_grad()
def test_states_go_on(held: list[Held]):
    quick, full = net(), net()
    calls = gc.compile(quick, tier="auto"), gc.compile(full)
    for step in range(4):
        if step == 2:
            end()
        results = [f(gc.tensor(X + step)).numpy() for f in calls]
        np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)
    assert len(held) == 1 and not is_quick(calls[0])
    for (name, a), (_, b) in zip(quick.named_buffers(), full.named_buffers(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, err_msg=name)
    assert quick[2].num_batches_tracked.item() == 4


@gc.no_grad()
def test_random_numbers_go_on():
    results = []
    for tier in ("auto", "full"):
        gc.manual_seed(3)
        compiled = gc.compile(lambda x: (x + gc.rand(3, 4), gc.randint(0, 9, (5,))), tier=tier)
        for step in range(3):
            if step == 2:
                end()
            results.append([t.numpy() for t in compiled(gc.tensor(X))])
    for quick, full in zip(results[:3], results[3:], strict=True):
        for a, b in zip(quick, full, strict=True):
            np.testing.assert_array_equal(a, b)


@gc.no_grad()
def test_open_sizes():
    compiled = gc.compile(net().eval(), dims={"input": (gc.Dim("batch"), None)}, tier="auto")
    results = [compiled(gc.tensor(X[:n])).numpy() for n in (3, 2)]
    end()
    again = [compiled(gc.tensor(X[:n])).numpy() for n in (3, 2)]
    assert len(compiled.programs) == 1
    for a, b in zip(results, again, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@gc.no_grad()
def test_whole_numbers_that_are_sizes():
    compiled = gc.compile(lambda x, n: x[:, :n].sum(1), dims={"n": gc.Dim("n", min=1, max=4)}, tier="auto")
    results = [compiled(gc.tensor(X), n).numpy() for n in (2, 4)]
    assert is_quick(compiled)
    np.testing.assert_allclose(results, [X[:, :2].sum(1), X.sum(1)], rtol=1e-5, atol=1e-6)


@gc.no_grad()
def test_numbers_of_attributes():
    class Scale(nn.Module):
        factor = 2.0

        def forward(self, x: Any) -> Any:
            return x * self.factor

    model = Scale()
    compiled = gc.compile(model, tier="auto")
    for factor in (2.0, 3.0, 4.0):
        model.factor = factor
        np.testing.assert_array_equal(compiled(gc.tensor(X)).numpy(), X * np.float32(factor))


@gc.no_grad()
def test_deterministic_algorithms_want_one_tier(held: list[Held], caplog: pytest.LogCaptureFixture):
    compiled, x = gc.compile(net().eval(), tier="auto"), gc.tensor(X)
    compiled(x)
    assert is_quick(compiled)
    gc.use_deterministic_algorithms(True)
    with caplog.at_level(logging.INFO, "graphc.compile"):
        compiled(x)
    assert "Sequential: the program is built in this process" in caplog.messages
    assert not is_quick(compiled)
    other = gc.compile(net().eval(), tier="auto")
    other(x)
    assert not is_quick(other) and len(held) == 1


@gc.no_grad()
@pytest.mark.parametrize("has_program", [False, True])
def test_a_build_that_fails(held: list[Held], monkeypatch: pytest.MonkeyPatch, has_program: bool):
    compiled, x = gc.compile(net().eval(), tier="auto"), gc.tensor(X)
    expected = compiled(x).numpy()
    held[0].has_ended = held[0].fails = True

    def refuse(*_: Any) -> Any:
        raise CompileError("refused")

    if has_program:
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-5, atol=1e-6)
        assert not is_quick(compiled), "this process builds what the child could not"
        return
    monkeypatch.setattr(pending_program, "compile_on", refuse)
    for _ in range(2):
        with pytest.raises(CompileError, match="refused"):
            compiled(x)


@pytest.fixture
def refused_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no graph with open sizes be compiled."""
    for module, name in ((pending_program, "compile_on"), (bound_program, "build_on")):
        compile = getattr(module, name)

        def refuse(graph: Any, *options: Any, compile: Any = compile) -> Any:
            if graph.dims:
                raise CompileError("open sizes are refused")
            return compile(graph, *options)

        monkeypatch.setattr(module, name, refuse)


@gc.no_grad()
@pytest.mark.usefixtures("refused_sizes")
def test_sizes_without_a_common_program_go_on_in_the_full_tier(held: list[Held]):
    compiled = gc.compile(net().eval(), dims={"input": (gc.Dim("batch"), None)}, tier="auto")
    expected = compiled(gc.tensor(X)).numpy()
    held[0].has_ended = held[0].fails = True
    for rows in (len(X), len(X) + 1, len(X)):
        result = compiled(gc.tensor(np.resize(X, (rows, *X.shape[1:]))))
        np.testing.assert_allclose(result.numpy()[: len(X)], expected, rtol=1e-5, atol=1e-6)
        assert not is_quick(compiled)
    assert len(compiled.programs) == 2


@gc.no_grad()
def test_a_question_of_an_earlier_build_is_answered_before_a_child_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def no_child(*_: Any) -> Any:
        raise AssertionError("a child would only ask again")

    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(pending_program, "BackgroundBuild", background.BackgroundBuild)
    monkeypatch.setattr(background, "_Child", no_child)
    # A pass compares the stride with the kernel.
    dims = [(None, None, gc.Dim("length", 2, 40)), (None, None, gc.Dim("kernel", 1, 9))]
    x, weight = gc.rand(2, 3, 8), gc.rand(3, 4, 3)
    results = []
    for tier in ("full", "auto"):
        compiled = gc.compile(lambda x, w: F.conv_transpose1d(x, w, stride=3, padding=1), dims=dims, tier=tier)
        results.append(compiled(x, weight).numpy())
        assert compiled._tier == tier and not is_quick(compiled) and len(compiled.programs) == 1
    np.testing.assert_array_equal(*results)


WAYS_TO_A_PROGRAM: dict[str, Callable[[Compiled], Any]] = {
    "by keyword": lambda compiled: compiled(input=gc.tensor(X)),
    "plan": lambda compiled: compiled.plan(input=gc.tensor(X)),
    "tangents": lambda compiled: gc.func.jvp(lambda x: compiled(input=x), (gc.tensor(X),), (gc.ones(3, 4),)),
}


@pytest.mark.usefixtures("refused_sizes")
@pytest.mark.parametrize("name", WAYS_TO_A_PROGRAM)
def test_each_way_to_a_program_of_sizes_goes_on_in_the_full_tier(held: list[Held], name: str):
    compiled = gc.compile(nn.GELU(), dims={"input": (gc.Dim("batch"), None)}, tier="auto")
    with gc.no_grad():
        compiled(input=gc.tensor(X))
        assert is_quick(compiled)
        held[0].has_ended = held[0].fails = True
        WAYS_TO_A_PROGRAM[name](compiled)
    assert not is_quick(compiled)


@gc.no_grad()
@pytest.mark.usefixtures("refused_sizes")
def test_plans_of_programs_that_cannot_be_built(held: list[Held]):
    compiled = gc.compile(net().eval(), dims={"input": (gc.Dim("batch"), None)}, tier="auto")
    compiled(gc.tensor(X))
    held[0].has_ended = held[0].fails = True
    assert compiled.programs == []
    compiled(gc.tensor(X))
    assert len(compiled.programs) == 1


def test_gradients_need_the_program(held: list[Held]):
    x = gc.tensor(X)
    compiled = gc.compile(net(), tier="auto")
    compiled(x).sum().backward()
    assert not is_quick(compiled) and not held
    with gc.no_grad():
        compiled(x)
    assert is_quick(compiled)


@pytest.mark.parametrize("options", [{"first_nan": True}, {"precision": "bf16"}, {"strict_order": True}])
@gc.no_grad()
def test_options_that_need_the_program(held: list[Held], options: dict[str, Any]):
    compiled = gc.compile(net().eval(), tier="auto", **options)
    compiled(gc.tensor(X))
    assert not is_quick(compiled) and not held


@gc.no_grad()
def test_frozen_weights(held: list[Held]):
    model, x = net().eval(), gc.tensor(X)
    compiled = gc.compile(model, freeze=True, tier="auto")
    before = compiled(x).numpy()
    model[3].bias.add_(1.0)
    after = compiled(x).numpy()
    np.testing.assert_allclose(after, before + 1, rtol=1e-5, atol=1e-6)
    assert len(held) == 2
    end()
    np.testing.assert_allclose(compiled(x).numpy(), after, rtol=1e-5, atol=1e-6)


@gc.no_grad()
def test_replaced_weights(held: list[Held]):
    model, x = net().eval(), gc.tensor(X)
    compiled = gc.compile(model, tier="auto")
    before = compiled(x).numpy()
    model[3].bias = nn.Parameter(model[3].bias + 1)
    np.testing.assert_allclose(compiled(x).numpy(), before + 1, rtol=1e-5, atol=1e-6)
    assert len(held) == 1


@gc.no_grad()
def test_checks_stop_a_call_before_it_writes():
    class Count(nn.Module):
        calls: gc.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", gc.zeros(1))
            self.register_buffer("table", gc.arange(4.0))

        def forward(self, i: Any) -> Any:
            self.calls += 1
            return self.table[i]

    model = Count()
    compiled = gc.compile(model, tier="auto")
    messages = []
    for _ in range(2):
        with pytest.raises(IndexRangeError) as error:
            compiled(gc.tensor([1, 7]))
        messages.append(error.value.what)
        end()
    assert messages[0] == messages[1]
    assert model.calls.item() == 0
    assert compiled(gc.tensor([1, 3])).tolist() == [1.0, 3.0]
    assert model.calls.item() == 1


@gc.no_grad()
def test_threads_call_while_the_program_takes_over():
    class Count(nn.Module):
        total: gc.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", gc.zeros(4))

        def forward(self, x: Any) -> Any:
            self.total += x
            return self.total * 1.0

    model, x, ready = Count(), gc.ones(4), threading.Barrier(4)
    compiled = gc.compile(model, tier="auto")
    compiled(x)

    def call() -> None:
        with gc.no_grad():
            ready.wait()
            for i in range(50):
                if i == 20:
                    end()
                compiled(x)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.total.tolist() == [201.0] * 4
    assert not is_quick(compiled)


@gc.no_grad()
def test_segments_have_the_tier(held: list[Held]):
    def branch(x: Any) -> Any:
        return x * 2 if read_flag(x.sum() > 0, "the sign") else x - 1

    compiled = gc.compile(branch, tier="auto")
    for shift in (-1.0, 1.0):
        x = X + np.float32(shift)
        expected = x * 2 if x.sum() > 0 else x - 1
        np.testing.assert_allclose(compiled(gc.tensor(x)).numpy(), expected, rtol=1e-6)
    assert held


@gc.no_grad()
def test_a_plan_waits_for_the_program():
    compiled, x = gc.compile(net().eval(), tier="auto"), gc.tensor(X)
    compiled(x)
    assert compiled.plan(x).code > 0
    assert not is_quick(compiled)


@gc.no_grad()
@pytest.mark.parametrize("name", ["auto", "full"])
def test_the_option_sets_the_default(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv("GRAPHC_TIER", name)
    compiled = gc.compile(net().eval())
    compiled(gc.tensor(X))
    assert is_quick(compiled) is (name == "auto")


def test_pickles_keep_the_tier():
    assert pickle.loads(pickle.dumps(gc.compile(net(), tier="auto")))._tier == "auto"


def test_there_are_two_tiers():
    assert tier_named("auto") == "auto" and tier_named(None) == "full"
    with pytest.raises(ArgumentError, match="no tier 'quick'"):
        gc.compile(net(), tier="quick")


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "view": lambda x: x.t(),
    "twice": lambda x: (y := x * 2, y),
    "part": lambda x: (y := x * 2, y[1:]),
    "argument in place": lambda x: x.add_(1.0),
}


@gc.no_grad()
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_the_program(name: str):
    outcomes = []
    for tier in ("auto", "full"):
        x = gc.tensor(X.copy())
        results = gc.compile(FUNCTIONS[name], tier=tier)(x)
        results = results if isinstance(results, tuple) else (results,)
        for result in results:
            result += 1
        outcomes.append([t.tolist() for t in (x, *results)])
    assert outcomes[0] == outcomes[1]
