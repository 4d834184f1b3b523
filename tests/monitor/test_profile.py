"""``profile``: the events of a trace nest, name what ran, and leave programs as they were."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.target import host_target
from graphc.compiler.explain import explain
from graphc.errors import ArgumentError
from graphc.nn import functional as F

needs_counter = pytest.mark.skipif(
    not host_target().cycle_fence, reason="programs cannot read the cycle counter of this machine"
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
        self.last = nn.Linear(32, 4)

    def forward(self, x):
        return self.last(self.layers(x))


def loss_of(prediction, y):
    return F.mse_loss(prediction, y)


def complete(session: gc.profile) -> list[dict[str, Any]]:
    return [event for event in session.events() if event["ph"] == "X"]


def of_kind(events: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    return [event for event in events if event["cat"] == category]


def end_of(event: dict[str, Any]) -> float:
    return event["ts"] + event["dur"]


def check_nesting(events: list[dict[str, Any]]) -> None:
    """Check that two events of a thread are either disjoint or one inside the other, up to the rounding to ns."""
    for thread in {event["tid"] for event in events}:
        open_events: list[dict[str, Any]] = []
        for event in sorted((e for e in events if e["tid"] == thread), key=lambda e: (e["ts"], -e["dur"])):
            while open_events and end_of(open_events[-1]) <= event["ts"] + 0.002:
                open_events.pop()
            assert not open_events or end_of(event) <= end_of(open_events[-1]) + 0.002, (open_events[-1], event)
            open_events.append(event)


@pytest.fixture
def net() -> Net:
    gc.manual_seed(0)
    return Net()


def test_a_file_has_all_kinds_of_events_and_they_nest(net: Net, tmp_path: Path):
    x, y = gc.randn(8, 16), gc.randn(8, 4)
    step = gc.compile_step(net, loss_of, gc.optim.SGD(net.parameters(), 0.1))
    with gc.profile(tmp_path / "trace.json"):
        loss_of(net(x), y).backward()
        step(x, y)
        step(x, y)
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert all(event["dur"] > 0 for event in events if event["cat"] != "kernel")
    check_nesting(events)
    python = [event["name"] for event in of_kind(events, "python_function")]
    assert {"Net", "layers (Sequential)", "layers.0 (Linear)", "last (Linear)", "backward"} <= set(python)
    assert any(name.startswith("test_profile.py(") and name.endswith(": loss_of") for name in python)
    assert {"matmul", "add"} <= {event["name"] for event in of_kind(events, "cpu_op")}
    assert [event["name"] for event in of_kind(events, "compiled")] == [step.name] * 2
    names = {event["name"] for event in events if event["ph"] == "M"}
    assert names <= {"process_name", "thread_name"}


def test_stages_and_passes_of_a_compile(net: Net, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "off")
    with gc.profile(kernels=False) as session, gc.no_grad():
        gc.compile(net)(gc.randn(8, 16))
    events = complete(session)
    stages = [event["name"] for event in of_kind(events, "compile")]
    assert stages[:4] == ["traced", "optimized", "lowered", "scheduled"] and {"llvm", "object"} <= set(stages)
    (call,) = of_kind(events, "compiled")
    (optimized,) = [event for event in of_kind(events, "compile") if event["name"] == "optimized"]
    passes = [event for event in of_kind(events, "pass") if end_of(event) <= end_of(optimized)]
    assert passes and all(call["ts"] <= event["ts"] and end_of(event) <= end_of(call) for event in passes)
    assert not of_kind(events, "kernel")


@needs_counter
def test_kernels_lie_within_their_call_and_have_the_names_of_the_program(net: Net):
    x = gc.randn(8, 16)
    fast = gc.compile(net)
    with gc.no_grad():
        expected = fast(x).numpy()
        with gc.profile() as session:
            results = [fast(x).numpy() for _ in range(3)]
        programs = len(fast.programs)
        fast(x)
    assert all((result == expected).all() for result in results) and programs == len(fast.programs) == 1
    events = complete(session)
    check_nesting(events)
    names = [call.kernel for call in explain(fast.variants[0].program.stages()).calls]
    calls = of_kind(events, "compiled")
    assert len(calls) == 3
    for call in calls:
        inside = [k for k in of_kind(events, "kernel") if call["ts"] <= k["ts"] and end_of(k) <= end_of(call)]
        assert [kernel["name"] for kernel in inside] == names
        assert sum(kernel["dur"] for kernel in inside) > 0 and {k["tid"] for k in inside} == {call["tid"]}
        assert call["args"]["Input Dims"] == [[8, 16]]
        assert any("last" in kernel["args"]["module"] for kernel in inside)
    assert len(of_kind(events, "kernel")) == 3 * len(names)


@needs_counter
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("dims", [None, {"x": (gc.Dim("batch"), None)}])
def test_kernels_of_a_loaded_model(net: Net, tmp_path: Path, native: bool, dims: Any):
    x = gc.randn(8, 16)
    path = tmp_path / "net.gcm"
    gc.export(net.eval(), x, path=path, native=native, dims=dims)
    model = gc.load(path, trust=native)
    expected = model(x).numpy()
    with gc.profile() as session:
        results = [model(x).numpy() for _ in range(2)]
    assert all((result == expected).all() for result in results)
    kernels = of_kind(complete(session), "kernel")
    assert kernels and [k["name"] for k in kernels] == 2 * [k["name"] for k in kernels[: len(kernels) // 2]]
    assert {"layers.0", "last"} <= {module for k in kernels for module in k["args"]["module"].split(", ")}
    assert (model(x).numpy() == expected).all()


@needs_counter
def test_kernels_of_a_loaded_model_have_its_present_weights(net: Net, tmp_path: Path):
    x = gc.randn(8, 16)
    gc.export(net, x, path=tmp_path / "net.gcm", dims={"x": (gc.Dim("batch"), None)})
    model = gc.load(tmp_path / "net.gcm")
    other = Net()
    with gc.profile() as session:
        model(x)
        model.load_state_dict(other.state_dict())
        assert gc.allclose(model(x), other(x), atol=1e-6)
    assert of_kind(complete(session), "kernel")


@needs_counter
def test_a_training_step_of_a_profile_changes_weights_as_always():
    def trained(profiled: bool) -> list[Any]:
        gc.manual_seed(1)
        net, x, y = Net(), gc.randn(8, 16), gc.randn(8, 4)
        step = gc.compile_step(net, loss_of, gc.optim.Adam(net.parameters(), 0.1))
        step(x, y)
        with gc.profile(kernels=profiled):
            losses = [step(x, y).item() for _ in range(3)]
        return [*losses, step(x, y).item(), *(p.detach().numpy().tolist() for p in net.parameters())]

    assert trained(True) == trained(False)


def test_threads_have_rows_of_their_own(net: Net):
    x = gc.randn(8, 16)
    with gc.profile() as session:
        thread = threading.Thread(target=lambda: net(x), name="second")
        thread.start()
        net(x)
        thread.join()
    calls = [event for event in complete(session) if event["name"] == "Net"]
    assert len({event["tid"] for event in calls}) == 2
    check_nesting(complete(session))


def test_errors_end_their_events(net: Net):
    with gc.profile() as session, pytest.raises(gc.errors.ShapeError):
        net(gc.randn(8, 15))
    assert "Net" in [event["name"] for event in complete(session)]
    check_nesting(complete(session))


def test_what_it_refuses(tmp_path: Path):
    with pytest.raises(ArgumentError, match="no folder"):
        gc.profile(tmp_path / "none" / "trace.json")
    with pytest.raises(ArgumentError, match="path of a file"):
        gc.profile(3)  # type: ignore[arg-type]
    with gc.profile(), pytest.raises(ArgumentError, match="another profile"), gc.profile():
        pass

    def inside(x):
        with gc.profile():
            return x * 2

    with pytest.raises(ArgumentError, match="being compiled"):
        gc.compile(inside)(gc.ones(2))
    with gc.profile():  # the failures have left nothing behind
        pass
