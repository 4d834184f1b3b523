"""Digests of models: weights, names and angles of positions count, the capacity of the caches does not."""

from __future__ import annotations

import graphc as gc
from graphc.llm.token_programs import digest_of

WEIGHT = gc.arange(6, dtype=gc.float32).view(2, 3)
TABLE = gc.arange(8, dtype=gc.float32).view(4, 2)


def test_what_decides_a_digest():
    digest = digest_of({"a": WEIGHT}, {"cos": TABLE})
    assert digest_of({"a": WEIGHT.clone()}, {"cos": TABLE[:3]}) == digest, "the number of positions does not count"
    others = [
        digest_of({"b": WEIGHT}, {"cos": TABLE}),
        digest_of({"a": WEIGHT + 1}, {"cos": TABLE}),
        digest_of({"a": WEIGHT.view(3, 2)}, {"cos": TABLE}),
        digest_of({"a": WEIGHT}, {"cos": TABLE * 2}),
    ]
    assert len({digest, *others}) == 5


def test_the_order_of_names_does_not_count():
    tables = {"cos": TABLE}
    assert digest_of({"a": WEIGHT, "b": WEIGHT + 1}, tables) == digest_of({"b": WEIGHT + 1, "a": WEIGHT}, tables)
