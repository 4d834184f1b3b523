"""Removable handles and the strict mode of hooks."""

from __future__ import annotations

import gc
import pickle
from collections import OrderedDict

import pytest

from graphc.errors import HookError
from graphc.tape import hooks


class Cell:
    """Something with a version counter, as tensors have."""

    def __init__(self):
        self._counter = [0]


def test_handle_removes_once_and_again():
    table = OrderedDict()
    handle = hooks.RemovableHandle(table)
    table[handle.id] = print
    handle.remove()
    handle.remove()
    assert not table


def test_ids_differ_over_dictionaries():
    first, second = (hooks.RemovableHandle(OrderedDict()) for _ in range(2))
    assert first.id != second.id


def test_handle_is_a_context_manager():
    table = OrderedDict()
    with hooks.RemovableHandle(table) as handle:
        table[handle.id] = print
        assert len(table) == 1
    assert not table


def test_handle_clears_extra_dictionaries():
    table, flags = OrderedDict(), OrderedDict()
    handle = hooks.RemovableHandle(table, extra=[flags])
    table[handle.id] = print
    flags[handle.id] = True
    handle.remove()
    assert not table and not flags


def test_handle_does_not_keep_the_dictionary_alive():
    class Table(OrderedDict):
        alive = True

        def __del__(self):
            Table.alive = False

    table = Table()
    handle = hooks.RemovableHandle(table)
    del table
    gc.collect()
    assert not Table.alive
    handle.remove()


def test_handle_survives_pickling_with_its_dictionary():
    table = OrderedDict()
    handle = hooks.RemovableHandle(table)
    table[handle.id] = "hook"
    copied_table, copied = pickle.loads(pickle.dumps((table, handle)))
    assert copied.id == handle.id
    copied.remove()
    assert not copied_table and table
    assert hooks.RemovableHandle(table).id > copied.id


def test_strict_as_context_manager_restores():
    assert not hooks.is_strict()
    with hooks.strict():
        assert hooks.is_strict()
        with hooks.strict(False):
            assert not hooks.is_strict()
        assert hooks.is_strict()
    assert not hooks.is_strict()


def test_strict_as_a_statement():
    hooks.strict()
    try:
        assert hooks.is_strict()
    finally:
        hooks.strict(False)


def test_hook_may_return_when_not_strict():
    assert hooks.call_hook(lambda x: x + 1, 1) == 2


def test_strict_hook_must_not_return():
    with hooks.strict(), pytest.raises(HookError, match="returned a int"):
        hooks.call_hook(lambda x: x, 1)


def test_strict_hook_must_not_write():
    def write(pair):
        pair[1]["a"]._counter[0] += 1

    with hooks.strict(), pytest.raises(HookError, match=r"write.* wrote to a tensor"):
        hooks.call_hook(write, (0, {"a": Cell()}))


def test_strict_hook_may_look():
    with hooks.strict():
        assert hooks.call_hook(lambda x: None, Cell()) is None
