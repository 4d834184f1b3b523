"""Exceptions: the lines of their messages, and the builtin classes that callers may catch."""

from __future__ import annotations

import inspect

import pytest

from graphc import errors
from graphc.errors import GraphcError, ShapeError

CLASSES = [
    c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, GraphcError) and c is not GraphcError
]


def test_the_message_has_only_the_lines_that_are_known():
    assert str(GraphcError("sizes differ: 2 and 3")) == "sizes differ: 2 and 3"
    assert str(GraphcError("no", remedy="yes")) == "no\n  try    yes"


def test_all_four_lines_in_order():
    error = ShapeError(
        "sizes differ: 2 and 3", where="%a = add(%x, %y)", origin="fc, net.py:3: x + y", remedy="reshape"
    )
    assert str(error).splitlines() == [
        "sizes differ: 2 and 3",
        "  where  %a = add(%x, %y)",
        "  from   fc, net.py:3: x + y",
        "  try    reshape",
    ]


def test_a_call_is_named_where_it_is_not_the_traced_line():
    error = ShapeError("sizes differ", origin="net.py:3: f(x)")
    error.called = "net.py:3: f(x)"
    assert str(error).splitlines()[1:] == ["  from   net.py:3: f(x)"]
    error.called = "net.py:5: f(y)"
    assert str(error).splitlines()[1:] == ["  called net.py:5: f(y)", "  traced net.py:3: f(x)"]


def test_lines_can_be_filled_in_by_who_knows_more():
    error = ShapeError("sizes differ")
    error.where = "%a = add(%x, %y)"
    assert str(error) == "sizes differ\n  where  %a = add(%x, %y)"
    assert error.args == ("sizes differ",)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_class_is_caught_as_one_of_graphc_and_as_a_builtin(cls: type[GraphcError]):
    builtin = [b for b in cls.__mro__ if b.__module__ == "builtins" and b not in (Exception, BaseException, object)]
    assert builtin, cls
    for caught in (GraphcError, *builtin):
        with pytest.raises(caught) as found:
            raise cls("what", remedy="how")
        assert str(found.value) == "what\n  try    how"


def test_a_missing_name_is_not_quoted():
    """KeyError shows the repr of its argument; the message of a member's name has lines."""
    assert str(errors.MemberNameError("no 'x'", remedy="rename")) == "no 'x'\n  try    rename"
