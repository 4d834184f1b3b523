"""Pooling by the names that say that positions are given, too."""

from __future__ import annotations

import pytest

import graphc
from graphc.nn import functional as F


@pytest.mark.parametrize("name", [n for n in F.__all__ if n.endswith("_with_indices")])
def test_they_give_what_return_indices_gives(name):
    rank = int(name.partition("pool")[2][0])
    x = graphc.randn(2, 3, *(6,) * rank)
    plain = getattr(F, name.removesuffix("_with_indices"))
    options = {"output_size": 2} if name.startswith(("adaptive", "fractional")) else {}
    arguments = [2] if not options else [] if name.startswith("adaptive") else [2]
    graphc.manual_seed(0)
    found = getattr(F, name)(x, *arguments, **options)
    graphc.manual_seed(0)
    wanted = plain(x, *arguments, **options, return_indices=True)
    assert all(graphc.equal(a, b) for a, b in zip(found, wanted, strict=True))
