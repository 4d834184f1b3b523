"""The state dictionary in a checkpoint that fits a model: found by the model's names, wherever it is nested."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.base.errors import ArtifactError, StateDictError
from graphc.checkpoints.tree import MAX_DEPTH
from graphc.nn.module_state import EXTRA_STATE, StateDict
from graphc.tensors.tensor import Tensor

_NAMES = ("state_dict", "model_state_dict", "model")
"""What the model's entry is named where nothing but names tells it from others."""
_WRAPPERS = re.compile(r"(?<=\.)(?:_orig_mod|module|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
"""Modules that PyTorch puts around others, inside of names."""
_LISTED = 8


class Found(NamedTuple):
    """A state dictionary with the names of a model."""

    state: StateDict
    notes: list[str]
    """What of the checkpoint it is, and what was changed of its names."""


class _Entry(NamedTuple):
    """A dictionary with names and tensors in a checkpoint."""

    path: str
    values: Mapping[str, Any]


class _Fit(NamedTuple):
    """An entry whose names, ``strip`` taken off and ``add`` put before, are compared with those of a model."""

    entry: _Entry
    strip: str = ""
    add: str = ""
    bare: bool = False
    """Whether wrappers inside of names are left out first."""

    @property
    def place(self) -> str:
        """What a user calls it."""
        return "/".join(part for part in (self.entry.path, self.strip) if part)

    def renamed(self, name: str) -> str | None:
        """The name under which the model may know an entry; None where it has not the prefix."""
        name = _WRAPPERS.sub("", name) if self.bare else name
        return self.add + name[len(self.strip) :] if name.startswith(self.strip) else None

    def notes(self) -> list[str]:
        """What is said of it."""
        found = [f"{self.strip!r} is taken off the names"] if self.strip else []
        found += [f"{self.add!r} is put before the names"] if self.add else []
        return found + (["names are read without the wrappers inside of them"] if self.bare else [])


def state_for(wanted: Mapping[str, Any], tree: Any, place: str, entry: str | None = None) -> Found:
    """The state dictionary in ``tree`` that has most of the names of ``wanted``, a model's own state dictionary.

    Among those with equally many it is the one with most of the shapes, then the one with fewest other names. Common
    prefixes of names (``module.``, ``_orig_mod.``, ``model.``) are taken off or put before where more names fit then.
    ``entry`` is the path of the dictionary in the checkpoint (``ema/state_dict``), or that of a prefix in it
    (``state_dict/student.``). Raises ArtifactError that lists what there is where several fit equally well, and where
    there is nothing; StateDictError when there is no such ``entry``, and where no name is one of the model.
    """
    entries = list(_entries(tree))
    if not entries:
        raise _no_state(tree, place)
    fits = [fit for one in entries for fit in _fits(one, frozenset(wanted))]
    if entry is not None:
        fits = [fit for fit in fits if entry in (fit.place, fit.entry.path)]
        if not fits:
            raise StateDictError(f"{place}: it has no entry {entry!r} of weights", remedy=_list(entries))
    ranks = [_rank(fit, wanted) for fit in fits]
    if wanted and not max(ranks)[0]:
        raise _no_name(wanted, entries, place)
    best = [fit for fit, rank in zip(fits, ranks, strict=True) if rank == max(ranks)]
    # NOTE: names that fit as they are need no other explanation.
    as_they_are = [fit.entry for fit in best if not fit.notes()]
    best = [fit for fit in best if not (fit.notes() and any(fit.entry is one for one in as_they_are))]
    if len(best) > 1:
        raise ArtifactError(
            f"{place}: {len(best)} sets of weights in it fit the model equally well: {_list(best)}",
            remedy="load_weights(model, path, entry=...), on the command line --weights-entry",
        )
    return _found(best[0], entries)


def only_state(tree: Any, place: str) -> Mapping[str, Any]:
    """The one dictionary of names and tensors in a checkpoint, or the one of those with a usual name. Raises
    ArtifactError, listing what there is."""
    if isinstance(tree, dict) and not tree:
        return tree
    entries = [one for one in _entries(tree) if all(_is_entry(k, v) for k, v in one.values.items())]
    if not entries:
        raise _no_state(tree, place)
    if len(entries) > 1:
        entries = next(([e] for name in _NAMES for e in entries if e.path == name), entries)
    if len(entries) > 1:
        raise ArtifactError(
            f"{place}: it has {len(entries)} state dictionaries: {_list(entries)}",
            remedy="graphc.load_weights(model, path) takes the one that fits; graphc.load(path) gives all",
        )
    return entries[0].values


def detached(state: Mapping[str, Any]) -> StateDict:
    """A state dictionary of values alone: no parameters, no gradients."""
    found = StateDict((name, v.detach() if isinstance(v, Tensor) else v) for name, v in state.items())
    found._metadata = dict(getattr(state, "_metadata", {}))
    return found


# ---- what there is


def _entries(tree: Any) -> Iterator[_Entry]:
    """The dictionaries with names and tensors in a tree, from the outside in; those of optimizers are left out."""
    seen: set[int] = set()
    level: list[tuple[str, Any]] = [("", tree)]
    for _ in range(MAX_DEPTH):
        level = [(path, value) for path, value in level if _is_new(value, seen)]
        for path, value in level:
            if isinstance(value, dict) and any(isinstance(k, str) and isinstance(v, Tensor) for k, v in value.items()):
                yield _Entry(path, value)
        level = [child for path, value in level for child in _children(path, value)]


def _is_new(value: Any, seen: set[int]) -> bool:
    known = id(value) in seen
    seen.add(id(value))
    return isinstance(value, dict | list | tuple) and not known


def _children(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and {"state", "param_groups"} <= value.keys():
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in items:
        yield (f"{path}/{key}" if path else str(key)), child


def _is_entry(key: Any, value: Any) -> bool:
    return isinstance(key, str) and (isinstance(value, Tensor) or key.endswith(EXTRA_STATE))


def _list(found: Sequence[_Entry | _Fit]) -> str:
    names = [one.path if isinstance(one, _Entry) else one.place for one in found]
    texts = [repr(name) if name else "the file itself" for name in names]
    return ", ".join(texts[:_LISTED]) + (f" and {len(texts) - _LISTED} more" if len(texts) > _LISTED else "")


def _no_state(tree: Any, place: str) -> ArtifactError:
    held = ", ".join(map(repr, list(tree)[:_LISTED])) if isinstance(tree, dict) else f"a {type(tree).__name__}"
    return ArtifactError(
        f"{place}: it holds {held} and no dictionary of names and tensors",
        remedy="graphc.load(path) gives what it holds",
    )


def _no_name(wanted: Mapping[str, Any], entries: list[_Entry], place: str) -> StateDictError:
    first = list(entries[0].values)
    where = "the file" if len(entries) == 1 and not entries[0].path else _list(entries)
    return StateDictError(
        f"{place}: no name in it is one of the model, which has {_some(wanted)}; {where} has {_some(first)}",
        remedy="weights of this model",
    )


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# ---- what fits


def _fits(entry: _Entry, wanted: frozenset[str]) -> list[_Fit]:
    """The ways to name what is in an entry by which most names are those of the model."""
    keys = [key for key, value in entry.values.items() if _is_entry(key, value)]
    most, found = _prefixes(keys, wanted)
    bare = {_WRAPPERS.sub("", key) for key in keys}
    if len(bare) == len(keys) and bare != set(keys):
        more, without = _prefixes(bare, wanted)
        if more > most:
            return [_Fit(entry, *prefixes, bare=True) for prefixes in without]
    return [_Fit(entry, *prefixes) for prefixes in found]


def _prefixes(keys: Any, wanted: frozenset[str]) -> tuple[int, list[tuple[str, str]]]:
    """How many names can be made those of the model, and by taking off and putting before which prefixes."""
    known = set(keys)
    hits: Counter[tuple[str, str]] = Counter()
    for key in keys:
        hits.update((key[:at], "") for at in _starts(key) if key[at:] in wanted)
    for name in wanted:
        hits.update(("", name[:at]) for at in _starts(name)[1:] if name[at:] in known)
    most = max(hits.values(), default=0)
    return most, [prefixes for prefixes, count in hits.items() if count == most] or [("", "")]


def _starts(name: str) -> list[int]:
    """Where the parts of a dotted name begin."""
    return [0, *(found.end() for found in re.finditer(r"\.", name))]


def _rank(fit: _Fit, wanted: Mapping[str, Any]) -> tuple[int, int, int]:
    """How many names fit, how many shapes of these, and how many names more there are, as a negative number."""
    names = shapes = others = 0
    for key, value in fit.entry.values.items():
        if not _is_entry(key, value):
            continue
        name = fit.renamed(key)
        if name is None or name not in wanted:
            others += 1
        else:
            names += 1
            shapes += getattr(wanted[name], "shape", None) == getattr(value, "shape", None)
    return names, shapes, -others


def _found(fit: _Fit, entries: list[_Entry]) -> Found:
    values = fit.entry.values
    state = StateDict()
    for key, value in values.items():
        if _is_entry(key, value):
            name = fit.renamed(key)
            state[key if name is None or name in state else name] = value
    for path, facts in getattr(values, "_metadata", {}).items():
        name = fit.renamed(f"{path}." if path else "")
        if name is not None:
            state._metadata[name[:-1]] = facts
    notes = []
    if fit.entry.path:
        others = [one for one in entries if one is not fit.entry]
        notes.append(
            f"the weights are its entry {fit.entry.path!r}" + (f"; also there: {_list(others)}" if others else "")
        )
    left = [repr(key) for key, value in values.items() if not _is_entry(key, value)]
    notes += [f"{', '.join(left[:_LISTED])}: no tensor, left out"] if left else []
    return Found(detached(state), notes + fit.notes())
