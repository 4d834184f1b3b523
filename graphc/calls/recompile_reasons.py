"""Reasons for a recompilation: the guards of existing variants that did not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base import config
from graphc.base.records import NamedTuple
from graphc.calls.bindings import Modules
from graphc.tensors.structure import LEAF, Branch, Leaf, Open, Static, Structure

_NONE: Mapping[str, str] = {}
SHOWN = 8
"""Limit on the reasons in one message."""


class Key(NamedTuple):
    """The key of a variant: everything but tensors outside."""

    structure: Structure | int
    """Structure of the arguments; their number where all are tensors."""
    leaves: tuple[tuple[Any, ...], ...]
    """(element type, shape) of each tensor, and whether it requires gradients where that matters."""
    training: tuple[bool, ...]
    """Training flag of each module."""
    grad_enabled: bool = True
    repeats: tuple[int, ...] = ()
    """For each tensor the first one that is the same object; empty where all are different."""
    machine: str = "host"
    """Machine of the program, as far as the arguments determine it."""
    factors: Any = None
    """The element type of factors of products under autocast; None outside."""
    random: Any = None
    """For random numbers inside another module's call: module paths, and the draws of each so far."""
    updates: bool = True
    """Whether a training step updates parameters; it only accumulates gradients otherwise."""


class Recompiles:
    """Logs the reasons for recompiling a function, when GRAPHC_EXPLAIN_RECOMPILES=1."""

    def __init__(self, name: str):
        self.name = name
        self._modules: Modules | None = None
        self._count = 0

    def tell(
        self,
        key: tuple[Any, ...],
        variants: Mapping[Any, Sequence[Any]],
        modules: Modules,
        remarks: Mapping[str, str] = _NONE,
    ) -> list[str]:
        """Log the reasons for building a variant for ``key``, the fields of Key, and return them; none for the first
        variant.

        ``variants`` are the existing ones, by key; each explains by ``why`` which guard failed. ``remarks`` comment on
        numbers, by the path of an argument or the title of an attribute.
        """
        before, self._modules = self._modules, modules
        self._count += 1
        if self._count == 1 or not config.read().explain_recompiles:
            return []
        if before is not None and before is not modules:
            reasons = ["modules: a child was added, removed or replaced"]
        else:
            reasons = [_with_remark(reason, remarks) for reason in self._reasons(key, variants, modules)]
        more = [f"and {len(reasons) - SHOWN} more"] if len(reasons) > SHOWN else []
        lines = "".join(f"\n  {reason}" for reason in [*reasons[:SHOWN], *more])
        config.logger("recompiles").warning("%s is compiled again (number %d):%s", self.name, self._count, lines)
        return reasons

    def _reasons(self, key: tuple[Any, ...], variants: Mapping[Any, Sequence[Any]], modules: Modules) -> list[str]:
        """Return the differences from the nearest variant."""
        candidates = [variant.why() for variant in variants.get(key, ())]
        candidates += [differences(Key(*old), Key(*key), modules) for old in variants if old != key]
        return min(candidates, key=len, default=[])


def _with_remark(reason: str, remarks: Mapping[str, str]) -> str:
    """Return a reason with the remark on its number, if there is one."""
    path = reason.removeprefix(_STATIC).partition(":")[0]
    return f"{reason} ({remarks[path]})" if path in remarks else reason


_STATIC = "static argument "


def differences(old: Key, new: Key, modules: Modules) -> list[str]:
    """Return the guards in which two keys differ."""
    reasons = structure_differences(old.structure, new.structure)
    if len(old.leaves) == len(new.leaves):
        for number, (before, after) in enumerate(zip(old.leaves, new.leaves, strict=True)):
            reasons += [f"{guard} of tensor {number}: {a} -> {b}" for guard, a, b in _leaf_differences(before, after)]
    if old.repeats != new.repeats:
        reasons.append(f"arguments that are one tensor: {_groups(old.repeats)} -> {_groups(new.repeats)}")
    reasons += _mode_differences(old, new)
    if old.machine != new.machine:
        reasons.append(f"device: {old.machine} -> {new.machine}")
    if len(old.training) != len(new.training):
        return [*reasons, f"modules: {len(old.training)} -> {len(new.training)}"]
    names = _module_names(modules)
    for name, before, after in zip(names, old.training, new.training, strict=True):
        if before is not after:
            reasons.append(f"training flag of {name}: {before} -> {after}")
    return reasons


def _mode_differences(old: Key, new: Key) -> list[str]:
    reasons: list[str] = []
    if old.grad_enabled != new.grad_enabled:
        reasons.append(f"grad mode: {_on(old.grad_enabled)} -> {_on(new.grad_enabled)}")
    if old.factors is not new.factors:
        names = ["off" if d is None else d.name for d in (old.factors, new.factors)]
        reasons.append(f"autocast: {names[0]} -> {names[1]}")
    if old.updates != new.updates:
        reasons.append("the step updates parameters" if new.updates else "the step only accumulates gradients")
    return reasons


def _groups(repeats: tuple[int, ...]) -> str:
    same = [f"{first} and {i}" for i, first in enumerate(repeats) if i != first]
    return ", ".join(same) or "none"


def _on(flag: bool) -> str:
    return "on" if flag else "off"


def _leaf_differences(old: tuple[Any, ...], new: tuple[Any, ...]) -> list[tuple[str, str, str]]:
    texts = [(t[0].name, str(list(t[1])), str(bool(t[2])) if len(t) > 2 else "") for t in (old, new)]
    guards = ("element type", "shape", "requires_grad")
    return [(guard, a, b) for guard, a, b in zip(guards, *texts, strict=True) if a != b]


def _module_names(modules: Modules) -> list[str]:
    """Return the path of each module within the first one, or its class."""
    names: dict[int, str] = {}
    for module in modules.modules[:1]:
        names = {id(m): name for name, m in module.named_modules()}
    return [f"{names.get(id(m)) or type(m).__name__}" for m in modules.modules]


def structure_differences(old: Structure | int, new: Structure | int) -> list[str]:
    """Return the differences between the arguments of two calls apart from tensors."""
    if isinstance(old, int) or isinstance(new, int):
        return [] if old == new else [f"arguments: {_shape(old)} -> {_shape(new)}"]
    reasons: list[str] = []
    stack: list[tuple[str, Structure, Structure]] = [("", old, new)]
    while stack:
        path, a, b = stack.pop()
        if a == b:
            continue
        if isinstance(a, Branch) and isinstance(b, Branch) and (a.kind, a.keys) == (b.kind, b.keys):
            keys = a.keys or tuple(range(len(a.children)))
            if len(a.children) == len(b.children):
                steps = zip(keys, a.children, b.children, strict=True)
                stack += [(f"{path}.{k}" if path else str(k), x, y) for k, x, y in steps]
                continue
        if isinstance(b, Open):
            reasons.append(f"number argument {path}: {_shape(a)} -> {b.value!r}; now passed by each call")
        elif isinstance(a, Static) and isinstance(b, Static):
            reasons.append(f"{_STATIC}{path}: {a.value!r} -> {b.value!r}")
        else:
            reasons.append(f"argument {path}: {_shape(a)} -> {_shape(b)}")
    return sorted(reasons)


def _shape(structure: Structure | int) -> str:
    if isinstance(structure, int):
        return f"{structure} tensors"
    if isinstance(structure, Leaf) or structure is LEAF:
        return "a tensor"
    if isinstance(structure, Static):
        return repr(structure.value)
    keys = f" with {', '.join(map(str, structure.keys))}" if structure.keys else f" of {len(structure.children)}"
    return f"a {structure.kind.__name__}{keys}"
