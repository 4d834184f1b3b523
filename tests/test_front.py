"""The names that graphc has together."""

from __future__ import annotations

import graphc
from graphc import front


def test_the_package_has_each_name_of_its_front():
    assert set(front.__all__) <= set(graphc.__all__)
    assert all(getattr(graphc, name) is getattr(front, name) for name in front.__all__)


def test_types_have_the_names_of_pytorch_which_import_star_does_not_bring():
    assert (graphc.float, graphc.long, graphc.bool) == (graphc.float32, graphc.int64, graphc.bool_)
    assert not {"float", "int", "bool", "map"} & set(graphc.__all__)


def test_dir_shows_what_is_for_users():
    shown = set(dir(graphc))
    assert {*graphc.__all__, "Size", "bool", "inf", "__version__"} <= shown
    assert not shown & {"creation", "dispatcher", "math", "annotations", "deferred", "exports", "ModuleType"}
    assert all(hasattr(graphc, name) for name in shown)
