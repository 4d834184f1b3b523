"""Arguments of ``torch.compile``: taken where they ask for what is there."""

from __future__ import annotations

import pytest

import graphc
from graphc import nn
from graphc.calls.torch_arguments import without_torch_arguments
from graphc.errors import ArgumentError


def double(x):
    return x * 2


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "reduce-overhead"},
        {"mode": "max-autotune", "fullgraph": True},
        {"backend": "inductor", "dynamic": False},
        {"options": {"epilogue_fusion": True, "max_autotune": True}},
        {"fullgraph": False, "dynamic": None, "disable": False},
    ],
)
def test_what_is_there_is_taken(options):
    assert graphc.compile(double, **options)(graphc.ones(2)).tolist() == [2, 2]


def test_a_decorator_and_a_module_take_them():
    @graphc.compile(fullgraph=True)
    def triple(x):
        return x * 3

    net = nn.Linear(2, 3)
    expected = net(graphc.ones(1, 2))
    net.compile(mode="default")
    assert triple(graphc.ones(1)).item() == 3 and graphc.allclose(net(graphc.ones(1, 2)), expected)


def test_dynamic_is_one_program_for_all_sizes():
    compiled = graphc.compile(lambda x: x.sum(), dynamic=True)
    for count in (3, 4, 5, 6, 7):
        assert compiled(graphc.ones(count)).item() == count
    assert without_torch_arguments(False, None, {"dynamic": True}) == (False, "auto", False)
    assert without_torch_arguments(False, {"x": None}, {"dynamic": True}) == (False, {"x": None}, False)


def test_freezing_is_freeze():
    net = nn.Linear(2, 2)
    compiled = graphc.compile(net.requires_grad_(False), options={"freezing": True})
    assert graphc.allclose(compiled(graphc.ones(1, 2)), net(graphc.ones(1, 2)))
    assert without_torch_arguments(False, None, {"options": {"freezing": True}})[0]


def test_disabled_is_the_model_itself():
    assert graphc.compile(double, disable=True) is double
    assert graphc.compile(disable=True)(double) is double


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "quick"}, "there is no mode 'quick'"),
        ({"backend": "eager"}, "does not compile"),
        ({"backend": "tvm"}, "no backend 'tvm'"),
        ({"options": {"trace.enabled": True}}, "no option 'trace.enabled'"),
        ({"fullgraf": True}, "no argument 'fullgraf'"),
    ],
)
def test_what_is_not_there_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        graphc.compile(double, **options)


def test_questions_of_the_compiler():
    def asked(x):
        return x + 1 if graphc.compiler.is_compiling() else x

    assert asked(graphc.ones(1)).item() == 1 and graphc.compile(asked)(graphc.ones(1)).item() == 2
    assert graphc.compiler.list_backends() == ["graphc"]
    graphc.compiler.reset()
    graphc.compiler.cudagraph_mark_step_begin()


def test_a_disabled_function_stays_python_in_compiled_code():
    @graphc.compiler.disable
    def outside(x):
        return x * (2 if float(x.sum()) > 0 else 3)

    compiled = graphc.compile(lambda x: outside(x) + 1)
    assert compiled(graphc.ones(2)).tolist() == [3, 3] and compiled(-graphc.ones(2)).tolist() == [-2, -2]
    with pytest.raises(ArgumentError, match="not compiled either"):
        graphc.compiler.disable(outside, recursive=False)


def test_trace_tells_a_matrix_from_a_model():
    assert graphc.trace(graphc.ones(3, 3)).item() == 3
    assert isinstance(graphc.trace(double, graphc.ones(2)), graphc.Graph)
