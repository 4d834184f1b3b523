"""Passes of a user: where they run, what they may leave, and that code in the cache is that of what they left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls import user_passes
from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.target import host_target
from graphc.compiler import compile as compiling
from graphc.errors import ArgumentError, PassError
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.op import REGISTRY
from graphc.passes.base import PassResult
from tests.native import priced
from tests.passes.choosing import Choosing

FACTOR = {"now": 2.0}


@dataclass(frozen=True)
class Scaled:
    """tanh(x) becomes tanh(factor * x)."""

    name: str = "scaled"
    after: str = ""

    def run(self, graph: Graph) -> PassResult:
        found = [n for n in graph.nodes() if n.op.name == "tanh"]
        for node in found:
            factor = graph.scalar(FACTOR["now"], node.operands[0].dtype)
            graph.set_operand(node, 0, emit(graph, REGISTRY["mul"], (node.operands[0], factor))[0])
        return PassResult(graph, len(found))


X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def wanted(net: nn.Sequential, x: gc.Tensor) -> gc.Tensor:
    return gc.tanh(net[0](x) * 2.0)


@pytest.fixture
def net() -> nn.Sequential:
    gc.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh())


@pytest.mark.parametrize("after", ["", "decompose", "canonicalize"])
def test_compiled_functions_go_through_them_with_and_without_gradients(net: nn.Sequential, after: str):
    compiled, x = gc.compile(net, passes=[Scaled(after=after)]), gc.tensor(X)
    with gc.no_grad():
        assert gc.allclose(compiled(x), wanted(net, x), atol=1e-6)
    x = gc.tensor(X, requires_grad=True)
    y = compiled(x)
    assert gc.allclose(y, wanted(net, gc.tensor(X)), atol=1e-6)
    y.sum().backward()
    if not after:  # later ones see a backward program that was made of the function as it is written
        other = gc.tensor(X, requires_grad=True)
        wanted(net, other).sum().backward()
        assert gc.allclose(x.grad, other.grad, atol=1e-6)


@pytest.mark.parametrize("options", [{"freeze": True}, {"precision": "bf16"}])
def test_so_do_frozen_and_narrow_ones_once(net: nn.Sequential, options: dict):
    with gc.no_grad():
        for after in ("", "decompose"):
            compiled = gc.compile(net, passes=[Scaled(after=after)], **options)
            assert gc.allclose(compiled(gc.tensor(X)), wanted(net, gc.tensor(X)), atol=1e-6)


@pytest.mark.parametrize("after", ["", "decompose"])
def test_files_hold_what_they_left(net: nn.Sequential, tmp_path: Path, after: str):
    gc.export(net, gc.tensor(X), path=tmp_path / "net.gcm", passes=[Scaled(after=after)])
    with gc.no_grad():
        np.testing.assert_allclose(gc.load(tmp_path / "net.gcm")(X), wanted(net, gc.tensor(X)).numpy(), atol=1e-6)


def test_those_that_choose_by_costs_do_so_by_those_of_the_target(net: nn.Sequential, monkeypatch: pytest.MonkeyPatch):
    target = priced(host_target(), fusion={"parts": 7})
    monkeypatch.setattr(user_passes, "target_for", lambda name: target)
    step = Choosing()
    with gc.no_grad():
        gc.compile(net, passes=[step])(gc.tensor(X))
    assert step.told == [target.costs] != [DEFAULT]


@pytest.mark.parametrize("after", ["", "decompose"])
def test_code_in_the_cache_is_that_of_what_they_left(
    net: nn.Sequential, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    built = []
    build = compiling.compile_stages
    monkeypatch.setattr(compiling, "compile_stages", lambda stages: built.append(stages) or build(stages))
    with gc.no_grad():
        for factor, count in ((2.0, 1), (2.0, 1), (3.0, 2), (2.0, 2)):
            monkeypatch.setitem(FACTOR, "now", factor)
            found = gc.compile(net, passes=[Scaled(after=after)])(gc.tensor(X))
            np.testing.assert_allclose(
                found.numpy(),
                np.tanh(factor * net[0](gc.tensor(X)).numpy()),
                atol=1e-6,
            )
            assert len(built) == count


@dataclass(frozen=True)
class Loses:
    """Leaves a graph of other outputs."""

    name: str = "loses"
    after: str = ""

    def run(self, graph: Graph) -> PassResult:
        graph.set_outputs(graph.outputs[:0])
        return PassResult(graph, 1)


@dataclass(frozen=True)
class Forgets:
    """Returns the graph alone."""

    name: str = "forgets"

    def run(self, graph: Graph) -> PassResult:
        return graph  # type: ignore[return-value]


@dataclass(frozen=True)
class Breaks:
    """Leaves an operand that no edge mirrors."""

    name: str = "breaks"

    def run(self, graph: Graph) -> PassResult:
        node = graph.nodes()[-1]
        node.operands = ()
        return PassResult(graph, 1)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Loses(), r"pass loses failed .* the types of the outputs were \(f32\[2,3\]\), it leaves \(\)"),
        (Loses(after="decompose"), "pass loses failed .passes before it: .*dce, .*decompose"),
        (Forgets(), "pass forgets failed .* it returned Graph, not a PassResult"),
        (Breaks(), "pass breaks failed .* tanh takes 1 operands|the edges of tanh do not mirror"),
    ],
)
def test_what_they_may_not_leave_is_refused(net: nn.Sequential, step, message: str):
    with pytest.raises(PassError, match=message):
        gc.compile(net, passes=[step])(gc.tensor(X))


def test_what_is_no_pass_and_an_unknown_place_are_refused_at_once(net: nn.Sequential):
    class Plain:
        name = "plain"

        def run(self, graph: Graph) -> PassResult:
            return PassResult(graph, 0)

    with pytest.raises(ArgumentError, match="is not a pass"):
        gc.compile(net, passes=[Plain()])
    with pytest.raises(ArgumentError, match="pass scaled runs after 'nothing', which is not a pass of the pipeline"):
        gc.compile(net, passes=[Scaled(after="nothing")])


def test_the_graph_after_them_is_printed(net: nn.Sequential, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setenv("GRAPHC_PRINT_AFTER", "scaled")
    gc.compile(net, passes=[Scaled()])(gc.tensor(X))
    assert "// after pass 1, scaled" in capsys.readouterr().err
