"""Conditions on sizes: PyTorch's texts hold or do not hold for arguments, and nothing else in them is computed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import graphc
from graphc.errors import ShapeError, UnsupportedError
from graphc.interop.aten.guards import Guards

VALUES: dict[str, Any] = {
    "x": graphc.zeros(6, 3),
    "parts": {"a": [graphc.zeros(5), graphc.zeros(2)]},
    "n": 7,
    "args_0": graphc.zeros(4),
}


def holds(text: str) -> bool:
    try:
        Guards([text], list(VALUES)).check(VALUES)
    except ShapeError as error:
        assert text[:200] in error.what
        return False
    return True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(L['x'].size()[0] % 2) == 0", True),
        ("L['x'].size()[0] // 4 != 1", False),
        ("L['x'].size()[0] == 2*L['x'].size()[1]", True),
        ("L['parts']['a'][1].size()[0] + 1 <= 3", True),
        ("L['n'] < 7", False),
        ("2 <= L['n'] <= 7", True),
        ("L['args'][0].size()[0] == 4", True),
        ("L['kwargs']['n'] == 7", True),
        ("L['n'] == 7 and not L['n'] == 8", True),
        ("L['n'] == 8 or -L['n'] == -7", True),
        ("L['n'] / 2 > 3.4", True),
        ("L['n'] // (L['n'] - 7) == 1", False),
        ("L['x'].size()[9] == 1", False),
    ],
)
def test_conditions_hold_or_do_not(text: str, expected: bool):
    assert holds(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os')", "L['x'].numpy()[0] == 1", "L['x'].shape[0] == 1", "L['other'].size()[0] == 1", "x == 1"),
        *(
            "L['x'].size(0) == 1",
            "L['n'] ** 9 == 1",
            "(lambda: 1)()",
            "[L['n']]",
            "L[x]",
            "L['x'][0:1] == 1",
            "'a' == 1",
        ),
        *("", "L['n'] ==", "(" * 500, "L['n'] == " + "1" * 30, "L['n']" + " + L['n']" * 2000, "not " * 3000 + "1"),
        *("L['args'][3].size()[0] == 1", "L['n'] is 7", "L['n'] in 7", "L['x'].__class__", "L[{[]: 1}] == 1"),
    ],
)
def test_other_texts_are_refused(text: str):
    with pytest.raises(UnsupportedError, match="not a condition on sizes"):
        Guards([text], list(VALUES))


def test_numbers_that_grow_without_end_do_not_hold():
    assert not holds(" * ".join(["9223372036854775807"] * 400) + " > 0")


def test_copies_hold_the_same():
    copy = pickle.loads(pickle.dumps(Guards(["L['n'] == 7"], ["n"])))
    copy.check({"n": 7})
    with pytest.raises(ShapeError):
        copy.check({"n": 8})
