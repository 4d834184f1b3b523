"""Checks of outside tensors before each call of a compiled graph."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.base.mutation_epoch import Members
from graphc.calls.bindings import Binding, Frozen, Modules, PrepackedBinding, Slot
from graphc.tracing.trace import Constant


def test_modules_notice_changes_of_the_tree_and_of_flags():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout()))
    modules = Modules([model])
    assert modules.training() == (True,) * 4 and modules.holds()
    model[1].eval()
    assert sorted(modules.training()) == [False, False, True, True]
    model[1].append(nn.ReLU())
    assert not modules.holds()
    modules = Modules([model])
    model[0] = nn.Linear(2, 2)
    assert not modules.holds()


def test_shared_modules_count_once():
    layer = nn.Linear(1, 1)
    assert len(Modules([nn.Sequential(layer, layer), layer]).modules) == 2


def test_held_tensors_must_stay_what_they_are():
    layer = nn.Linear(2, 3)

    def hold() -> Frozen:
        locations = Modules([layer]).locations()
        return Frozen(Slot(t, locations[id(t)]) for t in (layer.weight, layer.bias))

    holder = hold()
    assert holder.holds() and holder.holds()
    with graphc.no_grad():
        layer.bias.add_(1.0)
    assert not holder.holds()
    holder = hold()
    layer.weight = nn.Parameter(graphc.ones(3, 2))
    assert not holder.holds()
    holder = hold()
    layer.bias.data = graphc.zeros(3)
    assert not holder.holds()


def test_a_slot_finds_the_tensor_that_is_there_now():
    layer = nn.Linear(2, 3)
    location = Modules([layer]).locations()[id(layer.weight)]
    slot = Slot(layer.weight, location)
    assert slot.tensor() is layer.weight and slot.holds()
    layer.weight = nn.Parameter(graphc.ones(3, 2))
    assert slot.tensor() is layer.weight and slot.holds()
    layer.weight.requires_grad_(False)
    assert not slot.holds()
    layer.weight = nn.Parameter(graphc.ones(1, 2))
    assert not slot.holds()
    layer.weight = None
    assert slot.tensor() is None and not slot.holds()


def test_a_binding_keeps_its_arrays_while_nothing_is_replaced():
    layer = nn.Linear(2, 3)
    locations = Modules([layer]).locations()
    tensors = [layer.weight, layer.bias]
    binding = Binding([Slot(t, locations[id(t)]) for t in tensors], [False, True])
    assert binding.holds()
    arrays = binding.arrays()
    assert binding.holds() and binding.arrays() is arrays
    before = layer.weight._version, layer.bias._version
    binding.note_writes()
    assert (layer.weight._version, layer.bias._version) == (before[0], before[1] + 1)
    layer.weight.data = graphc.ones(3, 2)
    assert binding.holds() and binding.arrays() is not arrays and binding.arrays()[0] is layer.weight._data
    layer.bias.requires_grad_(False)
    assert not binding.holds()


def test_constants():
    table = graphc.ones(2)
    constants = [Constant(table, table._version, table._data)]
    assert constants[0].holds()
    table[0] = 5
    assert not constants[0].holds() and "was written to" in constants[0].why()
    other = graphc.ones(2)
    constant = Constant(other, other._version, other._data)
    other.requires_grad_()
    assert not constant.holds() and "requires gradients now" in constant.why()


def test_a_tensor_replaced_in_any_dictionary_is_seen():
    for table in ({}, Members()):
        first, second = graphc.zeros(2), graphc.ones(2)
        table["x"] = first
        binding = Binding([Slot(first, (table, "x"))], [False])
        assert binding.holds() and binding.holds() and binding.arrays()[0] is first._data
        table["x"] = second
        assert binding.holds() and binding.arrays()[0] is second._data
        table["x"] = graphc.zeros(3)
        assert not binding.holds()
        del table["x"]
        assert not binding.holds()


def test_narrow_copies_are_made_again_after_writes_only():
    layer = nn.Linear(2, 3)
    locations = Modules([layer]).locations()
    slots = [Slot(t, locations[id(t)]) for t in (layer.weight, layer.bias)]
    copies = []

    def half(array: np.ndarray) -> np.ndarray:
        copies.append(array)
        return array.astype(np.float16)

    binding = PrepackedBinding(slots, [False, True], {0: half})
    assert binding.holds()
    first = binding.arrays()
    assert first[0].dtype == np.float16 and first[1] is layer.bias._data and len(copies) == 1
    binding.note_writes()
    assert binding.holds() and binding.arrays() is first
    with graphc.no_grad():
        layer.weight.fill_(3.0)
    assert binding.holds()
    second = binding.arrays()
    assert second is not first and (second[0] == 3.0).all() and len(copies) == 2
    layer.weight = nn.Parameter(graphc.full((3, 2), 5.0))
    assert binding.holds() and (binding.arrays()[0] == 5.0).all() and len(copies) == 3
    layer.bias = nn.Parameter(graphc.ones(3))
    assert binding.holds() and (binding.arrays()[1] == 1.0).all() and len(copies) == 3


@pytest.mark.parametrize("freeze", [False, True])
def test_a_tensor_outside_that_was_given_out_is_read_by_each_call(freeze: bool):
    table = graphc.ones(4)
    array = table.numpy()
    function = graphc.compile(lambda x: x + table, freeze=freeze)
    with graphc.no_grad():
        for value in (1.0, 3.0):
            array.fill(value)
            assert function(graphc.zeros(4)).tolist() == [value] * 4


def test_what_users_attach_to_tensors_is_looked_at():
    weight = nn.Parameter(graphc.ones(2))
    weight.importance = 2.0
    weight.parts = [1.0]
    function = graphc.compile(lambda x: x * weight * weight.importance + weight.parts[0])
    assert function(graphc.ones(2)).tolist() == [3.0, 3.0]
    weight.importance = 3.0
    assert function(graphc.ones(2)).tolist() == [4.0, 4.0]
    weight.parts[0] = 2.0
    assert function(graphc.ones(2)).tolist() == [5.0, 5.0]
    weight.grad = graphc.ones(2)
    before = len(function.variants)
    assert function(graphc.ones(2)).tolist() == [5.0, 5.0] and len(function.variants) == before
