"""The eager dispatcher: checks, views, memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.checks.op_derivatives import array_type
from graphc.eager import dispatcher as eager
from graphc.errors import ArgumentError, GradientError, GraphcError, ShapeError, TraceError
from graphc.ir.graph.graph import Graph
from graphc.ir.op import REGISTRY
from graphc.nn import functional as F
from graphc.ops import dispatch
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.tape import grad_mode
from graphc.tensors.tensor_base import BY_NUMPY
from tests.architecture.scan import ROOT
from tools.floors import FLOORS, floor_of


def test_type_rules_run_in_eager_mode_too():
    with pytest.raises(ShapeError, match="do not broadcast: 2 and 3") as caught:
        graphc.ones(2) + graphc.ones(3)
    assert "where  add(%x: f32[2], %y: f32[3])" in str(caught.value)


def test_rules_run_once_for_each_signature():
    dispatcher = eager.EagerDispatcher()
    with dispatch.use(dispatcher):
        for _ in range(3):
            graphc.ones(2) * graphc.ones(2)
        assert len(dispatcher._plans) == 1
        graphc.ones(3) * graphc.ones(3)
        assert len(dispatcher._plans) == 2
        shape.reshape(graphc.ones(2), shape=[2, 1])  # A list cannot be a key; the call works all the same.
        assert len(dispatcher._plans) == 2


def test_results_do_not_share_memory_unless_they_are_views():
    x = graphc.ones(2, 3)
    assert not np.shares_memory(x.flip(0).numpy(), x.numpy())
    assert not np.shares_memory(ew.cast(x, dtype=graphc.float32).numpy(), x.numpy())
    assert np.shares_memory(x.t().numpy(), x.numpy())
    assert x.t()._view is not None and x.flip(0)._view is None


def test_views_of_views_have_one_base():
    x = graphc.ones(2, 3)
    assert x.t()[1:].unsqueeze(0)._base is x


def test_floating_point_exceptions_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert graphc.zeros(1).log().item() == -np.inf
        assert np.isnan((graphc.zeros(1) / 0).item())
        (graphc.full((1,), 1e38) * 1e38).item()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_numbers_that_are_too_large_for_a_type_become_infinite_in_silence(dtype):
    x, large = graphc.ones(2, dtype=dtype), [1e300, 10**39, -1e300, np.float64(1e300)]
    made: list[Callable[[Any], Any]] = [
        lambda n: x * n,
        lambda n: x.add(x, alpha=n),
        lambda n: graphc.where(x == 1, n, x),
        lambda n: x.masked_fill(x == 1, n),
        lambda n: x.clone().fill_(n),
        lambda n: graphc.full((2,), n, dtype=dtype),
        lambda n: graphc.tensor(n, dtype=dtype),
        lambda n: graphc.tensor([n, n], dtype=dtype),
        lambda n: graphc.tensor(np.array([n, n], float), dtype=dtype),
        lambda n: x.new_tensor([n]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in made:
            for number in large:
                result = make(number)
                assert result.dtype.long_name == dtype
                parts = result.real.float() if result.is_complex() else result.float()
                assert np.all(parts.numpy() == np.copysign(np.inf, float(number)))
        if dtype != "complex64":
            assert not graphc.linspace(0, 1e300, 3, dtype=dtype).isfinite()[-1]


def test_traced_tensors_do_not_escape():
    kept = []
    graphc.trace(lambda x: kept.append(x * 2) or x, graphc.ones(2))
    with pytest.raises(TraceError, match="traced as %mul is used outside of its trace"):
        kept[0] + 1
    with pytest.raises(TraceError, match="outside of its trace"):
        kept[0].numpy()
    assert "%mul: f32[2]" in repr(kept[0])


def test_data_of_a_result_keeps_its_shape():
    y = graphc.ones(2, requires_grad=True) * 2
    with pytest.raises(GradientError, match="keeps its shape"):
        y.data = graphc.ones(3)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> tuple[Counter[str], Counter[str]]:
    """Count eager applications of ops, and runs of their references, by name."""
    applied: Counter[str] = Counter()
    referred: Counter[str] = Counter()
    compute = eager.EagerDispatcher._compute

    def counted(dispatcher, plan, arrays):
        result = compute(dispatcher, plan, arrays)
        applied[plan.op.name] += 1
        return result

    def counting(name, reference):
        def run(*arrays, **attrs):
            referred[name] += 1
            return reference(*arrays, **attrs)

        return run

    monkeypatch.setattr(eager.EagerDispatcher, "_compute", counted)
    for op in REGISTRY.values():
        if op.reference is not None:
            monkeypatch.setitem(op.__dict__, "reference", counting(op.name, op.reference))
    return applied, referred


def test_in_reference_mode_every_application_of_every_op_is_its_numpy_reference(calls):
    applied, referred = calls
    with eager.references(), grad_mode.no_grad():
        for op in REGISTRY.values():
            for sample in op.samples() if op.samples and op.reference else ():
                if any(isinstance(value, Graph) for value in sample.attrs.values()):
                    continue  # their references evaluate the ops of the graph, which nobody applies
                with contextlib.suppress(GraphcError):
                    types = tuple(map(array_type, sample.operands))
                    result = op.result_types(types, op.normalize(sample.attrs))
                    if {t.dtype.numpy for t in (*types, *result)} <= set(BY_NUMPY):  # others are the compiler's own
                        dispatch.apply(op, [graphc.tensor(a) for a in sample.operands], sample.attrs)
    assert len(applied) > 80 and all(applied.values())
    assert {name: referred[name] for name in applied} == applied


def test_in_reference_mode_a_training_step_is_nothing_but_references(calls):
    applied, referred = calls
    with eager.references():
        model = graphc.nn.Sequential(graphc.nn.Conv2d(1, 2, 3), graphc.nn.BatchNorm2d(2), graphc.nn.Dropout(0.1))
        optimizer = graphc.optim.Adam(model.parameters())
        F.mse_loss(model(graphc.rand(2, 1, 5, 5)), graphc.zeros(2, 2, 3, 3)).backward()
        optimizer.step()
    assert sum(applied.values()) > 20
    assert referred == applied


def test_the_mode_of_before_comes_back_and_nothing_chosen_under_it_stays():
    before = eager.EAGER.mode
    with eager.references():
        assert eager.EAGER.mode == "reference" and not eager.EAGER._plans
        graphc.ones(2) + 1
    assert eager.EAGER.mode == before and not eager.EAGER._plans


@pytest.mark.parametrize(("value", "mode"), [("reference", "reference"), ("auto", "auto"), ("", None)])
def test_the_environment_sets_the_mode_when_graphc_is_imported(value, mode):
    program = "import graphc; from graphc.eager import dispatcher as eager; print(eager.EAGER.mode)"
    environment = {**os.environ, "GRAPHC_EAGER": value}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.stdout.strip() or None) == mode
    if mode is None:
        assert ArgumentError.__name__ in done.stderr and "GRAPHC_EAGER" in done.stderr


def climbs(function: Callable[[], Any]) -> list[str]:
    """Return the functions that a caller on a lower floor calls."""
    floors, root = list(FLOORS), f"{ROOT}/"
    names: list[str] = []

    def floor(frame: Any) -> int | None:
        name = frame.f_code.co_filename.removeprefix(root)
        listed = floor_of(name.removesuffix(".py").replace("/", ".")) if name.startswith("graphc/") else None
        return None if listed is None else floors.index(listed)

    def note(frame: Any, event: str, _: Any) -> None:
        called, caller = floor(frame), frame.f_back
        while called is not None and caller is not None and floor(caller) is None:
            caller = caller.f_back
        if event == "call" and called is not None and caller is not None and called > (floor(caller) or 0):
            names.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("name", ["float64", "bfloat16", "int32"])
def test_only_the_door_leads_to_a_higher_floor(name: str):
    x, y = graphc.randn(3, 7), graphc.randn(3, 7)
    dtype = getattr(graphc, name)
    door = "EagerDispatcher.call"
    for _ in range(2):
        assert climbs(lambda: x.to(dtype) + y) == [door, door]
