"""Names of the package that are loaded at first use."""

from __future__ import annotations

import graphc
from graphc.base.lazy import imported_by


def test_no_name_is_stated_twice():
    assert not {*imported_by("graphc.names")} & {*graphc.front.__all__}


def test_all_names_but_one_that_hides_a_builtin_are_public():
    assert {*imported_by("graphc.names")} - {*graphc.__all__} == {"map"}
