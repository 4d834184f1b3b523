"""Facts about the world outside: whether they hold, why not, and what an account of them costs."""

from __future__ import annotations

from collections.abc import Callable
from sys import getswitchinterval, setswitchinterval
from threading import Event, Thread
from typing import Any

import pytest

from graphc.base.mutation_epoch import EPOCH, note
from graphc.guards.facts import (
    Account,
    Cell,
    ClassAttribute,
    ClassOf,
    Content,
    DictEntry,
    FunctionCode,
    SlotAttribute,
    SpecialMethods,
    broken,
)
from graphc.guards.watch_words import WatchTable


class Base:
    value = 1.0


class Plain(Base):
    __slots__ = ("place",)

    def __call__(self) -> int:
        return 1


class Counted:
    """A fact that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked, self.true = 0, True

    def holds(self) -> bool:
        self.asked += 1
        return self.true

    def why(self) -> str:
        return "it was counted"

    def watch(self, words: Any) -> bool:
        return True


def test_an_entry_of_a_dictionary():
    table: dict[str, Any] = {"a": 1, "items": [1, [2]]}
    number, items, absent = (DictEntry(table, n, f"global {n!r}", "x.py:3") for n in ("a", "items", "absent"))
    assert broken([number, items, absent]) == []
    table["a"] = True
    table["items"][1].append(3)
    table["absent"] = "now"
    assert broken([number, items, absent]) == [
        "global 'a': 1 -> True (read at x.py:3)",
        "global 'items': changed inside (read at x.py:3)",
        "global 'absent': none -> 'now' (read at x.py:3)",
    ]
    for fact in (number, absent):
        fact.restore()
    assert table["a"] == 1 and table["a"] is not True and "absent" not in table


def test_equal_values_hold():
    table: dict[str, Any] = {"a": [1.0, {"b": 2}]}
    fact = DictEntry(table, "a", "a")
    table["a"] = [1.0, {"b": 2}]
    assert fact.holds()
    table["a"][0] = 1
    assert not fact.holds()


def test_a_cell_and_its_emptying():
    value = 1

    def function() -> int:
        return value

    (cell,) = function.__closure__  # type: ignore[misc]
    fact = Cell(cell, "variable 'value'")
    value = 2
    assert fact.why() == "variable 'value': 1 -> 2"
    del cell.cell_contents
    assert fact.why() == "variable 'value': 1 -> none"
    fact.restore()
    assert value == 1 and fact.holds()


def test_classes(monkeypatch: pytest.MonkeyPatch):
    owner = Plain()
    facts = [ClassAttribute(Plain, "value"), ClassAttribute(Plain, "none"), SpecialMethods(Plain), ClassOf(owner)]
    assert broken(facts) == []
    monkeypatch.setattr(Base, "value", 2.0)
    monkeypatch.setattr(Base, "none", 2.0, raising=False)
    monkeypatch.setattr(Plain, "__call__", lambda self: 2)
    assert [f.holds() for f in facts] == [False, False, False, True]
    assert facts[0].why() == "attribute 'value' of class Plain: 1.0 -> 2.0"


def test_slots_and_contents():
    owner = Plain()
    owner.place = 1.0
    slot, content = SlotAttribute(owner, "place"), Content({"a": {1}}, "a set")
    assert broken([slot, content]) == []
    owner.place = -1.0
    content.value["a"].add(2)
    assert len(broken([slot, content])) == 2
    slot.restore()
    assert owner.place == 1.0


def test_functions():
    def function(a: float = 1.0, *, b: Any = (1,)) -> Any:
        return a, b

    fact = FunctionCode(function)
    assert fact.holds()
    keywords: Any = function.__kwdefaults__
    keywords["b"] = (2,)
    assert not fact.holds()
    keywords["b"] = (1,)
    assert fact.holds()
    function.__defaults__ = (1,)
    assert not fact.holds()


def test_an_account_asks_again_only_after_a_change():
    counted, watched, always = Counted(), Counted(), Counted()
    account = Account([counted], [watched])
    assert account.holds() and account.is_certain
    for _ in range(5):
        assert account.holds()
    assert (counted.asked, watched.asked) == (1, 1)
    note()
    assert account.holds() and (counted.asked, watched.asked) == (2, 1)
    counted.true = False
    assert account.holds()
    note()
    assert not account.holds() and account.why() == ["it was counted"]
    account = Account([], [], [always])
    assert account.holds() and account.holds() and always.asked == 2 and not account.is_certain
    assert EPOCH[0] > 0


def test_an_account_sees_changed_words_and_takes_equal_values_again():
    table: dict[str, Any] = {"a": 1.5}
    account = Account([], [DictEntry(table, "a", "a")])
    assert account.holds() and account.is_certain and account.words.same()
    table["a"] = float("1.5")
    assert not account.words.same()
    assert account.holds() and account.words.same()
    table["a"] = 2.5
    assert not account.holds() and not account.holds()
    table["a"] = 1.5
    assert account.holds()


def test_words_are_compared_in_python_until_there_is_a_function():
    table: dict[str, Any] = {"a": 1.5}
    made: list[WatchTable] = []
    can_make = False

    def make_same(watch: WatchTable) -> Callable[[], bool] | None:
        if not can_make:
            return None
        made.append(watch)
        return watch.same

    account = Account([], [DictEntry(table, "a", "a")], make_same=make_same)
    assert account.holds() and account.holds() and account.holds()
    table["a"] = 2.5
    assert not account.holds() and not made
    table["a"], can_make = 1.5, True
    assert account.holds() and account.holds() and account.holds()
    assert made == [account.words]
    table["a"] = 2.5
    assert not account.holds()


def test_what_no_word_tells_of_is_looked_at_each_time():
    items = {1, 2}
    account = Account([], [Content(items, "a set")])
    assert account.holds() and not account.is_certain
    items.add(3)
    assert not account.holds()


def test_a_change_of_an_entry_that_is_no_fact_asks_no_fact_of_another_dictionary():
    watched, table = Counted(), {"a": 1.5, "number": 1.0, "items": [1.0]}
    facts = [DictEntry(table, "a", "a"), DictEntry(table, "items", "items")]
    account = Account([], [watched, *facts], moving=[table, table])
    assert account.holds() and watched.asked == 1
    for number in range(5):
        table["number"] = float(number)
        assert not account.words.same()
        assert account.holds() and account.words.same()
    table["a"] = float("1.5")
    assert account.holds() and watched.asked == 1
    table["b"] = 3
    assert account.holds() and watched.asked == 1
    for name, value in (("a", 2.5), ("items", [2.0])):
        before, table[name], table["number"] = table[name], value, -1.0
        assert not account.holds() and not account.holds()
        table[name] = before
        assert account.holds()
    table["number"] = 7.0
    table["items"][0] = 2.0
    assert not account.holds()


def test_all_entries_are_looked_at_where_a_fact_is_about_the_whole_dictionary():
    table: dict[str, Any] = {"a": 1.5, "number": 1.0}
    for other in (Content(table, "all"), DictEntry({"x": [table]}, "x", "x")):
        account = Account([], [DictEntry(table, "a", "a"), other], moving=[table])
        assert account.holds()
        table["number"] = 2.0
        assert not account.holds()
        table["number"] = 1.0
        assert account.holds()


def test_what_an_equal_object_holds_in_the_place_of_another_is_watched():
    table: dict[str, Any] = {"number": 1.0, "items": [1.0]}
    account = Account([], [DictEntry(table, "items", "items")], moving=[table])
    assert account.holds()
    table["items"], table["number"] = [1.0], 2.0
    assert account.holds()
    table["items"][0] = 3.0
    assert not account.holds()
    table["items"][0] = 1.0
    table["number"] = 3.0
    assert account.holds()


def test_special_methods_are_read_while_other_threads_give_a_class_attributes():
    class Shared:
        def __len__(self) -> int:
            return 1

    def change() -> None:
        while not done.is_set():
            for number in range(50):
                setattr(Shared, f"a{number}", number)
            for number in range(50):
                delattr(Shared, f"a{number}")

    done, fact = Event(), SpecialMethods(Shared)
    thread, interval = Thread(target=change), getswitchinterval()
    setswitchinterval(1e-6)
    thread.start()
    try:
        assert all(fact.holds() for _ in range(3000))
    finally:
        done.set()
        thread.join()
        setswitchinterval(interval)
