"""The table of changes: each a small function of a scene, with its models and modes of calling."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tools.nets.changes.modes import MODES, Mutation

BOTH = ("lean", "rich")
MODEL_MODES = tuple(name for name in MODES if name != "train")
"""Ways in which a change of the model shows."""
OPTIMIZER_MODES = ("train", "step")


class Change(NamedTuple):
    """One change of something between two calls."""

    name: str
    mutation: Mutation
    kinds: tuple[str, ...]
    modes: tuple[str, ...]


CHANGES: dict[str, Change] = {}


def add(name: str, mutation: Mutation, kinds: Iterable[str] = BOTH, modes: Iterable[str] = MODEL_MODES) -> None:
    """Put a change into the table; names are unique."""
    assert name not in CHANGES, name
    CHANGES[name] = Change(name, mutation, tuple(kinds), tuple(modes))


def change(*kinds: str, modes: Iterable[str] = MODEL_MODES) -> Callable[[Mutation], Mutation]:
    """Return a decorator that puts a function into the table, under its name, for these kinds of scenes (all)."""

    def put(mutation: Mutation) -> Mutation:
        add(mutation.__name__, mutation, kinds or BOTH, modes)
        return mutation

    return put
