"""Search in a checkpoint, however nested, for the state dictionary whose names match a model."""

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
"""Usual names of the model's entry, which decide if nothing else does."""
_WRAPPERS = re.compile(r"(?<=\.)(?:_orig_mod|module|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
"""Modules that PyTorch wraps around others, inside of names."""
_LISTED = 8


class Found(NamedTuple):
    """State dictionary with the names of a model."""

    state: StateDict
    notes: list[str]
    """Messages about the chosen entry and the changes of its names."""


class _Candidate(NamedTuple):
    """Dictionary with names and tensors in a checkpoint."""

    path: str
    values: Mapping[str, Any]


class _Fit(NamedTuple):
    """Entry compared with a model after removing prefix ``strip`` from its names and adding ``add``."""

    entry: _Candidate
    strip: str = ""
    add: str = ""
    bare: bool = False
    """Whether wrappers inside of names are removed first."""

    @property
    def place(self) -> str:
        """Path of the entry and prefix in messages."""
        return "/".join(step for step in (self.entry.path, self.strip) if step)

    def renamed(self, name: str) -> str | None:
        """Return the name of an entry in the model; None if it lacks the prefix."""
        name = _WRAPPERS.sub("", name) if self.bare else name
        return self.add + name[len(self.strip) :] if name.startswith(self.strip) else None

    def notes(self) -> list[str]:
        """Describe the changes of names in messages."""
        changes = [f"{self.strip!r} is removed from the names"] if self.strip else []
        changes += [f"{self.add!r} is added before the names"] if self.add else []
        return changes + (["wrapper modules inside of names are ignored"] if self.bare else [])


def state_for(expected: Mapping[str, Any], tree: Any, source: str, entry: str | None = None) -> Found:
    """Return the state dictionary in ``tree`` that has most of the names of ``expected``, a model's own state
    dictionary.

    Ties are broken by the number of equal shapes, then by the fewest other names. Common prefixes of names
    (``module.``, ``_orig_mod.``, ``model.``) are removed or added if more names match then. ``entry`` is the path of
    the dictionary in the checkpoint (``ema/state_dict``), or of a prefix in it (``state_dict/student.``). ``source``
    names the file in messages. Raises ArtifactError with a list of the entries if several fit equally well, or there is
    none; StateDictError if ``entry`` does not exist, or no name matches.
    """
    entries = list(_entries(tree))
    if not entries:
        raise _no_state(tree, source)
    fits = [fit for one in entries for fit in _fits(one, frozenset(expected))]
    if entry is not None:
        fits = [fit for fit in fits if entry in (fit.place, fit.entry.path)]
        if not fits:
            raise StateDictError(
                f"{source}: it has no entry {entry!r} of weights", remedy=f"name one of {_list(entries)}"
            )
    ranks = [_rank(fit, expected) for fit in fits]
    if expected and not max(ranks)[0]:
        raise _no_name(expected, entries, source)
    best = [fit for fit, rank in zip(fits, ranks, strict=True) if rank == max(ranks)]
    # NOTE: if an entry matches without changes of its names, its other fits are not ambiguous.
    unchanged = [fit.entry for fit in best if not fit.notes()]
    best = [fit for fit in best if not (fit.notes() and any(fit.entry is one for one in unchanged))]
    if len(best) > 1:
        raise ArtifactError(
            f"{source}: {len(best)} sets of weights in it fit the model equally well: {_list(best)}",
            remedy="choose one: load_weights(model, path, entry=...), on the command line --weights-entry",
        )
    return _found(best[0], entries)


def only_state(tree: Any, source: str) -> Mapping[str, Any]:
    """Return the only dictionary of names and tensors in a checkpoint, or the only one with a usual name.

    Raises ArtifactError with a list of the dictionaries otherwise.
    """
    if isinstance(tree, dict) and not tree:
        return tree
    entries = [one for one in _entries(tree) if all(_is_entry(k, v) for k, v in one.values.items())]
    if not entries:
        raise _no_state(tree, source)
    if len(entries) > 1:
        entries = next(([e] for name in _NAMES for e in entries if e.path == name), entries)
    if len(entries) > 1:
        raise ArtifactError(
            f"{source}: it has {len(entries)} state dictionaries: {_list(entries)}",
            remedy="call graphc.load_weights(model, path) for the one that fits, or graphc.load(path) for all",
        )
    return entries[0].values


def detached(state: Mapping[str, Any]) -> StateDict:
    """Return a state dictionary with detached tensors: no parameters, no gradients."""
    values = StateDict((name, v.detach() if isinstance(v, Tensor) else v) for name, v in state.items())
    values._metadata = dict(getattr(state, "_metadata", {}))
    return values


# ---- the entries of a checkpoint


def _entries(tree: Any) -> Iterator[_Candidate]:
    """Yield the dictionaries with names and tensors in a tree, breadth first; optimizer states are skipped."""
    visited: set[int] = set()
    level: list[tuple[str, Any]] = [("", tree)]
    for _ in range(MAX_DEPTH):
        level = [(path, value) for path, value in level if _is_new(value, visited)]
        for path, value in level:
            if isinstance(value, dict) and any(isinstance(k, str) and isinstance(v, Tensor) for k, v in value.items()):
                yield _Candidate(path, value)
        level = [child for path, value in level for child in _children(path, value)]


def _is_new(value: Any, visited: set[int]) -> bool:
    is_seen = id(value) in visited
    visited.add(id(value))
    return isinstance(value, dict | list | tuple) and not is_seen


def _children(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and {"state", "param_groups"} <= value.keys():
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in items:
        yield (f"{path}/{key}" if path else str(key)), child


def _is_entry(key: Any, value: Any) -> bool:
    return isinstance(key, str) and (isinstance(value, Tensor) or key.endswith(EXTRA_STATE))


def _list(items: Sequence[_Candidate | _Fit]) -> str:
    names = [one.path if isinstance(one, _Candidate) else one.place for one in items]
    texts = [repr(name) if name else "the file itself" for name in names]
    return ", ".join(texts[:_LISTED]) + (f" and {len(texts) - _LISTED} more" if len(texts) > _LISTED else "")


def _no_state(tree: Any, source: str) -> ArtifactError:
    content = ", ".join(map(repr, list(tree)[:_LISTED])) if isinstance(tree, dict) else f"a {type(tree).__name__}"
    return ArtifactError(
        f"{source}: it holds {content} and no dictionary of names and tensors",
        remedy="call graphc.load(path) for its content",
    )


def _no_name(expected: Mapping[str, Any], entries: list[_Candidate], source: str) -> StateDictError:
    first = list(entries[0].values)
    where = "the file" if len(entries) == 1 and not entries[0].path else _list(entries)
    return StateDictError(
        f"{source}: no name in it is one of the model, which has {_some(expected)}; {where} has {_some(first)}",
        remedy="pass a file with weights of this model",
    )


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# ---- matching of names


def _fits(entry: _Candidate, expected: frozenset[str]) -> list[_Fit]:
    """Return the prefix changes of an entry that give the most names of the model."""
    keys = [key for key, value in entry.values.items() if _is_entry(key, value)]
    most, prefix_pairs = _prefixes(keys, expected)
    bare = {_WRAPPERS.sub("", key) for key in keys}
    if len(bare) == len(keys) and bare != set(keys):
        more, bare_pairs = _prefixes(bare, expected)
        if more > most:
            return [_Fit(entry, *prefixes, bare=True) for prefixes in bare_pairs]
    return [_Fit(entry, *prefixes) for prefixes in prefix_pairs]


def _prefixes(keys: Any, expected: frozenset[str]) -> tuple[int, list[tuple[str, str]]]:
    """Return the largest number of matching names, and the pairs (removed prefix, added prefix) that give it."""
    present = set(keys)
    hits: Counter[tuple[str, str]] = Counter()
    for key in keys:
        hits.update((key[:at], "") for at in _starts(key) if key[at:] in expected)
    for name in expected:
        hits.update(("", name[:at]) for at in _starts(name)[1:] if name[at:] in present)
    most = max(hits.values(), default=0)
    return most, [prefixes for prefixes, count in hits.items() if count == most] or [("", "")]


def _starts(name: str) -> list[int]:
    """Return the offsets at which the components of a dotted name begin."""
    return [0, *(match.end() for match in re.finditer(r"\.", name))]


def _rank(fit: _Fit, expected: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return the numbers of matching names, of equal shapes among them, and, negated, of other names."""
    names = shapes = others = 0
    for key, value in fit.entry.values.items():
        if not _is_entry(key, value):
            continue
        name = fit.renamed(key)
        if name is None or name not in expected:
            others += 1
        else:
            names += 1
            shapes += getattr(expected[name], "shape", None) == getattr(value, "shape", None)
    return names, shapes, -others


def _found(fit: _Fit, entries: list[_Candidate]) -> Found:
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
    skipped = [repr(key) for key, value in values.items() if not _is_entry(key, value)]
    notes += [f"{', '.join(skipped[:_LISTED])}: not a tensor, skipped"] if skipped else []
    return Found(detached(state), notes + fit.notes())
