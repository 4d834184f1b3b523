"""Public names stay, and calls that were right stay right."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

import graphc
from tests.compatibility import make

RECORDED: dict[str, make.Signature | None] = json.loads(make.NAMES.read_text(encoding="utf-8"))
PRESENT = dict([*make.public_names(), *make.methods()])
POSITIONAL = ("positional_only", "positional_or_keyword")
VARIADIC = ("var_positional", "var_keyword")


def lookup(path: str) -> Any:
    """Return the object of a recorded name; raise AttributeError if it is gone."""
    package, _, name = path.rpartition(".")
    if package in ("Tensor", "Module", "Optimizer"):
        owner = {"Tensor": "graphc", "Module": "graphc.nn", "Optimizer": "graphc.optim"}[package]
        return getattr(getattr(importlib.import_module(owner), package), name)
    return getattr(importlib.import_module(package), name)


def broken(old: make.Signature, new: make.Signature) -> str:
    """Why some call that fits the old signature does not fit the new one; empty when all do."""
    if [p[1] for p in old] == list(VARIADIC):
        return ""  # a wrapper, which did not say what it took
    kinds = {p[1]: p[0] for p in new}
    known = {p[0]: p for p in new}
    places = [p[0] for p in new if p[1] in POSITIONAL]
    for place, name in enumerate(p[0] for p in old if p[1] in POSITIONAL):
        if place < len(places) and places[place] != name:
            return f"argument {place} was {name!r} and is {places[place]!r}"
        if place >= len(places) and "var_positional" not in kinds:
            return f"{name!r} is no positional argument any more"
    for name, kind, *optional in old:
        now = known.get(name)
        if kind in VARIADIC:
            if kind not in kinds:
                return f"{name!r} took any arguments"
        elif now is None and "var_keyword" not in kinds:
            return f"{name!r} is gone"
        elif now is not None and optional and now[1] not in VARIADIC and len(now) == 2:
            return f"{name!r} has no default any more"
    before = {p[0] for p in old}
    needed = [p[0] for p in new if p[0] not in before and p[1] not in VARIADIC and len(p) == 2]
    return f"{needed[0]!r} is new and must be given" if needed else ""


def test_every_name_is_still_there():
    gone = []
    for path in RECORDED:
        try:
            lookup(path)
        except (AttributeError, ImportError):
            gone.append(path)
    assert not gone


RENAMED = {"graphc.compile": "argument 0 was 'target' and is 'model'"}
"""What is refused with a message of its own."""


def test_every_call_is_still_right():
    problems = []
    for path, old in RECORDED.items():
        new = PRESENT.get(path)
        problem = broken(old, new) if old is not None and new is not None else ""
        problems += [f"{path}: {problem}"] if problem and RENAMED.get(path) != problem else []
    assert not problems


def test_the_model_as_the_target_is_refused():
    with pytest.raises(graphc.errors.ArgumentError, match="target is the name of a machine, got Linear"):
        graphc.compile(target=graphc.nn.Linear(2, 2))  # type: ignore[arg-type]


def test_new_names_are_recorded():
    new = sorted(PRESENT.keys() - RECORDED.keys())
    assert not new, f"python -m tests.compatibility.make --names adds them: {', '.join(new)}"


X, Y = ["x", "positional_or_keyword"], ["y", "positional_or_keyword", "optional"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ([X], [X, Y], ""),
        ([X], [["x", "positional_or_keyword", "optional"]], ""),
        ([X, Y], [X], "'y' is no positional argument any more"),
        ([X, Y], [X, ["args", "var_positional"]], "'y' is gone"),
        ([X, Y], [["y", "positional_or_keyword", "optional"], X], "argument 0 was 'x' and is 'y'"),
        ([X, Y], [X, ["y", "positional_or_keyword"]], "'y' has no default any more"),
        ([X], [X, ["y", "keyword_only"]], "'y' is new and must be given"),
        ([X], [["z", "positional_or_keyword"]], "argument 0 was 'x' and is 'z'"),
        ([["k", "keyword_only"]], [["others", "var_keyword"]], ""),
        ([["others", "var_keyword"]], [], "'others' took any arguments"),
    ],
)
def test_what_breaks_a_call(old: make.Signature, new: make.Signature, problem: str):
    assert broken(old, new) == problem


def test_a_name_that_goes_would_be_seen():
    with pytest.raises(AttributeError):
        lookup("graphc.nn.Lineal")
