"""The table of changes: each a small function of a scene, with its models and ways to call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tools.nets.changes.ways import WAYS, Mutation

BOTH = ("lean", "rich")
MODEL_WAYS = tuple(name for name in WAYS if name != "train")
"""Ways in which a change of the model shows."""
OPTIMIZER_WAYS = ("train", "step")


class Change(NamedTuple):
    """One way to change something between two calls."""

    name: str
    mutation: Mutation
    kinds: tuple[str, ...]
    ways: tuple[str, ...]


CHANGES: dict[str, Change] = {}


def add(name: str, mutation: Mutation, kinds: Iterable[str] = BOTH, ways: Iterable[str] = MODEL_WAYS) -> None:
    """Put a change into the table; names are unique."""
    assert name not in CHANGES, name
    CHANGES[name] = Change(name, mutation, tuple(kinds), tuple(ways))


def change(*kinds: str, ways: Iterable[str] = MODEL_WAYS) -> Callable[[Mutation], Mutation]:
    """Return a decorator that puts a function into the table, under its name, for these kinds of scenes (all)."""

    def put(mutation: Mutation) -> Mutation:
        add(mutation.__name__, mutation, kinds or BOTH, ways)
        return mutation

    return put
