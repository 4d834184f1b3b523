"""The list of changes: statements on a scene, with the models and the modes of calling that each is tried in.

Nets and tests of guards play the same list. An entry of a text is a name, perhaps the kind of scene in brackets, and
statements on ``s``, the scene. What stands before ``=>``, or before ``yield`` among several lines, prepares the scene
before the first call; the change comes after two calls.
"""

from __future__ import annotations

import copy
import types
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import graphc
from graphc import nn, optim
from graphc.nn import functional, module_hooks
from graphc.nn.utils import orthogonal, parametrizations, parametrize
from graphc.optim import lr_scheduler
from tools.nets.changes.modes import MODES, Mutation
from tools.nets.changes.scene import LEARNING_RATE, SEED
from tools.nets.entries import entries

BOTH = ("lean", "rich")
MODEL_MODES = tuple(name for name in MODES if name != "train")
"""Ways in which a change of the model shows."""
OPTIMIZER_MODES = ("train", "step")
NAMES: dict[str, Any] = {
    **{"gc": graphc, "nn": nn, "F": functional, "optim": optim, "lr_scheduler": lr_scheduler, "np": np, "copy": copy},
    **{"types": types, "OrderedDict": OrderedDict, "module_hooks": module_hooks, "orthogonal": orthogonal},
    **{"parametrizations": parametrizations, "parametrize": parametrize},
    **{"SEED": SEED, "LEARNING_RATE": LEARNING_RATE},
}
"""Names that all statements may use."""


class Change(NamedTuple):
    """One change of something between two calls."""

    name: str
    mutation: Mutation
    kinds: tuple[str, ...]
    modes: tuple[str, ...]
    text: str = ""
    """Its statements."""


CHANGES: dict[str, Change] = {}


def add(
    name: str, mutation: Mutation, kinds: Iterable[str] = BOTH, modes: Iterable[str] = MODEL_MODES, text: str = ""
) -> None:
    """Put a change into the list; names are unique."""
    assert name not in CHANGES, name
    CHANGES[name] = Change(name, mutation, tuple(kinds), tuple(modes), text)


def changes(
    text: str,
    names: Mapping[str, Any] | None = None,
    kinds: Iterable[str] = BOTH,
    modes: Iterable[str] = MODEL_MODES,
) -> None:
    """Put the entries of a text into the list; ``names`` are further names that their statements use."""
    for entry in entries(text, "s", {**NAMES, **(names or {})}):
        add(entry.name, entry.function, (entry.tag,) if entry.tag else kinds, modes, entry.text)
