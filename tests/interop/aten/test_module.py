"""An exported model as a module: what it holds, its modes, hooks, copies, and writes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import graphc
from graphc.errors import ShapeError, UnsupportedError
from graphc.interop.aten.exported import CallArgument, Exported, ModuleTensor, Write
from graphc.interop.aten.graph import AtenGraph, Ref, Step
from graphc.interop.aten.module import ImportedModule
from graphc.interop.parts import Member
from graphc.nn.parameter import Parameter
from graphc.tensors.structure import LEAF, Branch

TAKES = Branch(tuple, (), (Branch(tuple, (), (LEAF,)), Branch(dict, (), ())))


def exported(factor: float, training: bool | None = None) -> Exported:
    """Return the graph of ``x * w * factor + k`` that also writes the number of calls, with a dropout of nothing if
    ``training`` says so."""
    steps = [
        Step("a", "aten.mul.Tensor", (Ref("x"), Ref("w"))),
        Step("b", "aten.mul.Tensor", (Ref("a"), factor)),
        Step("c", "aten.add.Tensor", (Ref("b"), Ref("k"))),
        Step("n", "aten.add.Tensor", (Ref("calls"), 1)),
    ]
    if training is not None:
        steps[0] = Step("a", "aten.mul.Tensor", (Ref("d"), Ref("w")))
        steps.insert(0, Step("d", "aten.dropout.default", (Ref("x"), 0.0, training)))
    graph = AtenGraph("main", ["w", "k", "calls", "x"], steps, (Ref("n"), Ref("c")))
    inputs = [
        ModuleTensor("inner.w"),
        ModuleTensor("k"),
        ModuleTensor("calls"),
        CallArgument("x", (2,), graphc.float32),
    ]
    return Exported(graph, inputs, TAKES, LEAF, ("x",), (1,), (Write(0, "calls"),))


def module(export: Any, modes: Any = None) -> ImportedModule:
    members = [
        Member("inner.w", Parameter(graphc.tensor([1.0, 2.0])), "param"),
        Member("calls", graphc.tensor(0), "buffer"),
        Member("seen", graphc.ones(1), "transient"),
    ]
    modules = [("inner", "Scale"), ("drop", "Dropout")]
    return ImportedModule("Net", modules, members, {"k": graphc.ones(2)}, export, modes)


def both(modes: Any) -> Any:
    return exported(10.0 if modes[0] else 1.0), {"k": graphc.ones(2)}


def test_names_and_kinds_of_tensors_are_those_of_the_model():
    imported = module(exported(1.0))
    assert list(imported.state_dict()) == ["calls", "inner.w"]
    assert [n for n, _ in imported.named_buffers()] == ["calls", "seen"]
    assert [n for n, _ in imported.named_modules()] == ["", "inner", "drop"]
    assert repr(imported) == "Net(\n  (inner): Scale()\n  (drop): Dropout()\n)"


def test_it_computes_writes_and_differentiates_eagerly_and_compiled():
    imported = module(exported(3.0))
    x = graphc.tensor([1.0, -1.0])
    assert imported(x).tolist() == [4, -5] and imported.calls.item() == 1
    imported(x=x).sum().backward()
    assert imported.inner.w.grad.tolist() == [3, -3]
    compiled = graphc.compile(imported)
    assert compiled(x).tolist() == [4, -5] and imported.calls.item() == 3
    imported.load_state_dict({"inner.w": graphc.zeros(2), "calls": graphc.tensor(0)})
    assert compiled(x).tolist() == [1, 1]


def test_each_choice_of_training_flags_is_exported_once():
    requests = []
    imported = module(lambda modes: requests.append(modes) or both(modes), (False, False, False))
    x = graphc.ones(2)
    assert imported(x).tolist() == [2, 3] and imported.train()(x).tolist() == [11, 21]
    imported.drop.eval()
    compiled = graphc.compile(imported)
    assert compiled(x).tolist() == [11, 21] and compiled(x).tolist() == [11, 21]
    imported.eval()
    assert compiled(x).tolist() == [2, 3]
    assert requests == [(False,) * 3, (True,) * 3, (True, True, False)]


@pytest.mark.parametrize("training", [True, False])
def test_one_graph_for_one_mode_refuses_the_other(training: bool):
    imported = module(exported(1.0, training))
    assert imported.training is training and imported.train(training) is imported
    with pytest.raises(UnsupportedError, match="has only that mode"):
        imported.train(not training)


@pytest.mark.parametrize(
    ("target", "rest"),
    [
        ("aten.instance_norm.default", (None, None, None, None, True, 0.1, 1e-5, False)),
        ("aten.batch_norm.default", (None, None, None, None, True, 0.1, 1e-5, False)),
        ("aten._native_batch_norm_legit.no_stats", (None, None, True, 0.1, 1e-5)),
    ],
)
def test_statistics_of_the_input_without_running_ones_say_nothing_of_the_mode(target: str, rest: tuple[Any, ...]):
    graph = AtenGraph("main", ["x"], [Step("y", target, (Ref("x"), *rest))], (Ref("y"),))
    spec = Exported(graph, [CallArgument("x", (2, 3, 4), graphc.float32)], TAKES, LEAF, ("x",))
    imported = ImportedModule("Net", [], [], {}, spec)
    assert not imported.training
    assert imported.train().training and not imported.eval().training


@pytest.mark.parametrize(
    ("target", "rest", "training"),
    [
        ("_native_batch_norm_legit_functional.default", (True, 0.1, 1e-5), True),
        ("native_batch_norm.default", (False, 0.1, 1e-5), False),
        ("_native_batch_norm_legit_no_training.default", (0.1, 1e-5), False),
    ],
)
def test_statistics_of_decomposed_graphs_say_the_mode(target: str, rest: tuple[Any, ...], training: bool):
    tensors = (Ref("x"), None, None, Ref("m"), Ref("m"))
    steps = [Step("y", f"aten.{target}", (*tensors, *rest)), Step("z", "operator.getitem", (Ref("y"), 0))]
    inputs = [ModuleTensor("m"), CallArgument("x", (2, 3), graphc.float32)]
    spec = Exported(AtenGraph("main", ["m", "x"], steps, (Ref("z"),)), inputs, TAKES, LEAF, ("x",))
    imported = ImportedModule("Net", [], [Member("m", graphc.ones(3), "buffer")], {}, spec)
    assert imported.training is training and imported(graphc.ones(2, 3)).shape == (2, 3)
    with pytest.raises(UnsupportedError, match="has only that mode"):
        imported.train(not training)


def test_one_graph_without_modes_takes_both():
    imported = module(exported(1.0))
    assert imported.train()(graphc.ones(2)).tolist() == imported.eval()(graphc.ones(2)).tolist()


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_has_both_modes_and_its_own_memory(make: Any):
    imported = module(both, (False, False, False))
    other = make(imported)
    with graphc.no_grad():
        other.inner.w.mul_(0.0)
    assert imported(graphc.ones(2)).tolist() == [2, 3]
    assert other.train()(graphc.ones(2)).tolist() == [1, 1]
    other.drop.eval()
    with pytest.raises(UnsupportedError, match="a copy cannot export again"):
        other(graphc.ones(2))


def test_hooks_of_the_model_run_and_those_of_parts_are_refused():
    imported = module(exported(1.0))
    imported.register_forward_hook(lambda m, args, result: result * 2)
    assert imported(graphc.ones(2)).tolist() == [4, 6]
    imported.inner.register_forward_hook(lambda m, args, result: None)
    with pytest.raises(UnsupportedError, match="hooks of inner"):
        imported(graphc.ones(2))


def test_a_part_is_not_called_by_itself():
    with pytest.raises(UnsupportedError, match="Scale is a submodule of an imported model"):
        module(exported(1.0)).inner(graphc.ones(2))


def test_shapes_of_the_export_are_asked_for_in_compiled_code_too():
    with pytest.raises(ShapeError, match="dimension 0 of x is 3, not 2"):
        graphc.compile(module(exported(1.0)))(graphc.ones(3))


def test_an_argument_that_the_graph_writes_is_written():
    graph = AtenGraph("main", ["x"], [Step("y", "aten.mul.Tensor", (Ref("x"), 2))], (Ref("y"), Ref("y")))
    spec = Exported(
        graph, [CallArgument("x", (2,), graphc.float32)], TAKES, LEAF, ("x",), (1,), (Write(0, argument=0),)
    )
    x = graphc.ones(2)
    assert ImportedModule("Net", [], [], {}, spec)(x).tolist() == [2, 2] and x.tolist() == [2, 2]
