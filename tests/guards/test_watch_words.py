"""Words in memory: each tells of every change that it is there for, and of no other object's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from graphc.guards import watch_words
from graphc.guards.watch_words import NOTHING, WatchTable, Words, layout


class Base:
    value = 1


class Owner(Base):
    def __init__(self):
        self.a, self.b = 1, 2


def function(a: int = 1, *, b: int = 2) -> int:
    return a + b


def cell_of(value: Any) -> tuple[Any, Callable[[Any], None]]:
    def put(new: Any) -> None:
        nonlocal value
        value = new

    return put.__closure__[0], put  # type: ignore[index]


def watched(words: Words) -> WatchTable:
    watch = WatchTable()
    watch.set(words.found, words.owned)
    assert watch.same()
    return watch


def test_this_interpreter_has_all_words():
    if sys.implementation.name == "cpython" and sys.version_info < (3, 13):  # later ones give dictionaries no versions
        assert None not in layout()


CHANGES = {
    "setitem": lambda d: d.__setitem__("a", 5),
    "new": lambda d: d.__setitem__("new", 5),
    "del": lambda d: d.pop("a"),
    "clear": lambda d: d.clear(),
    "update": lambda d: d.update(b=3),
    "grow": lambda d: d.update({str(i): i for i in range(1000)}),
}


@pytest.mark.skipif(layout().ma_version_tag is None, reason="dictionaries have no version here")
@pytest.mark.parametrize("change", list(CHANGES))
def test_a_dictionary(change: str):
    for table in ({"a": 1, "b": 2}, vars(Owner())):
        words = Words()
        assert words.dictionary(table)
        watch = watched(words)
        assert table["a"] == 1 and watch.same()
        CHANGES[change](table)
        assert not watch.same()


@pytest.mark.skipif(layout().dict_fields is None, reason="entries are not found here")
def test_an_entry_and_only_that():
    names: dict[str, Any] = {sys.intern(f"name{i}"): object() for i in range(50)}
    for change, same in (
        (lambda: names.__setitem__("name7", 1), True),
        (lambda: names.__setitem__("name3", 1), False),
        (lambda: names.pop("name3"), False),
        (lambda: names.update({f"more{i}": i for i in range(1000)}), False),
    ):
        names.setdefault("name3", object())
        words = Words()
        assert words.entry(names, "name3")
        watch = watched(words)
        change()
        assert watch.same() is same
    words = Words()
    assert words.entry(names, "absent")
    watch = watched(words)
    names["absent"] = 1
    assert not watch.same()


def test_a_cell():
    cell, put = cell_of(1.5)
    words = Words()
    if not words.cell(cell):
        pytest.skip("cells are laid out in another way here")
    watch = watched(words)
    put(2.5)
    assert not watch.same()


@pytest.mark.skipif(layout().function_fields is None, reason="functions are laid out in another way here")
@pytest.mark.parametrize("name", ["__code__", "__defaults__", "__kwdefaults__"])
def test_a_function(name: str, monkeypatch: pytest.MonkeyPatch):
    words = Words()
    assert words.function(function)
    watch = watched(words)
    other = {"__code__": (lambda a=1, *, b=2: a - b).__code__, "__defaults__": (9,), "__kwdefaults__": {"b": 3}}
    monkeypatch.setattr(function, name, other[name])
    assert not watch.same()


@pytest.mark.skipif(layout().tp_version_tag is None, reason="classes have no tag here")
def test_a_class_and_its_bases(monkeypatch: pytest.MonkeyPatch):
    for number, kind in enumerate((Base, Owner, Base), 1):
        words = Words()
        assert words.class_(Owner)
        watch = watched(words)
        assert Owner.value and watch.same()
        monkeypatch.setattr(kind, "value", number)
        assert not watch.same()
        assert Owner.value == vars(Owner).get("value", number) and not watch.same()


@pytest.mark.skipif(layout().tp_version_tag is None, reason="classes have no tag here")
def test_a_class_of_which_nothing_was_asked_yet():
    class Fresh(Base):
        pass

    words = Words()
    assert words.class_(Fresh)
    watch = watched(words)
    Fresh.new = 1
    assert not watch.same()


def test_the_class_of_an_object():
    class Other(Owner):
        pass

    owner, words = Owner(), Words()
    if not words.class_of(owner):
        pytest.skip("objects are laid out in another way here")
    watch = watched(words)
    owner.__class__ = Other
    assert not watch.same()


@pytest.mark.skipif(layout().list_fields is None, reason="lists are laid out in another way here")
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.append(1),
        lambda x: x.pop(),
        lambda x: x.clear(),
        lambda x: x.__setitem__(1, 7),
        lambda x: x.reverse(),
        lambda x: x.extend(range(10_000)),
        lambda x: (x.clear(), x.extend([5, 6, 7])),
        lambda x: x.__setitem__(slice(0, 2), [9, 9]),
    ],
)
def test_a_list(change: Callable[[list[Any]], Any]):
    items: list[Any] = [object(), 1.5, "x"]
    words = Words()
    assert words.list_(items)
    watch = watched(words)
    change(items)
    assert not watch.same()


def test_objects_live_as_long_as_they_are_watched():
    words = Words()
    for _ in range(100):
        assert words.list_([object() for _ in range(10)]) is (layout().list_fields is not None)
        words.dictionary({str(i): object() for i in range(10)})
    watch = watched(words)
    del words
    junk = [[object() for _ in range(10)] for _ in range(1000)]
    assert watch.same() and junk


def test_nothing_is_watched_where_the_places_are_not_known(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch_words, "layout", lambda: NOTHING)
    words = Words()
    table: dict[str, Any] = {}
    found = [words.dictionary(table), words.entry(table, "a"), words.list_([]), words.function(function)]
    found += [words.class_(Owner), words.class_of(Owner()), words.cell(cell_of(1)[0])]
    assert not any(found) and words.found == {}


def test_compiled_functions_see_changes_without_words():
    program = """
import graphc as gc
from graphc.guards import watch_words
watch_words.layout.cache_clear()
watch_words.layout = lambda: watch_words.NOTHING
SCALE = 2.0
f = gc.compile(lambda x: x * SCALE)
found = [f(gc.ones(1)).item() for _ in range(3)]
SCALE = 3.0
print(found, f(gc.ones(1)).item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[2.0, 2.0, 2.0] 3.0"
