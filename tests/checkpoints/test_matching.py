"""The dictionary of a checkpoint that fits a model: found wherever it is; where that is not clear all are listed."""

from __future__ import annotations

from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.checkpoints.matching import only_state, state_for
from graphc.errors import ArtifactError, StateDictError
from graphc.nn.module_state import StateDict


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.head = nn.Linear(2, 3)


NET = Net().state_dict()


def with_prefix(prefix: str, state: Any = NET) -> StateDict:
    prefixed = StateDict((prefix + name, value) for name, value in state.items())
    prefixed._metadata = {(prefix + path).rstrip("."): facts for path, facts in state._metadata.items()}
    return prefixed


def fits(tree: Any, entry: str | None = None) -> list[str]:
    """Checks that the net's weights are found; gives the notes."""
    state = state_for(NET, tree, "w.pt", entry)
    assert {n: t.tolist() for n, t in state.state.items()} == {n: t.tolist() for n, t in NET.items()}
    assert not Net().load_state_dict(state.state).missing_keys
    return state.notes


def test_names_that_fit_are_taken_as_they_are():
    assert fits(NET) == []
    assert fits(dict(NET)) == []


@pytest.mark.parametrize("name", ["state_dict", "model", "model_state_dict", "params_ema", "generator"])
def test_nested_dictionaries_are_found(name: str):
    optimizer = gc.optim.Adam(Net().parameters()).state_dict()
    assert fits({"epoch": 3, name: NET, "optimizer": optimizer}) == [f"the weights are its entry {name!r}"]
    assert fits([{"stages": (1, {name: NET})}]) == [f"the weights are its entry '0/stages/1/{name}'"]


def test_the_one_that_fits_is_taken_of_several():
    other = nn.Linear(2, 3).state_dict()
    notes = fits({"discriminator": other, "generator": NET, "loss": gc.ones(1)})
    assert notes == ["the weights are its entry 'generator'; also there: the file itself, 'discriminator'"]
    larger = {name: gc.zeros(*(2 * d for d in value.shape)) for name, value in NET.items()}
    assert fits({"large": larger, "small": NET})[0].startswith("the weights are its entry 'small'")
    assert fits({"more": {**NET, "x": gc.ones(1)}, "exact": NET})[0].startswith("the weights are its entry 'exact'")


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model.", "module._orig_mod.", "net.backbone.0."])
def test_prefixes_are_taken_off(prefix: str):
    assert fits(with_prefix(prefix)) == [f"{prefix!r} is removed from the names"]
    state = state_for(NET, {"state_dict": with_prefix(prefix)}, "w.pt")
    assert state.state._metadata["norm"] == {"version": 2}


def test_prefixes_that_are_missing_are_put_before():
    bare = StateDict((n.removeprefix("conv."), v) for n, v in NET.items() if n.startswith("conv."))
    model_state = {n: v for n, v in NET.items() if n.startswith("conv.")}
    state = state_for(model_state, bare, "w.pt")
    assert list(state.state) == ["conv.weight", "conv.bias"] and state.notes == ["'conv.' is added before the names"]


def test_wrappers_inside_of_names_are_left_out():
    wrapped = {f"module.{n.replace('.', '._orig_mod.', 1)}": v for n, v in NET.items()}
    notes = fits(wrapped)
    assert notes == ["'module.' is removed from the names", "wrapper modules inside of names are ignored"]


def test_names_of_a_wrapper_in_the_model_stay():
    state = nn.ModuleDict({"module": Net()}).state_dict()
    assert state_for(state, state, "w.pt").notes == []


def test_names_that_the_model_has_not_stay_for_strict_loading_to_tell():
    state = state_for(NET, {**with_prefix("model."), "loss.weight": gc.ones(2)}, "w.pt")
    assert set(state.state) == {*NET, "loss.weight"}
    with pytest.raises(StateDictError, match=r"unexpected keys: 'loss\.weight'"):
        Net().load_state_dict(state.state)


def test_what_fits_in_part_is_taken_for_loading_to_tell_what_is_missing():
    partial = {n: v for n, v in NET.items() if not n.startswith("head.")}
    state = state_for(NET, {"net": partial, "other": {"x.y": gc.ones(1)}}, "w.pt")
    with pytest.raises(StateDictError, match=r"missing keys: 'head\.weight', 'head\.bias'\n"):
        Net().load_state_dict(state.state)


def test_weights_of_another_model_are_refused():
    with pytest.raises(StateDictError, match=r"which has 'conv\.weight', 'conv\.bias', .* more; the file has 'x'"):
        state_for(NET, {"x": gc.ones(1)}, "w.pt")
    with pytest.raises(StateDictError, match=r"no name in it is one of the model, which has .*; 'a', 'b' has 'x'"):
        state_for(NET, {"a": {"x": gc.ones(1)}, "b": {"y": gc.ones(1)}}, "w.pt")
    assert list(state_for({}, {"x": gc.ones(1)}, "w.pt").state) == ["x"]


def test_what_is_no_tensor_is_left_out():
    assert fits({**NET, "epoch": 3, "lr": 0.1}) == ["'epoch', 'lr': not a tensor, skipped"]


def test_several_that_fit_are_listed_and_one_is_chosen_by_name():
    with pytest.raises(ArtifactError, match=r"fit the model equally well: 'model', 'ema/x/module\.'") as caught:
        state_for(NET, {"model": NET, "ema": {"x": with_prefix("module.")}}, "w.pt")
    assert "entry=" in str(caught.value) and "--weights-entry" in str(caught.value)
    with pytest.raises(ArtifactError, match="2 sets of weights in it fit the model equally well: 'a', 'b'"):
        state_for(NET, {"a": NET, "b": dict(NET)}, "w.pt")
    assert fits({"a": NET, "b": dict(NET)}, entry="b") == ["the weights are its entry 'b'; also there: 'a'"]
    both = {"state_dict": {**with_prefix("student."), **with_prefix("teacher.")}}
    with pytest.raises(ArtifactError, match=r"'state_dict/student\.', 'state_dict/teacher\.'"):
        state_for(NET, both, "w.pt")
    state = state_for(NET, both, "w.pt", entry="state_dict/teacher.")
    assert "'teacher.' is removed from the names" in state.notes
    assert {n for n in state.state if n in NET} == set(NET)
    with pytest.raises(StateDictError, match=r"no entry 'c' of weights\n  try    name one of 'a', 'b'"):
        state_for(NET, {"a": NET, "b": dict(NET)}, "w.pt", entry="c")


def test_one_dictionary_under_two_names_is_one():
    assert fits({"model": NET, "again": NET}) == ["the weights are its entry 'model'"]


def test_checkpoints_without_weights_say_what_they_hold():
    with pytest.raises(ArtifactError, match="it holds 'epoch', 'lr' and no dictionary of names and tensors"):
        state_for(NET, {"epoch": 3, "lr": 0.1}, "w.pt")
    with pytest.raises(ArtifactError, match="it holds a list and no"):
        state_for(NET, [gc.ones(1)], "w.pt")
    cycle: dict[str, Any] = {}
    cycle["again"] = [cycle]
    with pytest.raises(ArtifactError, match="no dictionary of names"):
        state_for(NET, cycle, "w.pt")


def test_the_only_state_dictionary_without_a_model():
    assert only_state({}, "w.pt") == {}
    assert only_state({"net": NET, "loss": [1.0]}, "w.pt") is NET
    assert only_state({"ema": dict(NET), "model": NET}, "w.pt") is NET
    extra = {"weight": gc.ones(1), "_extra_state": {"a": 1}}
    assert only_state({"epoch": 3, "net": extra}, "w.pt") is extra
    with pytest.raises(ArtifactError, match="2 state dictionaries: 'a', 'b'"):
        only_state({"a": NET, "b": dict(NET)}, "w.pt")


def test_many_names_are_matched_in_little_time():
    model_state = {f"layers.{i}.block.{j}.weight": gc.ones(1) for i in range(100) for j in range(20)}
    state = {f"module.model.{name}": value for name, value in model_state.items()}
    assert (
        state_for(model_state, {"state_dict": state}, "w.pt").notes[-1] == "'module.model.' is removed from the names"
    )
