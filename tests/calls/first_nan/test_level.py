"""Values of the argument ``first_nan``."""

from __future__ import annotations

import pytest

from graphc.base.errors import ArgumentError
from graphc.calls.first_nan.level import check_level


@pytest.mark.parametrize("level", [True, False, "all"])
def test_levels_are_taken(level):
    check_level("compile", level)


@pytest.mark.parametrize("level", [None, 1, "first", "ALL"])
def test_other_values_are_refused(level):
    with pytest.raises(ArgumentError, match="compile: first_nan is"):
        check_level("compile", level)
