"""Why a compiled function is compiled again: which guard of the variants that exist did not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphc.base import config
from graphc.calls.bindings import Modules
from graphc.tensors.structure import LEAF, Branch, Leaf, Open, Static, Structure

_NONE: Mapping[str, str] = {}
SHOWN = 8
"""Most reasons that one message names."""


class Key(NamedTuple):
    """What a variant was built for, apart from tensors outside."""

    structure: Structure | int
    """Of the arguments; a number where all are tensors."""
    leaves: tuple[tuple[Any, ...], ...]
    """(element type, shape) of each tensor, and whether it requires gradients where that matters."""
    training: tuple[bool, ...]
    """Flag of each module."""
    grad_enabled: bool = True
    repeats: tuple[int, ...] = ()
    """For each tensor the first one that is the same object; nothing where all are different."""
    machine: str = "host"
    """Where the program runs, as far as the arguments tell."""
    factors: Any = None
    """The element type of factors of products under autocast; None outside."""
    random: Any = None
    """Where random numbers are drawn inside of the call of another module: paths, and how often each has drawn."""


class Recompiles:
    """Tells on stderr, when GRAPHC_EXPLAIN_RECOMPILES=1, why a function is compiled again."""

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
        """Called before a variant for ``key``, the fields of Key, is built; ``variants`` are those that exist, by key.
        Each tells ``why`` it does not hold. ``remarks`` say more of numbers, by the way to an argument or by the title
        of an attribute. Returns the reasons, none for the first variant."""
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
        """How the nearest variant differs."""
        found = [variant.why() for variant in variants.get(key, ())]
        found += [differences(Key(*old), Key(*key), modules) for old in variants if old != key]
        return min(found, key=len, default=[])


def _with_remark(reason: str, remarks: Mapping[str, str]) -> str:
    """A reason, with what there is to say of the number that it speaks of."""
    path = reason.removeprefix(_STATIC).partition(":")[0]
    return f"{reason} ({remarks[path]})" if path in remarks else reason


_STATIC = "static argument "


def differences(old: Key, new: Key, modules: Modules) -> list[str]:
    """The guards in which two keys differ."""
    found = structure_differences(old.structure, new.structure)
    if len(old.leaves) == len(new.leaves):
        for number, (before, after) in enumerate(zip(old.leaves, new.leaves, strict=True)):
            found += [f"{guard} of tensor {number}: {a} -> {b}" for guard, a, b in _leaf_differences(before, after)]
    if old.repeats != new.repeats:
        found.append(f"arguments that are one tensor: {_groups(old.repeats)} -> {_groups(new.repeats)}")
    if old.grad_enabled != new.grad_enabled:
        found.append(f"grad mode: {_on(old.grad_enabled)} -> {_on(new.grad_enabled)}")
    if old.factors is not new.factors:
        names = ["off" if d is None else d.name for d in (old.factors, new.factors)]
        found.append(f"autocast: {names[0]} -> {names[1]}")
    if old.machine != new.machine:
        found.append(f"device: {old.machine} -> {new.machine}")
    if len(old.training) != len(new.training):
        return [*found, f"modules: {len(old.training)} -> {len(new.training)}"]
    names = _module_names(modules)
    for name, before, after in zip(names, old.training, new.training, strict=True):
        if before is not after:
            found.append(f"training flag of {name}: {before} -> {after}")
    return found


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
    """Path of each module within the first one, or its class."""
    known: dict[int, str] = {}
    for module in modules.modules[:1]:
        known = {id(m): name for name, m in module.named_modules()}
    return [f"{known.get(id(m)) or type(m).__name__}" for m in modules.modules]


def structure_differences(old: Structure | int, new: Structure | int) -> list[str]:
    """Where the arguments of two calls differ in all but their tensors."""
    if isinstance(old, int) or isinstance(new, int):
        return [] if old == new else [f"arguments: {_shape(old)} -> {_shape(new)}"]
    found: list[str] = []
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
            found.append(f"number argument {path}: {_shape(a)} -> {b.value!r}; from now on each call gives it")
        elif isinstance(a, Static) and isinstance(b, Static):
            found.append(f"{_STATIC}{path}: {a.value!r} -> {b.value!r}")
        else:
            found.append(f"argument {path}: {_shape(a)} -> {_shape(b)}")
    return sorted(found)


def _shape(structure: Structure | int) -> str:
    if isinstance(structure, int):
        return f"{structure} tensors"
    if isinstance(structure, Leaf) or structure is LEAF:
        return "a tensor"
    if isinstance(structure, Static):
        return repr(structure.value)
    keys = f" with {', '.join(map(str, structure.keys))}" if structure.keys else f" of {len(structure.children)}"
    return f"a {structure.kind.__name__}{keys}"
