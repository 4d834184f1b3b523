"""Nested arguments of loaded models, and those of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, DTypeError, GraphcError, UnsupportedError
from graphc.models.model_arguments import opened
from tests.base.test_foreign import Other

NAMES = ("x", "state.a", "state.b.0", "state.b.1")


def test_parts_of_arguments_are_inputs_in_whatever_order():
    expected = {"x": 1, "state.a": 2, "state.b.0": 3, "state.b.1": 4}
    state = {"b": (3, 4), "a": 2}
    assert opened(NAMES, (1, state), {}) == ([], expected)
    assert opened(NAMES, (1,), {"state": state}) == ([], expected)
    assert opened(NAMES, (), {"state": state | {"none": None}, "x": 1}) == ([], expected)
    assert opened(NAMES, (1, 2, 3, 4), {}) == ([1, 2, 3, 4], {})


@pytest.mark.parametrize("args", [(1, {"a": 2, "c": 3, "d": 4}), (1, [2, 3]), (1, 2, 3, 4, [5])])
def test_other_nestings_are_refused_with_the_names(args: Any):
    with pytest.raises(ArgumentError, match="an argument holds"):
        opened(NAMES, args, {})


def test_an_argument_with_nothing_in_it_has_no_input():
    assert opened(("x", "y"), (1, (), {"state": None}, 2), {}) == ([], {"x": 1, "y": 2})


@pytest.mark.parametrize("named", [{"state": {"a": 5}}, {"state.a": 5}])
def test_a_part_that_is_given_by_position_and_by_name_is_refused(named: Any):
    with pytest.raises(ArgumentError, match=r"input 'state.a' is given twice"):
        opened(("x", "state.a"), (1, {"a": 2}), named)


class _Scaled(graphc.nn.Module):
    def forward(self, d: Any, *, scale: Any) -> Any:
        return {"a": d["x"] * scale + d["y"]}


def test_a_loaded_model_takes_what_was_exported_and_tensors_of_all_kinds(tmp_path: Any):
    example = {"x": graphc.ones(2, dtype=graphc.float64), "y": graphc.zeros(2, dtype=graphc.float64)}
    graphc.export(_Scaled(), example, scale=graphc.ones(2, dtype=graphc.float64), path=tmp_path / "m.gcm")
    loaded = graphc.load(tmp_path / "m.gcm")
    two, three = np.full(2, 2.0), np.full(2, 3.0)
    found = loaded({"y": two, "x": Other()}, scale=three)
    assert type(found["a"]) is np.ndarray and found["a"].tolist() == [5, 5]
    found = loaded({"y": graphc.tensor(two), "x": Other()}, scale=three)
    assert type(found["a"]) is graphc.Tensor and found["a"].tolist() == [5, 5]
    assert loaded(Other(), two, three)["a"].tolist() == [5, 5]
    with pytest.raises(GraphcError, match="an argument holds x, z"):
        loaded({"x": two, "z": two}, scale=three)


def test_a_compiled_function_takes_tensors_of_other_libraries():
    compiled = graphc.compile(lambda d: d["x"] * 2)
    for _ in range(2):
        found = compiled({"x": Other()})
        assert type(found) is graphc.Tensor and found.tolist() == [2, 2]


def test_pytorchs_tensors_are_taken_without_a_copy_and_gradients_are_not_lost(torch):
    compiled = graphc.compile(lambda x: x.mul_(2))
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert graphc.compile(lambda x, y: x + y)(torch.ones(2), graphc.ones(2)).tolist() == [2, 2]
    with pytest.raises(DTypeError, match="gradient"):
        compiled(torch.ones(2, requires_grad=True))
    assert compiled(torch.ones(2, dtype=torch.bfloat16)).tolist() == [2, 2]
    with pytest.raises(DTypeError):
        compiled(torch.ones(2).to(torch.float8_e5m2))


def test_operations_between_libraries_say_how(torch):
    ours, theirs = graphc.ones(2), torch.ones(2)
    for mixed in (lambda: ours + theirs, lambda: theirs + ours, lambda: torch.relu(ours), lambda: theirs @ ours):
        with pytest.raises(UnsupportedError, match=r"got a tensor of graphc[^$]*torch\.from_dlpack"):
            mixed()
    assert torch.from_dlpack(ours).tolist() == [1, 1] and torch.tensor(ours).tolist() == [1, 1]
    assert torch.as_tensor(ours).tolist() == [1, 1] and graphc.from_dlpack(theirs).tolist() == [1, 1]
    with pytest.raises(UnsupportedError, match=r"graphc\.from_torch"):
        torch.nn.Linear(2, 2)(ours)


def test_models_of_pytorch_are_pointed_to_from_torch(torch):
    model = torch.nn.Linear(2, 2)
    program = torch.export.export(model, (torch.ones(1, 2),))
    for take in (graphc.compile, graphc.trace, lambda m: graphc.export(m, graphc.ones(1, 2), path="x.gcm")):
        for target in (model, program):
            with pytest.raises(ArgumentError, match=r"graphc\.from_torch"):
                take(target)


def test_state_of_pytorch_goes_into_a_module_written_here(torch):
    theirs, ours = torch.nn.LSTM(3, 4), graphc.nn.LSTM(3, 4)
    ours.load_state_dict(theirs.state_dict())
    with torch.no_grad():
        theirs.weight_ih_l0.zero_()
    assert float(ours.weight_ih_l0.abs().max()) > 0
    ours.load_state_dict({n: graphc.from_dlpack(t) for n, t in theirs.state_dict().items()})
    assert float(ours.weight_ih_l0.abs().max()) == 0
