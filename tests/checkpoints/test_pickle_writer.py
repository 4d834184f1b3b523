"""The writer of pickles: Python's own pickle reads what it writes, and what it cannot write is named by its place."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given

import graphc as gc
from graphc.checkpoints.pickle_machine import Known, Machine
from graphc.checkpoints.pickle_writer import Name, Persistent, PickledCall, PickleWriter
from graphc.errors import ArgumentError
from tests.checkpoints.test_pickle_machine import TREES


def dump(value: Any) -> bytes:
    return PickleWriter(lambda value: None).dump(value)


@given(TREES)
def test_pickle_and_the_machine_read_what_is_written(tree):
    assert pickle.loads(dump(tree)) == tree
    assert Machine({}, lambda identity: None).load(dump(tree)) == tree


def test_what_occurs_twice_stays_one_object_and_cycles_close():
    inner: list[Any] = [1, (2,)]
    both = pickle.loads(dump({"a": inner, "b": inner, "c": inner[1]}))
    assert both["a"] is both["b"] and both["c"] is both["a"][1]
    inner.append({"back": inner})
    cycle = pickle.loads(dump(inner))
    assert cycle[2]["back"] is cycle


def test_dictionaries_keep_their_order_and_metadata():
    state = gc.nn.Linear(1, 1).state_dict()
    state.clear()
    state.update(b=1, a=2)
    found = pickle.loads(dump(state))
    assert type(found) is OrderedDict and list(found) == ["b", "a"] and found._metadata == {"": {"version": 1}}


def test_other_objects_are_calls_of_named_functions():
    def describe(value: Any) -> PickledCall | None:
        return PickledCall(Name("builtins", "complex"), (value.real, 1.5)) if isinstance(value, complex) else None

    value = 2 + 0j
    data = PickleWriter(describe).dump([value, value, (value,)])
    assert pickle.loads(data) == [2 + 1.5j, 2 + 1.5j, (2 + 1.5j,)]
    known = {"builtins.complex": Known("builtins.complex", complex)}
    assert Machine(known, lambda identity: None).load(data)[0] == 2 + 1.5j


def test_persistent_ids():
    class Reader(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return ("found", pid)

    data = dump([Persistent(("storage", 1))])
    assert Reader(io.BytesIO(data)).load() == [("found", ("storage", 1))]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), r"the object is a object, which cannot be saved\n  try    save tensors, dictionaries"),
        ([gc.nn.ReLU()], r"\[0\] is a ReLU, which cannot be saved\n  try    save its state_dict\(\)"),
        ({"a": [0, {3: b"x"}]}, r"\['a'\]\[1\]\[3\] is a bytes"),
        ({"f": len}, r"\['f'\] is a builtin_function_or_method"),
        ({(1, 2): 3}, "the object has a key of class tuple"),
        ([1 << 5000], r"\[0\] is a number of 626 bytes"),
    ],
)
def test_what_cannot_be_written_is_named(value, message):
    with pytest.raises(ArgumentError, match=message):
        dump(value)


def test_what_is_nested_too_deep_is_refused():
    value: Any = []
    for _ in range(200):
        value = [value]
    with pytest.raises(ArgumentError, match="nested more than 128 deep"):
        dump(value)
