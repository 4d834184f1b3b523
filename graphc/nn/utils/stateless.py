"""Calls of modules with substituted parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from graphc.base.errors import ArgumentError, StateDictError
from graphc.nn.module import Module
from graphc.nn.module_tree import join
from graphc.tensors.methods import shaping
from graphc.tensors.tensor import Tensor

Slot = tuple[dict[str, Any], str]
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
    """Call ``module(*args, **kwargs)`` with parameters and buffers replaced by tensors under their dotted names.

    In-place writes of the module, such as running statistics, go to the tensors passed. With ``tie_weights`` a tensor
    registered under several names is replaced under all of them. ``strict`` raises StateDictError for missing or
    unknown names; otherwise missing names keep the module's own tensor and unknown names do nothing. Gradients reach
    the tensors passed, eagerly and inside ``graphc.compile``.

    Example:
        >>> import graphc as gc
        >>> layer = gc.nn.Linear(2, 1, bias=False)
        >>> gc.func.functional_call(layer, {"weight": gc.tensor([[1.0, 10.0]])}, (gc.ones(2),))
        tensor([11.])
    """
    tensors = _merged(parameter_and_buffer_dicts)
    slots = _slots(module, tie_weights)
    if strict and (set(slots) ^ set(tensors)):
        missing, unknown = sorted(set(slots) - set(tensors)), sorted(set(tensors) - set(slots))
        raise StateDictError(f"functional_call: missing {missing}, unknown {unknown}")
    with _replaced(slots, tensors):
        positional = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*positional, **dict(kwargs or {}))


def _merged(dicts: Any) -> dict[str, Tensor]:
    merged: dict[str, Tensor] = {}
    for mapping in (dicts,) if isinstance(dicts, Mapping) else dicts:
        if not isinstance(mapping, Mapping):
            raise ArgumentError(f"functional_call: {type(mapping).__name__} is not a dictionary of tensors")
        if repeated := sorted(set(merged) & set(mapping)):
            raise ArgumentError(f"functional_call: {repeated} are in more than one dictionary")
        merged |= mapping
    return merged


def _slots(module: Module, tie_weights: bool) -> dict[str, list[Slot]]:
    """Map the dotted name of each tensor of a module to all slots that hold it."""
    slots: dict[str, list[Slot]] = {}
    by_tensor: dict[int, list[Slot]] = {}
    for prefix, child in module.named_modules(remove_duplicate=False):
        for table in (child._parameters, child._buffers):
            for key, tensor in table.items():
                if tensor is not None:
                    group = by_tensor.setdefault(id(tensor), []) if tie_weights else []
                    group.append((table, key))
                    slots[join(prefix, key)] = group
    return slots


@contextmanager
def _replaced(slots: dict[str, list[Slot]], tensors: Mapping[str, Tensor]) -> Iterator[None]:
    chosen: dict[tuple[int, str], tuple[Slot, Tensor]] = {}
    for name, tensor in tensors.items():
        for table, key in slots.get(name, ()):
            _, first = chosen.setdefault((id(table), key), ((table, key), tensor))
            if first is not tensor:
                raise ArgumentError(f"functional_call: {name!r} is tied to another tensor, which is replaced too")
    before = [(table, key, table[key]) for (table, key), _ in chosen.values()]
    try:
        for (table, key), tensor in chosen.values():
            table[key] = tensor
        yield
    finally:
        for table, key, tensor in before:
            table[key] = tensor


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return (parameters, buffers) of modules of one kind by dotted name, stacked along a new first dimension.

    Use them with ``vmap`` of ``functional_call``. The stacked parameters are new leaves. Raises ArgumentError when the
    modules differ in class or mode.
    """
    if not models or any(type(m) is not type(models[0]) or m.training != models[0].training for m in models):
        raise ArgumentError(
            "stack_module_state: the modules differ in class or mode",
            remedy="construct them alike: [Net() for _ in range(3)]",
        )
    trained = {name for name, p in models[0].named_parameters() if p.requires_grad}

    def stacked(tables: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        results = {}
        for name in tables[0]:
            joined = shaping.stacked([table[name].detach() for table in tables], 0)
            results[name] = joined.requires_grad_(name in trained)
        return results

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])
