"""Calls of modules with other parameters and buffers than their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from graphc.base.errors import ArgumentError, StateDictError
from graphc.nn.module import Module
from graphc.nn.module_tree import join
from graphc.tensors.methods import shaping
from graphc.tensors.tensor import Tensor

Place = tuple[dict[str, Any], str]
"""A table of a module and the key of a tensor in it."""


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with parameters and buffers replaced by those given under their dotted names.

    What the module writes in place, such as running statistics, is written to the tensors given. A tensor that the
    module holds under several names is replaced under all of them with ``tie_weights``. ``strict`` raises
    StateDictError for names that are missing or unknown, which else keep the module's own tensor or do nothing.
    Gradients reach the tensors given, eagerly and inside ``graphc.compile``.
    """
    given = _merged(parameter_and_buffer_dicts)
    places = _places(module, tie_weights)
    if strict and (set(places) ^ set(given)):
        missing, unknown = sorted(set(places) - set(given)), sorted(set(given) - set(places))
        raise StateDictError(f"functional_call: missing {missing}, unknown {unknown}")
    with _replaced(places, given):
        positional = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*positional, **dict(kwargs or {}))


def _merged(dicts: Any) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for mapping in (dicts,) if isinstance(dicts, Mapping) else dicts:
        if not isinstance(mapping, Mapping):
            raise ArgumentError(f"functional_call: {type(mapping).__name__} is no dictionary of tensors")
        if again := sorted(set(found) & set(mapping)):
            raise ArgumentError(f"functional_call: {again} are given twice")
        found |= mapping
    return found


def _places(module: Module, tie_weights: bool) -> dict[str, list[Place]]:
    """Where each tensor of a module lies, by dotted name."""
    found: dict[str, list[Place]] = {}
    by_tensor: dict[int, list[Place]] = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for key, tensor in table.items():
                if tensor is not None:
                    group = by_tensor.setdefault(id(tensor), []) if tie_weights else []
                    group.append((table, key))
                    found[join(prefix, key)] = group
    return found


@contextmanager
def _replaced(places: dict[str, list[Place]], given: Mapping[str, Tensor]) -> Iterator[None]:
    chosen: dict[tuple[int, str], tuple[Place, Tensor]] = {}
    for name, tensor in given.items():
        for table, key in places.get(name, ()):
            known = chosen.setdefault((id(table), key), ((table, key), tensor))
            if known[1] is not tensor:
                raise ArgumentError(f"functional_call: {name!r} is tied to another tensor that is given too")
    before = [(table, key, table[key]) for (table, key), _ in chosen.values()]
    try:
        for (table, key), tensor in chosen.values():
            table[key] = tensor
        yield
    finally:
        for table, key, tensor in before:
            table[key] = tensor


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of modules of one kind by their dotted names, each stacked along a new first dimension: for
    ``vmap`` of ``functional_call``. Stacked parameters are leaves of their own. Raises ArgumentError where modules are
    of several kinds or modes."""
    if not models or any(type(m) is not type(models[0]) or m.training != models[0].training for m in models):
        raise ArgumentError(
            "stack_module_state takes modules of one kind and mode", remedy="[make() for _ in range(3)]"
        )
    trained = {name for name, p in models[0].named_parameters() if p.requires_grad}

    def stacked(tables: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        found = {}
        for name in tables[0]:
            joined = shaping.stacked([table[name].detach() for table in tables], 0)
            found[name] = joined.requires_grad_(name in trained)
        return found

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])
